package egress

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
)

// Mode says what rules are beside.
type Mode uint8

const (
	// List refuses what no rule allows.
	List Mode = iota
	// Public allows every address that is not special; rules add to it.
	Public
)

// String returns "list" or "public".
func (m Mode) String() string {
	switch m {
	case List:
		return "list"
	case Public:
		return "public"
	}
	return "unknown"
}

// Policy is what a plan says about egress. The zero Policy allows nothing.
type Policy struct {
	Mode  Mode
	Rules []Rule
	// Never are names and addresses that nothing of the above leads to, on any port (see
	// [ParseNever]). A name is held where it is resolved and where a relay reads it; the
	// addresses of one are not closed with it.
	Never []Rule
}

// Verdict says what to do with a connection, a datagram or a name. Its zero value refuses.
type Verdict uint8

const (
	// Refused makes the call fail.
	Refused Verdict = iota
	// Direct connects the server's own socket to the address, or lets a name be resolved.
	Direct
	// Relayed connects it to the relay, which checks the name that the client sends.
	Relayed
	// Resolver connects it to the stub.
	Resolver
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Refused:
		return "refused"
	case Direct:
		return "direct"
	case Relayed:
		return "relayed"
	case Resolver:
		return "resolver"
	}
	return "unknown"
}

// Decision is a verdict with its reason. Both texts are one printable line.
type Decision struct {
	Verdict Verdict
	Rule    string // the rule that decided, with its origin, or the reason: "no rule names 203.0.113.9:443"
	Hint    string // how to allow it: `add "203.0.113.9:443" to network.egress`; "" when nothing can or should
}

// Hosts are the names and addresses of the hosts file: names in canonical form, see
// [CanonicalName].
type Hosts map[string][]netip.Addr

// dnsPort is where the stub answers, whatever the address.
const dnsPort = 53

// Decider is a policy with its pins. It is safe for concurrent use. It holds, through
// any order of calls: no public mode leads to a special address, and no host rule but one
// with [AnyAddress], to addresses of its own names and on its own ports.
type Decider struct {
	mode   Mode
	rules  []Rule
	never  []Rule
	labels []string // of the rules, for decisions
	blocks []int    // indices of address rules
	hosts  []int    // indices of host rules, by [Decider.order]
	pins   pins
	own    ownPorts

	ownAddress atomic.Pointer[Own] // nil: nobody can tell
}

// NewDecider returns a decider for a policy. Names of the hosts file that an exact host rule
// names are pinned to what the file says, as if they had been answered.
func NewDecider(p Policy, hosts Hosts) *Decider {
	d := &Decider{mode: p.Mode, rules: slices.Clone(p.Rules), never: slices.Clone(p.Never)}
	d.pins.names, d.pins.addrs = map[string]*pin{}, map[netip.Addr][]*pin{}
	for i, r := range d.rules {
		label := r.Text
		if label == "" {
			label = r.String()
		}
		label = printable(label)
		if r.Origin != "" {
			label += " (" + printable(r.Origin) + ")"
		}
		d.labels = append(d.labels, label)
		switch {
		case r.Host != "":
			d.hosts = append(d.hosts, i)
		case r.Prefix.IsValid():
			d.blocks = append(d.blocks, i)
		}
	}
	slices.SortFunc(d.hosts, d.order)
	for _, i := range d.hosts {
		if r := &d.rules[i]; !r.Wildcard {
			d.Pin(r.Host, hosts[r.Host])
		}
	}
	return d
}

// order puts the rule first that decides how a name is held when several cover it: the
// longest (of those, an exact name is longer than any wildcard), then what was written
// last, so that a profile has the last word on what it extends.
func (d *Decider) order(i, j int) int {
	return cmp.Or(cmp.Compare(len(d.rules[j].Host), len(d.rules[i].Host)), cmp.Compare(j, i))
}

// covering returns the host rules about a name.
func (d *Decider) covering(name string) cover {
	by := cover{loose: true}
	for _, i := range d.hosts {
		if d.rules[i].covers(name) {
			by.rules = append(by.rules, i)
			by.loose = by.loose && d.rules[i].Wildcard
		}
	}
	return by
}

// first returns the deciding rule for a port, of those that cover a name; -1 for none.
func (d *Decider) first(rules []int, port uint16) int {
	for _, i := range rules {
		if d.rules[i].Ports.Holds(port) {
			return i
		}
	}
	return -1
}

// blockFor returns the first address rule for an address and port; -1 for none.
func (d *Decider) blockFor(addr netip.Addr, port uint16) int {
	for _, i := range d.blocks {
		if r := &d.rules[i]; r.Ports.Holds(port) && r.Prefix.Contains(addr) {
			return i
		}
	}
	return -1
}

// blockOn tells whether an address rule holds the address on a port that one of the rules
// about a name holds too. Without such rules any port does.
func (d *Decider) blockOn(addr netip.Addr, by cover) bool {
	return slices.ContainsFunc(d.blocks, func(i int) bool {
		block := &d.rules[i]
		return block.Prefix.Contains(addr) && (len(by.rules) == 0 || slices.ContainsFunc(by.rules, func(j int) bool {
			return block.Ports.First <= d.rules[j].Ports.Last && d.rules[j].Ports.First <= block.Ports.Last
		}))
	})
}

// transport is what the packets are.
type transport uint8

const (
	overTCP transport = iota
	overUDP
)

// Stream decides on a TCP connection: Direct, Relayed, Resolver or Refused.
func (d *Decider) Stream(dst netip.AddrPort) Decision { return d.decide(dst, overTCP) }

// Datagram decides on an address that UDP is sent or connected to: Direct, Resolver or
// Refused. On the ports of TLS and HTTP, where it would be QUIC and no server name can be
// checked, only address rules allow it, and clients fall back to TCP.
func (d *Decider) Datagram(dst netip.AddrPort) Decision { return d.decide(dst, overUDP) }

func (d *Decider) decide(dst netip.AddrPort, over transport) Decision {
	addr, port := dst.Addr(), dst.Port()
	if !addr.IsValid() {
		return Decision{Rule: "no address"}
	}
	if port == 0 {
		return Decision{Rule: "port 0 is none"}
	}
	addr = plainAddr(addr)
	block, why := d.blockFor(addr, port), d.closed(addr)
	switch {
	case block < 0 && port == dnsPort:
		return Decision{Verdict: Resolver, Rule: "names are resolved by stockade"}
	case why != "":
		return Decision{Rule: why}
	case block >= 0:
		return Decision{Verdict: Direct, Rule: d.labels[block]}
	}
	why, kind := d.judge(addr)
	quic := over == overUDP && namedPort(port)
	if why == "" && d.mode == Public {
		if quic {
			return refusedQUIC(addr, port)
		}
		return Decision{Verdict: Direct, Rule: "public"}
	}
	i, direct := d.pinned(netip.AddrPortFrom(addr, port), why, kind)
	switch {
	case i < 0 && why != "":
		return Decision{Rule: why, Hint: d.specialHint(addr, Ports{port, port}, kind)}
	case i < 0:
		return d.unnamed(addr, port)
	case quic:
		return refusedQUIC(addr, port)
	case direct:
		return Decision{Verdict: Direct, Rule: d.labels[i]}
	}
	return Decision{Verdict: Relayed, Rule: d.labels[i]}
}

// namedPort tells whether clients send the server's name first on a port: TLS and HTTP.
func namedPort(port uint16) bool {
	return port == 443 || port == 80 || port == 8080 || port == 8443
}

// pinned finds a host rule for an address that one of its names resolved to, and that may
// lead to what the address was judged to be; -1 for none. Direct tells whether the rule needs
// no relay: names share addresses, and one that needs none is enough.
func (d *Decider) pinned(to netip.AddrPort, why string, kind reach) (rule int, direct bool) {
	d.pins.mu.RLock()
	defer d.pins.mu.RUnlock()
	rule = -1
	for _, held := range d.pins.addrs[to.Addr()] {
		i := d.first(held.rules, to.Port())
		if i < 0 || why != "" && !d.leads(i, to, kind) {
			continue
		}
		if d.rules[i].Names == Pinned || !namedPort(to.Port()) {
			return i, true
		}
		if rule < 0 {
			rule = i
		}
	}
	return rule, false
}

// leads tells whether a host rule leads to a special address of one of its names: where a
// host may be, and not to the resolver and the relay of this very jail.
func (d *Decider) leads(rule int, to netip.AddrPort, kind reach) bool {
	return kind == special && d.rules[rule].Addresses == AnyAddress && !d.own.holds(to)
}

// unnamed refuses an address that no rule allows on a port.
func (d *Decider) unnamed(addr netip.Addr, port uint16) Decision {
	d.pins.mu.RLock()
	defer d.pins.mu.RUnlock()
	if holders := d.pins.addrs[addr]; len(holders) > 0 {
		// The host is more likely meant than its address of today.
		wanted := holders[0].name + ":" + strconv.Itoa(int(port))
		return Decision{Rule: "no rule names " + wanted + " (" + addr.String() + ")", Hint: addHint(wanted)}
	}
	asked := netip.AddrPortFrom(addr, port).String()
	return Decision{Rule: "no rule names " + asked, Hint: addHint(asked)}
}

func refusedQUIC(addr netip.Addr, port uint16) Decision {
	return Decision{Rule: "QUIC is refused, so that clients use TCP", Hint: addressHint(addr, Ports{port, port}, ordinary)}
}

// addHint says how to add a rule.
func addHint(rule string) string { return "add " + strconv.Quote(rule) + " to network.egress" }

// anyHint says how to let a name lead to special addresses.
func anyHint(name string, ports Ports) string {
	return "add {to: " + strconv.Quote(name+":"+ports.String()) + ", addresses: any} to network.egress"
}

// NameHint says how to let a name lead to an address that it resolved to, on a port: by a
// rule for the name, or for the address where no rule for a name leads; "" when nothing should.
func NameHint(name string, addr netip.Addr, port uint16) string {
	_, kind := judge(addr)
	if kind == ordinary { // of this machine itself
		kind = special
	}
	return nameHint(name, plainAddr(addr), Ports{port, port}, kind)
}

func nameHint(name string, addr netip.Addr, ports Ports, kind reach) string {
	if kind == special && !isMetadataName(name) {
		return anyHint(name, ports)
	}
	return addressHint(addr, ports, kind)
}

// specialHint says how to allow a special address: by the name that led there, where a rule for
// the port names it.
func (d *Decider) specialHint(addr netip.Addr, ports Ports, kind reach) string {
	d.pins.mu.RLock()
	defer d.pins.mu.RUnlock()
	for _, held := range d.pins.addrs[addr] {
		if kind == special && d.first(held.rules, ports.First) >= 0 {
			return anyHint(held.name, ports)
		}
	}
	return addressHint(addr, ports, kind)
}

// addressHint says how to allow an address: not at all when it hands out credentials.
func addressHint(addr netip.Addr, ports Ports, kind reach) string {
	if kind == metadata {
		return ""
	}
	return addHint(Rule{Prefix: netip.PrefixFrom(addr, addr.BitLen()), Ports: ports}.String())
}
