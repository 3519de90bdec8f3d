package program

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH at all, as shells do.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// splitPath keeps the folders of PATH that may be searched. Empty and relative elements
// mean the working folder: a project could put a program of any name there.
func (s *search) splitPath() {
	path, set := s.facts.Env["PATH"]
	if !set {
		path = defaultPath
	}
	if path == "" {
		return
	}
	s.folders = make([]string, 0, strings.Count(path, ":")+1)
	for more := true; more; {
		var folder string
		folder, path, more = strings.Cut(path, ":")
		switch {
		case folder == "":
			s.note("an empty element of PATH means the working folder and is not searched")
		case folder[0] != '/':
			s.note("%q on PATH is relative to the working folder and is not searched", folder)
		default:
			s.folders = append(s.folders, folder)
		}
	}
	s.persons = slices.Clip(s.folders)
}

// find turns a command's name into an absolute path. Names with a slash are paths; the
// others are searched on PATH. Links are not followed.
func (s *search) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		named := name
		if name[0] != '/' {
			named = join(s.facts.Dir, strings.TrimPrefix(name, "./"))
		}
		return named, nil
	}
	named, err := s.findOnPath(name)
	if err == nil && inside(named, s.facts.Dir) && s.facts.Dir != "/" {
		s.note("%q was found inside the working folder: %q", name, named)
	}
	return named, err
}

// findOnPath searches like execvp(3): the first regular file that may be executed.
func (s *search) findOnPath(name string) (string, error) {
	var refused error
	for _, folder := range s.folders {
		if s.inShims(folder) {
			continue
		}
		candidate := join(folder, name)
		var st unix.Stat_t
		switch err := lstat(candidate, &st); {
		case err == nil:
		case missing(err):
			continue
		default:
			s.note("%q on PATH cannot be searched: %v", folder, err)
			continue
		}
		_, err := s.startable(candidate)
		if err == nil {
			return candidate, nil
		}
		// A folder of that name, or a link to nowhere, is nothing to complain about.
		var blocked *NotExecutableError
		if refused == nil && errors.As(err, &blocked) && blocked.Err != nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &NotFoundError{Name: name, Searched: s.folders}
}

// inShims says whether a folder holds a version manager's shims that were left already.
func (s *search) inShims(folder string) bool {
	return slices.Contains(s.shimFolders, folder)
}
