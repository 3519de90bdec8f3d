package seccomp

import "golang.org/x/sys/unix"

// supervisedRules decide what sockets do under a supervisor. Whatever leads a socket to an
// address that the supervisor has not seen waits for it, or is refused: the supervisor acts
// on its own copy of the address, and never lets one of these calls go on.
//
// bind(2) and accept(2) lead nowhere: Landlock holds TCP ports, and files where it can.
func supervisedRules() ruleSet {
	return ruleSet{
		"connect":    {notify()},
		"listen":     {notify()},
		"sendto":     supervisedSendtoRules(),
		"sendmsg":    supervisedMessageRules(2),
		"sendmmsg":   supervisedMessageRules(3),
		"setsockopt": optionRules(delayedConnect, sourceRoutes, sourceRoutes6),
		"seccomp":    listenerRules(),
	}
}

// listenerRules refuse filters with a listener, with the kernel's own answer while there is
// a supervisor. Once its listener is closed, the kernel would take a new one, and of two
// filters that both let a call wait it asks the newer one's listener (seccomp_run_filters,
// Linux 6.18): a process that outlives the supervisor could then answer its own calls.
func listenerRules() []rule {
	return []rule{
		allow(unset(1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)),
		refuse(unix.EBUSY, set(1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)),
	}
}

// supervisedSendtoRules let a send without an address go where the socket is connected to,
// which the supervisor has seen. The address is a pointer: all its bits count.
func supervisedSendtoRules() []rule {
	return []rule{
		refuse(unix.EACCES, set(3, unix.MSG_FASTOPEN)),
		allow(unset(3, unix.MSG_FASTOPEN), null(4)),
		notify(unset(3, unix.MSG_FASTOPEN), pointer(4)),
	}
}

// supervisedMessageRules: whether a message has an address, and control data that re-aims
// it, lies behind a pointer. The flags are at index.
func supervisedMessageRules(index uint) []rule {
	return []rule{
		refuse(unix.EACCES, set(index, unix.MSG_FASTOPEN)),
		notify(unset(index, unix.MSG_FASTOPEN)),
	}
}

// sourceRoutes are the options that send a packet elsewhere than to the address that the
// supervisor has seen: through the hops of a source route (IP_OPTIONS, linux/in.h).
// IP_TRANSPARENT needs a capability.
var sourceRoutes = refusedOptions{unix.SOL_IP, unix.EPERM, []uint32{unix.IP_OPTIONS}}

// sourceRoutes6 are the same of IPv6 (linux/in6.h). A routing header replaces the
// destination until its last hop (types 2 and 4 in Linux 6.18, net/ipv6/exthdrs.c), and
// needs no capability. It comes by itself (IPV6_RTHDR), among packed options
// (IPV6_2292PKTOPTIONS) or with the lease of a flow label, which sends then name
// (IPV6_FLOWLABEL_MGR, net/ipv6/ip6_flowlabel.c). Hop-by-hop and destination options and
// the next hop are refused with them, in both generations of their numbers (RFC 2292,
// RFC 3542); Linux asks for a capability or does not know them.
var sourceRoutes6 = refusedOptions{unix.SOL_IPV6, unix.EPERM, []uint32{
	unix.IPV6_2292HOPOPTS, unix.IPV6_2292DSTOPTS, unix.IPV6_2292RTHDR, unix.IPV6_2292PKTOPTIONS,
	ipv6NextHop, ipv6FlowLabel, unix.IPV6_HOPOPTS, unix.IPV6_RTHDRDSTOPTS, unix.IPV6_RTHDR, unix.IPV6_DSTOPTS,
}}

// Options of linux/in6.h that x/sys has no name for.
const (
	ipv6NextHop   = 9  // IPV6_NEXTHOP
	ipv6FlowLabel = 32 // IPV6_FLOWLABEL_MGR
)
