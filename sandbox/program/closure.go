package program

// Closure returns what the kernel must be able to execute, and what must be readable, for
// a program that the jail starts by itself: an `execute:` entry of a profile.
//
// name is a path, or a name on PATH of f, which should be the jail's. execute holds files
// only, as real paths: the program, for scripts the whole `#!` chain with env(1), and the
// ELF loaders. Shims of version managers are an error that names the program behind them:
// they start programs that the jail does not have.
//
// Reading includes what a language runtime loads at start, because an interpreter
// without its library is of no use, and a script's own package.
func Closure(name string, f Facts) (execute []string, read []Need, err error) {
	s, err := newSearch(f)
	if err != nil {
		return nil, nil, err
	}
	if err := checkArgv([]string{name}); err != nil {
		return nil, nil, err
	}
	named, err := s.find(name)
	if err != nil {
		return nil, nil, err
	}
	s.program.Named = named
	s.kernel = true
	end, err := s.chase(command{named: named})
	if err != nil {
		return nil, nil, err
	}
	if err := s.start(end); err != nil {
		return nil, nil, err
	}
	if err := s.companions(end); err != nil {
		return nil, nil, err
	}
	for _, path := range s.program.Execute {
		s.touched = appendNew(s.touched, path)
	}
	return s.touched, s.program.Read, nil
}

// refuseShim is what Closure says of a shim that Resolve would follow.
func (s *search) refuseShim(c, next command) error {
	return blocked(c.named, "write "+next.named+" in the profile",
		"it is a shim, which cannot start its program in the jail")
}

// companions adds the programs that a known program starts by its own paths. The table
// stays this short: everything else is a profile's to name.
func (s *search) companions(e executable) error {
	if baseOf(e.entry.path) != "git" {
		return nil
	}
	// git runs its commands for transports and merges out of `git --exec-path`, which is
	// compiled in, and fills new repositories from its templates.
	prefix := parentOf(parentOf(e.entry.path))
	for _, folder := range [...]string{prefix + "/lib/git-core", prefix + "/libexec/git-core"} {
		if err := s.gitHelpers(folder, prefix); err != nil {
			return err
		}
	}
	s.needWithin(prefix+"/share/git-core/templates", prefix, "templates of new git repositories", tolerable)
	// Absent ones are nothing to git; refused ones are a warning at every command.
	s.needFile("/etc/gitconfig", "the system's configuration of git")
	s.needFile("/etc/gitattributes", "the system's configuration of git")
	return nil
}

// gitHelpers adds the ELF programs of git's folder; links to git itself are many of them.
// Its shell and Perl scripts need interpreters that a profile grants by name or not at
// all, and what listens for others is not for a server. Links out of git's prefix are none
// of git's.
func (s *search) gitHelpers(folder, prefix string) error {
	seen := map[string]bool{}
	var helpers []string
	err := s.list(folder, func(name string, _ uint8) bool {
		switch name {
		case "git-daemon", "git-http-backend", "git-shell", "git-cvsserver":
			return true
		}
		found, err := s.real(join(folder, name))
		if err == nil && found.regular() && inside(found.path, prefix) && !seen[found.path] && s.runnable(found.path) {
			seen[found.path] = true
			helpers = append(helpers, found.path)
		}
		return len(helpers) < 512
	})
	if missing(err) {
		return nil
	}
	if err != nil {
		return reading(folder, err)
	}
	for _, path := range helpers {
		found, err := s.real(path)
		if err != nil {
			return reading(path, err)
		}
		f, err := s.open(found)
		if err != nil {
			continue // unreadable for us, so useless in the jail
		}
		image, err := readELF(f, nil)
		f.close()
		if err != nil {
			continue // a script
		}
		helper := executable{command: command{named: path}, entry: found, image: image}
		if err := s.link(helper); err != nil {
			return err
		}
	}
	return nil
}
