package program

import (
	"bytes"
	"slices"
	"strings"
)

// asdf follows a shim of asdf: a script whose comments name the plugins and versions that
// have the program. The version comes from ASDF_PLUGIN_VERSION, or from .tool-versions in
// the working folder, above it, or in the home folder.
func (s *search) asdf(c command, found entry, head []byte) (command, error) {
	const manager, ask = "asdf", "asdf which"
	data := parentOf(parentOf(found.path))
	if found.size > int64(len(head)) {
		return command{}, shimError(c, manager, ask, "it is larger than %d bytes", scriptHead)
	}
	plugins, offered := asdfPlugins(head)
	legacy := s.asdfLegacy()
	for _, plugin := range plugins {
		if !isPlainName(plugin) {
			return command{}, shimError(c, manager, ask, "it names the odd plugin %q", plugin)
		}
		wanted, err := s.asdfVersions(c, plugin, legacy)
		if err != nil {
			return command{}, err
		}
		for _, version := range wanted {
			if version == "system" {
				return s.leaveForSystem(c, manager)
			}
			if !slices.Contains(offered[plugin], version) {
				continue
			}
			if !isPlainName(version) || strings.Contains(version, ":") {
				return command{}, shimError(c, manager, ask, "the version %q is not a plain one", version)
			}
			if s.exists(data + "/plugins/" + plugin + "/bin/exec-path") {
				return command{}, shimError(c, manager, ask, "the plugin %q decides by a program of its own", plugin)
			}
			install := data + "/installs/" + plugin + "/" + version
			for _, folder := range [...]string{"/bin/", "/.npm/bin/", "/go/bin/", "/packages/bin/"} {
				if real := install + folder + baseOf(c.named); s.runnable(real) {
					return s.leave(c, manager, real), nil
				}
			}
			return command{}, shimError(c, manager, ask, "%s %s has no %q where plugins keep programs", plugin, version, baseOf(c.named))
		}
	}
	return command{}, shimError(c, manager, ask, "no version that has it is set (%s)", strings.Join(plugins, ", "))
}

// asdfPlugins reads the comments `# asdf-plugin: NAME VERSION`.
func asdfPlugins(head []byte) (plugins []string, versions map[string][]string) {
	versions = map[string][]string{}
	for line := range bytes.Lines(head) {
		rest, ok := bytes.CutPrefix(line, []byte("# asdf-plugin: "))
		if !ok {
			continue
		}
		if fields := strings.Fields(string(rest)); len(fields) >= 2 {
			plugins = appendNew(plugins, fields[0])
			versions[fields[0]] = append(versions[fields[0]], fields[1])
		}
	}
	return plugins, versions
}

// asdfVersions are the versions that are set for a plugin, in order of preference.
func (s *search) asdfVersions(c command, plugin string, legacy legacyFiles) ([]string, error) {
	variable := "ASDF_" + strings.ToUpper(strings.ReplaceAll(plugin, "-", "_")) + "_VERSION"
	if value := strings.Fields(s.facts.Env[variable]); len(value) > 0 {
		return value, nil
	}
	name := s.facts.Env["ASDF_DEFAULT_TOOL_VERSIONS_FILENAME"]
	if name == "" {
		name = ".tool-versions"
	}
	var wanted []string
	var err error
	upwards(s.facts.Dir, func(folder string) bool {
		if legacy == legacyRead {
			if file := s.idiomaticFile(folder, plugin); file != "" {
				// The plugin reads it with a program of its own.
				err = shimError(c, "asdf", "asdf which", "the version may come from %q", file)
				return true
			}
		}
		wanted = versionsOf(s.toolVersions(join(folder, name)), plugin)
		return len(wanted) > 0
	})
	if err == nil && len(wanted) == 0 && s.facts.Home != "" {
		wanted = versionsOf(s.toolVersions(join(s.facts.Home, name)), plugin)
	}
	return wanted, err
}

// legacyFiles says whether asdf looks at other managers' version files.
type legacyFiles uint8

const (
	legacyIgnored legacyFiles = iota
	legacyRead
)

func (s *search) asdfLegacy() legacyFiles {
	path := s.facts.Env["ASDF_CONFIG_FILE"]
	if path == "" {
		path = join(s.facts.Home, ".asdfrc")
	}
	data, err := s.tree.read(path, configLimit)
	if err != nil {
		return legacyIgnored
	}
	for line := range bytes.Lines(data) {
		key, value, _ := strings.Cut(string(line), "=")
		if strings.TrimSpace(key) == "legacy_version_file" && strings.TrimSpace(value) == "yes" {
			return legacyRead
		}
	}
	return legacyIgnored
}

// idiomaticFile is the version file of another manager in a folder, for the tools that
// have one; "" when there is none.
func (s *search) idiomaticFile(folder, tool string) string {
	var names []string
	switch tool {
	case "node", "nodejs":
		names = []string{".nvmrc", ".node-version"}
	case "python":
		names = []string{".python-version"}
	case "ruby":
		names = []string{".ruby-version"}
	}
	for _, name := range names {
		if path := join(folder, name); s.isFile(path) {
			return path
		}
	}
	return ""
}

// toolVersions reads a .tool-versions file: a tool and its versions on each line.
func (s *search) toolVersions(path string) []tool {
	data, err := s.tree.read(path, configLimit)
	if err != nil {
		if !missing(err) {
			s.note("%q cannot be read: %v", path, err)
		}
		return nil
	}
	var tools []tool
	for line := range bytes.Lines(data) {
		text, _, _ := strings.Cut(string(line), "#")
		if fields := strings.Fields(text); len(fields) >= 2 {
			tools = append(tools, tool{name: fields[0], versions: fields[1:]})
		}
	}
	return tools
}

// versionsOf are the versions on the first line of a tool.
func versionsOf(tools []tool, name string) []string {
	for _, t := range tools {
		if t.name == name {
			return t.versions
		}
	}
	return nil
}
