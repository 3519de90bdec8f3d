package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Names says how a host name is held.
type Names uint8

const (
	// Strict relays connections to TLS and HTTP ports and checks the server name that the
	// client sends. Other ports are held as with Pinned.
	Strict Names = iota
	// Pinned connects the server's own socket to an address that the name resolved to.
	Pinned
)

// String returns the word of network.names.
func (n Names) String() string {
	switch n {
	case Strict:
		return "strict"
	case Pinned:
		return "pinned"
	}
	return "unknown"
}

// Addresses says to which addresses a host name may lead.
type Addresses uint8

const (
	// Ordinary is places on the public Internet that are not this machine itself.
	Ordinary Addresses = iota
	// AnyAddress adds the special addresses where hosts are: private and shared networks,
	// loopback, this machine's own. It never leads to what [Special] calls cloud metadata,
	// nor to link-local, multicast, broadcast and unspecified addresses, where no host with
	// a name of its own is.
	AnyAddress
)

// String returns the word of a rule's addresses: "any", or "ordinary", which nobody writes.
func (a Addresses) String() string {
	switch a {
	case Ordinary:
		return "ordinary"
	case AnyAddress:
		return "any"
	}
	return "unknown"
}

// Ports is a range, both ends included.
type Ports struct{ First, Last uint16 }

// Holds tells whether the port is in the range.
func (p Ports) Holds(port uint16) bool { return p.First <= port && port <= p.Last }

// String returns "443" or "8000-8100".
func (p Ports) String() string {
	first := strconv.Itoa(int(p.First))
	if p.First == p.Last {
		return first
	}
	return first + "-" + strconv.Itoa(int(p.Last))
}

// words returns "port 443" or "ports 8000-8100".
func (p Ports) words() string {
	if p.First == p.Last {
		return "port " + p.String()
	}
	return "ports " + p.String()
}

// Rule is one entry of network.egress, parsed. Either Host or Prefix is set. A rule holds
// for TCP and for UDP.
type Rule struct {
	Host      string       // lower-case ASCII (IDNA), no trailing dot; "" for an address rule
	Wildcard  bool         // "*.": every name below Host, not Host itself
	Prefix    netip.Prefix // masked, unmapped; the zero Prefix for a host rule
	Ports     Ports        // from 1 up
	Names     Names        // of a host rule
	Addresses Addresses    // of a host rule
	Text      string       // as written, for messages
	Origin    string       // "file:line:column" or "--egress"; "" when nobody said
}

// String returns the rule in its canonical form. [ParseRule] reads it back to the same rule,
// but for Names, Addresses, Text and Origin, which are not in it.
func (r Rule) String() string {
	var target string
	switch {
	case r.Host != "" && r.Wildcard:
		target = "*." + r.Host
	case r.Host != "":
		target = r.Host
	case r.Prefix.IsSingleIP():
		target = r.Prefix.Addr().String()
	default:
		target = r.Prefix.String()
	}
	if r.Prefix.Addr().Is6() {
		target = "[" + target + "]"
	}
	return target + ":" + r.Ports.String()
}

// covers tells whether a host rule is about a name in canonical form.
func (r *Rule) covers(name string) bool {
	if r.Host == "" {
		return false
	}
	if !r.Wildcard {
		return name == r.Host
	}
	rest, below := strings.CutSuffix(name, r.Host)
	return below && len(rest) > 1 && rest[len(rest)-1] == '.'
}

// Within tells whether everything that the rule allows is allowed by the other one too, so
// that writing the rule beside the other one opens nothing. It compares what is written: a
// host rule is never within an address rule, whatever the name resolves to.
func (r Rule) Within(other Rule) bool {
	if r.Ports.First < other.Ports.First || r.Ports.Last > other.Ports.Last {
		return false
	}
	if r.Host == "" {
		return r.Prefix.IsValid() && other.Prefix.IsValid() &&
			other.Prefix.Bits() <= r.Prefix.Bits() && other.Prefix.Contains(r.Prefix.Addr())
	}
	if r.Names == Pinned && other.Names != Pinned || r.Addresses == AnyAddress && other.Addresses != AnyAddress {
		return false
	}
	if r.Wildcard {
		return other.Wildcard && (r.Host == other.Host || other.covers(r.Host))
	}
	return other.covers(r.Host)
}

// Wide says, in a few words, why a rule opens more than it seems to; "" when it does not.
// Nothing is refused for it: it is for whoever reads the plan.
func (r Rule) Wide() string {
	if r.Host == "" {
		if !r.Prefix.IsValid() || r.Prefix.IsSingleIP() {
			return ""
		}
		if kinds := specialsIn(r.Prefix); len(kinds) > 0 {
			return "holds special addresses: " + strings.Join(kinds, ", ")
		}
		return ""
	}
	if !r.Wildcard {
		return ""
	}
	var why []string
	if r.Addresses == AnyAddress {
		why = append(why, "lets whoever answers for "+r.Host+" lead to this machine and its networks, on "+r.Ports.words())
	}
	if below := r.below(); below != "" {
		why = append(why, below)
	}
	return strings.Join(why, "; ")
}

// below says whose names a wildcard holds, where they are strangers'.
func (r *Rule) below() string {
	if !strings.Contains(r.Host, ".") {
		return "holds every name below the top-level domain " + r.Host
	}
	at := slices.IndexFunc(strangers[:], func(suffix string) bool {
		return r.Host == suffix || strings.HasSuffix(r.Host, "."+suffix) || strings.HasSuffix(suffix, "."+r.Host)
	})
	if at >= 0 {
		return "anybody can have a name below " + strangers[at]
	}
	return ""
}

// strangers are domains below which anybody can publish. It is a list of examples, large
// hosts first: no list of them can be whole.
var strangers = [...]string{
	"amazonaws.com", "cloudfront.net", "github.io", "gitlab.io", "pages.dev", "workers.dev", "vercel.app",
	"netlify.app", "herokuapp.com", "web.app", "firebaseapp.com", "appspot.com", "run.app", "windows.net",
	"azurewebsites.net", "azureedge.net", "cloudapp.net", "onrender.com", "fly.dev", "railway.app", "surge.sh",
	"replit.app", "repl.co", "glitch.me", "ngrok.io", "ngrok.app", "ngrok-free.app", "trycloudflare.com",
	"loca.lt", "duckdns.org", "nip.io", "sslip.io", "digitaloceanspaces.com", "backblazeb2.com", "r2.dev",
}
