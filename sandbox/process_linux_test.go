package sandbox_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

func credentialOf(user jailtest.User) *syscall.SysProcAttr {
	if user.Switch == jailtest.KeepIdentity {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
}

func decimal(n int) string { return strconv.Itoa(n) }

func grantProgram(p sandbox.Plan, path string) sandbox.Plan {
	p.Grants = append(p.Grants, sandbox.Grant{Path: path, Access: sandbox.Execute, Origin: sandbox.Origin{Source: "test"}})
	return p
}

// TestProcessState: what the server finds itself with, against what it would have had.
func TestProcessState(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)

		leaked := g.jailed(t, "fds")
		jailtest.WantErrno(t, leaked, unix.EBADF)

		caps := g.jailed(t, "caps")
		jailtest.WantValue(t, caps, 0)
		if user.Switch == jailtest.KeepIdentity && os.Getuid() == 0 {
			if caps.Outcome.Note != "0" {
				t.Errorf("root keeps %s bounding capabilities, want 0", caps.Outcome.Note)
			}
			// NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE with their locks, KEEP_CAPS_LOCKED.
			jailtest.WantValue(t, g.jailed(t, "securebits"), 0b11101111)
			jailtest.WantValue(t, g.outside(t, "securebits"), 0)
			free := g.outside(t, "caps")
			jailtest.WantOK(t, free)
			if free.Outcome.Value == 0 {
				t.Error("root has no capability outside either: the test proves nothing")
			}
		}

		jailtest.WantValue(t, g.jailed(t, "nnp"), 1)
		jailtest.WantValue(t, g.outside(t, "nnp"), 0)
		jailtest.WantValue(t, g.jailed(t, "seccomp"), 2)
		jailtest.WantValue(t, g.outside(t, "seccomp"), 0)
		jailtest.WantValue(t, g.jailed(t, "umask"), 0o077)
		var host unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &host); err != nil {
			t.Fatal(err)
		}
		jailtest.WantValue(t, g.jailed(t, "limit", decimal(unix.RLIMIT_CORE)), int64(min(host.Max, 1)))
	})
}

func TestLimits(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		g.plan.Limits = sandbox.Limits{OpenFiles: 77, FileSize: 1 << 20}
		files := g.jailed(t, "limit", decimal(unix.RLIMIT_NOFILE))
		jailtest.WantValue(t, files, 77)
		if files.Outcome.Note != "" {
			t.Error("the soft limit of open files can be raised")
		}
		jailtest.WantValue(t, g.jailed(t, "limit", decimal(unix.RLIMIT_FSIZE)), 1<<20)
		free := g.outside(t, "limit", decimal(unix.RLIMIT_NOFILE))
		jailtest.WantOK(t, free)
		if free.Outcome.Value == 77 {
			t.Error("77 open files is this machine's own limit: the test proves nothing")
		}
	})
}

func TestEnvironmentFromNothing(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		got := g.jailed(t, "env")
		jailtest.WantOK(t, got)
		if want := "PATH TMPDIR STOCKADE_VICTIM"; got.Outcome.Note != want {
			t.Errorf("variables %q, want %q", got.Outcome.Note, want)
		}
		free := jailtest.Launch{User: user.User, Env: []string{"MARKED=1"}}.Run(t, "op", "env")
		jailtest.WantOK(t, free)
		if !strings.Contains(free.Outcome.Note, "MARKED") {
			t.Error("a variable of the host is missing outside too: the test proves nothing")
		}
	})
}

// TestSignals: processes outside cannot be signalled, the server's own can.
func TestSignals(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		other := startSleeper(t, user.User)
		jailtest.WantErrno(t, g.jailed(t, "kill", other), unix.EPERM)
		jailtest.WantOK(t, g.jailed(t, "kill", "0"))
		jailtest.WantOK(t, g.outside(t, "kill", other))
	})
}

func TestListenPorts(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		jailtest.WantErrno(t, g.jailed(t, "bind", "29671"), unix.EAFNOSUPPORT)
		g.plan.Network.Listen = []uint16{29671}
		g.plan.Filter = listenPolicy()
		jailtest.WantOK(t, g.jailed(t, "bind", "29671"))
		jailtest.WantErrno(t, g.jailed(t, "bind", "29672"), unix.EACCES)
		jailtest.WantOK(t, g.outside(t, "bind", "29672"))
	})
}

func listenPolicy() seccomp.Policy {
	return seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed}
}
