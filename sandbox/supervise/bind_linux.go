package supervise

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// socketMask keeps socket files that are made for the server to its user, as the jail's own
// mask does. It is the whole supervising process's.
const socketMask = 0o077

// bind answers bind(2). A name that others can send or connect to is a grant: TCP ports are
// network.listen's, and a datagram port or an abstract name would take what is meant for
// somebody else. Landlock holds only the first of them (before ABI 10).
func (s *supervisor) bind(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return result(errno)
	}
	raw, errno := c.readAddress(c.args[1], c.number(2))
	if errno != 0 {
		return result(errno)
	}
	if !s.listener.valid(c.id) {
		return gone()
	}
	switch {
	case c.socket.domain == unix.AF_UNIX:
		return s.bindUnix(c, raw)
	case c.socket.tcp(), c.socket.udp():
		return s.bindInternet(c, raw)
	case c.socket.route():
		return bindRoute(c, raw)
	}
	return refused("bind", "a socket of another kind", egress.Decision{Rule: "only TCP, UDP and Unix sockets are bound"})
}

// bindInternet gives a socket a source address, and a port when network.listen names it. Port
// 0 is one that the kernel picks, as it does for every client.
func (s *supervisor) bindInternet(c *call, raw []byte) outcome {
	at, scope, errno := parseInternet(c.socket.domain, c.socket.kind, raw)
	if errno != 0 {
		return result(errno)
	}
	port := strconv.Itoa(int(at.Port()))
	switch {
	case at.Port() == 0:
	case c.socket.udp():
		return refused("bind", "udp "+unmapped(at).String(), egress.Decision{
			Rule: "a port of its own would take datagrams that others send, and network.listen is for TCP",
		})
	case !slices.Contains(s.Listen, at.Port()):
		return refused("bind", "tcp "+unmapped(at).String(), egress.Decision{
			Rule: "no entry of network.listen names port " + port, Hint: "add " + port + " to network.listen",
		})
	}
	// Made anew, so the kernel cannot understand it otherwise.
	return result(c.socket.bind(destination{at: at, scope: scope}.sockaddr(c.socket.domain)))
}

// bindRoute gives the socket that resolvers ask for addresses its number. Groups would have
// the kernel send it what happens to the network.
func bindRoute(c *call, raw []byte) outcome {
	var name unix.RawSockaddrNetlink
	if len(raw) < int(unsafe.Sizeof(name)) {
		return result(unix.EINVAL)
	}
	copy(bytesOf(&name), raw)
	if name.Family != unix.AF_NETLINK {
		return result(unix.EINVAL)
	}
	if name.Groups != 0 {
		return refused("bind", "groups of netlink", egress.Decision{Rule: "the kernel may be asked, but does not report to the server"})
	}
	return result(c.socket.bind(bytesOf(&name)))
}

// bindUnix makes a socket file in one of the jail's own folders.
func (s *supervisor) bindUnix(c *call, raw []byte) outcome {
	nameless := egress.Decision{Rule: "an abstract name is everybody's, so the server could pose as a service of this machine"}
	if named, ok := family(raw); ok && named == unix.AF_UNIX && len(raw) == familySize {
		return refused("bind", "an abstract name that the kernel picks", nameless)
	}
	name, errno := parseUnix(raw)
	if errno != 0 {
		return result(errno)
	}
	if name.abstract {
		return refused("bind", name.String(), nameless)
	}
	folder, base := filepath.Split(name.path)
	switch {
	case base == "":
		return result(unix.EISDIR)
	case base == ".", base == "..":
		return result(unix.EADDRINUSE)
	case folder == "":
		folder = "."
	}
	return s.inFolder(c, folder, func() outcome { return s.bindFile(c, base) })
}

// inFolder opens the folder of a socket file as the task sees it and goes on.
func (s *supervisor) inFolder(c *call, folder string, onward func() outcome) outcome {
	looked := func(errno unix.Errno) outcome {
		if !s.listener.valid(c.id) {
			return gone()
		}
		if errno != 0 {
			return result(errno)
		}
		return onward()
	}
	if errno := s.aim(c, folder, resolveCached); errno != unix.EAGAIN {
		return looked(errno)
	}
	var errno unix.Errno
	return elsewhere(
		func() { errno = s.aim(c, folder, 0) },
		func() outcome { return looked(errno) })
}

// bindFile binds through the opened folder, which stays the one that was looked at.
func (s *supervisor) bindFile(c *call, base string) outcome {
	real, _, errno := realPath(c.target)
	if errno != 0 {
		return result(errno)
	}
	if !s.Unix.own(real + "/" + base) {
		return refused("bind", "unix "+strings.TrimSuffix(real, "/")+"/"+base, egress.Decision{
			Rule: "sockets are made in the private home and the temporary folder alone",
		})
	}
	address := unixAddress("/proc/self/fd/" + strconv.Itoa(c.target) + "/" + base)
	if len(address) > unixSize {
		return result(unix.EINVAL)
	}
	return result(c.socket.bind(address))
}
