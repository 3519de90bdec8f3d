package main

import (
	"errors"
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

func TestRefuseRunner(t *testing.T) {
	tests := []struct {
		name    string
		argv    []string
		refused string
	}{
		{"npx", []string{"npx", "-y", "pkg"}, "npx"},
		{"npx by path", []string{"/usr/local/bin/npx", "pkg"}, "npx"},
		{"bunx", []string{"bunx", "pkg"}, "bunx"},
		{"npm exec", []string{"npm", "--yes", "exec", "pkg"}, "npm exec"},
		{"npm x", []string{"npm", "x", "pkg"}, "npm x"},
		{"npm exec elsewhere", []string{"npm", "--prefix", "/srv", "exec", "pkg"}, "npm exec"},
		{"npm start", []string{"npm", "start", "exec"}, ""},
		{"pnpm dlx", []string{"pnpm", "-C", "/srv", "dlx", "pkg"}, "pnpm dlx"},
		{"pnpm run", []string{"pnpm", "run", "dlx"}, ""},
		{"yarn dlx", []string{"yarn", "dlx", "pkg"}, "yarn dlx"},
		{"bun x", []string{"bun", "x", "pkg"}, "bun x"},
		{"bun run", []string{"bun", "run", "x"}, ""},
		{"uvx", []string{"uvx", "pkg"}, "uvx"},
		{"uv tool run", []string{"uv", "tool", "run", "pkg"}, "uv tool run"},
		{"uv tool list", []string{"uv", "tool", "list"}, ""},
		{"uv tool run with a flag", []string{"uv", "--directory", "/srv", "tool", "run", "pkg"}, "uv tool run"},
		{"pipx run", []string{"pipx", "run", "pkg"}, "pipx run"},
		{"pipx list", []string{"pipx", "list"}, ""},
		{"docker run", []string{"docker", "run", "-i", "image"}, "docker run"},
		{"podman", []string{"podman"}, "podman"},
		{"a server that is called with npx", []string{"node", "npx"}, ""},
		{"a program whose name holds npx", []string{"my-npx"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := refuseRunner(tt.argv); err != nil {
				refused, ok := errors.AsType[*runnerError](err)
				if !ok {
					t.Fatalf("got %v", err)
				}
				got = refused.command
				if hintOf(err) == "" {
					t.Error("no hint")
				}
			}
			if got != tt.refused {
				t.Errorf("refused %q, want %q", got, tt.refused)
			}
		})
	}
}
