package seccomp_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// listenVictims make listeners themselves.
var listenVictims = jailtest.Victims{
	// listen: "first", "second", "old kernel" or "unprivileged", then which program.
	"listen": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		program := map[string]seccomp.Program{
			"allow":      {{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
			"bad offset": {{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 64}, {Code: unix.BPF_RET | unix.BPF_K}},
		}[args[1]]
		if args[0] != "unprivileged" {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				s.Failf("setting no_new_privs: %v", err)
			}
		}
		switch args[0] {
		case "second":
			if _, err := seccomp.Listen(program); err != nil {
				s.Failf("%v", err)
			}
		case "old kernel":
			// Answers as a kernel that does not know the flag.
			flag := uint32(unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
			if err := seccomp.Install(seccomp.Program{
				{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
				{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_SECCOMP},
				{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 24},
				{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: flag},
				{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
				{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
			}); err != nil {
				s.Failf("%v", err)
			}
		}
		s.Begin()
		fd, err := seccomp.Listen(program)
		outcome := jailtest.OutcomeOf(s, err)
		outcome.Value = int64(fd)
		if _, ok := errors.AsType[*seccomp.NestedError](err); ok {
			outcome.Note = "nested: " + outcome.Note
		}
		if err == nil {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			outcome.Note = fmt.Sprintf("flags %d %v", flags, err)
		}
		return outcome
	},
}

func TestListen(t *testing.T) {
	needListener(t)
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		listen := func(how, program string) jailtest.Result {
			t.Helper()
			return jailtest.RunAs(t, user, "listen", how, program)
		}
		result := listen("first", "allow")
		if result.Outcome.Errno != 0 || result.Outcome.Value < 3 || result.Outcome.Note != fmt.Sprintf("flags %d <nil>", unix.FD_CLOEXEC) {
			t.Errorf("want a listener that is closed on exec\n%s", result)
		}
		tests := []struct {
			how, program string
			errno        unix.Errno
			says, not    string // parts of the message
		}{
			{"second", "allow", unix.EBUSY, "nested: ", "5.19"},
			{"first", "bad offset", unix.EINVAL, "does not take these instructions", "5.19"},
			{"old kernel", "allow", unix.EINVAL, "older than Linux 5.19", "instructions"},
			{"unprivileged", "allow", unix.EACCES, "no_new_privs", "5.19"},
		}
		for _, test := range tests {
			if test.how == "unprivileged" && user.UID == 0 && os.Getuid() == 0 {
				continue // root needs no no_new_privs
			}
			result := listen(test.how, test.program)
			jailtest.WantErrno(t, result, test.errno)
			if note := result.Outcome.Note; result.Outcome.Value != -1 || !strings.Contains(note, test.says) || strings.Contains(note, test.not) {
				t.Errorf("%s: want %q and not %q\n%s", test.how, test.says, test.not, result)
			}
		}
	})
}

func TestListenErrors(t *testing.T) {
	var nested *seccomp.NestedError
	if err := seccomp.ListenError(unix.EBUSY); !errors.As(err, &nested) || !errors.Is(err, unix.EBUSY) {
		t.Errorf("EBUSY gives %v", err)
	}
	for errno, want := range map[unix.Errno]string{
		unix.EMFILE: "no descriptor is left", unix.EACCES: "no_new_privs", unix.ENOSYS: "seccomp(2)", unix.ENOMEM: unix.ENOMEM.Error(),
	} {
		err := seccomp.ListenError(errno)
		if errors.As(err, &nested) || !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q in it", unix.ErrnoName(errno), err, want)
		}
	}
	for _, program := range []seccomp.Program{nil, make(seccomp.Program, 4097)} {
		if fd, err := seccomp.Listen(program); err == nil || fd != -1 {
			t.Errorf("a program of %d instructions gave descriptor %d", len(program), fd)
		}
	}
}
