package supervise

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// listen answers listen(2). A TCP socket without a port would get one from the kernel, which
// nobody has granted. Unix sockets listen where the files of the jail are.
func (s *supervisor) listen(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return unread(errno)
	}
	if !s.listener.valid(c.id) {
		return gone()
	}
	k := c.socket
	switch {
	case k.domain == unix.AF_UNIX:
	case k.tcp():
		at, errno := k.bound()
		if errno != 0 {
			return result(errno)
		}
		if at.Port() == 0 {
			return refused("listen", "tcp without a port", egress.Decision{
				Rule: "the kernel would choose a port that no entry of network.listen names",
			})
		}
		if !slices.Contains(s.Listen, at.Port()) {
			port := strconv.Itoa(int(at.Port()))
			return refused("listen", "tcp "+at.String(), egress.Decision{
				Rule: "no entry of network.listen names port " + port, Hint: "add " + port + " to network.listen",
			})
		}
	case k.udp():
		return result(unix.EOPNOTSUPP)
	default:
		return refused("listen", "a socket of another kind", egress.Decision{Rule: "only TCP and Unix sockets listen"})
	}
	return result(errnoOf(unix.Listen(k.fd, c.number(1))))
}
