package profiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox"
	"stockade/seccomp"
)

// Residual is something that stays open, next to the promise that it weakens. Read
// together they are one sentence: PROMISE, but OPEN.
type Residual struct {
	Promise string
	Open    string
}

// The promises, in the order of the design.
const (
	promiseFiles     = "the server reads and changes only what is granted"
	promisePrograms  = "the server starts only the programs that are granted"
	promiseNetwork   = "the server reaches only what network.egress, network.unix and network.listen say"
	promiseProcesses = "the server cannot touch processes outside the jail"
	promiseSecrets   = "the server gets only the variables that are passed"
	promiseKernel    = "the filter refuses system calls that servers do not need"
	promiseMessages  = "only those messages pass that the guard's rules admit"
	promiseMachine   = "the server cannot harm the rest of the machine"
)

// Landlock ABIs of the layers below.
const (
	tcpABI    = 4 // Linux 6.7
	signalABI = 6 // Linux 6.12
)

// residual lists what the plan leaves open. It depends on the plan and the kernel alone.
func (c *compiler) residual() {
	c.openFiles()
	c.openPrograms()
	c.openNetwork()
	c.openProcesses()
	if len(c.profile.Environment.Secrets) > 0 {
		c.stays(promiseSecrets, "every program that it starts gets them too, and what it may send anywhere it may send them in")
	}
	filter := &c.out.Plan.Filter
	if filter.Base != nil {
		c.stays(promiseKernel, "the list of allowed calls is "+c.profile.Syscalls.Profile.Value)
	}
	if len(filter.Allow) > 0 {
		c.stays(promiseKernel, "the profile allows "+strings.Join(filter.Allow, ", "))
	}
	c.openGuard()
	c.openMachine()
}

func (c *compiler) stays(promise, open string) {
	c.out.Residual = append(c.out.Residual, Residual{Promise: promise, Open: open})
}

func (c *compiler) openFiles() {
	plan := &c.out.Plan
	c.stays(promiseFiles, "names, sizes, modes and times of all files stay visible (stat): Landlock does not cover them")
	c.stays(promiseFiles, "through a descriptor of a file that it may read and owns, it can change the mode (set-id bits are refused), owner, times, ACLs, extended attributes and inode flags, and take leases")
	if c.facts.UID == 0 {
		c.stays(promiseFiles, "as root, those files include device nodes such as /dev/null")
	}
	for i := range plan.Grants {
		if g := &plan.Grants[i]; g.Broad != "" {
			c.stays(promiseFiles, fmt.Sprintf("%s is granted whole: %s", g.Path, g.Broad))
		}
	}
	if slices.Contains(plan.Missing, sandbox.LayerTruncate) && plan.Filter.Truncation == seccomp.TruncationByLandlock {
		c.stays(promiseFiles, "where the kernel lacks landlock-truncate, files that it may read can be cut short")
	}
	if len(c.facts.StdioDevices) > 0 {
		c.stays(promiseFiles, "it can read from and write to the terminal that it was started on")
	}
}

// interpreters run what they are given, so granting one grants every program in its
// language that the jail can read or write.
var interpreters = [...]string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox", "node", "nodejs", "bun", "deno", "python", "python3",
	"perl", "ruby", "php", "lua", "awk", "gawk", "mawk", "sed", "make", "env", "xargs", "find", "git", "ssh",
}

func (c *compiler) openPrograms() {
	if len(c.facts.Program.Execute) > 1 {
		c.stays(promisePrograms, "the loader can start any program file that the jail can read, one that the server wrote itself too; it stays in this jail")
	}
	if c.facts.Program.Entry != "" {
		c.stays(promisePrograms, fmt.Sprintf("%s runs every script that the jail can read", filepath.Base(c.facts.Program.File)))
	}
	var named []string
	for _, e := range c.profile.Filesystem.Execute {
		if base := filepath.Base(e.Value); slices.Contains(interpreters[:], base) && !slices.Contains(named, base) {
			named = append(named, base)
		}
	}
	if len(named) > 0 {
		c.stays(promisePrograms, "these run commands or scripts of their own, inside this jail: "+strings.Join(named, ", "))
	}
}

func (c *compiler) openProcesses() {
	if c.facts.LandlockABI < signalABI {
		c.stays(promiseProcesses, "this kernel cannot keep signals inside (Landlock ABI 6, Linux 6.12): the server can signal the person's other processes")
	}
	if c.facts.UID == 0 {
		c.stays(promiseMachine, "it runs as root, without capabilities: file modes hold for it, but root's files inside the grants are its own, and a set-user-ID program that it makes there is root's to everybody outside")
	}
}

func (c *compiler) openMachine() {
	limits := &c.out.Plan.Limits
	var unlimited []string
	for _, l := range [...]struct {
		limit uint64
		name  string
	}{{limits.Memory, "memory"}, {limits.Processes, "processes"}, {limits.FileSize, "file size"}} {
		if l.limit == 0 {
			unlimited = append(unlimited, l.name)
		}
	}
	open := "processor time and disk space are not limited"
	if len(unlimited) > 0 {
		open = "processor time, disk space, " + strings.Join(unlimited, ", ") + " are not limited"
	}
	c.stays(promiseMachine, open)
}
