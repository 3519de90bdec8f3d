package jailtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// defaultTimeout ends a victim that hangs. It bounds a broken test; no test measures it.
const defaultTimeout = 60 * time.Second

// Result is everything that a victim's end showed.
type Result struct {
	// Victim is the name that was run, for messages.
	Victim string
	// Status is the exit status, or -1 when a signal ended the victim.
	Status int
	// Signal is the signal that ended the victim; 0 when none did.
	Signal syscall.Signal
	// TimedOut says that this package killed the victim because it did not end.
	TimedOut bool
	// Started and Finished say which markers came.
	Started, Finished bool
	// Outcome is what the finish marker carried; zero without one.
	Outcome Outcome
	// Problem names a breach of the report's form; "" when there is none.
	Problem string
	// Stdout is standard output without the markers, Stderr is standard error.
	Stdout, Stderr string
}

// String shows a result in one block, for failure messages.
func (r Result) String() string {
	end := fmt.Sprintf("exit status %d", r.Status)
	switch {
	case r.TimedOut:
		end = "killed by the harness: it did not end"
	case r.Signal != 0:
		end = fmt.Sprintf("signal %v", r.Signal)
	}
	return fmt.Sprintf("victim %q: %s; started %t, finished %t, errno %s, value %d, note %q%s\nstdout: %s\nstderr: %s",
		r.Victim, end, r.Started, r.Finished, errnoName(r.Outcome.Errno), r.Outcome.Value,
		r.Outcome.Note, problemText(r.Problem), r.Stdout, r.Stderr)
}

func problemText(problem string) string {
	if problem == "" {
		return ""
	}
	return "; broken report: " + problem
}

// Launch is how to start a victim. The zero value starts it as this process's own user,
// in this process's folder, with an almost empty environment and an empty standard input.
type Launch struct {
	// User is whom to run as; the zero value is this process's own identity.
	User User
	// Env is added to the variables that the harness needs (PATH, TMPDIR, the victim's name).
	Env []string
	// Dir is the working folder; "" keeps the test's.
	Dir string
	// Stdin is what the victim can read on descriptor 0.
	Stdin string
	// StdinFile replaces Stdin by an open file; nil keeps Stdin.
	StdinFile *os.File
	// Extra are descriptors 3 and up.
	Extra []*os.File
	// Timeout replaces the harness's own; 0 keeps it.
	Timeout time.Duration
}

// Run starts the test binary as the named victim with this process's identity and waits.
func Run(t testing.TB, victim string, args ...string) Result {
	t.Helper()
	return Launch{}.Run(t, victim, args...)
}

// RunAs is [Run] as another user (see [Users]).
func RunAs(t testing.TB, user User, victim string, args ...string) Result {
	t.Helper()
	return Launch{User: user}.Run(t, victim, args...)
}

// Run starts the test binary as the named victim and waits for its end. It fails the test
// when the victim cannot be started; how it ended is for the Want functions to judge.
func (l Launch) Run(t testing.TB, victim string, args ...string) Result {
	t.Helper()
	timeout := l.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()

	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Binary(t), args...) //nolint:gosec // our own binary
	// Built with the race detector, every victim would sleep a second at its end.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}, l.Env...)
	cmd.Env = append(cmd.Env, Environment(victim)...)
	cmd.Dir = l.Dir
	cmd.Stdin = bytes.NewBufferString(l.Stdin)
	if l.StdinFile != nil {
		cmd.Stdin = l.StdinFile
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = l.Extra
	// A group of its own, so that a timeout also ends what the victim started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: l.User.credential()}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second

	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("starting victim %q as %s: %v", victim, l.User, err)
	}
	r, problem := readReport(stdout.String())
	if errors.Is(err, exec.ErrWaitDelay) {
		problem = "a process of the victim outlived it and kept its output open"
	}
	r.Victim, r.Problem, r.Stderr = victim, problem, stderr.String()
	r.TimedOut = ctx.Err() != nil
	status, isUnix := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !isUnix {
		t.Fatalf("reading how victim %q ended: unknown wait status", victim)
	}
	r.Status = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
	}
	return r
}
