package egress

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// goneCheck is how often a connection that one side has finished is looked at for the death
// of that side: a program that ended looks the same as one that only sends no more, until
// its kernel answers a keep-alive probe with a reset.
const goneCheck = 30 * time.Second

// abort ends a connection with a reset, which no peer takes for a complete answer.
func abort(c *net.TCPConn) {
	// Both fail only on a connection that is closed already.
	_ = c.SetLinger(0)
	_ = c.Close()
}

// wires is a pair of connections whose bytes are passed on to one another.
type wires struct {
	client, upstream *net.TCPConn
	broken           atomic.Bool // one of the two was reset: neither may end as if it were whole
	toldClient       atomic.Bool // no more is sent to the client
	toldUpstream     atomic.Bool
}

// splice passes bytes both ways, inside the kernel, until both sides have finished. The end
// of one direction is passed on by itself. Both connections are closed when it returns, with
// a reset if either was.
func splice(client, upstream *net.TCPConn) {
	w := &wires{client: client, upstream: upstream}
	down := make(chan struct{})
	go func() {
		defer close(down)
		w.down()
	}()
	w.up()
	w.wait(down)
	w.close()
}

// up passes on what the client sends, down what the upstream sends.
func (w *wires) up()   { w.pass(w.upstream, w.client, &w.toldUpstream, &w.toldClient) }
func (w *wires) down() { w.pass(w.client, w.upstream, &w.toldClient, &w.toldUpstream) }

// pass copies until src ends or either fails. told and heard are for what was ended towards
// dst and towards src.
func (w *wires) pass(dst, src *net.TCPConn, told, heard *atomic.Bool) {
	// The copy is splice(2) here: both ends are TCP connections.
	_, err := io.Copy(dst, src)
	switch {
	case err == nil && (heard.Load() || !isReset(src)):
		told.Store(true)
		if dst.CloseWrite() != nil {
			w.broken.Store(true)
		}
	case err == nil || isReset(src):
		// The error of a reset is told once, and may have been told to the other direction.
		w.broken.Store(true)
		abort(dst)
		abort(src)
	default:
		// dst takes no more. What it had sent before still goes to src, by the other
		// direction, which then ends.
		w.broken.Store(true)
	}
}

// wait is for the direction that still runs after the client's has ended.
func (w *wires) wait(down <-chan struct{}) {
	ticker := time.NewTicker(goneCheck)
	defer ticker.Stop()
	w.watch(down, ticker.C)
}

// watch looks at the client at each tick.
func (w *wires) watch(down <-chan struct{}, tick <-chan time.Time) {
	for {
		select {
		case <-down:
			return
		case <-tick:
			if isReset(w.client) {
				w.broken.Store(true)
				abort(w.upstream)
			}
		}
	}
}

func (w *wires) close() {
	if w.broken.Load() {
		abort(w.client)
		abort(w.upstream)
		return
	}
	_ = w.client.Close()
	_ = w.upstream.Close()
}

// tcpClosed is TCP_CLOSE, include/net/tcp_states.h. A socket whose peer has only sent its
// end is in another state.
const tcpClosed = 7

// isReset tells whether the kernel has given the connection up: reset, timed out, or closed
// here. It is also true of one that ended in both directions and in order.
func isReset(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	state := tcpClosed
	err = raw.Control(func(fd uintptr) {
		// The first byte of struct tcp_info is the state; the kernel copies as much of the
		// struct as there is room for.
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err == nil {
			state = info & 0xff
		}
	})
	return err != nil || state == tcpClosed
}
