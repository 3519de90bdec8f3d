package hostconfig_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stockade/profiles/hostconfig"
)

func TestEveryPlaceIsRecognised(t *testing.T) {
	folders := hostconfig.Folders{Home: "/home/u", Config: "/home/u/.config", Project: "/srv/p"}
	names := map[string]bool{}
	for _, h := range hostconfig.Hosts {
		if names[h.Name] || h.Title == "" || len(h.Files) == 0 || strings.ToLower(h.Name) != h.Name {
			t.Errorf("host %q: the name is not fit, or there is another one", h.Name)
		}
		names[h.Name] = true
		for _, p := range h.Files {
			file := strings.Replace(p.File(&folders), "*", "x", 1)
			host, found, ok := hostconfig.Recognise(file)
			if !ok || host.Name != h.Name || found.Format != p.Format || cmp.Diff(found.Shapes, p.Shapes) != "" {
				t.Errorf("%s of %s is taken for %s of %s", file, h.Name, found.Path, host.Name)
			}
			if path.IsAbs(p.Path) != (p.Base == hostconfig.Root) {
				t.Errorf("%s: the path does not fit its base", p.Path)
			}
		}
	}
}

func TestFile(t *testing.T) {
	tests := []struct {
		name, file string
		folders    hostconfig.Folders
		want       string
	}{
		{"home", "/x/.cursor/mcp.json", hostconfig.Folders{Home: "/home/u"}, "/home/u/.cursor/mcp.json"},
		{"configuration", "goose/config.yaml", hostconfig.Folders{Config: "/c"}, "/c/goose/config.yaml"},
		{"configuration unknown", "goose/config.yaml", hostconfig.Folders{Home: "/home/u"}, ""},
		{"project", ".mcp.json", hostconfig.Folders{Project: "/srv/p"}, "/srv/p/.mcp.json"},
		{"no project", ".mcp.json", hostconfig.Folders{Home: "/home/u"}, ""},
		{"system", "/etc/ampcode/managed-settings.json", hostconfig.Folders{}, "/etc/ampcode/managed-settings.json"},
		{"moved", ".claude.json", hostconfig.Folders{Home: "/home/u", Moved: map[string]string{"CLAUDE_CONFIG_DIR": "/m"}}, "/m/.claude.json"},
		{"moved, empty", ".claude.json", hostconfig.Folders{Home: "/home/u", Moved: map[string]string{"CLAUDE_CONFIG_DIR": ""}}, "/home/u/.claude.json"},
		{"moved, into a folder", ".codex/config.toml", hostconfig.Folders{Home: "/home/u", Moved: map[string]string{"CODEX_HOME": "/m"}}, "/m/config.toml"},
		{"another's variable", ".cursor/mcp.json", hostconfig.Folders{Home: "/home/u", Moved: map[string]string{"CODEX_HOME": "/m", "": "/n"}}, "/home/u/.cursor/mcp.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := place(t, tt.file)
			if got := p.File(&tt.folders); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRecogniseNobody(t *testing.T) {
	for _, file := range []string{"", "/", "mcp.json", "/home/u/x.cursor/mcp.json", "/home/u/settings.json", ".mcp.json/x", "/home/u/.continue/mcpServers/a/b.yaml"} {
		if h, p, ok := hostconfig.Recognise(file); ok {
			t.Errorf("%q is taken for %s of %s", file, p.Path, h.Name)
		}
	}
}

func TestGuess(t *testing.T) {
	tests := []struct {
		name, file, src string
		want            string // the path of the shape; "-" for none
	}{
		{"common", "x.json", entry(`"command":"x"`), "mcpServers"},
		{"a list", "x.yaml", "mcpServers:\n- {name: a, command: x}\n", "mcpServers"},
		{"VS Code", "x.json", `{"servers":{"a":{"url":"x"}}}`, "servers"},
		{"Zed", "x.jsonc", `{"context_servers":{"a":{"command":"x"}},}`, "context_servers"},
		{"Codex", "x.toml", codex("command = 'x'"), "mcp_servers"},
		{"Goose", "x.yml", goose("    cmd: x\n"), "extensions"},
		{"Amp", "x", `{"amp.mcpServers":{"a":{"command":"x"}}}`, "amp.mcpServers"},
		{"VS Code's settings", "x", `{"mcp":{"servers":{"a":{"command":"x"}}}}`, "mcp.servers"},
		{"opencode", "x", `{"mcp":{"a":{"command":["x"]}}}`, "mcp"},
		{"Crush", "x", `{"mcp":{"a":{"command":"x"}}}`, "mcp"},
		{"bare", "x", `{"a":{"command":"x"}}`, ""},
		{"nothing", "x", `{"mcpServers":{}}`, "-"},
		{"other things", "x", `{"a":{"name":"x"},"b":[1]}`, "-"},
		{"a list of things", "x", `[1]`, "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, ok, err := hostconfig.Guess(tt.file, []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			got := "-"
			if ok {
				got = strings.Join(p.Shapes[len(p.Shapes)-1].Path, ".")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, _, err := hostconfig.Guess("x.json", []byte("{")); err == nil {
		t.Error("a file that ends too early is guessed")
	}
}

func TestServers(t *testing.T) {
	tests := []struct {
		name, file, src string
		want            []hostconfig.Server
	}{
		{
			"everything", ".mcp.json",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\", \"args\": [\"y\"], \"cwd\": \"/z\", \"disabled\": true},\n    \"b\": {\"url\": \"https://mcp.example.com\", \"enabled\": true}}}",
			[]hostconfig.Server{
				{Ref: hostconfig.Ref{Name: "a"}, Command: "x", Args: []string{"y"}, Cwd: "/z", Disabled: true, Line: 3, Column: 5},
				{Ref: hostconfig.Ref{Name: "b"}, Kind: hostconfig.Remote, URL: "https://mcp.example.com", Line: 4, Column: 5},
			},
		},
		{
			"wrapped", ".mcp.json", entry(`"command":"/bin/stockade","args":["run","--profile","p","--","x","--","y"]`),
			[]hostconfig.Server{{
				Ref: hostconfig.Ref{Name: "a"}, Command: "/bin/stockade", Args: []string{"run", "--profile", "p", "--", "x", "--", "y"}, Line: 1, Column: 16,
				Wrapped: &hostconfig.Wrapping{Launcher: "/bin/stockade", Words: []string{"run", "--profile", "p"}, Line: []string{"x", "--", "y"}},
			}},
		},
		{
			"names to hand on, and off", ".codex/config.toml", codex("command = 'x'\nenv_vars = ['A', 'B']\nenabled = false\n"),
			[]hostconfig.Server{{Ref: hostconfig.Ref{Name: "a"}, Command: "x", Inherits: []string{"A", "B"}, Disabled: true, Line: 1, Column: 14}},
		},
		{
			"Goose's kinds", "goose/config.yaml", "extensions:\n  a: {type: builtin, cmd: ~}\n  b: {enabled: false}\n  c: {type: sse, uri: u}\n  d: {type: stdio, cmd: ~}\n",
			[]hostconfig.Server{
				{Ref: hostconfig.Ref{Name: "a"}, Kind: hostconfig.Builtin, Line: 2, Column: 3},
				{Ref: hostconfig.Ref{Name: "b"}, Kind: hostconfig.Empty, Disabled: true, Line: 3, Column: 3},
				{Ref: hostconfig.Ref{Name: "c"}, Kind: hostconfig.Remote, URL: "u", Line: 4, Column: 3},
				{Ref: hostconfig.Ref{Name: "d"}, Kind: hostconfig.Empty, Line: 5, Column: 3},
			},
		},
		{
			"by project", ".claude.json", `{"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}}},"mcpServers":{"a":{"command":"y"}}}`,
			[]hostconfig.Server{
				{Ref: hostconfig.Ref{Name: "a"}, Command: "y", Line: 1, Column: 71},
				{Ref: hostconfig.Ref{Project: "/p", Name: "a"}, Command: "x", Line: 1, Column: 34},
			},
		},
		{"opencode's second version", "opencode.json", `{"mcp":{"timeout":{},"servers":{"a":{"command":["x","y"]}}}}`, []hostconfig.Server{{Ref: hostconfig.Ref{Name: "a"}, Command: "x", Args: []string{"y"}, Line: 1, Column: 33}}},
		{"opencode's first version", "opencode.json", `{"mcp":{"servers":{"command":["x"]}}}`, []hostconfig.Server{{Ref: hostconfig.Ref{Name: "servers"}, Command: "x", Line: 1, Column: 9}}},
		{"opencode's first version, a server called servers that is off", "opencode.json", `{"mcp":{"servers":{"enabled":false}}}`, []hostconfig.Server{{Ref: hostconfig.Ref{Name: "servers"}, Kind: hostconfig.Empty, Disabled: true, Line: 1, Column: 9}}},
		{"the launcher without a command", ".mcp.json", entry(`"command":"stockade","args":["run","--"]`), []hostconfig.Server{{Ref: hostconfig.Ref{Name: "a"}, Command: "stockade", Args: []string{"run", "--"}, Line: 1, Column: 16}}},
		{"another program", ".mcp.json", entry(`"command":"/bin/my-stockade","args":["run","--","x"]`), []hostconfig.Server{{Ref: hostconfig.Ref{Name: "a"}, Command: "/bin/my-stockade", Args: []string{"run", "--", "x"}, Line: 1, Column: 16}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.file, tt.src)
			if diff := cmp.Diff(tt.want, f.Servers, cmpopts.IgnoreUnexported(hostconfig.Server{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
