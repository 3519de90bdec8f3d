package egress

import (
	"net/netip"
	"slices"
	"strconv"
)

// Query decides whether a name may be resolved: Direct or Refused. The name is in its ASCII
// form, in any case, with or without the trailing dot.
func (d *Decider) Query(name string) Decision { return d.vet(name).Decision }

// vetted is a decision on a name with what later decisions need. Only Direct has the rest.
type vetted struct {
	Decision
	name  string // canonical
	cover cover
	// ports are those of the rule that a person would look at first: 443 without a rule.
	ports Ports
}

// noRule are the ports to speak of where no rule names any.
var noRule = Ports{443, 443}

func (d *Decider) vet(asked string) vetted {
	refused := func(rule, hint string) vetted { return vetted{Decision: Decision{Rule: rule, Hint: hint}} }
	name, problem := canonicalName(asked)
	if problem != "" {
		return refused(quoted(asked)+" "+problem, "")
	}
	if isMetadataName(name) {
		return refused(name+" is a cloud's metadata service", "")
	}
	if why := d.closedName(name); why != "" {
		return refused(why, "")
	}
	by := d.covering(name)
	ports := noRule
	if len(by.rules) > 0 {
		ports = d.rules[by.rules[0]].Ports
	}
	if d.mode == Public {
		// Names are only held for what lies beyond the public addresses, and that has an end.
		if !d.widens(by.rules) || d.pins.full(name, by) != "" {
			by = cover{}
		}
		return vetted{Decision{Verdict: Direct, Rule: "public"}, name, by, ports}
	}
	if len(by.rules) > 0 {
		if why := d.pins.full(name, by); why != "" {
			return refused(why, addHint(name+":"+ports.String()))
		}
		return vetted{Decision{Verdict: Direct, Rule: d.labels[by.rules[0]]}, name, by, ports}
	}
	switch {
	case name == "localhost":
		// Written in a rule, it is two address rules.
		for _, i := range d.blocks {
			if block := d.rules[i].Prefix; block.Contains(loopback4) || block.Contains(loopback6) {
				return vetted{Decision{Verdict: Direct, Rule: d.labels[i]}, name, cover{}, noRule}
			}
		}
	case localName(name):
		return refused("no rule names "+name, "")
	}
	return refused("no rule names "+name, addHint(name+":"+defaultPort))
}

// widens tells whether a rule with [AnyAddress] decides on some port, of those that cover a name.
func (d *Decider) widens(rules []int) bool {
	for n, i := range rules {
		r := &d.rules[i]
		if r.Addresses != AnyAddress {
			continue
		}
		// The ports that no earlier rule takes begin with its own first one or behind one of theirs.
		if d.first(rules, r.Ports.First) == i {
			return true
		}
		for _, earlier := range rules[:n] {
			if after := d.rules[earlier].Ports.Last + 1; r.Ports.Holds(after) && d.first(rules, after) == i {
				return true
			}
		}
	}
	return false
}

// Answer decides on one address that a name resolved to: Direct when it may be answered. A
// special address may only by a rule with [AnyAddress], or where an address rule holds it, on
// a port that the name's rule holds too; the address rule, and not the name's, then decides
// on connections.
func (d *Decider) Answer(name string, addr netip.Addr) Decision {
	asked := d.vet(name)
	if asked.Verdict != Direct {
		return asked.Decision
	}
	return d.answer(asked, addr)
}

func (d *Decider) answer(asked vetted, addr netip.Addr) Decision {
	if !addr.IsValid() {
		return Decision{Rule: "no address"}
	}
	addr = plainAddr(addr)
	if why := d.closed(addr); why != "" {
		return Decision{Rule: why}
	}
	why, kind := d.judge(addr)
	if why == "" || kind == special && d.widens(asked.cover.rules) {
		return asked.Decision
	}
	by := asked.cover
	if d.mode == Public {
		by = cover{} // any port is open to the name
	}
	if d.blockOn(addr, by) {
		return asked.Decision
	}
	return Decision{Rule: addr.String() + " is " + why, Hint: nameHint(asked.name, addr, asked.ports, kind)}
}

// Pin says what may be answered for a name: the addresses, unmapped and each once, without
// those that [Decider.Answer] refuses, and 64 at most. They are remembered for the life of
// the jail, so that connections to them are the name's; where several answers bring more
// than 64, the latest are. Of names that only wildcards cover, 4,096 are remembered; the
// next ones are refused, as Query says.
func (d *Decider) Pin(name string, addrs []netip.Addr) (kept []netip.Addr) {
	asked := d.vet(name)
	if asked.Verdict != Direct {
		return nil
	}
	for _, addr := range addrs {
		if len(kept) == maxAddresses {
			break
		}
		if d.answer(asked, addr).Verdict != Direct {
			continue
		}
		if addr = plainAddr(addr); !slices.Contains(kept, addr) {
			kept = append(kept, addr)
		}
	}
	if len(kept) == 0 || len(asked.cover.rules) == 0 {
		return kept // decisions go by address alone
	}
	return d.pins.add(asked.name, asked.cover, kept)
}

// Server decides on the name that a client sent on a relayed connection to dst. Direct comes
// with the addresses to try: the name's own pins, dst first if it is among them, so that
// whatever was sent, the connection goes where that name resolved to. Direct without
// addresses is a name that may be reached and has not been resolved yet. In the public mode
// only connections that a rule with [AnyAddress] leads to are relayed, so it is asked for such
// rules. Whether an address is this machine's own is for [Decider.Upstream] to tell.
func (d *Decider) Server(name string, dst netip.AddrPort) (Decision, []netip.Addr) {
	asked := name
	name, problem := canonicalName(asked)
	if problem != "" {
		return Decision{Rule: "server name " + quoted(asked) + " " + problem}, nil
	}
	if isMetadataName(name) {
		return Decision{Rule: name + " is a cloud's metadata service"}, nil
	}
	if why := d.closedName(name); why != "" {
		return Decision{Rule: why}, nil
	}
	port := dst.Port()
	written := name + ":" + strconv.Itoa(int(port))
	i := d.first(d.covering(name).rules, port)
	switch {
	case i < 0:
		return Decision{Rule: "no rule names " + written, Hint: addHint(written)}, nil
	case d.mode == Public && d.rules[i].Addresses != AnyAddress:
		return Decision{Rule: "no rule lets " + written + " lead to special addresses", Hint: anyHint(name, Ports{port, port})}, nil
	}
	allowed := Decision{Verdict: Direct, Rule: d.labels[i]}
	held := d.pins.of(name)
	if len(held) == 0 {
		return allowed, nil
	}
	first := held[0]
	// A pin that an address rule keeps is for that rule's ports.
	addrs := slices.DeleteFunc(held, func(addr netip.Addr) bool {
		why, kind := judge(addr)
		return why != "" && d.blockFor(addr, port) < 0 && !d.leads(i, netip.AddrPortFrom(addr, port), kind)
	})
	if len(addrs) == 0 {
		why, kind := judge(first)
		return Decision{Rule: first.String() + " is " + why, Hint: nameHint(name, first, Ports{port, port}, kind)}, nil
	}
	if at := slices.Index(addrs, plainAddr(dst.Addr())); at > 0 {
		wanted := addrs[at]
		copy(addrs[1:at+1], addrs[:at])
		addrs[0] = wanted
	}
	return allowed, addrs
}
