package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// routes asks the kernel where a packet to an address would go (RTM_GETROUTE,
// rtnetlink(7)), in the moment in which it matters: what is this machine's are routes of the
// type local, which the addresses of its interfaces have, and whole networks where somebody
// made such a route. A list of addresses kept up to date would know less: routes, and what
// has changed since.
//
// A question names no interface, so it is answered by the main tables: what is an address of
// this machine within a VRF alone is not told apart.
type routes struct {
	mu sync.Mutex
	fd int    // a socket, kept since making one costs more than asking; -1 for none
	at uint32 // number of the last question
}

// openRoutes returns an asker that is to be closed.
func openRoutes() (*routes, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	return &routes{fd: fd}, nil
}

// close gives the socket back. Who asks later, gets one of his own.
func (r *routes) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd >= 0 {
		unix.Close(r.fd)
	}
	r.fd = -1
}

// own is an [egress.Own]. It costs some microseconds.
func (r *routes) own(addr netip.Addr) (string, error) {
	kind, err := r.ask(addr)
	if err != nil {
		return "", fmt.Errorf("asking the kernel for a route: %w", err)
	}
	switch kind {
	case unix.RTN_UNICAST, unix.RTN_UNREACHABLE, unix.RTN_BLACKHOLE, unix.RTN_PROHIBIT, unix.RTN_THROW:
		return "", nil
	case unix.RTN_LOCAL:
		return egress.OfThisMachine, nil
	}
	return "an address of several machines, this one among them", nil // broadcast, anycast, multicast
}

// ask returns the type of the route to an address (RTN_*, linux/rtnetlink.h).
func (r *routes) ask(addr netip.Addr) (byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd < 0 {
		own, err := openRoutes()
		if err != nil {
			return 0, err
		}
		defer own.close()
		return own.ask(addr)
	}
	r.at++
	kind, err := askRoute(r.fd, r.at, addr)
	if err != nil {
		// What is left in its queue must not be taken for the answer to the next question.
		unix.Close(r.fd)
		r.fd = -1
	}
	return kind, err
}

// ReachRoutes tells whether this process can ask which addresses are this machine's, as
// every supervisor with rules for the Internet has to. The error is a [*ProbeError].
func ReachRoutes() error {
	r := routes{fd: -1}
	// The answer depends on whether the interface is up. That there is one is what counts.
	if _, err := r.own(netip.AddrFrom4([4]byte{127, 0, 0, 1})); err != nil {
		return &ProbeError{Need: "to know which addresses are this machine's (rtnetlink(7))", Have: notAllowed(err), Err: err}
	}
	return nil
}

// askRoute sends a question and reads its answer.
func askRoute(fd int, number uint32, addr netip.Addr) (byte, error) {
	if err := unix.Sendto(fd, routeQuestion(addr, number), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	// The kernel answers within the call, so there is nothing to wait for.
	var reply [4096]byte
	n, from, err := unix.Recvfrom(fd, reply[:], unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	if kernel, is := from.(*unix.SockaddrNetlink); !is || kernel.Pid != 0 {
		return 0, errors.New("the answer is not the kernel's")
	}
	return readRoute(reply[:n], number, addr)
}

const (
	netlinkHeader  = int(unsafe.Sizeof(unix.NlMsghdr{}))
	routeHeader    = int(unsafe.Sizeof(unix.RtMsg{}))
	attributeHead  = int(unsafe.Sizeof(unix.RtAttr{}))
	netlinkErrorAt = netlinkHeader // an int, negative
)

// routeQuestion is the message that asks for the route to an address. Its answer repeats the number.
func routeQuestion(addr netip.Addr, number uint32) []byte {
	raw := addr.AsSlice()
	size := netlinkHeader + routeHeader + attributeHead + len(raw)
	out := make([]byte, size)
	head := unix.NlMsghdr{Len: uint32(size), Type: unix.RTM_GETROUTE, Flags: unix.NLM_F_REQUEST, Seq: number} //nolint:gosec // 60 at most
	route := unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(addr.BitLen())}                                  //nolint:gosec // 128 at most
	if addr.Is6() {
		route.Family = unix.AF_INET6
	}
	attribute := unix.RtAttr{Len: uint16(attributeHead + len(raw)), Type: unix.RTA_DST} //nolint:gosec // 20 at most
	at := copy(out, bytesOf(&head))
	at += copy(out[at:], bytesOf(&route))
	at += copy(out[at:], bytesOf(&attribute))
	copy(out[at:], raw)
	return out
}

// readRoute reads the answer to a question. Without a route, an address is nobody's here.
func readRoute(reply []byte, number uint32, addr netip.Addr) (byte, error) {
	var head unix.NlMsghdr
	if len(reply) < netlinkHeader+routeHeader || copy(bytesOf(&head), reply) < netlinkHeader || head.Seq != number {
		return 0, errors.New("the answer is not to the question")
	}
	switch head.Type {
	case unix.RTM_NEWROUTE:
		var route unix.RtMsg
		copy(bytesOf(&route), reply[netlinkHeader:])
		return route.Type, nil
	case unix.NLMSG_ERROR:
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(reply[netlinkErrorAt:]))) //nolint:gosec // an int to the kernel
		switch {
		case errno == unix.ENETUNREACH, errno == unix.EHOSTUNREACH:
			return unix.RTN_UNREACHABLE, nil
		case addr.Is6() && (errno == unix.EOPNOTSUPP || errno == unix.EAFNOSUPPORT):
			return unix.RTN_UNREACHABLE, nil // a kernel without IPv6 has no address of it
		case errno == 0:
			return 0, errors.New("it says nothing")
		}
		return 0, errno
	}
	return 0, fmt.Errorf("the answer is of type %d", head.Type)
}
