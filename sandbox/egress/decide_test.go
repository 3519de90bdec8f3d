package egress_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

// answer is addresses as a resolver gives them.
func answer(texts ...string) []netip.Addr {
	addrs := make([]netip.Addr, len(texts))
	for i, text := range texts {
		addrs[i] = netip.MustParseAddr(text)
	}
	return addrs
}

// pinnedRules are rules with names: pinned.
func pinnedRules(t testing.TB, texts ...string) []egress.Rule {
	t.Helper()
	rules := parse(t, texts...)
	for i := range rules {
		rules[i].Names = egress.Pinned
	}
	return rules
}

// listed is a decider with every kind of rule, and with the names of its rules resolved. The
// public addresses in it are nobody's in particular.
func listed(t testing.TB) *egress.Decider {
	t.Helper()
	rules := parse(t, "api.example:443", "api.example:22", "*.cdn.example:443", "db.example:5432-5433", "web.example:8080")
	rules = append(rules, pinnedRules(t, "fast.example:443", "game.example:3000-4000")...)
	rules = append(rules, parse(t, "10.1.0.0/16:5432", "localhost:6379", "[2600:1::/32]:443", "9.9.9.9:53", "9.9.9.8:443", "169.254.169.254:80")...)
	rules[0].Origin = "github.yaml:7:5"
	d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
	for name, addrs := range map[string][]netip.Addr{
		"api.example":     answer("8.1.0.1", "2600:2::1"),
		"img.cdn.example": answer("8.1.0.2", "8.1.0.9"),
		"db.example":      answer("8.1.0.3", "10.1.2.3"),
		"web.example":     answer("8.1.0.5"),
		"fast.example":    answer("8.1.0.4", "8.1.0.9"),
		"game.example":    answer("8.1.0.6"),
	} {
		if kept := d.Pin(name, addrs); len(kept) != len(addrs) {
			t.Fatalf("pinning %s: kept %v of %v", name, kept, addrs)
		}
	}
	return d
}

func TestDecisionsOfAList(t *testing.T) {
	direct := func(rule string) egress.Decision { return egress.Decision{Verdict: egress.Direct, Rule: rule} }
	relayed := func(rule string) egress.Decision { return egress.Decision{Verdict: egress.Relayed, Rule: rule} }
	refused := func(rule, hint string) egress.Decision { return egress.Decision{Rule: rule, Hint: hint} }
	add := func(rule string) string { return `add "` + rule + `" to network.egress` }
	quic := func(dst string) egress.Decision {
		return refused("QUIC is refused, so that clients use TCP", add(dst))
	}
	stub := egress.Decision{Verdict: egress.Resolver, Rule: "names are resolved by stockade"}
	tests := []struct {
		name, dst        string
		stream, datagram egress.Decision
	}{
		{"strict name", "8.1.0.1:443", relayed("api.example:443 (github.yaml:7:5)"), quic("8.1.0.1:443")},
		{"strict name, mapped", "[::ffff:8.1.0.1]:443", relayed("api.example:443 (github.yaml:7:5)"), quic("8.1.0.1:443")},
		{"strict name, IPv6", "[2600:2::1]:443", relayed("api.example:443 (github.yaml:7:5)"), quic("[2600:2::1]:443")},
		{"strict name, another port", "8.1.0.1:22", direct("api.example:22"), direct("api.example:22")},
		{"strict name, a port of nobody", "8.1.0.1:80", refused("no rule names api.example:80 (8.1.0.1)", add("api.example:80")), refused("no rule names api.example:80 (8.1.0.1)", add("api.example:80"))},
		{"wildcard", "8.1.0.2:443", relayed("*.cdn.example:443"), quic("8.1.0.2:443")},
		{"wildcard, the port of another rule", "8.1.0.2:22", refused("no rule names img.cdn.example:22 (8.1.0.2)", add("img.cdn.example:22")), refused("no rule names img.cdn.example:22 (8.1.0.2)", add("img.cdn.example:22"))},
		{"range", "8.1.0.3:5433", direct("db.example:5432-5433"), direct("db.example:5432-5433")},
		{"after the range", "8.1.0.3:5434", refused("no rule names db.example:5434 (8.1.0.3)", add("db.example:5434")), refused("no rule names db.example:5434 (8.1.0.3)", add("db.example:5434"))},
		{"pinned name", "8.1.0.4:443", direct("fast.example:443"), quic("8.1.0.4:443")},
		{"address of a pinned and a strict name", "8.1.0.9:443", direct("fast.example:443"), quic("8.1.0.9:443")},
		{"strict name, HTTP port", "8.1.0.5:8080", relayed("web.example:8080"), quic("8.1.0.5:8080")},
		{"pinned name, other ports", "8.1.0.6:3999", direct("game.example:3000-4000"), direct("game.example:3000-4000")},

		{"private address of a name, on the port of its block", "10.1.2.3:5432", direct("10.1.0.0/16:5432"), direct("10.1.0.0/16:5432")},
		{"private address of a name, on the name's port", "10.1.2.3:5433", refused("private (RFC 1918)", `add {to: "db.example:5433", addresses: any} to network.egress`), refused("private (RFC 1918)", `add {to: "db.example:5433", addresses: any} to network.egress`)},
		{"block", "10.1.255.255:5432", direct("10.1.0.0/16:5432"), direct("10.1.0.0/16:5432")},
		{"block, mapped", "[::ffff:10.1.255.255]:5432", direct("10.1.0.0/16:5432"), direct("10.1.0.0/16:5432")},
		{"beside the block", "10.2.0.0:5432", refused("private (RFC 1918)", add("10.2.0.0:5432")), refused("private (RFC 1918)", add("10.2.0.0:5432"))},
		{"block in NAT64 form", "[64:ff9b::10.1.2.3]:5432", refused("NAT64 form of 10.1.2.3, private (RFC 1918)", add("[64:ff9b::a01:203]:5432")), refused("NAT64 form of 10.1.2.3, private (RFC 1918)", add("[64:ff9b::a01:203]:5432"))},
		{"IPv6 block", "[2600:1:ffff::1]:443", direct("[2600:1::/32]:443"), direct("[2600:1::/32]:443")},
		{"IPv6 block with a zone", "[2600:1:ffff::1%1]:443", direct("[2600:1::/32]:443"), direct("[2600:1::/32]:443")},
		{"localhost", "127.0.0.1:6379", direct("localhost:6379"), direct("localhost:6379")},
		{"localhost, IPv6", "[::1]:6379", direct("localhost:6379"), direct("localhost:6379")},
		{"localhost, mapped", "[::ffff:127.0.0.1]:6379", direct("localhost:6379"), direct("localhost:6379")},
		{"localhost, another port", "127.0.0.1:6380", refused("loopback (RFC 1122)", add("127.0.0.1:6380")), refused("loopback (RFC 1122)", add("127.0.0.1:6380"))},
		{"localhost, another address", "127.0.0.2:6379", refused("loopback (RFC 1122)", add("127.0.0.2:6379")), refused("loopback (RFC 1122)", add("127.0.0.2:6379"))},
		{"unspecified", "0.0.0.0:6379", refused("unspecified, which is this machine (RFC 1122)", add("0.0.0.0:6379")), refused("unspecified, which is this machine (RFC 1122)", add("0.0.0.0:6379"))},
		{"unspecified, IPv6", "[::]:6379", refused("unspecified, which is this machine (RFC 4291)", add("[::]:6379")), refused("unspecified, which is this machine (RFC 4291)", add("[::]:6379"))},
		{"metadata, written out", "169.254.169.254:80", direct("169.254.169.254:80"), direct("169.254.169.254:80")},
		{"metadata, another port", "169.254.169.254:443", refused("cloud metadata (Amazon, Azure, Google Cloud and others)", ""), refused("cloud metadata (Amazon, Azure, Google Cloud and others)", "")},
		{"QUIC to an address rule", "9.9.9.8:443", direct("9.9.9.8:443"), direct("9.9.9.8:443")},

		{"name server", "8.8.8.8:53", stub, stub},
		{"name server on loopback", "127.0.0.53:53", stub, stub},
		{"name server on loopback, mapped", "[::ffff:127.0.0.53]:53", stub, stub},
		{"name server, written out", "9.9.9.9:53", direct("9.9.9.9:53"), direct("9.9.9.9:53")},
		{"address of a name, port 53", "8.1.0.1:53", stub, stub},
		{"name server over TLS", "9.9.9.9:853", refused("no rule names 9.9.9.9:853", add("9.9.9.9:853")), refused("no rule names 9.9.9.9:853", add("9.9.9.9:853"))},

		{"stranger", "8.8.8.8:443", refused("no rule names 8.8.8.8:443", add("8.8.8.8:443")), refused("no rule names 8.8.8.8:443", add("8.8.8.8:443"))},
		{"stranger, IPv6", "[2606:4700::1]:443", refused("no rule names [2606:4700::1]:443", add("[2606:4700::1]:443")), refused("no rule names [2606:4700::1]:443", add("[2606:4700::1]:443"))},
		{"multicast", "224.0.0.251:5353", refused("multicast (RFC 5771)", add("224.0.0.251:5353")), refused("multicast (RFC 5771)", add("224.0.0.251:5353"))},
		{"port 0", "8.1.0.1:0", refused("port 0 is none", ""), refused("port 0 is none", "")},
	}
	d := listed(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dst := netip.MustParseAddrPort(tt.dst)
			if diff := cmp.Diff(tt.stream, d.Stream(dst)); diff != "" {
				t.Error("stream:", diff)
			}
			if diff := cmp.Diff(tt.datagram, d.Datagram(dst)); diff != "" {
				t.Error("datagram:", diff)
			}
		})
	}
	if got := d.Stream(netip.AddrPort{}); got != (egress.Decision{Rule: "no address"}) {
		t.Errorf("zero address: got %+v", got)
	}
}

func TestDecisionsOfThePublicMode(t *testing.T) {
	type both struct{ stream, datagram egress.Verdict }
	tests := []struct {
		name, dst string
		want      both
	}{
		{"public", "8.8.8.8:443", both{egress.Direct, egress.Refused}},
		{"public, another port", "8.8.8.8:123", both{egress.Direct, egress.Direct}},
		{"public, HTTP", "8.8.8.8:80", both{egress.Direct, egress.Refused}},
		{"public IPv6", "[2606:4700::1]:8443", both{egress.Direct, egress.Refused}},
		{"mapped", "[::ffff:8.8.8.8]:22", both{egress.Direct, egress.Direct}},
		{"NAT64", "[64:ff9b::8.8.8.8]:22", both{egress.Direct, egress.Direct}},
		{"loopback", "127.0.0.1:22", both{egress.Refused, egress.Refused}},
		{"loopback, mapped", "[::ffff:127.0.0.1]:22", both{egress.Refused, egress.Refused}},
		{"private", "192.168.1.1:443", both{egress.Refused, egress.Refused}},
		{"private in 6to4", "[2002:c0a8:101::1]:443", both{egress.Refused, egress.Refused}},
		{"unspecified", "0.0.0.0:80", both{egress.Refused, egress.Refused}},
		{"rule beside", "10.1.2.3:5432", both{egress.Direct, egress.Direct}},
		{"rule beside, for QUIC", "9.9.9.9:443", both{egress.Direct, egress.Direct}},
		{"answer of a named host", "10.1.2.4:443", both{egress.Refused, egress.Refused}},
		{"name server", "192.168.1.1:53", both{egress.Resolver, egress.Resolver}},
		{"port 0", "8.8.8.8:0", both{egress.Refused, egress.Refused}},
	}
	d := egress.NewDecider(egress.Policy{Mode: egress.Public, Rules: parse(t, "10.1.0.0/16:5432", "9.9.9.9:443", "intern.example:443")}, nil)
	if kept := d.Pin("intern.example", answer("10.1.2.4", "8.8.8.8", "10.2.0.1")); !cmp.Equal(kept, answer("10.1.2.4", "8.8.8.8"), compareAddrs) {
		t.Errorf("kept %v", kept)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dst := netip.MustParseAddrPort(tt.dst)
			if got := (both{d.Stream(dst).Verdict, d.Datagram(dst).Verdict}); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	// No bound on names: browsers see many.
	for i := range 5000 {
		name := "n" + string(rune('a'+i%26)) + "." + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".example"
		if kept := d.Pin(name, answer("8.8.8.8")); len(kept) != 1 {
			t.Fatalf("%s, name %d: kept %v", name, i, kept)
		}
	}
}

func TestNothingIsAllowedByNothing(t *testing.T) {
	for _, d := range []*egress.Decider{
		egress.NewDecider(egress.Policy{}, nil),
		egress.NewDecider(egress.Policy{Rules: []egress.Rule{{}, {Wildcard: true, Ports: egress.Ports{First: 1, Last: 65535}}}}, egress.Hosts{"": answer("8.8.8.8")}),
	} {
		for _, dst := range []string{"8.8.8.8:443", "127.0.0.1:80", "[2606:4700::1]:22"} {
			for _, got := range []egress.Decision{d.Stream(netip.MustParseAddrPort(dst)), d.Datagram(netip.MustParseAddrPort(dst))} {
				if got.Verdict != egress.Refused || got.Rule == "" {
					t.Errorf("%s: got %+v", dst, got)
				}
			}
		}
		for _, name := range []string{"a.example", "localhost", "", "."} {
			if got := d.Query(name); got.Verdict != egress.Refused || got.Rule == "" {
				t.Errorf("%q: got %+v", name, got)
			}
		}
		if got, addrs := d.Server("a.example", netip.MustParseAddrPort("8.8.8.8:443")); got.Verdict != egress.Refused || addrs != nil {
			t.Errorf("got %+v, %v", got, addrs)
		}
	}
}

// TestHintsAllow takes each hint at its word.
func TestHintsAllow(t *testing.T) {
	rules := parse(t, "api.example:443", "*.cdn.example:1-65535", "db.example:5432-5433")
	for _, text := range []string{"8.1.0.1:22", "8.8.8.8:443", "127.0.0.1:80", "[::1]:80", "10.0.0.1:5432", "[64:ff9b::a00:1]:443", "[fe80::1]:22", "[::127.0.0.1]:22", "224.0.0.251:5353"} {
		dst := netip.MustParseAddrPort(text)
		d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
		d.Pin("api.example", answer("8.1.0.1"))
		for _, decide := range []func(*egress.Decider) egress.Decision{
			func(d *egress.Decider) egress.Decision { return d.Stream(dst) },
			func(d *egress.Decider) egress.Decision { return d.Datagram(dst) },
		} {
			got := decide(d)
			wider := egress.NewDecider(egress.Policy{Rules: slices.Concat(rules, hinted(t, got.Hint))}, nil)
			wider.Pin("api.example", answer("8.1.0.1"))
			if again := decide(wider); got.Verdict != egress.Refused || again.Verdict == egress.Refused {
				t.Errorf("%s: got %+v, and with the hint %+v", text, got, again)
			}
		}
	}
	for _, name := range []string{"other.example", "my_db", "localhost"} {
		got := egress.NewDecider(egress.Policy{Rules: rules}, nil).Query(name)
		again := egress.NewDecider(egress.Policy{Rules: slices.Concat(rules, hinted(t, got.Hint))}, nil).Query(name)
		if got.Verdict != egress.Refused || again.Verdict != egress.Direct {
			t.Errorf("%s: got %+v, and with the hint %+v", name, got, again)
		}
	}
	for name, addr := range map[string]string{"api.example": "10.1.2.3", "x.cdn.example": "192.168.7.7", "db.example": "fd00::7", "db.example.": "169.254.1.1"} {
		got := egress.NewDecider(egress.Policy{Rules: rules}, nil).Answer(name, netip.MustParseAddr(addr))
		again := egress.NewDecider(egress.Policy{Rules: slices.Concat(rules, hinted(t, got.Hint))}, nil)
		if kept := again.Pin(name, answer(addr)); got.Verdict != egress.Refused || len(kept) != 1 {
			t.Errorf("%s at %s: got %+v, and with the hint %v is kept", name, addr, got, kept)
		}
	}
}
