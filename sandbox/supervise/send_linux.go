package supervise

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// sendto answers sendto(2), which the filter notifies when it has an address.
func (s *supervisor) sendto(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return unread(errno)
	}
	m := &message{named: c.args[4] != 0, flags: c.number(3)}
	m.add(c.args[1], int(min(c.args[2], lengthMost)))
	if m.named {
		var errno unix.Errno
		if m.name, errno = c.readAddress(c.args[4], c.number(5)); errno != 0 {
			return unread(errno)
		}
	}
	return s.send(c, m)
}

// sendmsg answers sendmsg(2).
func (s *supervisor) sendmsg(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return unread(errno)
	}
	var h header
	if errno := c.task.read(c.args[1], bytesOf(&h)); errno != 0 {
		return unread(errno)
	}
	m, errno := c.readMessage(&h, c.number(2))
	if errno != 0 {
		return result(errno)
	}
	return s.send(c, m)
}

// send sends one message on the call's socket.
func (s *supervisor) send(c *call, m *message) outcome {
	if !s.listener.valid(c.id) {
		return gone()
	}
	if m.flags&unix.MSG_FASTOPEN != 0 {
		return refused("send", "a connection that begins with data", egress.Decision{Rule: "MSG_FASTOPEN connects while it sends"})
	}
	if m.flags&unix.MSG_ZEROCOPY != 0 && c.socket.zeroCopy() {
		// What is sent is a copy, so there is nothing to say when the memory is free again.
		// A program that is told that there is no room for that sends an ordinary message.
		return result(unix.ENOBUFS)
	}
	k := c.socket
	switch {
	case k.tcp(): // takes no notice of an address
		m.named = false
	case k.domain == unix.AF_UNIX && k.kind == unix.SOCK_SEQPACKET: // nor does this
		m.named = false
	case k.domain == unix.AF_UNIX && k.kind == unix.SOCK_STREAM && len(m.name) > 0:
		if k.connected() {
			return result(unix.EISCONN)
		}
		return result(unix.EOPNOTSUPP)
	case k.domain == unix.AF_UNIX:
		m.named = len(m.name) > 0
	case k.udp():
		if named, ok := family(m.name); ok && named == unix.AF_UNSPEC {
			m.readUnspecified(k.domain)
		}
	case k.route() && s.Egress != nil:
		return s.sendRoute(c, m)
	default:
		return refused("send", "a socket of another kind", egress.Decision{Rule: "only TCP, UDP and Unix sockets send"})
	}
	if k.kind == unix.SOCK_STREAM {
		return s.sendStream(c, m)
	}
	return s.sendWhole(c, m)
}

// readUnspecified does with AF_UNSPEC what the kernel does: an IPv4 socket takes it for
// AF_INET, an IPv6 socket for no address (udp_sendmsg, udpv6_sendmsg, Linux 6.18).
func (m *message) readUnspecified(domain int) {
	if domain == unix.AF_INET6 {
		m.named, m.name = false, nil
		return
	}
	copy(m.name, anyAddress(unix.AF_INET)[:familySize])
}

// sendWhole sends a datagram, or a packet of a Unix socket.
func (s *supervisor) sendWhole(c *call, m *message) outcome {
	if m.length > contentMost {
		return result(unix.EMSGSIZE)
	}
	if m.named && c.socket.domain == unix.AF_UNIX {
		return s.sendUnix(c, m)
	}
	return s.sendContent(c, m, func(content, control []byte) outcome {
		if m.named {
			return s.sendDatagram(c, m, content, control)
		}
		return s.sent(c, m, nil, content, control)
	})
}

// sendContent reads the content and the control data, makes sure that it was the caller's
// memory that was read, and sends.
func (s *supervisor) sendContent(c *call, m *message, send func(content, control []byte) outcome) outcome {
	control, errno := c.makeControl(m, withRights)
	if errno == unix.EPERM {
		return refusedControl()
	}
	if errno != 0 {
		return result(errno)
	}
	defer control.close()
	content, errno := s.gather(c, m)
	if errno != 0 {
		return result(errno)
	}
	if !s.listener.valid(c.id) {
		return gone()
	}
	return send(content, control.data)
}

func refusedControl() outcome {
	o := refused("send", "a control message", egress.Decision{
		Rule: "the message may say how it is sent, but not by which way, or as whom",
	})
	o.answer.errno = unix.EPERM
	return o
}

// sent sends a datagram to an address, or to the peer of the socket.
func (s *supervisor) sent(c *call, m *message, address, content, control []byte) outcome {
	n, errno := c.socket.send(address, content, control, m.flags&allowedFlags)
	if errno == unix.EAGAIN {
		return s.full(c, m)
	}
	if errno != 0 {
		return result(errno)
	}
	return returned(int64(n))
}

// full waits until the socket takes a datagram, and begins anew: nothing of it was sent, so
// nothing is kept.
func (s *supervisor) full(c *call, m *message) outcome {
	if !c.socket.blocks(m.flags) {
		return result(unix.EAGAIN)
	}
	if m.began.IsZero() {
		m.began, m.limit = time.Now(), c.socket.limit()
	}
	stop := func(why stopped) answer {
		if why == stoppedByLimit {
			return answer{errno: unix.EAGAIN}
		}
		return interruption(why, m.limit)
	}
	// A socket file that is not its peer says nothing when its queue has room again.
	tells := !m.named || c.socket.domain != unix.AF_UNIX
	return parked(wake{writable: tells, after: m.pause(), limit: m.limit}, stop, func() outcome { return s.send(c, m) })
}

// pause is the time until the next try: short at first, for a receiver that is at it.
func (m *message) pause() time.Duration {
	m.tries++
	return min(retryFirst<<min(m.tries/4, 6), retryMost)
}

// sendStream sends a piece of a stream, as much as the socket takes, and goes on with the
// rest: after other calls had their turn, or when the socket can take more. The content
// stays in the server's memory until it is its turn.
func (s *supervisor) sendStream(c *call, m *message) outcome {
	how := withRights
	if m.sent > 0 {
		how = withoutRights
	}
	control, errno := c.makeControl(m, how)
	if errno == unix.EPERM {
		return m.partly(refusedControl())
	}
	if errno != 0 {
		return m.partly(result(errno))
	}
	defer control.close()
	content, fault := s.gather(c, m)
	if fault != 0 && len(content) == 0 {
		return m.partly(result(fault))
	}
	if !s.listener.valid(c.id) {
		return gone()
	}
	flags := m.flags & allowedFlags
	if m.sent+len(content) < m.length {
		flags &^= unix.MSG_OOB | unix.MSG_EOR // they belong to the last byte
	}
	n, errno := c.socket.send(nil, content, control.data, flags)
	m.sent += n
	switch {
	case errno == unix.EAGAIN:
		return s.streamFull(c, m)
	case errno != 0:
		c.signalsPipe = m.flags&unix.MSG_NOSIGNAL == 0 && m.sent == 0
		return m.partly(result(errno))
	case fault != 0 && n == len(content), m.sent == m.length:
		return returned(int64(m.sent))
	case n < len(content):
		return s.streamFull(c, m)
	}
	return s.parkStream(c, m)
}

// partly returns what was sent before something went wrong, if anything was.
func (m *message) partly(o outcome) outcome {
	if m.sent > 0 {
		o.answer = answer{value: int64(m.sent)}
	}
	return o
}

func (s *supervisor) streamFull(c *call, m *message) outcome {
	if !c.socket.blocks(m.flags) {
		return m.partly(result(unix.EAGAIN))
	}
	return s.parkStream(c, m)
}

func (s *supervisor) parkStream(c *call, m *message) outcome {
	if m.began.IsZero() {
		m.began, m.limit = time.Now(), c.socket.limit()
	}
	stop := func(why stopped) answer {
		switch {
		case m.sent > 0:
			return answer{value: int64(m.sent)}
		case why == stoppedByLimit:
			return answer{errno: unix.EAGAIN}
		}
		return interruption(why, m.limit)
	}
	return parked(wake{writable: true, limit: m.limit}, stop, func() outcome { return s.sendStream(c, m) })
}

// sendRoute sends a request of a resolver or a language's runtime for the machine's addresses
// and routes. With an address the kernel would hold a request that changes something to
// this process's capabilities only; without one it also asks for those of whoever made the
// socket (netlink_ns_capable, net/netlink/af_netlink.c, Linux 6.18), and it goes to the kernel.
func (s *supervisor) sendRoute(c *call, m *message) outcome {
	if m.named {
		var to unix.RawSockaddrNetlink
		if len(m.name) < int(unsafe.Sizeof(to)) {
			return result(unix.EINVAL)
		}
		copy(bytesOf(&to), m.name)
		if to.Family != unix.AF_NETLINK {
			return result(unix.EINVAL)
		}
		if to.Pid != 0 || to.Groups != 0 {
			return refused("send", "a message to another program by netlink", egress.Decision{Rule: "only the kernel may be asked"})
		}
		m.named = false
	}
	if len(m.control) > 0 {
		return refusedControl()
	}
	return s.sendWhole(c, m)
}
