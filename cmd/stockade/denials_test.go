package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func denialAt(at time.Time, asked string) egress.Denial {
	return egress.Denial{
		Time: at, Program: "node", PID: 4711, Call: "connect", Asked: asked,
		Rule: "no rule names it", Hint: `add "203.0.113.9:443" to network.egress`,
	}
}

// lines is a standard error that a timer writes to, too.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// take returns what was written since the last time.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// entries reads a log file.
func entries(t *testing.T, file string) []denialEntry {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []denialEntry
	for line := range strings.Lines(string(data)) {
		var e denialEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func TestDenialsAreToldAndLogged(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var errs bytes.Buffer
	deny := openDenialLog(state, "fetch", stdio{err: &errs}).deny
	deny(denialAt(noon, "tcp 203.0.113.9:443"))
	deny(egress.Denial{Time: noon, Call: "dns", Asked: "name a\xff\n.example"})
	want := "stockade: note: node: refused: connect tcp 203.0.113.9:443: no rule names it; to allow it, add \"203.0.113.9:443\" to network.egress\n" +
		"stockade: note: refused: name a\\xff\\n.example\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
	file := filepath.Join(state, "stockade/log/denials.jsonl")
	wanted := []denialEntry{
		{Time: noon, Profile: "fetch", Program: "node", PID: 4711, Call: "connect", Asked: "tcp 203.0.113.9:443", Rule: "no rule names it", Hint: `add "203.0.113.9:443" to network.egress`},
		{Time: noon, Profile: "fetch", Call: "dns", Asked: `name a\xff\n.example`},
	}
	if diff := cmp.Diff(wanted, entries(t, file)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(file): 0o700, file: 0o600} {
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, st.Mode(), err, want)
		}
	}
}

// TestToldLinesAreLimited: one line for one thing in ten seconds, twenty in a minute, and a
// count of the rest.
func TestToldLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs lines
		l := openDenialLog(t.TempDir(), "p", stdio{err: &errs})
		told := func(name string, want int) {
			t.Helper()
			if text := errs.take(); strings.Count(text, "\n") != want {
				t.Errorf("%s: %d lines, want %d:\n%s", name, strings.Count(text, "\n"), want, text)
			}
		}
		begin := time.Now()
		for i := range 9 {
			l.deny(denialAt(begin.Add(time.Duration(i)*time.Second), "tcp 203.0.113.9:443"))
		}
		l.deny(denialAt(begin.Add(10*time.Second), "tcp 203.0.113.9:443"))
		told("one thing in eleven seconds", 2)
		for i := range 100 {
			l.deny(denialAt(begin.Add(20*time.Second), fmt.Sprintf("tcp 203.0.113.9:%d", i+1)))
		}
		told("further things in a minute", 18)
		// Nothing follows: the count is told by itself.
		time.Sleep(tellWindow + time.Second)
		synctest.Wait()
		if got, want := errs.take(), "stockade: note: 90 more refusals; \"stockade log\" lists them\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		later := begin.Add(2 * time.Minute)
		for range 3 {
			l.deny(denialAt(later, "tcp 203.0.113.9:443"))
		}
		l.deny(denialAt(later.Add(time.Minute), "tcp 203.0.113.9:443"))
		if got := errs.take(); strings.Count(got, "refused: connect") != 2 || !strings.Contains(got, "note: 2 more refusals") {
			t.Errorf("got %s", got)
		}
		l.deny(denialAt(later.Add(time.Minute), "tcp 203.0.113.9:443"))
		l.close()
		if got, want := errs.take(), "stockade: note: 1 more refusal; \"stockade log\" lists them\n"; got != want {
			t.Errorf("at the end: got %q, want %q", got, want)
		}
		if len(l.told.last) > 2*tellLines {
			t.Errorf("%d texts are remembered", len(l.told.last))
		}
	})
}

// TestFloodsDoNotFillTheLog: what comes too fast is counted instead.
func TestFloodsDoNotFillTheLog(t *testing.T) {
	state := t.TempDir()
	l := openDenialLog(state, "p", stdio{err: &bytes.Buffer{}})
	for i := range writeLines + 50 {
		l.deny(denialAt(noon, fmt.Sprintf("tcp 203.0.113.9:%d", i)))
	}
	l.deny(denialAt(noon.Add(writeWindow), "tcp 203.0.113.9:1"))
	l.close()
	got := entries(t, filepath.Join(logFolder(state), logFile))
	if len(got) != writeLines+1 || got[writeLines].Unlogged != 50 || got[0].Unlogged != 0 {
		t.Errorf("%d lines, the last says that %d were left out", len(got), got[len(got)-1].Unlogged)
	}
}

func TestLogTurnsOver(t *testing.T) {
	folder := logFolder(t.TempDir())
	e := newEntry(denialAt(noon, "tcp 203.0.113.9:1"), "p")
	if err := appendEntry(folder, e); err != nil {
		t.Fatal(err)
	}
	file, old := filepath.Join(folder, logFile), filepath.Join(folder, oldLogFile)
	if err := os.WriteFile(old, []byte("older\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, maxLog+1); err != nil {
		t.Fatal(err)
	}
	e.Asked = "tcp 203.0.113.9:2"
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if err := appendEntry(folder, e); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := entries(t, file); len(got) == 0 || got[0].Asked != e.Asked {
		t.Errorf("the new log has %+v", got)
	}
	st, err := os.Stat(old)
	if err != nil || st.Size() < maxLog {
		t.Errorf("the full log was not kept: %v, %v", st, err)
	}
	// Lines of runs that had opened the full one before are in it.
	data, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(entries(t, file)) + bytes.Count(data, []byte(e.Asked)); n != 8 {
		t.Errorf("%d of 8 lines arrived", n)
	}
}

// TestLogIsNobodyElses: what is in the log's place and is not a file of its own is left as it
// is, and the server goes on.
func TestLogIsNobodyElses(t *testing.T) {
	tests := []struct {
		name string
		lay  func(t *testing.T, folder, elsewhere string) error
	}{
		{"link", func(_ *testing.T, folder, elsewhere string) error {
			return os.Symlink(elsewhere, filepath.Join(folder, logFile))
		}},
		{"hard link", func(_ *testing.T, folder, elsewhere string) error {
			return os.Link(elsewhere, filepath.Join(folder, logFile))
		}},
		{"fifo", func(_ *testing.T, folder, _ string) error {
			return unix.Mkfifo(filepath.Join(folder, logFile), 0o600)
		}},
		{"folder", func(_ *testing.T, folder, _ string) error {
			return os.Mkdir(filepath.Join(folder, logFile), 0o700)
		}},
		{"folder that others can write", func(_ *testing.T, folder, _ string) error { return os.Chmod(folder, 0o770) }},
		{"link to a folder", func(t *testing.T, folder, elsewhere string) error {
			t.Helper()
			return errors.Join(os.Remove(folder), os.Symlink(filepath.Dir(elsewhere), folder))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := t.TempDir()
			folder := logFolder(state)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.WriteFile(elsewhere, []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.lay(t, folder, elsewhere); err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			deny := openDenialLog(state, "p", stdio{err: &errs}).deny
			deny(denialAt(noon, "tcp 203.0.113.9:1"))
			deny(denialAt(noon, "tcp 203.0.113.9:2"))
			if n := strings.Count(errs.String(), "stockade: warning: refusals are told here alone: "); n != 1 || strings.Count(errs.String(), "refused: ") != 2 {
				t.Errorf("standard error:\n%s", errs.String())
			}
			if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "mine\n" {
				t.Errorf("the other file holds %q, %v", data, err)
			}
			if names, err := os.ReadDir(filepath.Dir(elsewhere)); err != nil || len(names) != 1 {
				t.Errorf("the other folder holds %v, %v", names, err)
			}
		})
	}
}

func TestLongTextsAreBounded(t *testing.T) {
	e := newEntry(denialAt(noon, strings.Repeat("é", 1000)), strings.Repeat("x", 2000))
	for _, text := range []string{e.Asked, e.Profile} {
		if len(text) > maxField+3 || !strings.HasSuffix(text, "...") {
			t.Errorf("%d bytes", len(text))
		}
	}
}

// readLog prints a log with options.
func readLog(t *testing.T, state string, opts *logOptions) string {
	t.Helper()
	var out bytes.Buffer
	p, err := newLogPrinter(opts, noon.Add(time.Hour), &out)
	if err != nil {
		t.Fatal(err)
	}
	r := &logReader{folder: logFolder(state), take: p.print}
	defer r.close()
	if err := r.begin(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestFollowing: lines that come later, a line that is not whole yet, and the file that takes
// the place of the one that is read.
func TestFollowing(t *testing.T) {
	state := t.TempDir()
	folder := logFolder(state)
	add := func(asked string) {
		t.Helper()
		if err := appendEntry(folder, newEntry(denialAt(noon, asked), "p")); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	r := &logReader{folder: folder, take: func(line []byte) error {
		var e denialEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		got = append(got, e.Asked)
		return nil
	}}
	defer r.close()
	step := func(name string, f func() error, want ...string) {
		t.Helper()
		got = nil
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	step("nothing is there", r.begin)
	step("still nothing", r.goOn)
	add("1")
	step("a first line", r.goOn, "1")
	add("2")
	add("3")
	step("more lines", r.goOn, "2", "3")
	step("no more", r.goOn)
	half, err := json.Marshal(newEntry(denialAt(noon, "4"), "p"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(folder, logFile), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	write(half[:10])
	step("half a line", r.goOn)
	write(append(half[10:], '\n'))
	step("the other half", r.goOn, "4")
	add("5")
	if err := os.Rename(filepath.Join(folder, logFile), filepath.Join(folder, oldLogFile)); err != nil {
		t.Fatal(err)
	}
	add("6")
	step("another file", r.goOn, "5", "6")
	add("7")
	step("a line of it", r.goOn, "7")
	r.close()
	again := &logReader{folder: folder, take: r.take}
	defer again.close()
	step("from the beginning", again.begin, "1", "2", "3", "4", "5", "6", "7")
}

func TestLogPrints(t *testing.T) {
	state := t.TempDir()
	folder := logFolder(state)
	for _, e := range []denialEntry{
		newEntry(denialAt(noon, "tcp 203.0.113.9:1"), "one"),
		newEntry(denialAt(noon.Add(30*time.Minute), "name \x1b[2J.example"), "two"),
	} {
		if err := appendEntry(folder, e); err != nil {
			t.Fatal(err)
		}
	}
	line := func(at time.Time, profile, asked string) string {
		return at.Local().Format("2006-01-02 15:04:05") + "  " + profile + "  [4711] node: refused: connect " + asked + `: no rule names it; to allow it, add "203.0.113.9:443" to network.egress` + "\n"
	}
	one, two := line(noon, "one", "tcp 203.0.113.9:1"), line(noon.Add(30*time.Minute), "two", `name \x1b[2J.example`)
	tests := []struct {
		name string
		opts logOptions
		want string
	}{
		{"all", logOptions{}, one + two},
		{"profile", logOptions{profile: once{value: "two", given: 1}}, two},
		{"no such profile", logOptions{profile: once{value: "tw", given: 1}}, ""},
		{"since", logOptions{since: once{value: "45m", given: 1}}, two},
		{"since long", logOptions{since: once{value: "90m", given: 1}}, one + two},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readLog(t, state, &tt.opts)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(folder, logFile))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), readLog(t, state, &logOptions{json: true})); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}
