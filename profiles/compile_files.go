package profiles

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/program"
)

func itoa(n int) string { return strconv.Itoa(n) }

// root is one folder that ${roots} stands for.
type root struct {
	path  string
	why   string // where it comes from
	broad string // the reason of a root that is granted as a whole
}

// setValues works out what the variables stand for.
func (c *compiler) setValues() {
	f, v := c.facts, &c.values
	one := func(name variable, value, why, hint string) {
		if value != "" {
			v.of[name] = []string{value}
			return
		}
		v.unset[name] = problem{message: why, hint: hint}
	}
	one(varHome, f.Home, "the home folder is not known", "set HOME in the host's configuration")
	one(varCwd, f.Dir, "the working folder is not known", "")
	one(varRepo, f.Repo, "the working folder lies in no repository", "start the server inside one, or name the folder")
	one(varRuntime, f.Runtime, "XDG_RUNTIME_DIR is not set", "set it in the host's configuration, or name the folder")
	one(varPrivate, c.out.Plan.Home.Path, "with filesystem.home: real there is no private home", `write "home: private"`)
	one(varTmp, c.out.Plan.Tmp.Path, "there is no temporary folder", "")
	c.setArgs()
	c.setRoots()
}

// setArgs collects the paths among the server's arguments, for ${args}.
func (c *compiler) setArgs() {
	for _, a := range c.facts.ArgFolders {
		if a.State != ArgMissing {
			c.values.of[varArgs] = append(c.values.of[varArgs], a.Path)
		}
	}
	c.values.unset[varArgs] = problem{message: "no argument of the server names a path that is there", hint: "give the server its paths as arguments"}
}

// setRoots collects the folders of ${roots}: those of `roots:` and --root, and with
// `roots: args` the server's own folder arguments.
func (c *compiler) setRoots() {
	for _, e := range c.profile.Roots.List {
		paths, bad := c.paths(e.Path)
		if bad != nil {
			c.rootsFailed = true
			c.fail(e.Position, bad)
			continue
		}
		for _, p := range paths {
			c.addRoot(root{path: p, why: "root from " + e.Where(), broad: e.Reason})
		}
	}
	message := "there are no roots"
	hint := `give folders with "--root DIR", or write "roots: args" to take the server's own folder arguments`
	if c.profile.Roots.FromArgs.Value {
		message = "none of the server's arguments is a folder that exists"
		hint = `make the folder, write its absolute path, or use "--root DIR"`
		for _, a := range c.facts.ArgFolders {
			c.rootFromArg(&a)
		}
	}
	for _, r := range c.roots {
		c.values.of[varRoots] = append(c.values.of[varRoots], r.path)
	}
	c.values.unset[varRoots] = problem{message: message, hint: hint}
}

func (c *compiler) addRoot(r root) {
	if !slices.ContainsFunc(c.roots, func(have root) bool { return have.path == r.path }) {
		c.roots = append(c.roots, r)
	}
}

// rootFromArg judges one argument. A bare word that names no folder is not a path, but
// something that is spelled as a path has to be a folder: the server expects to reach it.
func (c *compiler) rootFromArg(a *ArgFolder) {
	if a.State == ArgIsFolder {
		c.addRoot(root{path: a.Path, why: "root from the server's argument"})
		return
	}
	if !spelledAsPath(a.Arg) {
		return
	}
	bad := wrong("make the folder, or correct the argument", "roots: args: the server's argument %q does not exist", a.Arg)
	if a.State == ArgIsFile {
		bad = wrong("give the server the folder that holds it", "roots: args: the server's argument %q is a file, not a folder", a.Arg)
	}
	c.rootsFailed = true
	c.fail(c.profile.Roots.FromArgs.Position, bad)
}

// spelledAsPath tells whether a word can only be meant as a path.
func spelledAsPath(arg string) bool {
	return arg == "." || arg == ".." || arg == "~" || strings.HasPrefix(arg, "/") ||
		strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") || strings.HasPrefix(arg, "~/")
}

// pathArguments lists the arguments that may name paths. Flags, URLs and placeholders do
// not.
func pathArguments(args []string, home, dir string) []ArgFolder {
	var out []ArgFolder
	for _, arg := range args {
		if arg == "" || arg[0] == '-' || strings.Contains(arg, "://") || strings.IndexByte(arg, 0) >= 0 {
			continue
		}
		if _, unfilled := placeholder(arg); unfilled {
			continue
		}
		path := arg
		switch {
		case arg == "~" || strings.HasPrefix(arg, "~/"): // servers expand it; hosts and kernel do not
			path = home + arg[1:]
		case arg[0] != '/':
			path = dir + "/" + arg
		}
		out = append(out, ArgFolder{Arg: arg, Path: filepath.Clean(path)})
	}
	return out
}

// paths expands a path and remembers which variable it used.
func (c *compiler) paths(s string) ([]string, *problem) {
	paths, used, bad := c.values.paths(s)
	if used < variableCount {
		c.asked[used] = true
	}
	if c.rootsFailed && (used == varRoots || used == varArgs && bad != nil) {
		return nil, nil
	}
	return paths, bad
}

// unusedRoots refuses roots that nothing uses: the person believes that they grant
// something.
func (c *compiler) unusedRoots() {
	if c.asked[varRoots] || c.rootsFailed {
		return
	}
	hint := fmt.Sprintf(`write "write: [\"${roots}\"]" or "read: [\"${roots}\"]" under filesystem in profile %q, or use --write or --read`, c.profile.Name.Value)
	report := func(at Position) {
		c.fail(at, wrong(hint, "roots grant nothing here: no entry of the profile uses ${roots}"))
	}
	if at := c.profile.Roots.FromArgs.Position; at != (Position{}) {
		report(at)
	}
	for _, e := range c.profile.Roots.List {
		report(e.Position)
	}
}

// grants fills the plan's grants: what every jail has, what the program needs, what the
// profile says.
func (c *compiler) grants() {
	c.alwaysGrants()
	origin := sandbox.Origin{Source: sandbox.OriginRuntime}
	c.needs(c.facts.Program.Execute, c.facts.Program.Read, origin, "the server's program")
	if at, connects := c.egressAt(); connects {
		c.resolverGrants(originAt(at))
	}
	fs := &c.profile.Filesystem
	for _, e := range fs.Execute {
		c.execute(e)
	}
	c.pathGrants(fs.Read, sandbox.Read, sandbox.Required, "filesystem.read")
	c.pathGrants(fs.Write, sandbox.Write, sandbox.Required, "filesystem.write")
	c.pathGrants(fs.Optional, sandbox.Read, sandbox.Optional, "filesystem.optional")
}

func originAt(p Position) sandbox.Origin {
	return sandbox.Origin{Source: p.File, Line: p.Line, Column: p.Column}
}

// add appends a grant unless the plan has the same one.
func (c *compiler) add(g sandbox.Grant) {
	have := c.out.Plan.Grants
	for i := range have {
		h := &have[i]
		if h.Path != g.Path || h.Access != g.Access {
			continue
		}
		if g.Presence == sandbox.Required {
			h.Presence = sandbox.Required
		}
		if h.Want == sandbox.KindAny {
			h.Want = g.Want
		}
		if h.Broad == "" && g.Broad != "" {
			h.Broad, h.Origin = g.Broad, g.Origin
		}
		return
	}
	c.out.Plan.Grants = append(have, g)
}

// needs grants what a program executes and reads.
func (c *compiler) needs(execute []string, read []program.Need, origin sandbox.Origin, what string) {
	for _, path := range execute {
		c.add(sandbox.Grant{Path: path, Access: sandbox.Execute, Want: sandbox.KindFile, Origin: origin, Why: what})
	}
	for _, n := range read {
		g := sandbox.Grant{Path: n.Path, Access: sandbox.Read, Origin: origin, Why: n.Why}
		if n.Optional {
			g.Presence = sandbox.Optional
		}
		c.add(g)
	}
}

// execute grants one program of the profile.
func (c *compiler) execute(e Sourced[string]) {
	paths, bad := c.programs(e.Value)
	if bad != nil {
		c.fail(e.Position, bad)
		return
	}
	for _, name := range paths {
		closure, known := c.facts.Execute[name]
		switch {
		case !known:
			c.fail(e.Position, wrong("write its absolute path", "filesystem.execute: program %q was not found on the jail's PATH", name))
		case closure.Err != nil:
			c.fail(e.Position, wrong(programHint(closure.Err, e.Position), "filesystem.execute: %v", closure.Err))
		default:
			c.needs(closure.Execute, closure.Read, originAt(e.Position), "program "+filepath.Base(name))
		}
	}
}

// programs expands an entry of filesystem.execute.
func (c *compiler) programs(entry string) ([]string, *problem) {
	if !strings.ContainsAny(entry, "/$~") {
		return []string{entry}, nil
	}
	return c.paths(entry)
}

// programHint is what to do about a program that is granted and cannot be started. Nobody
// can correct the words of a built-in profile, but its comments say whose a program is.
func programHint(err error, at Position) string {
	var notFound *program.NotFoundError
	var cannotRun *program.NotExecutableError
	builtin, isBuiltin := strings.CutPrefix(at.File, builtinFile)
	switch {
	case errors.As(err, &notFound) && isBuiltin:
		return fmt.Sprintf(`install it; "stockade profile show %s" says which package it is in`, builtin)
	case errors.As(err, &notFound):
		return "install it, or write its absolute path"
	case errors.As(err, &cannotRun) && cannotRun.Hint != "":
		return cannotRun.Hint
	}
	return "write the absolute path of a program that this machine can start"
}

// pathGrants grants the entries of one list.
func (c *compiler) pathGrants(entries []PathEntry, access sandbox.Access, presence sandbox.Presence, key string) {
	for _, e := range entries {
		paths, bad := c.paths(e.Path)
		if bad != nil {
			c.fail(e.Position, &problem{message: key + ": " + bad.message, hint: bad.hint})
			continue
		}
		ofRoots := strings.HasPrefix(e.Path, "${roots}")
		for i, path := range paths {
			g := sandbox.Grant{Path: path, Access: access, Presence: presence, Broad: e.Reason, Origin: originAt(e.Position), Why: key}
			if ofRoots {
				g.Why = c.roots[i].why
				if g.Broad == "" {
					g.Broad = c.roots[i].broad
				}
				if path == c.roots[i].path {
					g.Want = sandbox.KindFolder
				}
			}
			if bad := c.private(path); bad != nil {
				c.fail(e.Position, &problem{message: key + ": " + bad.message, hint: bad.hint})
				continue
			}
			c.add(g)
		}
	}
}

// private refuses grants inside the private folders, which are granted already.
func (c *compiler) private(path string) *problem {
	for _, folder := range [...]string{c.out.Plan.Home.Path, c.out.Plan.Tmp.Path} {
		if folder != "" && (path == folder || strings.HasPrefix(path, folder+"/")) {
			return wrong("remove the entry", "the private home and temporary folder are always granted")
		}
	}
	return nil
}
