package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/examples/stock"
	"stockade/profiles"
	"stockade/sandbox/program"
)

// TestMentionsOfStockServers: of servers as people install them, what a first profile has
// to name is found, and nothing of the packages that they need.
func TestMentionsOfStockServers(t *testing.T) {
	folder, err := stock.Folder()
	if err != nil {
		t.Fatal(err)
	}
	node, err := stock.Node(0)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		alias, entry              string
		secrets, variables, hosts []string
		only                      bool // these and no others
	}{
		{alias: "github-mcp", entry: "dist/index.js", secrets: []string{"GITHUB_PERSONAL_ACCESS_TOKEN"}, hosts: []string{"api.github.com:443"}, only: true},
		{alias: "gitlab-mcp", entry: "dist/index.js", secrets: []string{"GITLAB_PERSONAL_ACCESS_TOKEN"}, variables: []string{"GITLAB_API_URL"}, hosts: []string{"gitlab.com:443"}, only: true},
		{alias: "slack-mcp", entry: "dist/index.js", secrets: []string{"SLACK_BOT_TOKEN"}, variables: []string{"SLACK_CHANNEL_IDS", "SLACK_TEAM_ID"}, hosts: []string{"slack.com:443"}, only: true},
		{alias: "brave-search", entry: "dist/index.js", secrets: []string{"BRAVE_API_KEY"}, hosts: []string{"api.search.brave.com:443"}, only: true},
		{alias: "brave-mcp", entry: "dist/index.js", secrets: []string{"BRAVE_API_KEY"}, variables: []string{"BRAVE_API_KEY_FILE", "BRAVE_MCP_TRANSPORT"}},
		{alias: "memory", entry: "dist/index.js", variables: []string{"MEMORY_FILE_PATH"}, only: true},
		{alias: "tavily", entry: "build/index.js", secrets: []string{"TAVILY_API_KEY"}, hosts: []string{"api.tavily.com:443"}},
		{alias: "firecrawl", entry: "dist/index.js", secrets: []string{"FIRECRAWL_API_KEY"}, variables: []string{"FIRECRAWL_API_URL"}, hosts: []string{"api.firecrawl.dev:443"}},
		{alias: "sentry", entry: "dist/index.js", secrets: []string{"SENTRY_ACCESS_TOKEN"}, hosts: []string{"sentry.io:443"}},
		{alias: "notion", entry: "bin/cli.mjs", secrets: []string{"NOTION_TOKEN"}, hosts: []string{"api.notion.com:443"}},
		{alias: "supabase", entry: "dist/cli.js", secrets: []string{"SUPABASE_ACCESS_TOKEN"}, hosts: []string{"api.supabase.com:443"}},
		{alias: "playwright-mcp", entry: "cli.js", variables: []string{"PLAYWRIGHT_MCP_HEADLESS"}},
		{alias: "fs-2026.8.31", entry: "dist/index.js", only: true},
	}
	m := machine{home: "/nowhere", dir: t.TempDir(), program: program.Facts{Home: "/nowhere", Dir: "/", Env: map[string]string{"PATH": "/usr/bin:/bin"}}}
	for _, tt := range tests {
		t.Run(tt.alias, func(t *testing.T) {
			p, err := program.Resolve([]string{node, filepath.Join(folder, "node_modules", tt.alias, tt.entry)}, m.program)
			if err != nil {
				t.Fatal(err)
			}
			found, err := mentionsOf(p, "", m)
			if err != nil || found == nil {
				t.Fatalf("%v, %v", found, err)
			}
			for what, list := range map[string]struct {
				want []string
				got  []profiles.Mention
			}{"secrets": {tt.secrets, found.Secrets}, "variables": {tt.variables, found.Variables}, "hosts": {tt.hosts, found.Hosts}} {
				var got []string
				for _, g := range list.got {
					got = append(got, g.Name)
					if strings.Contains(g.From, "node_modules") || !strings.Contains(g.From, ":") {
						t.Errorf("%s comes from %q", g.Name, g.From)
					}
				}
				for _, w := range list.want {
					if !slices.Contains(got, w) {
						t.Errorf("%s: %s is missing in %v", what, w, got)
					}
				}
				if tt.only && len(got) != len(list.want) {
					t.Errorf("%s: %v, want %v", what, got, list.want)
				}
			}
			text := profiles.Propose(profiles.Proposal{Name: "p", Program: p, Mentions: found})
			parsed, err := profiles.Parse("p.yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(parsed.Environment.Secrets)+len(parsed.Environment.Pass)+len(parsed.Network.Hosts) > 0 {
				t.Errorf("mentions are granted: %+v", parsed)
			}
			for _, w := range slices.Concat(tt.secrets, tt.variables, tt.hosts) {
				if !strings.Contains(string(text), w) {
					t.Errorf("%s is not proposed:\n%s", w, text)
				}
			}
		})
	}
}
