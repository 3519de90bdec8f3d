package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/seccomp"
)

func TestDiff(t *testing.T) {
	tests := []struct {
		name, a, b string
		want       []string
	}{
		{"nothing", "", "", nil},
		{"read", "", "filesystem: {read: [/x]}", []string{"filesystem: read /x added (widening)"}},
		{"no read", "filesystem: {read: [/x]}", "", []string{"filesystem: read /x removed (narrowing)"}},
		{"write for read", "filesystem: {read: [/x]}", "filesystem: {write: [/x]}", []string{"filesystem: write /x added (widening)", "filesystem: read /x removed (neutral)"}},
		{"read for write", "filesystem: {write: [/x]}", "filesystem: {read: [/x]}", []string{"filesystem: read /x added (neutral)", "filesystem: write /x removed (narrowing)"}},
		{"a folder below may be a link", "filesystem: {write: [/x]}", "filesystem: {write: [/x/y]}", []string{"filesystem: write /x/y added (widening)", "filesystem: write /x removed (narrowing)"}},
		{"a name that only begins alike", "filesystem: {read: [/x]}", "filesystem: {read: [/xy]}", []string{"filesystem: read /xy added (widening)", "filesystem: read /x removed (narrowing)"}},
		{"broad", "filesystem: {read: [/x]}", "filesystem: {read: [{path: /x, broad: true, reason: r}]}", []string{"filesystem: read /x: broad changed (widening)"}},
		{"not broad", "filesystem: {read: [{path: /x, broad: true, reason: r}]}", "filesystem: {read: [/x]}", []string{"filesystem: read /x: broad changed (narrowing)"}},
		{"another reason", "filesystem: {read: [{path: /x, broad: true, reason: r}]}", "filesystem: {read: [{path: /x, broad: true, reason: s}]}", nil},
		{"broad write read broadly", "filesystem: {write: [/x]}", "filesystem: {read: [{path: /x, broad: true, reason: r}]}", []string{"filesystem: read /x added (widening)", "filesystem: write /x removed (narrowing)"}},
		{"roots as folders", "filesystem: {write: [\"${roots}\"]}\nroots: [/x]", "filesystem: {write: [/x]}", []string{"filesystem: write /x: any kind of file changed (widening)"}},
		{"program", "", "filesystem: {execute: [/opt/x]}", []string{"filesystem: execute /opt/x added (widening)", "environment: variable PATH changed (widening)"}},
		{"home", "", "filesystem: {home: real}", []string{"filesystem: private home removed (narrowing)", "environment: variable HOME changed (widening)"}},
		{"private home", "filesystem: {home: real}", "", []string{"filesystem: private home added (widening)", "environment: variable HOME changed (widening)"}},
		{"another name", "", "name: q", []string{"filesystem: private home q++srv+fs+dist+index.js changed (widening)"}},
		{"name in a value", "environment: {set: {A: \"${private}/x\"}}", "name: q\nenvironment: {set: {A: \"${private}/x\"}}", []string{"filesystem: private home q++srv+fs+dist+index.js changed (widening)"}},
		{"egress", "", "network: {egress: all}", []string{
			"filesystem: read /etc/resolv.conf added (widening)", "filesystem: read /etc/hosts added (widening)", "filesystem: read /etc/nsswitch.conf added (widening)",
			"filesystem: read /etc/host.conf added (widening)", "filesystem: read /etc/gai.conf added (widening)", "filesystem: read /etc/services added (widening)",
			"filesystem: read /etc/protocols added (widening)", "filesystem: read /etc/ssl/certs added (widening)", "filesystem: read /etc/pki/tls/certs added (widening)",
			"filesystem: read /etc/pki/ca-trust/extracted added (widening)", "filesystem: read /usr/share/ca-certificates added (widening)",
			"filesystem: read /usr/local/share/ca-certificates added (widening)", "network: egress all changed (widening)", "syscalls: sockets changed (widening)",
		}},
		{"no egress", "network: {egress: all}\nfilesystem: {optional: [/etc/resolv.conf]}", "network: {egress: none}\nfilesystem: {optional: [/etc/resolv.conf]}", []string{
			"filesystem: read /etc/hosts removed (narrowing)", "filesystem: read /etc/nsswitch.conf removed (narrowing)", "filesystem: read /etc/host.conf removed (narrowing)",
			"filesystem: read /etc/gai.conf removed (narrowing)", "filesystem: read /etc/services removed (narrowing)", "filesystem: read /etc/protocols removed (narrowing)",
			"filesystem: read /etc/ssl/certs removed (narrowing)", "filesystem: read /etc/pki/tls/certs removed (narrowing)", "filesystem: read /etc/pki/ca-trust/extracted removed (narrowing)",
			"filesystem: read /usr/share/ca-certificates removed (narrowing)", "filesystem: read /usr/local/share/ca-certificates removed (narrowing)",
			"network: egress none changed (narrowing)", "syscalls: sockets changed (narrowing)",
		}},
		{"listen", "network: {listen: [80]}", "network: {listen: [81]}", []string{"network: listen 81 added (widening)", "network: listen 80 removed (narrowing)"}},
		{"first port", "", "network: {listen: [80]}", []string{"network: listen 80 added (widening)", "syscalls: sockets changed (widening)", "syscalls: listening changed (widening)"}},
		{"last port", "network: {listen: [80]}", "", []string{"network: listen 80 removed (narrowing)", "syscalls: sockets changed (narrowing)", "syscalls: listening changed (narrowing)"}},
		{"variables", "environment: {pass: [TERM], set: {A: hunter2}}", "environment: {secrets: [TOKEN], set: {A: hunter3}}", []string{
			"environment: variable A changed (widening)", "environment: variable TOKEN added (widening)", "environment: variable TERM removed (narrowing)",
		}},
		{"calls", "syscalls: {allow: [bpf], deny: [getcwd]}", "syscalls: {allow: [acct], deny: [getppid]}", []string{
			"syscalls: allow acct added (widening)", "syscalls: allow bpf removed (narrowing)", "syscalls: deny getppid added (narrowing)", "syscalls: deny getcwd removed (widening)",
		}},
		{"metadata", "", "filesystem: {metadata: refuse}", []string{"syscalls: answer to metadata calls changed (neutral)"}},
		{"limits", "limits: {open-files: 64, memory: 1GiB, processes: 8}", "limits: {open-files: 128, memory: 512MiB, file-size: 1MiB}", []string{
			"limits: open-files 64 to 128 changed (widening)", "limits: file-size 1048576 added (narrowing)", "limits: memory 1073741824 to 536870912 changed (narrowing)", "limits: processes 8 removed (widening)",
		}},
		{"guard", "", "guard: {pins: off}", []string{"guard: guard added (narrowing)"}},
		{"no guard", "guard: {pins: off, tools: [a]}", "", []string{"guard: guard removed (widening)"}},
		{"guard tightened", "guard: {pins: off, sampling: allow, calls-per-minute: 9}", "guard: {pins: off, tools: [], calls-per-minute: 8, call-timeout: 1s, message-size: 1MiB}", []string{
			"guard: list of tools added (narrowing)", "guard: calls-per-minute changed (narrowing)", "guard: call-timeout added (narrowing)", "guard: message-size changed (narrowing)", "guard: sampling deny changed (narrowing)",
		}},
		{"guard loosened", "guard: {pins: off, tools: [a], result-size: 1MiB, concurrent-calls: 2}", "guard: {pins: off, tools: [a, b], concurrent-calls: 3, roots: allow, message-size: 64MiB}", []string{
			"guard: tools b added (widening)", "guard: concurrent-calls changed (widening)", "guard: message-size changed (widening)", "guard: result-size removed (widening)", "guard: roots allow changed (widening)",
		}},
		{"guard of any tool", "guard: {pins: off, tools: [a]}", "guard: {pins: off}", []string{"guard: list of tools removed (widening)"}},
		{"missing", "missing: {allow: [scope-signals]}", "missing: {allow: [landlock-tcp]}", []string{"missing: layer landlock-tcp added (widening)", "missing: layer scope-signals removed (narrowing)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := mustCompile(t, parse(t, tt.a+"\n"), nil), mustCompile(t, renamed(t, tt.b), nil)
			changes := profiles.Diff(a, b)
			var got, wider []string
			for _, c := range changes {
				got = append(got, c.String())
				if c.Effect == profiles.Widening {
					wider = append(wider, c.String())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			var narrower []string
			for _, c := range profiles.Narrower(b, a) {
				narrower = append(narrower, c.String())
			}
			if diff := cmp.Diff(wider, narrower); diff != "" {
				t.Errorf("Narrower is not the widening changes (-want +got):\n%s", diff)
			}
			if strings.Contains(strings.Join(got, "\n"), "hunter") {
				t.Error("a change holds a value")
			}
		})
	}
}

// renamed parses a text that may have a name of its own.
func renamed(t *testing.T, text string) *profiles.Profile {
	t.Helper()
	rest, named := strings.CutPrefix(text, "name: q")
	p := parse(t, rest+"\n")
	if named {
		p.Name.Value = "q"
	}
	return p
}

// TestDiffOfPlans has the fields that no profile changes.
func TestDiffOfPlans(t *testing.T) {
	whole := mustCompile(t, profiles.Empty(), nil)
	base := whole.Plan
	tests := []struct {
		name   string
		change func(*sandbox.Plan)
		want   string
	}{
		{"file", func(p *sandbox.Plan) { p.File = "/bin/sh" }, "program: program /bin/sh changed (widening)"},
		{"arguments", func(p *sandbox.Plan) { p.Argv = []string{"x"} }, "program: arguments changed (widening)"},
		{"folder", func(p *sandbox.Plan) { p.Dir = "/" }, "program: working folder / changed (widening)"},
		{"guarded place lost", func(p *sandbox.Plan) { p.Guarded = p.Guarded[1:] }, "guarded: place / (rule 0) removed (widening)"},
		{"guarded place added", func(p *sandbox.Plan) {
			p.Guarded = append(slices.Clip(p.Guarded), sandbox.Guarded{Path: "/x"})
		}, "guarded: place /x (rule 0) added (narrowing)"},
		{"truncation", func(p *sandbox.Plan) { p.Filter.Truncation = seccomp.TruncationByFilter }, "syscalls: truncation by the filter changed (narrowing)"},
		{"temporary folder", func(p *sandbox.Plan) {
			p.Env = append([]string(nil), p.Env...)
			p.Grants = append([]sandbox.Grant(nil), p.Grants...)
			for i := range p.Env {
				p.Env[i] = strings.ReplaceAll(p.Env[i], p.Tmp.Path, "/t")
			}
			p.Grants[1].Path, p.Tmp.Path = "/t", "/t"
		}, ""},
		{"private home", func(p *sandbox.Plan) {
			p.Env = append([]string(nil), p.Env...)
			p.Grants = append([]sandbox.Grant(nil), p.Grants...)
			for i := range p.Env {
				p.Env[i] = strings.ReplaceAll(p.Env[i], p.Home.Path, "/other-home")
			}
			p.Grants[0].Path, p.Home.Path = "/other-home", "/other-home"
		}, "filesystem: private home other-home changed (widening)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other := base
			tt.change(&other)
			var got []string
			for _, c := range profiles.Diff(whole, profiles.Resolved{Profile: whole.Profile, Plan: other}) {
				got = append(got, c.String())
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDiffOfItself: a plan has no change to itself.
func TestDiffOfItself(t *testing.T) {
	for _, name := range profiles.BuiltinNames() {
		b, _ := profiles.Builtin(name)
		p, has := provided(t, b)
		r := mustCompile(t, p, has)
		if changes := profiles.Diff(r, r); len(changes) > 0 {
			t.Errorf("%s differs from itself: %v", name, changes)
		}
	}
}
