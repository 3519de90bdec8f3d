package profiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox"
)

// standardPath ends the jail's PATH. Names of filesystem.execute are looked up in it alone:
// the folders before it hold what came with a server, such as its virtual environment, and
// a script there under the name of a known program would get its own interpreter granted.
// In the jail such a script cannot run, and execvp(3) goes on to the next folder (EACCES).
var standardPath = [...]string{"/usr/local/bin", "/usr/bin", "/bin"}

// Wanted is what a caller looks up on the machine before it can compile a profile.
type Wanted struct {
	// Programs are the entries of filesystem.execute, variables filled in: names to look for
	// on Path, or absolute paths. Facts.Execute answers under the same words.
	Programs []string
	// Path is where names are looked up: folders of the system alone.
	Path string
	// Arguments are the server's arguments that may name paths, when the profile asks for
	// them. Facts.ArgFolders is the same list with each State.
	Arguments []ArgFolder
	// Sockets are the paths of network.unix, variables filled in, and of the sockets that
	// they must not turn out to be. Facts.Sockets says what each is.
	Sockets []string
	// SyscallFile is the file of syscalls.profile; "" for the built-in filter.
	SyscallFile string
}

// Wants says what has to be looked up for a complete profile. It needs Home, Dir, Repo,
// Runtime and Program of the facts. Entries whose variables have no value are left out;
// Compile reports them.
func (p *Profile) Wants(f Facts) Wanted {
	c := compiler{profile: p, facts: &f}
	c.folders(&c.out.Plan)
	c.setValues()
	var w Wanted
	for _, e := range p.Filesystem.Execute {
		names, bad := c.programs(e.Value)
		if bad == nil {
			w.Programs = append(w.Programs, names...)
		}
	}
	w.Path = strings.Join(standardPath[:], ":")
	if p.Roots.FromArgs.Value || p.uses("${args}") {
		w.Arguments = pathArguments(f.Program.Args, f.Home, f.Dir)
	}
	if len(p.Network.Unix) > 0 {
		w.Sockets = c.socketPaths()
	}
	w.SyscallFile = p.SyscallFile()
	return w
}

// SyscallFile is the path of the file in syscalls.profile; "" for the built-in filter.
func (p *Profile) SyscallFile() string {
	s := &p.Syscalls.Profile
	switch {
	case !s.written() || s.Value == SyscallsDefault:
		return ""
	case filepath.IsAbs(s.Value):
		return s.Value
	}
	return filepath.Join(filepath.Dir(s.File), s.Value)
}

// UsesRoots tells whether a grant or value of a complete profile is one of ${roots}.
func (p *Profile) UsesRoots() bool { return p.uses("${roots}") }

// uses tells whether some path or value begins with, or holds, a variable.
func (p *Profile) uses(variable string) bool {
	fs := &p.Filesystem
	for _, list := range [...][]PathEntry{fs.Read, fs.Write, fs.Optional, p.Network.Unix} {
		for _, e := range list {
			if strings.HasPrefix(e.Path, variable) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Environment.Set, func(v EnvSet) bool { return strings.Contains(v.Value, variable) })
}

// searchPath is the jail's PATH: where the runtime finds itself, the folders of programs
// that the profile names by path, and the standard folders. It holds no other folder of the
// host's PATH, so a name means the same program for every host.
func (c *compiler) searchPath() string {
	var folders []string
	add := func(folder string) {
		if folder != "" && strings.IndexByte(folder, ':') < 0 && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, folder := range c.facts.Program.Path {
		add(folder)
	}
	for _, e := range c.profile.Filesystem.Execute {
		names, bad := c.programs(e.Value)
		if bad != nil {
			continue
		}
		for _, name := range names {
			if filepath.IsAbs(name) {
				add(filepath.Dir(name))
			}
		}
	}
	for _, folder := range standardPath {
		add(folder)
	}
	return strings.Join(folders, ":")
}

// environment builds the server's environment from nothing.
func (c *compiler) environment() {
	env := map[string]string{"PATH": c.searchPath(), "TMPDIR": c.out.Plan.Tmp.Path}
	if home := c.out.Plan.Home.Path; home != "" {
		env["HOME"] = home
	} else {
		env["HOME"] = c.facts.Home
	}
	for name, value := range c.facts.Env {
		if alwaysPassed(name) {
			env[name] = value
		}
	}
	c.passed(env)
	c.secrets(env)
	c.set(env)
	if c.out.Plan.Network.Egress == sandbox.EgressRules {
		env[resolverOptions] = withUseVC(env[resolverOptions])
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	c.out.Plan.Env = list
}

// resolverOptions is the variable with options for C libraries' resolvers (resolv.conf(5)).
const (
	resolverOptions = "RES_OPTIONS"
	useVC           = "use-vc"
)

// withUseVC asks resolvers to speak TCP. The supervisor answers in place of the name
// server, and a resolver that checks the sender of a datagram (c-ares does) would drop what
// comes from another address; a TCP connection has no such check.
func withUseVC(options string) string {
	if slices.Contains(strings.Fields(options), useVC) {
		return options
	}
	return strings.TrimSpace(options + " " + useVC)
}

// alwaysPassed are the variables of language and text form: without them a server falls
// back to ASCII.
func alwaysPassed(name string) bool {
	return name == "LANG" || name == "LANGUAGE" || strings.HasPrefix(name, "LC_")
}

func (c *compiler) passed(env map[string]string) {
	var absent []string
	for _, p := range c.profile.Environment.Pass {
		stem, pattern := strings.CutSuffix(p.Value, "*")
		if !pattern {
			if value, ok := c.facts.Env[stem]; ok {
				env[stem] = value
			} else {
				absent = append(absent, stem)
				c.absentFlag(p)
			}
			continue
		}
		var matched []string
		for name, value := range c.facts.Env {
			if passes(p.Value, name) {
				env[name] = value
				matched = append(matched, name)
			}
		}
		slices.Sort(matched)
		for _, name := range matched {
			if secretLike(name) {
				c.warn(p.Position, fmt.Sprintf("environment.pass: the pattern %q passes %s; list it under secrets if the server needs it", p.Value, name))
			}
		}
		if len(matched) == 0 {
			absent = append(absent, p.Value)
			c.absentFlag(p)
		}
	}
	if len(absent) > 0 {
		slices.Sort(absent)
		c.out.Notes = append(c.out.Notes, "environment.pass: not set in the host's environment: "+strings.Join(slices.Compact(absent), " "))
	}
}

// absentFlag warns of a flag that does nothing. A profile's list is for many machines; a
// flag is for this run.
func (c *compiler) absentFlag(p Sourced[string]) {
	if p.Line == 0 {
		c.warn(p.Position, p.Value+" is not set in the host's environment")
	}
}

func (c *compiler) set(env map[string]string) {
	for _, v := range c.profile.Environment.Set {
		told := false // what the value lacks is reported already
		for name := range variableCount {
			if strings.Contains(v.Value, "${"+variableNames[name]+"}") {
				c.asked[name] = true
				told = told || c.rootsFailed && (name == varRoots || name == varArgs)
			}
		}
		value, bad := c.values.value(v.Value)
		if bad != nil && told {
			continue
		}
		if bad != nil {
			c.fail(v.Position, &problem{message: fmt.Sprintf("environment.set.%s: %s", v.Name, bad.message), hint: bad.hint})
			continue
		}
		env[v.Name] = value
		if why := decides(v.Name); why != "" {
			c.warn(v.Position, fmt.Sprintf("environment.set: %s is set: %s", v.Name, why))
		}
	}
}
