package egress_test

import (
	"fmt"
	"net/netip"
	"testing"

	"stockade/sandbox/egress"
)

// decisions are what a connection may meet, in a policy of 60 rules with 640 pinned addresses.
func decisions(t testing.TB) (*egress.Decider, *egress.Decider, map[string]netip.AddrPort) {
	t.Helper()
	var rules []egress.Rule
	for i := range 20 {
		rules = append(rules, parse(t, fmt.Sprintf("h%d.example:443", i), fmt.Sprintf("*.d%d.example:443", i), fmt.Sprintf("10.%d.0.0/16:5432", i))...)
	}
	d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
	for i := range 20 {
		for j := range 32 {
			d.Pin(fmt.Sprintf("h%d.example", i), []netip.Addr{nth(i*32 + j), netip.MustParseAddr(fmt.Sprintf("2600:2::%x", i*32+j))})
		}
	}
	return d, egress.NewDecider(egress.Policy{Mode: egress.Public}, nil), map[string]netip.AddrPort{
		"address rule":  netip.MustParseAddrPort("10.19.1.2:5432"),
		"host rule":     netip.AddrPortFrom(nth(600), 443),
		"IPv6 host":     netip.MustParseAddrPort("[2600:2::1ff]:443"),
		"name server":   netip.MustParseAddrPort("127.0.0.53:53"),
		"mapped":        netip.AddrPortFrom(netip.AddrFrom16(nth(600).As16()), 443),
		"special":       netip.MustParseAddrPort("192.168.1.1:443"),
		"nobody's":      netip.MustParseAddrPort("8.8.8.8:443"),
		"IPv6 nobody's": netip.MustParseAddrPort("[2606:4700::1]:443"),
	}
}

func BenchmarkStream(b *testing.B) {
	list, public, dsts := decisions(b)
	for _, name := range []string{"address rule", "host rule", "IPv6 host", "name server", "mapped", "special", "nobody's"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list.Stream(dsts[name])
			}
		})
	}
	for _, name := range []string{"nobody's", "IPv6 nobody's"} {
		b.Run("public, "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				public.Stream(dsts[name])
			}
		})
	}
}

// BenchmarkStreamAtOneAddress has each of 4,096 names at the address, the most there can be.
func BenchmarkStreamAtOneAddress(b *testing.B) {
	d := egress.NewDecider(egress.Policy{Rules: parse(b, "*.cdn.example:443")}, nil)
	for i := range 4096 {
		d.Pin(fmt.Sprintf("n%d.cdn.example", i), []netip.Addr{nth(0)})
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Stream(netip.AddrPortFrom(nth(0), 443))
	}
}

func BenchmarkNewDecider(b *testing.B) {
	rules := parse(b, "api.github.com:443", "*.githubusercontent.com:443", "10.1.0.0/16:5432")
	b.ReportAllocs()
	for b.Loop() {
		egress.NewDecider(egress.Policy{Rules: rules}, nil)
	}
}

func BenchmarkParseRule(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := egress.ParseRule("api.github.com:443"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDecisionsDoNotAllocate: what is allowed costs no memory, however often it is asked.
func TestDecisionsDoNotAllocate(t *testing.T) {
	list, public, dsts := decisions(t)
	for _, name := range []string{"address rule", "host rule", "IPv6 host", "name server", "mapped"} {
		if got := testing.AllocsPerRun(100, func() { list.Stream(dsts[name]) }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	for _, name := range []string{"nobody's", "IPv6 nobody's"} {
		if got := testing.AllocsPerRun(100, func() { public.Stream(dsts[name]) }); got != 0 {
			t.Errorf("public, %s: %v allocations", name, got)
		}
	}
}
