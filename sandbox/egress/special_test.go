package egress_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"stockade/sandbox/egress"
)

// registered is one block of a registry, with what is expected of the addresses in it that
// no narrower block holds.
type registered struct {
	block string
	name  string // as in the registry
	want  expectation
}

type expectation int

const (
	refused expectation = iota
	allowed
	byInner // as the IPv4 address inside
)

// registries is a transcription of the IANA special-purpose address registries, with all
// rows up to RFC 9780 (April 2025), and the column "Globally Reachable" turned into what is
// expected; below them what other registries say. It is the tests' own: nothing in it comes
// from the table that it checks.
var registries = []registered{
	{"0.0.0.0/8", "This network", refused},
	{"0.0.0.0/32", "This host on this network", refused},
	{"10.0.0.0/8", "Private-Use", refused},
	{"100.64.0.0/10", "Shared Address Space", refused},
	{"127.0.0.0/8", "Loopback", refused},
	{"169.254.0.0/16", "Link Local", refused},
	{"172.16.0.0/12", "Private-Use", refused},
	{"192.0.0.0/24", "IETF Protocol Assignments", refused},
	{"192.0.0.0/29", "IPv4 Service Continuity Prefix", refused},
	{"192.0.0.8/32", "IPv4 dummy address", refused},
	{"192.0.0.9/32", "Port Control Protocol Anycast", refused},              // reachable: the nearest router
	{"192.0.0.10/32", "Traversal Using Relays around NAT Anycast", refused}, // reachable: the nearest relay
	{"192.0.0.170/32", "NAT64/DNS64 Discovery", refused},
	{"192.0.0.171/32", "NAT64/DNS64 Discovery", refused},
	{"192.0.2.0/24", "Documentation (TEST-NET-1)", refused},
	{"192.31.196.0/24", "AS112-v4", allowed},
	{"192.52.193.0/24", "AMT", allowed},
	{"192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", refused},
	{"192.88.99.2/32", "6a44-relay anycast address", refused},
	{"192.168.0.0/16", "Private-Use", refused},
	{"192.175.48.0/24", "Direct Delegation AS112 Service", allowed},
	{"198.18.0.0/15", "Benchmarking", refused},
	{"198.51.100.0/24", "Documentation (TEST-NET-2)", refused},
	{"203.0.113.0/24", "Documentation (TEST-NET-3)", refused},
	{"240.0.0.0/4", "Reserved", refused},
	{"255.255.255.255/32", "Limited Broadcast", refused},

	{"::1/128", "Loopback Address", refused},
	{"::/128", "Unspecified Address", refused},
	{"::ffff:0:0/96", "IPv4-mapped Address", byInner},
	{"64:ff9b::/96", "IPv4-IPv6 Translat.", byInner},
	{"64:ff9b:1::/48", "IPv4-IPv6 Translat.", refused},
	{"100::/64", "Discard-Only Address Block", refused},
	{"100:0:0:1::/64", "Dummy IPv6 Prefix", refused},
	{"2001::/23", "IETF Protocol Assignments", refused},
	{"2001::/32", "TEREDO", refused},
	{"2001:1::1/128", "Port Control Protocol Anycast", refused},             // reachable: the nearest router
	{"2001:1::2/128", "Traversal Using Relays around NAT Anycast", refused}, // reachable: the nearest relay
	{"2001:1::3/128", "DNS-SD Service Registration Protocol Anycast", refused},
	{"2001:2::/48", "Benchmarking", refused},
	{"2001:3::/32", "AMT", allowed},
	{"2001:4:112::/48", "AS112-v6", allowed},
	{"2001:10::/28", "Deprecated (previously ORCHID)", refused},
	{"2001:20::/28", "ORCHIDv2", refused}, // reachable by its column, and never routed
	{"2001:30::/28", "Drone Remote ID Protocol Entity Tags (DETs) Prefix", refused},
	{"2001:db8::/32", "Documentation", refused},
	{"2002::/16", "6to4", byInner},
	{"2620:4f:8000::/48", "Direct Delegation AS112 Service", allowed},
	{"3fff::/20", "Documentation", refused},
	{"5f00::/16", "Segment Routing (SRv6) SIDs", refused},
	{"fc00::/7", "Unique-Local", refused},
	{"fe80::/10", "Link-Local Unicast", refused},

	// The IPv4 and IPv6 address space registries.
	{"0.0.0.0/0", "Unicast", allowed},
	{"224.0.0.0/4", "Multicast", refused},
	{"::/8", "Reserved by IETF", refused},
	{"100::/8", "Reserved by IETF", refused},
	{"200::/7", "Reserved by IETF", refused},
	{"400::/6", "Reserved by IETF", refused},
	{"800::/5", "Reserved by IETF", refused},
	{"1000::/4", "Reserved by IETF", refused},
	{"2000::/3", "Global Unicast", allowed},
	{"4000::/3", "Reserved by IETF", refused},
	{"6000::/3", "Reserved by IETF", refused},
	{"8000::/3", "Reserved by IETF", refused},
	{"a000::/3", "Reserved by IETF", refused},
	{"c000::/3", "Reserved by IETF", refused},
	{"e000::/4", "Reserved by IETF", refused},
	{"f000::/5", "Reserved by IETF", refused},
	{"f800::/6", "Reserved by IETF", refused},
	{"fe00::/9", "Reserved by IETF", refused},
	{"fec0::/10", "Site-Local Unicast, deprecated", refused},
	{"ff00::/8", "Multicast", refused},

	// No registry has it: Azure's wire server, an address of its own public block.
	{"168.63.129.16/32", "Azure", refused},
}

// isSpecial is the tests' own judgement: the narrowest block of the transcription that holds
// the address, and the IPv4 addresses inside.
func isSpecial(addr netip.Addr) bool {
	if addr.Is6() {
		b := addr.As16()
		if string(b[8:12]) == "\x00\x00\x5e\xfe" || string(b[8:12]) == "\x02\x00\x5e\xfe" {
			if isSpecial(netip.AddrFrom4([4]byte(b[12:]))) {
				return true
			}
		}
	}
	best, bits := refused, -1
	for _, r := range registries {
		prefix := netip.MustParsePrefix(r.block)
		// Contains knows no mapped address in a mapped prefix.
		if same := prefix.Addr().Is6() == addr.Is6(); same && prefix.Bits() > bits && holds(prefix, addr) {
			best, bits = r.want, prefix.Bits()
		}
	}
	if best != byInner {
		return best == refused
	}
	b := addr.As16()
	if b[0] == 0x20 {
		return isSpecial(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return isSpecial(netip.AddrFrom4([4]byte(b[12:])))
}

func holds(prefix netip.Prefix, addr netip.Addr) bool {
	if addr.Is4() {
		shift := 32 - prefix.Bits()
		a, b := addr.As4(), prefix.Addr().As4()
		return uint64(binary.BigEndian.Uint32(a[:]))>>shift == uint64(binary.BigEndian.Uint32(b[:]))>>shift
	}
	a, b := addr.As16(), prefix.Addr().As16()
	for i := range prefix.Bits() {
		if (a[i/8]^b[i/8])>>(7-i%8)&1 != 0 {
			return false
		}
	}
	return true
}

// last is the last address of a block.
func last(prefix netip.Prefix) netip.Addr {
	b := prefix.Addr().AsSlice()
	for i := prefix.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func TestSpecialKnowsTheRegistries(t *testing.T) {
	for _, r := range registries {
		prefix := netip.MustParsePrefix(r.block)
		for place, addr := range map[string]netip.Addr{
			"first": prefix.Addr(), "last": last(prefix), "one below": prefix.Addr().Prev(), "one above": last(prefix).Next(),
		} {
			if !addr.IsValid() {
				continue // the space ends here
			}
			if why := egress.Special(addr); (why != "") != isSpecial(addr) {
				t.Errorf("%s (%s): %s, %v: got reason %q, want special %v", r.block, r.name, place, addr, why, isSpecial(addr))
			}
		}
	}
}

// TestSpecialHoldsWhatNetipKnows asks the standard library, which has its own list, about
// addresses near the ends of blocks and far from any.
func TestSpecialHoldsWhatNetipKnows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var ends []netip.Addr
	for _, r := range registries {
		prefix := netip.MustParsePrefix(r.block)
		ends = append(ends, prefix.Addr(), last(prefix))
	}
	for range 200_000 {
		addr := randomAddr(random, ends)
		unmapped := addr.Unmap()
		known := !unmapped.IsGlobalUnicast() || unmapped.IsPrivate() || unmapped.IsLoopback() || unmapped.IsMulticast() ||
			unmapped.IsInterfaceLocalMulticast() || unmapped.IsLinkLocalMulticast() || unmapped.IsLinkLocalUnicast() || unmapped.IsUnspecified()
		why := egress.Special(addr)
		if known && why == "" {
			t.Fatalf("%v: netip calls it special, the table does not", addr)
		}
		if (why != "") != isSpecial(addr) {
			t.Fatalf("%v: got reason %q, want special %v", addr, why, isSpecial(addr))
		}
	}
}

// randomAddr is any address, or one a few bits away from one of a list.
func randomAddr(random *rand.Rand, near []netip.Addr) netip.Addr {
	addr := near[random.IntN(len(near))]
	b := addr.AsSlice()
	switch random.IntN(4) {
	case 0:
		for i := range b {
			b[i] = byte(random.Uint32())
		}
	case 1: // inside the block or beside it
		for i := len(b) / 2; i < len(b); i++ {
			b[i] = byte(random.Uint32())
		}
	default:
		for range 1 + random.IntN(3) {
			bit := random.IntN(8 * len(b))
			b[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	addr, _ = netip.AddrFromSlice(b)
	return addr
}

func TestSpecialSays(t *testing.T) {
	tests := []struct {
		name, addr, want string
	}{
		{"public", "8.8.8.8", ""},
		{"public IPv6", "2606:4700:4700::1111", ""},
		{"loopback", "127.0.0.1", "loopback (RFC 1122)"},
		{"loopback, another one", "127.255.255.254", "loopback (RFC 1122)"},
		{"this machine", "0.0.0.0", "unspecified, which is this machine (RFC 1122)"},
		{"private", "172.31.255.255", "private (RFC 1918)"},
		{"after private", "172.32.0.0", ""},
		{"shared", "100.127.255.255", "shared between a provider and its customers (RFC 6598)"},
		{"link-local", "169.254.1.1", "link-local (RFC 3927)"},
		{"broadcast", "255.255.255.255", "broadcast (RFC 919)"},
		{"multicast", "239.255.255.250", "multicast (RFC 5771)"},
		{"metadata", "169.254.169.254", "cloud metadata (Amazon, Azure, Google Cloud and others)"},
		{"metadata, a public address", "168.63.129.16", "cloud metadata (Azure)"},
		{"metadata, a shared address", "100.100.100.200", "cloud metadata (Alibaba Cloud)"},
		{"metadata, IPv6", "fd00:ec2::254", "cloud metadata (Amazon)"},
		{"loopback, IPv6", "::1", "loopback (RFC 4291)"},
		{"unspecified, IPv6", "::", "unspecified, which is this machine (RFC 4291)"},
		{"unique local", "fd12::1", "unique local (RFC 4193)"},
		{"link-local, IPv6", "fe80::1", "link-local (RFC 4291)"},
		{"link-local with a zone", "fe80::1%eth0", "link-local (RFC 4291)"},
		{"public with a zone", "2606:4700:4700::1111%eth0", ""},

		{"mapped public", "::ffff:8.8.8.8", ""},
		{"mapped loopback", "::ffff:127.0.0.1", "loopback (RFC 1122)"},
		{"mapped metadata", "::ffff:a9fe:a9fe", "cloud metadata (Amazon, Azure, Google Cloud and others)"},
		{"mapped with a zone", "::ffff:127.0.0.1%1", "loopback (RFC 1122)"},
		{"compatible loopback", "::127.0.0.1", "IPv4-compatible form of 127.0.0.1, loopback (RFC 1122)"},
		{"compatible public", "::8.8.8.8", "IPv4-compatible, deprecated (RFC 4291)"},
		{"translated private", "::ffff:0:10.0.0.1", "IPv4-translated form of 10.0.0.1, private (RFC 1918)"},
		{"translated public", "::ffff:0:8.8.8.8", "reserved (RFC 4291)"},
		{"NAT64 of loopback", "64:ff9b::7f00:1", "NAT64 form of 127.0.0.1, loopback (RFC 1122)"},
		{"NAT64 of metadata", "64:ff9b::a9fe:a9fe", "NAT64 form of 169.254.169.254, cloud metadata (Amazon, Azure, Google Cloud and others)"},
		{"NAT64 of public", "64:ff9b::808:808", ""},
		{"local NAT64 of private", "64:ff9b:1::a00:1", "NAT64 form of 10.0.0.1, private (RFC 1918)"},
		{"local NAT64 of public", "64:ff9b:1::808:808", "local NAT64 (RFC 8215)"},
		{"after local NAT64", "64:ff9b:2::808:808", "reserved (RFC 4291)"},
		{"6to4 of loopback", "2002:7f00:1::1", "6to4 form of 127.0.0.1, loopback (RFC 1122)"},
		{"6to4 of private", "2002:c0a8:101:1::1", "6to4 form of 192.168.1.1, private (RFC 1918)"},
		{"6to4 of public", "2002:808:808::1", ""},
		{"6to4 of the relay anycast", "2002:c058:6301::", "6to4 form of 192.88.99.1, 6to4 relay anycast, deprecated (RFC 7526)"},
		{"Teredo client in a private network", "2001:0:808:808:0:1234:f5ff:fffe", "Teredo form of 10.0.0.1, private (RFC 1918)"},
		{"Teredo server on loopback", "2001:0:7f00:1:0:1234:f7f7:f7f7", "Teredo form of 127.0.0.1, loopback (RFC 1122)"},
		{"Teredo of public", "2001:0:808:808:0:1234:f7f7:f7f7", "Teredo (RFC 4380)"},
		{"ISATAP of private", "2606:4700::5efe:10.0.0.1", "ISATAP form of 10.0.0.1, private (RFC 1918)"},
		{"ISATAP, global bit", "2606:4700::200:5efe:10.0.0.1", "ISATAP form of 10.0.0.1, private (RFC 1918)"},
		{"ISATAP of public", "2606:4700::200:5efe:8.8.8.8", ""},
		{"ISATAP look-alike", "2606:4700::100:5efe:10.0.0.1", ""},
		{"ISATAP in 6to4", "2002:808:808::5efe:127.0.0.1", "ISATAP form of 127.0.0.1, loopback (RFC 1122)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := egress.Special(netip.MustParseAddr(tt.addr)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := egress.Special(netip.Addr{}); got != "no address" {
		t.Errorf("zero address: got %q", got)
	}
}

// TestMetadata lists addresses and names of the services that hand out a cloud's credentials:
// refused in every mode, and no message says how to allow them.
func TestMetadata(t *testing.T) {
	policies := []*egress.Decider{
		egress.NewDecider(egress.Policy{Mode: egress.Public}, nil),
		egress.NewDecider(egress.Policy{Rules: parse(t, "*.internal:80", "*.com:80", "*.goog:80", "api.example:80")}, nil),
	}
	for _, addr := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "169.254.0.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42",
		"169.254.10.10", "fd00:a9fe:a9fe::1", "fd00:100::100:200",
		"::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "2606:4700::5efe:169.254.169.254",
	} {
		parsed := netip.MustParseAddr(addr)
		for _, d := range policies {
			for _, decide := range []func(netip.AddrPort) egress.Decision{d.Stream, d.Datagram} {
				got := decide(netip.AddrPortFrom(parsed, 80))
				if got.Verdict != egress.Refused || got.Hint != "" || !strings.Contains(got.Rule, "cloud metadata") {
					t.Errorf("%s: got %+v", addr, got)
				}
			}
			if kept := d.Pin("api.example", []netip.Addr{parsed}); len(kept) != 0 {
				t.Errorf("%s was kept as an answer", addr)
			}
			if got := d.Answer("api.example", parsed); got.Verdict != egress.Refused || got.Hint != "" {
				t.Errorf("%s as an answer: got %+v", addr, got)
			}
		}
	}
	for _, name := range []string{
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
		"metadata.tencentyun.com", "metadata.oraclecloud.com", "api.metadata.cloud.ibm.com", "METADATA.Google.Internal.",
	} {
		for _, d := range policies {
			if got := d.Query(name); got.Verdict != egress.Refused || got.Hint != "" {
				t.Errorf("%s: got %+v", name, got)
			}
			if kept := d.Pin(name, []netip.Addr{netip.MustParseAddr("8.8.8.8")}); len(kept) != 0 {
				t.Errorf("an answer for %s was kept", name)
			}
			if got, _ := d.Server(name, netip.MustParseAddrPort("8.8.8.8:80")); got.Verdict != egress.Refused || got.Hint != "" {
				t.Errorf("server name %s: got %+v", name, got)
			}
		}
	}
	// The look-alike twin is an ordinary name.
	if got := policies[1].Query("metadata2.google.internal"); got.Verdict != egress.Direct {
		t.Errorf("look-alike: got %+v", got)
	}
}
