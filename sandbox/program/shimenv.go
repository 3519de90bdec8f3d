package program

import (
	"bytes"
	"path/filepath"
	"strings"
)

// versionEnvs are the managers that share pyenv's design: a shim runs `NAMEenv exec`.
var versionEnvs = [...]struct {
	name    string
	file    string   // holds the version, in the working folder or above
	drop    []string // beginnings of a version that stand for nothing
	several severalVersions
	command string // the program whose script argument chooses the folder
}{
	{name: "pyenv", file: ".python-version", drop: []string{"python-"}, several: severalAllowed},
	{name: "nodenv", file: ".node-version", drop: []string{"v", "node-", "node-v", "iojs-"}, command: "node"},
	{name: "rbenv", file: ".ruby-version", drop: []string{"ruby-"}, command: "ruby"},
	{name: "goenv", file: ".go-version"},
}

// severalVersions says whether more than one version may be active, and whether a version
// may be the beginning of an installed one.
type severalVersions uint8

const (
	oneVersion severalVersions = iota
	severalAllowed
)

// versionEnv follows a shim of pyenv and its relatives. Their order: the variable
// NAME_VERSION, the version file in the script's or working folder or above, the file
// `version` in the manager's root, and else the system.
func (s *search) versionEnv(c command, found entry, head []byte) (command, error) {
	manager := managerOf(head)
	for _, m := range versionEnvs {
		if m.name != manager {
			continue
		}
		ask := manager + " which"
		root := parentOf(parentOf(found.path))
		variable := strings.ToUpper(manager)
		if exported := exportedValue(head, variable+"_ROOT"); exported != "" {
			// The shims lie in it, or somebody else wrote this file.
			if real, err := s.real(exported); err != nil || !inside(found.path, real.path) {
				return command{}, shimError(c, manager, ask, "it does not lie in the folder %q that it names", exported)
			}
			root = exported
		}
		wanted := s.envVersions(c, head, m.file, root, variable, m.command)
		if m.several == oneVersion && len(wanted) > 1 {
			wanted = wanted[:1]
		}
		if len(wanted) == 0 {
			return s.leaveForSystem(c, manager)
		}
		for _, version := range wanted {
			if version == "system" {
				if !s.onPathOutside(c) {
					continue
				}
				return s.leaveForSystem(c, manager)
			}
			if !filepath.IsLocal(version) || strings.Contains(version, "\x00") {
				return command{}, shimError(c, manager, ask, "the version %q is not a plain name", version)
			}
			folder, ok := s.installedEnv(root+"/versions", version, m.drop, m.several)
			if !ok {
				return command{}, shimError(c, manager, ask, "version %q is not installed in %q", version, root)
			}
			if real := folder + "/bin/" + baseOf(c.named); s.runnable(real) {
				return s.leave(c, manager, real), nil
			}
		}
		if m.several == severalAllowed && s.onPathOutside(c) {
			// pyenv alone goes on to the system after all versions.
			return s.leaveForSystem(c, manager)
		}
		return command{}, shimError(c, manager, ask, "version %s has no %q", strings.Join(wanted, ":"), baseOf(c.named))
	}
	return command{}, shimError(c, manager, "", "the manager is not known here")
}

// onPathOutside says whether the system has the shim's program too.
func (s *search) onPathOutside(c command) bool {
	before := s.shimFolders
	s.shimFolders = append(append([]string(nil), before...), parentOf(c.named), s.folderOf(c.named))
	_, err := s.findOnPath(baseOf(c.named))
	s.shimFolders = before
	return err == nil
}

// envVersions are the versions that are asked for, in order.
func (s *search) envVersions(c command, head []byte, file, root, variable, program string) []string {
	if value := s.facts.Env[variable+"_VERSION"]; value != "" {
		return strings.FieldsFunc(value, func(r rune) bool { return r == ':' })
	}
	starts := []string{s.facts.Dir}
	if folder := s.facts.Env[variable+"_DIR"]; strings.HasPrefix(folder, "/") {
		starts = []string{folder, s.facts.Dir}
	}
	if program != "" && strings.HasPrefix(baseOf(c.named), program) &&
		bytes.Contains(head, []byte(`_DIR="${arg%/*}"`)) {
		if script := s.firstScript(c.args); script != "" {
			starts = []string{parentOf(script), s.facts.Dir}
		}
	}
	var path string
	for _, start := range starts {
		upwards(start, func(folder string) bool {
			if s.isFile(join(folder, file)) {
				path = join(folder, file)
			}
			return path != ""
		})
		if path != "" {
			break
		}
	}
	if path == "" {
		path = root + "/version"
	}
	return s.words(path)
}

// firstScript is the argument whose folder these shims take for the project's.
func (s *search) firstScript(args []string) string {
	for _, arg := range args {
		switch {
		case arg == "--" || strings.HasPrefix(arg, "-e"):
			return ""
		case strings.Contains(arg, "/") && s.isFile(s.absolute(arg)):
			return s.absolute(arg)
		}
	}
	return ""
}

// installedEnv finds the folder of a version.
func (s *search) installedEnv(versions, wanted string, drop []string, several severalVersions) (string, bool) {
	names := []string{wanted}
	for _, beginning := range drop {
		if rest, ok := strings.CutPrefix(wanted, beginning); ok && rest != "" {
			names = append(names, rest)
		}
	}
	for _, name := range names {
		if s.isFolder(join(versions, name)) {
			return join(versions, name), true
		}
	}
	if several == oneVersion {
		return "", false
	}
	installed := s.installed(versions)
	for _, name := range names {
		if version, ok := matchVersion(installed, name); ok {
			return join(versions, version), true
		}
	}
	return "", false
}

// managerOf is the base name of the manager in the shim's last line: exec "…/pyenv" exec.
func managerOf(head []byte) string {
	end := bytes.Index(head, []byte(`" exec "$program"`))
	if end < 0 {
		return ""
	}
	start := bytes.LastIndexByte(head[:end], '"') + 1
	return baseOf(string(head[start:end]))
}

// exportedValue is the value of a line `export NAME="value"` that names an absolute path.
func exportedValue(head []byte, name string) string {
	_, rest, found := strings.Cut(string(head), "\nexport "+name+`="`)
	value, _, closed := strings.Cut(rest, `"`)
	if !found || !closed || !strings.HasPrefix(value, "/") || strings.ContainsAny(value, "$`\\") {
		return ""
	}
	return value
}
