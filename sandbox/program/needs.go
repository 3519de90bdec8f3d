package program

import (
	"fmt"
)

// link adds the loader and the libraries of an ELF file.
func (s *search) link(e executable) error {
	host, known := thisMachine()
	if known && e.image.machine != host {
		return blocked(e.named, "", "it is built for another machine (%s)", e.image.machine)
	}
	s.program.Execute = appendNew(s.program.Execute, e.entry.path)
	if e.image.loader == "" {
		return nil
	}
	if e.image.loader[0] != '/' {
		return blocked(e.named, "", "its loader %q is not named by an absolute path", e.image.loader)
	}
	if _, err := s.startable(e.image.loader); err != nil {
		return &NotExecutableError{
			Path: e.named, Reason: "its loader cannot run", Err: err,
			Hint: "the program is built for another distribution or libc",
		}
	}
	l, err := s.loaderAt(e.image.loader, e.image.machine)
	if err != nil {
		return &NotExecutableError{Path: e.named, Reason: "its loader cannot be read", Err: err}
	}
	s.program.Execute = appendNew(s.program.Execute, l.real)
	s.libraries = newLibraries(&s.tree, l, e.entry.path, e.image)
	if l.config != "" {
		s.need(Need{Path: l.config, Why: "where the loader finds libraries", Optional: !l.musl})
	}
	s.addLibraries(baseOf(e.entry.path))
	for _, name := range s.libraries.missing {
		s.note("library %q of %q was not found%s", name, e.entry.path, s.libraryPathHint())
	}
	return nil
}

func (s *search) libraryPathHint() string {
	if s.facts.Env["LD_LIBRARY_PATH"] != "" {
		return "; LD_LIBRARY_PATH is not looked at, because the jail does not pass it by itself"
	}
	return ""
}

// addLibraries turns the files of the closure into needs. It may be called again after
// the closure grew.
func (s *search) addLibraries(of string) {
	for _, path := range s.libraries.files {
		s.need(Need{Path: path, Why: "library of " + of})
	}
	for _, refused := range s.libraries.refused {
		s.note("%s", refused)
	}
	if s.libraries.cut {
		s.note("%q needs more than %d libraries; not all are readable in the jail", of, maxLibraries)
	}
}

// need adds a need unless it is there already, alone or inside a folder.
func (s *search) need(n Need) {
	if _, ok := s.read[n.Path]; ok {
		return
	}
	for _, folder := range s.granted {
		if inside(n.Path, folder) {
			return
		}
	}
	s.read[n.Path] = struct{}{}
	s.program.Read = append(s.program.Read, n)
}

// needFile adds what lies at a path, links followed, if something does and it is a file.
func (s *search) needFile(path, why string) {
	if found, err := s.real(path); err == nil && found.regular() {
		s.need(Need{Path: found.path, Why: why, Optional: true})
	}
}

// needFolder adds the tree at a path, links followed, if a folder lies there. It returns
// the folder's real path; "" when there is none.
func (s *search) needFolder(path, why string, absence absence) string {
	found, err := s.real(path)
	if err != nil || !found.folder() {
		return ""
	}
	s.need(Need{Path: found.path, Why: why, Optional: absence == tolerable})
	s.granted = appendNew(s.granted, found.path)
	return found.path
}

// needWithin is needFolder, or needFile, for what a server could have made itself: a path
// whose links lead out of the tree that it belongs to is not granted. tree is a real
// path. It returns the real path of what is granted; "" when nothing is.
func (s *search) needWithin(path, tree, why string, absence absence) string {
	found, err := s.real(path)
	if err != nil || !found.folder() && !found.regular() {
		return ""
	}
	if !inside(found.path, tree) {
		s.note("%q is a link to %q, which lies outside of %q and is not readable; %s", path, found.path, tree, readHint(found.path))
		return ""
	}
	if found.folder() {
		return s.needFolder(found.path, why, absence)
	}
	s.need(Need{Path: found.path, Why: why, Optional: absence == tolerable})
	return found.path
}

// readHint says how a person grants what a server's files could not.
func readHint(path string) string {
	return fmt.Sprintf("add read: [%q] to the profile if it should be", path)
}

// absence says whether the program starts without a folder.
type absence uint8

const (
	fatal absence = iota
	tolerable
)

// maxNotes bounds what a person is told; a project's files can ask for more.
const maxNotes = 64

func (s *search) note(format string, args ...any) {
	if len(s.program.Notes) >= maxNotes {
		s.program.Notes = appendNew(s.program.Notes[:maxNotes], "there are more notes, which are left out")
		return
	}
	s.program.Notes = appendNew(s.program.Notes, fmt.Sprintf(format, args...))
}
