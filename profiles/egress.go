package profiles

import (
	"errors"
	"fmt"
	"strings"

	"stockade/sandbox/egress"
)

// checkEgress judges one rule of network.egress. Package egress reads rules; what is added
// here are the words of the other form, which would be read as host names.
func checkEgress(s string) (string, *problem) {
	switch EgressMode(s) {
	case EgressNone, EgressAll:
		return "", wrong(fmt.Sprintf(`write "egress: %s" without a list`, s), "%q is not a host: it stands alone or not at all", s)
	case EgressPublic:
		return "", wrong(`write public in the list itself, or "public:443" for a host of that name`, "%q is a word and not a host", s)
	}
	if word := meantWord(s); word != "" {
		return "", wrong(fmt.Sprintf(`did you mean %q? a host of that name is written with its port: "%s:443"`, word, strings.TrimSuffix(s, ".")), "%q reads like the word %s, not like a host", s, word)
	}
	if _, err := egress.ParseRule(s); err != nil {
		return "", ruleProblem(err)
	}
	return s, nil
}

// meantWord is the word of network.egress that an entry without a dot and a port most likely
// is: one that differs in case or by one letter. "" for none. Taken for a host, NONE would
// be a name that somebody may answer for.
func meantWord(s string) string {
	s = strings.TrimSuffix(s, ".")
	if len(s) > len(EgressPublic)+1 || strings.ContainsAny(s, ".:/*") {
		return ""
	}
	for _, word := range [...]EgressMode{EgressNone, EgressPublic, EgressAll} {
		if edits(strings.ToLower(s), string(word)) <= 1 {
			return string(word)
		}
	}
	return ""
}

// ruleProblem is what package egress found wrong with a rule.
func ruleProblem(err error) *problem {
	if told, ok := errors.AsType[*egress.RuleError](err); ok {
		return &problem{message: told.Error(), hint: told.Hint}
	}
	return wrong("", "%v", err)
}

// checkSocket judges an entry of network.unix: the path of a socket file.
func checkSocket(s string) (string, *problem) {
	rest, url := strings.CutPrefix(s, "unix:")
	switch {
	case url:
		return "", wrong(fmt.Sprintf("write %q", strings.TrimPrefix(strings.TrimPrefix(rest, "path="), "//")), "%q is an address and not a path", s)
	case strings.HasPrefix(s, "@") || strings.HasPrefix(s, "\x00"):
		return "", wrong("use a socket file", "%q is an abstract socket: there is no file that could be granted", s)
	}
	s, bad := checkPath(s)
	if bad == nil && strings.HasSuffix(s, "/") {
		return "", wrong("name the socket file itself", "%q is a folder", s)
	}
	return s, bad
}

// egress reads network.egress.
func (r *reader) egress(k *key, path string, n *node) {
	net := k.field(r.profile).(*Network)
	if n.kind == textNode && !n.null() {
		switch {
		case n.text == "":
			r.scalar(path, n)
		case strings.ContainsAny(n.text, ".:"):
			r.fail(n, "write [...], also for one rule", "%s: expected a word or a list, found text", path)
		case r.word(k, path, n):
			net.Egress = Sourced[EgressMode]{EgressMode(n.text), r.at(n)}
		}
		return
	}
	list, ok := r.list(path, "rules", n)
	if !ok {
		return
	}
	net.HostsAt = r.at(n)
	for i := range list {
		item := &list[i]
		if item.kind == textNode && item.text == string(EgressPublic) {
			net.Egress = Sourced[EgressMode]{EgressPublic, r.at(item)}
			continue
		}
		if rule, ok := r.rule(k, path, item); ok {
			net.Hosts = append(net.Hosts, rule)
		}
	}
}

// rule reads one entry of the list.
func (r *reader) rule(k *key, path string, n *node) (EgressRule, bool) {
	e := EgressRule{Position: r.at(n)}
	before := len(r.errs)
	switch n.kind {
	case mapNode:
		r.ruleKeys(k, path, n, &e)
	case textNode:
		r.ruleText(k, path, n, &e)
	default:
		r.fail(n, `write HOST:PORT, or {to: "HOST:PORT", names: pinned}`, "%s: expected a rule, found %s", path, n.what())
	}
	if len(r.errs) > before {
		return e, false
	}
	if e.To == "" {
		r.fail(n, `write {to: "HOST:PORT", names: pinned}`, "%s: the entry has no host", path)
		return e, false
	}
	for _, check := range [...]struct {
		bad *problem
		at  Position
	}{{checkNames(e), e.Names.Position}, {checkAddresses(e), e.Addresses.Position}} {
		if check.bad != nil {
			r.errs = append(r.errs, check.bad.at(check.at))
		}
	}
	return e, len(r.errs) == before
}

func (r *reader) ruleText(k *key, path string, n *node, e *EgressRule) {
	text, ok := r.scalar(path, n)
	if !ok {
		return
	}
	to, bad := k.check(text)
	if bad != nil {
		r.add(n, bad)
		return
	}
	e.To, e.Position = to, r.at(n)
}

func (r *reader) ruleKeys(k *key, path string, n *node, e *EgressRule) {
	lines := map[string]int{}
	for i := range n.pairs {
		name, value := &n.pairs[i].key, &n.pairs[i].value
		if lines[name.text] > 0 {
			r.fail(name, "keep one of them", "key %q is already written in line %d", name.text, lines[name.text])
			continue
		}
		lines[name.text] = name.line
		switch name.text {
		case "to":
			r.ruleText(k, path+".to", value, e)
		case "names":
			names := key{words: namesWords}
			if _, ok := r.scalar(path+".names", value); ok && r.word(&names, path+".names", value) {
				e.Names = Sourced[NamesMode]{NamesMode(value.text), r.at(value)}
			}
		case "addresses":
			addresses := key{words: addressesWords}
			if _, ok := r.scalar(path+".addresses", value); ok && r.word(&addresses, path+".addresses", value) {
				e.Addresses = Sourced[AddressesMode]{AddressesMode(value.text), r.at(value)}
			}
		default:
			hint := "known here: " + strings.Join(ruleKeys, ", ")
			if near := nearest(name.text, ruleKeys); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.fail(name, hint, "unknown key %q in an entry of %q", name.text, path)
		}
	}
}

// checkAddresses refuses a word about addresses that changes nothing.
func checkAddresses(e EgressRule) *problem {
	if !e.Addresses.written() {
		return nil
	}
	rules, err := egress.ParseRule(e.To)
	if err != nil {
		return nil // said already
	}
	if rules[0].Host == "" {
		return wrong("remove addresses", "%q is an address: such a rule leads there, whatever it is", e.To)
	}
	return nil
}

// checkNames refuses a word about names that changes nothing.
func checkNames(e EgressRule) *problem {
	if !e.Names.written() {
		return nil
	}
	rules, err := egress.ParseRule(e.To)
	if err != nil {
		return nil // said already
	}
	for _, rule := range rules {
		switch {
		case rule.Host == "":
			return wrong("remove names", "%q is an address: there is no name to hold", e.To)
		case e.Names.Value == NamesStrict && !relayed(rule.Ports):
			return wrong("remove it: other ports are held by address", "names: strict holds on TLS and HTTP ports (80, 443, 8080, 8443), and %q has none of them", e.To)
		}
	}
	return nil
}
