package profiles

import (
	"fmt"
	"slices"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/egress"
)

func (c *compiler) openNetwork() {
	network := &c.out.Plan.Network
	switch {
	case network.Egress == sandbox.EgressAll || holdsAll(network.Rules):
		c.stays(promiseNetwork, "network.egress: all is every address and port, services of this machine and of the local network included, and names can carry data out")
	case network.Egress == sandbox.EgressRules:
		c.openEgress(network.Rules)
	}
	for i := range network.Unix {
		if g := &network.Unix[i]; g.Broad != "" {
			c.stays(promiseNetwork, fmt.Sprintf("%s is granted: %s", g.Path, g.Broad))
		}
	}
	if len(network.Unix) > 0 {
		c.stays(promiseNetwork, "what listens on a granted socket may do for the server whatever it likes, and sees the supervisor's process number as the peer's (SO_PEERCRED; user and group are right)")
	}
	if c.out.Plan.Mediated() {
		c.stays(promiseNetwork, "a supervisor stays as the server's parent; when it dies, the server's network stops and the server ends; what the server started may go on, with the connections that it has, when the supervisor is killed by SIGKILL")
	}
	if len(network.Listen) == 0 {
		return
	}
	c.stays(promiseNetwork, "a port in network.listen is open on every address of this machine, not only on loopback")
	if c.out.Plan.Mediated() {
		return // it looks at the port of each listen
	}
	c.stays(promiseNetwork, "listening on a socket that is bound to no port takes one that the kernel picks, whatever network.listen says: Landlock has no rule for it")
	if c.facts.LandlockABI < tcpABI {
		c.stays(promiseNetwork, "this kernel cannot tell ports apart (Landlock ABI 4, Linux 6.7): the server may listen on any port")
	}
}

// openEgress says what the rules of a plan leave open.
func (c *compiler) openEgress(p egress.Policy) {
	if p.Mode == egress.Public {
		c.stays(promiseNetwork, "public is every host of the Internet: what the server can read it can send to anybody, and names can carry data out; only loopback, private and other special addresses are closed, and this machine's own")
	}
	kinds := kindsOf(p)
	if len(kinds.strict) > 0 {
		c.stays(promiseNetwork, "names: strict checks the name that the client sends at the beginning of a TLS or HTTP connection; what a server behind that name, or one that decrypts for many (a CDN), does with the rest is not seen: "+strings.Join(kinds.strict, ", "))
	}
	if len(kinds.pinned) > 0 {
		c.stays(promiseNetwork, "these are held by the addresses that their names resolve to, which other names share at a CDN or a shared host: "+strings.Join(kinds.pinned, ", "))
	}
	if len(kinds.wildcards) > 0 {
		c.stays(promiseNetwork, "any name below these resolves, so names can carry data to whoever answers for them: "+strings.Join(kinds.wildcards, ", "))
	}
	if p.Mode == egress.Public || kinds.hosts {
		c.stays(promiseNetwork, "the name servers of this machine see the names that the server looks up")
	}
	if len(kinds.metadata) > 0 {
		c.stays(promiseNetwork, "these hand out this machine's cloud credentials to whoever asks: "+strings.Join(kinds.metadata, ", "))
	}
	if len(kinds.special) > 0 {
		c.stays(promiseNetwork, "these are no places on the public Internet but of this machine or its networks, where services often trust whoever reaches them: "+strings.Join(kinds.special, ", "))
	}
	if len(kinds.anywhere) > 0 {
		c.stays(promiseNetwork, "whoever answers for these names can lead them to this machine and to any other of its networks, on their ports, but not to cloud metadata: "+strings.Join(kinds.anywhere, ", "))
	}
	for _, line := range kinds.wide {
		c.stays(promiseNetwork, line)
	}
	if len(kinds.published) > 0 {
		c.stays(promiseNetwork, "strangers can publish and read at these hosts, so data can leave through them: "+strings.Join(kinds.published, ", "))
	}
}

// ruleKinds sorts rules by what they leave open.
type ruleKinds struct {
	hosts                                      bool
	strict, pinned, wildcards, wide, published []string
	metadata, special                          []string // single addresses
	anywhere                                   []string // addresses: any
}

func kindsOf(p egress.Policy) ruleKinds {
	var k ruleKinds
	for i := range p.Rules {
		r := &p.Rules[i]
		if wide := r.Wide(); wide != "" {
			k.wide = append(k.wide, r.String()+" "+wide)
		}
		if r.Host == "" {
			k.address(r)
			continue
		}
		k.hosts = true
		if r.Names == egress.Strict && relayed(r.Ports) {
			k.strict = append(k.strict, r.String())
		}
		if r.Names == egress.Pinned || !onlyRelayed(r.Ports) {
			k.pinned = append(k.pinned, r.String())
		}
		if r.Addresses == egress.AnyAddress {
			k.anywhere = append(k.anywhere, r.String())
		}
		if r.Wildcard {
			k.wildcards = append(k.wildcards, r.String())
		}
		if published(r) {
			k.published = append(k.published, r.String())
		}
	}
	return k
}

// address sorts a rule for one address. Of whole networks [egress.Rule.Wide] tells.
func (k *ruleKinds) address(r *egress.Rule) {
	if !r.Prefix.IsSingleIP() {
		return
	}
	switch why := egress.Special(r.Prefix.Addr()); {
	case strings.Contains(why, "cloud metadata"):
		k.metadata = append(k.metadata, r.String())
	case why != "":
		k.special = append(k.special, r.String()+" ("+why+")")
	}
}

// onlyRelayed tells whether a relay checks names on every port of a range.
func onlyRelayed(p egress.Ports) bool {
	return p.First == p.Last && slices.Contains(relayPorts[:], p.First)
}

// publishers are hosts where anybody can publish, under a name that a profile may have good
// reasons to list. They are examples: no such list is whole.
var publishers = [...]string{
	"github.com", "githubusercontent.com", "github.io", "gitlab.com", "bitbucket.org", "codeberg.org", "sourceforge.net",
	"amazonaws.com", "storage.googleapis.com", "blob.core.windows.net", "r2.dev", "digitaloceanspaces.com",
	"pages.dev", "workers.dev", "vercel.app", "netlify.app", "herokuapp.com", "web.app", "firebaseio.com",
	"pastebin.com", "huggingface.co", "docs.google.com", "drive.google.com", "dropbox.com", "notion.site",
	"slack.com", "discord.com", "telegram.org", "wikipedia.org", "archive.org", "stackoverflow.com", "medium.com",
}

// published tells whether a host rule lets a server reach one of them.
func published(r *egress.Rule) bool {
	return slices.ContainsFunc(publishers[:], func(host string) bool {
		return r.Host == host || strings.HasSuffix(r.Host, "."+host) || r.Wildcard && strings.HasSuffix(host, "."+r.Host)
	})
}
