package egress

import (
	"context"
	"net"
	"net/netip"
	"time"
)

const (
	dialWait = 10 * time.Second
	// dialStagger is how long an address has before the next one is tried beside it
	// (RFC 8305 5).
	dialStagger = 250 * time.Millisecond
	maxDials    = 8
)

// dial connects to the first address that answers, trying them in order. Each is vetted before
// and after it is connected to.
func dial(ctx context.Context, addrs []netip.Addr, port uint16, vet func(to netip.AddrPort) error) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	addrs = addrs[:min(len(addrs), maxDials)]
	results := make(chan result, len(addrs))
	timer := time.NewTimer(0)
	defer timer.Stop()
	started, ended := 0, 0
	last := errUnreachable
	for ended < len(addrs) {
		select {
		case <-timer.C:
			if started == len(addrs) {
				continue
			}
			to := netip.AddrPortFrom(addrs[started], port)
			started++
			go func() {
				conn, err := dialVetted(ctx, to, vet)
				results <- result{conn, err}
			}()
			timer.Reset(dialStagger)
		case r := <-results:
			ended++
			if r.err != nil {
				last = r.err
				timer.Reset(0)
				continue
			}
			// Whoever connected later, or is about to, is not wanted.
			cancel()
			for ; ended < started; ended++ {
				if late := <-results; late.err == nil {
					_ = late.conn.Close()
				}
			}
			return r.conn.(*net.TCPConn), nil
		}
	}
	return nil, last
}

func dialVetted(ctx context.Context, to netip.AddrPort, vet func(to netip.AddrPort) error) (net.Conn, error) {
	if err := vet(to); err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	if err := vet(to); err != nil {
		abort(conn.(*net.TCPConn))
		return nil, err
	}
	return conn, nil
}
