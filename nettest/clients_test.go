package nettest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/examples/stock"
	"stockade/nettest"
)

// outcome is what became of one thing that a client asked for.
type outcome struct {
	Ask  string `json:"ask"`
	OK   bool   `json:"ok"`
	Text string `json:"text"` // what it got, or its own words about the failure
	Code string `json:"code"` // its own code of the failure
}

// failures are a client's codes for the ways in which a jail refuses.
type failures struct {
	noName string // the name does not resolve
	noData string // the name has no address that it may know
	denied string // the kernel refuses the connection: EACCES
	reset  string // the peer ends the connection in its face
	unsent string // the kernel refuses the datagram
}

// client is one program that the matrix runs.
type client struct {
	name     string
	scheme   string // of the pages that it can get: "https", or "http" for one without TLS
	failures failures
	// verbs are what it can do: get, via, lookup, tcp, …
	verbs []string
	// ask starts it in a launcher, once or once for each ask, and returns an outcome for each.
	ask func(t *testing.T, n *nettest.Network, l launcher, network string, asks []string) []outcome
}

func (c client) can(ask string) bool {
	verb, _, _ := strings.Cut(ask, " ")
	return slices.Contains(c.verbs, verb)
}

// clients are all of the matrix but the browser, which takes a page's time for each ask.
var clients = []client{
	{
		name: "curl", scheme: "https", verbs: []string{"get", "via"}, ask: askCurl,
		failures: failures{noName: "6", noData: "6", denied: "7", reset: "35"},
	},
	{
		name: "node", scheme: "https", verbs: []string{"get", "via", "lookup", "resolve4", "resolve6", "tcp", "udp"}, ask: askAll(nodeClient),
		failures: failures{noName: "ENOTFOUND", noData: "ENOTFOUND", denied: "EACCES", reset: "ECONNRESET", unsent: "EACCES"},
	},
	{
		name: "python", scheme: "https", verbs: []string{"get", "via", "aio", "lookup", "tcp", "udp", "connected", "ask"}, ask: askAll(pythonClient),
		failures: failures{noName: "EAI -2", noData: "EAI -5", denied: "EACCES", reset: "ECONNRESET", unsent: "EACCES"},
	},
	{
		name: "static go", scheme: "https", verbs: []string{"get", "via", "lookup", "tcp", "udp"}, ask: askAll(goClient),
		failures: failures{
			noName: "no such host", noData: "no such host", denied: "EACCES", reset: "ECONNRESET",
			// It connects its datagram sockets, which succeeds so that addresses can be sorted.
			unsent: "EDESTADDRREQ",
		},
	},
	{
		name: "static musl", scheme: "http", verbs: []string{"get", "via", "lookup", "tcp", "udp", "connected"}, ask: askAll(muslClient),
		failures: failures{
			noName: "EAI -2", denied: "EACCES", reset: "ECONNRESET", unsent: "EACCES",
			// It takes answers from its own name server alone, so it sees them whole, and then
			// the address is refused.
			noData: "EACCES",
		},
	},
}

// askAll gives all asks to one process of a program that knows how to read them.
func askAll(find func(t *testing.T, n *nettest.Network) program) func(*testing.T, *nettest.Network, launcher, string, []string) []outcome {
	return func(t *testing.T, n *nettest.Network, l launcher, network string, asks []string) []outcome {
		t.Helper()
		end := run(t, l.Command(t, find(t, n), network, asks...))
		var all []outcome
		for line := range strings.Lines(end.stdout) {
			var o outcome
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("reading %q: %v", line, err)
			}
			all = append(all, o)
		}
		if end.status != 0 || len(all) != len(asks) {
			t.Fatalf("the client ended with status %d after %d of %d asks; stderr:\n%s", end.status, len(all), len(asks), end.stderr)
		}
		if t.Failed() || testing.Verbose() {
			t.Logf("stderr:\n%s", end.stderr)
		}
		return all
	}
}

// askCurl starts curl for each ask: its status is its code.
func askCurl(t *testing.T, n *nettest.Network, l launcher, network string, asks []string) []outcome {
	t.Helper()
	p := program{words: []string{"/usr/bin/curl", "-sS", "-L", "--max-time", "20", "--cacert", n.CAFile()}, read: []string{n.CAFile()}}
	var all []outcome
	for _, ask := range asks {
		words := strings.Split(ask, " ")
		args := []string{words[1]}
		if words[0] == "via" {
			u, err := url.Parse(words[1])
			if err != nil {
				t.Fatal(err)
			}
			args = []string{"--connect-to", u.Hostname() + "::" + words[2] + ":", words[1]}
		}
		end := run(t, l.Command(t, p, network, args...))
		o := outcome{Ask: ask, OK: end.status == 0, Text: end.stdout}
		if !o.OK {
			o.Text, o.Code = end.stderr, fmt.Sprint(end.status)
		}
		all = append(all, o)
	}
	return all
}

func nodeClient(t *testing.T, n *nettest.Network) program {
	t.Helper()
	node, err := stock.Node(0)
	if err != nil {
		t.Fatal(err)
	}
	return program{
		words: []string{node, testFile(t, "client.js")},
		env:   map[string]string{"NODE_EXTRA_CA_CERTS": n.CAFile()}, read: []string{n.CAFile()},
	}
}

func pythonClient(t *testing.T, n *nettest.Network) program {
	t.Helper()
	return program{
		words: []string{"/usr/bin/python3", testFile(t, "client.py")},
		env:   map[string]string{"SSL_CERT_FILE": n.CAFile()}, read: []string{n.CAFile()},
	}
}

func goClient(t *testing.T, n *nettest.Network) program {
	t.Helper()
	return program{
		words: []string{staticGo.find(t, n)},
		env:   map[string]string{"SSL_CERT_FILE": n.CAFile()}, read: []string{n.CAFile()},
	}
}

func muslClient(t *testing.T, n *nettest.Network) program {
	t.Helper()
	return program{words: []string{staticMusl.find(t, n)}}
}

// testFile returns the real path of a file in testdata.
func testFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
