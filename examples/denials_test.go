package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/examples/stock"
)

// observed starts a server in the jail of a profile file, with lines for what the kernel
// refuses.
func observed(file string) launch {
	return func(t *testing.T, words ...string) []string {
		t.Helper()
		line := in(file)(t, words...)
		return slices.Insert(line, 2, "--explain-denials")
	}
}

// lines are those of stockade on a server's standard error.
func (s *session) lines() (out []string) {
	for line := range strings.Lines(s.stderr.String()) {
		if strings.HasPrefix(line, "stockade: ") {
			out = append(out, line)
		}
	}
	return out
}

// TestExplainedDenials: a stock server that works has no line, and one that is refused has
// one, with what a person needs.
func TestExplainedDenials(t *testing.T) {
	for _, server := range []stock.Server{stock.Filesystem062, stock.Filesystem20260831} {
		t.Run(server.Alias, func(t *testing.T) {
			p := newPlace(t)
			link := filepath.Join(p.project, "link.txt")
			if err := os.Symlink(p.secret, link); err != nil {
				t.Fatal(err)
			}
			command, err := server.Command(p.project)
			if err != nil {
				t.Fatal(err)
			}
			profile := example(t, "filesystem/profile.yaml")
			s := connect(t, p.command(observed(profile)(t, command...)...))
			tool := "read_text_file"
			if !slices.Contains(s.tools(t), tool) {
				tool = "read_file"
			}
			s.served(t, tool, map[string]any{"path": filepath.Join(p.project, "inside.txt")}, insideText)
			s.served(t, "write_file", map[string]any{"path": filepath.Join(p.project, "new.txt"), "content": "new"}, "Successfully wrote")
			if lines := s.lines(); len(lines) != 0 {
				t.Errorf("a server that works has lines: %q", lines)
			}
			if server != stock.Filesystem062 {
				s.end(t)
				return // it follows links itself, and asks for nothing outside
			}
			s.refused(t, tool, map[string]any{"path": link}, "EACCES: permission denied, open '"+link+"'")
			s.end(t)
			secret, err := filepath.EvalSymlinks(p.secret)
			if err != nil {
				t.Fatal(err)
			}
			lines := s.lines()
			if len(lines) != 1 || !strings.Contains(lines[0], "node: refused: reading "+secret+" (open") ||
				!strings.Contains(lines[0], `add "`+secret+`" to filesystem.read in `+profile) {
				t.Errorf("got %q", lines)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		p := newPlace(t)
		command, err := stock.Memory.Command()
		if err != nil {
			t.Fatal(err)
		}
		s := connect(t, p.command(observed(example(t, "memory/profile.yaml"))(t, command...)...))
		_ = s.tools(t)
		s.end(t)
		if lines := s.lines(); len(lines) != 0 {
			t.Errorf("a server that works has lines: %q", lines)
		}
	})
}
