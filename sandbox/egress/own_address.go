package egress

import "net/netip"

// OfThisMachine is why an address that this machine has is closed.
const OfThisMachine = "an address of this machine"

// Own tells whether an address is this machine's, or leads to more than one: why, as
// [OfThisMachine]; "" for an address of somebody else. An error is for what
// cannot be told. It is called from several goroutines at once, and must not be slow.
type Own func(addr netip.Addr) (why string, err error)

// SetOwn has the decider ask about each public address before it allows one: what listens
// on this machine's own is for others of this machine, whatever address it has. Rules that
// lead to special addresses lead there too. Without it, only special addresses are known.
//
// It is a question of the moment. Who connects asks twice, before and after: an address can
// come to this machine in between.
func (d *Decider) SetOwn(own Own) { d.ownAddress.Store(&own) }

// judge is the package's judge, with this machine's own addresses.
func (d *Decider) judge(addr netip.Addr) (why string, kind reach) {
	why, kind = judge(addr)
	own := d.ownAddress.Load()
	if why != "" || own == nil {
		return why, kind
	}
	why, err := (*own)(plainAddr(addr))
	switch {
	case err != nil:
		return "not to be told from this machine's own addresses: " + err.Error(), nowhere
	case why != "":
		return why, special
	}
	return "", ordinary
}

// Upstream decides on an address of a server name that a client sent, in the moment in which
// it is connected to: one of those that [Decider.Server] returned.
func (d *Decider) Upstream(name string, to netip.AddrPort) Decision {
	name, problem := canonicalName(name)
	if problem != "" {
		return Decision{Rule: "server name " + problem}
	}
	i := d.first(d.covering(name).rules, to.Port())
	if i < 0 {
		return Decision{Rule: "no rule names " + name}
	}
	addr := plainAddr(to.Addr())
	if closed := d.closedName(name) + d.closed(addr); closed != "" {
		return Decision{Rule: closed}
	}
	why, kind := d.judge(addr)
	if why != "" && d.blockFor(addr, to.Port()) < 0 && !d.leads(i, netip.AddrPortFrom(addr, to.Port()), kind) {
		return Decision{Rule: addr.String() + " is " + why, Hint: nameHint(name, addr, Ports{to.Port(), to.Port()}, kind)}
	}
	return Decision{Verdict: Direct, Rule: d.labels[i]}
}
