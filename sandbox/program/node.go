package program

import (
	"strings"
)

// nodeFiles adds what node opens before it runs any script.
func (s *search) nodeFiles(e executable) {
	s.clock(zoneLocal)
	s.openssl(parentOf(parentOf(e.entry.path)))
}

// nodeLine is a node command line taken apart.
type nodeLine struct {
	entry    string   // as written; "" when node runs none
	args     []string // what the script sees
	modules  []string // -r, --import, --loader: loaded before the script
	files    []string // --env-file and the like
	hasEntry bool
}

// parseNodeLine knows which of node's options take the next argument as their value
// (node --help of 20, 22 and 24). Options of V8 take theirs behind an equals sign only.
func parseNodeLine(args []string) nodeLine {
	line := nodeLine{}
	evaluates := false
	i := 0
	for ; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			i++
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		name, value, attached := strings.Cut(arg, "=")
		// Node reads underscores in long options as dashes.
		if strings.HasPrefix(name, "--") {
			name = "--" + strings.ReplaceAll(name[2:], "_", "-")
		}
		role := nodeOption(name)
		if role == optionFlag {
			continue
		}
		if role == optionEval && (name == "-p" || name == "--print") && !attached {
			// The code after --print is the next argument, if there is one.
			evaluates = true
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
			}
			continue
		}
		if !attached {
			// Without a value node ends with an error of its own.
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		switch role {
		case optionEval:
			evaluates = true
		case optionModule:
			line.modules = append(line.modules, value)
		case optionFile:
			line.files = append(line.files, value)
		case optionValue, optionFlag:
		}
	}
	rest := args[min(i, len(args)):]
	if evaluates || len(rest) == 0 || rest[0] == "-" {
		// Without a script node reads standard input or runs the code it was given.
		line.args = rest
		return line
	}
	line.entry, line.args, line.hasEntry = rest[0], rest[1:], true
	return line
}

type optionRole uint8

const (
	optionFlag   optionRole = iota // no value, or one behind an equals sign only
	optionValue                    // takes the next argument
	optionEval                     // its value is the program
	optionModule                   // its value is a module
	optionFile                     // its value is a file to read
)

func nodeOption(name string) optionRole {
	switch name {
	case "-e", "--eval", "-p", "--print", "-pe", "--run", "--experimental-sea-config", "--build-sea":
		return optionEval
	case "-r", "--require", "--import", "--loader", "--experimental-loader":
		return optionModule
	case "--env-file", "--env-file-if-exists", "--openssl-config", "--experimental-policy",
		"--snapshot-blob", "--build-snapshot-config", "--experimental-config-file", "--icu-data-dir":
		return optionFile
	case "-C", "--conditions", "--title", "--input-type", "--experimental-default-type",
		"--allow-fs-read", "--allow-fs-write", "--cpu-prof-dir", "--cpu-prof-interval",
		"--cpu-prof-name", "--debug-port", "--diagnostic-dir", "--disable-proto",
		"--disable-warning", "--dns-result-order", "--heap-prof-dir", "--heap-prof-interval",
		"--heap-prof-name", "--heapsnapshot-near-heap-limit", "--heapsnapshot-signal",
		"--inspect-port", "--inspect-publish-uid", "--localstorage-file",
		"--max-http-header-size", "--max-old-space-size-percentage",
		"--network-family-autoselection-attempt-timeout", "--policy-integrity",
		"--redirect-warnings", "--report-dir", "--report-directory", "--report-filename",
		"--report-signal", "--secure-heap", "--secure-heap-min", "--test-concurrency",
		"--test-coverage-branches", "--test-coverage-exclude", "--test-coverage-functions",
		"--test-coverage-include", "--test-coverage-lines", "--test-global-setup",
		"--test-isolation", "--test-name-pattern", "--test-random-seed", "--test-reporter",
		"--test-reporter-destination", "--test-rerun-failures", "--test-shard",
		"--test-skip-pattern", "--test-timeout", "--tls-cipher-list", "--tls-keylog",
		"--trace-event-categories", "--trace-event-file-pattern", "--trace-require-module",
		"--unhandled-rejections", "--use-largepages", "--v8-pool-size",
		"--watch-kill-signal", "--watch-path":
		return optionValue
	}
	return optionFlag
}

// nodeCommandLine finds the script, its package, and the files that options name.
func (s *search) nodeCommandLine() {
	line := parseNodeLine(s.program.Args)
	s.program.Args = line.args
	if s.origin == "" {
		for _, file := range line.files {
			s.needFile(s.absolute(file), "file named by an option of node")
		}
		for _, module := range line.modules {
			s.preloaded(module)
		}
		s.nodeScript(line)
		return
	}
	// The script's own package first: what the options name has to lie in it.
	s.program.Package = s.nodePackage(s.origin)
	s.nodeScript(line)
	for _, file := range line.files {
		if found, err := s.real(s.absolute(file)); err == nil {
			s.leaveOut(found.path)
		}
	}
	for _, module := range line.modules {
		if found, ok := s.nodeModule(module); ok {
			s.leaveOut(found.path())
		}
	}
}

// nodeScript finds the script of a command line and adds its package.
func (s *search) nodeScript(line nodeLine) {
	if !line.hasEntry {
		return
	}
	path := s.absolute(strings.TrimPrefix(line.entry, "file://"))
	entry, ok := s.nodeEntry(path)
	if !ok {
		s.note("the script %q was not found", line.entry)
		return
	}
	s.program.Entry = entry
	switch folder, err := s.real(path); {
	case err == nil && folder.folder() && !inside(entry, folder.path):
		// A package.json, or a link in the folder, chose it.
		s.note("the main file of %q is %q, which lies outside of it and is not readable; %s", folder.path, entry, readHint(entry))
	case entry == s.origin:
	case s.granting(entry):
		// An interpreter out of PATH is not the server: the package stays that of origin.
		if name := s.nodePackage(entry); s.origin == "" {
			s.program.Package = name
		}
	default:
		s.leaveOut(entry)
	}
}

// nodeEntry resolves the script as node does: the very file, the name with a suffix, or
// the main file of a folder.
func (s *search) nodeEntry(path string) (string, bool) {
	found, err := s.real(path)
	switch {
	case err == nil && found.regular():
		return found.path, true
	case err == nil && found.folder():
		folder := found.path
		if m, ok := s.manifest(folder); ok && m.main != "" {
			if main, ok := s.nodeFile(join(folder, m.main)); ok {
				return main, true
			}
			if main, ok := s.nodeFile(join(folder, m.main) + "/index"); ok {
				return main, true
			}
		}
		return s.nodeFile(folder + "/index")
	}
	return s.nodeFile(path)
}

func (s *search) nodeFile(path string) (string, bool) {
	for _, suffix := range [...]string{"", ".js", ".json", ".node", ".cjs", ".mjs"} {
		if found, err := s.real(path + suffix); err == nil && found.regular() {
			return found.path, true
		}
	}
	return "", false
}

// preloaded adds the package of a module that node loads before the script, or the file
// alone when it belongs to none.
func (s *search) preloaded(module string) {
	found, ok := s.nodeModule(module)
	if !ok {
		return
	}
	if found.tree != "" && !inside(found.entry, found.tree) {
		s.note("the module %q is a link to %q, which lies outside of %q and is not readable; %s",
			module, found.path(), found.tree, readHint(found.path()))
		return
	}
	s.nodePackage(found.entry)
}

// nodeModule is a module that an option names.
type nodeModule struct {
	entry string // real path of the file, or of the package.json
	// tree is what a module that was found by its name has to lie in: the node_modules
	// folder or the workspace around it. It is "" for a module named by a path.
	tree string
}

// path is the file, or the package's folder.
func (m nodeModule) path() string {
	if m.tree != "" {
		return parentOf(m.entry)
	}
	return m.entry
}

// nodeModule finds a module. Names without a path are looked up in the node_modules
// folders above the working folder, as node does. ok is false for those of node's own.
func (s *search) nodeModule(module string) (found nodeModule, ok bool) {
	if strings.HasPrefix(module, ".") || strings.HasPrefix(module, "/") || strings.HasPrefix(module, "file:///") {
		entry, ok := s.nodeEntry(s.absolute(strings.TrimPrefix(module, "file://")))
		if !ok {
			s.note("the module %q was not found", module)
		}
		return nodeModule{entry: entry}, ok
	}
	if strings.HasPrefix(module, "node:") || strings.HasPrefix(module, "data:") {
		return nodeModule{}, false
	}
	name := packageName(module)
	if !isPackageName(name) {
		return nodeModule{}, false
	}
	for folder := s.facts.Dir; ; folder = parentOf(folder) {
		target, err := s.real(join(folder, "node_modules/"+name))
		if err == nil && target.folder() && s.isFile(target.path+"/package.json") {
			above := s.folderOf(join(folder, "x"))
			tree := s.workspaceRoot(above)
			if tree == "" {
				tree = join(above, "node_modules")
			}
			return nodeModule{entry: target.path + "/package.json", tree: tree}, true
		}
		if folder == "/" {
			return nodeModule{}, false // one of node's own, such as -r fs
		}
	}
}

// packageName is the package of a module path: the first name, or two with a scope.
func packageName(module string) string {
	first, rest, more := strings.Cut(module, "/")
	if !more || !strings.HasPrefix(first, "@") {
		return first
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}
