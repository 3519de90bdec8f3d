package nettest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"
)

// Event says what reached a server.
type Event string

// The events.
const (
	Connected Event = "connected" // a TCP connection was accepted
	Greeted   Event = "greeted"   // a TLS hello came; Name is its server name
	Requested Event = "requested" // an HTTP request came; Name is its host, Text its path
	Received  Event = "received"  // a datagram came; Text is what it holds
)

// Hit is one thing that reached a server.
type Hit struct {
	Place Place
	Port  uint16
	Event Event
	From  netip.AddrPort // the client's end
	Name  string
	Text  string
}

func (h Hit) String() string {
	return fmt.Sprintf("%s:%d %s %q %q from %s", h.Place, h.Port, h.Event, h.Name, h.Text, h.From)
}

// Query is one question that reached the name server.
type Query struct {
	Name      string // lower case, without the last dot
	Type      string // "A", "AAAA", "HTTPS", or "TYPE" and a number
	Transport string // "udp" or "tcp"
	// Exact is the name as it was sent.
	Exact string
}

// journal keeps what happened. Its lists only grow, so a mark is a pair of lengths.
type journal struct {
	mu      sync.Mutex
	changed *sync.Cond
	hits    []Hit
	queries []Query
	open    int // connections that servers have accepted and not closed
	// knocks counts what the network itself sent to find out whether everything is counted.
	knocks map[doorway]int
}

func newJournal() *journal {
	j := &journal{knocks: map[doorway]int{}}
	j.changed = sync.NewCond(&j.mu)
	return j
}

func (j *journal) hit(d doorway, h Hit) {
	h.Place, h.Port = d.place, d.address.Port()
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.Event == Connected {
		j.open++
	}
	if h.From.Port() == knockPort {
		j.knocks[d]++
	} else {
		j.hits = append(j.hits, h)
	}
	j.changed.Broadcast()
}

func (j *journal) closed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open--
	j.changed.Broadcast()
}

func (j *journal) query(q Query) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queries = append(j.queries, q)
}

// settleTime bounds a broken test; a settled network takes no time.
const settleTime = 20 * time.Second

// wait returns when done does; done is called with the lock held.
func (j *journal) wait(done func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.changed.Broadcast()
	})()
	j.mu.Lock()
	defer j.mu.Unlock()
	for !done() {
		if ctx.Err() != nil {
			return errors.New("the servers did not come to rest")
		}
		j.changed.Wait()
	}
	return nil
}

// Mark is a moment in the network's history.
type Mark struct{ hits, queries int }

// Mark returns the present moment, after everything before it has been counted.
func (n *Network) Mark(t testing.TB) Mark {
	t.Helper()
	n.settle(t)
	n.journal.mu.Lock()
	defer n.journal.mu.Unlock()
	return Mark{hits: len(n.journal.hits), queries: len(n.journal.queries)}
}

// Hits returns what reached servers since the mark. Clients must have ended: what they sent
// is counted then, however late the servers were.
func (n *Network) Hits(t testing.TB, since Mark) []Hit {
	t.Helper()
	n.settle(t)
	n.journal.mu.Lock()
	defer n.journal.mu.Unlock()
	return slices.Clone(n.journal.hits[since.hits:])
}

// Queries returns what the name server was asked since the mark.
func (n *Network) Queries(since Mark) []Query {
	n.journal.mu.Lock()
	defer n.journal.mu.Unlock()
	return slices.Clone(n.journal.queries[since.queries:])
}

// Reached tells whether anything reached one of the places since the mark.
func (n *Network) Reached(t testing.TB, since Mark, places ...Place) bool {
	t.Helper()
	return slices.ContainsFunc(n.Hits(t, since), func(h Hit) bool { return slices.Contains(places, h.Place) })
}

// Untouched fails the test when anything reached one of the places since the mark, down to a
// connection without a byte.
func (n *Network) Untouched(t testing.TB, since Mark, places ...Place) {
	t.Helper()
	for _, h := range n.Hits(t, since) {
		if slices.Contains(places, h.Place) {
			t.Errorf("reached: %s", h)
		}
	}
}

// Unasked fails the test when the name server was asked for one of the names since the mark.
func (n *Network) Unasked(t testing.TB, since Mark, names ...string) {
	t.Helper()
	for _, q := range n.Queries(since) {
		if slices.Contains(names, q.Name) {
			t.Errorf("the name server was asked for %s %s over %s", q.Name, q.Type, q.Transport)
		}
	}
}

// Unheard fails the test when a server heard one of the names since the mark, in a TLS hello
// or a request.
func (n *Network) Unheard(t testing.TB, since Mark, names ...string) {
	t.Helper()
	for _, h := range n.Hits(t, since) {
		if slices.Contains(names, h.Name) {
			t.Errorf("heard: %s", h)
		}
	}
}
