package hostconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles/hostconfig"
)

// TestUnwrapRewritten takes the launcher out of files that a host or a person has changed
// since it was put in.
func TestUnwrapRewritten(t *testing.T) {
	tests := []layout{
		{"indented anew", ".mcp.json", entry("\n\"command\": \"stockade\",\n\"args\": [\n\"run\",\n\"--\",\n\"x\",\n\"y\"\n]\n"), entry("\n\"command\": \"x\",\n\"args\": [\n\"y\"\n]\n")},
		{"an added list, indented anew", ".mcp.json", entry("\"command\": \"stockade\", \"args\": [\n\"run\",\n\"--\",\n\"x\"\n]"), entry("\"command\": \"x\", \"args\": [\n\n]")},
		{"an added list, minified", ".mcp.json", entry(`"command":"stockade","args":["run","--","x"]`), entry(`"command":"x","args":[]`)},
		{"an added list with a word more", ".mcp.json", entry(`"command": "stockade", "args": [ "run", "--", "x", "y"]`), entry(`"command": "x", "args": [ "y"]`)},
		{"an added list that was moved", ".mcp.json", entry(`"args": [ "run", "--", "x"], "command": "stockade"`), entry(`"args": [ ], "command": "x"`)},
		{"an added list, blanks inside its brackets", ".mcp.json", entry(`"command": "stockade", "args": [ "run", "--", "x" ]`), entry(`"command": "x", "args": [  ]`)},
		{"a key between", ".mcp.json", entry(`"command": "stockade", "cwd": "/", "args": [ "run", "--", "x"]`), entry(`"command": "x", "cwd": "/", "args": [ ]`)},
		{"a trailing comma", ".mcp.json", entry(`"command":"stockade","args":["run","--","x" , ]`), entry(`"command":"x","args":[ ]`)},
		{"other words", ".mcp.json", entry(`"command":"/a b/stockade","args":["run","--profile","p","--root","/","--","x","--","y"]`), entry(`"command":"x","args":["--","y"]`)},
		{"keys in another order", ".mcp.json", entry(`"args":["run","--","x","y"],"command":"stockade"`), entry(`"args":["y"],"command":"x"`)},
		{"one list", "opencode.json", `{"mcp":{"a":{"command":["stockade","run","--","x"]}}}`, `{"mcp":{"a":{"command":["x"]}}}`},
		{"TOML in lines", ".codex/config.toml", codex("command = \"stockade\"\nargs = [\n  \"run\",\n  \"--\",\n  'x',\n]\n"), codex("command = 'x'\nargs = [\n  \n]\n")},
		{"YAML, brackets to dashes", "goose/config.yaml", goose("    cmd: stockade\n    args:\n    - run\n    - --\n    - 'x'\n    timeout: 3\n"), goose("    cmd: 'x'\n    args: []\n    timeout: 3\n")},
		{"YAML, dashes to brackets", "goose/config.yaml", goose("    cmd: stockade\n    args: [run, --, x, y]\n"), goose("    cmd: x\n    args: [y]\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.before)
			got, err := f.Unwrap(f.Servers[0].Ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnwrapLosesNothing refuses to take away what somebody has put between the words.
func TestUnwrapLosesNothing(t *testing.T) {
	tests := []layout{
		{"a comment between", ".mcp.json", entry("\"command\": \"stockade\", \"args\": [\"run\", /* mine */ \"--\", \"x\", \"y\"]"), "would lose"},
		{"a comment behind", ".mcp.json", entry("\"command\": \"stockade\", \"args\": [\"run\", \"--\", \"x\", /* mine */ \"y\"]"), "would lose"},
		{"a comment between, nothing behind", ".mcp.json", entry("\"command\": \"stockade\", \"args\": [\"run\", \"--\", // mine\n\"x\"]"), "would lose"},
		{"a comment between, one list", "opencode.json", "{\"mcp\":{\"a\":{\"command\":[\"stockade\", // mine\n\"run\", \"--\", \"x\"]}}}", "would lose"},
		{"a comment in TOML", ".codex/config.toml", codex("command = 'stockade'\nargs = ['run', # mine\n'--', 'x', 'y']\n"), "would lose"},
		{"a comment in YAML", "goose/config.yaml", goose("    cmd: stockade\n    args:\n    - run # mine\n    - \"--\"\n    - x\n    - y\n"), "would lose"},
		{"a comment before YAML's dashes", "goose/config.yaml", goose("    cmd: stockade\n    args: # mine\n    - run\n    - \"--\"\n    - x\n"), "would lose"},
		{"YAML's command as block text", "goose/config.yaml", goose("    cmd: stockade\n    args:\n    - run\n    - \"--\"\n    - |-\n      x\n"), "would lose"},
		{"no such server", ".mcp.json", entry(`"url":"x"`), `there is no server "b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.before)
			ref := f.Servers[0].Ref
			if strings.HasPrefix(tt.after, "there is no") {
				ref = hostconfig.Ref{Name: "b"}
			}
			got, err := f.Unwrap(ref)
			if got != nil || err == nil || !strings.Contains(err.Error(), tt.after) {
				t.Errorf("got %q, %v; want an error with %q", got, err, tt.after)
			}
		})
	}
}

// TestUnwrapLeavesOthers takes the launcher from one entry of three.
func TestUnwrapLeavesOthers(t *testing.T) {
	f := parse(t, ".mcp.json", `{"mcpServers":{"a":{"command":"stockade","args":["run","--","x","1"]},"b":{"command":"stockade","args":["run","--","y","2"]},"c":{"command":"z"}}}`)
	got, err := f.Unwrap(hostconfig.Ref{Name: "b"}, hostconfig.Ref{Name: "c"}, hostconfig.Ref{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"mcpServers":{"a":{"command":"stockade","args":["run","--","x","1"]},"b":{"command":"y","args":["2"]},"c":{"command":"z"}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotes(t *testing.T) {
	tests := []struct{ name, file, src, want string }{
		{"another host's key", ".cursor/mcp.json", "{\n\"servers\":{\"a\":{\"command\":\"x\"}}}", `f:2:1: "servers" looks like servers, but this host does not read it`},
		{"a line in one text", ".gemini/settings.json", `{"mcp":{"serverCommand":"npx x"},"mcpServers":{"a":{"command":"x"}}}`, "f:1:25: mcp.serverCommand: a server's command line in one text is not changed"},
		{"a list for a table", ".mcp.json", `{"mcpServers":[{"name":"a","command":"x"}]}`, "f:1:15: mcpServers: this host wants a table with a name for each server here"},
		{"beside the second version's servers", "opencode.json", `{"mcp":{"servers":{"a":{"command":["x"]}},"b":{"command":["y"]},"timeout":3}}`, `f:1:43: "b" stands beside mcp.servers: one version of this host starts it, another does not`},
		{"a list for a table, beside servers", "/home/u/.claude.json", `{"mcpServers":[{"command":"x"}],"projects":{"/p":{"mcpServers":{"b":{"command":"y"}}}}}`, "f:1:15: mcpServers: this host wants a table with a name for each server here"},
		{"a table for a list", ".continue/config.yaml", "mcpServers:\n  a: {command: x}\n", "f:2:3: mcpServers: this host wants a list of servers here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.src)
			if len(f.Notes) != 1 || f.Notes[0].Error() != tt.want {
				t.Errorf("got %v, want %s", f.Notes, tt.want)
			}
		})
	}
	// What one shape of a place cannot read and another one can is no note.
	f := parse(t, ".vibe/config.toml", codex("command = 'x'"))
	if len(f.Notes) != 0 || len(f.Servers) != 1 {
		t.Errorf("notes %v, servers %v", f.Notes, f.Servers)
	}
	// Neither is what only looks like a server.
	if f := parse(t, "crush.json", `{"lsp":{"go":{"command":"gopls"}}}`); len(f.Notes) != 0 {
		t.Errorf("notes %v", f.Notes)
	}
}
