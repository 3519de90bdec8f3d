package program

import "slices"

// tooBroad says whether a folder is never the folder of one program: the root, the home
// folder and all above it, and the places where everyone's files lie.
func (s *search) tooBroad(folder string) bool {
	switch folder {
	case "/", "/home", "/root", "/tmp", "/var/tmp", "/dev/shm", "/usr", "/usr/local",
		"/usr/share", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/share",
		"/lib", "/lib64", "/opt", "/srv", "/etc", "/var", "/var/lib", "/run", "/mnt", "/media",
		"/proc", "/sys", "/dev", "/boot", "/nix", "/nix/store":
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

// holdsPrograms says whether a folder is one of many programs: reading all of it would
// let the loader start the others.
func (s *search) holdsPrograms(folder string) bool {
	switch baseOf(folder) {
	case "bin", "sbin", ".bin", "libexec", "shims":
		return true
	}
	return slices.Contains(s.folders, folder)
}

// loneScript adds a script that belongs to no package: its folder, because scripts load
// their neighbours, or the file alone where the folder holds more than one program.
func (s *search) loneScript(script string) {
	folder := parentOf(script)
	switch {
	case s.readable(script):
	case s.holdsPrograms(folder):
		s.need(Need{Path: script, Why: "script " + baseOf(script)})
	case s.tooBroad(folder):
		s.need(Need{Path: script, Why: "script " + baseOf(script)})
		s.note("only the script %q itself is readable, not its folder: modules beside it need a read grant", script)
	default:
		s.needFolder(folder, "folder of the script", fatal)
	}
}
