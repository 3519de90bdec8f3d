package supervise

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is this process's copy of a descriptor of the server: the same socket, with the
// same state, whatever the server's number for it stands for by now.
type socket struct {
	fd       int
	domain   int // SO_DOMAIN
	kind     int // SO_TYPE
	protocol int // SO_PROTOCOL
}

// openSocket asks the kernel what a copied descriptor is: ENOTSOCK when it is no socket.
func openSocket(fd int) (s socket, errno unix.Errno) {
	s.fd = fd
	for _, o := range [...]struct {
		name int
		into *int
	}{{unix.SO_DOMAIN, &s.domain}, {unix.SO_TYPE, &s.kind}, {unix.SO_PROTOCOL, &s.protocol}} {
		value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.name)
		if err != nil {
			return s, errnoOf(err)
		}
		*o.into = value
	}
	return s, 0
}

func (s socket) internet() bool { return s.domain == unix.AF_INET || s.domain == unix.AF_INET6 }

// tcp and udp leave out what has the same type and goes its own ways: Multipath TCP, SMC,
// ping sockets, UDP-Lite.
func (s socket) tcp() bool {
	return s.internet() && s.kind == unix.SOCK_STREAM && s.protocol == unix.IPPROTO_TCP
}

func (s socket) udp() bool {
	return s.internet() && s.kind == unix.SOCK_DGRAM && s.protocol == unix.IPPROTO_UDP
}

// route tells whether it is the netlink socket that resolvers ask for addresses.
func (s socket) route() bool {
	return s.domain == unix.AF_NETLINK && s.protocol == unix.NETLINK_ROUTE
}

// blocks tells whether the server wants to wait: neither the open file nor the call says
// otherwise. A descriptor that cannot be asked does not wait.
func (s socket) blocks(flags int) bool {
	if flags&unix.MSG_DONTWAIT != 0 {
		return false
	}
	status, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFL, 0)
	return err == nil && status&unix.O_NONBLOCK == 0
}

// limit is when a call that begins now times out (SO_SNDTIMEO); zero for never.
func (s socket) limit() time.Time {
	t, errno := s.sendTimeout()
	if errno != 0 || t == (unix.Timeval{}) {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(t.Nano()))
}

func (s socket) sendTimeout() (t unix.Timeval, errno unix.Errno) {
	size := uint32(unsafe.Sizeof(t))
	_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_SNDTIMEO,
		uintptr(unsafe.Pointer(&t)), uintptr(unsafe.Pointer(&size)), 0)
	return t, errno
}

// connectWithin connects a blocking socket and waits no longer than the time, which may be
// shorter than the timer's resolution. There is no flag for it: the socket's time-out is
// changed for the one call. The server's threads that could see it wait for this call.
func (s socket) connectWithin(raw []byte, wait time.Duration) unix.Errno {
	kept, errno := s.sendTimeout()
	if errno != 0 {
		return errno
	}
	short := unix.NsecToTimeval(int64(wait))
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &short); err != nil {
		return errnoOf(err)
	}
	result := s.connect(raw)
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &kept); err != nil {
		return errnoOf(err)
	}
	return result
}

// connect makes the call itself.
func (s socket) connect(raw []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(s.fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	return errno
}

func (s socket) bind(raw []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(s.fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	return errno
}

// name is the socket's own address with the unspecified one as a loopback address, bound as
// it is, and peer the one that it is connected to.
func (s socket) name() (destination, unix.Errno) {
	at, errno := s.bound()
	return newDestination(at.Addr(), at.Port(), 0), errno
}

func (s socket) bound() (netip.AddrPort, unix.Errno) { return s.address(unix.SYS_GETSOCKNAME) }
func (s socket) peer() (netip.AddrPort, unix.Errno)  { return s.address(unix.SYS_GETPEERNAME) }

func (s socket) address(number uintptr) (netip.AddrPort, unix.Errno) {
	var raw [addressMost]byte
	size := uint32(len(raw))
	_, _, errno := unix.Syscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return netip.AddrPort{}, errno
	}
	at, _, errno := parseInternet(s.domain, s.kind, raw[:min(int(size), len(raw))])
	return unmapped(at), errno
}

// connected tells whether the socket has a peer.
func (s socket) connected() bool {
	var raw [addressMost]byte
	size := uint32(len(raw))
	_, _, errno := unix.Syscall(unix.SYS_GETPEERNAME, uintptr(s.fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(&size)))
	return errno == 0
}

// tcpClosed is the state of a TCP socket that has not begun to connect (TCP_CLOSE,
// net/tcp_states.h).
const tcpClosed = 7

// idle tells whether a TCP socket has not begun to connect.
func (s socket) idle() bool {
	// The state is the first byte of struct tcp_info; the kernel writes as much as fits.
	value, err := unix.GetsockoptInt(s.fd, unix.SOL_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	var info [4]byte
	binary.NativeEndian.PutUint32(info[:], uint32(value)) //nolint:gosec // four bytes
	return info[0] == tcpClosed
}

// zeroCopy tells whether MSG_ZEROCOPY means something on the socket (SO_ZEROCOPY).
func (s socket) zeroCopy() bool {
	on, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY)
	return err != nil || on != 0
}

// cookie is the socket's number among all (SO_COOKIE, Linux 4.12).
func (s socket) cookie() (uint64, unix.Errno) {
	value, err := unix.GetsockoptUint64(s.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return value, errnoOf(err)
}

// send sends one message without waiting and without a signal. All slices may be empty;
// an empty address is none.
func (s socket) send(address, content, control []byte, flags int) (int, unix.Errno) {
	var vector unix.Iovec
	var header unix.Msghdr
	if len(content) > 0 {
		vector.Base = &content[0]
	}
	vector.SetLen(len(content))
	header.Iov = &vector
	header.SetIovlen(1)
	if len(address) > 0 {
		header.Name, header.Namelen = &address[0], uint32(len(address)) //nolint:gosec // at most 128
	}
	if len(control) > 0 {
		header.Control = &control[0]
		header.SetControllen(len(control))
	}
	flags |= unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	for {
		n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&header)), uintptr(flags))
		if errno == unix.EINTR {
			continue // a signal of this process's own runtime
		}
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
}
