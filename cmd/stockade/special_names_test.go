package main

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

// TestSpecialNames: a refused connection to a special address tells the name that led there,
// from the hosts file or from an answer, and only where a rule is about that name.
func TestSpecialNames(t *testing.T) {
	var rules []egress.Rule
	for _, text := range []string{"db.corp.example:5432", "*.lan.example:443"} {
		parsed, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, parsed...)
	}
	hosts := egress.ParseHosts([]byte("127.0.0.1 localhost\n127.0.0.7 db.corp.example\n10.0.0.3 z.lan.example a.lan.example\n10.0.0.4 other.example\n169.254.169.254 m.lan.example\n169.254.3.4 l.lan.example\n"))
	var got egress.Denial
	s := newSpecialNames(rules, hosts, func(d egress.Denial) { got = d })
	const hint, metadata = "the hint", "cloud metadata (Amazon, Azure, Google Cloud and others)"
	add := func(rule string) string { return "add {to: \"" + rule + "\", addresses: any} to network.egress" }
	tests := []struct{ name, call, asked, rule, want, hint string }{
		{"exact, of the hosts file", "connect", "tcp 127.0.0.7:5432", "loopback (RFC 1122)", "db.corp.example resolves to 127.0.0.7, which is loopback (RFC 1122); " + neverSpecial, add("db.corp.example:5432")},
		{"mapped", "connect", "tcp [::ffff:127.0.0.7]:5432", "loopback (RFC 1122)", "db.corp.example resolves to 127.0.0.7, which is loopback (RFC 1122); " + neverSpecial, add("db.corp.example:5432")},
		{"wildcard, first of two", "send", "udp 10.0.0.3:443", "private (RFC 1918)", "a.lan.example resolves to 10.0.0.3, which is private (RFC 1918); " + neverSpecial, add("a.lan.example:443")},
		{"metadata, which no name leads to", "connect", "tcp 169.254.169.254:443", metadata, "m.lan.example resolves to 169.254.169.254, which is " + metadata + "; " + neverSpecial, ""},
		{"link-local, which no name leads to", "connect", "tcp 169.254.3.4:443", "link-local (RFC 3927)", "l.lan.example resolves to 169.254.3.4, which is link-local (RFC 3927); " + neverSpecial, `add "169.254.3.4:443" to network.egress`},
		{"no rule about the name", "connect", "tcp 10.0.0.4:443", "private (RFC 1918)", "private (RFC 1918)", hint},
		{"no rule for this machine", "connect", "tcp 127.0.0.1:80", "loopback (RFC 1122)", "loopback (RFC 1122)", hint},
		{"not answered yet", "connect", "tcp 10.9.9.9:443", "private (RFC 1918)", "private (RFC 1918)", hint},
		{"an answer of this machine's own", "dns", "name own.lan.example at 8.8.4.4", "8.8.4.4 is an address of this machine", "8.8.4.4 is an address of this machine", hint},
		{"this machine's own", "connect", "tcp 8.8.4.4:443", egress.OfThisMachine, "own.lan.example resolves to 8.8.4.4, which is an address of this machine; " + neverSpecial, add("own.lan.example:443")},
		{"this machine's own, by no name", "connect", "tcp 8.8.4.5:443", egress.OfThisMachine, egress.OfThisMachine, hint},
		{"an answer", "dns", "name x.lan.example at 10.9.9.9", "10.9.9.9 is private (RFC 1918)", "10.9.9.9 is private (RFC 1918)", hint},
		{"answered", "connect", "tcp 10.9.9.9:443", "private (RFC 1918)", "x.lan.example resolves to 10.9.9.9, which is private (RFC 1918); " + neverSpecial, add("x.lan.example:443")},
		{"ordinary", "connect", "tcp 8.8.8.8:443", "no rule names 8.8.8.8:443", "no rule names 8.8.8.8:443", hint},
		{"another reason", "connect", "udp 127.0.0.7:443", "QUIC is refused", "QUIC is refused", hint},
		{"no address", "connect", "a socket of another kind", "only TCP", "only TCP", hint},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.report(egress.Denial{Call: tt.call, Asked: tt.asked, Rule: tt.rule, Hint: hint})
			if diff := cmp.Diff(egress.Denial{Call: tt.call, Asked: tt.asked, Rule: tt.want, Hint: tt.hint}, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	for i := range 2 * maxSpecialNames {
		s.remember(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), "x.lan.example")
	}
	if len(s.names) != maxSpecialNames {
		t.Errorf("%d addresses are remembered", len(s.names))
	}
}

// TestDenialTexts: what is asked for is said in one word, and why a name leads nowhere.
func TestDenialTexts(t *testing.T) {
	tests := []struct{ call, asked, want string }{
		{"unix", "unix /run/x.sock", "refused: unix /run/x.sock"},
		{"listen", "listen tcp 0.0.0.0:80", "refused: listen tcp 0.0.0.0:80"},
		{"listen", "a socket of another kind", "refused: listen a socket of another kind"},
		{"dns", "name x.example", "refused: name x.example"},
		{"dns", "name x.example at 127.0.0.1", "refused: name x.example at 127.0.0.1: the rule, and " + neverSpecial},
		{"connect", "tcp 127.0.0.1:80", "refused: connect tcp 127.0.0.1:80"},
	}
	for _, tt := range tests {
		e := denialEntry{Call: tt.call, Asked: tt.asked}
		if _, _, answered := answeredName(tt.call, tt.asked); answered {
			e.Rule = "the rule"
		}
		if got := denialText(e); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}
