package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

// FuzzParseRule reads arbitrary entries. What is read prints, and reads again, as the same
// rule; what is not says so in one printable line, and its hint can be read.
func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{
		"api.github.com", "*.example.com:443", "10.1.0.0/16:5432", "[2001:db8::/32]:1-80", "localhost:6379", "0x7f.1", "127.1:80",
		"https://u@a.example:80/x", "a.*.b", "[::ffff:10.0.0.1]:443", "[fe80::1%eth0]:1", "例え.jp:80", "①.⓪:1", "xn--bcher-kva.example", "a.example:90-80",
		"2001:db8::1", "a/b", "[", "]", ":", "@", "://", "*.", "..", "a.:0", "0/0:0", "[::/0", "metadata:80", "a.localhost", "-.-", "1-1:1-1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := egress.ParseRule(text)
		if err != nil {
			holdRefusal(t, text, rules, err)
			return
		}
		if want := 1; len(rules) != want && (len(rules) != 2 || !strings.Contains(strings.ToLower(rules[0].String()+rules[1].String()), "::1")) {
			t.Fatalf("%q is %d rules", text, len(rules))
		}
		for _, r := range rules {
			holdRule(t, r, text)
			again, err := egress.ParseRule(r.String())
			if err != nil {
				t.Fatalf("%q prints as %q, which is refused: %v", text, r, err)
			}
			r.Text = r.String()
			if diff := cmp.Diff([]egress.Rule{r}, again, comparePrefixes); diff != "" {
				t.Fatalf("%q prints as %q, which is another rule: %s", text, r, diff)
			}
		}
	})
}

// holdRule checks what every rule promises.
func holdRule(t *testing.T, r egress.Rule, text string) {
	t.Helper()
	if (r.Host != "") == r.Prefix.IsValid() {
		t.Fatalf("%q names a host %q and a prefix %v", text, r.Host, r.Prefix)
	}
	if r.Text != text || r.Origin != "" || r.Names != egress.Strict {
		t.Fatalf("%q has text %q, origin %q, names %v", text, r.Text, r.Origin, r.Names)
	}
	if r.Ports.First == 0 || r.Ports.First > r.Ports.Last {
		t.Fatalf("%q holds ports %v", text, r.Ports)
	}
	if !r.Within(r) {
		t.Fatalf("%q is not within itself", text)
	}
	r.Wide()
	if r.Host == "" {
		if r.Wildcard || r.Prefix != r.Prefix.Masked() || r.Prefix.Addr().Is4In6() || r.Prefix.Addr().Zone() != "" {
			t.Fatalf("%q is the prefix %v", text, r.Prefix)
		}
		return
	}
	canonical, err := egress.CanonicalName(r.Host)
	if err != nil || canonical != r.Host {
		t.Fatalf("%q is the host %q, whose canonical form is %q, %v", text, r.Host, canonical, err)
	}
	if _, err := netip.ParseAddr(r.Host); err == nil {
		t.Fatalf("%q is the host %q, an address", text, r.Host)
	}
}

func holdRefusal(t *testing.T, text string, rules []egress.Rule, err error) {
	t.Helper()
	wrong, is := err.(*egress.RuleError) //nolint:errorlint // the error itself is the subject
	if !is || rules != nil {
		t.Fatalf("%q: got %v and %v", text, rules, err)
	}
	if wrong.Text != text || wrong.Problem == "" {
		t.Fatalf("%q: got %+v", text, wrong)
	}
	for _, line := range []string{err.Error(), wrong.Hint} {
		if len(line) > 2000 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%q: not a short printable line: %q", text, line)
		}
	}
}

// FuzzDecisions gives a decider arbitrary names, answers and destinations. Whatever comes in
// whatever order, no host rule and no public mode leads to a special address, as the tests'
// own transcription of the registries knows them.
func FuzzDecisions(f *testing.F) {
	for _, r := range registries {
		prefix := netip.MustParsePrefix(r.block)
		f.Add("api.example", prefix.Addr().AsSlice(), last(prefix).AsSlice(), uint16(443), uint8(0))
		f.Add("x.cdn.example", last(prefix).AsSlice(), prefix.Addr().AsSlice(), uint16(22), uint8(1))
	}
	f.Add("metadata.google.internal", []byte{8, 8, 8, 8}, []byte{8, 8, 8, 8}, uint16(80), uint8(3))
	f.Add("API.example.", []byte("\x20\x02\x7f\x00\x00\x01\x00\x00\x00\x00\x5e\xfe\x0a\x00\x00\x01"), []byte{10, 1, 2, 3}, uint16(5432), uint8(2))
	f.Fuzz(func(t *testing.T, name string, answerBytes, dstBytes []byte, port uint16, choice uint8) {
		answered, ok := netip.AddrFromSlice(answerBytes)
		dst, dstOK := netip.AddrFromSlice(dstBytes)
		if !ok || !dstOK {
			return
		}
		rules := append(parse(t, "api.example:443", "*.cdn.example:1-65535", "*.internal:80"), pinnedRules(t, "fast.example:1-65535", "*.fast.example:443")...)
		if choice&2 != 0 {
			rules = append(rules, parse(t, "10.1.0.0/16:5432")...)
		}
		d := egress.NewDecider(egress.Policy{Mode: egress.Mode(choice & 1), Rules: rules}, egress.Hosts{"api.example": {answered}})
		written := func(addr netip.Addr, port uint16) bool {
			addr = addr.Unmap()
			return choice&2 != 0 && port == 5432 && addr.Is4() && addr.As4()[0] == 10 && addr.As4()[1] == 1
		}
		for _, host := range []string{name, "api.example", "x.cdn.example", "fast.example"} {
			for _, addr := range d.Pin(host, []netip.Addr{answered, dst}) {
				if isSpecial(addr) && !written(addr, 5432) {
					t.Fatalf("%v is special, and kept for %q", addr, host)
				}
			}
			for _, to := range []netip.Addr{answered, dst} {
				decision, addrs := d.Server(host, netip.AddrPortFrom(to, port))
				if decision.Verdict != egress.Direct && len(addrs) > 0 || decision.Verdict == egress.Relayed || decision.Verdict == egress.Resolver {
					t.Fatalf("server name %q: got %+v with %v", host, decision, addrs)
				}
				for _, addr := range addrs {
					if isSpecial(addr) && !written(addr, port) {
						t.Fatalf("%v port %d is special, and reached by the server name %q", addr, port, host)
					}
				}
			}
		}
		for _, to := range []netip.Addr{answered, dst, netip.AddrFrom16(dst.As16())} {
			for _, decision := range []egress.Decision{d.Stream(netip.AddrPortFrom(to, port)), d.Datagram(netip.AddrPortFrom(to, port))} {
				holdDecision(t, decision)
				reached := decision.Verdict == egress.Direct || decision.Verdict == egress.Relayed
				if reached && isSpecial(to.Unmap()) && !written(to, port) {
					t.Fatalf("%v port %d is special, and reached: %+v", to, port, decision)
				}
			}
		}
		holdDecision(t, d.Query(name))
	})
}

// holdDecision checks what every decision promises.
func holdDecision(t *testing.T, decision egress.Decision) {
	t.Helper()
	if decision.Rule == "" || decision.Verdict != egress.Refused && decision.Hint != "" {
		t.Fatalf("got %+v", decision)
	}
	for _, line := range []string{decision.Rule, decision.Hint} {
		if len(line) > 2000 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("not a short printable line: %q", line)
		}
	}
	if decision.Hint != "" {
		hinted(t, decision.Hint)
	}
}
