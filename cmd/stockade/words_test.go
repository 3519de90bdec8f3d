package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name         string
		args         []string
		ours, server []string
	}{
		{"no separator", []string{"run", "x"}, []string{"run", "x"}, nil},
		{"ours and theirs", []string{"run", "--root", "/a", "--", "npx", "--", "-y"}, []string{"run", "--root", "/a"}, []string{"npx", "--", "-y"}},
		{"first", []string{"--", "x"}, []string{}, []string{"x"}},
		{"last", []string{"run", "--"}, []string{"run"}, []string{}},
		{"empty words stay", []string{"run", "--", "", " "}, []string{"run"}, []string{"", " "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ours, server := split(tt.args)
			if diff := cmp.Diff(tt.ours, ours); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.server, server); diff != "" {
				t.Error(diff)
			}
			_ = append(ours, "written")
			if diff := cmp.Diff(tt.server, server); diff != "" {
				t.Errorf("appending to our words changes the server's: %s", diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	names := []string{"run", "explain", "verify", "doctor", "profile", "completion", "version"}
	tests := []struct{ word, want string }{
		{"rnu", "run"},
		{"explian", "explain"},
		{"verfy", "verify"},
		{"profiles", "profile"},
		{"docotr", "doctor"},
		{"wrap", ""},
		{"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			if got := nearest(tt.word, names); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnwrap(t *testing.T) {
	tests := []struct {
		name    string
		argv    []string
		refused string // the hint; "" when it is not refused
		note    bool
	}{
		{"an ordinary server", []string{"node", "npx"}, "", false},
		{"a runner is none of these", []string{"npx", "-y", "pkg"}, "", false},
		{"shell", []string{"bash", "-c", "npx -y pkg '/a b'"}, "stockade run -- npx -y pkg '/a b'", false},
		{"login shell", []string{"/bin/sh", "-lc", "TOKEN=x exec npx pkg"}, "stockade run --env TOKEN=... -- npx pkg", false},
		{"two commands", []string{"bash", "-c", "cd /x && npx pkg"}, "install the server on this machine, or write the program that it starts: stockade run -- PROGRAM [ARG]...", false},
		{"an ordinary shell", []string{"bash", "-c", "node server.js"}, "", true},
		{"shell words alone", []string{"sh", "-c", "exit 3"}, "", false},
		{"a script", []string{"bash", "server.sh"}, "", false},
		{"env", []string{"env", "-u", "A", "B=c", "uvx", "pkg"}, "stockade run --env B=... -- uvx pkg", false},
		{"env of a server", []string{"env", "B=c", "node", "x.js"}, "", false},
		{"cmd", []string{"cmd", "/c", "npx", "-y", "pkg"}, "stockade run -- npx -y pkg", false},
		{"docker", []string{"docker", "run", "-i", "image"}, "install the server on this machine, or write the program that it starts: stockade run -- PROGRAM [ARG]...", false},
		{"an address", []string{"https://example.com/mcp"}, "install the server on this machine, or write the program that it starts: stockade run -- PROGRAM [ARG]...", false},
		{"one word", []string{"uvx pkg --x"}, "stockade run -- uvx pkg --x", false},
		{"a project's script", []string{"npm", "start"}, "install the server on this machine, or write the program that it starts: stockade run -- PROGRAM [ARG]...", false},
		{"npm itself", []string{"npm", "--version"}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			note, err := unwrap(tt.argv)
			hint := ""
			if err != nil {
				hint = hintOf(err)
				if exitStatus(err) != exitStopped {
					t.Errorf("exit status %d", exitStatus(err))
				}
			}
			if hint != tt.refused || (note != "") != tt.note {
				t.Errorf("got %v, hint %q, note %q; want the hint %q", err, hint, note, tt.refused)
			}
		})
	}
}
