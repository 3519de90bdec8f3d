package program

import "slices"

// A command line ends in files that the host names, and in words that these files add: the
// argument of a `#!` line, the script in a wrapper. The files may be the server's own, so
// their words choose what runs and grant nothing beyond the package of the script that the
// host named, which is readable anyway.
//
// The kernel and env(1) put such words in front of the host's, and where a script is on
// the way, the host's words are arguments of that script. So either all options of a
// runtime are the host's or none are.

// through records a script or wrapper on the way, and of the first one, which is the
// host's choice, how many arguments the host gave to it.
func (s *search) through(c command, found entry) {
	if s.origin == "" {
		s.origin = found.path
		s.given = len(c.args)
		s.chosen = append(s.chosen, found.path)
	}
}

// identify makes the script that the host named the entry, whatever other script, module
// or program its `#!` line starts. A server gets its profile and its private home by its
// entry, so one whose first line is `env -S node -r own.js OTHER/index.js` would get those
// of the other. The arguments are the host's alone, as they may become roots.
func (s *search) identify() {
	if s.origin == "" {
		return
	}
	p := &s.program
	if p.Runtime != Node {
		p.Package = "" // a module that the first line named
	}
	p.Entry = s.origin
	// Nothing on the way takes them: options of env that could are refused.
	p.Args = p.Argv[len(p.Argv)-min(s.given, len(p.Argv)-1):]
}

// follows says whether the `#!` line of a script may name another script. One out of a
// folder of PATH is the person's, with its package, as `#!/usr/bin/env tsx` wants it; a
// neighbour is readable alone; others would be any file that has a `#!` line.
func (s *search) follows(c command, found entry) bool {
	if s.origin == "" || found.path == s.origin {
		return true
	}
	if slices.Contains(s.persons, parentOf(c.named)) || slices.Contains(s.persons, parentOf(found.path)) {
		s.chosen = appendNew(s.chosen, found.path)
		return true
	}
	return parentOf(found.path) == parentOf(s.origin)
}

// granting says whether a script brings its package along: the host named it, or it was
// found on PATH.
func (s *search) granting(script string) bool {
	return s.origin == "" || slices.Contains(s.chosen, script)
}

// leaveOut notes that a file which a file of the server names is not granted for that.
func (s *search) leaveOut(path string) {
	if !s.allowed(path) {
		s.note("%q names %q, which lies outside of its package and is not readable; %s", s.origin, path, readHint(path))
	}
}
