package hostconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stockade/profiles/hostconfig"
)

// refusedLayouts are files with one entry that is left alone; after says why.
var refusedLayouts = []layout{
	{"a whole line", ".mcp.json", entry(`"command": "uv run python", "args": ["x"]`), "f:1:32: the command is a whole line: hosts take it as one name and start nothing"},
	{"a command list where a name belongs", ".mcp.json", entry(`"command": ["npx"]`), `f:1:32: this host wants "command" as text`},
	{"a name where a list belongs", "opencode.json", `{"mcp":{"a":{"command":"x"}}}`, `f:1:24: this host wants "command" as a list of words`},
	{"an empty command list", "opencode.json", `{"mcp":{"a":{"command":[]}}}`, `f:1:24: this host wants "command" as a list of words`},
	{"an empty word in a command list", "opencode.json", `{"mcp":{"a":{"command":["","x"]}}}`, `f:1:24: the command is empty`},
	{"an empty command", ".mcp.json", entry(`"command": ""`), "f:1:32: the command is empty"},
	{"a number among words", ".mcp.json", entry(`"command": "x", "args": ["--port", 80]`), `f:1:56: "args" holds something else than text`},
	{"words that are no list", ".mcp.json", entry(`"command": "x", "args": "y"`), `f:1:45: "args" is no list of words`},
	{"words that are null", ".mcp.json", entry(`"command": "x", "args": null`), `f:1:45: "args" is no list of words`},
	{"command twice", ".mcp.json", entry(`"command": "x", "command": "y"`), `f:1:37: "command" is written twice in this entry: hosts take the last, people the first`},
	{"command twice, once escaped", ".mcp.json", entry(`"command": "x", "c\u006fmmand": "y"`), `f:1:37: "command" is written twice in this entry: hosts take the last, people the first`},
	{"words twice", ".mcp.json", entry(`"command": "x", "args": [], "args": ["y"]`), `f:1:49: "args" is written twice in this entry: hosts take the last, people the first`},
	{"command in another case", "crush.json", `{"mcp":{"a":{"command":"x","Command":"y"}}}`, `f:1:28: "Command" is "command" but for case: some hosts take either`},
	{"command in another case alone", "crush.json", `{"mcp":{"a":{"url":"x","COMMAND":"y"}}}`, `f:1:24: "COMMAND" is "command" but for case: some hosts take either`},
	{"words in another case", "crush.json", `{"mcp":{"a":{"command":"x","Args":["y"]}}}`, `f:1:28: "Args" is "args" but for case: some hosts take either`},
	{"servers in another case", "crush.json", `{"MCP":{},"mcp":{"a":{"command":"x"}}}`, `f:1:2: "MCP" and "mcp" differ in case only: some hosts take either`},
	{"servers in another case alone", "crush.json", `{"Mcp":{"a":{"command":"x"}}}`, `f:1:2: "Mcp" is "mcp" but for case: some hosts take either`},
	{"servers in capitals", ".mcp.json", `{"MCPServers":{"a":{"command":"x"}}}`, `f:1:2: "MCPServers" is "mcpServers" but for case: some hosts take either`},
	{"a project's servers in another case", "/home/u/.claude.json", `{"projects":{"/p":{"McpServers":{"a":{"command":"x"}}}}}`, `f:1:20: "McpServers" is "mcpServers" but for case: some hosts take either`},
	{"a part of the host with a command", "goose/config.yaml", "extensions:\n  a: {type: builtin, cmd: x}\n", "f:2:27: the entry is both a part of the host and a command"},
	{"a project twice", "/home/u/.claude.json", `{"projects":{"/p":{},"/p":{"mcpServers":{"a":{"command":"x"}}}}}`, `f:1:22: "/p" is written twice: hosts take the last, people the first`},
	{"servers twice", ".mcp.json", `{"mcpServers":{},"mcpServers":{"a":{"command":"x"}}}`, `f:1:18: "mcpServers" is written twice: hosts take the last, people the first`},
	{"a name twice", ".mcp.json", `{"mcpServers":{"a":{"url":"x"},"a":{"command":"x"}}}`, `f:1:32: this name is written twice: hosts take the last, people the first`},
	{"command and address", ".mcp.json", entry(`"command": "x", "url": "https://mcp.example.com"`), "f:1:32: the entry is both a command and an address: hosts differ in which they take"},
	{"a command called remote", ".mcp.json", entry(`"type": "http", "command": "x"`), "f:1:48: the entry is both a command and an address: hosts differ in which they take"},
	{"no table", ".mcp.json", `{"mcpServers":{"a":"npx"}}`, "f:1:20: the entry is no table of keys"},
	{"nested without a path", ".zed/settings.json", `{"context_servers":{"a":{"command":{"args":[]}}}}`, "f:1:36: the command has no path"},
	{"nested where nobody nests", ".mcp.json", entry(`"command": {"path": "x"}`), `f:1:32: this host wants "command" as text`},
	{"no name", ".continue/config.yaml", "mcpServers:\n- command: x\n", "f:2:3: the entry has no name"},
	{"a name twice in a list", ".continue/config.yaml", "mcpServers:\n- {name: a, url: x}\n- {name: a, command: x}\n", "f:3:3: two entries have this name"},
	{"an anchor", "goose/config.yaml", goose("    cmd: &c x\n"), "f:4:10: an anchor binds this entry to another place of the file"},
	{"an anchor on the words", "goose/config.yaml", goose("    cmd: x\n    args: &w [y]\n"), "f:5:11: an anchor binds this entry to another place of the file"},
	{"an alias", "goose/config.yaml", "x: &x [y]\n" + goose("    cmd: x\n    args: *x\n"), "f:6:11: an alias binds this entry to another place of the file"},
	{"an anchor on all servers", "goose/config.yaml", "extensions: &e\n  a: {cmd: x}\ny: *e\n", "f:1:13: an anchor binds these servers to another place of the file"},
	{"a merge key", "goose/config.yaml", "x: &x {args: [y]}\nextensions:\n  a:\n    <<: *x\n    cmd: x\n", "f:4:9: a merge key binds this entry to another place of the file"},
	{"a tag", "goose/config.yaml", goose("    cmd: !!str x\n"), "f:4:10: a tag stands before this value"},
	{"block text", "goose/config.yaml", goose("    cmd: |-\n      x\n"), "f:4:10: the text is a block below its sign"},
	{"plain text over lines", "goose/config.yaml", goose("    cmd: /x\n      y\n"), "f:4:10: the text goes over several lines"},
	{"quoted text over lines", "goose/config.yaml", goose("    cmd: \"/x\n      y\"\n"), "f:4:10: the text goes over several lines"},
	{"a tag among words in brackets", "goose/config.yaml", goose("    cmd: x\n    args: [y, !!str z]\n"), "f:5:11: where the list ends cannot be told"},
	{"a dash alone in its line", "goose/config.yaml", goose("    cmd: x\n    args:\n    -\n      y\n"), "f:6:5: an item is not in one line with its dash"},
	{"a number as the command", "goose/config.yaml", goose("    cmd: 12\n"), `f:4:10: this host wants "cmd" as text`},
	{"the command twice in YAML", "goose/config.yaml", goose("    cmd: x\n    cmd: y\n"), `f:5:5: "cmd" is written twice in this entry: hosts take the last, people the first`},
}

// TestWrongIsNothingElse keeps an address beside a command in another case from being taken
// for a server that starts nothing here.
func TestWrongIsNothingElse(t *testing.T) {
	f := parse(t, "crush.json", `{"mcp":{"a":{"url":"x","COMMAND":"y"},"b":{"Command":"y"}}}`)
	for _, s := range f.Servers {
		if s.Kind != hostconfig.Wrong {
			t.Errorf("%s is %s", s.Name, s.Kind)
		}
	}
}

// TestOneHostsWords keeps a word of Goose's from hiding another host's server, and code in the
// file from being taken for a part of the host.
func TestOneHostsWords(t *testing.T) {
	if s := parse(t, ".mcp.json", entry(`"type": "builtin", "command": "x"`)).Servers[0]; s.Kind != hostconfig.Command || s.Refusal != nil {
		t.Errorf("%s is %s", s.Name, s.Kind)
	}
	if s := parse(t, "goose/config.yaml", "extensions:\n  a: {type: inline_python, code: x}\n").Servers[0]; s.Kind != hostconfig.Inline {
		t.Errorf("%s is %s", s.Name, s.Kind)
	}
	f := parse(t, "crush.json", `{"Mcp":{"a":{"command":"x"},"b":{"url":"y"},"c":{}}}`)
	for _, s := range f.Servers {
		if s.Kind != hostconfig.Wrong {
			t.Errorf("%s is %s", s.Name, s.Kind)
		}
	}
	if len(f.Servers) != 3 {
		t.Errorf("servers %v", f.Servers)
	}
}

// parse reads a file called f of the host that reads a file of the given name.
func parse(t *testing.T, file, src string) *hostconfig.File {
	t.Helper()
	f, err := hostconfig.Parse("f", []byte(src), place(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRefused(t *testing.T) {
	for _, tt := range refusedLayouts {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.before)
			if len(f.Servers) == 0 {
				t.Fatal("no server")
			}
			s := f.Servers[len(f.Servers)-1]
			if s.Refusal == nil {
				t.Fatalf("not refused: %v", s)
			}
			if got := s.Refusal.Error(); got != tt.after {
				t.Errorf("got  %s\nwant %s", got, tt.after)
			}
			out, err := f.Wrap(hostconfig.Edit{Ref: s.Ref, Launcher: "stockade"})
			if out != nil || err == nil {
				t.Errorf("wrapped: %q, %v", out, err)
			}
			if out, err := f.Unwrap(s.Ref); out != nil || err == nil {
				t.Errorf("unwrapped: %q, %v", out, err)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	deep := strings.Repeat
	tests := []struct{ name, file, src, want string }{
		{"JSON5", "mcphub/servers.json", "{\n  mcpServers: {}\n}", "f:2:3: this cannot be read as JSON"},
		{"open JSON", ".mcp.json", "{\"a\": [", "f:1:8: the file ends too early"},
		{"nothing", ".mcp.json", "", "f:1:1: the file ends too early"},
		{"a text that is never closed", ".mcp.json", "{\"a\": \"secret", "f:1:14: the file ends too early"},
		{"a bare word", ".mcp.json", "{\"a\": secret}", "f:1:7: this cannot be read as JSON"},
		{"deep JSON", ".mcp.json", deep("[", 1e6), "f:1:501: nested too deep"},
		{"deep JSON behind strings and comments", ".mcp.json", "[\"\\\"[\", // [[\n/* [ */" + deep("{\"a\":", 1e6), "f:2:2503: nested too deep"},
		{"deep YAML", "goose/config.yaml", deep("[", 1e5), "f:1:501: nested too deep"},
		{"deep TOML", ".codex/config.toml", "a = " + deep("[", 1e5), "f:1:10005: this cannot be read as TOML"},
		{"no UTF-8", ".mcp.json", "{\"a\":\"\xff\"}", "f:1:7: this is not UTF-8"},
		{"TOML", ".codex/config.toml", "a = 1\nb = secret\n", "f:2:5: this cannot be read as TOML"},
		{"TOML, a table twice", ".codex/config.toml", "[mcp_servers.a]\n[mcp_servers.a]\n", "f:2:2: this name is written twice"},
		{"TOML, a key twice", ".codex/config.toml", "[mcp_servers.a]\ncommand = 'x'\ncommand = 'y'\n", "f:3:1: this name is written twice"},
		{"YAML", "goose/config.yaml", "a: b\n c: d\n", "f:2:3: this cannot be read as YAML"},
		{"YAML, a tab", "goose/config.yaml", "a:\n\t- b\n", "f:2:1: this cannot be read as YAML"},
		{"YAML, two documents", "goose/config.yaml", "a: b\n---\nc: d\n", "f:2:1: more than one document: hosts read one"},
		{"YAML, a directive", "goose/config.yaml", "%YAML 1.1\n---\na: b\n", "f: YAML directives are not read"},
		{"YAML, a line end of old", "goose/config.yaml", "a: \"\u0085\"\n", "f:1:5: a line ends here for some readers of YAML and not for others"},
		{"YAML, a return alone", "goose/config.yaml", "a: b\rc: d\n", "f:1:5: a line ends here for some readers of YAML and not for others"},
		{"large TOML", ".codex/config.toml", deep("#\n", 300<<10), "f: the file is too large to be a configuration"},
		{"large JSON", ".mcp.json", deep(" ", 64<<20) + "{}", "f: the file is too large to be a configuration"},
		{"a script", "crush/crushrc", "mcp add x", "f: servers in this file are started by a program of the host's own: it is not changed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := hostconfig.Parse("f", []byte(tt.src), place(t, tt.file))
			bad, ok := errors.AsType[*hostconfig.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if got := bad.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if strings.Contains(bad.Error()+bad.Hint, "secret") {
				t.Error("the error shows what stands in the file")
			}
		})
	}
}

func TestUnusableEdits(t *testing.T) {
	f := parse(t, ".mcp.json", `{"mcpServers":{"a":{"command":"x"},"b":{"url":"y"}}}`)
	tests := []struct {
		name string
		edit hostconfig.Edit
		want string
	}{
		{"no such server", hostconfig.Edit{Ref: hostconfig.Ref{Name: "c"}, Launcher: "stockade"}, `there is no server "c"`},
		{"remote", hostconfig.Edit{Ref: hostconfig.Ref{Name: "b"}, Launcher: "stockade"}, "the entry is remote"},
		{"another launcher", hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "/bin/env"}, "the launcher has to be"},
		{"a relative launcher", hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "bin/stockade"}, "the launcher has to be"},
		{"a word that ends the words", hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "stockade", Words: []string{"--"}}, `"--" ends`},
		{"a control character", hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "stockade", Words: []string{"a\nb"}}, "a control character"},
		{"no UTF-8", hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "stockade", Words: []string{"\xff"}}, "would not read as wanted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := f.Wrap(tt.edit)
			if out != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want an error with %q", out, err, tt.want)
			}
		})
	}
	// One that cannot be made keeps all others from being made.
	good := hostconfig.Edit{Ref: hostconfig.Ref{Name: "a"}, Launcher: "stockade"}
	if out, err := f.Wrap(good, tests[1].edit); out != nil || err == nil || !strings.Contains(err.Error(), "remote") {
		t.Errorf("a good and a bad edit: %q, %v", out, err)
	}
	if out, err := f.Wrap(good, good); err != nil || strings.Count(string(out), "stockade") != 1 {
		t.Errorf("the same edit twice: %q, %v", out, err)
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	f := parse(t, ".mcp.json", entry(`"command": "x", "env": {"TOKEN": "hunter2", "PORT": 80, "GONE": null}`))
	s := f.Servers[0]
	if len(s.Env) != 2 || s.Env[0].Name != "TOKEN" || s.Env[0].Value.Reveal() != "hunter2" || s.Env[1].Value.Reveal() != "80" {
		t.Fatalf("%v", s.Env)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		within := struct {
			inner hostconfig.Secret
			file  *hostconfig.File
		}{s.Env[0].Value, f}
		if got := fmt.Sprintf(verb, s.Env) + fmt.Sprintf(verb, within) + fmt.Sprintf(verb, f); strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74657232") {
			t.Errorf("%s shows the value", verb)
		}
	}
	if got, err := json.Marshal(s.Env); err != nil || strings.Contains(string(got), "hunter2") {
		t.Errorf("encoding shows the value (%v)", err)
	}
}
