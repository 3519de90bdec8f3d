package nettest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stockade/examples/stock"
	"stockade/nettest"
)

// service is a stock server for somebody's API, with the built-in profile that its package
// gets, and an API that answers as the real one does as far as one tool goes.
type service struct {
	profile string
	server  stock.Server
	words   []string          // its own
	env     map[string]string // what its host has set for it
	needs   string            // the variable without which it is not started; "": none
	api     []answer
	tools   []string // some that it lists
	tool    string   // the one that is called
	args    func(word string) map[string]any
	// reports are hosts that the server tells about itself, and told says that it asks for
	// them in the jail too, where they are refused.
	reports []string
	told    bool
}

// answer is what the API at a host says to requests below a path.
type answer struct {
	host, path string
	header     string // a header with the key, "Name: value"; "": such requests have none
	body       string
}

// Words that tools are called with, which an API finds in the request again.
const (
	wordHere    = "harbour"   // it answers
	wordThere   = "elsewhere" // it sends the server on to a host that nobody allows
	wordInside  = "metadata"  // it sends the server on to a cloud's metadata service
	serviceKey  = "key-4711-of-nobody"
	harbourText = "lies in the north"
	metadataURL = "http://169.254.169.254/latest/meta-data/"
)

// serveHTTP answers one request to a host of the service's.
func (s *service) serveHTTP(t *testing.T, host string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("reading a request to %s: %v", host, err)
	}
	at := slices.IndexFunc(s.api, func(a answer) bool { return a.host == host && strings.HasPrefix(r.URL.Path, a.path) })
	if at < 0 {
		t.Errorf("%s was asked for %s %s", host, r.Method, r.URL)
		http.NotFound(w, r)
		return
	}
	a := s.api[at]
	if name, value, some := strings.Cut(a.header, ": "); some && r.Header.Get(name) != value {
		t.Errorf("%s%s: the request does not carry the key in %s", host, r.URL.Path, name)
	}
	asked := r.URL.String() + string(body)
	switch {
	case strings.Contains(asked, wordThere):
		http.Redirect(w, r, "https://"+nettest.AttackerName+"/", http.StatusTemporaryRedirect)
	case strings.Contains(asked, wordInside):
		http.Redirect(w, r, metadataURL, http.StatusTemporaryRedirect)
	default:
		w.Header().Set("Content-Type", "application/json")
		// The client may be gone.
		_, _ = io.WriteString(w, a.body)
	}
}

// reported is a host that servers send reports to.
type reported struct {
	mu    sync.Mutex
	count int
	first chan struct{} // closed by the first report
}

func (r *reported) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count++; r.count == 1 {
		close(r.first)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"session_id":"1"}`) // the client may be gone
}

// open puts the service's API, and whom it reports to, into the network.
func (s *service) open(t *testing.T, n *nettest.Network) *reported {
	t.Helper()
	var hosts []string
	for _, a := range s.api {
		if !slices.Contains(hosts, a.host) {
			hosts = append(hosts, a.host)
		}
	}
	for _, host := range hosts {
		n.Host(t, host, nettest.Public, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serveHTTP(t, host, w, r) }))
	}
	reports := &reported{first: make(chan struct{})}
	for _, host := range s.reports {
		n.Host(t, host, nettest.Many, reports)
	}
	return reports
}

// command starts the server with words in front, in the environment of a host that has set
// env. It is believed in the network's authority, which is a part of the test alone.
func (s *service) command(t *testing.T, n *nettest.Network, env map[string]string, in ...string) *exec.Cmd {
	t.Helper()
	words, err := s.server.Command(s.words...)
	if err != nil {
		t.Fatal(err)
	}
	return command(home(t), env, slices.Concat(in, words))
}

// jail is the command line that starts a server in the jail of its built-in profile.
func jail(t *testing.T, n *nettest.Network) []string {
	t.Helper()
	return []string{
		launcherProgram.find(t, n), "run", "--read", n.CAFile(), "--env", "NODE_EXTRA_CA_CERTS=" + n.CAFile(), "--",
	}
}

// ask calls the service's tool and returns what it says, be it of a failure. One server
// answers one call a second, and says so to others.
func (s *service) ask(t *testing.T, c *session, word string) string {
	t.Helper()
	for {
		result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: s.tool, Arguments: s.args(word)})
		if err != nil {
			if _, told := errors.AsType[*jsonrpc.Error](err); !told {
				t.Fatalf("calling %s: %v; stderr:\n%s", s.tool, err, c.stderr)
			}
			return err.Error()
		}
		if text := textOf(result); !strings.Contains(text, "Rate limit exceeded") {
			return text
		}
	}
}

// asks lists the server's tools, calls one that its API answers, and two that the API sends
// on to others.
func (s *service) asks(t *testing.T, c *session) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("listing tools: %v; stderr:\n%s", err, c.stderr)
	}
	for _, want := range append([]string{s.tool}, s.tools...) {
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Contains(names, want) {
			t.Errorf("the server lists no %s, but %q", want, names)
		}
	}
	if got := s.ask(t, c, wordHere); !strings.Contains(got, harbourText) {
		t.Errorf("%s: got %q, want %q; stderr:\n%s", s.tool, got, harbourText, c.stderr)
	}
	for _, word := range []string{wordThere, wordInside} {
		if got := s.ask(t, c, word); strings.Contains(got, harbourText) {
			t.Errorf("%s %s: got %q", s.tool, word, got)
		}
	}
}

// refusals returns what the log of a run has, sorted, each thing once.
func refusals(t *testing.T, n *nettest.Network, ran *exec.Cmd, profile string) []string {
	t.Helper()
	log := exec.Command(launcherProgram.find(t, n), "log", "--json")
	log.Env = ran.Env
	end := run(t, log)
	var all []string
	for line := range strings.Lines(end.stdout) {
		var entry struct{ Profile, Call, Asked string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("reading %q: %v", line, err)
		}
		if entry.Profile != profile {
			t.Errorf("the log names profile %q, want %q", entry.Profile, profile)
		}
		all = append(all, entry.Call+" "+entry.Asked)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestServices: in the jail of its built-in profile each server lists its tools and reaches
// its API with its key, and nothing else: no host that the API sends it to, no metadata
// service, none that it reports to. Outside a jail it reaches all of them.
func TestServices(t *testing.T) {
	n := nettest.Get(t)
	for _, s := range services {
		t.Run(s.server.Alias, func(t *testing.T) {
			reports := s.open(t, n)

			env := map[string]string{"NODE_EXTRA_CA_CERTS": n.CAFile()}
			for name, value := range s.env {
				env[name] = value
			}
			mark := n.Mark(t)
			outside := connect(t, s.command(t, n, env))
			s.asks(t, outside)
			if len(s.reports) > 0 {
				<-reports.first
			}
			outside.end(t)
			for _, place := range []nettest.Place{nettest.Attacker, nettest.Metadata} {
				if !n.Reached(t, mark, place) {
					t.Errorf("outside: %s was not reached", place)
				}
			}

			mark = n.Mark(t)
			cmd := s.command(t, n, s.env, jail(t, n)...)
			inside := connect(t, cmd)
			s.asks(t, inside)
			inside.end(t)
			n.Untouched(t, mark, append(beyond(), nettest.Many)...)
			n.Unasked(t, mark, append([]string{nettest.AttackerName}, s.reports...)...)
			want := []string{"connect tcp 169.254.169.254:80", "dns name " + nettest.AttackerName}
			if s.told {
				for _, host := range s.reports {
					want = append(want, "dns name "+host)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, refusals(t, n, cmd, s.profile)); diff != "" {
				t.Errorf("refused (-want +got):\n%s\nstderr:\n%s", diff, inside.stderr)
			}
			if strings.Contains(inside.stderr.String(), serviceKey) {
				t.Error("the key is on standard error")
			}

			if s.needs != "" {
				end := run(t, s.command(t, n, nil, jail(t, n)...))
				if end.status != 125 || !strings.Contains(end.stderr, "environment.secrets: "+s.needs+" is not set") {
					t.Errorf("without the key: got status %d; stderr:\n%s", end.status, end.stderr)
				}
			}
		})
	}
}

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
		tools: []string{"firecrawl_search"}, tool: "firecrawl_scrape",
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
