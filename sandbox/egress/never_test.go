package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"stockade/sandbox/egress"
)

func closedTo(t *testing.T, entries ...string) []egress.Rule {
	t.Helper()
	var out []egress.Rule
	for _, entry := range entries {
		rules, err := egress.ParseNever(entry)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			r.Origin = "policy.yaml:1:1"
			out = append(out, r)
		}
	}
	return out
}

func TestParseNever(t *testing.T) {
	for entry, want := range map[string]string{
		"a.example":         "a.example:1-65535",
		"*.a.example":       "*.a.example:1-65535",
		"10.0.0.0/8":        "10.0.0.0/8:1-65535",
		"203.0.113.9":       "203.0.113.9:1-65535",
		"[2001:db8::/32]":   "[2001:db8::/32]:1-65535",
		"localhost":         "127.0.0.1:1-65535",
		"a.example:443":     "names a port",
		"10.0.0.0/8:22":     "names a port",
		"[2001:db8::1]:443": "names a port",
		"a b":               "",
		"10.0.0.1/8":        "",
	} {
		rules, err := egress.ParseNever(entry)
		switch {
		case strings.HasSuffix(want, "65535"):
			if err != nil || rules[0].String() != want || rules[0].Text != entry {
				t.Errorf("%s: got %v, %v", entry, rules, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: got %v, want an error with %q", entry, err, want)
		}
	}
}

// Nothing leads to what is never reached: no rule, no public mode, no name, no spelling, no
// form. What lies beside it is as without.
func TestNever(t *testing.T) {
	closed := closedTo(t, "10.0.0.0/8", "203.0.113.9", "*.corp.example", "bad.example")
	for name, p := range map[string]egress.Policy{
		"public": {Mode: egress.Public},
		"list": policy(t, "10.0.0.0/8:1-65535", "203.0.113.0/24:1-65535", "[64:ff9b::/96]:1-65535", "[2002::/16]:1-65535",
			"*.example:443", "any.example:443", "x.corp.example:443", "bad.example:443"),
	} {
		with, without := p, p
		with.Never = closed
		shut, open := egress.NewDecider(with, nil), egress.NewDecider(without, nil)
		for address, reached := range map[string]bool{
			"10.0.0.5": false, "203.0.113.9": false, "::ffff:10.0.0.5": false, "64:ff9b::a00:5": false,
			"2002:a00:5::1": false, "64:ff9b::cb00:7109": false, "203.0.113.8": true, "64:ff9b::cb00:7108": true,
		} {
			to := netip.AddrPortFrom(netip.MustParseAddr(address), 5432)
			got, plain := shut.Stream(to), open.Stream(to)
			datagram := shut.Datagram(to)
			if !reached {
				if got.Verdict != egress.Refused || datagram.Verdict != egress.Refused || got.Hint != "" || name == "list" && !strings.Contains(got.Rule, "policy.yaml:1:1") {
					t.Errorf("%s: %s: got %+v, %+v", name, address, got, datagram)
				}
				if name == "list" && plain.Verdict != egress.Direct {
					t.Errorf("%s: %s is refused without it: %+v", name, address, plain)
				}
			} else if got != plain {
				t.Errorf("%s: %s: got %+v, want %+v", name, address, got, plain)
			}
		}
		for host, reached := range map[string]bool{"x.corp.example": false, "X.CORP.example.": false, "bad.example": false, "corp.example": true, "good.example": true} {
			if got := shut.Query(host).Verdict == egress.Direct; got != reached {
				t.Errorf("%s: %s resolves: %v, want %v", name, host, got, reached)
			}
			if open.Query(host).Verdict != egress.Direct {
				t.Errorf("%s: %s is refused without it", name, host)
			}
			if got, _ := shut.Server(host, netip.MustParseAddrPort("198.51.100.1:443")); !reached && got.Verdict != egress.Refused {
				t.Errorf("%s: %s is a server name that passes", name, host)
			}
		}
		// A name that leads there, answered, pinned, sent and connected to.
		inside := netip.MustParseAddr("10.0.0.5")
		if kept := shut.Pin("any.example", []netip.Addr{inside}); len(kept) != 0 {
			t.Errorf("%s: a name is answered with %v", name, kept)
		}
		if got := shut.Upstream("any.example", netip.AddrPortFrom(inside, 443)); got.Verdict != egress.Refused {
			t.Errorf("%s: a relay connects to it: %+v", name, got)
		}
		// Names are resolved all the same, whatever the resolver's address is.
		if got := shut.Datagram(netip.MustParseAddrPort("10.0.0.5:53")); name == "public" && got.Verdict != egress.Resolver {
			t.Errorf("%s: the resolver's address: %+v", name, got)
		}
	}
}
