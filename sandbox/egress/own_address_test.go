package egress_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

const ofThisMachine = "an address of this machine"

// owns makes a machine that has addresses, and cannot tell about others.
func owns(has []netip.Addr, unknown ...netip.Addr) egress.Own {
	return func(addr netip.Addr) (string, error) {
		switch {
		case slices.Contains(has, addr):
			return ofThisMachine, nil
		case slices.Contains(unknown, addr):
			return "", errors.New("the kernel is silent")
		}
		return "", nil
	}
}

// TestOwnAddresses: a public address that this machine has is as closed as a private one.
func TestOwnAddresses(t *testing.T) {
	const silent = "not to be told from this machine's own addresses: the kernel is silent"
	own, own6, other, unknown := "8.1.0.1", "2600:2::1", "8.1.0.2", "8.1.0.3"
	rules := append(parse(t, "plain.example:443", "8.1.0.9:443"), anyRules(t, "nexus.example:443", "nexus.example:22")...)
	for _, mode := range []egress.Mode{egress.List, egress.Public} {
		d := egress.NewDecider(egress.Policy{Mode: mode, Rules: rules}, egress.Hosts{"plain.example": answer(own, other)})
		all := answer(own, own6, other, unknown, "8.1.0.9")
		if kept := d.Pin("plain.example", all); len(kept) != len(all) {
			t.Fatalf("%v: before it is known what is this machine's, kept %v", mode, kept)
		}
		d.SetOwn(owns(answer(own, own6, "8.1.0.9"), netip.MustParseAddr(unknown)))

		// What a name was pinned to before opens nothing.
		hint := func(address string) string {
			if mode == egress.List {
				return `add {to: "plain.example:443", addresses: any} to network.egress`
			}
			return `add "` + address + `" to network.egress` // names are not held here
		}
		for dst, want := range map[string]egress.Decision{
			"8.1.0.1:443":          {Rule: ofThisMachine, Hint: hint("8.1.0.1:443")},
			"[::ffff:8.1.0.1]:443": {Rule: ofThisMachine, Hint: hint("8.1.0.1:443")},
			"[2600:2::1]:443":      {Rule: ofThisMachine, Hint: hint("[2600:2::1]:443")},
			"[2600:2::1%eth0]:443": {Rule: ofThisMachine, Hint: hint("[2600:2::1]:443")},
			"8.1.0.3:443":          {Rule: silent, Hint: `add "8.1.0.3:443" to network.egress`},
			"8.1.0.9:443":          {Verdict: egress.Direct, Rule: "8.1.0.9:443"},
		} {
			if diff := cmp.Diff(want, d.Stream(netip.MustParseAddrPort(dst))); diff != "" {
				t.Errorf("%v: %s: %s", mode, dst, diff)
			}
			if got := d.Datagram(netip.MustParseAddrPort(dst)); got.Verdict != want.Verdict {
				t.Errorf("%v: %s: datagrams: got %+v", mode, dst, got)
			}
		}
		if got := d.Stream(netip.MustParseAddrPort("8.1.0.2:443")).Verdict; got != egress.Relayed && got != egress.Direct {
			t.Errorf("%v: an address of somebody else is %v", mode, got)
		}

		// Answers leave it out, and a rule that leads anywhere leads there; not where nobody can tell.
		if kept := d.Pin("plain.example", all); !cmp.Equal(kept, answer(other, "8.1.0.9"), compareAddrs) {
			t.Errorf("%v: an ordinary rule's name keeps %v", mode, kept)
		}
		if kept := d.Pin("nexus.example", all); !cmp.Equal(kept, answer(own, own6, other, "8.1.0.9"), compareAddrs) {
			t.Errorf("%v: with addresses: any, kept %v", mode, kept)
		}
		for dst, want := range map[string]egress.Verdict{"8.1.0.1:443": egress.Relayed, "[2600:2::1]:22": egress.Direct, "8.1.0.1:80": egress.Refused, "8.1.0.3:22": egress.Refused} {
			if got := d.Stream(netip.MustParseAddrPort(dst)); got.Verdict != want {
				t.Errorf("%v: with addresses: any, %s: got %+v, want %v", mode, dst, got, want)
			}
		}
	}
}

// TestUpstream: the relay asks about each address by itself.
func TestUpstream(t *testing.T) {
	rules := append(parse(t, "plain.example:443", "8.1.0.9:443"), anyRules(t, "nexus.example:443")...)
	d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
	d.SetOwn(owns(answer("8.1.0.1", "8.1.0.9"), netip.MustParseAddr("8.1.0.3")))
	tests := []struct {
		name, dst string
		want      egress.Verdict
	}{
		{"plain.example", "8.1.0.2:443", egress.Direct},
		{"plain.example", "8.1.0.1:443", egress.Refused},
		{"plain.example", "8.1.0.3:443", egress.Refused},
		{"plain.example", "8.1.0.9:443", egress.Direct},
		{"plain.example", "8.1.0.2:22", egress.Refused},
		{"plain.example", "10.0.0.1:443", egress.Refused},
		{"NEXUS.example.", "8.1.0.1:443", egress.Direct},
		{"nexus.example", "10.0.0.1:443", egress.Direct},
		{"nexus.example", "8.1.0.3:443", egress.Refused},
		{"nexus.example", "169.254.169.254:443", egress.Refused},
		{"evil.example", "8.1.0.2:443", egress.Refused},
		{"", "8.1.0.2:443", egress.Refused},
	}
	for _, tt := range tests {
		got := d.Upstream(tt.name, netip.MustParseAddrPort(tt.dst))
		if got.Verdict != tt.want || got.Rule == "" {
			t.Errorf("%q at %s: got %+v, want %v", tt.name, tt.dst, got, tt.want)
		}
	}
}
