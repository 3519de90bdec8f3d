package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/examples/stock"
)

// stockServers are started by their built-in profiles, found by their packages.
func TestStockServersThroughTheSDK(t *testing.T) {
	tests := []struct {
		name   string
		server stock.Server
		words  []string // the server's own, PROJECT being the project
		tool   string
		args   map[string]any
		want   string
		ending ending
	}{
		{"everything", stock.Everything, []string{"stdio"}, "echo", map[string]any{"message": "hello"}, "hello", bySignal},
		{"sequential-thinking", stock.SequentialThinking, nil, "sequentialthinking", map[string]any{
			"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
		}, "thoughtNumber", byItself},
		{"filesystem", stock.Filesystem201, []string{"PROJECT"}, "list_directory", map[string]any{"path": "."}, "inside.txt", byItself},
		{"memory", stock.Memory, nil, "read_graph", map[string]any{}, "entities", byItself},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			words := slices.Clone(tt.words)
			for i, word := range words {
				words[i] = strings.ReplaceAll(word, "PROJECT", p.project)
			}
			command, err := tt.server.Command(words...)
			if err != nil {
				t.Fatal(err)
			}
			s := connect(t, p.command(in("")(t, command...)...))
			s.ending = tt.ending
			if !slices.Contains(s.tools(t), tt.tool) {
				t.Fatalf("the server lists no %s", tt.tool)
			}
			s.served(t, tt.tool, tt.args, tt.want)
			s.end(t)
			p.onlyOwn(t)
		})
	}
}

// TestInspector drives the jailed file server with another client: the command line of
// the protocol's inspector, which is node and starts servers through a spawn of its own.
func TestInspector(t *testing.T) {
	p := newPlace(t)
	link := filepath.Join(p.project, "link.txt")
	if err := os.Symlink(p.secret, link); err != nil {
		t.Fatal(err)
	}
	server, err := stock.Filesystem062.Command(p.project)
	if err != nil {
		t.Fatal(err)
	}
	inspector, err := stock.Inspector.Command()
	if err != nil {
		t.Fatal(err)
	}
	// The inspector takes its own flags before its first "--" and gives the rest on.
	ask := func(words []string, method ...string) []string {
		line := append(slices.Clone(inspector), words[0])
		line = append(append(line, method...), "--")
		return append(line, words[1:]...)
	}
	jailed := in("")(t, server...)

	stdout, _ := output(t, p.command(ask(jailed, "--method", "tools/list")...), 0)
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Tools) == 0 {
		t.Fatalf("listing tools: %v in %q", err, stdout)
	}
	read := func(words []string, path string) string {
		t.Helper()
		stdout, _ := output(t, p.command(ask(words, "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path="+path)...), 0)
		return stdout
	}
	if got := read(jailed, filepath.Join(p.project, "inside.txt")); !strings.Contains(got, insideText) {
		t.Errorf("reading inside: got %q", got)
	}
	if got := read(jailed, link); !strings.Contains(got, "EACCES: permission denied, open") {
		t.Errorf("reading through the link in the jail: got %q", got)
	}
	if got := read(server, link); !strings.Contains(got, secretText) {
		t.Errorf("reading through the link outside the jail: got %q", got)
	}
}
