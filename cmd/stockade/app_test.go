package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every command of the table has a help with its exit statuses, on stdout, whatever else
// is on the line; and its own synopsis.
func TestEveryCommandHasAHelp(t *testing.T) {
	for _, c := range completionTable() {
		t.Run(c.path, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(append(strings.Fields(c.path), "--help"), stdio{out: &out, err: &errs})
			if status != 0 || errs.Len() != 0 {
				t.Errorf("status %d, stderr %q", status, errs.String())
			}
			for _, want := range []string{"NAME\n    stockade " + c.path + " - ", "SYNOPSIS\n    stockade " + strings.Fields(c.path)[0], "EXIT STATUS\n", "    125  "} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the help lacks %q:\n%s", want, out.String())
				}
			}
			for line := range strings.Lines(out.String()) {
				if len(line) > 111 {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
		})
	}
}

// A flag that no command knows is an error of every command, with nothing on stdout.
func TestEveryCommandRefusesUnknownFlags(t *testing.T) {
	for _, c := range completionTable() {
		t.Run(c.path, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(append(strings.Fields(c.path), "--no-such-flag=s3cret"), stdio{out: &out, err: &errs})
			if status != exitStopped || out.Len() != 0 {
				t.Errorf("status %d, stdout %q", status, out.String())
			}
			checkTold(t.Errorf, errs.String(), `unknown flag "--no-such-flag"`)
			if strings.Contains(errs.String(), "s3cret") {
				t.Errorf("the flag's value is printed: %s", errs.String())
			}
		})
	}
}

func TestHideValues(t *testing.T) {
	in := []string{"run", "--env", "A=1", "--env=B=2", "--env", "NAME", "-env", "C=3", "-env=D=4", "--read", "/x=y", "--env="}
	want := []string{"run", "--env", "A=...", "--env=B=...", "--env", "NAME", "-env", "C=...", "-env=D=...", "--read", "/x=y", "--env="}
	if diff := cmp.Diff(want, hideValues(in)); diff != "" {
		t.Error(diff)
	}
}

func TestBytesText(t *testing.T) {
	tests := []struct {
		n    uint64
		want string
	}{{1000, "1000 bytes"}, {1024, "1 KiB"}, {1 << 30, "1 GiB"}, {1<<30 + 1024, "1048577 KiB"}, {3 << 40, "3 TiB"}}
	for _, tt := range tests {
		if got := bytesText(tt.n); got != tt.want {
			t.Errorf("bytesText(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}
