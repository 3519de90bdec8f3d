package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxInHand = 512 // clients' questions that wait for an answer; others get SERVFAIL at once
	maxAsking = 64  // questions that are put to the name servers at once
	maxCached = 1024
	maxTold   = 1024 // names that are remembered as reported
	fixedTTL  = 60   // seconds, of what does not come from a name server
)

// Stub is the resolver that a jail gets. It answers A and AAAA questions about names that a
// rule allows, with what the machine's name servers say, without the addresses that no host
// rule may lead to; the rest of the answer is a pin. To other questions about these names it
// answers that there is nothing, so no HTTPS record brings addresses or keys past the rules.
// A name that no rule allows does not exist (NXDOMAIN), at once, whether or not a name server
// can be reached. So is every PTR name: what an address is called is nobody's rule.
//
// Nothing of a client's message goes out but the name, in lower case: no options, no
// spelling, no id. With a wildcard rule, what is written into the part before it reaches the
// owner of the zone.
//
// It listens on loopback only, where every local user can ask it. They learn what a name
// resolves to if a rule allows it, which they can learn without it.
type Stub struct {
	decider  *Decider
	deny     func(Denial)
	upstream upstream
	listen   *loopback
	hosts    atomic.Pointer[Hosts]
	told     told
	ctx      context.Context //nolint:containedctx // the stub's own life, ended by Close
	cancel   context.CancelFunc
	running  sync.WaitGroup
	inHand   chan struct{} // holds one token for each client's question that waits
	asking   chan struct{} // holds one token for each question that is out
	streams  streamSet

	mu      sync.Mutex
	cache   map[question]cached
	flights map[question]*flight
}

// NewStub listens on loopback addresses and serves until Close. servers are asked in order;
// without any, nothing resolves but names of the hosts file. deny is called for each refused
// name, and each address that is left out, but not for one of the latest 1,024 of them again;
// from several goroutines at once, with no process and no profile. It must not block for
// long: answers wait for it.
func NewStub(d *Decider, servers []netip.AddrPort, deny func(Denial)) (*Stub, error) {
	ctx, cancel := context.WithCancel(context.Background())
	listen, err := listenLoopback(ctx, streamsAndDatagrams)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &Stub{
		decider: d, deny: deny, upstream: upstream{servers: servers}, listen: listen,
		ctx: ctx, cancel: cancel,
		inHand: make(chan struct{}, maxInHand), asking: make(chan struct{}, maxAsking),
		cache: map[question]cached{}, flights: map[question]*flight{},
	}
	d.own.add(listen.port)
	for _, c := range listen.udp {
		s.running.Go(func() { s.serveDatagrams(c) })
	}
	for _, l := range listen.tcp {
		s.running.Go(func() { s.acceptStreams(l) })
	}
	return s, nil
}

// SetHosts sets the names that are answered from the hosts file, before any name server, as
// "files dns" in nsswitch.conf(5) says. The decider judges these answers like others.
func (s *Stub) SetHosts(hosts Hosts) { s.hosts.Store(&hosts) }

// Addr is where a socket of the family of like reaches the stub, over UDP and TCP.
func (s *Stub) Addr(like netip.Addr) netip.AddrPort { return s.listen.addr(like) }

// Close ends the stub; questions that wait are not answered.
func (s *Stub) Close() error {
	s.cancel()
	err := s.listen.Close()
	s.streams.close()
	s.running.Wait()
	return err
}

// Resolve returns the addresses of a name, IPv4 and IPv6, that the decider kept. A refused
// name is an error, and reported. So is one without addresses, which is not reported.
func (s *Stub) Resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	name, err := s.vet(name)
	if err != nil {
		return nil, err
	}
	kinds := [2]dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
	var answers [2]answer
	var errs [2]error
	var wait sync.WaitGroup
	for i, kind := range kinds {
		wait.Go(func() { answers[i], errs[i] = s.lookup(ctx, question{name, kind}, cachedToo) })
	}
	wait.Wait()
	addrs := append(answers[0].addrs, answers[1].addrs...)
	if len(addrs) > 0 {
		return addrs, nil
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("resolving %q: it has no address that may be used", name)
}

// vet asks the decider about a name, reports a refusal, and returns the name in the form
// that rules hold.
func (s *Stub) vet(asked string) (string, error) {
	decision := s.decider.Query(asked)
	if decision.Verdict == Direct {
		return CanonicalName(asked)
	}
	if s.told.first("name " + asked) {
		s.deny(Denial{
			Time: time.Now(), Call: "dns", Asked: "name " + printable(asked), Rule: decision.Rule, Hint: decision.Hint,
		})
	}
	return "", refuse(decision.Rule)
}

// Forward is for clients that check who an answer comes from, as musl does: it vets a query
// of theirs, resolves and pins its name, and returns the query to send to the real server in
// its place, with the same id. A query that the stub would not answer with addresses comes
// back as one for a name that cannot exist, or, where the name does exist, for its
// addresses. An error is for what is no query; nothing should be sent then.
//
// The server's answer is not filtered, but it was not pinned either: an address in it that
// the stub's own answer does not hold cannot be connected to.
func (s *Stub) Forward(query []byte) ([]byte, error) {
	asked, rcode, err := parseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("reading a DNS query: %w", err)
	}
	// RFC 6761 6.4: names below invalid do not exist, and servers know that.
	out := question{"refused.stockade.invalid", dnsmessage.TypeA}
	if rcode == dnsmessage.RCodeSuccess {
		if name, err := s.vet(wireName(asked.Name)); err == nil && asked.Type != dnsmessage.TypePTR {
			out.name = name
			if asked.Type == dnsmessage.TypeAAAA {
				out.kind = asked.Type
			}
			// The pins have to be what the server answers now, so no older answer will do.
			// Without an answer here there will hardly be one for the client.
			_, _ = s.lookup(s.ctx, out, freshOnly)
		}
	}
	return out.build(asked.id)
}

// told remembers the latest things that were reported.
type told struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	order []string // a ring, once it is full
	next  int
}

// first tells whether a thing has not been reported yet, or so long ago that others took its
// place, and remembers it.
func (t *told) first(thing string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.seen[thing]; known {
		return false
	}
	if t.seen == nil {
		t.seen = map[string]struct{}{}
	}
	if len(t.order) < maxTold {
		t.order = append(t.order, thing)
	} else {
		delete(t.seen, t.order[t.next])
		t.order[t.next] = thing
		t.next = (t.next + 1) % maxTold
	}
	t.seen[thing] = struct{}{}
	return true
}
