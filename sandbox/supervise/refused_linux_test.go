package supervise_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
	"stockade/seccomp"
)

// refusing is a filter as a container's engine has it: one call fails, the others go on.
func refusing(number int, errno unix.Errno) seccomp.Program {
	return seccomp.Program{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: uint32(number)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
}

// calls are what a supervisor cannot be without.
var calls = map[string]int{
	"seccomp": unix.SYS_SECCOMP, "pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV, "recvfrom": unix.SYS_RECVFROM, "none": -1,
}

var ownVictims = jailtest.Victims{
	// forbidden: a call, an errno. It notes what a supervisor's start says.
	"forbidden": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		errno, err := strconv.Atoi(args[1])
		if err != nil {
			s.Failf("reading the errno: %v", err)
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			s.Failf("setting no_new_privs: %v", err)
		}
		if err := seccomp.Install(refusing(calls[args[0]], unix.Errno(errno))); err != nil {
			s.Failf("%v", err)
		}
		s.Begin()
		err = supervise.Probe()
		if err == nil {
			return jailtest.Outcome{Note: "nothing"}
		}
		wrong, is := errors.AsType[*supervise.ProbeError](err)
		if !is || !errors.Is(err, unix.Errno(errno)) {
			s.Failf("got %v", err)
		}
		return jailtest.Outcome{Note: wrong.Error()}
	},
}

// TestForbiddenCalls: what an outer jail forbids is the reason that the start is refused for.
// The first that is missing is named.
func TestForbiddenCalls(t *testing.T) {
	const outer, unknown = "an outer jail, such as a container's seccomp profile, forbids it", "the kernel does not know it, or an outer jail refuses it"
	tests := []struct {
		call  string
		errno unix.Errno
		want  string
	}{
		{"pidfd_getfd", unix.EPERM, "pidfd_getfd(2) on a child (Linux 5.6): " + outer},
		{"pidfd_getfd", unix.ENOSYS, "pidfd_getfd(2) on a child (Linux 5.6): " + unknown},
		{"pidfd_getfd", unix.EACCES, "pidfd_getfd(2) on a child (Linux 5.6): " + outer},
		{"pidfd_open", unix.ENOSYS, "pidfd_open(2) (Linux 5.3): " + unknown},
		{"process_vm_readv", unix.EPERM, "process_vm_readv(2) on a child (Linux 3.2): " + outer},
		{"recvfrom", unix.EPERM, "to know which addresses are this machine's (rtnetlink(7)): " + outer},
		{"none", unix.EPERM, ""},
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, tt := range tests {
			t.Run(tt.call+" "+unix.ErrnoName(tt.errno), func(t *testing.T) {
				r := jailtest.RunAs(t, user, "forbidden", tt.call, strconv.Itoa(int(tt.errno)))
				jailtest.WantOK(t, r)
				want := "supervising needs " + tt.want
				if tt.want == "" {
					want = "nothing"
				}
				if r.Outcome.Note != want {
					t.Errorf("got  %s\nwant %s", r.Outcome.Note, want)
				}
			})
		}
	})
}

// meanwhile is set for the inner part of [TestOwnMeanwhile].
const meanwhile = "STOCKADE_TEST_MEANWHILE"

// TestOwnMeanwhile is about a public address that becomes this machine's own between the
// decision and the connection. Here it is its own all along, in a network of the test, and the
// supervisor's first answers say that it is not.
func TestOwnMeanwhile(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := inNetwork(t, `ip link set lo up && ip address add 93.184.215.14/32 dev lo && exec "$0" "$@"`, program, "-test.run=^TestOwnMeanwhileInside$", "-test.v")
	cmd.Env = append(cmd.Env, meanwhile+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestOwnMeanwhileInside ")) || bytes.Contains(out, []byte("--- SKIP")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOwnMeanwhileInside(t *testing.T) {
	if os.Getenv(meanwhile) == "" {
		return // TestOwnMeanwhile runs it where the address is
	}
	open, datagrams := greet(t, "93.184.215.14:0").String(), receive(t, "93.184.215.14:0")
	rules := []string{"known.example:1-65535"} // which the world's hosts file has there
	run := func(after int, victim string, args ...string) jailtest.Result {
		w := internet(rules...)
		w.OwnAfter = after
		return w.run(t, jailtest.User{}, victim, args...)
	}
	for _, how := range []string{"blocking", "nonblocking"} {
		jailtest.WantOK(t, run(1000, "tcp", "v4", how, open))
		for _, after := range []int{0, 1} {
			r := run(after, "tcp", "v4", how, open)
			jailtest.WantErrno(t, r, unix.EACCES)
			wantDenied(t, r, "connect", "tcp "+open)
		}
	}
	jailtest.WantValue(t, run(1000, "udp", "v4", "connect", datagrams.at.String()), 8)
	r := run(1, "udp", "v4", "connect", datagrams.at.String())
	jailtest.WantErrno(t, r, unix.EACCES)
	wantDenied(t, r, "connect", "udp "+datagrams.at.String())
	if got := datagrams.take(t); len(got) != 1 {
		t.Errorf("came %q, want what was sent to somebody else's address alone", got)
	}
}
