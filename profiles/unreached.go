package profiles

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/egress"
)

// Servers for a database, a cluster or a remote service get its address on their command
// line. Without egress the kernel refuses them a socket, and the server's own error does not
// say why. So the address is told at the start, with the flag that lets it out. It grants
// nothing: whether the server is to go there only the person knows.

// ports are those of URLs that name none.
var ports = [...]struct{ scheme, port string }{
	{"https", "443"},
	{"http", "80"},
	{"wss", "443"},
	{"ws", "80"},
	{"postgres", "5432"},
	{"postgresql", "5432"},
	{"mysql", "3306"},
	{"mariadb", "3306"},
	{"redis", "6379"},
	{"rediss", "6379"},
	{"mongodb", "27017"},
	{"amqp", "5672"},
	{"amqps", "5671"},
}

// unreached warns of addresses among the server's arguments that network.egress does not
// let out. Nothing of an argument is shown but the host and the port.
func (c *compiler) unreached() {
	if c.out.Plan.Network.Egress == sandbox.EgressAll {
		return
	}
	for i, arg := range c.facts.Program.Args {
		to, found := destination(arg)
		if !found {
			continue
		}
		rules, err := egress.ParseRule(to)
		if err != nil || slices.ContainsFunc(rules, c.lets) {
			continue
		}
		c.out.Warnings = append(c.out.Warnings,
			"argument "+itoa(i+1)+" of the server names "+to+", and network.egress does not let it out; to allow it, add \"--egress "+to+"\"")
	}
}

// lets tells whether the plan lets the server connect to what a rule for one host or
// address names, as far as that is known before names are looked up.
func (c *compiler) lets(r egress.Rule) bool {
	policy := &c.out.Plan.Network.Rules
	if slices.ContainsFunc(policy.Rules, r.Within) {
		return true
	}
	if policy.Mode != egress.Public {
		return false
	}
	if r.Host != "" {
		return true
	}
	to := netip.AddrPortFrom(r.Prefix.Addr(), r.Ports.First)
	return egress.NewDecider(*policy, nil).Stream(to).Verdict != egress.Refused
}

// destination reads the host and port out of an argument that is a URL, or a flag with one:
// "--url=https://a.example/b" names "a.example:443".
func destination(arg string) (to string, found bool) {
	if strings.HasPrefix(arg, "-") {
		_, arg, _ = strings.Cut(arg, "=")
	}
	if !strings.Contains(arg, "://") {
		return "", false
	}
	u, err := url.Parse(arg)
	if err != nil {
		return "", false
	}
	host, port := u.Hostname(), u.Port()
	if host == "" || host[0] == '/' { // the folder of a socket
		return "", false
	}
	for _, p := range ports {
		if port == "" && p.scheme == strings.ToLower(u.Scheme) {
			port = p.port
		}
	}
	if port == "" {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}
