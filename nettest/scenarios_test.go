package nettest_test

import (
	"slices"
	"strings"

	"stockade/nettest"
)

// row is one thing to ask for, and what has to come of it outside a jail and inside.
type row struct {
	ask             string // SCHEME is the client's own
	outside, inside want
	// skip are clients for which the row means nothing, each with its reason where it stands.
	skip []string
}

// scenario is one profile and what clients ask for in its jail, one after the other.
type scenario struct {
	name    string
	network string // the profile's section; SCHEMEPORT is the port of the client's scheme
	rows    []row
	// untouched are the places that nothing may reach from the jail.
	untouched []nettest.Place
	// unasked are the names that no query may tell the name server.
	unasked []string
	// unheard are the names that no server of any place may have heard, in a hello or a request.
	unheard []string
	// prepare sets the network up for one client.
	prepare func(n *nettest.Network)
}

// get is a row for a page at a host's root.
func get(host string, place nettest.Place, inside want) row {
	return row{ask: "get SCHEME://" + host + "/", outside: page(host, places(place)...), inside: inside}
}

// allowed is a row for a page that has to come inside as outside.
func allowed(host string, places ...nettest.Place) row {
	return row{ask: "get SCHEME://" + host + "/", outside: page(host, places...), inside: page(host, places...)}
}

// places adds the places over IPv6 that names of a place lead to as well.
func places(place nettest.Place) []nettest.Place {
	switch place {
	case nettest.Loopback:
		return []nettest.Place{nettest.Loopback, nettest.Loopback6}
	case nettest.Metadata:
		return []nettest.Place{nettest.Metadata, nettest.Metadata6}
	default:
		return []nettest.Place{place}
	}
}

// local is a row for a page on a port and scheme of its own.
func local(address string, place nettest.Place, inside want) row {
	host := strings.TrimSuffix(address, ":80")
	return row{ask: "get http://" + host + "/", outside: page(host, places(place)...), inside: inside}
}

// redirected is a row for a page that an allowed host sends the client on from.
func redirected(address string, place nettest.Place, inside want) row {
	_, host, _ := strings.Cut(address, "://")
	return row{
		ask:     "get SCHEME://" + nettest.DataName + "/to?url=" + address + "/",
		outside: page(host, places(place)...), inside: inside, skip: []string{"static musl"}, // it follows no redirects
	}
}

// except leaves clients out of a row.
func (r row) except(clients ...string) row {
	r.skip = append(slices.Clone(r.skip), clients...)
	return r
}

// beyond are all places that no rule of a scenario names.
func beyond(granted ...nettest.Place) []nettest.Place {
	return slices.DeleteFunc(append(slices.Clone(nettest.Inside), nettest.Attacker), func(p nettest.Place) bool {
		return slices.Contains(granted, p)
	})
}

// A name that leads nowhere has no name or no address, by resolver.
var noAddress = fails(noName, noData)

var scenarios = []scenario{
	{
		// No supervisor: what the clients need from their files and from the kernel is there.
		name:    "all",
		network: `egress: all`,
		rows: []row{
			allowed(nettest.DataName, nettest.Public),
			allowed(nettest.AttackerName, nettest.Attacker),
			local("169.254.169.254:80", nettest.Metadata, page("169.254.169.254", nettest.Metadata)),
			{ask: "lookup " + nettest.DataName, outside: found(nettest.Public), inside: found(nettest.Public)},
			{ask: "resolve4 " + nettest.DataName, outside: found(nettest.Public), inside: found(nettest.Public)},
			{ask: "aio SCHEME://" + nettest.DataName + "/", outside: page(nettest.DataName, nettest.Public), inside: page(nettest.DataName, nettest.Public)},
			{ask: "tcp 10.0.0.5 5432", outside: echoed, inside: echoed},
			{ask: "udp 10.0.0.5 7000", outside: echoed, inside: echoed},
		},
	},
	{
		name: "names",
		network: `egress: ["data.corp-demo.org:SCHEMEPORT", "API.Corp-Demo.org.:SCHEMEPORT", "six.corp-demo.org:SCHEMEPORT",
  "eyes.corp-demo.org:SCHEMEPORT", "alias.corp-demo.org:SCHEMEPORT", "*.wild.corp-demo.org:SCHEMEPORT",
  "hosted.corp-demo.org:SCHEMEPORT", "many.corp-demo.org:443"]`,
		rows: []row{
			allowed(nettest.DataName, nettest.Public),
			allowed(nettest.APIName, nettest.Public, nettest.Public6),
			allowed(nettest.SixName, nettest.SixOnly),
			// urllib and a plain loop over addresses wait for the dead one for minutes.
			allowed(nettest.EyeballsName, nettest.Public).except("python", "static musl"),
			{
				ask:     "aio SCHEME://" + nettest.EyeballsName + "/",
				outside: page(nettest.EyeballsName, nettest.Public), inside: page(nettest.EyeballsName, nettest.Public),
			},
			allowed(nettest.AliasName, nettest.Public),
			allowed(nettest.WildName, nettest.Public),
			allowed(nettest.WildDeepName, nettest.Public),
			allowed(nettest.HostsName, nettest.Public),
			allowed(nettest.ManyName, nettest.Many).except("static musl"), // it speaks no TLS, and that host nothing else
			{ask: "aio SCHEME://" + nettest.DataName + "/", outside: page(nettest.DataName, nettest.Public), inside: page(nettest.DataName, nettest.Public)},
			get(nettest.AttackerName, nettest.Attacker, fails(noName)),
			{ask: "aio SCHEME://" + nettest.AttackerName + "/", outside: page(nettest.AttackerName, nettest.Attacker), inside: fails(noName)},
			get("wild.corp-demo.org", nettest.Public, fails(noName)),
			get(nettest.ForeignName, nettest.CDN, fails(noName)),
			allowed(nettest.DataName, nettest.Public),
		},
		untouched: append(beyond(), nettest.CDN),
		unasked:   []string{nettest.AttackerName, "wild.corp-demo.org", nettest.ForeignName},
	},
	{
		name:    "lookups",
		network: `egress: ["data.corp-demo.org:443", "api.corp-demo.org:443", "six.corp-demo.org:443"]`,
		rows: []row{
			{ask: "lookup " + nettest.DataName, outside: found(nettest.Public), inside: found(nettest.Public)},
			{ask: "lookup " + nettest.APIName, outside: found(nettest.Public, nettest.Public6), inside: found(nettest.Public, nettest.Public6)},
			{ask: "lookup " + nettest.SixName, outside: found(nettest.SixOnly), inside: found(nettest.SixOnly)},
			{ask: "lookup " + nettest.AttackerName, outside: found(nettest.Attacker), inside: fails(noName)},
			{ask: "resolve4 " + nettest.DataName, outside: found(nettest.Public), inside: found(nettest.Public)},
			{ask: "resolve6 " + nettest.SixName, outside: found(nettest.SixOnly), inside: found(nettest.SixOnly)},
			{ask: "resolve4 " + nettest.AttackerName, outside: found(nettest.Attacker), inside: fails(noName)},
			// Data in a name: what a tunnel would look like.
			{ask: "lookup c2VjcmV0.evil.attacker-demo.org", outside: fails(noName), inside: fails(noName)},
		},
		untouched: beyond(),
		unasked:   []string{nettest.AttackerName, "c2vjcmv0.evil.attacker-demo.org"},
	},
	{
		// A resolver of one's own is no way out: whatever address it has, what answers is the
		// jail's, and nothing of the client's making is sent on.
		name:    "queries by hand",
		network: `egress: ["data.corp-demo.org:443"]`,
		rows: []row{
			{ask: "ask data.corp-demo.org 10.0.0.2 connected", outside: told(0, 1), inside: told(0, 1)},
			{ask: "ask evil.attacker-demo.org 185.199.108.153 connected", outside: told(0, 1), inside: told(3, 0)},
			{ask: "ask data.corp-demo.org 10.0.0.2 sendto", outside: told(0, 1), inside: told(0, 1)},
			{ask: "ask evil.attacker-demo.org 10.0.0.2 sendto", outside: told(0, 1), inside: told(3, 0)},
			{ask: "ask data.corp-demo.org 185.199.108.153 sendto", outside: told(0, 1), inside: fails(denied)},
			{ask: "ask data.corp-demo.org 10.0.0.2 sendmsg", outside: told(0, 1), inside: told(0, 1)},
			{ask: "ask evil.attacker-demo.org 10.0.0.2 sendmsg", outside: told(0, 1), inside: told(3, 0)},
			{ask: "ask data.corp-demo.org 185.199.108.153 sendmsg", outside: told(0, 1), inside: fails(denied)},
			{ask: "ask data.corp-demo.org 10.0.0.2 tcp", outside: told(0, 1), inside: told(0, 1)},
			{ask: "ask evil.attacker-demo.org 185.199.108.153 tcp", outside: told(0, 1), inside: told(3, 0)},
		},
		untouched: beyond(),
		unasked:   []string{nettest.AttackerName},
	},
	{
		name:    "addresses",
		network: `egress: ["data.corp-demo.org:SCHEMEPORT", "10.0.0.5:5432", "[fd12:3456::/64]:5432", "localhost:8000"]`,
		rows: []row{
			get("151.101.1.69", nettest.CDN, fails(denied)),
			get("93.184.216.34", nettest.Public, fails(denied)),
			allowed(nettest.DataName, nettest.Public),
			// The name's own address, now known: the relay finds no name on it that is allowed.
			get("93.184.216.34", nettest.Public, barred).except("curl"), // a process for each ask knows no past
			local("127.0.0.1:8000", nettest.Loopback, page("127.0.0.1:8000", nettest.Loopback)),
			local("[::1]:8000", nettest.Loopback6, page("[::1]:8000", nettest.Loopback6)),
			local("localhost:8000", nettest.Loopback, page("localhost:8000", nettest.Loopback, nettest.Loopback6)),
			local("127.0.0.1:80", nettest.Loopback, fails(denied)),
			local("127.0.0.2:8000", nettest.Loopback2, fails(denied)),
			{ask: "tcp 10.0.0.5 5432", outside: echoed, inside: echoed},
			{ask: "tcp fd12:3456::5 5432", outside: echoed, inside: echoed},
			{ask: "tcp 10.0.0.5 5433", outside: echoed, inside: fails(denied)},
			{ask: "tcp ::ffff:10.0.0.5 5433", outside: echoed, inside: fails(denied)},
			{ask: "tcp 93.184.216.34 5432", outside: echoed, inside: fails(denied)},
		},
		untouched: append(beyond(nettest.Private, nettest.Private6, nettest.Loopback, nettest.Loopback6), nettest.CDN),
	},
	{
		name:    "metadata and spellings",
		network: `egress: ["data.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			allowed(nettest.DataName, nettest.Public),
			local("169.254.169.254:80", nettest.Metadata, fails(denied)),
			local("[fd00:ec2::254]", nettest.Metadata6, fails(denied)),
			// Clients print such addresses in forms of their own.
			{ask: "get http://[::ffff:169.254.169.254]/", outside: greets(nettest.Metadata), inside: fails(denied)},
			{ask: "get http://[::ffff:127.0.0.1]:8000/", outside: greets(nettest.Loopback), inside: fails(denied)},
			local("[64:ff9b::a9fe:a9fe]", nettest.NAT64, fails(denied)),
			local("[2002:7f00:1::1]", nettest.SixToFour, fails(denied)),
			local("100.64.0.5:80", nettest.Shared, fails(denied)),
			// Go takes these for names, and resolves them.
			{ask: "get http://2130706433:8000/", outside: greets(nettest.Loopback), inside: fails(denied), skip: []string{"static go"}},
			{ask: "get http://0x7f.1:8000/", outside: greets(nettest.Loopback), inside: fails(denied), skip: []string{"static go"}},
			{ask: "get http://0177.0.0.1:8000/", outside: greets(nettest.Loopback), inside: fails(denied), skip: []string{"static go"}},
			{ask: "get http://0.0.0.0:8000/", outside: greets(nettest.Loopback), inside: fails(denied)},
			{ask: "get http://[::]:8000/", outside: greets(nettest.Loopback6, nettest.Loopback), inside: fails(denied)},
		},
		untouched: beyond(),
	},
	{
		name:    "redirects",
		network: `egress: ["data.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			redirected("SCHEME://"+nettest.DataName, nettest.Public, page(nettest.DataName, nettest.Public)),
			redirected("http://169.254.169.254", nettest.Metadata, fails(denied)),
			redirected("http://127.0.0.1:8000", nettest.Loopback, fails(denied)),
			redirected("http://[::1]:8000", nettest.Loopback6, fails(denied)),
			redirected("http://10.0.0.5", nettest.Private, fails(denied)),
			redirected("SCHEME://"+nettest.AttackerName, nettest.Attacker, fails(noName)),
			redirected("http://"+nettest.CloudName, nettest.Metadata, fails(noName)),
		},
		untouched: beyond(),
		unasked:   []string{nettest.AttackerName, nettest.CloudName},
	},
	{
		name: "names that lead inside",
		network: `egress: ["private.corp-demo.org:SCHEMEPORT", "mixed.corp-demo.org:SCHEMEPORT", "loop.corp-demo.org:SCHEMEPORT",
  "meta.corp-demo.org:SCHEMEPORT", "mapped.corp-demo.org:SCHEMEPORT", "out.corp-demo.org:SCHEMEPORT", "db.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			get(nettest.PrivateName, nettest.Private, noAddress),
			get(nettest.LoopName, nettest.Loopback, noAddress),
			get(nettest.MetaName, nettest.Metadata, noAddress),
			get(nettest.OutName, nettest.Private, noAddress),
			get(nettest.DatabaseName, nettest.Private, fails(denied)), // the hosts file is the client's to read
			{
				ask: "get SCHEME://" + nettest.MappedName + "/", inside: noAddress,
				outside: page(nettest.MappedName, nettest.NAT64, nettest.SixToFour, nettest.Loopback, nettest.Private, nettest.Metadata),
			},
			{
				ask: "get SCHEME://" + nettest.MixedName + "/", inside: page(nettest.MixedName, nettest.Public),
				outside: page(nettest.MixedName, nettest.Private, nettest.Public),
			},
		},
		untouched: beyond(),
	},
	{
		name:    "rebinding",
		network: `egress: ["rebind.corp-demo.org:SCHEMEPORT"]`,
		prepare: func(n *nettest.Network) {
			n.Rebind([]nettest.Place{nettest.Public}, []nettest.Place{nettest.Loopback, nettest.Private})
		},
		rows: []row{
			{ask: "lookup " + nettest.RebindName, outside: found(nettest.Public), inside: found(nettest.Public), skip: []string{"static musl"}},
			{
				ask: "get SCHEME://" + nettest.RebindName + "/", skip: []string{"curl"}, // a process for each ask knows no past
				outside: page(nettest.RebindName, nettest.Private, nettest.Loopback, nettest.Public), inside: afterRebinding,
			},
			{
				ask: "get SCHEME://" + nettest.RebindName + "/", skip: []string{"curl"},
				outside: page(nettest.RebindName, nettest.Private, nettest.Loopback), inside: afterRebinding,
			},
		},
		untouched: beyond(),
	},
	{
		name:    "one address, many names",
		network: `egress: ["shop.cdn-demo.net:443", "shop.cdn-demo.net:80"]`,
		rows: []row{
			allowed(nettest.ShopName, nettest.CDN),
			{
				ask:     "via SCHEME://" + nettest.ForeignName + "/ " + nettest.ShopName,
				outside: page(nettest.ForeignName, nettest.CDN), inside: barred,
			},
			get(nettest.ForeignName, nettest.CDN, fails(noName)),
			allowed(nettest.ShopName, nettest.CDN),
		},
		untouched: beyond(),
		unasked:   []string{nettest.ForeignName},
		unheard:   []string{nettest.ForeignName},
	},
	{
		name: "one address, many names, pinned",
		network: `names: pinned
egress: ["shop.cdn-demo.net:SCHEMEPORT", "api.corp-demo.org:SCHEMEPORT", "six.corp-demo.org:SCHEMEPORT", "private.corp-demo.org:SCHEMEPORT"]`,
		rows: []row{
			allowed(nettest.ShopName, nettest.CDN),
			// What pinned gives up, and says so: the address is right, and nobody looks at the name.
			{
				ask:     "via SCHEME://" + nettest.ForeignName + "/ " + nettest.ShopName,
				outside: page(nettest.ForeignName, nettest.CDN), inside: page(nettest.ForeignName, nettest.CDN),
			},
			allowed(nettest.APIName, nettest.Public, nettest.Public6),
			allowed(nettest.SixName, nettest.SixOnly),
			get(nettest.ForeignName, nettest.CDN, fails(noName)),
			get(nettest.AttackerName, nettest.Attacker, fails(noName)),
			get(nettest.PrivateName, nettest.Private, noAddress),
			get("185.199.108.153", nettest.Attacker, fails(denied)),
		},
		untouched: beyond(),
		unasked:   []string{nettest.ForeignName, nettest.AttackerName},
	},
	{
		name:    "other ports",
		network: `egress: ["data.corp-demo.org:5430-5432", "data.corp-demo.org:7000"]`,
		rows: []row{
			{ask: "tcp data.corp-demo.org 5432", outside: echoed, inside: echoed},
			{ask: "tcp data.corp-demo.org 5433", outside: echoed, inside: fails(denied)},
			{ask: "connected data.corp-demo.org 7000", outside: echoed, inside: echoed},
			get(nettest.DataName, nettest.Public, fails(denied)),
			{ask: "tcp evil.attacker-demo.org 5432", outside: echoed, inside: fails(noName)},
		},
		untouched: beyond(),
		unasked:   []string{nettest.AttackerName},
	},
	{
		name:    "datagrams",
		network: `egress: ["10.0.0.5:7000", "[2606:2800:220:1::1]:7000", "data.corp-demo.org:443"]`,
		rows: []row{
			{ask: "udp 10.0.0.5 7000", outside: echoed, inside: echoed},
			{ask: "udp 2606:2800:220:1::1 7000", outside: echoed, inside: echoed},
			{ask: "connected 10.0.0.5 7000", outside: echoed, inside: echoed},
			{ask: "udp 185.199.108.153 7000", outside: echoed, inside: fails(unsent)},
			{ask: "udp 127.0.0.1 7000", outside: echoed, inside: fails(unsent)},
			{ask: "tcp 10.0.0.5 5432", outside: echoed, inside: fails(denied)},
		},
		untouched: beyond(nettest.Private),
	},
	{
		name:    "public",
		network: `egress: public`,
		rows: []row{
			allowed(nettest.DataName, nettest.Public),
			allowed(nettest.APIName, nettest.Public, nettest.Public6),
			allowed(nettest.SixName, nettest.SixOnly),
			allowed(nettest.AttackerName, nettest.Attacker),
			get("151.101.1.69", nettest.CDN, page("151.101.1.69", nettest.CDN)),
			{ask: "tcp data.corp-demo.org 5432", outside: echoed, inside: echoed},
			{ask: "udp 93.184.216.34 7000", outside: echoed, inside: echoed},
			{ask: "udp 10.0.0.5 7000", outside: echoed, inside: fails(unsent)},
			get(nettest.PrivateName, nettest.Private, noAddress),
			get(nettest.LoopName, nettest.Loopback, noAddress),
			get(nettest.MetaName, nettest.Metadata, noAddress),
			get(nettest.CloudName, nettest.Metadata, fails(noName)),
			{
				ask: "get SCHEME://" + nettest.MixedName + "/", inside: page(nettest.MixedName, nettest.Public),
				outside: page(nettest.MixedName, nettest.Private, nettest.Public),
			},
			local("10.0.0.5:80", nettest.Private, fails(denied)),
			local("127.0.0.1:8000", nettest.Loopback, fails(denied)),
			local("[::1]:8000", nettest.Loopback6, fails(denied)),
			local("[fd12:3456::5]", nettest.Private6, fails(denied)),
			local("100.64.0.5:80", nettest.Shared, fails(denied)),
			local("169.254.169.254:80", nettest.Metadata, fails(denied)),
			local("[64:ff9b::a9fe:a9fe]", nettest.NAT64, fails(denied)),
			local("[2002:7f00:1::1]", nettest.SixToFour, fails(denied)),
			redirected("http://169.254.169.254", nettest.Metadata, fails(denied)),
		},
		untouched: slices.DeleteFunc(beyond(), func(p nettest.Place) bool { return p == nettest.Attacker }),
		unasked:   []string{nettest.CloudName},
	},
}

// greets wants the page of a place, whatever it was asked for as.
func greets(places ...nettest.Place) want {
	return func(_ client, o outcome) string {
		for _, p := range places {
			if o.OK && strings.Contains(o.Text, "greetings from "+string(p)+" as ") {
				return ""
			}
		}
		return "want the page of a place"
	}
}

// afterRebinding holds for a name that has been moved inside: it has no address any more, or
// still its first one.
func afterRebinding(c client, o outcome) string {
	if page(nettest.RebindName, nettest.Public)(c, o) == "" {
		return ""
	}
	return noAddress(c, o)
}
