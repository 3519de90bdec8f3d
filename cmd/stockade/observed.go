package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/forecast"
	"stockade/sandbox/supervise"
)

// Kinds of refusals, for the log. Those of a supervisor that decides have no kind.
const (
	kindNetwork = "network"
	kindFile    = "file"
	kindProgram = "program"
	kindSocket  = "socket"
)

var kinds = []string{kindNetwork, kindFile, kindProgram, kindSocket}

// advisor says of a refusal what a person can do about it.
type advisor struct {
	plan   sandbox.Plan
	source string // of the profile, for people
	dir    string // the working folder
}

// entry makes a line of the log from a refusal of the kernel.
func (a advisor) entry(r supervise.Refusal) denialEntry {
	e, _ := a.judge(r)
	return e
}

// judge is [advisor.entry], with what may be added to the entry's key; "" when nothing may.
func (a advisor) judge(r supervise.Refusal) (e denialEntry, add string) {
	e = denialEntry{
		Time: r.Time, Profile: a.plan.Name, Program: r.Program, PID: r.PID, Call: r.Call,
		Kind: kindFile, Operation: r.Operation.String(), Asked: r.Path, File: a.file(),
	}
	if r.Operation == supervise.MakingSocket {
		a.socket(&e, r)
	} else {
		r.Path, r.Grant = ofSelf(r.Path, r.PID), ofSelf(r.Grant, r.PID)
		e.Asked = r.Path
		add = a.path(&e, r)
	}
	return e.bounded(), add
}

// ofSelf writes a path in a process's own folder of /proc as every process can: the next run
// has another number.
func ofSelf(path string, pid int) string {
	if rest, own := strings.CutPrefix(path, "/proc/"+strconv.Itoa(pid)+"/"); own && pid > 0 {
		return "/proc/self/" + rest
	}
	return path
}

// file is the profile's file as a path that leads there from anywhere.
func (a advisor) file() string {
	if strings.ContainsRune(a.source, '/') && !filepath.IsAbs(a.source) {
		return filepath.Join(a.dir, a.source)
	}
	return a.source
}

// notGranted is why the kernel refuses, in most cases.
const notGranted = "the profile does not grant it"

func (a advisor) path(e *denialEntry, r supervise.Refusal) (add string) {
	e.Rule = notGranted
	if r.Asked != "" && filepath.IsAbs(r.Asked) && filepath.Clean(r.Asked) != r.Path {
		e.Rule = "asked for as " + r.Asked + ", and " + notGranted
	}
	if r.Operation == supervise.Executing {
		e.Kind = kindProgram
	}
	const special = forecast.UseMakeDevice | forecast.UseMakeFifo | forecast.UseMakeSocket
	switch e.Key = keyOf(r); {
	case r.Wider:
		e.Key, e.Rule = "", "there the server may do more with it than in the folder that it comes from"
		e.Hint = "have the server copy it, or grant both folders under filesystem.write"
	case r.Replaced:
		e.Key, e.Rule = "", "the profile grants the file that was there at the start, and another one is in its place"
		e.Hint = "grant the folder that holds it, or start the server again"
	case r.Uses&special != 0:
		e.Key, e.Rule = "", "devices, fifos and sockets can be made in the server's private folders only"
	default:
		return a.advise(e, r)
	}
	return ""
}

// keyOf is the key of the profile under which a path opens what is missing.
func keyOf(r supervise.Refusal) string {
	switch {
	case r.Operation == supervise.Executing:
		return "filesystem.execute"
	case r.Uses&^(forecast.UseRead|forecast.UseList) == 0:
		return "filesystem.read"
	}
	return "filesystem.write"
}

// advise tells what to add, unless it is a place that is kept away from servers.
func (a advisor) advise(e *denialEntry, r supervise.Refusal) (add string) {
	guard, guarded := a.plan.GuardedPlace(r.Grant)
	switch {
	case !guarded:
		e.Hint = a.addition(e.Key, r.Grant)
		return r.Grant
	case guard.Rule == sandbox.GuardAlways && guard.Holds(r.Grant):
		e.Rule, e.Key = fmt.Sprintf("%s is kept from every server (%s)", guard.Path, guard.Why), ""
	case guard.Rule != sandbox.GuardWhole && guard.Holds(r.Grant):
		e.Rule = fmt.Sprintf(`%s is kept from servers (%s): only {path: %q, broad: true, reason: "..."} in %s%s opens it`,
			guard.Path, guard.Why, r.Grant, e.Key, a.of())
	default:
		e.Rule = fmt.Sprintf("%s as a whole is kept from servers (%s)", r.Grant, guard.Why)
		if guard.Path != r.Grant {
			e.Rule = fmt.Sprintf("%s as a whole is kept from servers: it holds %s (%s)", r.Grant, guard.Path, guard.Why)
		}
		e.Hint = fmt.Sprintf("name what the server needs below it in %s%s", e.Key, a.of())
	}
	return ""
}

// addition says where to add a path for good, or for one run where no file of a person's is
// at hand.
func (a advisor) addition(key, path string) string {
	flag := map[string]string{"filesystem.read": "--read", "filesystem.write": "--write", "filesystem.execute": "--exec"}[key]
	once := fmt.Sprintf("for one run, %s %s", flag, shellWord(path))
	name, builtin := strings.CutPrefix(a.source, builtInSource)
	switch {
	case builtin:
		return fmt.Sprintf("add %q to %s in a profile of your own that extends %q; %s", path, key, name, once)
	case !strings.ContainsRune(a.source, '/'):
		return fmt.Sprintf(`add %q to %s in a profile of your own ("stockade profile init" writes one); %s`, path, key, once)
	}
	return fmt.Sprintf("add %q to %s in %s", path, key, a.file())
}

// builtInSource begins the source of built-in profiles.
const builtInSource = profiles.BuiltInSource

// families are names of address families, for people; others are numbers.
var families = map[int]string{
	unix.AF_UNIX: "a Unix", unix.AF_INET: "an IPv4", unix.AF_INET6: "an IPv6", unix.AF_NETLINK: "a netlink", unix.AF_PACKET: "a packet",
	unix.AF_VSOCK: "a vsock", unix.AF_BLUETOOTH: "a Bluetooth",
}

func (a advisor) socket(e *denialEntry, r supervise.Refusal) {
	e.Kind = kindSocket
	name, known := families[r.Family]
	if !known {
		name = fmt.Sprintf("a family-%d", r.Family)
	}
	e.Asked, e.Rule = name+" socket", "no profile grants such a socket"
	switch {
	case r.Errno == unix.EAFNOSUPPORT && (r.Family == unix.AF_INET || r.Family == unix.AF_INET6):
		e.Rule, e.Key = "the profile grants no network", "network.egress"
		e.Hint = "name the destinations in network.egress" + a.of() + "; for one run, --egress HOST"
	case r.Errno == unix.EAFNOSUPPORT && r.Family == unix.AF_NETLINK:
		e.Rule, e.Key = "the profile grants no network, so no addresses of this machine are shown", "network.egress"
	case r.Family == unix.AF_UNIX && r.Errno == unix.EACCES:
		e.Rule, e.Key = "the profile grants no Unix socket", "network.unix"
		e.Hint = "name the socket file in network.unix" + a.of() + "; for one run, --unix PATH"
	}
}

// of names the profile's file, when it is one that a person can edit.
func (a advisor) of() string {
	if !strings.ContainsRune(a.source, '/') || strings.HasPrefix(a.source, builtInSource) {
		return ""
	}
	return " of " + a.file()
}

// quietly tells whether a refusal is for the log alone: what runtimes and C libraries look for
// by themselves and do without. The list was measured with stock servers of node and Python.
func quietly(e denialEntry) bool {
	if e.Kind == kindSocket {
		return strings.HasPrefix(e.Asked, "a netlink ")
	}
	if e.Key != "filesystem.read" {
		return false
	}
	for _, path := range quietPaths {
		if e.Asked == path || strings.HasSuffix(path, "/") && strings.HasPrefix(e.Asked, path) {
			return true
		}
	}
	return false
}

// quietPaths are files, and folders with all that lies in them.
var quietPaths = [...]string{
	// node: how much memory a container leaves, and how its allocator may take it.
	"/proc/self/cgroup", "/proc/self/mountinfo", "/sys/fs/cgroup/", "/proc/sys/vm/overcommit_memory",
	// V8 and the Go runtime: sizes of pages and caches.
	"/sys/kernel/mm/transparent_hugepage/", "/sys/devices/system/cpu/", "/sys/devices/system/node/",
	// libselinux, which coreutils and git come with: whether there is SELinux.
	"/proc/filesystems", "/proc/self/mounts",
	// OpenSSL's own configuration; it has the same defaults without.
	"/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf",
	// glibc: other names of locales.
	"/etc/locale.alias", "/usr/share/locale/", "/usr/lib/locale/",
	// Resolvers, which look them up at their start. What matters without a network is the
	// socket that they are refused later, and that has its line.
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
}
