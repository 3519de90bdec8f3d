package egress_test

import (
	"crypto/tls"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

// anyRules are rules with addresses: any.
func anyRules(t testing.TB, texts ...string) []egress.Rule {
	t.Helper()
	rules := parse(t, texts...)
	for i := range rules {
		rules[i].Addresses = egress.AnyAddress
	}
	return rules
}

// TestAnyAddress gives a name with addresses: any one address after the other.
func TestAnyAddress(t *testing.T) {
	tests := []struct {
		name, addr string
		kept       bool
	}{
		{"public", "8.1.0.1", true},
		{"private", "10.1.2.3", true},
		{"private, mapped", "::ffff:10.1.2.3", true},
		{"unique local", "fd12:3456::7", true},
		{"shared", "100.64.0.7", true},
		{"loopback", "127.0.0.1", true},
		{"loopback, IPv6", "::1", true},
		{"documentation", "203.0.113.7", true},
		{"benchmarking", "198.18.0.7", true},
		{"reserved", "240.0.0.7", true},
		{"NAT64 form of a private one", "64:ff9b::a01:203", true},

		{"metadata", "169.254.169.254", false},
		{"metadata, mapped", "::ffff:169.254.169.254", false},
		{"metadata in NAT64 form", "64:ff9b::a9fe:a9fe", false},
		{"metadata in 6to4 form", "2002:a9fe:a9fe::1", false},
		{"metadata in 6to4 form of a private ISATAP one", "2002:a9fe:a9fe::5efe:10.0.0.1", false},
		{"private 6to4 form of an ISATAP metadata one", "2002:a00:1::5efe:169.254.169.254", false},
		{"metadata as the second address of Teredo", "2001:0:a9fe:a9fe:0:0:f5ff:fffe", false},
		{"metadata, IPv6", "fd00:ec2::254", false},
		{"metadata of another cloud, in shared space", "100.100.100.200", false},
		{"metadata of a public address", "168.63.129.16", false},
		{"link-local", "169.254.1.1", false},
		{"link-local, IPv6", "fe80::1", false},
		{"unspecified", "0.0.0.0", false},
		{"unspecified, IPv6", "::", false},
		{"this network", "0.0.0.7", false},
		{"multicast", "224.0.0.251", false},
		{"multicast, IPv6", "ff02::fb", false},
		{"broadcast", "255.255.255.255", false},
	}
	for _, mode := range []egress.Mode{egress.List, egress.Public} {
		for _, tt := range tests {
			t.Run(mode.String()+", "+tt.name, func(t *testing.T) {
				addr := netip.MustParseAddr(tt.addr)
				rules := append(anyRules(t, "nexus.example:443", "nexus.example:8081"), parse(t, "plain.example:443")...)
				d := egress.NewDecider(egress.Policy{Mode: mode, Rules: rules}, nil)
				special := egress.Special(addr) != ""
				if kept := d.Pin("plain.example", []netip.Addr{addr}); (len(kept) == 1) == special {
					t.Fatalf("by a rule without the word, kept %v", kept)
				}
				kept := d.Pin("nexus.example", []netip.Addr{addr})
				if (len(kept) == 1) != tt.kept {
					t.Fatalf("kept %v", kept)
				}
				if got := d.Answer("nexus.example", addr).Verdict; (got == egress.Direct) != tt.kept {
					t.Errorf("the answer is %v", got)
				}
				_, servers := d.Server("nexus.example", netip.AddrPortFrom(addr, 443))
				if (len(servers) == 1) != tt.kept {
					t.Errorf("the server is looked for at %v", servers)
				}
				if !special {
					return
				}
				want := map[uint16]egress.Verdict{443: egress.Relayed, 8081: egress.Direct, 22: egress.Refused}
				for port, verdict := range want {
					if !tt.kept {
						verdict = egress.Refused
					}
					if got := d.Stream(netip.AddrPortFrom(addr, port)); got.Verdict != verdict {
						t.Errorf("port %d: got %+v, want %v", port, got, verdict)
					}
				}
				if got := d.Datagram(netip.AddrPortFrom(addr, 443)); got.Verdict != egress.Refused {
					t.Errorf("QUIC: got %+v", got)
				}
				if got := d.Datagram(netip.AddrPortFrom(addr, 8081)).Verdict == egress.Direct; got != tt.kept {
					t.Errorf("datagrams: allowed is %v", got)
				}
			})
		}
	}
}

// TestAnyAddressIsPerRule: the word of one rule opens nothing to names and ports of another.
func TestAnyAddressIsPerRule(t *testing.T) {
	anywhere, ordinary := anyRules(t, "nexus.example:443", "*.corp.example:443", "wide.corp.example:1-65535"), parse(t, "plain.example:443", "nexus.example:8080-8443", "exact.corp.example:443", "wide.corp.example:80")
	for _, mode := range []egress.Mode{egress.List, egress.Public} {
		d := egress.NewDecider(egress.Policy{Mode: mode, Rules: append(anywhere, ordinary...)}, nil)
		// Names of ordinary rules keep no special address, also where another name has it.
		for name, kept := range map[string]bool{"nexus.example": true, "plain.example": false, "x.corp.example": true, "exact.corp.example": false, "wide.corp.example": true} {
			if got := d.Pin(name, answer("10.0.0.1")); (len(got) == 1) != kept {
				t.Errorf("%v: %s keeps %v", mode, name, got)
			}
		}
		e := egress.NewDecider(egress.Policy{Mode: mode, Rules: append(anywhere, ordinary...)}, nil)
		e.Pin("nexus.example", answer("10.0.0.1"))
		e.Pin("plain.example", answer("10.0.0.1", "10.0.0.2"))
		e.Pin("wide.corp.example", answer("10.0.0.3"))
		for dst, want := range map[string]egress.Verdict{
			"10.0.0.1:443":  egress.Relayed,
			"10.0.0.1:8080": egress.Refused, // another rule's port
			"10.0.0.2:443":  egress.Refused, // only a name of an ordinary rule resolved to it
			"10.0.0.3:443":  egress.Relayed,
			"10.0.0.3:81":   egress.Direct,
			"10.0.0.3:80":   egress.Refused, // the later rule about the same name decides there
			"10.0.0.4:443":  egress.Refused,
		} {
			if got := e.Stream(netip.MustParseAddrPort(dst)); got.Verdict != want {
				t.Errorf("%v: %s: got %+v, want %v", mode, dst, got, want)
			}
		}
		// What the client says on the relayed connection is held to its own rule.
		for name, want := range map[string]int{"nexus.example": 1, "plain.example": 0, "exact.corp.example": 0, "evil.example": 0} {
			got, addrs := e.Server(name, netip.MustParseAddrPort("10.0.0.1:443"))
			if len(addrs) != want || name == "evil.example" && got.Verdict != egress.Refused {
				t.Errorf("%v: server name %s: got %+v with %v", mode, name, got, addrs)
			}
		}
	}
	public := egress.NewDecider(egress.Policy{Mode: egress.Public, Rules: append(anywhere, ordinary...)}, nil)
	got, _ := public.Server("plain.example", netip.MustParseAddrPort("10.0.0.1:443"))
	want := egress.Decision{Rule: "no rule lets plain.example:443 lead to special addresses", Hint: `add {to: "plain.example:443", addresses: any} to network.egress`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAnyAddressOfTheHostsFile: the machine's own file counts as an answer.
func TestAnyAddressOfTheHostsFile(t *testing.T) {
	hosts := egress.Hosts{"db.example": answer("10.1.2.3"), "plain.example": answer("10.1.2.4"), "meta.example": answer("169.254.169.254")}
	d := egress.NewDecider(egress.Policy{Rules: append(anyRules(t, "db.example:5432", "meta.example:5432"), parse(t, "plain.example:5432")...)}, hosts)
	for dst, want := range map[string]egress.Verdict{"10.1.2.3:5432": egress.Direct, "10.1.2.4:5432": egress.Refused, "169.254.169.254:5432": egress.Refused} {
		if got := d.Stream(netip.MustParseAddrPort(dst)); got.Verdict != want {
			t.Errorf("%s: got %+v, want %v", dst, got, want)
		}
	}
}

// TestAnyAddressBesideABound: in the public mode, names that can no longer be held lead to public
// addresses as before.
func TestAnyAddressBesideABound(t *testing.T) {
	d := egress.NewDecider(egress.Policy{Mode: egress.Public, Rules: anyRules(t, "*.corp.example:443")}, nil)
	name := func(i int) string {
		return string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".corp.example"
	}
	for i := range 5000 {
		kept := d.Pin(name(i), answer("8.1.0.1", "10.0.0.1"))
		want := 1
		if i < 4096 {
			want = 2
		}
		if len(kept) != want || kept[0] != netip.MustParseAddr("8.1.0.1") {
			t.Fatalf("name %d keeps %v", i, kept)
		}
	}
}

// TestRelayAnyAddress relays to a server on loopback by nothing but the word, and neither the
// resolver nor the relay themselves can be reached by it.
func TestRelayAnyAddress(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	at := netip.MustParseAddrPort(l.Addr().String())
	ns := startNameServer(t, zone(map[string][]string{"good.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}}))
	rules := append(anyRules(t, "good.example:1-65535"), parse(t, "other.example:1-65535")...)
	d := egress.NewDecider(egress.Policy{Rules: rules}, nil)
	stub, told := startStub(t, d, ns.addr)
	s := &site{told: &denials{}, dst: at}
	var err error
	if s.relay, err = egress.NewRelay(d, stub, s.told.add); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.relay.Close(); err != nil {
			t.Error(err)
		}
	})
	if addrs, err := stub.Resolve(t.Context(), "good.example"); err != nil || !cmp.Equal(addrs, answer("127.0.0.1"), compareAddrs) {
		t.Fatalf("the stub answers %v, %v", addrs, err)
	}
	if addrs, err := stub.Resolve(t.Context(), "other.example"); err == nil {
		t.Fatalf("the stub answers %v for the name of an ordinary rule", addrs)
	}
	want := []string{`dns|name other.example at 127.0.0.1|127.0.0.1 is loopback (RFC 1122)|add {to: "other.example:1-65535", addresses: any} to network.egress`}
	if diff := cmp.Diff(want, told.lines()); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	c := tls.Client(s.connect(t), &tls.Config{ServerName: "good.example", RootCAs: pool})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	s.wantNoDenial(t)
	c = tls.Client(s.connect(t), &tls.Config{ServerName: "other.example", RootCAs: pool})
	if err := c.Handshake(); err == nil {
		t.Error("the name of an ordinary rule is relayed to loopback")
	}

	loopback := netip.MustParseAddr("127.0.0.1")
	for _, own := range []netip.AddrPort{stub.Addr(loopback), s.relay.Addr(loopback)} {
		for _, got := range []egress.Decision{d.Stream(own), d.Datagram(own)} {
			if got.Verdict != egress.Refused {
				t.Errorf("%v, of the jail's own: got %+v", own, got)
			}
		}
		if _, addrs := d.Server("good.example", own); addrs != nil {
			t.Errorf("a server name leads to %v, the jail's own: %v", own, addrs)
		}
	}
	if got := d.Stream(at); got.Verdict != egress.Direct {
		t.Errorf("%v: got %+v", at, got)
	}
}

// never are blocks that no name leads to, whatever its rule says.
var never = []string{
	"0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
	"::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128",
	"fd00:42::42/128", "fd00:a9fe:a9fe::1/128", "fd00:100::100:200/128",
}

// FuzzAnyAddress gives a name with addresses: any arbitrary answers.
func FuzzAnyAddress(f *testing.F) {
	for _, block := range never {
		prefix := netip.MustParsePrefix(block)
		f.Add(prefix.Addr().AsSlice(), uint16(443))
		f.Add(last(prefix).AsSlice(), uint16(22))
		mapped := prefix.Addr().As16()
		f.Add(mapped[:], uint16(80))
	}
	f.Fuzz(func(t *testing.T, bytes []byte, port uint16) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		d := egress.NewDecider(egress.Policy{Rules: anyRules(t, "nexus.example:1-65535")}, nil)
		kept := d.Pin("nexus.example", []netip.Addr{addr})
		_, servers := d.Server("nexus.example", netip.AddrPortFrom(addr, port))
		decision := d.Stream(netip.AddrPortFrom(addr, port))
		for _, block := range never {
			reached := decision.Verdict == egress.Direct || decision.Verdict == egress.Relayed
			if netip.MustParsePrefix(block).Contains(addr.Unmap()) && (len(kept)+len(servers) > 0 || reached) {
				t.Fatalf("%v of %s: kept %v, served at %v, decision %+v", addr, block, kept, servers, decision)
			}
		}
		holdDecision(t, decision)
	})
}
