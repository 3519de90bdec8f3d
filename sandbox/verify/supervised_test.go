package verify_test

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/verify"
	"stockade/seccomp"
)

func policy(t *testing.T, mode egress.Mode, texts ...string) egress.Policy {
	t.Helper()
	p := egress.Policy{Mode: mode}
	for _, text := range texts {
		rules, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, rules...)
	}
	return p
}

// networkOf lists the network checks of a plan as "operation path: answer".
func networkOf(p sandbox.Plan, m verify.Machine) []string {
	ops := []verify.Op{
		verify.OpConnect, verify.OpConnectTo, verify.OpSendTo, verify.OpFastOpen, verify.OpLookUp, verify.OpConnectUnix,
		verify.OpAbstractUnix, verify.OpOwnUnix, verify.OpListenAnywhere, verify.OpListen,
	}
	var out []string
	for _, c := range verify.Checks(p, m) {
		if slices.Contains(ops, c.Op) {
			out = append(out, string(c.Op)+" "+c.Path+": "+c.Want)
		}
	}
	return out
}

// TestSupervisedChecks: what is tried follows from what the rules refuse, and is aimed at
// this machine alone.
func TestSupervisedChecks(t *testing.T) {
	unixChecks := []string{"own-unix /t/verify.sock: ", "connect-unix /victim.sock: EACCES", "abstract-unix : EACCES"}
	internet := []string{
		"connect-to 127.83.84.75:9: EACCES", "send-to 127.83.84.75:9: EACCES", "connect-to 127.0.0.1:1: EACCES", "send-to 127.0.0.1:1: EACCES",
		"connect-to [::1]:9: EACCES", "send-to [::1]:9: EACCES", "connect-to [::ffff:127.83.84.75]:9: EACCES", "send-to [::ffff:127.83.84.75]:9: EACCES",
		"fast-open 127.83.84.75:9: EACCES",
	}
	const lookUp, listen = "look-up 127.83.84.75:53: NXDOMAIN", "listen-anywhere : EACCES"
	rules := func(p egress.Policy) sandbox.Network {
		return sandbox.Network{Egress: sandbox.EgressRules, Rules: p}
	}
	all := seccomp.Policy{Sockets: seccomp.InternetSockets, Supervision: seccomp.SupervisedInternet}
	grant := []sandbox.UnixGrant{{Path: "/srv/s"}}
	tests := []struct {
		name    string
		network sandbox.Network
		filter  seccomp.Policy
		want    []string
	}{
		{"list", rules(policy(t, egress.List, "a.example")), all, slices.Concat(unixChecks, internet, []string{lookUp, listen})},
		{"public", rules(policy(t, egress.Public)), all, slices.Concat(unixChecks, internet, []string{listen})},
		{"loopback", rules(policy(t, egress.List, "127.0.0.0/8:1-65535")), all, slices.Concat(unixChecks, internet[4:6], internet[8:], []string{listen})},
		{"everything", rules(policy(t, egress.List, "0.0.0.0/0:1-65535", "[::/0]:1-65535")), all, slices.Concat(unixChecks, internet[8:], []string{listen})},
		{"sockets", sandbox.Network{Unix: grant}, seccomp.Policy{Supervision: seccomp.SupervisedUnix}, unixChecks},
		{
			"sockets and a port",
			sandbox.Network{Unix: grant, Listen: []uint16{80}},
			seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed, Supervision: seccomp.SupervisedUnix},
			append(slices.Clip(unixChecks), "connect-to 127.0.0.1:9: EACCES", "listen : "),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := sandbox.Plan{Network: tt.network, Filter: tt.filter, Tmp: sandbox.Folder{Path: "/t"}}
			if diff := cmp.Diff(tt.want, networkOf(p, verify.Machine{Socket: "/victim.sock", IPv6: verify.IPv6Present})); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSupervisedChecksProveNothingOutside: without a jail, what has to be refused is not
// refused in that way.
func TestSupervisedChecksProveNothingOutside(t *testing.T) {
	dir := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	p := sandbox.Plan{
		Network: sandbox.Network{Egress: sandbox.EgressRules, Rules: policy(t, egress.List, "a.example")},
		Filter:  seccomp.Policy{Supervision: seccomp.SupervisedInternet}, Tmp: sandbox.Folder{Path: dir},
	}
	tried := 0
	for _, c := range verify.Checks(p, verify.Machine{Socket: socket.Addr().String()}) {
		switch c.Op {
		case verify.OpConnectTo, verify.OpSendTo, verify.OpFastOpen, verify.OpLookUp, verify.OpConnectUnix, verify.OpAbstractUnix, verify.OpListenAnywhere:
			if r := verify.Try(c); r.Outcome == verify.Holds {
				t.Errorf("%s holds without a jail (%q)", c.Name, r.Got)
			}
		case verify.OpOwnUnix:
			if r := verify.Try(c); r.Outcome != verify.Holds {
				t.Errorf("%s does not work outside: %s", c.Name, r.Got)
			}
		default:
			continue
		}
		tried++
	}
	if tried != 10 {
		t.Errorf("%d checks were tried", tried)
	}
	if failed := verify.TryOutside([]verify.Check{{Name: "x", Op: verify.OpConnectUnix, Path: socket.Addr().String(), Outside: verify.WorksOutside}}); len(failed) > 0 {
		t.Errorf("the socket cannot be reached outside: %+v", failed)
	}
}

// TestLookUpReadsAnswers: only an answer to the question counts.
func TestLookUpReadsAnswers(t *testing.T) {
	answers := map[string]struct {
		change func(query []byte) []byte
		got    string
	}{
		"NXDOMAIN": {func(q []byte) []byte { q[2], q[3] = 0x81, 0x83; return q }, "NXDOMAIN"},
		"refused":  {func(q []byte) []byte { q[2], q[3] = 0x81, 0x85; return q }, "REFUSED"},
		"success":  {func(q []byte) []byte { q[2], q[3] = 0x81, 0x80; return q }, ""},
		"server":   {func(q []byte) []byte { q[2], q[3] = 0x81, 0x82; return q }, "response code 2"},
		"query":    {func(q []byte) []byte { q[3] = 3; return q }, "an answer to something else"},
		"other id": {func(q []byte) []byte { q[0], q[2], q[3] = q[0]+1, 0x81, 0x83; return q }, "an answer to something else"},
		"short":    {func(q []byte) []byte { return q[:11] }, "an answer to something else"},
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			server, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			go func() {
				query := make([]byte, 512)
				n, from, err := server.ReadFrom(query)
				if err == nil {
					_, _ = server.WriteTo(a.change(query[:n]), from)
				}
			}()
			r := verify.Try(verify.Check{Op: verify.OpLookUp, Path: server.LocalAddr().String(), Names: []string{"name.invalid"}, Want: "-"})
			if r.Got != a.got {
				t.Errorf("got %q, want %q", r.Got, a.got)
			}
		})
	}
}
