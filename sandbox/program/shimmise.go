package program

import (
	"slices"
	"strings"
)

// mise follows a shim of mise: a link to mise under the program's name, or a copy in its
// folder of shims. Its configuration is read as far as it names tools and versions.
func (s *search) mise(c command, name string) (command, error) {
	if reason := s.miseUnknowns(); reason != "" {
		return command{}, shimError(c, "mise", "mise which", "%s", reason)
	}
	tools, err := s.miseTools(c, miseOwner(name))
	if err != nil {
		return command{}, err
	}
	owner := miseOwner(name)
	// A tool of the program's own name comes before one that merely brings it along.
	rank := func(t tool) int {
		switch t.name {
		case name:
			return 0
		case owner:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(tools, func(a, b tool) int { return rank(a) - rank(b) })
	installs := s.miseInstalls(c)
	for _, t := range tools {
		named := rank(t) < 2
		for _, version := range t.versions {
			if version == "system" {
				if named {
					return s.leaveForSystem(c, "mise")
				}
				continue
			}
			folder, ok := s.miseVersion(installs, t.name, version)
			if !ok {
				if named {
					return command{}, shimError(c, "mise", "mise which", "version %q of %s is not found among the installed ones", version, t.name)
				}
				continue
			}
			for _, real := range [...]string{folder + "/bin/" + name, folder + "/" + name} {
				if s.runnable(real) {
					return s.leave(c, "mise", real), nil
				}
			}
		}
	}
	var idiomatic string
	upwards(s.facts.Dir, func(folder string) bool {
		idiomatic = s.idiomaticFile(folder, owner)
		return idiomatic != ""
	})
	if idiomatic != "" {
		return command{}, shimError(c, "mise", "mise which", "the version may come from %q", idiomatic)
	}
	if len(tools) > 0 && owner == "" {
		// Tools of some kinds keep programs in folders of their own naming.
		return command{}, shimError(c, "mise", "mise which", "none of the tools that are set has it where most keep programs")
	}
	return s.leaveForSystem(c, "mise")
}

// miseOwner is the tool that brings a program along; "" when only the tool of that very
// name could.
func miseOwner(name string) string {
	switch {
	case name == "node", name == "npm", name == "npx", name == "corepack":
		return "node"
	case versioned(name, "python"), versioned(name, "pip"), name == "pydoc", name == "idle":
		return "python"
	}
	return ""
}

// miseUnknowns names a setting that changes which files count; "" when there is none.
func (s *search) miseUnknowns() string {
	for _, variable := range [...]string{
		"MISE_NO_CONFIG", "MISE_IGNORED_CONFIG_PATHS", "MISE_CEILING_PATHS",
		"MISE_DEFAULT_CONFIG_FILENAME", "MISE_DEFAULT_TOOL_VERSIONS_FILENAME",
		"MISE_OVERRIDE_CONFIG_FILENAMES", "MISE_OVERRIDE_TOOL_VERSIONS_FILENAMES",
	} {
		if s.facts.Env[variable] != "" {
			return variable + " changes which files it reads"
		}
	}
	return ""
}

func (s *search) miseInstalls(c command) string {
	if folder := s.facts.Env["MISE_INSTALLS_DIR"]; strings.HasPrefix(folder, "/") {
		return folder
	}
	if folder := s.facts.Env["MISE_DATA_DIR"]; strings.HasPrefix(folder, "/") {
		return folder + "/installs"
	}
	if shims := parentOf(c.named); baseOf(shims) == "shims" {
		return parentOf(shims) + "/installs"
	}
	if folder := s.facts.Env["XDG_DATA_HOME"]; strings.HasPrefix(folder, "/") {
		return folder + "/mise/installs"
	}
	return s.facts.Home + "/.local/share/mise/installs"
}

// miseVersion finds the folder of a tool's version. mise itself keeps links such as 20
// and latest beside the versions.
func (s *search) miseVersion(installs, name, version string) (string, bool) {
	if strings.Contains(version, ":") || !isPlainName(version) {
		return "", false // prefix:, ref:, path:, sub-: not told by names
	}
	versions := join(installs, kebab(name))
	if folder := join(versions, version); s.isFolder(folder) {
		return folder, true
	}
	installed := s.installed(versions)
	if version == "latest" {
		for _, candidate := range installed {
			if isRelease(candidate) {
				return join(versions, candidate), true
			}
		}
		return "", false
	}
	match, ok := matchVersion(installed, strings.TrimPrefix(version, "v"))
	return join(versions, match), ok
}

// kebab is the folder name of a tool: npm:@scope/name becomes npm-scope-name.
func kebab(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool {
		return r < 0x80 && !isLetter(r) && (r < '0' || r > '9') && r != '.' && r != '_'
	})
	return strings.Join(words, "-")
}

// miseFiles are the configuration files of one folder, the strongest first.
var miseFiles = [...]string{
	".mise.local.toml", "mise.local.toml", ".mise/config.local.toml", "mise/config.local.toml",
	".config/mise.local.toml", ".config/mise/mise.local.toml", ".config/mise/config.local.toml",
	".mise.toml", "mise.toml", "mise/config.toml", ".mise/config.toml",
	".config/mise.toml", ".config/mise/mise.toml", ".config/mise/config.toml",
}

// miseTools are the tools that are set, the strongest setting of each: variables, then
// the files of the working folder and those above it, then the person's and the system's.
func (s *search) miseTools(c command, owner string) ([]tool, error) {
	var tools []tool
	known := map[string]bool{}
	add := func(t tool) {
		t.name = miseName(t.name)
		if len(t.versions) > 0 && !known[t.name] {
			known[t.name] = true
			tools = append(tools, t)
		}
	}
	for _, name := range [...]string{baseOf(c.named), owner} {
		if name == "" {
			continue
		}
		variable := "MISE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_VERSION"
		add(tool{name: name, versions: strings.Fields(s.facts.Env[variable])})
	}
	var failed error
	read := func(path string) {
		found, err := s.miseFile(path)
		if err != nil && failed == nil {
			failed = shimError(c, "mise", "mise which", "%v", err)
		}
		for _, t := range found {
			add(t)
		}
	}
	upwards(s.facts.Dir, func(folder string) bool {
		for _, environment := range s.miseEnvironments() {
			for _, name := range [...]string{".mise." + environment, "mise." + environment} {
				read(join(folder, name+".local.toml"))
				read(join(folder, name+".toml"))
			}
		}
		for _, name := range miseFiles {
			read(join(folder, name))
		}
		s.miseDropIns(join(folder, ".config/mise/conf.d"), read)
		for _, t := range s.toolVersions(join(folder, ".tool-versions")) {
			add(t)
		}
		return failed != nil
	})
	personal := s.facts.Env["MISE_CONFIG_DIR"]
	if personal == "" {
		personal = first(s.facts.Env["XDG_CONFIG_HOME"], s.facts.Home+"/.config") + "/mise"
	}
	if file := s.facts.Env["MISE_GLOBAL_CONFIG_FILE"]; file != "" {
		read(s.absolute(file))
	} else {
		read(personal + "/config.local.toml")
		read(personal + "/config.toml")
		read(personal + "/mise.toml")
	}
	s.miseDropIns(personal+"/conf.d", read)
	read(first(s.facts.Env["MISE_SYSTEM_CONFIG_DIR"], "/etc/mise") + "/config.toml")
	return tools, failed
}

// miseEnvironments are the names in MISE_ENV, the strongest first.
func (s *search) miseEnvironments() []string {
	var names []string
	for name := range strings.SplitSeq(s.facts.Env["MISE_ENV"], ",") {
		if isPlainName(name) {
			names = append([]string{name}, names...)
		}
	}
	return names
}

func (s *search) miseDropIns(folder string, read func(path string)) {
	var names []string
	_ = s.list(folder, func(name string, _ uint8) bool {
		if strings.HasSuffix(name, ".toml") && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
		return len(names) < 64
	})
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		read(join(folder, name))
	}
}

// miseName is the plain name of a tool that has several.
func miseName(name string) string {
	name = strings.TrimPrefix(name, "core:")
	switch name {
	case "nodejs":
		return "node"
	case "golang":
		return "go"
	}
	return name
}

func (s *search) miseFile(path string) ([]tool, error) {
	data, err := s.tree.read(path, configLimit)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, reading(path, err)
	}
	tools, err := parseTools(string(data))
	if err != nil {
		return nil, reading(path, err)
	}
	return tools, nil
}
