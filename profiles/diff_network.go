package profiles

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/seccomp"
)

func (d *differ) network(a, b *sandbox.Plan) {
	d.egress(&a.Network, &b.Network)
	ports := func(list []uint16) []string {
		out := make([]string, len(list))
		for i, p := range list {
			out[i] = itoa(int(p))
		}
		return out
	}
	d.set("network", "listen ", ports(a.Network.Listen), ports(b.Network.Listen), Widening, Narrowing)
	d.unix(a.Network.Unix, b.Network.Unix)
}

// letsOut is what a plan's egress amounts to, however it is enforced.
type letsOut struct {
	word  EgressMode // none, public, all; "" for a list alone
	rules []egress.Rule
}

func letsOutOf(n *sandbox.Network) letsOut {
	switch {
	case n.Egress == sandbox.EgressAll || n.Egress == sandbox.EgressRules && holdsAll(n.Rules):
		return letsOut{word: EgressAll}
	case n.Egress != sandbox.EgressRules:
		return letsOut{word: EgressNone}
	case n.Rules.Mode == egress.Public:
		return letsOut{word: EgressPublic, rules: n.Rules.Rules}
	}
	return letsOut{rules: n.Rules.Rules}
}

// egress compares words, and rules where both plans are not simply all or none.
func (d *differ) egress(a, b *sandbox.Network) {
	before, after := letsOutOf(a), letsOutOf(b)
	if before.word != after.word && after.word != "" {
		effect := Widening
		if egressRank(after.word) < egressRank(before.word) || after.word == EgressNone {
			effect = Narrowing
		}
		d.add("network", Changed, "egress "+string(after.word), effect)
	} else if before.word != after.word && before.word != EgressNone {
		d.add("network", Removed, "egress "+string(before.word), Narrowing)
	}
	for i := range after.rules {
		r := &after.rules[i]
		at := slices.IndexFunc(before.rules, func(h egress.Rule) bool { return sameTarget(&h, r) })
		switch {
		case at < 0 && before.holds(r):
			d.rule(Added, r, Neutral)
		case at < 0:
			d.rule(Added, r, Widening)
		case sameWords(&before.rules[at], r):
		case r.Within(before.rules[at]):
			d.rule(Changed, r, Narrowing)
		default:
			d.rule(Changed, r, Widening)
		}
	}
	for i := range before.rules {
		r := &before.rules[i]
		switch {
		case slices.ContainsFunc(after.rules, func(h egress.Rule) bool { return sameTarget(&h, r) }):
		case after.loosens(r):
			d.rule(Removed, r, Widening)
		case after.holds(r):
			d.rule(Removed, r, Neutral)
		default:
			d.rule(Removed, r, Narrowing)
		}
	}
}

func (d *differ) rule(verb Verb, r *egress.Rule, effect Effect) {
	d.out = append(d.out, Change{Section: "network", Verb: verb, What: "egress " + ruleText(r), Effect: effect, Origin: RuleOrigin(r)})
}

// RuleOrigin is where a rule of a compiled plan was written.
func RuleOrigin(r *egress.Rule) sandbox.Origin {
	out := sandbox.Origin{Source: r.Origin}
	rest, column, _ := cutLast(r.Origin)
	source, line, found := cutLast(rest)
	lineNumber, lineErr := strconv.Atoi(line)
	columnNumber, columnErr := strconv.Atoi(column)
	if found && lineErr == nil && columnErr == nil {
		out = sandbox.Origin{Source: source, Line: lineNumber, Column: columnNumber}
	}
	return out
}

func cutLast(s string) (before, after string, found bool) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

// sameWords tells whether two rules for the same hosts and ports hold and lead alike.
func sameWords(a, b *egress.Rule) bool {
	return a.Addresses == b.Addresses && (a.Names == b.Names || !relayed(b.Ports))
}

// ruleText is a rule in one spelling, with what it says about names and addresses.
func ruleText(r *egress.Rule) string {
	var words []string
	if r.Host != "" && r.Names == egress.Pinned && relayed(r.Ports) {
		words = append(words, "names: pinned")
	}
	if r.Addresses == egress.AnyAddress {
		words = append(words, "addresses: any")
	}
	if len(words) == 0 {
		return r.String()
	}
	return r.String() + " (" + strings.Join(words, ", ") + ")"
}

// holds tells whether everything that a rule lets out is let out already. What cannot be
// told is not.
func (l *letsOut) holds(r *egress.Rule) bool {
	if l.word == EgressAll {
		return true
	}
	if slices.ContainsFunc(l.rules, func(h egress.Rule) bool { return r.Within(h) }) {
		return true
	}
	if l.word != EgressPublic {
		return false
	}
	if r.Host != "" {
		return r.Addresses == egress.Ordinary // then names lead to public addresses alone
	}
	if !r.Prefix.IsSingleIP() || r.Ports.First != r.Ports.Last {
		return false
	}
	to := netip.AddrPortFrom(r.Prefix.Addr(), r.Ports.First)
	public := egress.NewDecider(egress.Policy{Mode: egress.Public}, nil)
	return public.Stream(to).Verdict == egress.Direct && public.Datagram(to).Verdict == egress.Direct
}

// loosens tells whether without a rule a wider one decides, by which the same names are
// pinned, or lead to more addresses: of two rules about a name, the more exact one has the word.
func (l *letsOut) loosens(r *egress.Rule) bool {
	if r.Host == "" {
		return false
	}
	return slices.ContainsFunc(l.rules, func(h egress.Rule) bool {
		return r.Within(h) && !sameWords(r, &egress.Rule{Names: h.Names, Addresses: h.Addresses, Ports: r.Ports})
	})
}

// unix compares granted sockets by path. A reason that was not there lets a grant be a
// guarded socket.
func (d *differ) unix(a, b []sandbox.UnixGrant) {
	find := func(list []sandbox.UnixGrant, path string) *sandbox.UnixGrant {
		for i := range list {
			if list[i].Path == path {
				return &list[i]
			}
		}
		return nil
	}
	add := func(verb Verb, g *sandbox.UnixGrant, what string, effect Effect) {
		d.out = append(d.out, Change{Section: "network", Verb: verb, What: "unix " + g.Path + what, Effect: effect, Origin: g.Origin})
	}
	for i := range b {
		g, have := &b[i], find(a, b[i].Path)
		switch {
		case have == nil:
			add(Added, g, "", Widening)
		case have.Broad == "" && g.Broad != "":
			add(Changed, g, ": broad", Widening)
		case have.Broad != "" && g.Broad == "":
			add(Changed, g, ": broad", Narrowing)
		}
	}
	for i := range a {
		if find(b, a[i].Path) == nil {
			add(Removed, &a[i], "", Narrowing)
		}
	}
}

// reach ranks filters by what their Internet sockets can do without anybody's word.
func reach(p *seccomp.Policy) int {
	switch {
	case p.Supervision == seccomp.SupervisedInternet:
		return 2
	case p.Sockets == seccomp.InternetSockets:
		return 3
	case p.Sockets == seccomp.ListenSockets:
		return 1
	}
	return 0
}
