package nettest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
	// lingers says that the server does not end with its input, but by a signal.
	lingers bool
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
type reported struct{ count atomic.Int64 }

func (r *reported) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.count.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"session_id":"1"}`) // the client may be gone
}

func (r *reported) came() bool { return r.count.Load() > 0 }

// until speaks to the server until something has happened that it does on its own time.
func (s *session) until(t *testing.T, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !happened() {
		if err := s.Ping(ctx, nil); err != nil {
			t.Fatalf("waiting for a report: %v; stderr:\n%s", err, s.stderr)
		}
	}
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
	reports := &reported{}
	for _, host := range s.reports {
		n.Host(t, host, nettest.Many, reports)
	}
	return reports
}

// command is the server's command line with words in front, in the environment of a host that
// has set env.
func (s *service) command(t *testing.T, env map[string]string, in ...string) *exec.Cmd {
	t.Helper()
	words, err := s.server.Command(s.words...)
	if err != nil {
		t.Fatal(err)
	}
	return command(home(t), env, slices.Concat(in, words))
}

// jail is what starts a server in the jail of its built-in profile. The flags make it trust the
// network's authority, which is the test's own matter, and add what is given.
func jail(t *testing.T, n *nettest.Network, flags ...string) []string {
	t.Helper()
	line := []string{launcherProgram.find(t, n), "run", "--read", n.CAFile(), "--env", "NODE_EXTRA_CA_CERTS=" + n.CAFile()}
	return append(append(line, flags...), "--")
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

			env := maps.Clone(s.env)
			env["NODE_EXTRA_CA_CERTS"] = n.CAFile()
			mark := n.Mark(t)
			outside := connect(t, s.command(t, env))
			s.asks(t, outside)
			if len(s.reports) > 0 {
				outside.until(t, reports.came)
			}
			s.end(t, outside)
			for _, place := range []nettest.Place{nettest.Attacker, nettest.Metadata} {
				if !n.Reached(t, mark, place) {
					t.Errorf("outside: %s was not reached", place)
				}
			}

			mark = n.Mark(t)
			cmd := s.command(t, s.env, jail(t, n)...)
			inside := connect(t, cmd)
			s.asks(t, inside)
			if s.told {
				for _, host := range s.reports {
					inside.until(t, func() bool { return strings.Contains(inside.stderr.String(), "refused: name "+host+":") })
				}
			}
			s.end(t, inside)
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
				end := run(t, s.command(t, nil, jail(t, n)...))
				if end.status != 125 || !strings.Contains(end.stderr, "environment.secrets: "+s.needs+" is not set") {
					t.Errorf("without the key: got status %d; stderr:\n%s", end.status, end.stderr)
				}
			}
		})
	}
}

// end ends the server.
func (s *service) end(t *testing.T, c *session) {
	t.Helper()
	if s.lingers {
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	c.end(t)
}

// TestServicesOfOnesOwn: a server that its host sends to another API reaches that with the
// flag that adds it to the built-in profile, and not without.
func TestServicesOfOnesOwn(t *testing.T) {
	n := nettest.Get(t)
	const own = "api.harbour-demo.net"
	settings := map[string]string{
		"gitlab": "GITLAB_API_URL=https://" + own + "/api/v4", "firecrawl": "FIRECRAWL_API_URL=https://" + own,
		"context7": "CONTEXT7_API_URL=https://" + own + "/api", "sentry": "SENTRY_HOST=" + own,
	}
	for _, s := range services {
		setting, some := settings[s.profile]
		if !some {
			continue
		}
		t.Run(s.profile, func(t *testing.T) {
			s.api, s.reports, s.env = slices.Clone(s.api), nil, maps.Clone(s.env)
			for i := range s.api {
				s.api[i].host = own
			}
			s.open(t, n)
			name, value, _ := strings.Cut(setting, "=")
			s.env[name] = value

			mark := n.Mark(t)
			cmd := s.command(t, s.env, jail(t, n)...)
			without := connect(t, cmd)
			if got := s.ask(t, without, wordHere); strings.Contains(got, harbourText) {
				t.Errorf("without the flag: got %q", got)
			}
			s.end(t, without)
			n.Unasked(t, mark, own)
			if diff := cmp.Diff([]string{"dns name " + own}, refusals(t, n, cmd, s.profile)); diff != "" {
				t.Errorf("refused (-want +got):\n%s\nstderr:\n%s", diff, without.stderr)
			}

			cmd = s.command(t, s.env, jail(t, n, "--egress", own)...)
			with := connect(t, cmd)
			if got := s.ask(t, with, wordHere); !strings.Contains(got, harbourText) {
				t.Errorf("with the flag: got %q; stderr:\n%s", got, with.stderr)
			}
			s.end(t, with)
			if got := refusals(t, n, cmd, s.profile); len(got) > 0 {
				t.Errorf("with the flag, refused: %q", got)
			}
		})
	}
}
