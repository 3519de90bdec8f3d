package nettest_test

import (
	"fmt"

	"stockade/examples/stock"
)

// one is arguments with the word under one name.
func one(name string) func(string) map[string]any {
	return func(word string) map[string]any { return map[string]any{name: word} }
}

var bearer = "Authorization: Bearer " + serviceKey

var services = []service{
	{
		profile: "github", server: stock.GitHub, env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": serviceKey},
		api:   []answer{{"api.github.com", "/repos/owner/" + wordHere + "/issues", bearer, fmt.Sprintf(`[{"title": %q}]`, harbourText)}, {"api.github.com", "/repos/", bearer, ""}},
		tools: []string{"search_repositories", "create_or_update_file"},
		tool:  "list_issues", args: func(word string) map[string]any { return map[string]any{"owner": "owner", "repo": word} },
	},
	{
		profile: "gitlab", server: stock.GitLab, env: map[string]string{"GITLAB_PERSONAL_ACCESS_TOKEN": serviceKey}, needs: "GITLAB_PERSONAL_ACCESS_TOKEN",
		api:   []answer{{"gitlab.com", "/api/v4/projects/", bearer, fmt.Sprintf(`{"file_name": "a", "file_path": "a", "size": 1, "encoding": "base64", "content": "YQ==", "content_sha256": "1", "ref": "main", "blob_id": "1", "commit_id": "1", "last_commit_id": %q}`, harbourText)}},
		tools: []string{"create_issue", "search_repositories"},
		tool:  "get_file_contents", args: func(word string) map[string]any { return map[string]any{"project_id": word, "file_path": "a"} },
	},
	{
		profile: "brave-search", server: stock.BraveReference, env: map[string]string{"BRAVE_API_KEY": serviceKey},
		api:   []answer{{"api.search.brave.com", "/res/v1/web/search", "X-Subscription-Token: " + serviceKey, fmt.Sprintf(`{"web": {"results": [{"title": "a", "description": %q, "url": "https://a.example/"}]}}`, harbourText)}},
		tools: []string{"brave_local_search"}, tool: "brave_web_search", args: one("query"),
	},
	{
		profile: "brave-search", server: stock.Brave, env: map[string]string{"BRAVE_API_KEY": serviceKey},
		api:   []answer{{"api.search.brave.com", "/res/v1/web/search", "X-Subscription-Token: " + serviceKey, fmt.Sprintf(`{"web": {"results": [{"title": "a", "description": %q, "url": "https://a.example/"}]}}`, harbourText)}},
		tools: []string{"brave_news_search"}, tool: "brave_web_search", args: one("query"),
	},
	{
		profile: "slack", server: stock.Slack, env: map[string]string{"SLACK_BOT_TOKEN": serviceKey, "SLACK_TEAM_ID": "T01"}, needs: "SLACK_BOT_TOKEN",
		api:   []answer{{"slack.com", "/api/conversations.history", bearer, fmt.Sprintf(`{"ok": true, "messages": [{"text": %q}]}`, harbourText)}},
		tools: []string{"slack_post_message"}, tool: "slack_get_channel_history", args: one("channel_id"),
	},
	{
		profile: "context7", server: stock.Context7, env: map[string]string{"CONTEXT7_API_KEY": serviceKey},
		api:   []answer{{"context7.com", "/api/v2/libs/search", bearer, fmt.Sprintf(`{"results": [{"id": "/a/b", "title": "a", "description": %q}]}`, harbourText)}},
		tools: []string{"query-docs"}, tool: "resolve-library-id",
		args: func(word string) map[string]any { return map[string]any{"query": "a", "libraryName": word} },
	},
	{
		profile: "notion", server: stock.Notion, env: map[string]string{"NOTION_TOKEN": serviceKey},
		api:   []answer{{"api.notion.com", "/v1/search", bearer, fmt.Sprintf(`{"object": "list", "results": [{"id": %q}]}`, harbourText)}},
		tools: []string{"API-get-users"}, tool: "API-post-search", args: one("query"),
	},
	{
		profile: "firecrawl", server: stock.Firecrawl, env: map[string]string{"FIRECRAWL_API_KEY": serviceKey},
		api:   []answer{{"api.firecrawl.dev", "/v2/scrape", bearer, fmt.Sprintf(`{"success": true, "data": {"markdown": %q}}`, harbourText)}},
		tools: []string{"firecrawl_search"}, lingers: true, tool: "firecrawl_scrape",
		args: func(word string) map[string]any { return map[string]any{"url": "https://" + word + ".example/"} },
	},
	{
		profile: "tavily", server: stock.Tavily, env: map[string]string{"TAVILY_API_KEY": serviceKey},
		api:   []answer{{"api.tavily.com", "/search", bearer, fmt.Sprintf(`{"query": "a", "images": [], "results": [{"title": "a", "url": "https://a.example/", "content": %q, "score": 1}]}`, harbourText)}},
		tools: []string{"tavily_extract"}, tool: "tavily_search", args: one("query"),
	},
	{
		profile: "exa", server: stock.Exa, env: map[string]string{"EXA_API_KEY": serviceKey},
		api:   []answer{{"api.exa.ai", "/search", "X-Api-Key: " + serviceKey, fmt.Sprintf(`{"results": [{"title": "a", "url": "https://a.example/", "highlights": [%q]}]}`, harbourText)}},
		tools: []string{"web_fetch_exa"}, tool: "web_search_exa", args: one("query"),
		reports: []string{"api.agnost.ai"}, told: true,
	},
	{
		profile: "sentry", server: stock.Sentry,
		env: map[string]string{"SENTRY_ACCESS_TOKEN": serviceKey, "SENTRY_DSN": "https://0123456789abcdef0123456789abcdef@o1.ingest.us.sentry.io/1"},
		api: []answer{
			{"sentry.io", "/api/0/users/me/regions/", bearer, `{"regions": [{"name": "us", "url": "https://us.sentry.io"}, {"name": "de", "url": "https://de.sentry.io"}]}`},
			{"us.sentry.io", "/api/0/organizations/", bearer, fmt.Sprintf(`[{"id": "1", "slug": %q, "name": "A", "links": {"regionUrl": "https://us.sentry.io", "organizationUrl": "https://us.sentry.io/a"}}]`, harbourText)},
			{"de.sentry.io", "/api/0/organizations/", bearer, `[]`},
		},
		tools: []string{"search_docs"}, tool: "find_organizations", args: one("query"),
		reports: []string{"o1.ingest.us.sentry.io"},
	},
	{
		profile: "supabase", server: stock.Supabase, env: map[string]string{"SUPABASE_ACCESS_TOKEN": serviceKey},
		api: []answer{
			{"supabase.com", "/docs/api/graphql", "", `{"data": {"schema": "type Query { schema: String! }"}}`},
			{"api.supabase.com", "/v1/organizations/", bearer, fmt.Sprintf(`{"id": "a", "name": %q, "plan": "free", "opt_in_tags": [], "allowed_release_channels": ["ga"]}`, harbourText)},
		},
		tools: []string{"search_docs", "execute_sql"}, tool: "get_organization", args: one("id"),
	},
}
