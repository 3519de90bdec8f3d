package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFloodsAreCounted: when nothing follows a flood, the log still says how much of it is
// missing, and standard error promises no more than the log has.
func TestFloodsAreCounted(t *testing.T) {
	const flood = 3000
	ends := []struct {
		name string
		end  func(*denialLog)
	}{
		{"the run ends", (*denialLog).close},
		{"a minute passes", func(l *denialLog) {
			time.Sleep(tellWindow + time.Second)
			synctest.Wait()
		}},
	}
	for _, tt := range ends {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := t.TempDir()
				var errs lines
				l := openDenialLog(state, "p", stdio{err: &errs})
				begin := time.Now().UTC()
				for i := range flood {
					l.deny(denialAt(begin.Add(time.Duration(i)*time.Millisecond), fmt.Sprintf("tcp 203.0.113.9:%d", i+1)))
				}
				tt.end(l)
				got := entries(t, filepath.Join(logFolder(state), logFile))
				if len(got) != writeLines+1 {
					t.Fatalf("%d lines, want %d and one that counts", len(got), writeLines)
				}
				mark := denialEntry{Time: begin.Add((flood - 1) * time.Millisecond), Profile: "p", Unlogged: flood - writeLines}
				if diff := cmp.Diff(mark, got[writeLines]); diff != "" {
					t.Errorf("the last line (-want +got):\n%s", diff)
				}
				want := fmt.Sprintf("stockade: note: %d more refusals; \"stockade log\" lists %d of them\n", flood-tellLines, writeLines-tellLines)
				if text := errs.take(); !strings.HasSuffix(text, want) || strings.Count(text, "\n") != tellLines+1 {
					t.Errorf("standard error ends %q, want %q", text[max(0, len(text)-200):], want)
				}
				printed := readLog(t, state, &logOptions{})
				if !strings.HasSuffix(printed, fmt.Sprintf("  p  (%d refusals up to here came too fast to be logged)\n", flood-writeLines)) {
					t.Errorf("the log ends %q", printed[max(0, len(printed)-200):])
				}
				l.close()
				if again := entries(t, filepath.Join(logFolder(state), logFile)); len(again) != len(got) || errs.take() != "" {
					t.Errorf("what was told is told again: %d lines", len(again))
				}
			})
		})
	}
}

// TestNothingIsPromisedWithoutALog: standard error does not name a log that cannot be written.
func TestNothingIsPromisedWithoutALog(t *testing.T) {
	var errs lines
	l := openDenialLog("/proc/no/such", "p", stdio{err: &errs})
	l.deny(denialAt(noon, "tcp 203.0.113.9:1"))
	l.deny(denialAt(noon, "tcp 203.0.113.9:1"))
	l.close()
	if text := errs.take(); !strings.HasSuffix(text, "stockade: note: 1 more refusal; the log has no line for them\n") {
		t.Errorf("got %s", text)
	}
}
