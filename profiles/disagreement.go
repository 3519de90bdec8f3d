package profiles

import (
	"fmt"

	"stockade/sandbox/egress"
)

// writtenRule is a rule with the entry that it comes from.
type writtenRule struct {
	rule  egress.Rule
	entry EgressRule
}

// disagreement is one word of two entries, and of the rule that decides.
type disagreement struct {
	key, earlier, later, held string
	at                        Position // of the later word; zero when it is not written
}

// disagreements warns of entries for one host and port that say different things about it:
// one of the two does nothing there, and whoever wrote it may count on it. A word that
// stands in one file takes the place of an earlier file's, which is what extending is for, so
// nothing is said of that.
func (c *compiler) disagreements(rules []egress.Rule, entries []writtenRule) {
	for i := range entries {
		for j := range entries[:i] {
			earlier, later := &entries[j], &entries[i]
			port, both := shared(&earlier.rule, &later.rule)
			if !both {
				continue
			}
			held := ruleFor(rules, &later.rule, port)
			words := []disagreement{{"addresses", earlier.rule.Addresses.String(), later.rule.Addresses.String(), held.Addresses.String(), later.entry.Addresses.Position}}
			if relayed(egress.Ports{First: port, Last: port}) {
				words = append(words, disagreement{"names", earlier.rule.Names.String(), later.rule.Names.String(), held.Names.String(), later.entry.Names.Position})
			}
			target := egress.Rule{Host: later.rule.Host, Wildcard: later.rule.Wildcard, Ports: egress.Ports{First: port, Last: port}}.String()
			for _, w := range words {
				replaces := w.at != Position{} && w.at.File != earlier.entry.File && w.held == w.later
				if w.earlier != w.later && !replaces {
					c.warn(later.entry.Position, fmt.Sprintf("%s has %s: %s here and %[2]s: %[4]s at %s; what holds is %[2]s: %[6]s", target, w.key, w.later, w.earlier, earlier.entry.Where(), w.held))
				}
			}
		}
	}
}

// shared finds a port of two rules for the same hosts, one that a relay serves where they
// share one.
func shared(a, b *egress.Rule) (uint16, bool) {
	if a.Host == "" || a.Host != b.Host || a.Wildcard != b.Wildcard {
		return 0, false
	}
	for _, port := range relayPorts {
		if a.Ports.Holds(port) && b.Ports.Holds(port) {
			return port, true
		}
	}
	first := max(a.Ports.First, b.Ports.First)
	return first, a.Ports.Holds(first) && b.Ports.Holds(first)
}

// ruleFor finds the rule that has the word about a host and port: of several for the same
// hosts, the one written last, as for package egress.
func ruleFor(rules []egress.Rule, about *egress.Rule, port uint16) *egress.Rule {
	for i := len(rules) - 1; i >= 0; i-- {
		if r := &rules[i]; r.Host == about.Host && r.Wildcard == about.Wildcard && r.Ports.Holds(port) {
			return r
		}
	}
	return nil
}
