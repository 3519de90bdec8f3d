package main

import (
	"net/netip"
	"strings"
	"sync"

	"stockade/sandbox/egress"
)

// neverSpecial is why a name that a rule allows leads nowhere.
const neverSpecial = "a rule for a host does not lead to special addresses by itself"

// maxSpecialNames bounds what a server's lookups and connections leave here.
const maxSpecialNames = 256

// specialNames tells of refused connections to special addresses which name led there. Who
// wrote a rule for the host does not know the address that the refusal is about.
type specialNames struct {
	rules []egress.Rule
	hosts egress.Hosts
	deny  func(egress.Denial)

	mu    sync.Mutex
	names map[netip.Addr]string // "": no rule's name is known to lead there
}

func newSpecialNames(rules []egress.Rule, hosts egress.Hosts, deny func(egress.Denial)) *specialNames {
	return &specialNames{rules: rules, hosts: hosts, deny: deny, names: make(map[netip.Addr]string)}
}

// report hands a refusal on, with the name in the reason and in the hint where there is one.
func (s *specialNames) report(d egress.Denial) {
	if name, addr, answered := answeredName(d.Call, d.Asked); answered {
		s.remember(addr, name)
	} else if _, text, ok := strings.Cut(d.Asked, " "); ok && (d.Call == "connect" || d.Call == "send") {
		to, err := netip.ParseAddrPort(text)
		addr := to.Addr().WithZone("").Unmap()
		why := d.Rule
		if err == nil && (why == egress.OfThisMachine || why != "" && why == egress.Special(addr)) {
			if name := s.nameOf(addr); name != "" {
				d.Rule = name + " resolves to " + addr.String() + ", which is " + why + "; " + neverSpecial
				d.Hint = egress.NameHint(name, addr, to.Port())
			}
		}
	}
	s.deny(d)
}

func (s *specialNames) remember(addr netip.Addr, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.names[addr]; known || len(s.names) < maxSpecialNames {
		s.names[addr] = name
	}
}

// nameOf finds the name for an address: what the resolver answered before, or one of the
// hosts file, which servers read by themselves.
func (s *specialNames) nameOf(addr netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, known := s.names[addr]
	if known || len(s.names) >= maxSpecialNames {
		return name
	}
	for host, addrs := range s.hosts {
		for _, a := range addrs {
			// Of several names the first in the alphabet: any other order changes.
			if a == addr && (name == "" || host < name) && s.ruled(host) {
				name = host
			}
		}
	}
	s.names[addr] = name
	return name
}

// ruled tells whether a rule for a host is about a name.
func (s *specialNames) ruled(name string) bool {
	for _, r := range s.rules {
		if r.Host != "" && (egress.Rule{Host: name, Ports: r.Ports}).Within(r) { // whatever its words
			return true
		}
	}
	return false
}

// answeredName reads what the resolver's refusals to answer with an address ask for:
// "name NAME at ADDRESS".
func answeredName(call, asked string) (name string, addr netip.Addr, ok bool) {
	text, isName := strings.CutPrefix(asked, "name ")
	name, at, isAnswer := strings.Cut(text, " at ")
	if call != "dns" || !isName || !isAnswer {
		return "", netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(at)
	return name, addr, err == nil
}
