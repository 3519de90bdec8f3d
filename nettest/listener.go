package nettest

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// countingListener writes down every connection that it accepts, before anybody reads
// from it, and its end.
type countingListener struct {
	*net.TCPListener
	door    doorway
	journal *journal
}

// Accept waits for the next connection.
func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	l.journal.hit(l.door, Hit{Event: Connected, From: endOf(conn.RemoteAddr())})
	return &countedConn{TCPConn: conn, ended: sync.OnceFunc(l.journal.closed)}, nil
}

// countedConn tells when it is closed.
type countedConn struct {
	*net.TCPConn
	ended func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.TCPConn.Close()
	c.ended()
	return err
}

// endOf turns an address of package net into one that can be compared.
func endOf(address net.Addr) netip.AddrPort {
	end, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return end
}

// echoStreams sends back what clients send, until they stop.
func echoStreams(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			// A client may go in the middle of it.
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

// echoDatagrams writes datagrams down, and sends them back from [DatagramTo].
func (n *Network) echoDatagrams(conn *net.UDPConn, door doorway) {
	buffer := make([]byte, 64<<10)
	for {
		size, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		n.journal.hit(door, Hit{Event: Received, From: from, Text: string(buffer[:size])})
		if door.address.Port() == DatagramTo && from.Port() != knockPort {
			// The client may be gone.
			_, _ = conn.WriteToUDPAddrPort(buffer[:size], from)
		}
	}
}
