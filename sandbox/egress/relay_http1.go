package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"time"
)

// http1 is a client that speaks HTTP/1. Its requests are read one by one, and each is judged
// before any of it is passed on. What the server sends is passed on unread, but for the
// first answer to a request for a WebSocket.
type http1 struct {
	*visit
	in   *bufio.Reader // of the client; all reading goes through it
	name string        // of the server that leg leads to
	leg  *leg          // nil before the first request
}

// clientBytes are what was read to find out the protocol, then the connection.
type clientBytes struct{ *visit }

func (c clientBytes) Read(p []byte) (int, error) {
	if len(c.read) > 0 {
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.client.Read(p)
}

// serveHTTP1 relays requests until one side ends.
func (v *visit) serveHTTP1() {
	h := &http1{visit: v, in: bufio.NewReaderSize(clientBytes{v}, 4<<10)}
	err := h.requests()
	switch why := (*refusal)(nil); {
	case errors.As(err, &why):
		h.retire()
		v.report(why)
		h.explain(why)
	case h.leg == nil:
	case err != nil:
		h.leg.broken.Store(true)
		if !isReset(v.client) {
			// The server takes no more, or the client stopped halfway. Answers that are
			// under way still arrive.
			_ = h.leg.upstream.CloseWrite()
			h.leg.wait(h.leg.done)
		}
		h.retire()
	default:
		h.leg.wait(h.leg.done)
		h.leg.close()
		v.relay.drop(h.leg.upstream)
	}
}

// requests passes requests on. It returns nil when the client ends between two of them.
func (h *http1) requests() error {
	for {
		if _, err := h.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && h.leg != nil {
				h.leg.toldUpstream.Store(true)
				return h.leg.upstream.CloseWrite()
			}
			return err
		}
		head, err := h.readHead()
		if err != nil {
			return err
		}
		req, err := parseRequest(head)
		if err != nil {
			return err
		}
		if err := h.reach(req); err != nil {
			return err
		}
		if _, err := h.leg.upstream.Write(req.head); err != nil {
			return err
		}
		if req.upgrade == toWebSocket {
			agreed, told := <-h.leg.switched
			if !told {
				return io.ErrUnexpectedEOF
			}
			if agreed {
				return h.opaque()
			}
		}
		if err := h.passBody(req.length); err != nil {
			return err
		}
	}
}

// readHead reads through the next empty line, within the limits for a hello.
func (h *http1) readHead() ([]byte, error) {
	if err := h.client.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return nil, err
	}
	var head []byte
	for {
		line, err := h.in.ReadSlice('\n')
		head = append(head, line...)
		if len(head) > firstBytes {
			return nil, refuse("the head of the HTTP request is longer than 64 KiB")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !bytes.HasSuffix(head, []byte("\r\n")) {
			return nil, refuse("the HTTP request has a line end that is not CRLF")
		}
		if bytes.HasSuffix(head, []byte("\r\n\r\n")) || len(head) == 2 {
			return head, h.client.SetReadDeadline(time.Time{})
		}
	}
}

// reach sees to it that the leg leads to the server of a request. A request for a WebSocket
// gets a connection of its own: on one that carried requests, an older answer could be taken
// for the agreement to it. Clients that are ahead of their answers lose those that way, but
// such clients ask for no WebSocket on the same connection.
func (h *http1) reach(req *request) error {
	if h.leg != nil && req.host == h.name && req.upgrade != toWebSocket {
		return nil
	}
	h.retire()
	upstream, err := h.connect(req.host)
	if err != nil {
		return err
	}
	h.name = req.host
	h.leg = &leg{switched: make(chan bool, 1), done: make(chan struct{})}
	h.leg.client, h.leg.upstream = h.client, upstream
	go h.leg.answers(req.upgrade)
	return nil
}

// retire ends the leg, if there is one, without ending the client's connection.
func (h *http1) retire() {
	if h.leg == nil {
		return
	}
	h.leg.retired.Store(true)
	abort(h.leg.upstream)
	// A client that reads no answers must not hold this up.
	_ = h.client.SetWriteDeadline(time.Unix(1, 0))
	<-h.leg.done
	_ = h.client.SetWriteDeadline(time.Time{})
	h.relay.drop(h.leg.upstream)
	h.leg = nil
}

// passBody passes a body on: by its length inside the kernel, in chunks checked one by one.
func (h *http1) passBody(length int64) error {
	if length != chunked {
		return h.passBytes(length)
	}
	for {
		line, err := h.bodyLine()
		if err != nil {
			return err
		}
		// Extensions of chunks are in no use, and read in more than one way.
		size, ok := digits(strings.TrimSuffix(string(line), "\r\n"), 16)
		if !ok {
			return refuse("the HTTP request has a malformed chunk")
		}
		if _, err := h.leg.upstream.Write(line); err != nil {
			return err
		}
		if size == 0 {
			return h.passTrailer()
		}
		if err := h.passBytes(size); err != nil {
			return err
		}
		if line, err = h.bodyLine(); err != nil {
			return err
		}
		if len(line) != 2 {
			return refuse("the HTTP request has a chunk that is longer than it says")
		}
		if _, err := h.leg.upstream.Write(line); err != nil {
			return err
		}
	}
}

// passTrailer passes on the fields after the last chunk.
func (h *http1) passTrailer() error {
	for range firstBytes {
		line, err := h.bodyLine()
		if err != nil {
			return err
		}
		if len(line) > 2 {
			name, value, err := headerField(line[:len(line)-2])
			if err != nil {
				return err
			}
			f := framing{}
			if err := f.field(name, value); err != nil {
				return err
			}
			if len(f.lengths)+len(f.codings) > 0 || strings.EqualFold(name, "Host") {
				return refuse("the HTTP request says after its body where it ends, or what its host is")
			}
		}
		if _, err := h.leg.upstream.Write(line); err != nil {
			return err
		}
		if len(line) == 2 {
			return nil
		}
	}
	return refuse("the HTTP request has a trailer without end")
}

// bodyLine reads a short line between or after chunks.
func (h *http1) bodyLine() ([]byte, error) {
	line, err := h.in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, refuse("the HTTP request has a line of more than 4 KiB in its body")
		}
		return nil, err
	}
	if !bytes.HasSuffix(line, []byte("\r\n")) || bytes.IndexByte(line, '\r') != len(line)-2 {
		return nil, refuse("the HTTP request has a line end that is not CRLF")
	}
	return line, nil
}

// passBytes passes on what was read ahead, then the rest from connection to connection.
func (h *http1) passBytes(n int64) error {
	for n > 0 && (h.in.Buffered() > 0 || len(h.read) > 0) {
		if h.in.Buffered() == 0 {
			if _, err := h.in.Peek(1); err != nil {
				return err
			}
		}
		ahead, err := h.in.Peek(int(min(n, int64(h.in.Buffered()))))
		if err != nil {
			return err
		}
		if _, err := h.leg.upstream.Write(ahead); err != nil {
			return err
		}
		if _, err := h.in.Discard(len(ahead)); err != nil {
			return err
		}
		n -= int64(len(ahead))
	}
	if n == 0 {
		return nil
	}
	_, err := io.CopyN(h.leg.upstream, h.client, n)
	return err
}

// opaque passes on all that the client sends from now on.
func (h *http1) opaque() error {
	if err := h.passBytes(int64(h.in.Buffered() + len(h.read))); err != nil {
		return err
	}
	h.leg.up()
	return nil
}
