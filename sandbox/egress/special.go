package egress

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// reach says what a row means.
type reach uint8

const (
	special  reach = iota // a host rule leads there with [AnyAddress] alone, no public mode does
	nowhere               // special, and no host with a name is there: address rules alone lead there
	metadata              // as nowhere, and hands out credentials: no message says how to allow it
	ordinary              // globally reachable, inside a special block
)

// worse tells whether a kind refuses more than another one.
func (k reach) worse(other reach) bool { return k != ordinary && (other == ordinary || k > other) }

// specialBlock is one row of the table.
type specialBlock struct {
	text   string // the prefix
	name   string
	source string // the RFC that reserves it, or whose service it is
	reach  reach
}

// specialBlocks are the rows of the IANA special-purpose address registries for IPv4 and IPv6
// (RFC 6890, with all rows up to RFC 9780 of April 2025), multicast, what the registry of the
// IPv6 address space does not give to global unicast, and the addresses of cloud metadata
// services. The first row that holds an address decides, so narrow rows come first.
//
// It follows the registries' column "Globally Reachable", and is stricter where a
// reachable address is the nearest box of a kind (192.0.0.9, 192.0.0.10 and 2001:1::/32:
// port control, relays and registration of the local network) or no place at all
// (2001:20::/28 and 2001:30::/28: identifiers).
var specialBlocks = [...]specialBlock{
	{"168.63.129.16/32", "cloud metadata", "Azure", metadata},
	{"169.254.169.254/32", "cloud metadata", "Amazon, Azure, Google Cloud and others", metadata},
	{"169.254.170.2/32", "cloud metadata", "Amazon containers", metadata},
	{"169.254.170.23/32", "cloud metadata", "Amazon pods", metadata},
	{"169.254.42.42/32", "cloud metadata", "Scaleway", metadata},
	{"169.254.0.23/32", "cloud metadata", "Tencent Cloud", metadata},
	{"169.254.10.10/32", "cloud metadata", "Tencent Cloud", metadata},
	{"100.100.100.200/32", "cloud metadata", "Alibaba Cloud", metadata},
	{"192.0.0.192/32", "cloud metadata", "Oracle Cloud", metadata},

	{"0.0.0.0/32", "unspecified, which is this machine", "RFC 1122", nowhere},
	{"0.0.0.0/8", "this network", "RFC 791", nowhere},
	{"10.0.0.0/8", "private", "RFC 1918", special},
	{"100.64.0.0/10", "shared between a provider and its customers", "RFC 6598", special},
	{"127.0.0.0/8", "loopback", "RFC 1122", special},
	{"169.254.0.0/16", "link-local", "RFC 3927", nowhere},
	{"172.16.0.0/12", "private", "RFC 1918", special},
	{"192.0.0.0/29", "IPv4 service continuity", "RFC 7335", special},
	{"192.0.0.8/32", "dummy address", "RFC 7600", special},
	{"192.0.0.9/32", "port control anycast", "RFC 7723", special},
	{"192.0.0.10/32", "relay anycast", "RFC 8155", special},
	{"192.0.0.170/31", "NAT64 discovery", "RFC 7050", special},
	{"192.0.0.0/24", "IETF protocol assignments", "RFC 6890", special},
	{"192.0.2.0/24", "documentation", "RFC 5737", special},
	{"192.31.196.0/24", "AS112", "RFC 7535", ordinary},
	{"192.52.193.0/24", "multicast tunnels", "RFC 7450", ordinary},
	{"192.88.99.2/32", "6a44 relay anycast", "RFC 6751", special},
	{"192.88.99.0/24", "6to4 relay anycast, deprecated", "RFC 7526", special},
	{"192.168.0.0/16", "private", "RFC 1918", special},
	{"192.175.48.0/24", "AS112", "RFC 7534", ordinary},
	{"198.18.0.0/15", "benchmarking", "RFC 2544", special},
	{"198.51.100.0/24", "documentation", "RFC 5737", special},
	{"203.0.113.0/24", "documentation", "RFC 5737", special},
	{"224.0.0.0/4", "multicast", "RFC 5771", nowhere},
	{"255.255.255.255/32", "broadcast", "RFC 919", nowhere},
	{"240.0.0.0/4", "reserved", "RFC 1112", special},

	{"fd00:ec2::254/128", "cloud metadata", "Amazon", metadata},
	{"fd00:ec2::23/128", "cloud metadata", "Amazon pods", metadata},
	{"fd20:ce::254/128", "cloud metadata", "Google Cloud", metadata},
	{"fd00:c1::a9fe:a9fe/128", "cloud metadata", "Oracle Cloud", metadata},
	{"fd00:42::42/128", "cloud metadata", "Scaleway", metadata},
	{"fd00:a9fe:a9fe::1/128", "cloud metadata", "Linode", metadata},
	{"fd00:100::100:200/128", "cloud metadata", "Alibaba Cloud", metadata},

	{"::/128", "unspecified, which is this machine", "RFC 4291", nowhere},
	{"::1/128", "loopback", "RFC 4291", special},
	{"::/96", "IPv4-compatible, deprecated", "RFC 4291", special},
	{"::ffff:0:0/96", "IPv4-mapped", "RFC 4291", special},
	{"64:ff9b::/96", "NAT64", "RFC 6052", ordinary},
	{"64:ff9b:1::/48", "local NAT64", "RFC 8215", special},
	{"100::/64", "discarded", "RFC 6666", special},
	{"100:0:0:1::/64", "dummy prefix", "RFC 9780", special},
	{"2001::/32", "Teredo", "RFC 4380", special},
	{"2001:1::1/128", "port control anycast", "RFC 7723", special},
	{"2001:1::2/128", "relay anycast", "RFC 8155", special},
	{"2001:1::3/128", "service registration anycast", "RFC 9665", special},
	{"2001:2::/48", "benchmarking", "RFC 5180", special},
	{"2001:3::/32", "multicast tunnels", "RFC 7450", ordinary},
	{"2001:4:112::/48", "AS112", "RFC 7535", ordinary},
	{"2001:10::/28", "identifiers, deprecated", "RFC 4843", special},
	{"2001:20::/28", "identifiers", "RFC 7343", special},
	{"2001:30::/28", "drone identifiers", "RFC 9374", special},
	{"2001::/23", "IETF protocol assignments", "RFC 2928", special},
	{"2001:db8::/32", "documentation", "RFC 3849", special},
	{"2002::/16", "6to4", "RFC 3056", ordinary},
	{"2620:4f:8000::/48", "AS112", "RFC 7534", ordinary},
	{"3fff::/20", "documentation", "RFC 9637", special},
	{"5f00::/16", "segment routing", "RFC 9602", special},
	{"fc00::/7", "unique local", "RFC 4193", special},
	{"fe80::/10", "link-local", "RFC 4291", nowhere},
	{"fec0::/10", "site-local, deprecated", "RFC 3879", special},
	{"ff00::/8", "multicast", "RFC 4291", nowhere},
	// All that is not 2000::/3, the only global unicast space there is.
	{"::/3", "reserved", "RFC 4291", special},
	{"4000::/2", "reserved", "RFC 4291", special},
	{"8000::/1", "reserved", "RFC 4291", special},
}

// specialRow is a block, read.
type specialRow struct {
	prefix netip.Prefix
	name   string
	why    string // "link-local (RFC 3927)"
	reach  reach
}

// specialTable is read once, at the first question and not at the start of the program: most
// starts ask nothing.
var specialTable struct {
	once      sync.Once
	four, six []specialRow
}

func specialRows() (four, six []specialRow) {
	specialTable.once.Do(func() {
		for _, b := range specialBlocks {
			r := specialRow{netip.MustParsePrefix(b.text), b.name, b.name + " (" + b.source + ")", b.reach}
			if r.prefix.Addr().Is4() {
				specialTable.four = append(specialTable.four, r)
			} else {
				specialTable.six = append(specialTable.six, r)
			}
		}
	})
	return specialTable.four, specialTable.six
}

// lookup finds the row that decides on an address, which is unmapped and has no zone. Nil
// for none: an ordinary address.
func lookup(addr netip.Addr) *specialRow {
	in, six := specialRows()
	if addr.Is6() {
		in = six
	}
	for i := range in {
		if in[i].prefix.Contains(addr) {
			return &in[i]
		}
	}
	return nil
}

// Special says why an address is not a place on the public Internet, as in "link-local
// (RFC 3927)", or "NAT64 form of 127.0.0.1, loopback (RFC 1122)"; "" when it is one. An
// address that is not valid is special.
func Special(addr netip.Addr) string {
	why, _ := judge(addr)
	return why
}

// judge is Special, with the kind of the deciding row: of several, the one that refuses most.
func judge(addr netip.Addr) (why string, kind reach) {
	if !addr.IsValid() {
		return "no address", nowhere
	}
	addr = plainAddr(addr)
	kind = ordinary
	if addr.Is6() {
		why, kind = judgeInner(addr)
	}
	if r := lookup(addr); r != nil && r.reach.worse(kind) {
		return r.why, r.reach
	}
	return why, kind
}

// plainAddr is an address as rules hold it: an IPv4-mapped one is the IPv4 address (the kernel
// sends IPv4 packets for it), and a zone says how to get there, not where.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// judgeInner judges the IPv4 addresses that an IPv6 address may carry, each in the place that
// its form puts it; "" when there is none or all are ordinary. Forms overlap, as an ISATAP
// interface in a 6to4 network, so each is asked, and the answer that refuses most counts.
func judgeInner(addr netip.Addr) (why string, kind reach) {
	kind = ordinary
	eachInner(addr, func(form string, inner netip.Addr) {
		if r := lookup(inner); r != nil && r.reach.worse(kind) {
			why, kind = form+" of "+inner.String()+", "+r.why, r.reach
		}
	})
	return why, kind
}

// eachInner calls found with each IPv4 address that an IPv6 address may carry, and its form.
func eachInner(addr netip.Addr, found func(form string, inner netip.Addr)) {
	b := addr.As16()
	find := func(form string, a, b, c, d byte) { found(form, netip.AddrFrom4([4]byte{a, b, c, d})) }
	high, zero := [12]byte(b[:12]), [12]byte{}
	switch {
	case high == zero && [3]byte(b[12:15]) != [3]byte{}: // :: and ::1 have rows of their own
		find("IPv4-compatible form", b[12], b[13], b[14], b[15]) // RFC 4291, section 2.5.5.1
	case high == [12]byte{8: 0xff, 9: 0xff}:
		find("IPv4-translated form", b[12], b[13], b[14], b[15]) // RFC 2765, section 2.1
	case high == [12]byte{0, 0x64, 0xff, 0x9b}, [6]byte(b[:6]) == [6]byte{0, 0x64, 0xff, 0x9b, 0, 1}:
		// RFC 6052, section 2.2. Where a shorter local prefix puts the address cannot be seen;
		// the local block is special whatever is inside.
		find("NAT64 form", b[12], b[13], b[14], b[15])
	case b[0] == 0x20 && b[1] == 0x02:
		find("6to4 form", b[2], b[3], b[4], b[5]) // RFC 3056, section 2
	case [4]byte(b[:4]) == [4]byte{0x20, 0x01}:
		// RFC 4380, section 4: the server's address, and the client's with all bits turned.
		find("Teredo form", ^b[12], ^b[13], ^b[14], ^b[15])
		find("Teredo form", b[4], b[5], b[6], b[7])
	}
	// RFC 5214, section 6.1: an interface identifier that begins 0000:5efe or 0200:5efe.
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		find("ISATAP form", b[12], b[13], b[14], b[15])
	}
}

// specialsIn names the kinds of special addresses that a prefix holds. A prefix that lies in
// one kind, and in nothing else, says so itself and has none.
func specialsIn(prefix netip.Prefix) []string {
	in, six := specialRows()
	if prefix.Addr().Is6() {
		in = six
	}
	var kinds []string
	for _, r := range in {
		if !r.prefix.Overlaps(prefix) {
			continue
		}
		kind, _, _ := strings.Cut(r.name, ",")
		if r.reach != ordinary && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		if r.prefix.Bits() <= prefix.Bits() {
			if len(kinds) == 1 && kinds[0] == kind {
				return nil
			}
			break // the rows after it decide on nothing in the prefix
		}
	}
	return kinds
}
