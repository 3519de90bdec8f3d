package nettest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stockade/examples/stock"
	"stockade/nettest"
)

// driver is a stock server that drives a browser, with the built-in profile of its package.
type driver struct {
	profile string
	server  stock.Server
	// words are its own, for the jail and for a start outside.
	words   func(t *testing.T, n *nettest.Network) []string
	read    []string          // of those words, files that have to be readable
	outside map[string]string // what the profile sets, so that it has a browser outside as well
	tool    string
	args    func(n *nettest.Network, address string) map[string]any
	// title calls the tool that tells the page's title, and args with what.
	title     string
	titleArgs map[string]any
	// lingers says that it does not end with its input while its browser runs.
	lingers bool
	// fileless says that it takes no address of a file, in a jail or out of one.
	fileless bool
}

// drivers are the servers; the network's certificates are believed by their key alone, so
// that nothing has to be installed.
func drivers(t *testing.T, n *nettest.Network) []driver {
	t.Helper()
	believe := "--ignore-certificate-errors-spki-list=" + n.PublicKeyHash()
	config := filepath.Join(t.TempDir(), "playwright.json")
	text := `{"browser": {"launchOptions": {"args": ["--no-zygote", "--in-process-gpu", "` + believe + `"]}}}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []driver{
		{
			profile: "puppeteer", server: stock.Puppeteer,
			words: func(*testing.T, *nettest.Network) []string { return nil },
			outside: map[string]string{
				"PUPPETEER_EXECUTABLE_PATH": chromium, "DOCKER_CONTAINER": "true", "PUPPETEER_LAUNCH_OPTIONS": `{"pipe": true}`,
			},
			tool: "puppeteer_navigate",
			args: func(_ *nettest.Network, address string) map[string]any {
				args := map[string]any{"url": address}
				if strings.HasPrefix(address, "https:") { // other options are another browser
					args["allowDangerous"], args["launchOptions"] = true, map[string]any{"args": []string{believe}}
				}
				return args
			},
			title: "puppeteer_evaluate", titleArgs: map[string]any{"script": "document.title"},
			lingers: true,
		},
		{
			profile: "playwright", server: stock.Playwright,
			words: func(*testing.T, *nettest.Network) []string { return []string{"--config", config} },
			read:  []string{config},
			outside: map[string]string{
				"PLAYWRIGHT_MCP_BROWSER": "chromium", "PLAYWRIGHT_MCP_EXECUTABLE_PATH": chromium, "PLAYWRIGHT_MCP_HEADLESS": "true", "PLAYWRIGHT_MCP_SANDBOX": "false",
			},
			tool:  "browser_navigate",
			args:  func(_ *nettest.Network, address string) map[string]any { return map[string]any{"url": address} },
			title: "browser_evaluate", titleArgs: map[string]any{"function": "() => document.title"},
			fileless: true,
		},
		{
			profile: "chrome-devtools", server: stock.ChromeDevTools,
			words: func(*testing.T, *nettest.Network) []string {
				return []string{"--headless", "--executablePath=" + chromium, "--chromeArg=--no-zygote", "--chromeArg=--in-process-gpu", "--chromeArg=" + believe}
			},
			outside: map[string]string{
				"PUPPETEER_DANGEROUS_NO_SANDBOX": "true", "CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS": "1", "CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1",
			},
			tool: "navigate_page",
			args: func(_ *nettest.Network, address string) map[string]any {
				return map[string]any{"type": "url", "url": address, "pageId": 1}
			},
			title: "evaluate_script", titleArgs: map[string]any{"function": "() => document.title", "pageId": 1},
		},
	}
}

// goes sends the browser to an address and returns what the server says of it, or the title
// of the page that came.
func (d *driver) goes(t *testing.T, s *session, n *nettest.Network, address string) string {
	t.Helper()
	said := s.says(t, d.tool, d.args(n, address))
	if strings.Contains(said, "net::ERR_") {
		return said
	}
	return s.says(t, d.title, d.titleArgs)
}

// says calls a tool and returns its text, be it an error of the protocol.
func (s *session) says(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if told, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return told.Message
	}
	if err != nil {
		t.Fatalf("calling %s: %v; stderr:\n%s", tool, err, s.stderr)
	}
	return textOf(result)
}

func (d *driver) end(t *testing.T, s *session) {
	t.Helper()
	if d.lingers {
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	s.end(t)
}

// shows goes to an address, again when the driver looked at the page while the browser was
// between two: that answer says nothing about either.
func (d *driver) shows(t *testing.T, s *session, n *nettest.Network, address string) string {
	t.Helper()
	var got string
	for range 5 {
		if got = d.goes(t, s, n, address); !strings.Contains(got, "Execution context was destroyed") {
			break
		}
	}
	return got
}

// browserNoFile is EACCES where the browser opens a file.
const browserNoFile = "net::ERR_ACCESS_DENIED"

// TestBrowserProfiles: the servers that drive a browser, in the jails of their built-in
// profiles. The browser comes up and shows a public page, and neither an address inside nor
// a file of the person's; outside a jail it shows all of them.
func TestBrowserProfiles(t *testing.T) {
	n := nettest.Get(t)
	needChromium(t)
	secret := filepath.Join(t.TempDir(), "secret.html")
	if err := os.WriteFile(secret, []byte("<title>a file of the person's</title>"), 0o600); err != nil {
		t.Fatal(err)
	}
	pages := []struct {
		address, outside, inside string
	}{
		{"https://" + nettest.DataName + "/", nettest.Greeting(nettest.Public, nettest.DataName), nettest.Greeting(nettest.Public, nettest.DataName)},
		{"http://10.0.0.5/", nettest.Greeting(nettest.Private, "10.0.0.5"), browserDenied},
		{"http://127.0.0.1:8000/", nettest.Greeting(nettest.Loopback, "127.0.0.1:8000"), browserDenied},
		{"http://" + nettest.PrivateName + "/", nettest.Greeting(nettest.Private, nettest.PrivateName), browserNoName},
		{"file://" + secret, "a file of the person's", browserNoFile},
		{"https://" + nettest.DataName + "/", nettest.Greeting(nettest.Public, nettest.DataName), nettest.Greeting(nettest.Public, nettest.DataName)},
	}
	for _, d := range drivers(t, n) {
		t.Run(d.profile, func(t *testing.T) {
			start := func(env map[string]string, in ...string) (*session, *exec.Cmd) {
				words, err := d.server.Command(d.words(t, n)...)
				if err != nil {
					t.Fatal(err)
				}
				cmd := command(home(t), env, append(in, words...))
				return connect(t, cmd), cmd
			}
			mark := n.Mark(t)
			s, _ := start(d.outside)
			for _, p := range pages {
				if d.fileless && strings.HasPrefix(p.address, "file:") {
					continue
				}
				got := d.shows(t, s, n, p.address)
				if !strings.Contains(got, p.outside) {
					t.Errorf("outside: %s: got %q, want %q", p.address, got, p.outside)
				}
			}
			d.end(t, s)
			for _, place := range []nettest.Place{nettest.Private, nettest.Loopback} {
				if !n.Reached(t, mark, place) {
					t.Errorf("outside: %s was not reached", place)
				}
			}

			mark = n.Mark(t)
			flags := []string{launcherProgram.find(t, n), "run"}
			for _, file := range d.read {
				flags = append(flags, "--read", file)
			}
			s, cmd := start(nil, append(flags, "--")...)
			for _, p := range pages {
				if d.fileless && strings.HasPrefix(p.address, "file:") {
					continue
				}
				got := d.shows(t, s, n, p.address)
				if !strings.Contains(got, p.inside) || strings.Contains(got, "a file of the person's") {
					t.Errorf("inside: %s: got %q, want %q; stderr:\n%s", p.address, got, p.inside, s.stderr)
				}
			}
			d.end(t, s)
			n.Untouched(t, mark, nettest.Inside...)
			refusals(t, n, cmd, d.profile)
		})
	}
}
