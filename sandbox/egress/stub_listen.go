package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// transports are what a loopback address is opened for.
type transports uint8

const (
	streams transports = iota
	streamsAndDatagrams
)

// loopback is one port on the loopback addresses, and nowhere else: 127.0.0.1, and ::1 on a
// machine that has it.
type loopback struct {
	port uint16
	six  bool
	tcp  []*net.TCPListener
	udp  []*net.UDPConn
}

// portTries bounds the search for a port that is free for everything that is needed: the
// kernel picks one for the first socket, which others may have for the rest.
const portTries = 32

func listenLoopback(ctx context.Context, t transports) (*loopback, error) {
	var last error
	for range portTries {
		l, err := tryLoopback(ctx, t)
		if err == nil {
			return l, nil
		}
		if last = err; !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("listening on the loopback address: %w", last)
}

func tryLoopback(ctx context.Context, t transports) (*loopback, error) {
	l := &loopback{}
	err := l.open(ctx, netip.AddrFrom4([4]byte{127, 0, 0, 1}), t)
	if err == nil {
		err = l.open(ctx, netip.IPv6Loopback(), t)
		l.six = err == nil
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *loopback) open(ctx context.Context, addr netip.Addr, t transports) error {
	// Multipath TCP would be of no use here and has no splice(2).
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	family := "4"
	if addr.Is6() {
		family = "6"
	}
	stream, err := config.Listen(ctx, "tcp"+family, netip.AddrPortFrom(addr, l.port).String())
	if err != nil {
		return err
	}
	listener := stream.(*net.TCPListener)
	l.tcp = append(l.tcp, listener)
	l.port = listener.Addr().(*net.TCPAddr).AddrPort().Port()
	if t == streams {
		return nil
	}
	datagrams, err := config.ListenPacket(ctx, "udp"+family, netip.AddrPortFrom(addr, l.port).String())
	if err != nil {
		return err
	}
	l.udp = append(l.udp, datagrams.(*net.UDPConn))
	return nil
}

// addr is the address that a socket of the family of like can connect to: the mapped form of
// 127.0.0.1 for IPv6 sockets where ::1 does not answer, or that use mapped addresses.
func (l *loopback) addr(like netip.Addr) netip.AddrPort {
	switch {
	case like.Is4():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), l.port)
	case like.Is4In6() || !l.six:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}), l.port)
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), l.port)
}

// Close closes the sockets; those that are closed already stay so.
func (l *loopback) Close() error {
	var errs []error
	add := func(err error) {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, c := range l.tcp {
		add(c.Close())
	}
	for _, c := range l.udp {
		add(c.Close())
	}
	return errors.Join(errs...)
}
