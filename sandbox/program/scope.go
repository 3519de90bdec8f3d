package program

// tooBroad says whether a folder is never the folder of one program: the root, the home
// folder and all above it, other people's homes, and the places where everyone's files lie.
func (s *search) tooBroad(folder string) bool {
	switch folder {
	case "/", "/home", "/root", "/tmp", "/var/tmp", "/dev/shm", "/usr", "/usr/local",
		"/usr/share", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/share",
		"/lib", "/lib64", "/opt", "/srv", "/etc", "/var", "/var/lib", "/run", "/mnt", "/media",
		"/proc", "/sys", "/dev", "/boot", "/nix", "/nix/store":
		return true
	}
	if parentOf(folder) == "/home" {
		return true
	}
	if s.home == "" {
		return false
	}
	if inside(s.home, folder) {
		return true
	}
	if parentOf(folder) != s.home {
		return false
	}
	switch baseOf(folder) {
	case "Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos",
		".config", ".local", ".cache", ".ssh", ".gnupg", ".aws", ".kube", ".docker":
		return true
	}
	return false
}

// loneScript adds a script that belongs to no package: the file alone. Its folder may be
// anything, a download folder or another person's home. marker names what would have told
// a package.
func (s *search) loneScript(script, marker string) {
	if s.readable(script) {
		return
	}
	s.need(Need{Path: script, Why: "script " + baseOf(script)})
	s.note("no %s near the script %q: only this file is readable; add read: for more", marker, script)
}

// allowed says whether a real path is granted already, alone or inside of a folder.
func (s *search) allowed(path string) bool {
	if _, ok := s.read[path]; ok {
		return true
	}
	return s.readable(path)
}
