package nettest_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/examples/stock"
	"stockade/nettest"
	"stockade/sandbox/jailtest"
)

// chromium is Debian's browser, without the script that starts it for a desktop.
const chromium = "/usr/lib/chromium/chromium"

// browserFiles are what Chromium needs from the machine beside the libraries that it is
// linked with: its TLS library opens parts of its own by name.
func browserFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"/usr/lib/chromium", "/etc/fonts", "/usr/share/fonts"}
	for _, name := range []string{"libsoftokn3.so", "libfreeblpriv3.so", "libfreebl3.so", "libnssckbi.so", "libsqlite3.so.0"} {
		found, err := filepath.Glob("/usr/lib/*/" + name)
		if err != nil || len(found) == 0 {
			t.Fatalf("finding %s: %v, %v", name, found, err)
		}
		files = append(files, found...)
	}
	return files
}

// browserPrograms are what it starts: itself, and the one that waits for its crashes.
var browserPrograms = []string{chromium, "/usr/lib/chromium/chrome_crashpad_handler"}

// noZygote has each process of the browser started by itself. The process that it otherwise
// forks them from finds out who they are by the sender of a message (SCM_CREDENTIALS), and
// in a jail with a network that is the supervisor.
const noZygote = "--no-zygote"

// playwright is the browser server, with Debian's Chromium for its browser. The browser's
// own sandbox needs namespaces that a jail does not give. [nettest.ForeignName] gets the
// address of another name: a page that asks for somebody else's behind the same front.
func playwright(t *testing.T, n *nettest.Network) program {
	t.Helper()
	settings := map[string]any{"browser": map[string]any{
		"browserName": "chromium", "isolated": true,
		"launchOptions": map[string]any{
			"headless": true, "chromiumSandbox": false, "executablePath": chromium,
			"args": []string{
				"--ignore-certificate-errors-spki-list=" + n.PublicKeyHash(),
				"--host-resolver-rules=MAP " + nettest.ForeignName + " " + nettest.ShopName,
				"--disable-dev-shm-usage", "--disable-gpu", "--disable-breakpad", noZygote,
			},
		},
	}}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "playwright.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	words, err := stock.Server{Alias: "playwright-mcp", Entry: "cli.js"}.Command("--config", file)
	if err != nil {
		t.Fatal(err)
	}
	return program{words: words, read: append([]string{file}, browserFiles(t)...), exec: browserPrograms, broad: []string{"/proc"}}
}

// visit is one page that the browser is sent to, and a part of what its server then says:
// the page's title, or the browser's own error.
type visit struct {
	address, outside, inside string
}

// visited is a page that comes, from a place.
func visited(place nettest.Place, host string) string {
	return "Page Title: " + nettest.Greeting(place, host)
}

const (
	browserNoName = "net::ERR_NAME_NOT_RESOLVED"
	browserDenied = "net::ERR_NETWORK_ACCESS_DENIED" // EACCES
	browserReset  = "net::ERR_CONNECTION_RESET"
)

// embedding is the address of an allowed page that loads a picture and a script from another.
func embedding(from string) string {
	return "https://" + nettest.DataName + "/page?url=" + url.QueryEscape(from)
}

// needChromium ends the test where there is no such browser.
func needChromium(t *testing.T) {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "Debian's Chromium", Check: func() error {
		_, err := os.Stat(chromium)
		return err
	}})
}

func TestBrowser(t *testing.T) {
	n := nettest.Get(t)
	needChromium(t)
	home := visited(nettest.Public, nettest.DataName)
	sentOn := "https://" + nettest.DataName + "/to?url="
	tests := []struct {
		name, network string
		visits        []visit
		untouched     []nettest.Place
		unasked       []string
	}{
		{
			"list", `egress: ["data.corp-demo.org", "six.corp-demo.org", "shop.cdn-demo.net", "loop.corp-demo.org"]`,
			[]visit{
				{"https://data.corp-demo.org/", home, home},
				{"https://six.corp-demo.org/", visited(nettest.SixOnly, nettest.SixName), visited(nettest.SixOnly, nettest.SixName)},
				{"https://shop.cdn-demo.net/", visited(nettest.CDN, nettest.ShopName), visited(nettest.CDN, nettest.ShopName)},
				{"https://foreign.cdn-demo.net/", visited(nettest.CDN, nettest.ForeignName), browserReset},
				{"https://evil.attacker-demo.org/", visited(nettest.Attacker, nettest.AttackerName), browserNoName},
				{"https://loop.corp-demo.org/", nettest.LoopName + ".", browserNoName},
				{"http://169.254.169.254/", visited(nettest.Metadata, "169.254.169.254"), browserDenied},
				{"http://127.0.0.1:8000/", visited(nettest.Loopback, "127.0.0.1:8000"), browserDenied},
				{"http://2130706433:8000/", visited(nettest.Loopback, "127.0.0.1:8000"), browserDenied},
				{"http://[::1]:8000/", visited(nettest.Loopback6, "[::1]:8000"), browserDenied},
				{"http://localhost:8000/", "as localhost:8000.", browserDenied},
				{sentOn + "http://169.254.169.254/", visited(nettest.Metadata, "169.254.169.254"), browserDenied},
				{embedding("http://10.0.0.5/inner"), home, home},
				{embedding("https://evil.attacker-demo.org/"), home, home},
				{"https://data.corp-demo.org/", home, home},
			},
			beyond(),
			[]string{nettest.AttackerName},
		},
		{
			"public", "egress: public",
			[]visit{
				{"https://data.corp-demo.org/", home, home},
				{"https://evil.attacker-demo.org/", visited(nettest.Attacker, nettest.AttackerName), visited(nettest.Attacker, nettest.AttackerName)},
				{"http://10.0.0.5/", visited(nettest.Private, "10.0.0.5"), browserDenied},
				{"http://private.corp-demo.org/", visited(nettest.Private, nettest.PrivateName), browserNoName},
				{sentOn + "http://127.0.0.1:8000/", visited(nettest.Loopback, "127.0.0.1:8000"), browserDenied},
				{embedding("http://10.0.0.5/inner"), home, home},
			},
			nettest.Inside, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := n.Mark(t)
			s := connect(t, plain{}.Command(t, playwright(t, n), ""))
			for _, v := range tt.visits {
				s.visits(t, v.address, v.outside)
			}
			s.end(t)
			for _, place := range []nettest.Place{nettest.Private, nettest.Loopback} {
				if !n.Reached(t, mark, place) {
					t.Errorf("outside: %s was not reached", place)
				}
			}

			mark = n.Mark(t)
			s = connect(t, jailed{}.Command(t, playwright(t, n), tt.network))
			for _, v := range tt.visits {
				s.visits(t, v.address, v.inside)
			}
			s.end(t)
			n.Untouched(t, mark, tt.untouched...)
			n.Unasked(t, mark, tt.unasked...)
		})
	}
}

// visits sends the browser to a page; its server's answer must hold want. A page that failed
// may still be showing its failure, which the server calls an interruption of the next one:
// then it goes to that page anew.
func (s *session) visits(t *testing.T, address, want string) {
	t.Helper()
	page := map[string]any{"url": address}
	got := s.call(t, "browser_navigate", page)
	if strings.Contains(got, "is interrupted by another navigation") {
		s.call(t, "browser_close", map[string]any{})
		got = s.call(t, "browser_navigate", page)
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: want %q, got %q; stderr:\n%s", address, want, got, s.stderr)
	}
}
