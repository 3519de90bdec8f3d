package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	manifestLimit     = 1 << 20 // bytes of a package.json
	dependenciesLimit = 4096    // names in one of its lists
)

// manifest is the part of a package.json that says where a package's files are.
type manifest struct {
	name, main string
	// required are names under dependencies, and under peerDependencies unless
	// peerDependenciesMeta calls them optional. other are optionalDependencies, dev
	// devDependencies.
	required, other, dev []string
	workspaces           bool
	volta                voltaPin
}

// voltaPin is the section that volta reads, there and in its own files.
type voltaPin struct {
	node, npm, pnpm, yarn string
	extends               string
}

// manifest reads the package.json of a folder.
func (s *search) manifest(folder string) (manifest, bool) {
	path := join(folder, "package.json")
	data, err := s.tree.read(path, manifestLimit)
	if err != nil {
		if !missing(err) {
			s.note("%q cannot be read: %v", path, err)
		}
		return manifest{}, false
	}
	m, err := parseManifest(data)
	if err != nil {
		s.note("%q is not used: %v", path, err)
		return manifest{}, false
	}
	return m, true
}

func parseManifest(data []byte) (manifest, error) {
	var m manifest
	var peers []string
	optional := map[string]bool{}
	r := jsonReader{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	err := r.document(func(key string) error {
		var err error
		switch key {
		case "name":
			m.name, err = r.text()
		case "main":
			m.main, err = r.text()
		case "dependencies":
			m.required, err = r.keys(m.required)
		case "peerDependencies":
			peers, err = r.keys(nil)
		case "optionalDependencies":
			m.other, err = r.keys(nil)
		case "devDependencies":
			m.dev, err = r.keys(nil)
		case "peerDependenciesMeta":
			err = r.object(func(name string) error {
				return r.object(func(key string) error {
					if key == "optional" && r.peek() == 't' {
						optional[name] = true
					}
					return r.skip()
				})
			})
		case "workspaces":
			m.workspaces = r.peek() == '[' || r.peek() == '{'
			err = r.skip()
		case "volta":
			m.volta, err = r.voltaPin()
		default:
			err = r.skip()
		}
		return err
	})
	for _, name := range peers {
		if !optional[name] {
			m.required = append(m.required, name)
		}
	}
	return m, err
}

func (r *jsonReader) voltaPin() (pin voltaPin, err error) {
	err = r.object(func(key string) error {
		var err error
		switch key {
		case "node":
			if r.peek() == '{' {
				// In volta's platform.json: {"runtime": "20.1.0", "npm": null}.
				return r.object(func(key string) error {
					var err error
					switch key {
					case "runtime":
						pin.node, err = r.text()
					case "npm":
						pin.npm, err = r.text()
					default:
						err = r.skip()
					}
					return err
				})
			}
			pin.node, err = r.text()
		case "npm":
			pin.npm, err = r.text()
		case "pnpm":
			pin.pnpm, err = r.text()
		case "yarn":
			pin.yarn, err = r.text()
		case "extends":
			pin.extends, err = r.text()
		default:
			err = r.skip()
		}
		return err
	})
	return pin, err
}

// jsonReader reads the few fields that are wanted and steps over the rest. It exists for
// the start time: the first use of encoding/json on a struct type in a process costs more
// than the rest of a resolution. Keys are exact, unlike there, as they are for node.
type jsonReader struct {
	data  []byte
	at    int
	depth int
}

const jsonMaxDepth = 256

var errJSON = errors.New("not valid JSON")

func (r *jsonReader) fail() error {
	return fmt.Errorf("%w at byte %d", errJSON, r.at)
}

// document reads an object that is the whole text.
func (r *jsonReader) document(field func(key string) error) error {
	if r.peek() != '{' {
		return r.fail()
	}
	if err := r.object(field); err != nil {
		return err
	}
	if r.peek() != 0 || r.at != len(r.data) {
		return r.fail()
	}
	return nil
}

// peek is the next byte that is not white space; 0 at the end.
func (r *jsonReader) peek() byte {
	for r.at < len(r.data) {
		switch b := r.data[r.at]; b {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return b
		}
	}
	return 0
}

func (r *jsonReader) accept(b byte) bool {
	if r.peek() != b || r.at >= len(r.data) {
		return false
	}
	r.at++
	return true
}

// object reads an object and calls field at each value, which field must consume. A value
// that is no object is stepped over.
func (r *jsonReader) object(field func(key string) error) error {
	if r.peek() != '{' {
		return r.skip()
	}
	r.at++
	if r.depth++; r.depth > jsonMaxDepth {
		return r.fail()
	}
	defer func() { r.depth-- }()
	if r.accept('}') {
		return nil
	}
	for {
		if r.peek() != '"' {
			return r.fail()
		}
		key, err := r.text()
		if err != nil {
			return err
		}
		if !r.accept(':') {
			return r.fail()
		}
		if err := field(key); err != nil {
			return err
		}
		if r.accept('}') {
			return nil
		}
		if !r.accept(',') {
			return r.fail()
		}
	}
}

// keys appends the keys of an object.
func (r *jsonReader) keys(list []string) ([]string, error) {
	err := r.object(func(key string) error {
		if len(list) == dependenciesLimit {
			return fmt.Errorf("more than %d names in a list", dependenciesLimit)
		}
		list = append(list, key)
		return r.skip()
	})
	return list, err
}

// text reads a string; "" for a value of another type, which is stepped over.
func (r *jsonReader) text() (string, error) {
	if r.peek() != '"' {
		return "", r.skip()
	}
	start := r.at
	plain := true
	for r.at++; r.at < len(r.data); r.at++ {
		switch b := r.data[r.at]; {
		case b == '"':
			r.at++
			raw := r.data[start:r.at]
			if plain {
				return string(raw[1 : len(raw)-1]), nil
			}
			var value string
			if err := json.Unmarshal(raw, &value); err != nil {
				r.at = start
				return "", r.fail()
			}
			return value, nil
		case b == '\\':
			plain = false
			r.at++
		case b < ' ':
			return "", r.fail()
		}
	}
	r.at = len(r.data)
	return "", r.fail()
}

// skip steps over any value.
func (r *jsonReader) skip() error {
	switch r.peek() {
	case '{':
		return r.object(func(string) error { return r.skip() })
	case '[':
		r.at++
		if r.depth++; r.depth > jsonMaxDepth {
			return r.fail()
		}
		defer func() { r.depth-- }()
		if r.accept(']') {
			return nil
		}
		for {
			if err := r.skip(); err != nil {
				return err
			}
			if r.accept(']') {
				return nil
			}
			if !r.accept(',') {
				return r.fail()
			}
		}
	case '"':
		_, err := r.text()
		return err
	}
	start := r.at
	for r.at < len(r.data) && isLiteral(r.data[r.at]) {
		r.at++
	}
	if start == r.at || !json.Valid(r.data[start:r.at]) {
		r.at = start
		return r.fail()
	}
	return nil
}

// isLiteral says whether a byte may be part of a number, true, false or null.
func isLiteral(b byte) bool {
	return isDigit(b) || b >= 'a' && b <= 'z' || b == 'E' || b == '+' || b == '-' || b == '.'
}
