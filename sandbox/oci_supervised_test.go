package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/seccomp"
)

// TestOCISupervised: what only a supervisor decides is handed to one by the filter, and
// said in the notes.
func TestOCISupervised(t *testing.T) {
	rules, err := egress.ParseRule("a.example")
	if err != nil {
		t.Fatal(err)
	}
	socket := []sandbox.UnixGrant{{Path: "/srv/app.sock"}}
	tests := []struct {
		name    string
		network sandbox.Network
		filter  seccomp.Policy
		own     bool // a network namespace of its own
		notes   []string
	}{
		{
			"rules",
			sandbox.Network{Egress: sandbox.EgressRules, Rules: egress.Policy{Mode: egress.Public, Rules: rules}, Unix: socket},
			seccomp.Policy{Supervision: seccomp.SupervisedInternet},
			false,
			[]string{"listenerPath", "the server may reach only public, a.example:443 (names: strict)", `unix socket "/srv/app.sock"`},
		},
		{
			"sockets",
			sandbox.Network{Unix: socket},
			seccomp.Policy{Supervision: seccomp.SupervisedUnix},
			true,
			[]string{"listenerPath", `unix socket "/srv/app.sock"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := ociPlan()
			p.Network, p.Filter = tt.network, tt.filter
			spec, notes, err := sandbox.OCI(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.notes {
				if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
					t.Errorf("no note has %q:\n%s", want, strings.Join(notes, "\n"))
				}
			}
			own := slices.ContainsFunc(spec.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.NetworkNamespace })
			if own != tt.own {
				t.Errorf("a network of its own: %v, want %v", own, tt.own)
			}
			if !slices.ContainsFunc(spec.Mounts, func(m specs.Mount) bool { return m.Destination == "/srv/app.sock" && m.Type == "bind" }) {
				t.Error("the socket is not mounted")
			}
			asked := slices.ContainsFunc(spec.Linux.Seccomp.Syscalls, func(s specs.LinuxSyscall) bool {
				return s.Action == specs.ActNotify && slices.Contains(s.Names, "connect")
			})
			if !asked || spec.Linux.Seccomp.ListenerPath != "" {
				t.Errorf("connect asks an agent: %v, whose path is %q", asked, spec.Linux.Seccomp.ListenerPath)
			}
		})
	}
	_, notes, err := sandbox.OCI(ociPlan(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "supervisor") }) {
		t.Error("a plan without a supervisor has notes about one")
	}
}
