package sandbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/sandbox"
	"stockade/seccomp"
)

// ociPlan is a plan with one of everything that the export has to say.
func ociPlan() sandbox.Plan {
	return sandbox.Plan{
		Name: "example", File: "/usr/bin/node", Argv: []string{"node", "/srv/server/index.js", "/home/me/project"},
		Dir: "/home/me/project", Env: []string{"HOME=/home/me/.local/share/stockade/homes/example", "TOKEN=s3cret=x", "EMPTY="},
		Home:   sandbox.Folder{Path: "/home/me/.local/share/stockade/homes/example"},
		Tmp:    sandbox.Folder{Path: "/home/me/.cache/stockade/runs/1-2-3"},
		Limits: sandbox.Limits{OpenFiles: 1024, FileSize: 1 << 30, Memory: 2 << 30, Processes: 256},
	}
}

func opened(path string, access sandbox.Access, kind sandbox.Kind) sandbox.OpenedGrant {
	return sandbox.OpenedGrant{Grant: sandbox.Grant{Path: path, Access: access}, Target: path, Kind: kind, State: sandbox.Granted}
}

func TestOCIProcess(t *testing.T) {
	spec, _, err := sandbox.OCI(ociPlan(), nil)
	if err != nil {
		t.Fatal(err)
	}
	umask := uint32(0o077)
	want := &specs.Process{
		User:            specs.User{Umask: &umask},
		Args:            []string{"/usr/bin/node", "/srv/server/index.js", "/home/me/project"},
		Env:             []string{"HOME=", "TOKEN=", "EMPTY="},
		Cwd:             "/home/me/project",
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		Rlimits: []specs.POSIXRlimit{
			{Type: "RLIMIT_CORE", Hard: 1, Soft: 1},
			{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024},
			{Type: "RLIMIT_FSIZE", Hard: 1 << 30, Soft: 1 << 30},
		},
	}
	if diff := cmp.Diff(want, spec.Process); diff != "" {
		t.Error(diff)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "s3cret") {
		t.Error("the value of a variable is exported")
	}
}

func TestOCIMounts(t *testing.T) {
	link := opened("/lib64/ld-linux-x86-64.so.2", sandbox.Execute, sandbox.KindFile)
	link.Target = "/usr/lib/x86_64-linux-gnu/ld-2.36.so"
	musl := opened("/opt/musl/ld-musl-x86_64.so.1", sandbox.Execute, sandbox.KindFile)
	home := opened("/home/me/.local/share/stockade/homes/example", sandbox.Scratch, sandbox.KindFolder)
	home.State = sandbox.Pending
	absent := opened("/home/me/.gitconfig", sandbox.Read, sandbox.KindAny)
	absent.State, absent.Target = sandbox.Skipped, ""
	grants := []sandbox.OpenedGrant{
		opened("/usr/lib/node", sandbox.Read, sandbox.KindFolder),
		opened("/usr/bin/node", sandbox.Execute, sandbox.KindFile),
		link, home, absent, musl,
		opened("/home/me/project", sandbox.Write, sandbox.KindFolder),
		opened("/home/me/project", sandbox.Read, sandbox.KindFolder),
		opened("/dev/null", sandbox.Device, sandbox.KindDevice),
		opened("/dev/pts/3", sandbox.Device, sandbox.KindDevice),
		opened("/proc/meminfo", sandbox.Read, sandbox.KindFile),
		opened("/process", sandbox.Read, sandbox.KindFile),
	}
	spec, notes, err := sandbox.OCI(ociPlan(), grants)
	if err != nil {
		t.Fatal(err)
	}
	bind := func(at, source string, options ...string) specs.Mount {
		return specs.Mount{Destination: at, Type: "bind", Source: source, Options: options}
	}
	want := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"}},
		bind("/dev/pts/3", "/dev/pts/3", "bind", "rw", "nosuid", "noexec"),
		bind(home.Path, home.Path, "rbind", "rw", "nosuid", "nodev", "noexec"),
		bind("/home/me/project", "/home/me/project", "rbind", "rw", "nosuid", "nodev", "noexec"),
		bind("/lib/ld-musl-x86_64.so.1", musl.Path, "bind", "ro", "nosuid", "nodev"),
		bind(link.Path, link.Target, "bind", "ro", "nosuid", "nodev"),
		bind(musl.Path, musl.Path, "bind", "ro", "nosuid", "nodev"),
		bind("/process", "/process", "bind", "ro", "nosuid", "nodev"),
		bind("/usr/bin/node", "/usr/bin/node", "bind", "ro", "nosuid", "nodev"),
		bind("/usr/lib/node", "/usr/lib/node", "rbind", "ro", "nosuid", "nodev"),
		bind(link.Target, link.Target, "bind", "ro", "nosuid", "nodev"),
	}
	if diff := cmp.Diff(want, spec.Mounts); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, `"/home/me/.gitconfig"`) }) {
		t.Errorf("no note about the absent optional path in %q", notes)
	}
}

func TestOCINetwork(t *testing.T) {
	tests := []struct {
		name    string
		network sandbox.Network
		filter  seccomp.Policy
		own     bool   // a network namespace of its own
		note    string // part of a note that has to be there
	}{
		{"none", sandbox.Network{}, seccomp.Policy{}, true, ""},
		{
			"listens",
			sandbox.Network{Listen: []uint16{8080}},
			seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed},
			false, "[8080]",
		},
		{"all", sandbox.Network{Egress: sandbox.EgressAll}, seccomp.Policy{Sockets: seccomp.InternetSockets}, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan := ociPlan()
			plan.Network, plan.Filter = tt.network, tt.filter
			spec, notes, err := sandbox.OCI(plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			own := slices.Contains(spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
			if own != tt.own {
				t.Errorf("own network namespace: %v, want %v", own, tt.own)
			}
			if tt.note != "" && !strings.Contains(strings.Join(notes, "\n"), tt.note) {
				t.Errorf("no note with %q in %q", tt.note, notes)
			}
		})
	}
}

func TestOCIFilterAndLimits(t *testing.T) {
	plan := ociPlan()
	spec, _, err := sandbox.OCI(plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := plan.Filter.Filter()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filter, spec.Linux.Seccomp); diff != "" {
		t.Error(diff)
	}
	memory, processes := int64(2<<30), int64(256)
	want := &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &memory, Swap: &memory}, Pids: &specs.LinuxPids{Limit: &processes}}
	if diff := cmp.Diff(want, spec.Linux.Resources); diff != "" {
		t.Error(diff)
	}
	plan.Limits = sandbox.Limits{}
	if spec, _, err = sandbox.OCI(plan, nil); err != nil || spec.Linux.Resources != nil {
		t.Errorf("a plan without limits has resources %v (%v)", spec.Linux.Resources, err)
	}
}

// A filter that cannot be described is an error and not an export without one.
func TestOCIRefusesUnknownCalls(t *testing.T) {
	plan := ociPlan()
	plan.Filter.Allow = []string{"no_such_call"}
	if spec, _, err := sandbox.OCI(plan, nil); err == nil {
		t.Errorf("got %v for a call that does not exist", spec)
	}
}
