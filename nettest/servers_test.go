package nettest_test

import (
	"maps"
	"strings"
	"testing"

	"stockade/examples/stock"
	"stockade/nettest"
)

// fetcher is a stock server that fetches what it is told to, and checks no address.
type fetcher struct {
	name string
	stock.Server
	tool string
	more map[string]any // arguments beside the address
	// refusals are its words for the ways in which a jail refuses.
	noName, denied string
}

var fetchers = []fetcher{
	// got, as programs that scrape use it.
	{
		name: "fetch-mcp 0.0.5", Server: stock.Server{Alias: "fetch-mcp", Entry: "cli.js"},
		tool: "fetch_url", more: map[string]any{"raw": true},
		noName: "ENOTFOUND", denied: "EACCES",
	},
	// Node's own fetch.
	{
		name: "mcp-npx-fetch 1.0.0", Server: stock.Server{Alias: "npx-fetch", Entry: "dist/index.js"},
		tool:   "fetch_html",
		noName: "fetch failed", denied: "fetch failed",
	},
}

func (f fetcher) program(t *testing.T, n *nettest.Network) program {
	t.Helper()
	words, err := f.Command()
	if err != nil {
		t.Fatal(err)
	}
	return program{words: words, env: map[string]string{"NODE_EXTRA_CA_CERTS": n.CAFile()}, read: []string{n.CAFile()}}
}

func (f fetcher) fetch(t *testing.T, s *session, address string) string {
	t.Helper()
	args := map[string]any{"url": address}
	maps.Copy(args, f.more)
	return s.call(t, f.tool, args)
}

// TestFetchServers holds published reports about servers that fetch: none of them tells an
// address inside from one outside, and some tell only the spelling that they know. Outside a
// jail each reaches everything; in one the kernel's view of the address decides.
func TestFetchServers(t *testing.T) {
	n := nettest.Get(t)
	tests := []struct {
		name, address string
		place         nettest.Place
		byName        bool // it is the name that does not resolve
	}{
		{"loopback", "http://127.0.0.1:8000/", nettest.Loopback, false},
		{"loopback over IPv6", "http://[::1]:8000/", nettest.Loopback6, false},
		{"another loopback", "http://127.0.0.2:8000/", nettest.Loopback2, false},
		{"metadata", "http://169.254.169.254/latest/meta-data/", nettest.Metadata, false},
		{"metadata over IPv6", "http://[fd00:ec2::254]/", nettest.Metadata6, false},
		{"private", "http://10.0.0.5/", nettest.Private, false},
		{"shared", "http://100.64.0.5/", nettest.Shared, false},
		{"decimal", "http://2130706433:8000/", nettest.Loopback, false},
		{"octal", "http://0177.0.0.1:8000/", nettest.Loopback, false},
		{"hexadecimal", "http://0x7f000001:8000/", nettest.Loopback, false},
		{"short", "http://127.1:8000/", nettest.Loopback, false},
		{"zero", "http://0.0.0.0:8000/", nettest.Loopback, false},
		{"mapped", "http://[::ffff:127.0.0.1]:8000/", nettest.Loopback, false},
		{"mapped metadata", "http://[::ffff:a9fe:a9fe]/", nettest.Metadata, false},
		{"translated", "http://[64:ff9b::a9fe:a9fe]/", nettest.NAT64, false},
		{"6to4", "http://[2002:7f00:1::1]/", nettest.SixToFour, false},
		{"name that leads inside", "http://private.corp-demo.org/", nettest.Private, true},
		{"name in the hosts file", "http://db.corp-demo.org/", nettest.Private, false}, // the server reads that file itself
		{"redirect", "https://data.corp-demo.org/to?url=http://169.254.169.254/", nettest.Metadata, false},
		{"redirect by name", "https://data.corp-demo.org/to?url=http://private.corp-demo.org/", nettest.Private, true},
	}
	for _, f := range fetchers {
		t.Run(f.name, func(t *testing.T) {
			outside := connect(t, plain{}.Command(t, f.program(t, n), ""))
			for _, tt := range tests {
				if got := f.fetch(t, outside, tt.address); !strings.Contains(got, "greetings from "+string(tt.place)+" as ") {
					t.Errorf("%s, outside: got %q, want the page of %s", tt.name, got, tt.place)
				}
			}
			outside.end(t)

			mark := n.Mark(t)
			inside := connect(t, jailed{}.Command(t, f.program(t, n), "egress: public"))
			for _, tt := range tests {
				refusal := f.denied
				if tt.byName {
					refusal = f.noName
				}
				if got := f.fetch(t, inside, tt.address); !strings.Contains(got, refusal) || strings.Contains(got, "greetings") {
					t.Errorf("%s, inside: got %q, want a failure with %q", tt.name, got, refusal)
				}
			}
			home := f.fetch(t, inside, "https://"+nettest.DataName+"/")
			if !strings.Contains(home, nettest.Greeting(nettest.Public, nettest.DataName)) {
				t.Errorf("inside: got %q, want the page of %s", home, nettest.Public)
			}
			inside.end(t)
			n.Untouched(t, mark, nettest.Inside...)
		})
	}
}
