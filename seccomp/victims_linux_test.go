package seccomp_test

import (
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

func TestMain(m *testing.M) {
	jailtest.Main(m, victims, installVictims, execVictims, supervisedVictims, listenVictims)
}

// operation prepares something while everything is still possible, and returns what is
// done in the jail.
type operation func(s *jailtest.Stage, args []string) func() jailtest.Outcome

var victims = jailtest.Victims{
	// operate: the policy as JSON ("" for no jail), the operation, its arguments.
	"operate": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		do := prepared(s, args[1:])
		if args[0] != "" {
			enter(s, args[0])
		}
		s.Begin()
		return do()
	},
}

// prepared finds an operation by its name and prepares it.
func prepared(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	prepare, known := operations[args[0]]
	if !known {
		prepare, known = socketOperations[args[0]]
	}
	if !known {
		s.Failf("no operation is called %q", args[0])
	}
	return prepare(s, args[1:])
}

// enter puts the policy's filter on the victim's thread and reads back that it is there.
func enter(s *jailtest.Stage, text string) {
	var policy seccomp.Policy
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		s.Failf("reading the policy: %v", err)
	}
	program, err := policy.Program()
	if err != nil {
		s.Failf("making the filter: %v", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		s.Failf("setting no_new_privs: %v", err)
	}
	if err := seccomp.Install(program); err != nil {
		s.Failf("%v", err)
	}
	if mode, err := seccomp.Active(); err != nil || mode != seccomp.ModeFilter {
		s.Failf("reading back the filter: mode %v, %v", mode, err)
	}
}

// outside is the policy of a victim without a jail.
const outside = ""

func inside(t *testing.T, policy seccomp.Policy) string {
	t.Helper()
	text, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func operate(t *testing.T, user jailtest.User, policy, operation string, args ...string) jailtest.Result {
	t.Helper()
	return jailtest.RunAs(t, user, "operate", append([]string{policy, operation}, args...)...)
}

// operateWith hands open files on as descriptors 3 and up.
func operateWith(t *testing.T, user jailtest.User, files []*os.File, policy, operation string, args ...string) jailtest.Result {
	t.Helper()
	return jailtest.Launch{User: user, Extra: files}.Run(t, "operate", append([]string{policy, operation}, args...)...)
}

// do makes one raw system call: a wrapper could try something else when it is refused.
func do(number uintptr, args ...uintptr) jailtest.Outcome {
	var a [6]uintptr
	copy(a[:], args)
	value, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return jailtest.Outcome{Errno: errno}
	}
	return jailtest.Outcome{Value: int64(value)}
}

// refused asserts an exact errno.
func refused(errno unix.Errno) func(*testing.T, jailtest.Result) {
	return func(t *testing.T, r jailtest.Result) {
		t.Helper()
		jailtest.WantErrno(t, r, errno)
	}
}

// works asserts success.
func works(t *testing.T, r jailtest.Result) {
	t.Helper()
	jailtest.WantOK(t, r)
}

// ends asserts that the kernel ended the process for the call.
func ends(t *testing.T, r jailtest.Result) {
	t.Helper()
	jailtest.WantSignal(t, r, unix.SIGSYS)
}
