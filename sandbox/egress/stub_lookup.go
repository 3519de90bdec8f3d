package egress

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// age says how old an answer may be.
type age uint8

const (
	cachedToo age = iota // as old as its time to live
	freshOnly
)

// cached is an answer with the time at which it ends.
type cached struct {
	answer
	until time.Time
}

// flight is a question that is out. All who ask it meanwhile wait for the one answer.
type flight struct {
	done   chan struct{} // closed when the rest is set
	answer answer
	err    error
}

// lookup answers a question about an allowed name.
func (s *Stub) lookup(ctx context.Context, q question, a age) (answer, error) {
	if a, known := s.atHand(q, a); known {
		return a, nil
	}
	s.mu.Lock()
	f := s.flights[q]
	if f == nil {
		if s.ctx.Err() != nil {
			s.mu.Unlock()
			return answer{}, s.ctx.Err()
		}
		f = &flight{done: make(chan struct{})}
		s.flights[q] = f
		s.running.Go(func() { s.fly(q, f) })
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.answer, f.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// atHand answers what needs no name server: names of the hosts file, names of this machine
// (RFC 6761 6.3), and what is in the cache.
func (s *Stub) atHand(q question, a age) (answer, bool) {
	if addrs, known := s.local(q.name); known {
		addrs = slices.DeleteFunc(slices.Clone(addrs), func(addr netip.Addr) bool {
			return addr.Is4() != (q.kind == dnsmessage.TypeA)
		})
		return answer{addrs: s.pin(q.name, addrs), ttl: fixedTTL}, true
	}
	if a == freshOnly {
		return answer{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.cache[q]
	left := time.Until(known.until)
	if !is || left <= 0 {
		return answer{}, false
	}
	known.ttl = uint32(left / time.Second) //nolint:gosec // at most maxTTL
	return known.answer, true
}

func (s *Stub) local(name string) ([]netip.Addr, bool) {
	if hosts := s.hosts.Load(); hosts != nil {
		if addrs, known := (*hosts)[name]; known {
			return addrs, true
		}
	}
	if localName(name) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, true
	}
	return nil, false
}

// fly puts a question to the name servers, pins the answer and keeps it for its time.
func (s *Stub) fly(q question, f *flight) {
	defer close(f.done)
	ctx, cancel := context.WithTimeout(s.ctx, totalWait)
	defer cancel()
	select {
	case s.asking <- struct{}{}:
		f.answer, f.err = s.upstream.ask(ctx, q)
		<-s.asking
	case <-ctx.Done():
		f.err = ctx.Err()
	}
	if f.err == nil {
		f.answer.addrs = s.pin(q.name, f.answer.addrs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, q)
	if f.err == nil && f.answer.ttl > 0 && len(f.answer.addrs) > 0 {
		s.keep(q, cached{f.answer, time.Now().Add(time.Duration(f.answer.ttl) * time.Second)})
	}
}

// keep puts an answer into the cache, in the place of those that have ended, or of any one.
func (s *Stub) keep(q question, c cached) {
	if len(s.cache) >= maxCached {
		now := time.Now()
		for old, c := range s.cache {
			if now.After(c.until) {
				delete(s.cache, old)
			}
		}
	}
	for old := range s.cache {
		if len(s.cache) < maxCached {
			break
		}
		delete(s.cache, old)
	}
	s.cache[q] = c
}

// pin returns what may be answered of the addresses that a name has, and reports the others.
func (s *Stub) pin(name string, addrs []netip.Addr) []netip.Addr {
	if len(addrs) == 0 {
		return nil
	}
	for _, addr := range addrs {
		decision := s.decider.Answer(name, addr)
		if decision.Verdict == Direct || !s.told.first("address "+addr.String()+" of "+name) {
			continue
		}
		s.deny(Denial{
			Time: time.Now(), Call: "dns", Asked: "name " + name + " at " + addr.String(),
			Rule: decision.Rule, Hint: decision.Hint,
		})
	}
	return s.decider.Pin(name, addrs)
}
