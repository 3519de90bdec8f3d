package seccomp_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// installVictims install programs without the precautions of the others.
var installVictims = jailtest.Victims{
	// install: "yes" sets no_new_privs first; then which program.
	"install": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		if args[0] == "yes" {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				s.Failf("setting no_new_privs: %v", err)
			}
		}
		program := map[string]seccomp.Program{
			"allow":      {{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
			"no answer":  {{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}},
			"bad offset": {{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 64}, {Code: unix.BPF_RET | unix.BPF_K}},
		}[args[1]]
		if program == nil {
			s.Failf("no program is called %q", args[1])
		}
		before, err := seccomp.Active()
		if err != nil || before != seccomp.ModeDisabled {
			s.Failf("before: mode %v, %v", before, err)
		}
		s.Begin()
		outcome := jailtest.OutcomeOf(s, seccomp.Install(program))
		after, err := seccomp.Active()
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		outcome.Value = int64(after)
		return outcome
	},
}

func TestInstall(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		install := func(noNewPrivs, program string) jailtest.Result {
			t.Helper()
			return jailtest.RunAs(t, user, "install", noNewPrivs, program)
		}
		jailtest.WantValue(t, install("yes", "allow"), int64(seccomp.ModeFilter))
		for _, program := range []string{"no answer", "bad offset"} {
			result := install("yes", program)
			jailtest.WantErrno(t, result, unix.EINVAL)
			if result.Outcome.Value != int64(seccomp.ModeDisabled) {
				t.Errorf("%s: a refused program left mode %d", program, result.Outcome.Value)
			}
		}
		if user.Switch == jailtest.ChangeIdentity || user.UID != 0 {
			jailtest.WantErrno(t, install("no", "allow"), unix.EACCES)
		}
	})
}

func TestInstallRefusesWhatNoKernelTakes(t *testing.T) {
	for _, program := range []seccomp.Program{nil, {}, make(seccomp.Program, 4097)} {
		if err := seccomp.Install(program); err == nil {
			t.Fatalf("a program of %d instructions was taken", len(program))
		}
	}
	if mode, err := seccomp.Active(); err != nil || mode == seccomp.ModeStrict {
		t.Errorf("the test itself has mode %v, %v", mode, err)
	}
}
