package hostconfig

import "slices"

// Host is an application that starts MCP servers.
type Host struct {
	Name  string // for command lines: lower case, with dashes
	Title string
	Files []Place // the ones it reads, the person's own first
}

// The keys that most hosts share, and those that differ.
var (
	commonKeys   = &Keys{Command: "command", Args: "args", Env: "env"}
	zedKeys      = &Keys{Command: "command", Args: "args", Env: "env", Nested: true}
	nestedKeys   = &Keys{Command: "path", Args: "args", Env: "env"}
	codexKeys    = &Keys{Command: "command", Args: "args", Env: "env", Inherits: "env_vars"}
	gooseKeys    = &Keys{Command: "cmd", Args: "args", Env: "envs", Inherits: "env_keys"}
	opencodeKeys = &Keys{Command: "command", Env: "environment"}
)

// The shapes of files.
var (
	mcpServers = []Shape{{Path: []string{"mcpServers"}, Keys: commonKeys}}
	// Claude Code keeps servers for a person and, by folder, for one project at a time.
	claudeState = append(slices.Clone(mcpServers), Shape{Path: []string{"projects", "*", "mcpServers"}, Keys: commonKeys})
	// Gemini starts one more server from a text; it is noted, and left alone.
	geminiServers = append(slices.Clone(mcpServers), Shape{Path: []string{"mcp", "serverCommand"}, Keys: commonKeys})
	vscodeServers = []Shape{{Path: []string{"servers"}, Keys: commonKeys}}
	vscodeSetting = []Shape{{Path: []string{"mcp", "servers"}, Keys: commonKeys}}
	zedServers    = []Shape{{Path: []string{"context_servers"}, Keys: zedKeys}}
	codexServers  = []Shape{{Path: []string{"mcp_servers"}, Keys: codexKeys}}
	gooseServers  = []Shape{{Path: []string{"extensions"}, Keys: gooseKeys}}
	continueList  = []Shape{{Path: []string{"mcpServers"}, List: true, Keys: commonKeys}}
	crushServers  = []Shape{{Path: []string{"mcp"}, Keys: commonKeys}}
	ampServers    = []Shape{{Path: []string{"amp.mcpServers"}, Keys: commonKeys}}
	vibeServers   = []Shape{{Path: []string{"mcp_servers"}, List: true, Keys: codexKeys}}
	// opencode's second version moved the servers one level down.
	opencodeServers = []Shape{
		{Path: []string{"mcp", "servers"}, If: []string{"mcp", "servers"}, Keys: opencodeKeys},
		{Path: []string{"mcp"}, Unless: []string{"mcp", "servers"}, Keys: opencodeKeys},
	}
)

// vscodeBuilds name the folder where each build of VS Code keeps a person's files, those of
// Cline and Roo too.
var vscodeBuilds = []string{"Code", "Code - Insiders", "VSCodium"}

// each returns one place for every build of VS Code.
func each(path string, shapes []Shape) []Place {
	var out []Place
	for _, build := range vscodeBuilds {
		out = append(out, Place{User, Config, build + "/User/" + path, "", JSON, shapes})
	}
	return out
}

// Hosts are the applications whose files are known, with the places on Linux that their
// documentation or their source names, or that they were seen to read.
var Hosts = []Host{
	{"claude-desktop", "Claude Desktop", []Place{
		{User, Config, "Claude/claude_desktop_config.json", "", JSON, mcpServers},
		{User, Config, "claude/claude_desktop_config.json", "", JSON, mcpServers},
	}},
	{"claude-code", "Claude Code", []Place{
		{User, Home, ".claude.json", "CLAUDE_CONFIG_DIR", JSON, claudeState},
		{Project, Folder, ".mcp.json", "", JSON, mcpServers},
	}},
	{"cursor", "Cursor", []Place{
		{User, Home, ".cursor/mcp.json", "", JSON, mcpServers},
		{Project, Folder, ".cursor/mcp.json", "", JSON, mcpServers},
	}},
	{"vscode", "VS Code", slices.Concat(
		each("mcp.json", vscodeServers),
		each("profiles/*/mcp.json", vscodeServers),
		each("settings.json", vscodeSetting),
		[]Place{
			{Project, Folder, ".vscode/mcp.json", "", JSON, vscodeServers},
			{Project, Folder, ".vscode/settings.json", "", JSON, vscodeSetting},
		},
	)},
	{"windsurf", "Windsurf", []Place{
		{User, Home, ".codeium/windsurf/mcp_config.json", "", JSON, mcpServers},
		{User, Home, ".codeium/mcp_config.json", "", JSON, mcpServers},
	}},
	{"zed", "Zed", []Place{
		{User, Config, "zed/settings.json", "", JSON, zedServers},
		{Project, Folder, ".zed/settings.json", "", JSON, zedServers},
	}},
	{"cline", "Cline", append(
		each("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", mcpServers),
		Place{User, Home, ".cline/data/settings/cline_mcp_settings.json", "", JSON, mcpServers},
	)},
	{"roo", "Roo Code", slices.Concat(
		each("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", mcpServers),
		each("globalStorage/rooveterinaryinc.roo-cline/settings/cline_mcp_settings.json", mcpServers),
		[]Place{{Project, Folder, ".roo/mcp.json", "", JSON, mcpServers}},
	)},
	{"codex", "Codex CLI", []Place{
		{User, Home, ".codex/config.toml", "CODEX_HOME", TOML, codexServers},
		{Project, Folder, ".codex/config.toml", "", TOML, codexServers},
	}},
	{"gemini-cli", "Gemini CLI", []Place{
		{User, Home, ".gemini/settings.json", "", JSON, geminiServers},
		{Project, Folder, ".gemini/settings.json", "", JSON, geminiServers},
	}},
	{"continue", "Continue", []Place{
		{User, Home, ".continue/config.yaml", "", YAML, continueList},
		{Project, Folder, ".continue/mcpServers/*.yaml", "", YAML, continueList},
		{Project, Folder, ".continue/mcpServers/*.json", "", JSON, append(slices.Clone(continueList), mcpServers...)},
	}},
	{"junie", "JetBrains Junie", []Place{
		{User, Home, ".junie/mcp/mcp.json", "", JSON, mcpServers},
		{Project, Folder, ".junie/mcp/mcp.json", "", JSON, mcpServers},
	}},
	{"lm-studio", "LM Studio", []Place{
		{User, Home, ".lmstudio/mcp.json", "", JSON, mcpServers},
		{User, Home, ".cache/lm-studio/mcp.json", "", JSON, mcpServers},
	}},
	{"goose", "Goose", []Place{
		{User, Config, "goose/config.yaml", "", YAML, gooseServers},
	}},
	{"opencode", "opencode", []Place{
		{User, Config, "opencode/opencode.json", "", JSON, opencodeServers},
		{User, Config, "opencode/opencode.jsonc", "", JSON, opencodeServers},
		{Project, Folder, "opencode.json", "", JSON, opencodeServers},
		{Project, Folder, "opencode.jsonc", "", JSON, opencodeServers},
	}},
	{"amp", "Amp", []Place{
		{User, Config, "amp/settings.json", "", JSON, ampServers},
		{User, Config, "amp/settings.jsonc", "", JSON, ampServers},
		{Project, Folder, ".amp/settings.json", "", JSON, ampServers},
		{Project, Folder, ".amp/settings.jsonc", "", JSON, ampServers},
		{System, Root, "/etc/ampcode/managed-settings.json", "", JSON, ampServers},
	}},
	{"crush", "Crush", []Place{
		{User, Config, "crush/crushrc", "", Script, nil},
		{User, Config, "crush/crush.json", "", JSON, crushServers},
		{Project, Folder, "crush.json", "", JSON, crushServers},
		{Project, Folder, ".crush.json", "", JSON, crushServers},
	}},
	{"kiro", "Kiro", []Place{
		{User, Home, ".kiro/settings/mcp.json", "", JSON, mcpServers},
		{User, Home, ".kiro/agents/*.json", "", JSON, mcpServers},
		{Project, Folder, ".kiro/settings/mcp.json", "", JSON, mcpServers},
	}},
	{"copilot-cli", "GitHub Copilot CLI", []Place{
		{User, Home, ".copilot/mcp-config.json", "COPILOT_HOME", JSON, mcpServers},
		{Project, Folder, ".github/mcp.json", "", JSON, mcpServers},
	}},
	{"antigravity", "Antigravity", []Place{
		{User, Home, ".gemini/antigravity/mcp_config.json", "", JSON, mcpServers},
	}},
	{"trae", "Trae", []Place{
		{User, Config, "Trae/User/mcp.json", "", JSON, mcpServers},
	}},
	{"qoder", "Qoder", []Place{
		{User, Config, "Qoder/SharedClientCache/mcp.json", "", JSON, mcpServers},
	}},
	{"factory", "Factory", []Place{
		{User, Home, ".factory/mcp.json", "", JSON, mcpServers},
	}},
	{"kimi", "Kimi CLI", []Place{
		{User, Home, ".kimi/mcp.json", "", JSON, mcpServers},
	}},
	{"vibe", "Mistral Vibe", []Place{
		{User, Home, ".vibe/config.toml", "", TOML, append(slices.Clone(vibeServers), codexServers...)},
	}},
	{"mcphub", "mcphub.nvim", []Place{
		{User, Config, "mcphub/servers.json", "", JSON, mcpServers},
	}},
}
