package supervise

import (
	"bytes"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// connectUDP connects a datagram socket, which sends nothing and takes no time. What is
// sent on a connected socket without an address is not notified, so a socket is only ever
// connected to what is allowed.
func (s *supervisor) connectUDP(c *call, raw []byte) outcome {
	if named, ok := family(raw); ok && named == unix.AF_UNSPEC {
		return result(c.socket.connect(unspecified()))
	}
	to, errno := parseDestination(c.socket.domain, c.socket.kind, raw)
	if errno != 0 {
		return result(errno)
	}
	d := s.decideDatagram(to)
	switch d.Verdict {
	case egress.Direct:
		loosen(c.socket)
		errno := c.socket.connect(to.sockaddr(c.socket.domain))
		// By now the address can have become this machine's own.
		if d := s.decideDatagram(to); errno == 0 && d.Verdict != egress.Direct {
			if errno := c.socket.connect(unspecified()); errno != 0 {
				_ = unix.Shutdown(c.socket.fd, unix.SHUT_RDWR)
			}
			return refused("connect", "udp "+to.at.String(), d)
		}
		return result(errno)
	case egress.Resolver:
		loosen(c.socket)
		at := s.Stub.Addr(to.at.Addr())
		return result(c.socket.connect(newDestination(at.Addr(), at.Port(), 0).sockaddr(c.socket.domain)))
	default:
		if s.Egress != nil {
			if errno, pretended := pretend(c.socket, to); pretended {
				return result(errno)
			}
		}
		return refused("connect", "udp "+to.at.String(), d)
	}
}

// pretend answers a route probe. Resolvers connect a datagram socket to every address of a
// name and read the socket's own address, to sort them (RFC 6724, section 6): refusing
// would change the order, allowing would open the way out. The socket gets the source
// address that it would have had, and no peer: sending fails with EDESTADDRREQ. Where no
// route leads, the kernel's errno says so.
//
// An earlier peer is taken away, or what the program sends to the new one would go there.
//
// It reports false for a socket that has a port of its own, as no probe has. Then the call
// is refused, and reported.
func pretend(child socket, to destination) (unix.Errno, bool) {
	source, errno := sourceFor(child.domain, to)
	if errno != 0 {
		unrouted(child)
		return errno, true
	}
	if child.connect(unspecified()) != 0 {
		return 0, false
	}
	source.at = netip.AddrPortFrom(source.at.Addr(), 0)
	return 0, child.bind(source.sockaddr(child.domain)) == 0
}

// unrouted leaves a socket as the kernel does whose connect finds no route: with a port, and
// without a source address from earlier (inet_dgram_connect, net/ipv4/af_inet.c, Linux 6.18).
func unrouted(child socket) {
	if name, errno := child.bound(); errno == 0 && name.Port() == 0 {
		_ = child.bind(anyAddress(child.domain)) // the errno of the connect is what counts
	}
}

// sourceFor asks the kernel for the source address of what would be sent, with a socket of
// this process that sends nothing.
func sourceFor(domain int, to destination) (destination, unix.Errno) {
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return destination{}, errnoOf(err)
	}
	defer unix.Close(fd)
	probe := socket{fd: fd, domain: domain, kind: unix.SOCK_DGRAM, protocol: unix.IPPROTO_UDP}
	if errno := probe.connect(to.sockaddr(domain)); errno != 0 {
		return destination{}, errno
	}
	source, errno := probe.name()
	source.scope = to.scope
	return source, errno
}

// loosen undoes what pretend did to a socket whose association was dissolved since: its
// source address stays, and would be used for a peer that it does not fit. An address
// without a port is what only that leaves behind.
func loosen(child socket) {
	name, errno := child.bound()
	if errno == 0 && name.Addr().IsValid() && !name.Addr().IsUnspecified() && name.Port() == 0 {
		// Where it fails, the connect that follows says why.
		_ = child.bind(anyAddress(child.domain))
	}
}

// sendDatagram sends a message with an address on a UDP socket. The content is in
// s.content until the next call.
func (s *supervisor) sendDatagram(c *call, m *message, content, control []byte) outcome {
	to, errno := parseDestination(c.socket.domain, c.socket.kind, m.name)
	if errno != 0 {
		return result(errno)
	}
	d := s.decideDatagram(to)
	switch d.Verdict {
	case egress.Direct:
		return s.sent(c, m, to.sockaddr(c.socket.domain), content, control)
	case egress.Resolver:
		return s.sendQuery(c, m, to, content)
	default:
		return refused("send", "udp "+to.at.String(), d)
	}
}

// sendQuery sends a name query. On a socket that is connected to the stub it goes there.
// Else the client takes answers from the name server only that it asked (musl), so the stub
// vets the query, and what it makes of it goes to that server from the server's own socket.
// That takes as long as the name takes to resolve, so the client does not wait for it: as
// far as it can tell, the query is on its way.
func (s *supervisor) sendQuery(c *call, m *message, to destination, content []byte) outcome {
	if peer, errno := c.socket.peer(); errno == 0 && peer == unmapped(s.Stub.Addr(to.at.Addr())) {
		return s.sent(c, m, nil, content, nil)
	}
	if !slices.ContainsFunc(s.Servers, func(server netip.AddrPort) bool { return unmapped(server) == to.at }) {
		return refused("send", "udp "+to.at.String(), egress.Decision{
			Rule: "names are asked for at the name servers of this machine only",
			Hint: `add "` + to.at.String() + `" to network.egress`,
		})
	}
	select {
	case s.queries <- struct{}{}:
	default:
		return s.full(c, m)
	}
	fd, err := unix.FcntlInt(uintptr(c.socket.fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		<-s.queries
		return result(unix.ENOBUFS)
	}
	own, query := c.socket, bytes.Clone(content)
	own.fd = fd
	denial := *refused("dns", "udp "+to.at.String(), egress.Decision{Rule: "it is no name query"}).denial
	s.complete(c, &denial)
	s.elsewhere.Go(func() {
		defer func() { <-s.queries }()
		defer unix.Close(fd)
		vetted, err := s.Stub.Forward(query)
		if err != nil {
			s.Deny(denial)
			return
		}
		// Datagrams can be lost; the client asks again.
		_, _ = own.send(to.sockaddr(own.domain), vetted, nil, 0)
	})
	return returned(int64(len(content)))
}
