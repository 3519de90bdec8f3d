package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	maxRelayed   = 512 // connections at once; each takes up to six descriptors with its pipes
	maxStrangers = 256 // connections at once that nobody has announced yet

	announceWait = time.Second      // from accept to Expect
	announceLife = 10 * time.Second // from Expect to accept

	// helloWait is for all that a client says before its server is known, from its first
	// byte. Before that there is no limit: browsers connect ahead of need.
	helloWait = 10 * time.Second
)

// Client is who made a connection, for reports.
type Client struct {
	PID     int
	Program string
}

// Relay stands between a jailed client and the servers of strict host rules. It reads the
// server name that the client sends, has the decider judge it, connects to an address that
// this name resolved to, and passes bytes on: for TLS unread from then on, for HTTP with
// every further request checked in the same way. It holds no keys, and changes nothing but
// an Upgrade header that it cannot let through.
//
// It judges the name on the outside. What a client says inside TLS, such as another Host in
// a request there, only the server can see; a server that answers for strangers under the
// name of an allowed one (domain fronting) undoes the rule.
//
// A relay is not open to others: it serves the connections that were announced with Expect.
type Relay struct {
	decider *Decider
	stub    *Stub
	deny    func(Denial)
	listen  *loopback
	ctx     context.Context //nolint:containedctx // the relay's own life, ended by Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	arrivals  map[netip.AddrPort]*arrival
	strangers int
	relayed   int
	open      map[*net.TCPConn]struct{}
}

// arrival is a connection that was announced, or accepted, before the other has happened.
type arrival struct {
	dst       netip.AddrPort
	who       Client
	until     time.Time
	announced chan struct{} // closed by Expect
}

// NewRelay listens on loopback addresses and serves until Close. deny is called for each
// refusal, from several goroutines at once, with no Profile; a connection waits for it.
func NewRelay(d *Decider, s *Stub, deny func(Denial)) (*Relay, error) {
	ctx, cancel := context.WithCancel(context.Background())
	listen, err := listenLoopback(ctx, streams)
	if err != nil {
		cancel()
		return nil, err
	}
	r := &Relay{
		decider: d, stub: s, deny: deny, listen: listen, ctx: ctx, cancel: cancel,
		arrivals: map[netip.AddrPort]*arrival{}, open: map[*net.TCPConn]struct{}{},
	}
	d.own.add(listen.port)
	for _, l := range listen.tcp {
		r.running.Go(func() { r.accept(l) })
	}
	return r, nil
}

// Addr is where a socket of the family of like reaches the relay.
func (r *Relay) Addr(like netip.Addr) netip.AddrPort { return r.listen.addr(like) }

// Close ends the relay and all its connections, with a reset.
func (r *Relay) Close() error {
	r.cancel()
	err := r.listen.Close()
	r.mu.Lock()
	for c := range r.open {
		abort(c)
	}
	r.mu.Unlock()
	r.running.Wait()
	return err
}

// Expect announces a connection to the relay: source is the client socket's own address, dst
// is where the client wanted to connect. It may come up to a second after the connection.
func (r *Relay) Expect(source, dst netip.AddrPort, who Client) {
	source, dst = plain(source), plain(dst)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.arrivals[source]; a != nil && a.until.IsZero() {
		a.dst, a.who = dst, who
		delete(r.arrivals, source)
		close(a.announced)
		return
	}
	now := time.Now()
	if len(r.arrivals) > 2*maxRelayed {
		for other, a := range r.arrivals {
			if !a.until.IsZero() && now.After(a.until) {
				delete(r.arrivals, other)
			}
		}
	}
	r.arrivals[source] = &arrival{dst: dst, who: who, until: now.Add(announceLife)}
}

// plain drops the IPv6 wrapping of an IPv4 address: one end of a connection may see it.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (r *Relay) accept(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// No descriptors or no memory: connections wait in the kernel's queue meanwhile.
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		r.running.Go(func() { r.serve(c) })
	}
}

// serve takes a connection from accept to its end.
func (r *Relay) serve(c *net.TCPConn) {
	if !r.track(c) {
		return
	}
	defer r.drop(c)
	a := r.claim(c)
	if a == nil {
		return
	}
	v := &visit{relay: r, client: c, dst: a.dst, who: a.who}
	r.mu.Lock()
	full := r.relayed >= maxRelayed
	if !full {
		r.relayed++
	}
	r.mu.Unlock()
	if full {
		v.report(&refusal{rule: "512 connections are relayed already", hint: "close connections that are idle"})
		return
	}
	defer func() {
		r.mu.Lock()
		r.relayed--
		r.mu.Unlock()
	}()
	v.serve()
}

// claim finds out what an accepted connection was made for; nil when nobody says so in time.
func (r *Relay) claim(c *net.TCPConn) *arrival {
	source := plain(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	r.mu.Lock()
	if a := r.arrivals[source]; a != nil && !a.until.IsZero() {
		delete(r.arrivals, source)
		r.mu.Unlock()
		if time.Now().After(a.until) {
			return nil
		}
		return a
	}
	if r.strangers >= maxStrangers {
		r.mu.Unlock()
		return nil
	}
	a := &arrival{announced: make(chan struct{})}
	r.arrivals[source] = a
	r.strangers++
	r.mu.Unlock()

	timer := time.NewTimer(announceWait)
	defer timer.Stop()
	select {
	case <-a.announced:
	case <-timer.C:
	case <-r.ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers--
	if r.arrivals[source] == a {
		delete(r.arrivals, source)
	}
	select {
	case <-a.announced:
		return a
	default:
		return nil
	}
}

// track has Close end the connection, at once when the relay is closed already. Every
// tracked connection is dropped again.
func (r *Relay) track(c *net.TCPConn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		abort(c)
		return false
	}
	r.open[c] = struct{}{}
	return true
}

// drop closes a connection, with a reset unless it was closed before.
func (r *Relay) drop(c *net.TCPConn) {
	abort(c)
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}
