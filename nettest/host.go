package nettest

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// hosts are the names that tests add. Servers look them up while tests add more.
type hosts struct {
	mu    sync.Mutex
	known map[string]host
}

type host struct {
	record  record
	handler http.Handler
}

// Host adds a name for the length of the test: every name server gives it the place's address,
// and web servers there answer requests for it by handler, over HTTP and HTTPS. So a program
// reaches the API that it was written for, under its real name. nil leaves requests to the
// place's own site.
func (n *Network) Host(t testing.TB, name string, place Place, handler http.Handler) {
	t.Helper()
	name = strings.ToLower(name)
	if _, known := findRecord(records(), name); known || hasAuthority(name) {
		t.Fatalf("adding host %s: the network has that name", name)
	}
	n.hosts.mu.Lock()
	defer n.hosts.mu.Unlock()
	if _, known := n.hosts.known[name]; known {
		t.Fatalf("adding host %s: it is there", name)
	}
	n.hosts.known[name] = host{record: at(place), handler: handler}
	t.Cleanup(func() {
		n.hosts.mu.Lock()
		defer n.hosts.mu.Unlock()
		delete(n.hosts.known, name)
	})
}

// find looks up a name in lower case.
func (h *hosts) find(name string) (host, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, known := h.known[name]
	return found, known
}

// handler returns who answers requests with this Host header; nil for the site.
func (h *hosts) handler(header string) http.Handler {
	name, _, err := net.SplitHostPort(header)
	if err != nil {
		name = header
	}
	found, _ := h.find(strings.ToLower(name))
	return found.handler
}
