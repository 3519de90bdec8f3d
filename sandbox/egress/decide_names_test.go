package egress_test

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stockade/sandbox/egress"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{})

// hinted are the rules that a hint says to add.
func hinted(t *testing.T, hint string) []egress.Rule {
	t.Helper()
	text, hasEnd := strings.CutSuffix(hint, " to network.egress")
	quoted, hasStart := strings.CutPrefix(text, "add ")
	inner, anywhere := strings.CutSuffix(strings.TrimPrefix(quoted, "{to: "), ", addresses: any}")
	if anywhere {
		quoted = inner
	}
	rule, err := strconv.Unquote(quoted)
	if !hasStart || !hasEnd || err != nil {
		t.Fatalf("hint %q does not say what to add", hint)
	}
	rules := parse(t, rule)
	for i := range rules {
		if anywhere {
			rules[i].Addresses = egress.AnyAddress
		}
	}
	return rules
}

func TestQuery(t *testing.T) {
	tests := []struct {
		name, asked string
		want        egress.Decision
	}{
		{"exact", "web.example", egress.Decision{Verdict: egress.Direct, Rule: "web.example:8080"}},
		{"exact, the later of two rules", "api.example", egress.Decision{Verdict: egress.Direct, Rule: "api.example:22"}},
		{"from the wire", "Web.EXAMPLE.", egress.Decision{Verdict: egress.Direct, Rule: "web.example:8080"}},
		{"wildcard", "a.cdn.example", egress.Decision{Verdict: egress.Direct, Rule: "*.cdn.example:443"}},
		{"wildcard, deeper", "a.b.c.cdn.example", egress.Decision{Verdict: egress.Direct, Rule: "*.cdn.example:443"}},
		{"name of the wildcard itself", "cdn.example", egress.Decision{Rule: "no rule names cdn.example", Hint: `add "cdn.example:443" to network.egress`}},
		{"look-alike of the wildcard", "evilcdn.example", egress.Decision{Rule: "no rule names evilcdn.example", Hint: `add "evilcdn.example:443" to network.egress`}},
		{"below an exact name", "x.api.example", egress.Decision{Rule: "no rule names x.api.example", Hint: `add "x.api.example:443" to network.egress`}},
		{"above an exact name", "example", egress.Decision{Rule: "no rule names example", Hint: `add "example:443" to network.egress`}},
		{"localhost, of address rules", "localhost", egress.Decision{Verdict: egress.Direct, Rule: "localhost:6379"}},
		{"below localhost", "a.localhost", egress.Decision{Rule: "no rule names a.localhost"}},
		{"address", "10.1.2.3", egress.Decision{Rule: `"10.1.2.3" is read as an address, not as a name`}},
		{"hexadecimal address", "0x7F.1", egress.Decision{Rule: `"0x7F.1" is read as an address, not as a name`}},
		{"nothing", "", egress.Decision{Rule: `"" is no name`}},
		{"root", ".", egress.Decision{Rule: `"." is no name`}},
		{"two trailing dots", "api.example..", egress.Decision{Rule: `"api.example.." has an empty label: two dots, or one at an end`}},
		{"raw other alphabet", "apı.example", egress.Decision{Rule: `"ap\u0131.example" is not ASCII`}},
		{"null", "api.example\x00.evil.example", egress.Decision{Rule: `"api.example\x00.evil.example" holds '\x00', which no host name has`}},
		{"escape sequence", "\x1b[2J.cdn.example", egress.Decision{Rule: `"\x1b[2J.cdn.example" holds '\x1b', which no host name has`}},
		{"too long", strings.Repeat("a.", 150) + "cdn.example", egress.Decision{Rule: strconv.Quote(strings.Repeat("a.", 60)) + "… has 311 characters, a name has at most 253"}},
	}
	d := listed(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, d.Query(tt.asked)); diff != "" {
				t.Error(diff)
			}
		})
	}
	public := egress.NewDecider(egress.Policy{Mode: egress.Public}, nil)
	if got := public.Query("whoever.example"); got != (egress.Decision{Verdict: egress.Direct, Rule: "public"}) {
		t.Errorf("public: got %+v", got)
	}
}

func TestCanonicalName(t *testing.T) {
	for asked, want := range map[string]string{"API.Example.": "api.example", "a_b.example": "a_b.example", "XN--bcher-kva.example": "xn--bcher-kva.example"} {
		if got, err := egress.CanonicalName(asked); got != want || err != nil {
			t.Errorf("%q: got %q, %v", asked, got, err)
		}
	}
	_, err := egress.CanonicalName("bücher.example")
	wrong, is := errors.AsType[*egress.NameError](err)
	if !is || wrong.Name != "bücher.example" || err.Error() != `"b\u00fccher.example" is not ASCII` {
		t.Errorf("got %v", err)
	}
}

func TestServer(t *testing.T) {
	direct := func(rule string) egress.Decision { return egress.Decision{Verdict: egress.Direct, Rule: rule} }
	rules := parse(t, "api.example:443", "*.cdn.example:443", "web.example:80", "mixed.example:443-444", "inner.example:443-443", "inner.example:444", "10.1.0.0/16:444", "fresh.example:443")
	rules = append(rules, pinnedRules(t, "fast.example:443")...)
	d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
	d.Pin("api.example", answer("8.1.0.1", "8.1.0.2", "2600:2::1"))
	d.Pin("a.cdn.example", answer("8.1.0.1"))
	d.Pin("fast.example", answer("8.1.0.4"))
	d.Pin("mixed.example", answer("10.1.0.1", "8.1.0.5"))
	d.Pin("inner.example", answer("10.1.0.2"))
	tests := []struct {
		name, sent, dst string
		want            egress.Decision
		addrs           []netip.Addr
	}{
		{"first pin", "api.example", "8.1.0.1:443", direct("api.example:443"), answer("8.1.0.1", "8.1.0.2", "2600:2::1")},
		{"second pin first", "api.example", "8.1.0.2:443", direct("api.example:443"), answer("8.1.0.2", "8.1.0.1", "2600:2::1")},
		{"last pin first", "api.example", "[2600:2::1]:443", direct("api.example:443"), answer("2600:2::1", "8.1.0.1", "8.1.0.2")},
		{"mapped", "api.example", "[::ffff:8.1.0.2]:443", direct("api.example:443"), answer("8.1.0.2", "8.1.0.1", "2600:2::1")},
		{"odd case and a dot", "API.example.", "8.1.0.1:443", direct("api.example:443"), answer("8.1.0.1", "8.1.0.2", "2600:2::1")},
		{"another allowed name of the same address", "a.cdn.example", "8.1.0.1:443", direct("*.cdn.example:443"), answer("8.1.0.1")},
		{"connected to where another name is", "a.cdn.example", "8.1.0.4:443", direct("*.cdn.example:443"), answer("8.1.0.1")},
		{"pinned rule", "fast.example", "8.1.0.1:443", direct("fast.example:443"), answer("8.1.0.4")},
		{"not resolved yet", "fresh.example", "8.1.0.1:443", direct("fresh.example:443"), nil},
		{"wildcard, not resolved yet", "b.cdn.example", "8.1.0.1:443", direct("*.cdn.example:443"), nil},
		{"private pin left out", "mixed.example", "8.1.0.5:443", direct("mixed.example:443-444"), answer("8.1.0.5")},
		{"private pin left out, connected to it", "mixed.example", "10.1.0.1:443", direct("mixed.example:443-444"), answer("8.1.0.5")},
		{"private pin on the port of its block", "mixed.example", "8.1.0.5:444", direct("mixed.example:443-444"), answer("8.1.0.5", "10.1.0.1")},
		{"private pin alone", "inner.example", "8.1.0.1:443", egress.Decision{Rule: "10.1.0.2 is private (RFC 1918)", Hint: `add {to: "inner.example:443", addresses: any} to network.egress`}, nil},
		{"foreign name", "evil.example", "8.1.0.1:443", egress.Decision{Rule: "no rule names evil.example:443", Hint: `add "evil.example:443" to network.egress`}, nil},
		{"port of another rule", "web.example", "8.1.0.1:443", egress.Decision{Rule: "no rule names web.example:443", Hint: `add "web.example:443" to network.egress`}, nil},
		{"address for a name", "8.1.0.1", "8.1.0.1:443", egress.Decision{Rule: `server name "8.1.0.1" is read as an address, not as a name`}, nil},
		{"IPv6 address for a name", "[2600:2::1]", "[2600:2::1]:443", egress.Decision{Rule: `server name "[2600:2::1]" holds '[', which no host name has`}, nil},
		{"no name", "", "8.1.0.1:443", egress.Decision{Rule: `server name "" is no name`}, nil},
		{"raw other alphabet", "bücher.cdn.example", "8.1.0.1:443", egress.Decision{Rule: `server name "b\u00fccher.cdn.example" is not ASCII`}, nil},
		{"null", "evil.example\x00.cdn.example", "8.1.0.1:443", egress.Decision{Rule: `server name "evil.example\x00.cdn.example" holds '\x00', which no host name has`}, nil},
		{"localhost", "localhost", "8.1.0.1:443", egress.Decision{Rule: "no rule names localhost:443", Hint: `add "localhost:443" to network.egress`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, addrs := d.Server(tt.sent, netip.MustParseAddrPort(tt.dst))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.addrs, addrs, compareAddrs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOrderOfRules: of several rules about a name, the nearest decides how it is held.
func TestOrderOfRules(t *testing.T) {
	strict, pinned := parse(t, "a.b.example:443", "*.b.example:443", "*.example:443"), pinnedRules(t, "a.b.example:443", "*.b.example:443", "*.example:443")
	const exact, near, far = 0, 1, 2
	tests := []struct {
		name  string
		rules []egress.Rule
		want  egress.Verdict
	}{
		{"exact strict, wildcard pinned", []egress.Rule{strict[exact], pinned[near]}, egress.Relayed},
		{"wildcard pinned, exact strict", []egress.Rule{pinned[near], strict[exact]}, egress.Relayed},
		{"exact pinned, wildcard strict", []egress.Rule{pinned[exact], strict[near]}, egress.Direct},
		{"near strict, far pinned", []egress.Rule{pinned[far], strict[near]}, egress.Relayed},
		{"near pinned, far strict", []egress.Rule{strict[far], pinned[near]}, egress.Direct},
		{"strict, then pinned", []egress.Rule{strict[exact], pinned[exact]}, egress.Direct},
		{"pinned, then strict", []egress.Rule{pinned[exact], strict[exact]}, egress.Relayed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := egress.NewDecider(egress.Policy{Rules: tt.rules}, nil)
			d.Pin("a.b.example", answer("8.1.0.1"))
			if got := d.Stream(netip.MustParseAddrPort("8.1.0.1:443")); got.Verdict != tt.want {
				t.Errorf("got %+v, want %v", got, tt.want)
			}
		})
	}
}
