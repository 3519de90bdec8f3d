package jailtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

func TestMain(m *testing.M) { jailtest.Main(m, victims) }

var victims = jailtest.Victims{
	"succeeds": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		s.Begin()
		return jailtest.Outcome{Value: 7, Note: strings.Join(args, "|")}
	},
	"refused": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		_, err := unix.Open("/nonexistent", unix.O_RDONLY, 0)
		return jailtest.OutcomeOf(s, fmt.Errorf("opening: %w", err))
	},
	"killed": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		s.Begin()
		signal, err := strconv.Atoi(args[0])
		if err != nil {
			s.Failf("reading the signal: %v", err)
		}
		die(s, syscall.Signal(signal))
		return jailtest.Outcome{}
	},
	"killed early": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		die(s, unix.SIGKILL)
		return jailtest.Outcome{}
	},
	"killed after the marker": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		fmt.Println(`jailtest: finish {"errno":0,"name":"0","value":0}`)
		die(s, unix.SIGKILL)
		return jailtest.Outcome{}
	},
	"exits 3 silently": func(*jailtest.Stage, []string) jailtest.Outcome { os.Exit(3); panic("unreachable") },
	"exits 3 after the marker": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		fmt.Println(`jailtest: finish {"errno":1,"name":"EPERM","value":0}`)
		os.Exit(3)
		panic("unreachable")
	},
	"exits 0 silently": func(*jailtest.Stage, []string) jailtest.Outcome { os.Exit(0); panic("unreachable") },
	"exits 0 after starting": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		os.Exit(0)
		panic("unreachable")
	},
	"never begins": func(*jailtest.Stage, []string) jailtest.Outcome { return jailtest.Outcome{} },
	"begins twice": func(s *jailtest.Stage, _ []string) jailtest.Outcome { s.Begin(); s.Begin(); return jailtest.Outcome{} },
	"setup fails": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Failf("no %s", "luck")
		return jailtest.Outcome{}
	},
	"panics": func(s *jailtest.Stage, _ []string) jailtest.Outcome { s.Begin(); panic("victim's own") },
	"vague error": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		return jailtest.OutcomeOf(s, errors.New("hm"))
	},
	"finishes twice": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		fmt.Println(`jailtest: finish {"errno":1,"name":"EPERM","value":0}`)
		return jailtest.Outcome{}
	},
	"half a marker": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		fmt.Print(`jailtest: finish {"errno":1,"name":"EPERM","value":0}`)
		os.Exit(0)
		panic("unreachable")
	},
	"hangs": func(s *jailtest.Stage, _ []string) jailtest.Outcome { s.Begin(); wait(); panic("unreachable") },
	"identity": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		groups, err := os.Getgroups()
		if err != nil {
			s.Failf("reading groups: %v", err)
		}
		s.Begin()
		fd, err := unix.Open(filepath.Join(args[0], "made"), unix.O_CREAT|unix.O_WRONLY, 0o600)
		note := fmt.Sprintf("uid %d gid %d groups %v", os.Getuid(), os.Getgid(), groups)
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		return jailtest.Outcome{Note: note, Value: int64(min(fd, 0))}
	},
	"execs another": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		err := unix.Exec("/proc/self/exe", []string{"victim", "one", "two"}, jailtest.Environment("succeeds"))
		s.Failf("executing: %v", err)
		return jailtest.Outcome{}
	},
	"talks": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		input := make([]byte, 16)
		n, err := unix.Read(0, input)
		if err != nil {
			s.Failf("reading: %v", err)
		}
		fmt.Println("before")
		s.Begin()
		fmt.Fprintln(os.Stderr, "aside")
		return jailtest.Outcome{Note: string(input[:n])}
	},
}

// die sends the process a signal that the Go runtime does not handle, and waits for it.
func die(s *jailtest.Stage, signal syscall.Signal) {
	if err := unix.Kill(unix.Getpid(), signal); err != nil {
		s.Failf("sending %v: %v", signal, err)
	}
	wait()
}

func wait() {
	for {
		if err := unix.Pause(); !errors.Is(err, unix.EINTR) {
			panic(err)
		}
	}
}

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB
	errors, fatals, skips []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatals = append(r.fatals, fmt.Sprintf(format, args...))
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skips = append(r.skips, fmt.Sprintf(format, args...))
}

// checks is every Want function with something to want. A result may satisfy only the
// ones that a test names.
var checks = map[string]func(t testing.TB, r jailtest.Result){
	"ok":      jailtest.WantOK,
	"value 7": func(t testing.TB, r jailtest.Result) { jailtest.WantValue(t, r, 7) },
	"ENOENT":  func(t testing.TB, r jailtest.Result) { jailtest.WantErrno(t, r, unix.ENOENT) },
	"EPERM":   func(t testing.TB, r jailtest.Result) { jailtest.WantErrno(t, r, unix.EPERM) },
	"errno 0": func(t testing.TB, r jailtest.Result) { jailtest.WantErrno(t, r, 0) },
	"SIGKILL": func(t testing.TB, r jailtest.Result) { jailtest.WantSignal(t, r, unix.SIGKILL) },
	"SIGTERM": func(t testing.TB, r jailtest.Result) { jailtest.WantSignal(t, r, unix.SIGTERM) },
	"no sig":  func(t testing.TB, r jailtest.Result) { jailtest.WantSignal(t, r, 0) },
}

func TestWantAcceptsOnlyTheTruth(t *testing.T) {
	tests := []struct {
		victim  string
		args    []string
		accepts []string // names of the checks that hold; all others must fail
	}{
		{victim: "succeeds", accepts: []string{"ok", "value 7"}},
		{victim: "refused", accepts: []string{"ENOENT"}},
		{victim: "killed", args: []string{"9"}, accepts: []string{"SIGKILL"}},
		{victim: "killed", args: []string{"15"}, accepts: []string{"SIGTERM"}},
		{victim: "killed early"},
		{victim: "killed after the marker"},
		{victim: "exits 3 silently"},
		{victim: "exits 3 after the marker"},
		{victim: "exits 0 silently"},
		{victim: "exits 0 after starting"},
		{victim: "never begins"},
		{victim: "begins twice"},
		{victim: "setup fails"},
		{victim: "panics"},
		{victim: "vague error"},
		{victim: "finishes twice"},
		{victim: "half a marker"},
		{victim: "nobody registered this"},
	}
	for _, test := range tests {
		t.Run(test.victim, func(t *testing.T) {
			result := jailtest.Run(t, test.victim, test.args...)
			accepts := map[string]bool{}
			for _, name := range test.accepts {
				accepts[name] = true
			}
			for name, check := range checks {
				rec := &recorder{TB: t}
				check(rec, result)
				if passed := len(rec.errors) == 0; passed != accepts[name] {
					t.Errorf("check %q passed: %t, want %t\n%s", name, passed, accepts[name], result)
				}
			}
		})
	}
}

func TestHangIsNoResult(t *testing.T) {
	result := jailtest.Launch{Timeout: 300 * time.Millisecond}.Run(t, "hangs")
	if !result.TimedOut {
		t.Fatalf("want a timeout\n%s", result)
	}
	for name, check := range checks {
		rec := &recorder{TB: t}
		check(rec, result)
		if len(rec.errors) == 0 {
			t.Errorf("check %q accepted a victim that hung", name)
		}
	}
}

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		victim string
		want   int
		passes bool
	}{
		{"exits 3 silently", 3, true},
		{"exits 3 silently", 0, false},
		{"killed early", 0, false},
		{"killed early", -1, false},
		{"exits 0 silently", 0, true},
	} {
		rec := &recorder{TB: t}
		jailtest.WantStatus(rec, jailtest.Run(t, test.victim), test.want)
		if passed := len(rec.errors) == 0; passed != test.passes {
			t.Errorf("%s: want status %d passed: %t, want %t", test.victim, test.want, passed, test.passes)
		}
	}
}

func TestArgumentsAndStreams(t *testing.T) {
	result := jailtest.Run(t, "succeeds", "a b", "", "-test.run=x")
	jailtest.WantValue(t, result, 7)
	if want := "a b||-test.run=x"; result.Outcome.Note != want {
		t.Errorf("arguments arrived as %q, want %q", result.Outcome.Note, want)
	}
	result = jailtest.Launch{Stdin: "hello"}.Run(t, "talks")
	jailtest.WantOK(t, result)
	if result.Stdout != "before\n" || result.Stderr != "aside\n" || result.Outcome.Note != "hello" {
		t.Errorf("streams differ\n%s", result)
	}
}

func TestExecIntoAnotherVictim(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		result := jailtest.RunAs(t, user, "execs another")
		jailtest.WantValue(t, result, 7)
		if want := "one|two"; result.Outcome.Note != want {
			t.Errorf("arguments arrived as %q, want %q", result.Outcome.Note, want)
		}
	})
}

func TestUsers(t *testing.T) {
	users := jailtest.Users(t)
	if want := map[bool]int{true: 2, false: 1}[os.Getuid() == 0]; len(users) != want {
		t.Fatalf("got %d users, want %d", len(users), want)
	}
	for _, user := range users {
		t.Run(user.String(), func(t *testing.T) {
			dir := jailtest.Dir(t, user)
			result := jailtest.RunAs(t, user, "identity", dir)
			jailtest.WantOK(t, result)
			if user.Switch == jailtest.KeepIdentity {
				return
			}
			if want := fmt.Sprintf("uid %d gid %d groups []", user.UID, user.GID); result.Outcome.Note != want {
				t.Errorf("ran as %q, want %q", result.Outcome.Note, want)
			}
		})
	}
}

func TestOrdinaryUserIsHeldByPermissions(t *testing.T) {
	for _, user := range jailtest.Users(t) {
		if user.Switch == jailtest.KeepIdentity {
			continue
		}
		dir := jailtest.Dir(t, jailtest.User{Name: "owner"})
		jailtest.WantErrno(t, jailtest.RunAs(t, user, "identity", dir), unix.EACCES)
		jailtest.Own(t, user, dir)
		jailtest.WantOK(t, jailtest.RunAs(t, user, "identity", dir))
	}
}

func TestNeed(t *testing.T) {
	absent := func() error { return errors.New("not here") }
	tests := []struct {
		name         string
		probe        jailtest.Probe
		noSkip       string
		skips, fatal bool
	}{
		{name: "present", probe: jailtest.Probe{Check: func() error { return nil }}},
		{name: "absent", probe: jailtest.Probe{Check: absent}, skips: true},
		{name: "absent and no skip allowed", probe: jailtest.Probe{Check: absent}, noSkip: "1", fatal: true},
		{name: "absent but the kernel is new enough", probe: jailtest.Probe{Since: "3.5", Check: absent}, fatal: true},
		{name: "absent and the kernel is too old", probe: jailtest.Probe{Since: "999.0", Check: absent}, skips: true},
		{name: "absent with a bad release", probe: jailtest.Probe{Since: "soon", Check: absent}, fatal: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("STOCKADE_NO_SKIP", test.noSkip)
			rec := &recorder{TB: t}
			jailtest.Need(rec, test.probe)
			if got := len(rec.skips) > 0; got != test.skips {
				t.Errorf("skipped: %t, want %t", got, test.skips)
			}
			if got := len(rec.fatals) > 0; got != test.fatal {
				t.Errorf("failed: %t, want %t", got, test.fatal)
			}
		})
	}
}
