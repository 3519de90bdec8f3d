package seccomp

import (
	"maps"

	"golang.org/x/sys/unix"
)

const (
	// typeMask leaves the flags SOCK_CLOEXEC and SOCK_NONBLOCK out of a socket type
	// (SOCK_TYPE_MASK, linux/net.h).
	typeMask = 0xf

	// familyBits covers every address family there is (AF_MAX is 46 in Linux 6.18).
	// Families beyond get the default errno.
	familyBits = 6

	// smcProtocol and mptcpProtocol make a stream socket that is not TCP to Landlock, so
	// its port rules do not hold for it (IPPROTO_SMC, Linux 6.11; IPPROTO_MPTCP, 5.6).
	smcProtocol   = 256
	mptcpProtocol = 262

	// levelBits covers the socket option levels (SOL_* end below 290 in Linux 6.18), and
	// optionBits the options of a level of which some are refused (TCP_* end below 50, IP_*
	// below 70, IPV6_* below 80; the packet filter's, which need a capability, lie beyond).
	// What lies beyond is refused.
	levelBits  = 9
	optionBits = 7
)

// internetFamilies are the families of ListenSockets and InternetSockets.
var internetFamilies = []uint32{unix.AF_INET, unix.AF_INET6}

// streams and datagrams say which Internet sockets can be made.
func (p Policy) streams() bool {
	return p.Sockets != NoSockets || p.Supervision == SupervisedInternet
}

func (p Policy) datagrams() bool {
	return p.Sockets == InternetSockets || p.Supervision == SupervisedInternet
}

// socketRules decides sockets from creation to use.
func (p Policy) socketRules() ruleSet {
	rules := ruleSet{
		"socket":     p.creationRules(),
		"socketpair": pairRules(),
	}
	if p.Supervision != Unsupervised {
		maps.Copy(rules, supervisedRules())
		return rules
	}
	if p.Sockets != InternetSockets {
		rules["connect"] = []rule{refuse(unix.EACCES)}
		rules["sendto"] = p.sendtoRules()
		// An address in a message lies behind a pointer. It cannot re-aim the pairs that
		// socketpair admits, and no other unconnected socket can be made.
		rules["sendmsg"] = fastOpenRules(2)
		rules["sendmmsg"] = fastOpenRules(3)
		rules["setsockopt"] = optionRules(delayedConnect)
	}
	if p.Sockets == NoSockets {
		rules["bind"] = []rule{refuse(unix.EACCES)}
	}
	if p.Listening == ListenRefused {
		for _, name := range []string{"listen", "accept", "accept4"} {
			rules[name] = []rule{refuse(unix.EACCES)}
		}
	}
	return rules
}

// creationRules decides socket(2). Errnos are the ones that resolvers and runtimes take as
// "this machine does not have that": a family is EAFNOSUPPORT, a protocol EPROTONOSUPPORT.
// Without a supervisor, Unix sockets answer EACCES, as for a socket file that is closed to
// the user.
func (p Policy) creationRules() []rule {
	rules := []rule{refuse(unix.EACCES, word(0, unix.AF_UNIX))}
	if p.Supervision != Unsupervised {
		rules = unixRules(unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_DGRAM)
	}
	decided := []uint32{unix.AF_UNIX}
	if p.streams() {
		decided = append(decided, internetFamilies...)
		for _, family := range internetFamilies {
			rules = append(rules, streamRules(family)...)
			if p.datagrams() {
				rules = append(rules, datagramRules(family)...)
			}
		}
	}
	if p.datagrams() {
		decided = append(decided, unix.AF_NETLINK)
		// Resolvers ask for the machine's addresses. Changing anything needs a capability.
		for _, kind := range []uint64{unix.SOCK_RAW, unix.SOCK_DGRAM} {
			rules = append(rules, allow(
				word(0, unix.AF_NETLINK), maskedEqual(1, typeMask, kind), word(2, unix.NETLINK_ROUTE)))
		}
	}
	for _, family := range others(0, familyBits, decided...) {
		rules = append(rules, refuse(unix.EAFNOSUPPORT, family))
	}
	return rules
}

func streamRules(family uint32) []rule {
	stream := maskedEqual(1, typeMask, unix.SOCK_STREAM)
	rules := make([]rule, 0, 5)
	for _, protocol := range []uint32{0, unix.IPPROTO_TCP} {
		rules = append(rules, allow(word(0, family), stream, word(2, protocol)))
	}
	for _, protocol := range []uint32{unix.IPPROTO_SCTP, smcProtocol, mptcpProtocol} {
		rules = append(rules, refuse(unix.EPROTONOSUPPORT, word(0, family), stream, word(2, protocol)))
	}
	return rules
}

func datagramRules(family uint32) []rule {
	datagram := maskedEqual(1, typeMask, unix.SOCK_DGRAM)
	rules := make([]rule, 0, 3)
	for _, protocol := range []uint32{0, unix.IPPROTO_UDP} {
		rules = append(rules, allow(word(0, family), datagram, word(2, protocol)))
	}
	return append(rules, refuse(unix.EPROTONOSUPPORT, word(0, family), datagram, word(2, unix.IPPROTO_UDPLITE)))
}

// pairRules decides socketpair(2). A datagram end can be aimed at any socket file or
// abstract name with connect or with an address in a message, so only connected kinds are
// admitted. Unix sockets turn SOCK_RAW into a datagram socket (net/unix/af_unix.c).
func pairRules() []rule { return unixRules(unix.SOCK_STREAM, unix.SOCK_SEQPACKET) }

// unixRules admits Unix sockets of the given types.
func unixRules(kinds ...uint64) []rule {
	var rules []rule
	for _, kind := range kinds {
		for _, protocol := range []uint32{0, unix.AF_UNIX} { // PF_UNIX is also accepted as protocol
			rules = append(rules, allow(word(0, unix.AF_UNIX), maskedEqual(1, typeMask, kind), word(2, protocol)))
		}
	}
	return rules
}

// sendtoRules refuses what a connect would have been refused for: MSG_FASTOPEN always, and
// without sockets of its own every address.
func (p Policy) sendtoRules() []rule {
	if p.Sockets != NoSockets {
		return fastOpenRules(3)
	}
	return []rule{
		allow(unset(3, unix.MSG_FASTOPEN), null(4)),
		refuse(unix.EACCES, unset(3, unix.MSG_FASTOPEN), pointer(4)),
		refuse(unix.EACCES, set(3, unix.MSG_FASTOPEN)),
	}
}

// fastOpenRules refuses MSG_FASTOPEN in the flags at index: it connects while it sends, and
// Landlock's connect right does not see it (Linux 6.18).
func fastOpenRules(index uint) []rule {
	return []rule{
		allow(unset(index, unix.MSG_FASTOPEN)),
		refuse(unix.EACCES, set(index, unix.MSG_FASTOPEN)),
	}
}

// refusedOptions are options of one level.
type refusedOptions struct {
	level   uint32
	errno   unix.Errno
	options []uint32
}

// delayedConnect makes a later send connect.
var delayedConnect = refusedOptions{unix.SOL_TCP, unix.EACCES, []uint32{unix.TCP_FASTOPEN_CONNECT}}

// optionRules decides setsockopt(2): everything but the refused options, one entry for a
// level.
func optionRules(refused ...refusedOptions) []rule {
	levels := make([]uint32, 0, len(refused))
	for _, r := range refused {
		levels = append(levels, r.level)
	}
	var rules []rule
	for _, level := range others(1, levelBits, levels...) {
		rules = append(rules, allow(level))
	}
	for _, r := range refused {
		for _, option := range others(2, optionBits, r.options...) {
			rules = append(rules, allow(word(1, r.level), option))
		}
		for _, option := range r.options {
			rules = append(rules, refuse(r.errno, word(1, r.level), word(2, option)))
		}
	}
	return rules
}
