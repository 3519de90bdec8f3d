package examples_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stockade/examples/stock"
)

// host is a host application, or another client: its configuration and how it is made to start
// its servers. In its texts HOME/ and PROJECT/ are folders.
type host struct {
	name string
	file string // what is wrapped
	// text names the servers looking and stock: PYTHON and NODE are programs, LOOKING and STOCK are the
	// items of its list of arguments, in a spelling that JSON, TOML and YAML share.
	text    string
	other   map[string]string // further files
	env     []string
	command []string // ENTRY and ARGUMENTS are the command line of looking in the file
	// says is what the host tells about SERVER, or offers its model as TOOL of it, when it has
	// reached it: a regular expression.
	says string
	// keeps: it writes its own state into the file.
	keeps bool
}

// The hosts' common ways to write down servers.
const (
	serverTable = `{"mcpServers": {
  "looking": {"command": PYTHON, "args": [LOOKING]},
  "stock": {"command": NODE, "args": [STOCK]}
}}
`
	codexModel = `model_provider = "none"
model = "none"

[model_providers.none] # asks nobody
name = "none"
base_url = "http://127.0.0.1:9999/v1"
wire_api = "responses"
`
	codexServers = `
[mcp_servers.looking] # the one
command = PYTHON
args = [LOOKING]

[mcp_servers.stock]
command = NODE
args = [ STOCK ]
`
	// opencode adds the first key when it is not there.
	opencodeServers = `{
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false, // comments are allowed
  "mcp": {
    "looking": {"type": "local", "command": [PYTHON, LOOKING]},
    "stock": {"type": "local", "command": [NODE, STOCK], "enabled": true,},
  },
}
`
	continueServers = `name: tests
version: 0.0.1
schema: v1
models: # asks nobody
  - {name: none, provider: openai, model: none, apiBase: "http://127.0.0.1:9999/v1", apiKey: none}
mcpServers:
  - name: looking
    command: PYTHON # the one
    args: [LOOKING]
  - name: stock
    command: NODE
    args:
      [STOCK]
`
	copilotServers = `{
  // Every tool of both.
  "mcpServers": {
    "looking": {"type": "local", "command": PYTHON, "args": [LOOKING], "tools": ["*"]},
    "stock": {"type": "local", "command": NODE, "args": [STOCK], "tools": ["*"]},
  },
}
`
)

// copilotProject has no comment and no last comma: unlike its own file, Copilot drops a
// workspace's file with either, and says nothing.
const copilotProject = `{"mcpServers": {
  "looking": {"type": "local", "command": PYTHON, "args": [LOOKING], "tools": ["*"]},
  "stock": {"type": "local", "command": NODE, "args": [STOCK], "tools": ["*"]}
}}
`

// hosts are those that start servers without an account and without a network.
func hosts(t *testing.T) []host {
	t.Helper()
	folder, err := stock.Folder()
	if err != nil {
		t.Fatal(err)
	}
	inspector, err := stock.Inspector.Script()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(folder, "hosts", "node_modules")
	processor := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	opencode := map[string]string{"amd64": "opencode-linux-x64-baseline", "arm64": "opencode-linux-arm64"}[runtime.GOARCH]
	return []host{
		{
			name: "Claude Code, user", file: "HOME/.claude.json", text: serverTable, keeps: true,
			command: []string{filepath.Join(modules, "@anthropic-ai", "claude-code-linux-"+processor, "claude"), "mcp", "list"},
			says:    `(?m)^SERVER: .* ✔ Connected$`,
		},
		{
			name: "Claude Code, project", file: "PROJECT/.mcp.json", text: serverTable,
			other:   map[string]string{"HOME/.claude/settings.json": `{"enableAllProjectMcpServers":true}`},
			command: []string{filepath.Join(modules, "@anthropic-ai", "claude-code-linux-"+processor, "claude"), "mcp", "list"},
			says:    `(?m)^SERVER: .* ✔ Connected$`,
		},
		{
			name: "Codex, user", file: "HOME/.codex/config.toml", text: codexModel + codexServers,
			command: []string{filepath.Join(modules, ".bin", "codex"), "exec", "--skip-git-repo-check", "hi"},
			says:    `"name":"mcp__SERVER".*"name":"TOOL"`,
		},
		{
			name: "Codex, project", file: "PROJECT/.codex/config.toml", text: codexServers,
			other:   map[string]string{"HOME/.codex/config.toml": codexModel + "\n[projects.\"PROJECT/\"]\ntrust_level = \"trusted\"\n"},
			command: []string{filepath.Join(modules, ".bin", "codex"), "exec", "--skip-git-repo-check", "hi"},
			says:    `"name":"mcp__SERVER".*"name":"TOOL"`,
		},
		{
			name: "Gemini CLI, user", file: "HOME/.gemini/settings.json",
			text:    strings.Replace(serverTable, "{", `{"security": {"folderTrust": {"enabled": false}}, "privacy": {"usageStatisticsEnabled": false}, // comment`+"\n  ", 1),
			command: []string{filepath.Join(modules, ".bin", "gemini"), "mcp", "list"},
			says:    `✓ SERVER: .* - Connected`,
		},
		{
			name: "Gemini CLI, project", file: "PROJECT/.gemini/settings.json", text: serverTable,
			other:   map[string]string{"HOME/.gemini/settings.json": `{"security": {"folderTrust": {"enabled": false}}, "privacy": {"usageStatisticsEnabled": false}}`},
			command: []string{filepath.Join(modules, ".bin", "gemini"), "mcp", "list"},
			says:    `✓ SERVER: .* - Connected`,
		},
		{
			name: "opencode, user", file: "HOME/.config/opencode/opencode.json", text: opencodeServers,
			command: []string{filepath.Join(modules, opencode, "bin", "opencode"), "mcp", "list"},
			says:    `✓ SERVER \S*connected`,
		},
		{
			name: "opencode, project", file: "PROJECT/opencode.jsonc", text: opencodeServers,
			command: []string{filepath.Join(modules, opencode, "bin", "opencode"), "mcp", "list"},
			says:    `✓ SERVER \S*connected`,
		},
		{
			name: "Copilot CLI, user", file: "HOME/.copilot/mcp-config.json", text: copilotServers, env: copilotModel,
			command: []string{filepath.Join(modules, "@github", "copilot-linux-"+processor, "copilot"), "-p", "hi", "--allow-all-tools"},
			says:    `"name":"SERVER-TOOL"`,
		},
		{
			name: "Copilot CLI, project", file: "PROJECT/.github/mcp.json", text: copilotProject, env: copilotModel,
			command: []string{filepath.Join(modules, "@github", "copilot-linux-"+processor, "copilot"), "-p", "hi", "--allow-all-tools"},
			says:    `"name":"SERVER-TOOL"`,
		},
		{
			name: "Continue, user", file: "HOME/.continue/config.yaml", text: continueServers,
			command: []string{filepath.Join(modules, ".bin", "cn"), "--config", "HOME/.continue/config.yaml", "-p", "hi"},
			says:    `"name":"TOOL"`,
		},
		{
			name: "TypeScript SDK", file: "HOME/.config/Claude/claude_desktop_config.json", text: serverTable,
			command: []string{"node", example(t, "testdata/client.mjs"), filepath.Join(folder, "node_modules"), "HOME/.config/Claude/claude_desktop_config.json"},
			says:    `(?m)^SERVER: (.* )?TOOL( |$)`,
		},
		{
			// Its --config mode takes the "--" of any server's arguments for its own.
			name: "inspector", file: "PROJECT/.mcp.json", text: `{"mcpServers": {"looking": {"command": PYTHON, "args": [LOOKING]}}}`,
			command: []string{"node", filepath.Join(filepath.Dir(inspector), "cli.js"), "--cli", "--", "ENTRY", "--method", "tools/list", "--", "ARGUMENTS"},
			says:    `"name": "TOOL"`,
		},
	}
}

// copilotModel is a model that asks nobody.
var copilotModel = []string{
	"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:9999/v1", "COPILOT_MODEL=none", "COPILOT_ALLOW_ALL=true",
}

// TestHosts: real host applications, and the official clients, start servers out of their own
// configuration, wrapped by one command, and reach them in their jails; unwrapped they have
// their bytes back, and reach them outside.
func TestHosts(t *testing.T) {
	for _, h := range hosts(t) {
		t.Run(h.name, func(t *testing.T) {
			desk := newDesk(t, &h)
			desk.stockade(t, "wrap", "--yes")
			if now, err := os.ReadFile(desk.file); err != nil || string(now) == desk.text || strings.Count(string(now), "stockade") < len(desk.servers) {
				t.Fatalf("wrapped: %s (%v)", now, err)
			}
			desk.reaches(t, asWrapped)
			desk.stockade(t, "unwrap", "--yes")
			if now, err := os.ReadFile(desk.file); err != nil || strings.Contains(string(now), "stockade") || !h.keeps && string(now) != desk.text {
				t.Fatalf("unwrapped: %s (%v)", now, err)
			}
			desk.reaches(t, asWritten)
		})
	}
}

// TestGoSDK is the same through the official client in Go, which calls the tool.
func TestGoSDK(t *testing.T) {
	h := host{file: "PROJECT/.cursor/mcp.json", text: serverTable}
	desk := newDesk(t, &h)
	ask := func(want standing) {
		t.Helper()
		for name, e := range hostConfig(t, desk.file) {
			s := connect(t, desk.hostCommand(t, append([]string{"env", e.Command}, e.Args...)...))
			if name == "stock" {
				s.ending = bySignal
				home := desk.home
				if want == asWrapped {
					home = filepath.Join(home, ".local/share/stockade/homes")
				}
				s.served(t, "get-env", map[string]any{}, `"HOME": "`+home)
			} else {
				text, _ := s.call(t, "look", nil)
				desk.judge(t, []byte(text), want)
			}
			s.end(t)
		}
	}
	desk.stockade(t, "wrap", "--yes")
	ask(asWrapped)
	desk.stockade(t, "unwrap", "--yes")
	ask(asWritten)
}
