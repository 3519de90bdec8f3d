package hostconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles/hostconfig"
)

type envChange struct{ name, file, before, replaced, removed string }

func env(members string) string { return entry(`"command":"x","env":{` + members + `}`) }

// The variable that is changed is called K.
var envChanges = []envChange{
	{"first", ".mcp.json", env(`"K": "v", "L": "w"`), env(`"K": "${K}", "L": "w"`), env(`"L": "w"`)},
	{"last", ".mcp.json", env(`"L": "w", "K": "v"`), env(`"L": "w", "K": "${K}"`), env(`"L": "w"`)},
	{"only", ".mcp.json", env(` "K": "v" `), env(` "K": "${K}" `), env(`  `)},
	{"only, a trailing comma", ".mcp.json", env("\n  \"K\": \"v\" ,\n"), env("\n  \"K\": \"${K}\" ,\n"), env("\n  \n")},
	{"last, a trailing comma", ".mcp.json", env("\n  \"L\": \"w\",\n  \"K\": \"v\",\n"), env("\n  \"L\": \"w\",\n  \"K\": \"${K}\",\n"), env("\n  \"L\": \"w\",\n")},
	{"in lines", ".mcp.json", env("\r\n  \"L\": \"w\",\r\n  \"K\": 12,\r\n  \"M\": \"\"\r\n"), env("\r\n  \"L\": \"w\",\r\n  \"K\": \"${K}\",\r\n  \"M\": \"\"\r\n"), env("\r\n  \"L\": \"w\",\r\n  \"M\": \"\"\r\n")},
	{"a comment before", ".mcp.json", env("/* c */ \"K\": \"v\", \"L\": \"w\""), env("/* c */ \"K\": \"${K}\", \"L\": \"w\""), env("/* c */ \"L\": \"w\"")},
	{"a comment behind", ".mcp.json", env("\"K\": \"v\", // c\n \"L\": \"w\""), env("\"K\": \"${K}\", // c\n \"L\": \"w\""), ""},
	{"a comment before the last", ".mcp.json", env("\"L\": \"w\", // c\n \"K\": \"v\""), env("\"L\": \"w\", // c\n \"K\": \"${K}\""), ""},
	{"a wrapped entry", ".mcp.json", entry(`"command":"stockade","args":["run","--","x"],"env":{"K":"v"}`), entry(`"command":"stockade","args":["run","--","x"],"env":{"K":"${K}"}`), entry(`"command":"stockade","args":["run","--","x"],"env":{}`)},
	{"another key", "opencode.json", `{"mcp":{"a":{"command":["x"],"environment":{"K":"v"}}}}`, `{"mcp":{"a":{"command":["x"],"environment":{"K":"${K}"}}}}`, `{"mcp":{"a":{"command":["x"],"environment":{}}}}`},
	{"nested", ".zed/settings.json", `{"context_servers":{"a":{"command":{"path":"x","env":{"K":"v"}}}}}`, `{"context_servers":{"a":{"command":{"path":"x","env":{"K":"${K}"}}}}}`, `{"context_servers":{"a":{"command":{"path":"x","env":{}}}}}`},
	{"TOML, a table of its own", ".codex/config.toml", codex("command = 'x'\n[mcp_servers.a.env]\n  K = 'v'\nL = 'w'\n"), codex("command = 'x'\n[mcp_servers.a.env]\n  K = \"${K}\"\nL = 'w'\n"), codex("command = 'x'\n[mcp_servers.a.env]\nL = 'w'\n")},
	{"TOML, the last line", ".codex/config.toml", codex("command = 'x'\n[mcp_servers.a.env]\nK = 'v'"), codex("command = 'x'\n[mcp_servers.a.env]\nK = \"${K}\""), codex("command = 'x'\n[mcp_servers.a.env]\n")},
	{"TOML, a comment behind", ".codex/config.toml", codex("command = 'x'\nenv.K = 'v' # c\nenv.L = 'w'\n"), codex("command = 'x'\nenv.K = \"${K}\" # c\nenv.L = 'w'\n"), ""},
	{"TOML, dotted", ".codex/config.toml", codex("command = 'x'\nenv.K = 'v'\nenv.L = 'w'\n"), codex("command = 'x'\nenv.K = \"${K}\"\nenv.L = 'w'\n"), codex("command = 'x'\nenv.L = 'w'\n")},
	// Without its last variable a table that only dotted keys have opened would be gone.
	{"TOML, dotted, the only one", ".codex/config.toml", codex("command = 'x'\nenv.K = 'v'\n"), codex("command = 'x'\nenv.K = \"${K}\"\n"), ""},
	{"TOML, inline", ".codex/config.toml", codex("command = 'x'\nenv = { L = 'w', K = 'v' }\n"), codex("command = 'x'\nenv = { L = 'w', K = \"${K}\" }\n"), codex("command = 'x'\nenv = { L = 'w' }\n")},
	{"TOML, inline, the only one", ".codex/config.toml", codex("command = 'x'\nenv = {K = 'v'}\n"), codex("command = 'x'\nenv = {K = \"${K}\"}\n"), codex("command = 'x'\nenv = {}\n")},
	{"YAML", "goose/config.yaml", goose("    cmd: x\n    envs:\n      K: v\n      L: w\n"), goose("    cmd: x\n    envs:\n      K: \"${K}\"\n      L: w\n"), goose("    cmd: x\n    envs:\n      L: w\n")},
	{"YAML, the only one", "goose/config.yaml", goose("    cmd: x\n    envs:\n      K: v # c\n    timeout: 3\n"), goose("    cmd: x\n    envs:\n      K: \"${K}\" # c\n    timeout: 3\n"), goose("    cmd: x\n    envs: {} # c\n    timeout: 3\n")},
	{"YAML, a comment behind", "goose/config.yaml", goose("    cmd: x\n    envs:\n      K: v # c\n      L: w\n"), goose("    cmd: x\n    envs:\n      K: \"${K}\" # c\n      L: w\n"), ""},
	{"YAML, braces", "goose/config.yaml", goose("    cmd: x\n    envs: {K: v, L: w}\n"), goose("    cmd: x\n    envs: {K: \"${K}\", L: w}\n"), goose("    cmd: x\n    envs: {L: w}\n")},
}

func TestVariablesRefused(t *testing.T) {
	tests := []layout{
		{"YAML, block text", "goose/config.yaml", goose("    cmd: x\n    envs:\n      K: |\n        v\n"), "f:6:10: the text is a block"},
		{"twice", ".mcp.json", env(`"K": "v", "K": "w"`), "f:1:52: this variable is written twice"},
		{"a list", ".mcp.json", env(`"K": ["v"]`), "f:1:47: this variable's value is no text"},
		{"not there", ".mcp.json", env(`"L": "v"`), `f:1:16: the entry sets no variable "K"`},
		{"no variables", ".mcp.json", entry(`"command":"x","env":null`), "f:1:16: the entry has no table"},
		{"the table twice", ".mcp.json", entry(`"command":"x","env":{},"env":{"K":"v"}`), `f:1:44: "env" is written twice`},
		{"an entry that is refused", ".mcp.json", entry(`"command":["x"],"env":{"K":"v"}`), `f:1:31: this host wants "command"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.before)
			ref := f.Servers[0].Ref
			for _, change := range []func() ([]byte, error){
				func() ([]byte, error) { return f.ReplaceVariable(ref, "K", "w") },
				func() ([]byte, error) { return f.RemoveVariable(ref, "K") },
			} {
				if out, err := change(); out != nil || err == nil || !strings.HasPrefix(err.Error(), tt.after) {
					t.Errorf("got %q, %v; want an error that begins %q", out, err, tt.after)
				}
			}
		})
	}
}

func TestVariables(t *testing.T) {
	for _, tt := range envChanges {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.before)
			ref := f.Servers[0].Ref
			replaced, err := f.ReplaceVariable(ref, "K", "${K}")
			compareChange(t, tt.replaced, replaced, err)
			removed, err := f.RemoveVariable(ref, "K")
			compareChange(t, tt.removed, removed, err)
		})
	}
	f := parse(t, ".mcp.json", env(`"K":"v"`))
	if out, err := f.RemoveVariable(hostconfig.Ref{Name: "b"}, "K"); out != nil || err == nil || !strings.Contains(err.Error(), `no server "b"`) {
		t.Errorf("another server: %q, %v", out, err)
	}
}

// compareChange wants an error and no bytes where nothing is wanted.
func compareChange(t *testing.T, want string, got []byte, err error) {
	t.Helper()
	switch {
	case want == "":
		if err == nil || got != nil {
			t.Errorf("changed: %q, %v", got, err)
		}
	case err != nil:
		t.Error(err)
	default:
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
