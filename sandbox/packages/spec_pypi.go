package packages

import "strings"

const pypiCure = "NAME, NAME[EXTRA], NAME==VERSION, NAME>=VERSION, git+https://, an https:// address of a wheel, or ./FOLDER"

// pypiSpec reads a package as uvx and pipx do: a requirement (PEP 508), NAME@VERSION, an
// address or a path.
func pypiSpec(word string, where Where) (Spec, error) {
	word = strings.TrimSpace(word)
	switch {
	case word == "":
		return Spec{}, refuse(pypiCure, "a package without a name")
	case localWord(word):
		return localSpec(word, where, pypiArchive)
	case strings.Contains(word, ";"):
		return Spec{}, refuse(pypiCure, "a requirement with a condition")
	case strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "git+"):
		return pypiAddress("", word)
	}
	end := strings.IndexAny(word, "[<>=!~@ ")
	name, rest := word, ""
	if end >= 0 {
		name, rest = word[:end], strings.TrimSpace(word[end:])
	}
	if !pypiName(name) {
		return Spec{}, refuse(pypiCure, "%q is no name of a Python package", name)
	}
	s := Spec{Name: canonicalPython(name)}
	if strings.HasPrefix(rest, "[") {
		extras, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			return Spec{}, refuse(pypiCure, "%q: a bracket is not closed", word)
		}
		for extra := range strings.SplitSeq(extras, ",") {
			if extra = strings.TrimSpace(extra); !pypiName(extra) {
				return Spec{}, refuse(pypiCure, "%q is no extra", extra)
			}
			s.Extras = append(s.Extras, canonicalPython(extra))
		}
		rest = strings.TrimSpace(after)
	}
	if at, ok := strings.CutPrefix(rest, "@"); ok {
		at = strings.TrimSpace(at)
		switch {
		case strings.Contains(at, "://"):
			found, err := pypiAddress(s.Name, at)
			found.Extras = s.Extras
			return found, err
		case at == "latest" || at == "":
			return s, nil
		case !pypiVersion(at):
			return Spec{}, refuse(pypiCure, "%q is no version", at)
		}
		s.Version = "==" + at
		return s, nil
	}
	if rest != "" && !pypiSpecifier(rest) {
		return Spec{}, refuse(pypiCure, "%q is no version of a Python package", rest)
	}
	s.Version = strings.ReplaceAll(rest, " ", "")
	return s, nil
}

func pypiAddress(name, address string) (Spec, error) {
	source, plain := Archive, address
	if repository, ok := strings.CutPrefix(address, "git+"); ok {
		source, plain = Git, repository
	}
	if !strings.HasPrefix(plain, "https://") {
		return Spec{}, refuse(pypiCure, "a package by an address that is not https://")
	}
	if err := plainAddress(plain); err != nil {
		return Spec{}, err
	}
	return Spec{Source: source, Name: name, Place: address}, nil
}

func pypiArchive(path string) bool {
	return strings.HasSuffix(path, ".whl") || strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".zip")
}

// pypiName is a name as PEP 508 has it.
func pypiName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || i == len(name)-1 || strings.IndexByte("-._", c) < 0) {
			return false
		}
	}
	return name != "" && len(name) <= 214
}

func pypiVersion(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".+!*-_", c) >= 0 {
			continue
		}
		return false
	}
	return text != ""
}

// pypiSpecifier is a list of comparisons (PEP 440).
func pypiSpecifier(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		version := strings.TrimLeft(part, "<>=!~")
		switch part[:len(part)-len(version)] {
		case "==", "===", ">=", "<=", ">", "<", "!=", "~=":
		default:
			return false
		}
		if !pypiVersion(strings.TrimSpace(version)) {
			return false
		}
	}
	return true
}

// AddRequest reads "npm:NAME[@VERSION]" or "pypi:NAME[SPECIFIER]".
func AddRequest(word string) (Request, error) {
	kind, rest, found := strings.Cut(word, ":")
	var s Spec
	var err error
	switch {
	case found && kind == string(NPM):
		s, err = npmSpec(rest, Where{Home: "/", Dir: "/"})
	case found && kind == string(PyPI):
		s, err = pypiSpec(rest, Where{Home: "/", Dir: "/"})
	default:
		return Request{}, refuse("npm:NAME or pypi:NAME", "a package without its kind")
	}
	if err == nil && s.Source != Registry {
		err = refuse(`put the runner's command line after "--"`, "only packages of a registry are named this way")
	}
	return Request{Kind: Kind(kind), Specs: []Spec{s}}, err
}
