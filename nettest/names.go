package nettest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Names of the network, as a profile would write them.
const (
	APIName      = "api.corp-demo.org"     // Public, and Public6
	DataName     = "data.corp-demo.org"    // Public alone: the plainest host
	SixName      = "six.corp-demo.org"     // SixOnly
	EyeballsName = "eyes.corp-demo.org"    // a dead IPv6 address and Public
	AliasName    = "alias.corp-demo.org"   // by three CNAMEs to DataName
	OutName      = "out.corp-demo.org"     // by a CNAME to PrivateName
	PrivateName  = "private.corp-demo.org" // Private
	MixedName    = "mixed.corp-demo.org"   // Private and Public
	LoopName     = "loop.corp-demo.org"    // Loopback and Loopback6
	MetaName     = "meta.corp-demo.org"    // Metadata
	RebindName   = "rebind.corp-demo.org"  // Public when first asked, then Private; see [Network.Rebind]
	MappedName   = "mapped.corp-demo.org"  // Loopback, Private and Metadata in IPv6 clothes
	ManyName     = "many.corp-demo.org"    // Many: by TCP only
	GitName      = "git.corp-demo.org"     // Public
	WildName     = "a.wild.corp-demo.org"  // Public, as every name below wild.corp-demo.org
	WildDeepName = "b.c.wild.corp-demo.org"
	ShopName     = "shop.cdn-demo.net"      // CDN
	ForeignName  = "foreign.cdn-demo.net"   // CDN too, somebody else's
	AttackerName = "evil.attacker-demo.org" // Attacker
	CloudName    = "metadata.google.internal"
	HostsName    = "hosted.corp-demo.org" // Public, in /etc/hosts and in no zone
	DatabaseName = "db.corp-demo.org"     // Private, in /etc/hosts and in no zone
	OwnName      = "own.corp-demo.org"    // Own and Own6
	RoutedName   = "routed.corp-demo.org" // OwnRoute
	RegistryName = "nexus.corp-demo.org"  // Private and Private6, as a company's registry
)

// record is what the zones hold for one name.
type record struct {
	addresses []netip.Addr
	alias     string
	tcpOnly   bool // over UDP the answer is cut off
}

// at makes a record of places' addresses.
func at(places ...Place) record {
	var r record
	for _, p := range places {
		r.addresses = append(r.addresses, addresses[p])
	}
	return r
}

// zones are the names below which this network's name server has authority.
var zones = []string{"corp-demo.org", "cdn-demo.net", "attacker-demo.org", "internal"}

// wild is the name below which every name exists.
const wild = "wild.corp-demo.org"

func records() map[string]record {
	many := record{tcpOnly: true}
	for i := range manyAddresses {
		many.addresses = append(many.addresses, addressOfMany(i))
	}
	eyes := at(Public)
	eyes.addresses = append(eyes.addresses, dead)
	mapped := at(NAT64, SixToFour)
	for _, p := range []Place{Loopback, Private, Metadata} {
		mapped.addresses = append(mapped.addresses, netip.AddrFrom16(addresses[p].As16()))
	}
	return map[string]record{
		APIName: at(Public, Public6), DataName: at(Public), SixName: at(SixOnly), EyeballsName: eyes,
		AliasName:           {alias: "one.corp-demo.org"},
		"one.corp-demo.org": {alias: "two.cdn-demo.net"},
		"two.cdn-demo.net":  {alias: DataName},
		OutName:             {alias: PrivateName},
		PrivateName:         at(Private), MixedName: at(Private, Public), LoopName: at(Loopback, Loopback6),
		MetaName: at(Metadata), MappedName: mapped, ManyName: many, GitName: at(Public),
		wild:    at(Public),
		OwnName: at(Own, Own6), RoutedName: at(OwnRoute), RegistryName: at(Private, Private6),
		ShopName: at(CDN), ForeignName: at(CDN), AttackerName: at(Attacker), CloudName: at(Metadata, Metadata6),
	}
}

// hostsFile is the network's /etc/hosts.
func hostsFile() string {
	return fmt.Sprintf("127.0.0.1 localhost\n::1 localhost ip6-localhost\n%s %s\n%s %s\n",
		addresses[Public], HostsName, addresses[Private], DatabaseName)
}

// findRecord looks a name up as an authoritative server does. known says that the name exists; it
// may have no addresses of the kind that is asked for. The name is in lower case and without
// its last dot.
func findRecord(all map[string]record, name string) (r record, known bool) {
	if r, known = all[name]; known {
		return r, true
	}
	if strings.HasSuffix(name, "."+wild) {
		return all[wild], true
	}
	// A name above others exists, and has nothing.
	for other := range all {
		if strings.HasSuffix(other, "."+name) {
			return record{}, true
		}
	}
	return record{}, false
}

func hasAuthority(name string) bool {
	return slices.ContainsFunc(zones, func(zone string) bool {
		return name == zone || strings.HasSuffix(name, "."+zone)
	})
}
