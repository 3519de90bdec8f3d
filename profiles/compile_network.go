package profiles

import (
	"net/netip"
	"slices"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/seccomp"
)

// network fills the plan's network, but for Unix sockets, and the parts of the filter that
// follow from it.
func (c *compiler) network(plan *sandbox.Plan) {
	net := &c.profile.Network
	for _, port := range net.Listen {
		plan.Network.Listen = append(plan.Network.Listen, port.Value)
	}
	slices.Sort(plan.Network.Listen)
	plan.Network.Listen = slices.Compact(plan.Network.Listen)
	filter := &plan.Filter
	if len(plan.Network.Listen) > 0 {
		filter.Sockets, filter.Listening = seccomp.ListenSockets, seccomp.ListenAllowed
	}
	if len(net.Unix) > 0 {
		filter.Supervision = seccomp.SupervisedUnix
	}
	switch {
	case net.Egress.Value == EgressAll && len(net.Unix) == 0:
		plan.Network.Egress = sandbox.EgressAll
		filter.Sockets = seccomp.InternetSockets
	case net.Egress.Value == EgressAll:
		// A supervisor sees every connect, so it is what has to let these through.
		plan.Network.Egress = sandbox.EgressRules
		plan.Network.Rules = egress.Policy{Rules: everyAddress(net.Egress.Where())}
		c.out.Notes = append(c.out.Notes, "network.unix needs a supervisor, so network.egress: all goes through it, too")
	case net.Egress.Value == EgressPublic || len(net.Hosts) > 0 || c.facts.Stage != "":
		// Of an install jail also without rules: its supervisor ends what a step leaves running.
		plan.Network.Egress = sandbox.EgressRules
		plan.Network.Rules = c.policy()
	}
	if plan.Network.Egress == sandbox.EgressRules {
		filter.Sockets, filter.Supervision = seccomp.InternetSockets, seccomp.SupervisedInternet
	}
	if net.Names.written() && !slices.ContainsFunc(plan.Network.Rules.Rules, func(r egress.Rule) bool { return r.Host != "" }) {
		c.fail(net.Names.Position, wrong("remove the key, or list hosts under network.egress", "network.names changes nothing: network.egress has no rule for a host"))
	}
}

// egressAt is where it is written that the server may connect, if it may.
func (c *compiler) egressAt() (Position, bool) {
	net := &c.profile.Network
	switch {
	case len(net.Hosts) > 0:
		return net.Hosts[0].Position, true
	case net.Egress.Value == EgressPublic || net.Egress.Value == EgressAll:
		return net.Egress.Position, true
	}
	return Position{}, false
}

// everyAddress are rules that hold whatever an IPv4 or IPv6 socket can be connected to.
func everyAddress(origin string) []egress.Rule {
	ports := egress.Ports{First: 1, Last: 65535}
	return []egress.Rule{
		{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Ports: ports, Text: string(EgressAll), Origin: origin},
		{Prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0), Ports: ports, Text: string(EgressAll), Origin: origin},
	}
}

// holdsAll tells whether rules are those of everyAddress.
func holdsAll(p egress.Policy) bool {
	return len(p.Rules) > 0 && !slices.ContainsFunc(p.Rules, func(r egress.Rule) bool { return r.Text != string(EgressAll) || !r.Prefix.IsValid() })
}

// policy is network.egress as package egress takes it. Of two entries for one host and
// port, the later word counts, about names and about addresses each for itself.
func (c *compiler) policy() egress.Policy {
	net := &c.profile.Network
	var p egress.Policy
	var entries []writtenRule
	if net.Egress.Value == EgressPublic {
		p.Mode = egress.Public
	}
	for _, e := range net.Hosts {
		rules, err := egress.ParseRule(e.To)
		if err != nil { // flags and files are checked; a profile may be made in other ways
			c.fail(e.Position, ruleProblem(err))
			continue
		}
		for _, r := range rules {
			r.Origin = e.Where()
			if r.Host != "" && replace(net.Names, e.Names).Value == NamesPinned {
				r.Names = egress.Pinned
			}
			if r.Host != "" && e.Addresses.Value == AddressesAny {
				r.Addresses = egress.AnyAddress
			}
			entries = append(entries, writtenRule{r, e})
			have := slices.IndexFunc(p.Rules, func(h egress.Rule) bool { return sameTarget(&h, &r) })
			if have < 0 {
				p.Rules = append(p.Rules, r)
				continue
			}
			before := p.Rules[have]
			if e.Names.written() || e.Addresses.written() {
				p.Rules[have] = r
			}
			if !e.Names.written() {
				p.Rules[have].Names = before.Names
			}
			if !e.Addresses.written() {
				p.Rules[have].Addresses = before.Addresses
			}
		}
	}
	c.disagreements(p.Rules, entries)
	return p
}

// sameTarget tells whether two rules name the same hosts or addresses, and ports.
func sameTarget(a, b *egress.Rule) bool {
	return a.Host == b.Host && a.Wildcard == b.Wildcard && a.Prefix == b.Prefix && a.Ports == b.Ports
}

// relayPorts are the ports on which names: strict has a relay check names.
var relayPorts = [...]uint16{80, 443, 8080, 8443}

// NamesHeld says how the name of a rule is held, whatever the rule's word is: names: strict
// has a relay on some ports alone. Note is for people, when it differs; both are "" for an
// address rule.
func NamesHeld(r *egress.Rule) (names NamesMode, note string) {
	switch {
	case r.Host == "":
		return "", ""
	case r.Names == egress.Pinned:
		return NamesPinned, ""
	case !relayed(r.Ports):
		return NamesPinned, "not a TLS or HTTP port"
	case !onlyRelayed(r.Ports):
		return NamesStrict, "on TLS and HTTP ports; else pinned"
	}
	return NamesStrict, ""
}

// relayed tells whether some port of a range is one of them.
func relayed(p egress.Ports) bool { return slices.ContainsFunc(relayPorts[:], p.Holds) }
