package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// ParseHosts reads a hosts(5) file: names in lower case without trailing dot, each with its
// addresses in the order of the file. A name on several lines has the addresses of all of
// them. Names that are no host names are left out: nobody can ask for them. Addresses with a zone id are left out: a pin has no room for an interface, and no
// host rule leads to a link-local address anyway.
func ParseHosts(data []byte) Hosts {
	hosts := Hosts{}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil || addr.Zone() != "" {
			continue
		}
		addr = addr.Unmap()
		for _, name := range fields[1:] {
			name, problem := canonicalName(name)
			if problem == "" && !slices.Contains(hosts[name], addr) {
				hosts[name] = append(hosts[name], addr)
			}
		}
	}
	return hosts
}
