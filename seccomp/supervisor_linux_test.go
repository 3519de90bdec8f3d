package seccomp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// answered is the errno with which the tests' supervisor answers every call. No call that
// they make has it from the kernel.
const answered = unix.ENOANO

// Descriptors of a supervised victim: what it is given (see [useSocket]), and its line to
// the supervisor.
const (
	givenFD  = 3
	reportFD = 4
	readyFD  = 5
)

// supervisedVictims are under a filter with a listener, which the test takes.
var supervisedVictims = jailtest.Victims{
	// supervised: the policy as JSON, the operation, its arguments.
	"supervised": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		do := prepared(s, args[1:])
		var policy seccomp.Policy
		if err := json.Unmarshal([]byte(args[0]), &policy); err != nil {
			s.Failf("reading the policy: %v", err)
		}
		program, err := policy.Program()
		if err != nil {
			s.Failf("making the filter: %v", err)
		}
		listenHere(s, program)
		s.Begin()
		return do()
	},
	// plain supervised: like supervised, with a filter that lets connect(2) wait and allows
	// everything else.
	"plain supervised": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		do := prepared(s, args[1:])
		listenHere(s, seccomp.Program{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CONNECT},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		})
		s.Begin()
		return do()
	},
}

// listenHere installs a program with a listener, and waits until the test has it.
func listenHere(s *jailtest.Stage, program seccomp.Program) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		s.Failf("setting no_new_privs: %v", err)
	}
	listener, err := seccomp.Listen(program)
	if err != nil {
		s.Failf("%v", err)
	}
	if _, err := unix.Write(reportFD, fmt.Appendf(nil, "%d %d %d\n", unix.Getpid(), unix.Gettid(), listener)); err != nil {
		s.Failf("telling the listener's number: %v", err)
	}
	if n, err := unix.Read(readyFD, make([]byte, 1)); err != nil || n != 1 {
		s.Failf("waiting for the supervisor: %d bytes, %v", n, err)
	}
	if err := unix.Close(listener); err != nil {
		s.Failf("closing the listener: %v", err)
	}
}

// notification is struct seccomp_notif, and response struct seccomp_notif_resp
// (linux/seccomp.h).
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// supervisor is the test's end of a listener.
type supervisor struct {
	listener int
	pid, tid int
	calls    []int32 // numbers of the calls that waited
	// during is called while a call waits; nil for nothing.
	during func(s *supervisor, n notification) error
}

func (s *supervisor) ioctl(request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// valid says whether a call still waits for its answer.
func (s *supervisor) valid(id uint64) error {
	return s.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id))
}

// take reads where the listener is and takes it.
func (s *supervisor) take(line string) error {
	var number int
	if _, err := fmt.Sscan(line, &s.pid, &s.tid, &number); err != nil {
		return fmt.Errorf("reading %q: %w", line, err)
	}
	process, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		return fmt.Errorf("opening the victim: %w", err)
	}
	defer unix.Close(process)
	if s.listener, err = unix.PidfdGetfd(process, number, 0); err != nil {
		return fmt.Errorf("taking the listener: %w", err)
	}
	return nil
}

// serve answers every call until nobody is left who could make one.
func (s *supervisor) serve() error {
	for {
		poll := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("waiting for calls: %w", err)
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		var n notification
		if err := s.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("receiving a call: %w", err)
		}
		s.calls = append(s.calls, n.number)
		if s.during != nil {
			if err := s.during(s, n); err != nil {
				return err
			}
		}
		answer := response{id: n.id, errno: -int32(answered)}
		if err := s.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)); err != nil {
			return fmt.Errorf("answering a call: %w", err)
		}
	}
}

// supervision is one run of a supervised victim.
type supervision struct {
	victim string // "" for "supervised"
	policy seccomp.Policy
	given  *os.File // descriptor 3; nil for the null device
	leaves bool     // the supervisor closes the listener before the operation
	during func(s *supervisor, n notification) error
}

// run starts the victim, answers its calls, and returns how it ended and the numbers of the
// calls that waited.
func (v supervision) run(t *testing.T, user jailtest.User, operation string, args ...string) (jailtest.Result, []int32) {
	t.Helper()
	needListener(t)
	given := v.given
	if given == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		given = null
	}
	reports, report, ready, readied := pipes(t)
	s := &supervisor{during: v.during}
	done := make(chan error, 1)
	go func() {
		defer readied.Close()
		done <- func() error {
			line, err := bufio.NewReader(reports).ReadString('\n')
			if err != nil {
				return fmt.Errorf("waiting for the victim: %w", err)
			}
			if err := s.take(line); err != nil {
				return err
			}
			if !v.leaves {
				defer unix.Close(s.listener)
			} else if err := unix.Close(s.listener); err != nil {
				return err
			}
			if _, err := readied.WriteString("."); err != nil {
				return fmt.Errorf("telling the victim: %w", err)
			}
			if v.leaves {
				return nil
			}
			return s.serve()
		}()
	}()
	victim := v.victim
	if victim == "" {
		victim = "supervised"
	}
	result := jailtest.Launch{User: user, Extra: []*os.File{given, report, ready}}.Run(
		t, victim, append([]string{inside(t, v.policy), operation}, args...)...)
	report.Close()
	if err := <-done; err != nil {
		t.Fatalf("the supervisor: %v\n%s", err, result)
	}
	return result, s.calls
}

// pipes makes the victim's line to its supervisor, and the one back.
func pipes(t *testing.T) (reports, report, ready, readied *os.File) {
	t.Helper()
	reports, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, readied, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, file := range []*os.File{reports, report, ready, readied} {
			file.Close()
		}
	})
	return reports, report, ready, readied
}

// needListener asks for what [seccomp.Listen] needs.
func needListener(t *testing.T) {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "supervised calls that only a fatal signal interrupts", Since: "5.19", Check: func() error {
		_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, seccomp.ListenFlags, 0)
		if errno != unix.EFAULT {
			return errno
		}
		return nil
	}})
}

// names turns numbers of calls into names.
func names(t *testing.T, calls []int32) string {
	t.Helper()
	list := make([]string, 0, len(calls))
	for _, call := range calls {
		for name, number := range numbers(t, runtime.GOARCH) {
			if int32(number) == call {
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, " ")
}
