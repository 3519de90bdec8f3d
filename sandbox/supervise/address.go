package supervise

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// Sizes of socket addresses (linux/in.h, linux/in6.h, linux/un.h, linux/socket.h).
const (
	familySize    = 2   // sa_family_t
	inet4Size     = 16  // struct sockaddr_in
	inet6Short    = 24  // SIN6_LEN_RFC2133: struct sockaddr_in6 without its scope
	inet6Size     = 28  // struct sockaddr_in6
	unixSize      = 110 // struct sockaddr_un
	addressMost   = 128 // struct sockaddr_storage
	unixPathStart = familySize
)

// destination is an Internet address as the kernel would use it. What is sent to the kernel
// is made from it anew, so the kernel cannot understand it otherwise.
type destination struct {
	at    netip.AddrPort // unmapped, without zone; never the unspecified address
	scope uint32         // interface of a link-local IPv6 address
}

// family is the address family that a sockaddr names; false when it is too short for one.
func family(raw []byte) (int, bool) {
	if len(raw) < familySize {
		return 0, false
	}
	return int(binary.NativeEndian.Uint16(raw)), true
}

// parseDestination reads the address of a call on an Internet socket of the given domain and
// type by the rules of tcp_v4_connect, tcp_v6_connect, ip6_datagram_connect, udp_sendmsg and
// udpv6_sendmsg (net/ipv4, net/ipv6, Linux 6.18). AF_UNSPEC is for the caller to handle.
//
// The unspecified address means this machine to them; it becomes the loopback address.
func parseDestination(domain, kind int, raw []byte) (destination, unix.Errno) {
	at, scope, errno := parseInternet(domain, kind, raw)
	if errno != 0 {
		return destination{}, errno
	}
	return newDestination(at.Addr(), at.Port(), scope), 0
}

func parseInternet(domain, kind int, raw []byte) (at netip.AddrPort, scope uint32, errno unix.Errno) {
	named, ok := family(raw)
	if !ok {
		return at, 0, unix.EINVAL
	}
	// Datagram sockets of IPv6 also take addresses of IPv4.
	plain := domain == unix.AF_INET || named == unix.AF_INET && kind == unix.SOCK_DGRAM
	if plain {
		switch {
		case len(raw) < inet4Size:
			return at, 0, unix.EINVAL
		case named != unix.AF_INET:
			return at, 0, unix.EAFNOSUPPORT
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])), 0, 0
	}
	switch {
	case len(raw) < inet6Short:
		return at, 0, unix.EINVAL
	case named != unix.AF_INET6:
		return at, 0, unix.EAFNOSUPPORT
	}
	if len(raw) >= inet6Size {
		scope = binary.NativeEndian.Uint32(raw[24:])
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), binary.BigEndian.Uint16(raw[2:])), scope, 0
}

func newDestination(addr netip.Addr, port uint16, scope uint32) destination {
	addr = addr.Unmap()
	switch addr {
	case netip.IPv4Unspecified():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case netip.IPv6Unspecified():
		addr = netip.IPv6Loopback()
	}
	if !addr.IsLinkLocalUnicast() && !addr.IsLinkLocalMulticast() && !addr.IsInterfaceLocalMulticast() || addr.Is4() {
		scope = 0
	}
	return destination{at: netip.AddrPortFrom(addr, port), scope: scope}
}

// sockaddr is the destination for a socket of the domain: IPv4 addresses are mapped for
// IPv6 sockets. A domain that cannot hold it makes an address that the kernel refuses.
func (d destination) sockaddr(domain int) []byte {
	if domain == unix.AF_INET && d.at.Addr().Is4() {
		raw := make([]byte, inet4Size)
		binary.NativeEndian.PutUint16(raw, unix.AF_INET)
		binary.BigEndian.PutUint16(raw[2:], d.at.Port())
		addr := d.at.Addr().As4()
		copy(raw[4:], addr[:])
		return raw
	}
	raw := make([]byte, inet6Size)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET6)
	binary.BigEndian.PutUint16(raw[2:], d.at.Port())
	addr := d.at.Addr().As16()
	copy(raw[8:], addr[:])
	binary.NativeEndian.PutUint32(raw[24:], d.scope)
	return raw
}

// unmapped drops the IPv6 wrapping of an IPv4 address, and the zone.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// anyAddress is the unspecified address of a domain, with no port.
func anyAddress(domain int) []byte {
	raw := make([]byte, inet6Size)
	binary.NativeEndian.PutUint16(raw, uint16(domain)) //nolint:gosec // AF_INET or AF_INET6
	if domain == unix.AF_INET {
		return raw[:inet4Size]
	}
	return raw
}

// loopback tells whether the destination answers at once, or never.
func (d destination) loopback() bool { return d.at.Addr().IsLoopback() }

// unspecified is the address that dissolves an association (connect(2)).
func unspecified() []byte { return make([]byte, inet4Size) }

// unixName is what a Unix address names.
type unixName struct {
	path     string // of a socket file, as written
	abstract bool   // path is a name without a file
}

// String is the name for messages: @ stands for the zero byte, as in unix(7).
func (n unixName) String() string {
	if n.abstract {
		return "@" + strings.ReplaceAll(n.path, "\x00", "@")
	}
	return n.path
}

// parseUnix reads a Unix address by the rules of unix_validate_addr and unix_mkname_bsd
// (net/unix/af_unix.c, Linux 6.18): a path ends at its first zero byte or with the address.
func parseUnix(raw []byte) (unixName, unix.Errno) {
	named, _ := family(raw)
	if len(raw) <= unixPathStart || len(raw) > unixSize || named != unix.AF_UNIX {
		return unixName{}, unix.EINVAL
	}
	name := string(raw[unixPathStart:])
	if name[0] == 0 {
		return unixName{path: name[1:], abstract: true}, 0
	}
	if end := strings.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	return unixName{path: name}, 0
}

// unixAddress is the address of a socket file.
func unixAddress(path string) []byte {
	raw := make([]byte, unixPathStart+len(path)+1)
	binary.NativeEndian.PutUint16(raw, unix.AF_UNIX)
	copy(raw[unixPathStart:], path)
	return raw
}
