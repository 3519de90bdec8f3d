package program

import (
	"bytes"
	"slices"
	"strings"
)

const (
	versionFileLimit = 4 << 10  // .python-version and the like
	configLimit      = 64 << 10 // .tool-versions, mise.toml
)

// followShim leads from a version manager's shim, or a package manager's wrapper, to the
// program that it would start. followed is false when the file is neither.
//
// The managers' own rules are kept, as far as files tell them. What they would decide by
// running something is an error: the person then names the real program.
func (s *search) followShim(c command, found entry, head []byte) (next command, followed bool, err error) {
	name := baseOf(c.named)
	folder := parentOf(c.named)
	switch base := baseOf(found.path); {
	case base == "volta-shim" && name != base:
		return s.left(s.volta(c, name))
	case (base == "mise" || base == "rtx") && name != base,
		baseOf(folder) == "shims" && baseOf(parentOf(folder)) == "mise":
		return s.left(s.mise(c, name))
	}
	if !isHashbang(head) {
		return command{}, false, nil
	}
	switch {
	case bytes.Contains(head, []byte("\n# asdf-plugin: ")):
		return s.left(s.asdf(c, found, head))
	case bytes.Contains(head, []byte(`env" exec "$program" "$@"`)):
		return s.left(s.versionEnv(c, found, head))
	case bytes.Contains(head, []byte(`basedir=$(dirname `)):
		return s.binWrapper(c, found, head)
	case bytes.HasPrefix(head, []byte("#!/bin/sh\n'''exec' ")):
		return s.longHashbang(c, found, head)
	}
	return command{}, false, nil
}

// left marks a shim as followed; the error keeps its place.
func (s *search) left(next command, err error) (command, bool, error) {
	return next, true, err
}

// leave records that a shim was left for a version's program: the folder of shims is
// searched no more, and the version's folder comes first, as the managers put it.
func (s *search) leave(c command, manager, real string) command {
	s.note("%q is a %s shim for %q", c.named, manager, real)
	if slices.Contains(s.persons, parentOf(c.named)) {
		s.persons = append(s.persons, parentOf(real))
	}
	s.shimFolders = append(s.shimFolders, parentOf(c.named), s.folderOf(c.named))
	s.folders = append([]string{parentOf(real)}, s.folders...)
	s.leftFor = append(s.leftFor, s.folderOf(real))
	return command{named: real, args: c.args}
}

// leaveForSystem is leave for "system": the next program of that name on PATH.
func (s *search) leaveForSystem(c command, manager string) (command, error) {
	s.shimFolders = append(s.shimFolders, parentOf(c.named), s.folderOf(c.named))
	real, err := s.findOnPath(baseOf(c.named))
	if err != nil {
		return command{}, &NotExecutableError{
			Path: c.named, Reason: "this " + manager + " shim stands for the system's program, and there is none", Err: err,
		}
	}
	s.note("%q is a %s shim for the system's %q", c.named, manager, real)
	return command{named: real, args: c.args}, nil
}

// shimError says why a shim could not be followed, and how to find the real program.
func shimError(c command, manager, ask, format string, args ...any) error {
	hint := "name the real program instead of the shim"
	if ask != "" {
		hint = "name the real program, which `" + ask + " " + baseOf(c.named) + "` prints"
	}
	return blocked(c.named, hint, "this "+manager+" shim cannot be followed: "+format, args...)
}

// upwards calls visit with a folder and all above it until visit returns true.
func upwards(folder string, visit func(folder string) bool) {
	for {
		if visit(folder) || folder == "/" {
			return
		}
		folder = parentOf(folder)
	}
}

// words reads a file of versions: the first word of each line that is no comment.
func (s *search) words(path string) []string {
	data, err := s.tree.read(path, versionFileLimit)
	if err != nil {
		if !missing(err) {
			s.note("%q cannot be read: %v", path, err)
		}
		return nil
	}
	var words []string
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			words = append(words, fields[0])
		}
	}
	return words
}

// runnable says whether a path could be started.
func (s *search) runnable(path string) bool {
	_, err := s.startable(path)
	return err == nil
}
