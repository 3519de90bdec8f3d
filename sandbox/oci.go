package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/sandbox/egress"
)

// OCI says the plan in the words of the OCI runtime specification, as far as those go, and
// lists in notes what they cannot say. It is pure. The result is a config.json for an empty
// root file system: what is not mounted does not exist, where the jail shows names and
// refuses access.
//
// Values of environment variables are left out on purpose: an exported plan is a file that
// people share. process.user is 0:0 and is the caller's to set.
func OCI(p Plan, opened []OpenedGrant) (*specs.Spec, []string, error) {
	filter, err := p.Filter.Filter()
	if err != nil {
		return nil, nil, fmt.Errorf("describing the system call filter: %w", err)
	}
	umask := uint32(jailUmask)
	spec := &specs.Spec{
		Version: specs.Version,
		Process: &specs.Process{
			User:            specs.User{Umask: &umask},
			Args:            ociArgs(p),
			Env:             ociEnv(p.Env),
			Cwd:             p.Dir,
			Capabilities:    &specs.LinuxCapabilities{},
			Rlimits:         ociLimits(p.Limits),
			NoNewPrivileges: true,
		},
		Root:   &specs.Root{Path: "rootfs", Readonly: true},
		Mounts: append(ociMounts(opened), ociSockets(p.Network.Unix)...),
		Linux: &specs.Linux{
			Namespaces:        ociNamespaces(p.Network),
			Resources:         ociResources(p.Limits),
			Seccomp:           filter,
			RootfsPropagation: "rprivate",
			MaskedPaths:       []string{"/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/proc/timer_list"},
			ReadonlyPaths:     []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"},
		},
	}
	return spec, ociNotes(p, opened), nil
}

// ociArgs puts the program's own path first: the specification has one word for the file
// to execute and for the name that it is told.
func ociArgs(p Plan) []string {
	args := slices.Clone(p.Argv)
	if len(args) > 0 {
		args[0] = p.File
	}
	return args
}

func ociEnv(env []string) []string {
	names := make([]string, 0, len(env))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name+"=")
	}
	return names
}

func ociLimits(l Limits) []specs.POSIXRlimit {
	out := []specs.POSIXRlimit{{Type: "RLIMIT_CORE", Hard: coreLimit, Soft: coreLimit}}
	if l.OpenFiles > 0 {
		out = append(out, specs.POSIXRlimit{Type: "RLIMIT_NOFILE", Hard: l.OpenFiles, Soft: l.OpenFiles})
	}
	if l.FileSize > 0 {
		out = append(out, specs.POSIXRlimit{Type: "RLIMIT_FSIZE", Hard: l.FileSize, Soft: l.FileSize})
	}
	return out
}

func ociResources(l Limits) *specs.LinuxResources {
	var r specs.LinuxResources
	if l.Memory > 0 {
		memory := int64(min(l.Memory, 1<<63-1))
		// Swap is memory and swap space together: the limit again leaves none of it.
		r.Memory = &specs.LinuxMemory{Limit: &memory, Swap: &memory}
	}
	if l.Processes > 0 {
		processes := int64(min(l.Processes, 1<<63-1))
		r.Pids = &specs.LinuxPids{Limit: &processes}
	}
	if r.Memory == nil && r.Pids == nil {
		return nil
	}
	return &r
}

// ociNamespaces gives a network of its own only to a server that uses none: one that
// listens or connects would be alone in it.
func ociNamespaces(n Network) []specs.LinuxNamespace {
	out := []specs.LinuxNamespace{
		{Type: specs.MountNamespace},
		{Type: specs.PIDNamespace},
		{Type: specs.IPCNamespace},
		{Type: specs.UTSNamespace},
		{Type: specs.CgroupNamespace},
	}
	if n.Egress == EgressNone && len(n.Listen) == 0 {
		out = append(out, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	return out
}

// ociSuppliedDevices are nodes that every runtime makes in /dev (config-linux.md, "Default
// Devices").
var ociSuppliedDevices = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// ociMounts binds each granted object at the path of the grant, and at its real path when
// that differs, parents before children. /proc and /dev are the runtime's own.
func ociMounts(opened []OpenedGrant) []specs.Mount {
	strongest := make(map[string]OpenedGrant)
	for _, g := range opened {
		if g.State == Skipped || below(g.Path, "/proc") || slices.Contains(ociSuppliedDevices[:], g.Path) {
			continue
		}
		places := []string{g.Path, g.Target}
		if at := ociLoader(g); at != "" {
			places = append(places, at)
		}
		for _, at := range places {
			if have, ok := strongest[at]; !ok || ociOrder(g.Access) > ociOrder(have.Access) {
				strongest[at] = g
			}
		}
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"}},
	}
	for at, g := range strongest {
		mounts = append(mounts, specs.Mount{Destination: at, Type: "bind", Source: g.Target, Options: ociOptions(g)})
	}
	// Clean paths sort parents before what lies in them.
	slices.SortFunc(mounts[2:], func(a, b specs.Mount) int { return cmp.Compare(a.Destination, b.Destination) })
	return mounts
}

// ociSockets binds each granted socket file at its path. Connecting needs a writable mount.
func ociSockets(grants []UnixGrant) []specs.Mount {
	out := make([]specs.Mount, 0, len(grants))
	for _, g := range grants {
		out = append(out, specs.Mount{Destination: g.Path, Type: "bind", Source: g.Path, Options: []string{"bind", "rw", "nosuid", "nodev", "noexec"}})
	}
	return out
}

// ociLoader is the path under which programs ask the kernel for an ELF loader (PT_INTERP),
// fixed by each architecture's ABI. In the jail the machine's own links lead from there to
// the granted file; an empty root has no links.
func ociLoader(g OpenedGrant) string {
	if g.Access != Execute {
		return ""
	}
	name := g.Target[strings.LastIndexByte(g.Target, '/')+1:]
	switch {
	case strings.HasPrefix(name, "ld-linux-x86-64.so"):
		return "/lib64/" + name
	case strings.HasPrefix(name, "ld-linux-aarch64.so"), strings.HasPrefix(name, "ld-musl-"):
		return "/lib/" + name
	}
	return ""
}

// ociOrder ranks what a bind mount can say; of two grants on one object the wider holds.
func ociOrder(a Access) int {
	switch a {
	case Read:
		return 1
	case Execute:
		return 2
	case Device:
		return 3
	case Write, Scratch:
		return 4
	}
	return 0
}

// ociOptions are the mount options of a grant. Folders for reading are not noexec: that
// option also keeps libraries from being mapped, which a read grant allows.
func ociOptions(g OpenedGrant) []string {
	bind := "bind"
	if g.Kind == KindFolder {
		bind = "rbind"
	}
	switch g.Access {
	case Write, Scratch:
		return []string{bind, "rw", "nosuid", "nodev", "noexec"}
	case Device:
		return []string{bind, "rw", "nosuid", "noexec"}
	case Read, Execute:
	}
	return []string{bind, "ro", "nosuid", "nodev"}
}

// ociSupervisorNotes say what a supervised plan lacks without its supervisor. The filter
// hands calls to one (SCMP_ACT_NOTIFY), so runtimes refuse the file until
// linux.seccomp.listenerPath names an agent that decides on them.
func ociSupervisorNotes(p Plan) []string {
	var notes []string
	if p.Guard != nil {
		notes = append(notes, "guard: nobody reads the server's messages there; its rules hold under stockade alone")
	}
	if !p.Mediated() {
		return notes
	}
	notes = append(notes, "supervisor: the filter asks one about each connection (SCMP_ACT_NOTIFY); set linux.seccomp.listenerPath to an agent that answers by the rules noted here, or run it with stockade")
	if p.Network.Egress == EgressRules {
		rules := make([]string, 0, len(p.Network.Rules.Rules)+1)
		if p.Network.Rules.Mode == egress.Public {
			rules = append(rules, egress.Public.String())
		}
		for _, r := range p.Network.Rules.Rules {
			text := r.String()
			if r.Host != "" {
				text += " (names: " + r.Names.String()
				if r.Addresses == egress.AnyAddress {
					text += ", addresses: " + r.Addresses.String()
				}
				text += ")"
			}
			rules = append(rules, text)
		}
		notes = append(notes, "network: the server may reach only "+strings.Join(rules, ", ")+"; here the machine's network is shared as it is")
	}
	for _, g := range p.Network.Unix {
		notes = append(notes, fmt.Sprintf("unix socket %q: in the jail the object at the start, here what the path names when it is mounted", g.Path))
	}
	return notes
}

// ociNotes lists what the specification has no words for.
func ociNotes(p Plan, opened []OpenedGrant) []string {
	notes := []string{
		"Landlock: runtime-spec has no section for it; the grants are bind mounts here, so what is not granted is absent instead of refused",
		"read grants: a mount cannot allow reading and mapping a file while refusing to execute it; nothing keeps the server from starting programs below its read-only mounts",
		"descriptors: closing everything above 2 is left to the runtime",
		"objects: the jail holds the object that a path named at the start; a mount is looked up again by the runtime",
		"environment: names only; the values are withheld and have to be filled in",
		"/proc: granted file by file in the jail, mounted whole here, in a PID namespace of its own",
		"process.user: has to be a user that may reach the mounts",
		"root: make an empty folder \"rootfs\" beside this file",
		"links: grants are real paths, and the root has no links; make those in it by which programs ask for libraries (libstdc++.so.6 for libstdc++.so.6.0.30)",
	}
	if len(p.Argv) > 0 && p.Argv[0] != p.File {
		notes = append(notes, fmt.Sprintf("process.args: in the jail the program %q is told the name %q", p.File, p.Argv[0]))
	}
	for _, f := range [...]struct{ what, path string }{{"home", p.Home.Path}, {"temporary folder", p.Tmp.Path}} {
		if f.path != "" {
			notes = append(notes, fmt.Sprintf("private %s: stockade makes %q with mode 0700 at each start; here it has to exist", f.what, f.path))
		}
	}
	if p.Network.Egress == EgressNone && len(p.Network.Listen) > 0 {
		notes = append(notes, fmt.Sprintf("network: binding only the TCP ports %v is Landlock's; here any port of the machine's network can be bound", p.Network.Listen))
	}
	notes = append(notes, ociSupervisorNotes(p)...)
	for _, g := range opened {
		if g.State == Skipped {
			notes = append(notes, fmt.Sprintf("optional %q: absent, so not mounted", g.Path))
		}
	}
	return notes
}
