package examples_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/examples/stock"
)

// folders are the examples that have a profile and a host's configuration.
var folders = []string{"filesystem", "memory", "python-stdlib", "shell", "static-go"}

func TestEveryExampleIsComplete(t *testing.T) {
	found, err := filepath.Glob("*/profile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, path := range found {
		have = append(have, filepath.Dir(path))
	}
	if diff := cmp.Diff(folders, have); diff != "" {
		t.Errorf("folders with a profile (-want +got):\n%s", diff)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryProfileChecks(t *testing.T) {
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	words := []string{binary, "profile", "check"}
	for _, folder := range folders {
		words = append(words, example(t, folder+"/profile.yaml"))
	}
	output(t, p.command(words...), 0)
}

// entry is one server in a host's configuration.
type entry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func hostConfig(t *testing.T, path string) map[string]entry {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]entry `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return config.Servers
}

// TestHostConfigs holds the two configurations of each example together: the one after is
// the one before with words in front, and nothing else.
func TestHostConfigs(t *testing.T) {
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			want := hostConfig(t, filepath.Join(folder, "before.mcp.json"))
			for name, e := range want {
				words := []string{"run", "--profile", "profile.yaml", "--", e.Command}
				want[name] = entry{Command: "stockade", Args: append(words, e.Args...)}
			}
			got := hostConfig(t, filepath.Join(folder, "after.mcp.json"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after.mcp.json (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesystem(t *testing.T) {
	p := newPlace(t)
	link := filepath.Join(p.project, "link.txt")
	if err := os.Symlink(p.secret, link); err != nil {
		t.Fatal(err)
	}
	command, err := stock.Filesystem062.Command(p.project)
	if err != nil {
		t.Fatal(err)
	}
	jail := in(example(t, "filesystem/profile.yaml"))

	s := connect(t, p.command(jail(t, command...)...))
	if !slices.Contains(s.tools(t), "read_file") {
		t.Error("the server lists no read_file")
	}
	inside := filepath.Join(p.project, "inside.txt")
	s.served(t, "read_file", map[string]any{"path": inside}, insideText)
	s.served(t, "write_file", map[string]any{"path": filepath.Join(p.project, "new.txt"), "content": "new"}, "Successfully wrote")
	s.refused(t, "read_file", map[string]any{"path": link}, "EACCES: permission denied, open '"+link+"'")
	s.served(t, "read_file", map[string]any{"path": inside}, insideText)
	s.end(t)
	p.onlyOwn(t)

	pure(t, p.command(jail(t, command...)...))

	outside := connect(t, p.command(free(t, command...)...))
	outside.served(t, "read_file", map[string]any{"path": link}, secretText)
}

func TestMemory(t *testing.T) {
	p := newPlace(t)
	command, err := stock.Memory.Command()
	if err != nil {
		t.Fatal(err)
	}
	jail := in(example(t, "memory/profile.yaml"))
	entity := map[string]any{"entities": []map[string]any{
		{"name": "harbour", "entityType": "place", "observations": []string{"lies in the north"}},
	}}

	s := connect(t, p.command(jail(t, command...)...))
	s.served(t, "create_entities", entity, "harbour")
	s.end(t)
	p.onlyOwn(t)
	kept, err := filepath.Glob(p.home + "/.local/share/stockade/homes/*/memory.jsonl")
	if err != nil || len(kept) != 1 {
		t.Errorf("the private home keeps %q (%v), want one memory.jsonl", kept, err)
	}

	again := connect(t, p.command(jail(t, command...)...))
	again.served(t, "search_nodes", map[string]any{"query": "north"}, "harbour")
	again.end(t)

	pure(t, p.command(jail(t, command...)...))
}

func TestPython(t *testing.T) {
	p := newPlace(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := map[string]any{"host": "127.0.0.1", "port": listener.Addr().(*net.TCPAddr).Port}
	command := []string{"/usr/bin/python3", example(t, "python-stdlib/server.py"), p.project}
	jail := in(example(t, "python-stdlib/profile.yaml"))

	s := connect(t, p.command(jail(t, command...)...))
	s.served(t, "count_words", map[string]any{"path": "inside.txt"}, "4")
	s.refused(t, "count_words", map[string]any{"path": "../secret.txt"}, "PermissionError: [Errno 13] Permission denied")
	s.refused(t, "reach", address, "Errno 97")
	s.end(t)
	p.onlyOwn(t)

	pure(t, p.command(jail(t, command...)...))

	outside := connect(t, p.command(free(t, command...)...))
	outside.served(t, "count_words", map[string]any{"path": "../secret.txt"}, "5")
	outside.served(t, "reach", address, "connected")
}

func TestStaticGo(t *testing.T) {
	p := newPlace(t)
	server, err := stock.StaticServer()
	if err != nil {
		t.Fatal(err)
	}
	jail := in(example(t, "static-go/profile.yaml"))

	s := connect(t, p.command(jail(t, server, p.project)...))
	s.served(t, "write_note", map[string]any{"name": "new.txt", "text": "a note"}, "written")
	s.served(t, "read_note", map[string]any{"name": "new.txt"}, "a note")
	s.refused(t, "read_note", map[string]any{"name": "../secret.txt"}, "permission denied")
	s.refused(t, "write_note", map[string]any{"name": "../new.txt", "text": "x"}, "permission denied")
	s.end(t)
	p.onlyOwn(t)

	pure(t, p.command(jail(t, server, p.project)...))

	outside := connect(t, p.command(free(t, server, p.project)...))
	outside.served(t, "read_note", map[string]any{"name": "../secret.txt"}, secretText)
	outside.served(t, "write_note", map[string]any{"name": "../new.txt", "text": "x"}, "written")
}

func TestShell(t *testing.T) {
	p := newPlace(t)
	server := example(t, "shell/server.sh")
	jail := in(example(t, "shell/profile.yaml"))

	s := connect(t, p.command(jail(t, server, p.project)...))
	s.served(t, "first_line", map[string]any{"name": "inside.txt"}, insideText)
	s.served(t, "count", map[string]any{"name": "inside.txt"}, "19")
	s.refused(t, "first_line", map[string]any{"name": "../secret.txt"}, "Permission denied")
	s.refused(t, "who", map[string]any{"name": "inside.txt"}, "id: Permission denied")
	s.end(t)
	p.onlyOwn(t)

	pure(t, p.command(jail(t, server, p.project)...))

	outside := connect(t, p.command(free(t, server, p.project)...))
	outside.served(t, "first_line", map[string]any{"name": "../secret.txt"}, secretText)
	outside.served(t, "who", map[string]any{"name": "inside.txt"}, "")
}
