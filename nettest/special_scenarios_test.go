package nettest_test

import (
	"slices"

	"stockade/nettest"
)

// led is a row for a page at a name that leads to several places.
func led(host string, inside want, outside ...nettest.Place) row {
	return row{ask: "get SCHEME://" + host + "/", outside: page(host, outside...), inside: inside}
}

// What clients get at the addresses of the machine that they run on.
var (
	ownPage    = page(nettest.OwnName, nettest.Own, nettest.Own6)
	routedPage = page(nettest.RoutedName, nettest.OwnRoute)
)

// specialScenarios are about addresses that are public by their number and the machine's own,
// and about rules that let names lead to special addresses.
var specialScenarios = []scenario{
	{
		name:    "own addresses, of rules for hosts",
		network: `egress: ["own.corp-demo.org:SCHEMEPORT", "routed.corp-demo.org:SCHEMEPORT", "own.corp-demo.org:5432", "data.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			led(nettest.OwnName, noAddress, nettest.Own, nettest.Own6),
			led(nettest.RoutedName, noAddress, nettest.OwnRoute),
			local("93.184.216.30:80", nettest.Own, fails(denied)),
			local("93.184.218.7:80", nettest.OwnRoute, fails(denied)),
			local("[2606:2800:220:1::30]", nettest.Own6, fails(denied)),
			{ask: "get http://[::ffff:93.184.216.30]/", outside: greets(nettest.Own), inside: fails(denied)},
			{ask: "tcp 93.184.216.30 5432", outside: echoed, inside: fails(denied)},
			{ask: "udp 93.184.216.30 7000", outside: echoed, inside: fails(unsent)},
			{
				ask: "connected 2606:2800:220:1::30 7000", outside: echoed, skip: []string{"static musl"}, // it has no word for it
				inside: fails(func(failures) string { return "EDESTADDRREQ" }),
			},
			redirected("http://93.184.216.30", nettest.Own, fails(denied)),
			allowed(nettest.DataName, nettest.Public),
		},
		untouched: beyond(),
	},
	{
		name: "own addresses, of pinned rules",
		network: `names: pinned
egress: ["own.corp-demo.org:SCHEMEPORT", "routed.corp-demo.org:SCHEMEPORT", "data.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			led(nettest.OwnName, noAddress, nettest.Own, nettest.Own6),
			led(nettest.RoutedName, noAddress, nettest.OwnRoute),
			local("93.184.216.30:80", nettest.Own, fails(denied)),
			allowed(nettest.DataName, nettest.Public),
		},
		untouched: beyond(),
	},
	{
		name:    "own addresses, of public",
		network: `egress: public`,
		rows: []row{
			led(nettest.OwnName, noAddress, nettest.Own, nettest.Own6),
			led(nettest.RoutedName, noAddress, nettest.OwnRoute),
			local("93.184.216.30:80", nettest.Own, fails(denied)),
			local("93.184.218.7:80", nettest.OwnRoute, fails(denied)),
			local("[2606:2800:220:1::30]", nettest.Own6, fails(denied)),
			{ask: "tcp 2606:2800:220:1::30 5432", outside: echoed, inside: fails(denied)},
			{ask: "udp 93.184.218.7 7000", outside: echoed, inside: fails(unsent)},
			redirected("http://93.184.216.30", nettest.Own, fails(denied)),
			allowed(nettest.DataName, nettest.Public),
			allowed(nettest.SixName, nettest.SixOnly),
		},
		untouched: slices.DeleteFunc(beyond(), func(p nettest.Place) bool { return p == nettest.Attacker }),
	},
	{
		name:    "own addresses, written out",
		network: `egress: ["93.184.216.30:80", "[2606:2800:220:1::30]:80", "93.184.218.0/24:80", "93.184.216.30:7000"]`,
		rows: []row{
			local("93.184.216.30:80", nettest.Own, page("93.184.216.30", nettest.Own)),
			local("[2606:2800:220:1::30]", nettest.Own6, page("[2606:2800:220:1::30]", nettest.Own6)),
			local("93.184.218.7:80", nettest.OwnRoute, page("93.184.218.7", nettest.OwnRoute)),
			{ask: "udp 93.184.216.30 7000", outside: echoed, inside: echoed},
			{ask: "tcp 93.184.216.30 5432", outside: echoed, inside: fails(denied)},
		},
		untouched: beyond(nettest.Own, nettest.Own6, nettest.OwnRoute),
	},
	{
		name: "addresses: any",
		network: `egress:
  - {to: "nexus.corp-demo.org:SCHEMEPORT", addresses: any}
  - {to: "loop.corp-demo.org:SCHEMEPORT", addresses: any}
  - {to: "own.corp-demo.org:SCHEMEPORT", addresses: any}
  - {to: "routed.corp-demo.org:SCHEMEPORT", addresses: any}
  - {to: "db.corp-demo.org:5432", addresses: any}
  - {to: "meta.corp-demo.org:SCHEMEPORT", addresses: any}
  - {to: "out.corp-demo.org:SCHEMEPORT", addresses: ordinary}
  - "private.corp-demo.org:SCHEMEPORT"
  - "data.corp-demo.org:SCHEMEPORT"`,
		rows: []row{
			// A name of an ordinary rule keeps nothing, before another one has led to the same
			// address and after.
			get(nettest.PrivateName, nettest.Private, noAddress),
			led(nettest.RegistryName, page(nettest.RegistryName, nettest.Private, nettest.Private6), nettest.Private, nettest.Private6),
			led(nettest.LoopName, page(nettest.LoopName, nettest.Loopback, nettest.Loopback6), nettest.Loopback, nettest.Loopback6),
			led(nettest.OwnName, ownPage, nettest.Own, nettest.Own6),
			led(nettest.RoutedName, routedPage, nettest.OwnRoute),
			{ask: "tcp db.corp-demo.org 5432", outside: echoed, inside: echoed},
			get(nettest.MetaName, nettest.Metadata, noAddress),
			// musl sees the whole answer, and the address is another name's by now: the relay ends it.
			get(nettest.OutName, nettest.Private, noAddress).except("static musl"),
			get(nettest.PrivateName, nettest.Private, noAddress).except("static musl"),
			{ask: "tcp 10.0.0.5 5433", outside: echoed, inside: fails(denied)},
			local("127.0.0.1:8000", nettest.Loopback, fails(denied)),
			local("127.0.0.2:8000", nettest.Loopback2, fails(denied)),
			local("169.254.169.254:80", nettest.Metadata, fails(denied)),
			allowed(nettest.DataName, nettest.Public),
		},
		untouched: beyond(nettest.Private, nettest.Private6, nettest.Loopback, nettest.Loopback6, nettest.Own, nettest.Own6, nettest.OwnRoute),
		unheard:   []string{nettest.PrivateName, nettest.OutName},
	},
	{
		name:    "addresses: any, and other names there",
		network: `egress: [{to: "nexus.corp-demo.org:443", addresses: any}, {to: "nexus.corp-demo.org:80", addresses: any}]`,
		rows: []row{
			led(nettest.RegistryName, page(nettest.RegistryName, nettest.Private, nettest.Private6), nettest.Private, nettest.Private6),
			{
				ask:     "via SCHEME://" + nettest.PrivateName + "/ " + nettest.RegistryName,
				outside: page(nettest.PrivateName, nettest.Private, nettest.Private6), inside: barred,
			},
			{ask: "tcp nexus.corp-demo.org 5432", outside: echoed, inside: fails(denied)},
		},
		untouched: beyond(nettest.Private, nettest.Private6),
		unheard:   []string{nettest.PrivateName},
	},
	{
		name: "addresses: any, pinned, below a wildcard",
		network: `names: pinned
egress: [{to: "*.corp-demo.org:SCHEMEPORT", addresses: any}, "private.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			led(nettest.RegistryName, page(nettest.RegistryName, nettest.Private, nettest.Private6), nettest.Private, nettest.Private6),
			led(nettest.MixedName, page(nettest.MixedName, nettest.Private, nettest.Public), nettest.Private, nettest.Public),
			// The exact rule has the word; but musl sees the whole answer, and pinned knows addresses alone.
			get(nettest.PrivateName, nettest.Private, noAddress).except("static musl"),
			get(nettest.MetaName, nettest.Metadata, noAddress),
		},
		untouched: beyond(nettest.Private, nettest.Private6),
		unheard:   []string{nettest.PrivateName},
	},
	{
		name:    "addresses: any, beside public",
		network: `egress: [public, {to: "nexus.corp-demo.org:SCHEMEPORT", addresses: any}]`,
		rows: []row{
			led(nettest.RegistryName, page(nettest.RegistryName, nettest.Private, nettest.Private6), nettest.Private, nettest.Private6),
			get(nettest.PrivateName, nettest.Private, noAddress).except("static musl"), // as above
			led(nettest.OwnName, noAddress, nettest.Own, nettest.Own6),
			get(nettest.MetaName, nettest.Metadata, noAddress),
			allowed(nettest.DataName, nettest.Public),
			{
				ask:     "via SCHEME://" + nettest.DataName + "/ " + nettest.RegistryName,
				outside: page(nettest.DataName, nettest.Private, nettest.Private6), inside: barred,
			},
			local("127.0.0.1:8000", nettest.Loopback, fails(denied)),
		},
		untouched: slices.DeleteFunc(beyond(nettest.Private, nettest.Private6), func(p nettest.Place) bool { return p == nettest.Attacker }),
		unheard:   []string{nettest.PrivateName},
	},
	{
		name:    "addresses: any, and rebinding to metadata",
		network: `egress: [{to: "rebind.corp-demo.org:SCHEMEPORT", addresses: any}]`,
		prepare: func(n *nettest.Network) {
			n.Rebind([]nettest.Place{nettest.Public}, []nettest.Place{nettest.Metadata, nettest.Metadata6})
		},
		rows: []row{
			{ask: "lookup " + nettest.RebindName, outside: found(nettest.Public), inside: found(nettest.Public), skip: []string{"static musl"}},
			{
				ask: "get SCHEME://" + nettest.RebindName + "/", skip: []string{"curl"},
				outside: page(nettest.RebindName, nettest.Metadata, nettest.Metadata6, nettest.Public), inside: afterRebinding,
			},
			{
				ask: "get SCHEME://" + nettest.RebindName + "/", skip: []string{"curl"},
				outside: page(nettest.RebindName, nettest.Metadata, nettest.Metadata6), inside: afterRebinding,
			},
		},
		untouched: beyond(),
	},
}
