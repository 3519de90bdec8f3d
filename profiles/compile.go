package profiles

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/sandbox"
	"stockade/sandbox/program"
	"stockade/seccomp"
)

// Facts are what a plan depends on besides the profile: this machine and this command
// line, gathered by the caller. All paths are absolute.
type Facts struct {
	Home string            // the person's home folder
	Dir  string            // working folder
	Repo string            // top folder of the repository that holds Dir; "" outside of one
	Env  map[string]string // the host's environment; never printed

	UID, PID int // of the process that becomes the server; PID 0: not known, a look only

	Program program.Program
	Module  string // answer of [FindModule]
	// ArgFolders answers Wanted.Arguments.
	ArgFolders []ArgFolder
	// Execute answers Wanted.Programs: what each program needs, by its name there.
	Execute map[string]Closure
	// Sockets answers Wanted.Sockets, by the paths there.
	Sockets map[string]Socket
	// SyscallProfile is the content of Wanted.SyscallFile; nil when that is empty.
	SyscallProfile *specs.LinuxSeccomp
	// Files are what these answers were read from.
	Files []Source

	LandlockABI int // of the running kernel; 0: no Landlock

	// XDG base folders: data, state, configuration, cache.
	Data, State, Config, Cache string
	// Packages is where the store of package runners really lies; [StorePath] says it.
	Packages string
	Runtime  string // $XDG_RUNTIME_DIR; "" when unset
	// Stage is the private home of an install jail, a real path in the store; "" for servers,
	// whose home belongs to their profile and installation.
	Stage string
	// Run names this run's temporary folder; unique among runs, usable as a file name.
	Run string
	// StdioDevices are the terminals behind descriptors 0 to 2.
	StdioDevices []string
}

// check refuses facts from which no safe plan can be made: without them grants and guarded
// places would mean other folders.
func (f *Facts) check() *problem {
	for _, folder := range [...]struct{ path, name string }{
		{f.Home, "home folder"},
		{f.Dir, "working folder"},
		{f.Program.File, "server's program"},
		{f.Data, "data folder"},
		{f.State, "state folder"},
		{f.Config, "configuration folder"},
		{f.Cache, "cache folder"},
	} {
		if !filepath.IsAbs(folder.path) {
			return wrong("set HOME, and no XDG variable to a relative path, in the host's configuration", "the path of the %s is not known", folder.name)
		}
	}
	if f.Run == "" || strings.ContainsAny(f.Run, "/\x00") || f.Run[0] == '.' {
		return wrong("", "this run has no name")
	}
	return nil
}

// ArgState is what an argument of the server turned out to name.
type ArgState uint8

const (
	// ArgMissing says that nothing is there.
	ArgMissing ArgState = iota
	// ArgIsFolder says that it is a folder, links followed.
	ArgIsFolder
	// ArgIsFile says that it is anything else, links followed.
	ArgIsFile
)

// ArgFolder is one argument of the server that may name a path.
type ArgFolder struct {
	Arg   string // as given
	Path  string // absolute and clean
	State ArgState
}

// Closure is what one program that a profile grants needs. [program.Closure] makes it.
type Closure struct {
	Execute []string       // files that have to be executable, as real paths
	Read    []program.Need // what has to be readable beyond these
	Err     error          // why there is no answer: not found, not executable
}

// Resolved is a profile compiled for one command line on one machine.
type Resolved struct {
	Profile  *Profile // complete, with flags
	Plan     sandbox.Plan
	Program  program.Program
	Warnings []string // for every start: what the person should know and may not have meant
	Notes    []string // for explain
	Residual []Residual
	Files    []Source // what the plan was made from beside profiles
}

// compiler is one run of Compile.
type compiler struct {
	profile *Profile
	facts   *Facts
	values  values
	roots   []root
	// rootsFailed: an error about roots or the argument behind them is reported already;
	// what uses them says nothing more.
	rootsFailed bool
	asked       [variableCount]bool // variables that some list or value used
	errs        Errors
	out         Resolved
}

func (c *compiler) fail(at Position, bad *problem) {
	c.errs = append(c.errs, bad.at(at))
}

func (c *compiler) warn(at Position, text string) {
	c.out.Warnings = append(c.out.Warnings, at.Where()+": "+text)
}

// Compile turns a complete profile into a plan. It is pure: it reads no file, no
// environment and no clock. The error is an [Errors]: keys whose layer is not built,
// variables without a value, arguments that are no folders, secrets that are not set.
func Compile(p *Profile, f Facts) (Resolved, error) {
	if bad := f.check(); bad != nil {
		return Resolved{}, Errors{bad.at(Position{})}
	}
	c := compiler{profile: p, facts: &f, errs: p.Unbuilt()}
	c.out.Profile, c.out.Program, c.out.Files = p, f.Program, f.Files
	c.out.Notes = slices.Clone(f.Program.Notes)
	plan := &c.out.Plan
	plan.Name = p.Name.Value
	plan.File, plan.Argv, plan.Dir = f.Program.File, f.Program.Argv, f.Dir
	c.folders(plan)
	c.setValues()
	c.network(plan)
	c.grants()
	c.environment()
	c.filter(plan)
	plan.Limits = sandbox.Limits{
		OpenFiles: p.Limits.OpenFiles.Value,
		FileSize:  p.Limits.FileSize.Value,
		Memory:    p.Limits.Memory.Value,
		Processes: p.Limits.Processes.Value,
	}
	for _, layer := range p.Missing.Allow {
		plan.Missing = append(plan.Missing, sandbox.Layer(layer.Value))
	}
	plan.Guard = c.guard()
	slices.Sort(plan.Missing)
	plan.Missing = slices.Compact(plan.Missing)
	plan.Guarded = guarded(&f)
	c.sockets(plan)
	c.placeholders()
	c.unreached()
	c.unusedRoots()
	if err := c.errs.orNil(); err != nil {
		return Resolved{}, err
	}
	c.residual()
	return c.out, nil
}

// ours is the folder of this program below an XDG base folder.
func ours(base string) string { return base + "/stockade" }

// folders names the private folders.
func (c *compiler) folders(plan *sandbox.Plan) {
	plan.Runs = ours(c.facts.Cache) + "/runs"
	plan.Tmp.Path = plan.Runs + "/" + c.facts.Run
	switch {
	case c.facts.Stage != "":
		plan.Home.Path = c.facts.Stage
	case c.profile.Filesystem.Home.Value != HomeReal:
		plan.Home.Path = ours(c.facts.Data) + "/homes/" + homeKey(c.profile.Name.Value, c.facts)
	}
}

// truncateABI is the first Landlock ABI with LANDLOCK_ACCESS_FS_TRUNCATE (Linux 6.2).
const truncateABI = 3

func (c *compiler) filter(plan *sandbox.Plan) {
	filter := &plan.Filter
	if c.profile.Filesystem.Metadata.Value == MetadataRefuse {
		filter.Metadata = seccomp.MetadataRefuse
	}
	if c.facts.LandlockABI < truncateABI {
		filter.Truncation = seccomp.TruncationByFilter
	}
	calls := &c.profile.Syscalls
	filter.Allow, filter.Deny = sortedNames(calls.Allow), sortedNames(calls.Deny)
	if calls.Profile.written() && calls.Profile.Value != SyscallsDefault {
		if c.facts.SyscallProfile == nil {
			c.fail(calls.Profile.Position, wrong("correct the path", "syscalls.profile: %q was not read", calls.Profile.Value))
			return
		}
		filter.Base = c.facts.SyscallProfile
	}
	if filter.Base == nil && len(filter.Allow) == 0 && len(filter.Deny) == 0 {
		return
	}
	// The person's own words: the filter is worked out here already, so that a name that
	// cannot take effect is an error with its place.
	if _, err := filter.Filter(); err != nil {
		c.filterError(err)
		return
	}
	for _, w := range filter.Warnings() {
		c.warn(c.placeOfCall(w), w)
	}
}

// placeOfCall finds where a name stands that a warning of the filter begins with.
func (c *compiler) placeOfCall(warning string) Position {
	calls := &c.profile.Syscalls
	for _, l := range [...]struct {
		key  string
		list []Sourced[string]
	}{{"syscalls.allow: ", calls.Allow}, {"syscalls.deny: ", calls.Deny}, {"syscalls.profile: ", []Sourced[string]{calls.Profile}}} {
		rest, found := strings.CutPrefix(warning, l.key)
		for i := range l.list {
			if found && (l.key == "syscalls.profile: " || strings.HasPrefix(rest, l.list[i].Value+" ")) {
				return l.list[i].Position
			}
		}
	}
	return Position{File: c.profile.File}
}

// filterError reports what is wrong with the lists of system calls, each where it stands.
func (c *compiler) filterError(err error) {
	calls := &c.profile.Syscalls
	for _, e := range eachError(err) {
		var call *seccomp.CallError
		if !errors.As(e, &call) {
			at := calls.Profile.Position
			if !calls.Profile.written() {
				at = Position{File: c.profile.File}
			}
			c.fail(at, wrong("", "syscalls: %v", e))
			continue
		}
		hint := "remove it"
		switch {
		case call.Suggestion != "":
			hint = "did you mean " + call.Suggestion + "?"
		case call.Key != "":
			hint = "use " + call.Key
		}
		list := calls.Allow
		if call.List == "syscalls.deny" {
			list = calls.Deny
		}
		for _, name := range list {
			if name.Value == call.Name {
				c.fail(name.Position, wrong(hint, "%s: %s %s", call.List, call.Name, call.Reason))
			}
		}
	}
}

// eachError takes errors that were joined, or wrapped around joined ones, apart.
func eachError(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return []error{err}
}

func sortedNames(list []Sourced[string]) []string {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Value
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// placeholders warns of arguments that the host should have filled in. No value is shown,
// only the placeholder's first word.
func (c *compiler) placeholders() {
	for i, arg := range c.facts.Program.Args {
		if c.out.Plan.Home.Path != "" && (arg == "~" || strings.HasPrefix(arg, "~/")) {
			// Hosts start servers without a shell, so the sign reaches the server.
			c.out.Warnings = append(c.out.Warnings,
				"argument "+itoa(i+1)+" of the server begins with ~, which it takes for its private home; write the absolute path")
		}
		name, found := placeholder(arg)
		if !found {
			continue
		}
		c.out.Warnings = append(c.out.Warnings,
			"argument "+itoa(i+1)+" of the server holds "+name+", which the host did not fill in")
	}
}

// placeholder finds ${workspaceFolder}, ${input:id}, ${env:NAME}, ${{ secrets.NAME }},
// {env:NAME} or {file:path} in an argument. Hosts differ in what they replace.
func placeholder(arg string) (string, bool) {
	for _, start := range []string{"${", "{env:", "{file:"} {
		at := strings.Index(arg, start)
		if at < 0 {
			continue
		}
		end := strings.IndexByte(arg[at:], '}')
		if end < 0 || strings.ContainsAny(arg[at:at+end], "\n\x00") {
			continue
		}
		// What follows a colon may be a default value.
		name, _, _ := strings.Cut(arg[at:at+end], ":-")
		return strings.TrimRight(name, "}") + "}", true
	}
	return "", false
}
