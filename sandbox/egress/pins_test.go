package egress_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

func TestPin(t *testing.T) {
	rules := parse(t, "api.example:443", "*.cdn.example:443", "10.1.0.0/16:5432", "db.example:5000-6000", "10.3.0.0/16:22", "wide.example:1-65535", "localhost:6379")
	tests := []struct {
		name, asked  string
		answer, want []netip.Addr
	}{
		{"public", "api.example", answer("8.1.0.1", "2600:2::1"), answer("8.1.0.1", "2600:2::1")},
		{"odd case", "API.example.", answer("8.1.0.1"), answer("8.1.0.1")},
		{"wildcard", "x.cdn.example", answer("8.1.0.1"), answer("8.1.0.1")},
		{"mixed with private", "api.example", answer("192.168.0.1", "8.1.0.1", "127.0.0.1"), answer("8.1.0.1")},
		{"private alone", "api.example", answer("192.168.0.1"), nil},
		{"loopback, which a rule for another port holds", "api.example", answer("127.0.0.1"), nil},
		{"mapped", "api.example", answer("::ffff:8.1.0.1"), answer("8.1.0.1")},
		{"mapped private", "api.example", answer("::ffff:192.168.0.1"), nil},
		{"NAT64 of private", "api.example", answer("64:ff9b::c0a8:1"), nil},
		{"6to4 of private", "api.example", answer("2002:c0a8:1::1"), nil},
		{"of a block", "db.example", answer("10.1.2.3"), answer("10.1.2.3")},
		{"beside the block", "db.example", answer("10.2.0.1"), nil},
		{"of a block for a higher port", "api.example", answer("10.1.2.3"), nil},
		{"of a block for a lower port", "db.example", answer("10.3.0.1"), nil},
		{"of a block for part of the ports", "wide.example", answer("10.1.2.3", "10.3.0.1"), answer("10.1.2.3", "10.3.0.1")},
		{"twice", "api.example", answer("8.1.0.1", "8.1.0.1", "::ffff:8.1.0.1"), answer("8.1.0.1")},
		{"with a zone", "api.example", answer("2600:2::1%1"), answer("2600:2::1")},
		{"no address", "api.example", []netip.Addr{{}}, nil},
		{"nothing", "api.example", nil, nil},
		{"name of no rule", "evil.example", answer("8.1.0.1"), nil},
		{"no name", "", answer("8.1.0.1"), nil},
		{"localhost", "localhost", answer("127.0.0.1", "::1", "127.0.0.2"), answer("127.0.0.1", "::1")},
		{"localhost elsewhere", "localhost", answer("192.168.0.1"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
			kept := d.Pin(tt.asked, tt.answer)
			if diff := cmp.Diff(tt.want, kept, compareAddrs); diff != "" {
				t.Error(diff)
			}
			for _, addr := range tt.answer {
				isKept := cmp.Equal(d.Pin(tt.asked, []netip.Addr{addr}), []netip.Addr{addr.Unmap().WithZone("")}, compareAddrs)
				if got := d.Answer(tt.asked, addr); (got.Verdict == egress.Direct) != isKept {
					t.Errorf("%v: Answer says %+v, and kept is %v", addr, got, isKept)
				}
			}
		})
	}
}

// TestPinsArePerName: what one name resolves to opens nothing of another one.
func TestPinsArePerName(t *testing.T) {
	d := egress.NewDecider(egress.Policy{Rules: parse(t, "a.example:443", "b.example:22")}, nil)
	d.Pin("a.example", answer("8.1.0.1"))
	d.Pin("b.example", answer("8.1.0.2"))
	for dst, want := range map[string]egress.Verdict{
		"8.1.0.1:443": egress.Relayed, "8.1.0.1:22": egress.Refused, "8.1.0.2:22": egress.Direct, "8.1.0.2:443": egress.Refused,
	} {
		if got := d.Stream(netip.MustParseAddrPort(dst)); got.Verdict != want {
			t.Errorf("%s: got %+v, want %v", dst, got, want)
		}
	}
	// Both names at one address open both ports of it, by both rules.
	d.Pin("b.example", answer("8.1.0.1"))
	if got := d.Stream(netip.MustParseAddrPort("8.1.0.1:22")); got != (egress.Decision{Verdict: egress.Direct, Rule: "b.example:22"}) {
		t.Errorf("got %+v", got)
	}
}

func TestPinsOfTheHostsFile(t *testing.T) {
	hosts := egress.Hosts{
		"api.example":   answer("8.1.0.1", "127.0.0.1"),
		"x.cdn.example": answer("8.1.0.2"),
		"cdn.example":   answer("8.1.0.4"),
		"evil.example":  answer("8.1.0.3"),
		"db.example":    answer("10.1.2.3"),
	}
	d := egress.NewDecider(egress.Policy{Rules: parse(t, "api.example:443", "*.cdn.example:443", "*.example:80", "db.example:5432", "10.1.0.0/16:5432")}, hosts)
	for dst, want := range map[string]egress.Verdict{
		"8.1.0.1:443":   egress.Relayed,
		"127.0.0.1:443": egress.Refused,
		"8.1.0.2:443":   egress.Refused, // only a wildcard names it: pinned when it is asked for
		"8.1.0.4:80":    egress.Refused, // the same, though a wildcard has its name
		"8.1.0.3:443":   egress.Refused,
		"10.1.2.3:5432": egress.Direct,
	} {
		if got := d.Stream(netip.MustParseAddrPort(dst)); got.Verdict != want {
			t.Errorf("%s: got %+v, want %v", dst, got, want)
		}
	}
	if _, addrs := d.Server("api.example", netip.MustParseAddrPort("8.1.0.1:443")); !cmp.Equal(addrs, answer("8.1.0.1"), compareAddrs) {
		t.Errorf("got %v", addrs)
	}
}

func TestPinsKeepTheLatest(t *testing.T) {
	d := egress.NewDecider(egress.Policy{Rules: pinnedRules(t, "api.example:443", "other.example:443")}, nil)
	reachable := func(i int) bool {
		return d.Stream(netip.AddrPortFrom(nth(i), 443)).Verdict == egress.Direct
	}
	for i := range 64 {
		d.Pin("api.example", []netip.Addr{nth(i)})
	}
	d.Pin("other.example", []netip.Addr{nth(2)})
	for i := range 64 {
		if !reachable(i) {
			t.Fatalf("address %d of 64 is not held", i)
		}
	}
	d.Pin("api.example", []netip.Addr{nth(0)}) // again, so no longer the oldest
	d.Pin("api.example", []netip.Addr{nth(64), nth(65)})
	for i, want := range map[int]bool{0: true, 1: false, 2: true /* of the other name */, 3: true, 64: true, 65: true} {
		if got := reachable(i); got != want {
			t.Errorf("address %d: held is %v, want %v", i, got, want)
		}
	}
	_, addrs := d.Server("api.example", netip.AddrPortFrom(nth(9), 443))
	if len(addrs) != 64 || addrs[0] != nth(9) || addrs[1] != nth(64) || addrs[2] != nth(65) || addrs[3] != nth(0) {
		t.Errorf("got %d addresses: %v", len(addrs), addrs)
	}
	var many []netip.Addr
	for i := range 200 {
		many = append(many, nth(1000+i))
	}
	if kept := d.Pin("api.example", many); !cmp.Equal(kept, many[:64], compareAddrs) {
		t.Errorf("of 200 addresses in an answer, kept %d: %v", len(kept), kept)
	}
	if reachable(1000+64) || !reachable(1000+63) || reachable(0) {
		t.Error("what is held is not the first 64 of the answer")
	}
}

// nth is one of many ordinary addresses.
func nth(i int) netip.Addr { return netip.AddrFrom4([4]byte{8, 1, byte(i >> 8), byte(i)}) }

func TestPinsAreBounded(t *testing.T) {
	d := egress.NewDecider(egress.Policy{Rules: parse(t, "*.cdn.example:443", "exact.example:443", "exact.cdn.example:443")}, nil)
	name := func(i int) string { return fmt.Sprintf("n%d.cdn.example", i) }
	for i := range 4096 {
		if kept := d.Pin(name(i), []netip.Addr{nth(i)}); len(kept) != 1 {
			t.Fatalf("name %d: kept %v", i, kept)
		}
	}
	want := egress.Decision{Rule: "wildcard rules have led to 4096 names already", Hint: `add "n4096.cdn.example:443" to network.egress`}
	if diff := cmp.Diff(want, d.Query(name(4096))); diff != "" {
		t.Error(diff)
	}
	if kept := d.Pin(name(4096), []netip.Addr{nth(4096)}); kept != nil {
		t.Errorf("a name too many was kept: %v", kept)
	}
	if got := d.Stream(netip.AddrPortFrom(nth(4096), 443)); got.Verdict != egress.Refused {
		t.Errorf("a name too many leads on: %+v", got)
	}
	// What is known stays so, and what a person wrote has its place.
	for _, known := range []string{name(0), name(4095), "exact.example", "exact.cdn.example"} {
		if got := d.Query(known); got.Verdict != egress.Direct {
			t.Errorf("%s: got %+v", known, got)
		}
		if kept := d.Pin(known, []netip.Addr{nth(5000)}); len(kept) != 1 {
			t.Errorf("%s: kept %v", known, kept)
		}
	}
}

// TestPinsTogether runs all methods at once, for the race detector, and checks what must hold
// at each moment.
func TestPinsTogether(t *testing.T) {
	d := egress.NewDecider(egress.Policy{Rules: append(parse(t, "*.cdn.example:443"), pinnedRules(t, "api.example:443")...)}, nil)
	d.Pin("api.example", []netip.Addr{nth(0)})
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 2000 {
				name := fmt.Sprintf("n%d.cdn.example", i%300)
				addr := nth(worker*100 + i%100)
				if i%50 == 0 {
					name = "api.example"
				}
				if kept := d.Pin(name, []netip.Addr{addr, nth(0)}); len(kept) == 0 {
					t.Errorf("%s: nothing kept", name)
				}
				if got := d.Stream(netip.AddrPortFrom(nth(0), 443)); got.Verdict != egress.Direct {
					t.Errorf("got %+v", got)
				}
				if got, addrs := d.Server(name, netip.AddrPortFrom(nth(0), 443)); got.Verdict != egress.Direct || len(addrs) == 0 || addrs[0] != nth(0) {
					t.Errorf("got %+v, %v", got, addrs)
				}
				d.Datagram(netip.AddrPortFrom(addr, 443))
				d.Query(name)
			}
		})
	}
	wait.Wait()
}
