package egress

import (
	"net/netip"
	"strings"
)

// ParseNever reads one entry of what no rule may lead to: a host, "*.example.com", an
// address, a network. There is no port: it holds for all of them. The error is a [*RuleError].
func ParseNever(text string) ([]Rule, error) {
	rules, err := ParseRule(text + ":1-65535")
	if err != nil {
		if _, ported := ParseRule(text); ported == nil && strings.Contains(text, ":") {
			return nil, &RuleError{Text: text, Problem: "names a port", Hint: "leave the port out: it holds for all"}
		}
		return nil, err
	}
	for i := range rules {
		rules[i].Text = text
	}
	return rules, nil
}

// closed says which rule of [Policy.Never] holds an address, or an IPv4 address that it
// carries; "" for none.
func (d *Decider) closed(addr netip.Addr) (why string) {
	if len(d.never) == 0 {
		return ""
	}
	look := func(_ string, addr netip.Addr) {
		for i := range d.never {
			if r := &d.never[i]; why == "" && r.Prefix.IsValid() && r.Prefix.Contains(addr) {
				why = r.forbids()
			}
		}
	}
	look("", addr)
	if addr.Is6() {
		eachInner(addr, look)
	}
	return why
}

// closedName says which rule of [Policy.Never] covers a name in canonical form; "" for none.
func (d *Decider) closedName(name string) string {
	for i := range d.never {
		if r := &d.never[i]; r.covers(name) {
			return r.forbids()
		}
	}
	return ""
}

// forbids words a rule as a reason.
func (r *Rule) forbids() string {
	text := "the policy never leads to " + printable(r.Text)
	if r.Origin != "" {
		text += " (" + printable(r.Origin) + ")"
	}
	return text
}
