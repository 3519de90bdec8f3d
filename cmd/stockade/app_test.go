package main

import (
	"bytes"
	"strings"
	"testing"
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

// No word of ours that may be a variable's value is in a message, whatever took it.
func TestValuesAreNotEchoed(t *testing.T) {
	const value = "hunter2"
	flags := []string{"--profile", "--root", "--read", "--write", "--exec", "--egress", "--listen", "--unix", "--env"}
	var lines [][]string
	for _, f := range flags {
		lines = append(lines,
			[]string{f, "--env", "TOKEN=" + value, "--", "true"},
			[]string{"--env", f, "TOKEN=" + value, "--", "true"},
			[]string{"--env", f, "TOKEN=" + value},
			[]string{"--env", f, value, "--", "true"},
			[]string{"--env", f, "TOKEN", value, "true"},
			[]string{f, "--env", "TOKEN=" + value, "--"},
			[]string{f + "=--env", "TOKEN=" + value, "--", "true"},
			[]string{f, "x", "TOKEN=" + value, "true"},
			[]string{"--env", "TOKEN=" + value, f},
		)
		if f != "--env" {
			lines = append(lines, []string{f, "TOKEN=" + value, "--", "true"}, []string{f + "=TOKEN=" + value, "--", "true"})
		}
	}
	lines = append(lines, []string{"TOKEN=" + value, "--", "true"}, []string{"--env", "TOKEN", "=" + value, "--", "true"})
	for _, command := range []string{"run", "explain", "verify"} {
		for _, line := range lines {
			t.Run(strings.Join(append([]string{command}, line...), " "), func(t *testing.T) {
				var out, errs bytes.Buffer
				status := run(append([]string{command}, line...), stdio{out: &out, err: &errs})
				if status != exitStopped || out.Len() != 0 {
					t.Errorf("status %d, stdout %q", status, out.String())
				}
				checkTold(t.Errorf, errs.String(), "")
				if strings.Contains(errs.String(), value) {
					t.Errorf("the value is printed: %s", errs.String())
				}
			})
		}
	}
	for _, line := range [][]string{{"TOKEN=" + value, "run"}, {"doctor", "TOKEN=" + value}, {"explain", "--format", "TOKEN=" + value, "--", "true"}} {
		var out, errs bytes.Buffer
		if status := run(line, stdio{out: &out, err: &errs}); status != exitStopped || strings.Contains(errs.String(), value) {
			t.Errorf("status %d, stderr %q", status, errs.String())
		}
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
