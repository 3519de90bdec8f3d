package sandbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
)

// lyingToEnter and lyingToStart install a filter that answers success to one call without
// doing it, as a broken container or kernel might, and then enter or start the plan in
// args[1].
func lyingToEnter(s *jailtest.Stage, args []string) jailtest.Outcome {
	return lying(s, args, func(o *sandbox.Opened) error {
		_, err := sandbox.Enter(o)
		return err
	})
}

func lyingToStart(s *jailtest.Stage, args []string) jailtest.Outcome {
	return lying(s, args, func(o *sandbox.Opened) error {
		started, err := sandbox.Start(o, sandbox.Parent{})
		if err != nil {
			return err
		}
		if _, err := unix.Wait4(started.PID, nil, 0, nil); err != nil {
			s.Failf("waiting: %v", err)
		}
		return nil
	})
}

func lying(s *jailtest.Stage, args []string, begin func(*sandbox.Opened) error) jailtest.Outcome {
	var p sandbox.Plan
	if err := json.Unmarshal([]byte(args[1]), &p); err != nil {
		s.Failf("reading the plan: %v", err)
	}
	p.Argv = []string{p.File, "-test.run=^$"} // for the way that executes it
	if err := unix.Dup2(2, leakedDescriptor); err != nil {
		s.Failf("leaving a descriptor open: %v", err)
	}
	o, err := sandbox.Open(p)
	if err != nil {
		s.Failf("opening: %v", err)
	}
	number := uint32(number(s, args[0]))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		s.Failf("setting no_new_privs: %v", err)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // errno 0
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		s.Failf("installing the lie: %v", errno)
	}
	s.Begin()
	if err = begin(o); err == nil {
		return jailtest.Outcome{Note: "entered"}
	}
	return jailtest.Outcome{Note: err.Error()}
}

// TestFalseSuccessIsNoticed: a kernel that says yes and does nothing must not get a server
// started.
func TestFalseSuccessIsNoticed(t *testing.T) {
	calls := map[string]uintptr{
		"landlock_restrict_self": unix.SYS_LANDLOCK_RESTRICT_SELF,
		"seccomp":                unix.SYS_SECCOMP,
		"capset":                 unix.SYS_CAPSET,
		"prlimit64":              unix.SYS_PRLIMIT64,
		"umask":                  unix.SYS_UMASK,
		"close_range":            unix.SYS_CLOSE_RANGE,
		"landlock_add_rule":      unix.SYS_LANDLOCK_ADD_RULE,
	}
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		for name, nr := range calls {
			t.Run(name, func(t *testing.T) {
				g := newGround(t, user)
				plan, err := json.Marshal(g.plan)
				if err != nil {
					t.Fatal(err)
				}
				r := jailtest.RunAs(t, user.User, "lying to "+g.victim, decimal(int(nr)), string(plan))
				jailtest.WantOK(t, r)
				// Rules that were not added make a tighter jail, and an ordinary user has
				// no capabilities that capset would have to take.
				stricter := name == "landlock_add_rule" || name == "capset" && user.Name == "ordinary"
				// Without rules the server itself may not be executed, which Start sees.
				entered := r.Outcome.Note == "entered" || strings.HasPrefix(r.Outcome.Note, "executing ")
				if entered != stricter {
					t.Errorf("entered %t: %s", entered, r.Outcome.Note)
				}
			})
		}
	})
}
