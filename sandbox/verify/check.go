// Package verify proves a jail from inside. It turns a plan into checks, each an operation
// with the answer that the kernel has to give: the forbidden ones with their errno, and
// beside them allowed twins that have to work. The checks run in a process that was put
// into the jail of that very plan; nothing is concluded from what the launcher asked for.
//
// A check holds when the answer is exactly the expected one. Another errno is no proof:
// an operation that fails for another reason was not refused by its layer.
//
// It does not look at what the jail cannot promise (see the residual list of explain).
package verify

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stockade/sandbox"
	"stockade/seccomp"
)

// Check is one operation and the answer it has to get.
type Check struct {
	Layer sandbox.Layer `json:"layer"`
	Name  string        `json:"name"` // what is tried, for a person
	Op    Op            `json:"op"`
	Path  string        `json:"path,omitempty"`
	Num   int           `json:"num,omitempty"`   // a descriptor, port or process, by Op
	Names []string      `json:"names,omitempty"` // environment names, by Op
	// Want is the errno name ("EACCES"), or "" when the operation has to work.
	Want string `json:"want"`
	// Outside says whether the same operation has to work outside the jail to prove
	// anything; such checks are tried there first.
	Outside OutsideTwin `json:"outside,omitempty"`
}

// OutsideTwin says whether a check is tried outside first.
type OutsideTwin string

const (
	// NotOutside: the operation would change this process outside.
	NotOutside OutsideTwin = ""
	// WorksOutside: it has to succeed outside.
	WorksOutside OutsideTwin = "works"
)

// PlantedDescriptor is the number that the launcher of the probe leaves open on purpose.
const PlantedDescriptor = 200

// Machine is what checks need to know of the place where they run.
type Machine struct {
	Parent  int      // the process outside that started the probe
	Self    string   // real path of the probe's own program, which the plan executes
	Victim  string   // a regular file of this user outside every grant
	Socket  string   // a Unix socket of this user outside every grant, on which somebody listens
	IPv6    IPv6     // whether this kernel makes such sockets
	Foreign []string // real paths of programs that most machines have (a shell, env)
}

// IPv6 says whether a machine's kernel has that protocol.
type IPv6 string

const (
	// IPv6Absent: sockets of that family cannot be made anywhere on this machine.
	IPv6Absent IPv6 = ""
	// IPv6Present: they can.
	IPv6Present IPv6 = "present"
)

// Checks lists what to try in the jail of a plan. It is pure.
func Checks(p sandbox.Plan, m Machine) []Check {
	var out []Check
	out = append(out, fileChecks(p, m)...)
	out = append(out, programChecks(p, m)...)
	out = append(out, processChecks(p, m.Parent)...)
	out = append(out, filterChecks(p)...)
	return append(out, networkChecks(p, m)...)
}

func fileChecks(p sandbox.Plan, m Machine) []Check {
	var out []Check
	deny := func(name string, op Op, path string) {
		if !readable(p, path) {
			out = append(out, Check{Layer: sandbox.LayerFiles, Name: name, Op: op, Path: path, Want: "EACCES", Outside: WorksOutside})
		}
	}
	deny("list the root folder", OpList, "/")
	deny("list /etc", OpList, "/etc")
	deny("read the list of users", OpRead, "/etc/passwd")
	deny("read another process's command line", OpRead, "/proc/"+strconv.Itoa(m.Parent)+"/cmdline")
	deny("read another process's environment", OpRead, "/proc/"+strconv.Itoa(m.Parent)+"/environ")
	deny("read an outside file", OpRead, m.Victim)
	noAccess := Check{Layer: sandbox.LayerSeccomp, Name: "open an outside file without asking for access", Op: OpNoAccess, Path: m.Victim, Want: "EACCES", Outside: WorksOutside}
	// On Linux ENOTSUP and EOPNOTSUPP are one number; its name is the former.
	attribute := Check{Layer: sandbox.LayerSeccomp, Name: "list an outside file's attributes", Op: OpAttribute, Path: m.Victim, Want: "ENOTSUP", Outside: WorksOutside}
	out = append(out, noAccess)
	if !slices.Contains(p.Filter.Allow, "listxattr") {
		out = append(out, attribute)
	}
	out = append(out, Check{Layer: sandbox.LayerTruncate, Name: "cut an outside file short", Op: OpTruncate, Path: m.Victim, Want: truncateErrno(p)})
	if p.Tmp.Path == "" {
		return out
	}
	deny("list the temporary folders of other runs", OpList, filepath.Dir(p.Tmp.Path))
	return append(out,
		Check{Layer: sandbox.LayerFiles, Name: "write beside the temporary folder", Op: OpWrite, Path: filepath.Join(filepath.Dir(p.Tmp.Path), "verify-outside"), Want: "EACCES"},
		Check{Layer: sandbox.LayerFiles, Name: "write in the temporary folder", Op: OpWrite, Path: filepath.Join(p.Tmp.Path, "verify")},
		Check{Layer: sandbox.LayerRefer, Name: "move between folders inside", Op: OpMoveBetween, Path: p.Tmp.Path},
	)
}

// truncateErrno: Landlock answers EACCES, the filter EPERM (truncate(2) by path).
func truncateErrno(p sandbox.Plan) string {
	if p.Filter.Truncation == seccomp.TruncationByFilter {
		return "EPERM"
	}
	return "EACCES"
}

// readable tells whether a grant of the plan holds a path.
func readable(p sandbox.Plan, path string) bool {
	return slices.ContainsFunc(p.Grants, func(g sandbox.Grant) bool {
		return g.Path == path || g.Path == "/" || strings.HasPrefix(path, g.Path+"/")
	})
}

func programChecks(p sandbox.Plan, m Machine) []Check {
	out := []Check{{Layer: sandbox.LayerFiles, Name: "execute the granted program", Op: OpExec, Path: m.Self}}
	for _, file := range m.Foreign {
		if executable(p, file) {
			continue
		}
		out = append(out, Check{Layer: sandbox.LayerFiles, Name: "execute " + file, Op: OpExec, Path: file, Want: "EACCES", Outside: WorksOutside})
	}
	if p.Tmp.Path != "" {
		out = append(out, Check{Layer: sandbox.LayerFiles, Name: "execute a copy in the temporary folder", Op: OpExecCopy, Path: p.Tmp.Path, Want: "EACCES"})
	}
	return append(out, Check{Layer: sandbox.LayerSeccomp, Name: "make an executable memory file", Op: OpMemfd, Want: "ENOSYS"})
}

func executable(p sandbox.Plan, file string) bool {
	return slices.ContainsFunc(p.Grants, func(g sandbox.Grant) bool {
		return g.Access == sandbox.Execute && g.Path == file
	})
}

func processChecks(p sandbox.Plan, parent int) []Check {
	names := make([]string, 0, len(p.Env))
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	out := []Check{
		{Layer: sandbox.LayerCapabilities, Name: "hold no capability", Op: OpNoCapabilities},
		{Layer: sandbox.LayerNoNewPrivs, Name: "gain nothing by set-id programs", Op: OpNoNewPrivs},
		{Layer: sandbox.LayerDescriptors, Name: "use a descriptor that the host left open", Op: OpDescriptor, Num: PlantedDescriptor, Want: "EBADF"},
		{Layer: sandbox.LayerEnvironment, Name: "see no other variables", Op: OpEnvironment, Names: names},
		{Layer: sandbox.LayerLimits, Name: "leave no core dump", Op: OpCoreLimit},
		{Layer: sandbox.LayerLimits, Name: "make files for its own user only", Op: OpUmask},
		{Layer: sandbox.LayerTerminal, Name: "have no controlling terminal", Op: OpTerminal},
		{Layer: sandbox.LayerSeccomp, Name: "change another process's limits", Op: OpPrlimit, Num: parent, Want: "EPERM"},
		{Layer: sandbox.LayerSeccomp, Name: "change another process's priority", Op: OpSetpriority, Num: parent, Want: "EPERM"},
		{Layer: sandbox.LayerSeccomp, Name: "trace another process", Op: OpPtrace, Num: parent, Want: "EPERM"},
	}
	if !slices.Contains(p.Missing, sandbox.LayerScopeSignals) {
		out = append(out,
			Check{Layer: sandbox.LayerScopeSignals, Name: "signal a process outside", Op: OpSignal, Num: parent, Want: "EPERM"},
			Check{Layer: sandbox.LayerScopeSignals, Name: "signal itself", Op: OpSignalSelf})
	}
	return out
}

func filterChecks(p sandbox.Plan) []Check {
	deny := func(name string, op Op, want string) Check {
		return Check{Layer: sandbox.LayerSeccomp, Name: name, Op: op, Want: want}
	}
	out := []Check{
		deny("make a namespace", OpUnshare, "EPERM"),
		deny("start a process with clone3", OpClone3, "ENOSYS"),
		deny("use the kernel keyring", OpKeyring, "EPERM"),
		deny("load a BPF program", OpBPF, "EPERM"),
		deny("change the working folder's attributes", OpAttributeHere, "ENOSYS"),
		deny("push input into a terminal", OpTiocsti, "EPERM"),
		deny("make a datagram socket pair", OpDatagramPair, "EPERM"),
		deny("make a stream socket pair", OpStreamPair, ""),
	}
	if !slices.Contains(p.Filter.Allow, "io_uring_setup") {
		out = append(out, deny("set up io_uring", OpIoUring, "ENOSYS"))
	}
	if p.Tmp.Path == "" {
		return out
	}
	byPath := Check{Layer: sandbox.LayerSeccomp, Name: "change a mode by path (answered, not done)", Op: OpChmodIgnored, Path: p.Tmp.Path}
	if p.Filter.Metadata == seccomp.MetadataRefuse {
		byPath = Check{Layer: sandbox.LayerSeccomp, Name: "change a mode by path", Op: OpChmod, Path: p.Tmp.Path, Want: "EPERM"}
	}
	if !slices.Contains(p.Filter.Allow, "fchmod") {
		out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "make a set-id program", Op: OpSetID, Path: p.Tmp.Path, Want: "EPERM"})
	}
	return append(out, byPath,
		Check{Layer: sandbox.LayerSeccomp, Name: "change a mode on a descriptor", Op: OpFchmod, Path: p.Tmp.Path})
}
