package seccomp

import "golang.org/x/sys/unix"

// supervisedRules decide what sockets do under a supervisor. Whatever leads a socket to an
// address that the supervisor has not seen waits for it, or is refused: the supervisor acts
// on its own copy of the address, and never lets one of these calls go on.
//
// bind(2) waits too: a datagram port or an abstract name takes what others send, and which
// socket files are the jail's own the supervisor only knows if it made them. accept(2) leads
// nowhere.
func supervisedRules() ruleSet {
	return ruleSet{
		"bind":       {notify()},
		"connect":    {notify()},
		"listen":     {notify()},
		"sendto":     supervisedSendtoRules(),
		"sendmsg":    supervisedMessageRules(2),
		"sendmmsg":   supervisedMessageRules(3),
		"setsockopt": optionRules(delayedConnect, routes(), routes6()),
		"seccomp":    listenerRules(),
		"prctl":      parentRules(),
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

// parentRules refuse to change the signal that comes with the parent's end: it ties the server
// to its supervisor (PR_SET_PDEATHSIG, prctl(2)).
func parentRules() []rule {
	rules := []rule{refuse(unix.EPERM, word(0, unix.PR_SET_PDEATHSIG))}
	for _, other := range others(0, 32, unix.PR_SET_PDEATHSIG) {
		rules = append(rules, allow(other))
	}
	return rules
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

// routes are the options that send a packet elsewhere than to the address that the supervisor
// has seen: through the hops of a source route (IP_OPTIONS, linux/in.h), or as the report of
// a membership, whose group the server chooses freely (IGMP; ip(7)). IP_TRANSPARENT needs a
// capability.
func routes() refusedOptions {
	return refusedOptions{unix.SOL_IP, unix.EPERM, append([]uint32{
		unix.IP_OPTIONS, unix.IP_ADD_MEMBERSHIP, unix.IP_UNBLOCK_SOURCE, unix.IP_BLOCK_SOURCE,
		unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_MSFILTER,
	}, memberships[:]...)}
}

// memberships are the options of both families that report a group (MCAST_* of linux/in.h).
var memberships = [...]uint32{
	mcastJoinGroup, mcastBlockSource, mcastUnblockSource, mcastLeaveGroup, mcastJoinSourceGroup, mcastLeaveSourceGroup, mcastFilter,
}

// routes6 are the same of IPv6 (linux/in6.h). A routing header replaces the
// destination until its last hop (types 2 and 4 in Linux 6.18, net/ipv6/exthdrs.c), and
// needs no capability. It comes by itself (IPV6_RTHDR), among packed options
// (IPV6_2292PKTOPTIONS) or with the lease of a flow label, which sends then name
// (IPV6_FLOWLABEL_MGR, net/ipv6/ip6_flowlabel.c). Hop-by-hop and destination options and
// the next hop are refused with them, in both generations of their numbers (RFC 2292,
// RFC 3542); Linux asks for a capability or does not know them.
func routes6() refusedOptions {
	return refusedOptions{unix.SOL_IPV6, unix.EPERM, append([]uint32{
		unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST,
		unix.IPV6_2292HOPOPTS, unix.IPV6_2292DSTOPTS, unix.IPV6_2292RTHDR, unix.IPV6_2292PKTOPTIONS,
		ipv6NextHop, ipv6FlowLabel, unix.IPV6_HOPOPTS, unix.IPV6_RTHDRDSTOPTS, unix.IPV6_RTHDR, unix.IPV6_DSTOPTS,
	}, memberships[:]...)}
}

// Options of linux/in.h and linux/in6.h that x/sys has no name for.
const (
	mcastJoinGroup        = 42
	mcastBlockSource      = 43
	mcastUnblockSource    = 44
	mcastLeaveGroup       = 45
	mcastJoinSourceGroup  = 46
	mcastLeaveSourceGroup = 47
	mcastFilter           = 48

	ipv6NextHop   = 9  // IPV6_NEXTHOP
	ipv6FlowLabel = 32 // IPV6_FLOWLABEL_MGR
)
