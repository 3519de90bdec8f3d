package jailtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// victimVariable names the victim to run; its presence makes a test binary one.
	victimVariable = "STOCKADE_VICTIM"
	startLine      = "jailtest: start"
	finishPrefix   = "jailtest: finish "

	// setupStatus is the exit status of a victim whose preparation failed, and
	// protocolStatus that of one that broke the rules of this package. Neither is a
	// status that the Go runtime uses.
	setupStatus    = 70
	protocolStatus = 71
)

// Outcome is what one operation gave.
type Outcome struct {
	// Errno is the operation's error number, 0 for success.
	Errno syscall.Errno
	// Value is what it returned: a descriptor, a count, anything a test compares.
	Value int64
	// Note is free text for a test to compare or a failure to show.
	Note string
}

// OutcomeOf makes an outcome from a Go error: its errno, or 0 for nil. An error that
// carries no errno ends the victim, because a test could not tell it from success.
func OutcomeOf(s *Stage, err error) Outcome {
	if err == nil {
		return Outcome{}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return Outcome{Errno: errno, Note: err.Error()}
	}
	s.Failf("operation gave an error without an errno: %v", err)
	return Outcome{}
}

// Victim is the body of a victim process. It runs on a locked OS thread, so a filter that
// it installs holds for every raw system call that it makes. It prepares, calls
// [Stage.Begin], does the operation under test, and returns its outcome.
//
// args are the arguments given to [Run]. A victim may also prepare a jail and exec the test
// binary as another victim (see [Environment]) without calling Begin itself.
type Victim func(s *Stage, args []string) Outcome

// Victims maps names to victims.
type Victims map[string]Victim

// Stage is the victim's side of the report. A nil *Stage is not usable.
type Stage struct {
	out   io.Writer // descriptor 1
	err   io.Writer // descriptor 2
	exit  func(status int)
	begun bool
}

// Begin marks the end of the preparation: whatever happens from here on is the operation
// under test. A victim that ends before this line never counts as refused.
func (s *Stage) Begin() {
	if s.begun {
		s.breach("Begin called twice")
	}
	s.begun = true
	s.print(startLine)
}

// Failf ends the victim because its preparation failed. It writes the reason to standard
// error, exits with a status of its own, and does not return.
func (s *Stage) Failf(format string, args ...any) {
	fmt.Fprintf(s.err, "jailtest: setup: "+format+"\n", args...)
	s.exit(setupStatus)
}

func (s *Stage) breach(reason string) {
	fmt.Fprintf(s.err, "jailtest: victim broke the protocol: %s\n", reason)
	s.exit(protocolStatus)
}

// print writes one line with a single write(2): buffered output would be lost, or come
// late, when the kernel kills the victim.
func (s *Stage) print(line string) {
	if _, err := io.WriteString(s.out, line+"\n"); err != nil {
		s.breach("writing a report line: " + err.Error())
	}
}

// wireOutcome is the finish line's JSON form.
type wireOutcome struct {
	Errno int    `json:"errno"`
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Note  string `json:"note,omitempty"`
}

func (s *Stage) finish(o Outcome) {
	if !s.begun {
		s.breach("returned without calling Begin")
	}
	line, err := json.Marshal(wireOutcome{
		Errno: int(o.Errno), Name: errnoName(o.Errno), Value: o.Value, Note: o.Note,
	})
	if err != nil {
		s.breach("encoding the outcome: " + err.Error())
	}
	s.print(finishPrefix + string(line))
}

func errnoName(errno syscall.Errno) string {
	if errno == 0 {
		return "0"
	}
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", int(errno))
}

// descriptor writes straight to a file descriptor: [os.File] may hand a write to the
// network poller, which a jail has every right to refuse.
type descriptor int

func (d descriptor) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		w, err := syscall.Write(int(d), p[n:])
		if err == syscall.EINTR { //nolint:errorlint // syscall.Write returns a bare errno
			continue
		}
		if err != nil {
			return n, err
		}
		n += w
	}
	return len(p), nil
}

// Main is the body of TestMain. In a victim process it runs the victim and exits; otherwise
// it runs the tests, removes what the package put on disk, and exits with their status.
// A name that two sets share is a programming error and panics.
func Main(m *testing.M, sets ...Victims) {
	all := Victims{}
	for _, set := range sets {
		for name, victim := range set {
			if _, twice := all[name]; twice || victim == nil || name == "" {
				panic(fmt.Sprintf("jailtest: victim %q is empty or registered twice", name))
			}
			all[name] = victim
		}
	}
	if name, is := os.LookupEnv(victimVariable); is {
		play(all, name)
	}
	status := m.Run()
	if err := removePlace(); err != nil {
		fmt.Fprintf(os.Stderr, "jailtest: %v\n", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func play(all Victims, name string) {
	// The thread is never unlocked: a filter must not leak into the scheduler's pool.
	runtime.LockOSThread()
	s := &Stage{out: descriptor(1), err: descriptor(2), exit: os.Exit}
	victim, known := all[name]
	if !known {
		s.breach(fmt.Sprintf("no victim is called %q", name))
	}
	s.finish(victim(s, os.Args[1:]))
	os.Exit(0)
}

// Environment returns the variables that make the test binary the named victim, for a
// victim that execs another one with an environment of its own making.
func Environment(victim string) []string {
	return []string{victimVariable + "=" + victim}
}

// readReport takes the report lines out of a victim's standard output.
func readReport(stdout string) (r Result, problem string) {
	var rest strings.Builder
	for line := range strings.Lines(stdout) {
		text, whole := strings.CutSuffix(line, "\n")
		body, isFinish := strings.CutPrefix(text, finishPrefix)
		switch {
		case text == startLine && whole:
			if r.Started {
				problem = "two start markers"
			}
			r.Started = true
		case isFinish && whole:
			var w wireOutcome
			if err := json.Unmarshal([]byte(body), &w); err != nil {
				return r, "unreadable finish marker: " + err.Error()
			}
			if r.Finished || !r.Started {
				problem = "a finish marker without its start marker"
			}
			r.Finished = true
			r.Outcome = Outcome{Errno: syscall.Errno(w.Errno), Value: w.Value, Note: w.Note}
		default:
			rest.WriteString(line)
		}
	}
	r.Stdout = rest.String()
	return r, problem
}
