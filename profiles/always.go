package profiles

import (
	"stockade/sandbox"
	"stockade/sandbox/program"
)

// runtimes is a set of language runtimes.
type runtimes uint8

const (
	forNative runtimes = 1 << iota
	forNode
	forPython
	forShell
	forAll = forNative | forNode | forPython | forShell
)

func runtimesOf(r program.Runtime) runtimes {
	switch r {
	case program.Native:
		return forNative
	case program.Node:
		return forNode
	case program.Python:
		return forPython
	case program.Shell:
		return forShell
	}
	return forAll
}

// systemFile is one file of the kernel's that runtimes read. Each costs a rule at every
// start (about 8 µs), so a file is here only when a runtime works worse without it, and
// only for the runtimes that read it (traced: node 20 and 22, CPython 3.11, Go 1.26, dash).
// Files that identify the machine or show other processes are not here.
type systemFile struct {
	path string
	of   runtimes
	why  string
}

// ownFiles lie in the folder of the server's own process. execve(2) keeps its number.
var ownFiles = [...]systemFile{
	// glibc finds the bounds of the first thread's stack in it (pthread_getattr_np).
	{"/maps", forNative | forNode, "stack bounds"},
	// process.memoryUsage() throws without it.
	{"/stat", forNode, "memory in use"},
	// What programs ask about themselves: threads, peak memory.
	{"/status", forNative | forPython, "memory in use"},
}

var kernelFiles = [...]systemFile{
	// Heap sizes follow the memory that is there.
	{"/proc/meminfo", forNative | forNode | forPython, "size of memory"},
	// os.cpus() is empty without these two, and callers divide by its length.
	{"/proc/cpuinfo", forNode, "processors"},
	{"/proc/stat", forNode, "processors"},
	// glibc counts processors by it: sysconf(3), os.cpu_count().
	{"/sys/devices/system/cpu/online", forAll, "number of processors"},
	// The Go runtime aligns its heap to it, at every start.
	{"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", forNative, "size of large pages"},
}

// devices are granted as nodes, for reading and writing.
var devices = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// alwaysGrants adds what every jail has.
func (c *compiler) alwaysGrants() {
	always := sandbox.Origin{Source: sandbox.OriginAlways}
	plan := &c.out.Plan
	// Room for all grants of most plans.
	plan.Grants = make([]sandbox.Grant, 0, 24+len(c.facts.Program.Execute)+len(c.facts.Program.Read))
	if plan.Home.Path != "" {
		c.add(sandbox.Grant{Path: plan.Home.Path, Access: sandbox.Scratch, Origin: always, Why: "private home"})
	}
	c.add(sandbox.Grant{Path: plan.Tmp.Path, Access: sandbox.Scratch, Origin: always, Why: "private temporary folder"})
	for _, path := range devices {
		c.add(sandbox.Grant{Path: path, Access: sandbox.Device, Presence: sandbox.Optional, Want: sandbox.KindDevice, Origin: always, Why: "device"})
	}
	for _, path := range c.facts.StdioDevices {
		c.add(sandbox.Grant{Path: path, Access: sandbox.Device, Presence: sandbox.Optional, Want: sandbox.KindDevice, Origin: always, Why: "terminal behind the standard streams"})
	}
	runtime := runtimesOf(c.facts.Program.Runtime)
	own := "/proc/self"
	if c.facts.PID > 0 {
		own = "/proc/" + itoa(c.facts.PID)
	}
	for _, f := range ownFiles {
		if f.of&runtime != 0 {
			c.add(sandbox.Grant{Path: own + f.path, Access: sandbox.Read, Presence: sandbox.Optional, Want: sandbox.KindFile, Origin: always, Why: f.why})
		}
	}
	for _, f := range kernelFiles {
		if f.of&runtime != 0 {
			c.add(sandbox.Grant{Path: f.path, Access: sandbox.Read, Presence: sandbox.Optional, Want: sandbox.KindFile, Origin: always, Why: f.why})
		}
	}
}

// resolverFiles are what C libraries, node, Go and Python read to look up names.
var resolverFiles = [...]string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
}

// certificateFolders hold the certificates of authorities on Debian, Fedora, Alpine and
// their kin. Their links lead to the others of the list.
var certificateFolders = [...]string{
	"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
}

// resolverGrants adds what a server needs to find and to trust hosts. Links are followed
// once and their targets granted: /etc/resolv.conf often leads to /run.
func (c *compiler) resolverGrants(origin sandbox.Origin) {
	for _, path := range resolverFiles {
		c.add(sandbox.Grant{Path: path, Access: sandbox.Read, Presence: sandbox.Optional, Origin: origin, Why: "looking up names"})
	}
	for _, path := range certificateFolders {
		c.add(sandbox.Grant{Path: path, Access: sandbox.Read, Presence: sandbox.Optional, Origin: origin, Why: "certificates of authorities"})
	}
}
