package packages

import (
	"encoding/json"
	"strings"
)

// documentation looks through a text for people: assignments, names marked as code, flags
// that pass a variable, and the env part of a host's configuration.
func (p *page) documentation() {
	p.assignments(looseText)
	p.each("`", func(_, end int) {
		name := word(p.text[end:])
		if prefix(p.text[end+len(name):], "`") != "" && largeWords(name) {
			p.variable(name, end)
		}
	})
	for _, flag := range [...]string{"-e ", "--env "} {
		p.each(flag, func(start, end int) {
			if start == 0 || strings.IndexByte(" \t\n`", p.text[start-1]) >= 0 {
				p.variable(word(p.text[end:]), end)
			}
		})
	}
	for _, flag := range [...]string{`"-e"`, `"--env"`} {
		p.each(flag, func(_, end int) {
			if at := p.skip(end); prefix(p.text[at:], ",") != "" {
				at = p.skip(at + 1)
				if name, ok := quoted(strings.Replace(p.text[at:min(len(p.text), at+2*maxVariable)], "=", `"`, 1)); ok {
					p.variable(name, at)
				}
			}
		})
	}
	p.each("env", p.configuration)
	p.each("environment", p.configuration)
}

// settings looks through an example of a settings file: NAME=value in each line.
func (p *page) settings() { p.assignments(settingsFile) }

// textKind says how much an equals sign means.
type textKind uint8

const (
	looseText textKind = iota
	settingsFile
)

// assignments takes NAME=value. In a text for people the name has an underscore, stands in
// a command that sets it, or the line begins with it; what stands in an address or in a
// program is none.
func (p *page) assignments(kind textKind) {
	p.each("=", func(start, end int) {
		if end < len(p.text) && strings.IndexByte("=>~", p.text[end]) >= 0 {
			return
		}
		name := start
		spaced := false
		for name > 0 && p.text[name-1] == ' ' {
			name, spaced = name-1, true
		}
		stop := name
		for name > 0 && isWord(p.text[name-1]) && stop-name <= maxVariable {
			name--
		}
		found := p.text[name:stop]
		if found == "" || found != strings.ToUpper(found) {
			return
		}
		first := name == 0 || p.text[name-1] == '\n'
		before := p.text[max(0, name-len("export ")):name]
		told := strings.HasSuffix(before, "export ") || strings.HasSuffix(before, "-e ") || strings.HasSuffix(before, "--env ")
		switch {
		case kind == settingsFile:
			if !first && !told && !strings.HasSuffix(before, "#") && !strings.HasSuffix(before, "# ") {
				return
			}
		case spaced && !first: // a formula, or a sentence
			return
		case !first && strings.IndexByte(" \t`\"'(>$", p.text[name-1]) < 0: // ?KEY=, &KEY=, x.KEY=
			return
		case !told && !largeWords(found):
			return
		}
		p.variable(found, name)
	})
}

// maxConfiguration bounds the env part of a configuration, in bytes.
const maxConfiguration = 8000

// configuration takes the keys of `"env": {"NAME": …}`, as hosts write it in JSON, JSONC
// and TOML.
func (p *page) configuration(start, end int) {
	if start > 0 && isWord(p.text[start-1]) {
		return
	}
	at := end
	if at < len(p.text) && (p.text[at] == '"' || p.text[at] == '\'') {
		at++
	}
	at = p.skip(at)
	if at == len(p.text) || p.text[at] != ':' && p.text[at] != '=' {
		return
	}
	if at = p.skip(at + 1); at == len(p.text) || p.text[at] != '{' {
		return
	}
	limit := min(len(p.text), at+maxConfiguration)
	depth := 0
	for i := at; i < limit; i++ {
		switch c := p.text[i]; {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return
			}
		case c == '"' || c == '\'':
			name, ok := quoted(p.text[i:])
			length := strings.IndexByte(p.text[i+1:limit], c)
			if length < 0 {
				return
			}
			begin := i
			i += 1 + length
			if ok && depth == 1 && p.isKey(i+1) {
				p.variable(name, begin)
			}
		case isLetter(c):
			name := word(p.text[i:])
			if depth == 1 && p.isKey(i+len(name)) {
				p.variable(name, i)
			}
			i += len(name) - 1
		}
	}
}

// isKey tells whether what ends here has a value.
func (p *page) isKey(at int) bool {
	at = p.skip(at)
	return at < len(p.text) && (p.text[at] == ':' || p.text[at] == '=')
}

// manifest reads a server.json, in which a server's author lists its variables for hosts.
func (p *page) manifest() {
	var whole any
	if json.Unmarshal([]byte(p.text), &whole) != nil {
		return
	}
	p.listed(whole, 0)
}

// listed looks for lists of variables at any depth: versions of the form put them at
// different places.
func (p *page) listed(v any, depth int) {
	if depth > 16 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			p.listed(item, depth+1)
		}
	case map[string]any:
		for key, value := range v {
			if key != "environmentVariables" && key != "environment_variables" {
				p.listed(value, depth+1)
				continue
			}
			list, _ := value.([]any)
			for _, item := range list {
				entry, _ := item.(map[string]any)
				name, _ := entry["name"].(string)
				p.variable(name, max(0, strings.Index(p.text, `"`+name+`"`)))
				if entry["isSecret"] == true || entry["is_secret"] == true {
					p.reader.secret[name] = true
				}
			}
		}
	}
}
