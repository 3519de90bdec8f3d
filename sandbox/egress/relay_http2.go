package egress

import (
	"errors"
	"io"
	"net"
	"time"
)

// http2 is a client that speaks HTTP/2 without TLS. Header blocks are held until the name in
// them is judged; everything else passes. All requests go to one server: its connection
// cannot be shared with another one.
type http2 struct {
	*visit
	requests *requests2
	upstream *net.TCPConn
	name     string
	held     []byte // whole frames that wait for the server to be known
}

// serveHTTP2 relays requests until one side ends.
func (v *visit) serveHTTP2() {
	h := &http2{visit: v, requests: newRequests2()}
	// Room for a frame of the usual size, 16 KiB. What was read up to here is in 4 KiB.
	h.buffer = make([]byte, 20<<10)
	h.read = h.buffer[:copy(h.buffer, h.read[len(http2Preface):])]
	if err := h.begin(); err != nil {
		h.end(err)
		return
	}
	defer v.relay.drop(h.upstream)
	w := &wires{client: v.client, upstream: h.upstream}
	down := make(chan struct{})
	go func() {
		defer close(down)
		w.down()
	}()
	switch err := h.pass(); {
	case errors.Is(err, io.EOF):
		w.toldUpstream.Store(true)
		if h.upstream.CloseWrite() != nil {
			w.broken.Store(true)
		}
	default:
		h.end(err)
		w.broken.Store(true)
		abort(v.client)
		abort(h.upstream)
	}
	w.wait(down)
	w.close()
}

// begin reads up to the first request, connects to its server, and makes sure that this
// speaks HTTP/2. To another one the client's frames could hold requests of HTTP/1, to
// whomever. So it gets the preface alone until its settings are there; a server sends these
// first (RFC 9113 3.4).
func (h *http2) begin() error {
	for h.name == "" {
		if err := h.frame(func(b []byte) error { h.held = append(h.held, b...); return nil }); err != nil {
			return err
		}
		if len(h.held) > firstBytes {
			return refuse("the HTTP/2 client sends no request")
		}
	}
	if err := h.client.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	var err error
	if h.upstream, err = h.connect(h.name); err != nil {
		return err
	}
	if err := h.settle(); err != nil {
		h.relay.drop(h.upstream)
		return err
	}
	return nil
}

// settle exchanges preface and settings with the server.
func (h *http2) settle() error {
	if _, err := io.WriteString(h.upstream, http2Preface); err != nil {
		return err
	}
	if err := h.upstream.SetReadDeadline(time.Now().Add(serverHelloWait)); err != nil {
		return err
	}
	var first [frameHeader]byte
	if _, err := io.ReadFull(h.upstream, first[:]); err != nil {
		return err
	}
	if f := parseFrame(first[:]); f.kind != frameSettings || f.flags&flagAck != 0 || f.stream != 0 || f.length%6 != 0 {
		return &refusal{name: h.name, rule: "the client speaks HTTP/2, which the server does not"}
	}
	if err := h.upstream.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := h.client.Write(first[:]); err != nil {
		return err
	}
	_, err := h.upstream.Write(h.held)
	h.held = nil
	return err
}

// pass passes frames on until the client ends, which is io.EOF between two of them.
func (h *http2) pass() error {
	for {
		err := h.frame(func(b []byte) error {
			_, err := h.upstream.Write(b)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// frame deals with one frame, and gives it to out, whole or in parts.
func (h *http2) frame(out func([]byte) error) error {
	if err := h.need(frameHeader); err != nil {
		return err
	}
	f := parseFrame(h.read)
	if h.requests.newest == 0 && h.requests.stream == 0 && f.kind == frameData {
		return refuse("the HTTP/2 client breaks the order of frames")
	}
	head, err := h.requests.headers(f)
	if err != nil {
		return err
	}
	if head {
		return h.headers(f, out)
	}
	if h.upstream == nil && f.length > firstBytes {
		return refuse("the HTTP/2 client sends no request")
	}
	left := frameHeader + f.length
	for {
		n := min(left, len(h.read))
		if err := out(h.read[:n]); err != nil {
			return err
		}
		h.read = h.read[n:]
		if left -= n; left == 0 {
			return nil
		}
		if err := h.more(); err != nil {
			return cut(err)
		}
	}
}

// headers deals with the frames of a header block, and gives all of them to out when the
// name in them is the connection's.
func (h *http2) headers(f frame, out func([]byte) error) error {
	var block []byte
	for {
		if err := h.need(frameHeader + f.length); err != nil {
			return cut(err)
		}
		name, whole, err := h.requests.read(f, h.read[frameHeader:frameHeader+f.length])
		if err != nil {
			return err
		}
		block = append(block, h.read[:frameHeader+f.length]...)
		h.read = h.read[frameHeader+f.length:]
		if len(block) > 2*firstBytes {
			return refuse("the head of the HTTP/2 request is longer than 64 KiB")
		}
		if whole {
			switch {
			case name == "" || name == h.name:
			case h.name == "":
				h.name = name
			default:
				return &refusal{name: name, rule: "the HTTP/2 connection leads to " + h.name}
			}
			return out(block)
		}
		if err := h.need(frameHeader); err != nil {
			return cut(err)
		}
		f = parseFrame(h.read)
		if _, err := h.requests.headers(f); err != nil {
			return err
		}
	}
}

// need reads on until n bytes are there.
func (h *http2) need(n int) error {
	for len(h.read) < n {
		if err := h.more(); err != nil {
			if len(h.read) > 0 {
				return cut(err)
			}
			return err
		}
	}
	return nil
}

// cut is an end in the middle of something.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
