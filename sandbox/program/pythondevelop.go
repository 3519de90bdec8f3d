package program

import (
	"bytes"
	"strings"
)

// developed follows what editable installs leave in a folder of packages: .pth files with
// a path on each line, and finders with a table of paths.
//
// These files lie where the server's packages do, so they do not decide alone what
// becomes readable: a folder is added only if it lies in the project folder that holds the
// virtual environment, and in a Python project, told by its own pyproject.toml, setup.cfg
// or setup.py.
func (s *search) developed(site string) {
	left := 256 // files; an environment has a handful
	_ = s.list(site, func(name string, _ uint8) bool {
		switch {
		case left == 0:
			s.note("%q holds too many .pth files; not all were looked at", site)
			return false
		case strings.HasSuffix(name, ".pth"):
			left--
			data, err := s.tree.read(join(site, name), 64<<10)
			if err != nil {
				return true
			}
			for line := range bytes.Lines(data) {
				s.developedFolder(name, strings.TrimSpace(string(line)))
			}
		case strings.HasPrefix(name, "__editable__") && strings.HasSuffix(name, "_finder.py"):
			left--
			data, err := s.tree.read(join(site, name), 256<<10)
			if err != nil {
				return true
			}
			for line := range bytes.Lines(data) {
				if bytes.HasPrefix(line, []byte("MAPPING")) {
					for _, path := range quoted(string(line)) {
						s.developedFolder(name, path)
					}
				}
			}
		}
		return true
	})
}

func (s *search) developedFolder(source, path string) {
	if !strings.HasPrefix(path, "/") {
		return // code, a comment, or a path inside of the folder
	}
	found, err := s.real(path)
	if err != nil || s.readable(found.path) {
		return
	}
	if around := s.developing(); around == "" || !inside(found.path, around) {
		s.note("%s names %q, which lies outside of the project that holds the virtual environment and is not readable; %s",
			source, found.path, readHint(found.path))
		return
	}
	project, ok := s.projectOf(found.path)
	if !ok {
		s.note("%s names %q, which is in no Python project and not readable", source, found.path)
		return
	}
	if found.folder() && found.path != project && !s.tooBroad(found.path) {
		s.needFolder(found.path, "package in development", tolerable)
		return
	}
	s.needFolder(project, "package in development", tolerable)
}

// developing is the project folder that holds the virtual environment; "" when there is
// none, or when a script from elsewhere chose the interpreter by its `#!` line.
func (s *search) developing() string {
	env := s.python.environment
	if env == "" {
		return ""
	}
	around, ok := s.projectOf(parentOf(env))
	if !ok || s.origin != "" && !inside(s.origin, around) {
		return ""
	}
	return around
}

// projectOf finds the Python project that a path lies in.
func (s *search) projectOf(path string) (string, bool) {
	for at := path; !s.tooBroad(at); at = parentOf(at) {
		for _, marker := range [...]string{"pyproject.toml", "setup.cfg", "setup.py"} {
			if s.exists(join(at, marker)) {
				return at, true
			}
		}
	}
	return "", false
}

// quoted are the texts between single quotes that are absolute paths.
func quoted(line string) []string {
	var paths []string
	parts := strings.Split(line, "'")
	for i := 1; i < len(parts); i += 2 {
		if strings.HasPrefix(parts[i], "/") {
			paths = append(paths, parts[i])
		}
	}
	return paths
}
