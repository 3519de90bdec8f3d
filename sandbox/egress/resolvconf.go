package egress

import (
	"net/netip"
	"strings"
)

// maxServers is how many name servers a resolver looks at (MAXNS, resolv.conf(5)).
const maxServers = 3

// Servers lists the name servers of a resolv.conf(5) file, at most three, in order, with
// port 53. A zone id stays on link-local addresses and is dropped from others, as resolvers
// do. Lines that no resolver would understand are passed over. Without a usable line it is
// 127.0.0.1, which is what resolv.conf(5) says of an absent or empty file.
func Servers(resolvConf []byte) []netip.AddrPort {
	var servers []netip.AddrPort
	for line := range strings.Lines(string(resolvConf)) {
		// A keyword begins in the first column; an indented one is not read.
		rest, found := strings.CutPrefix(line, "nameserver")
		if !found || rest == strings.TrimLeft(rest, " \t") {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		addr = addr.Unmap()
		if !addr.IsLinkLocalUnicast() {
			addr = addr.WithZone("")
		}
		if servers = append(servers, netip.AddrPortFrom(addr, dnsPort)); len(servers) == maxServers {
			break
		}
	}
	if len(servers) == 0 {
		servers = append(servers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsPort))
	}
	return servers
}
