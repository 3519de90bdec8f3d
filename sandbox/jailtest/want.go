package jailtest

import (
	"syscall"
	"testing"
)

// WantOK asserts that the victim came to its end and that its operation succeeded.
func WantOK(t testing.TB, r Result) {
	t.Helper()
	if finished(t, r) && r.Outcome.Errno != 0 {
		t.Errorf("want success, got %s\n%s", errnoName(r.Outcome.Errno), r)
	}
}

// WantErrno asserts that the victim came to its end and that its operation was refused
// with exactly this errno. An errno of 0 is a mistake in the test: use [WantOK].
func WantErrno(t testing.TB, r Result, want syscall.Errno) {
	t.Helper()
	if want == 0 {
		t.Errorf("WantErrno called with 0, which is success")
		return
	}
	if finished(t, r) && r.Outcome.Errno != want {
		t.Errorf("want %s, got %s\n%s", errnoName(want), errnoName(r.Outcome.Errno), r)
	}
}

// WantValue is [WantOK] and that the operation returned exactly this value.
func WantValue(t testing.TB, r Result, want int64) {
	t.Helper()
	WantOK(t, r)
	if r.Outcome.Value != want {
		t.Errorf("want value %d, got %d\n%s", want, r.Outcome.Value, r)
	}
}

// WantSignal asserts that the operation itself was answered with this signal: the victim
// had begun it, did not survive it, and was not killed by the harness.
func WantSignal(t testing.TB, r Result, want syscall.Signal) {
	t.Helper()
	switch {
	case want == 0:
		t.Errorf("WantSignal called with 0, which is no signal")
	case r.TimedOut:
		t.Errorf("want signal %v, but the victim hung\n%s", want, r)
	case r.Problem != "":
		t.Errorf("want signal %v, but the report is broken\n%s", want, r)
	case r.Signal != want:
		t.Errorf("want signal %v, got %v\n%s", want, r.Signal, r)
	case r.Status != -1:
		t.Errorf("want signal %v, but there is an exit status\n%s", want, r)
	case !r.Started:
		t.Errorf("want signal %v during the operation, but it came before\n%s", want, r)
	case r.Finished:
		t.Errorf("want signal %v, but the operation came to its end\n%s", want, r)
	}
}

// WantStatus asserts that a process which reports nothing (a stock program started by a
// victim) exited with this status and by no signal. It says nothing about any operation.
func WantStatus(t testing.TB, r Result, want int) {
	t.Helper()
	if r.TimedOut || r.Signal != 0 || r.Status != want || r.Problem != "" {
		t.Errorf("want exit status %d\n%s", want, r)
	}
}

// finished asserts everything about a victim's end except what its operation gave.
func finished(t testing.TB, r Result) bool {
	t.Helper()
	switch {
	case r.TimedOut:
		t.Errorf("the victim hung\n%s", r)
	case r.Problem != "":
		t.Errorf("the victim's report is broken\n%s", r)
	case r.Signal != 0:
		t.Errorf("the victim was killed by %v\n%s", r.Signal, r)
	case r.Status != 0:
		t.Errorf("the victim exited with status %d\n%s", r.Status, r)
	case !r.Started:
		t.Errorf("the victim never began its operation\n%s", r)
	case !r.Finished:
		t.Errorf("the victim printed no finish marker\n%s", r)
	default:
		return true
	}
	return false
}
