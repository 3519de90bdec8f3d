package supervise

import (
	"cmp"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// take copies the socket that is the call's first argument. An errno ends the call.
func (s *supervisor) take(c *call) unix.Errno {
	fds, errno := c.task.copies(c.number(0))
	if errno != 0 {
		return errno
	}
	c.socket.fd = fds[0]
	c.socket, errno = openSocket(fds[0])
	return errno
}

// readAddress copies an address, as move_addr_to_kernel does (net/socket.c).
func (c *call) readAddress(at uint64, size int) ([]byte, unix.Errno) {
	if size < 0 || size > addressMost {
		return nil, unix.EINVAL
	}
	raw := make([]byte, size)
	return raw, c.task.read(at, raw)
}

// connect answers connect(2).
func (s *supervisor) connect(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return unread(errno)
	}
	raw, errno := c.readAddress(c.args[1], c.number(2))
	if errno != 0 {
		return unread(errno)
	}
	if !s.listener.valid(c.id) {
		return gone()
	}
	switch {
	case c.socket.domain == unix.AF_UNIX:
		return s.connectUnix(c, raw)
	case c.socket.tcp():
		return s.connectTCP(c, raw)
	case c.socket.udp():
		return s.connectUDP(c, raw)
	}
	return refused("connect", "a socket of another kind", egress.Decision{Rule: "only TCP, UDP and Unix sockets connect"})
}

// decideStream and decideDatagram refuse everything when the plan has no egress.
func (s *supervisor) decideStream(to destination) egress.Decision {
	if s.Egress == nil {
		return noNetwork
	}
	return s.Egress.Stream(to.at)
}

func (s *supervisor) decideDatagram(to destination) egress.Decision {
	if s.Egress == nil {
		return noNetwork
	}
	return s.Egress.Datagram(to.at)
}

func (s *supervisor) connectTCP(c *call, raw []byte) outcome {
	if named, ok := family(raw); ok && named == unix.AF_UNSPEC {
		return result(c.socket.connect(unspecified()))
	}
	to, errno := parseDestination(c.socket.domain, c.socket.kind, raw)
	if errno != 0 {
		return result(errno)
	}
	d := s.decideStream(to)
	a := &attempt{s: s, c: c, raw: to.sockaddr(c.socket.domain), near: to.loopback()}
	switch d.Verdict {
	case egress.Direct:
		a.again = func() egress.Decision { return s.decideStream(to) }
		a.to = to
		return a.begin()
	case egress.Resolver:
		a.redirect(s.Stub.Addr(to.at.Addr()))
		return a.begin()
	case egress.Relayed:
		a.redirect(s.Relay.Addr(to.at.Addr()))
		// A socket that has begun to connect goes on with that, and is announced already.
		if c.socket.idle() {
			a.begun = func() { s.announce(c, to) }
		}
		return a.begin()
	default:
		return refused("connect", "tcp "+to.at.String(), d)
	}
}

// announce tells the relay for whom the socket has connected to it.
func (s *supervisor) announce(c *call, to destination) {
	source, errno := c.socket.name()
	if errno != 0 {
		return // the relay waits for the announcement in vain, and resets the connection
	}
	s.Relay.Expect(source.at, to.at, egress.Client{PID: c.task.process(), Program: c.task.program()})
}

// nearWait is the wait in a connect that is expected to answer at once: shorter than any
// timer, which makes it one tick of the kernel's clock.
const nearWait = time.Microsecond

// slowTime is how long nothing is expected to answer at once after something has not: a
// server on this machine that lets nobody in any more would cost a tick for each connect.
const slowTime = time.Second

func (s *supervisor) slow() bool { return time.Since(s.slowSince) < slowTime }

// connectNear connects to something on this machine, without leaving the loop.
func (s *supervisor) connectNear(k socket, raw []byte) unix.Errno {
	errno := k.connectWithin(raw, nearWait)
	if errno == unix.EINPROGRESS || errno == unix.EAGAIN {
		s.slowSince = time.Now()
	}
	return errno
}

// attempt is a TCP connect. It never waits in the call: nothing but SIGKILL ends the wait of
// a notified thread, so the signals that would interrupt it are looked for here.
type attempt struct {
	s     *supervisor
	c     *call
	raw   []byte // where the socket connects
	near  bool   // this machine answers
	begun func() // called once, after the connection has begun; nil for nothing
	// again decides once more when the connection has begun: by then an address can have become
	// this machine's own. nil when nothing was decided about where it leads.
	again func() egress.Decision
	to    destination // what it decides on
	limit time.Time
	first unix.Errno // what the first call said: what a time-out returns
}

func (a *attempt) redirect(to netip.AddrPort) {
	d := newDestination(to.Addr(), to.Port(), 0)
	a.raw, a.near = d.sockaddr(a.c.socket.domain), true
}

func (a *attempt) begin() outcome {
	if !a.c.socket.blocks(0) {
		errno := a.c.socket.connect(a.raw)
		if o, refused := a.note(errno); refused {
			return o
		}
		return result(errno)
	}
	a.limit = a.c.socket.limit()
	return a.try()
}

// note tells that the connection has begun: it is there, or on its way. It reports true when
// the connection may not be, and is broken off.
func (a *attempt) note(errno unix.Errno) (outcome, bool) {
	if errno != 0 && errno != unix.EINPROGRESS && errno != unix.EINTR {
		return outcome{}, false
	}
	if a.begun != nil {
		a.begun()
		a.begun = nil
	}
	if a.again == nil {
		return outcome{}, false
	}
	d := a.again()
	a.again = nil
	if d.Verdict == egress.Direct {
		return outcome{}, false
	}
	o := refused("connect", "tcp "+a.to.at.String(), d)
	if errno := a.c.socket.connect(unspecified()); errno != 0 {
		// It cannot be left to the server: nothing is sent or received on it any more.
		_ = unix.Shutdown(a.c.socket.fd, unix.SHUT_RDWR)
	}
	return o, true
}

// try connects a blocking socket: at once when this machine answers, elsewhere when it
// would take the clock's tick to find out that nobody has answered yet.
func (a *attempt) try() outcome {
	if a.near && !a.s.slow() {
		return a.tried(a.s.connectNear(a.c.socket, a.raw))
	}
	// Two threads that connect one socket must not take each other's time-out for its own.
	cookie, errno := a.c.socket.cookie()
	if errno != 0 {
		return result(errno)
	}
	if _, taken := a.s.busy[cookie]; taken {
		return parked(wake{after: retryFirst, limit: a.limit}, a.stop, a.try)
	}
	a.s.busy[cookie], a.c.holds = struct{}{}, cookie
	return elsewhere(
		func() { errno = a.c.socket.connectWithin(a.raw, nearWait) },
		func() outcome {
			a.s.letGo(a.c)
			return a.tried(errno)
		})
}

// tried handles what a short wait gave. A second call on the same socket finds EALREADY.
// EINTR comes from signals of this process's own runtime.
func (a *attempt) tried(errno unix.Errno) outcome {
	if o, refused := a.note(errno); refused {
		return o
	}
	switch errno {
	case unix.EINTR:
		errno = unix.EINPROGRESS
	case unix.EINPROGRESS, unix.EALREADY:
	default:
		return result(errno)
	}
	if a.first == 0 {
		a.first = errno
	}
	// The socket is writable when it is connected or has failed. The call then finds which.
	return parked(wake{writable: true, limit: a.limit}, a.stop, a.finish)
}

// finish makes the call again on a socket that has connected or failed, which takes no time.
func (a *attempt) finish() outcome { return a.tried(a.c.socket.connectWithin(a.raw, nearWait)) }

func (a *attempt) stop(why stopped) answer {
	if why == stoppedByLimit {
		return answer{errno: cmp.Or(a.first, unix.EINPROGRESS)}
	}
	return interruption(why, a.limit)
}
