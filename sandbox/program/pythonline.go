package program

import "strings"

// pythonLine is a python command line taken apart.
type pythonLine struct {
	script string // as written; "" when there is none
	module string // of -m
	args   []string
}

// parsePythonLine knows which of CPython's options take a value (Python/getopt of 3.8 to
// 3.14): groups of one-letter options end at one that does.
func parsePythonLine(args []string) pythonLine {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "-":
			return pythonLine{args: args[i+1:]}
		case arg == "--":
			if i++; i == len(args) {
				return pythonLine{}
			}
			return pythonLine{script: args[i], args: args[i+1:]}
		case arg == "" || arg[0] != '-':
			return pythonLine{script: arg, args: args[i+1:]}
		case strings.HasPrefix(arg, "--"):
			if arg == "--check-hash-based-pycs" {
				i++
			}
			continue
		}
		for j := 1; j < len(arg); j++ {
			value := arg[j+1:]
			switch arg[j] {
			case 'c', 'm', 'W', 'X':
				if value == "" {
					if i++; i == len(args) {
						return pythonLine{}
					}
					value = args[i]
				}
				switch arg[j] {
				case 'c':
					return pythonLine{args: args[i+1:]}
				case 'm':
					return pythonLine{module: value, args: args[i+1:]}
				}
				j = len(arg)
			}
		}
	}
	return pythonLine{}
}

// pythonCommandLine finds the script or module, and the folder that belongs to it.
func (s *search) pythonCommandLine() {
	line := parsePythonLine(s.program.Args)
	s.program.Args = line.args
	switch {
	case line.module != "":
		s.program.Package = line.module
		s.workingModule(line.module)
	case line.script != "":
		s.pythonScript(line.script)
	}
}

// workingModule adds a module of `python -m` that lies in the working folder, which comes
// first in Python's search.
func (s *search) workingModule(module string) {
	first, _, _ := strings.Cut(module, ".")
	if !isPlainName(first) {
		return
	}
	named := join(s.facts.Dir, first)
	found, err := s.real(named)
	if err != nil || !found.folder() {
		named += ".py"
		if found, err = s.real(named); err != nil || !found.regular() {
			return
		}
	}
	dir := s.folderOf(named)
	switch {
	case s.origin != "":
		s.leaveOut(found.path) // a `#!` line named it
	case !inside(found.path, dir):
		s.note("the module %q is a link to %q, which lies outside of %q and is not readable; %s", module, found.path, dir, readHint(found.path))
	case found.folder():
		s.pythonPackage(found.path)
	default:
		s.pythonProject(found.path)
	}
}

// pythonPackage adds the project of a folder that is a Python package, or the folder.
func (s *search) pythonPackage(folder string) {
	if project, ok := s.projectOf(folder); ok {
		s.needFolder(project, "project folder", fatal)
		return
	}
	if (s.isFile(folder+"/__init__.py") || s.isFile(folder+"/__main__.py")) && !s.tooBroad(folder) {
		s.needFolder(folder, "package folder", fatal)
		return
	}
	s.note("%q is no Python package and not readable; %s", folder, readHint(folder))
}

func (s *search) pythonScript(script string) {
	found, err := s.real(s.absolute(script))
	if err != nil {
		s.note("the script %q was not found", script)
		return
	}
	s.program.Entry = found.path
	switch {
	case !s.granting(found.path):
		s.pythonFile(s.origin)
		s.leaveOut(found.path)
	case found.folder():
		// A folder runs by its __main__.py.
		if !s.isFile(found.path+"/__main__.py") || s.tooBroad(found.path) {
			s.note("%q is no folder that Python runs, and not readable; %s", found.path, readHint(found.path))
			return
		}
		s.needFolder(found.path, "folder of the script", fatal)
	default:
		s.pythonFile(found.path)
	}
}

func (s *search) pythonFile(script string) {
	if !s.userScript(script) {
		s.pythonProject(script)
	}
}

// userScript handles what `pip install --user` put into ~/.local/bin: its packages are
// found through HOME, which is another folder in the jail.
func (s *search) userScript(script string) bool {
	if s.home == "" || s.python.environment != "" || parentOf(script) != s.home+"/.local/bin" {
		return false
	}
	s.need(Need{Path: script, Why: "script " + baseOf(script)})
	s.site(&s.python, s.home+"/.local/lib/"+s.python.version+"/site-packages", s.home+"/.local", "packages installed with pip --user")
	s.note("%q was installed with pip --user; set PYTHONUSERBASE to %q in the profile's environment", script, s.home+"/.local")
	return true
}

// pythonProject adds the project that a script belongs to, or its folder.
func (s *search) pythonProject(script string) {
	if s.readable(script) {
		return
	}
	if env := s.python.environment; env != "" && parentOf(script) == env+"/bin" {
		// What pip wrote: it loads the environment's packages and nothing beside itself.
		s.need(Need{Path: script, Why: "script " + baseOf(script)})
		return
	}
	if project, ok := s.projectOf(parentOf(script)); ok {
		s.needFolder(project, "project folder", fatal)
		return
	}
	s.loneScript(script, "pyproject.toml, setup.cfg or setup.py")
}
