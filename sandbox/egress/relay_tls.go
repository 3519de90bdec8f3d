package egress

import (
	"bytes"
	"errors"
	"net"
	"time"
)

// readHello reads the client's hello, or, with some of it read before, goes on with it.
func (v *visit) readHello(h *handshakes) (string, error) {
	for {
		name, err := h.hello(v.read)
		if !errors.Is(err, errMore) {
			return name, err
		}
		if err := v.more(); err != nil {
			return "", err
		}
	}
}

// serveTLS relays a TLS connection.
func (v *visit) serveTLS() {
	var h handshakes
	name, err := v.readHello(&h)
	if err != nil {
		v.end(err)
		return
	}
	if err := v.client.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	upstream, err := v.connect(name)
	if err != nil {
		v.end(err)
		return
	}
	defer v.relay.drop(upstream)
	if _, err := upstream.Write(v.read[:h.at]); err != nil {
		return
	}
	v.read = v.read[h.at:]
	if err := v.passServerHello(upstream, name); err != nil {
		v.end(err)
		return
	}
	if _, err := upstream.Write(v.read); err != nil {
		return
	}
	v.read = nil
	splice(v.client, upstream)
}

// serverHelloWait bounds the time to the server's first message. The client is not read
// meanwhile, so its end would go unseen.
const serverHelloWait = 30 * time.Second

// helloRetry is the random of a ServerHello that asks for another ClientHello: SHA-256 of
// "HelloRetryRequest", RFC 8446 4.1.3.
const helloRetry = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" +
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"

// passServerHello passes the server's first message on. When it asks for a second hello,
// this one is read too, and left in v.read: a server may go by the name in it, which
// therefore has to be the same.
func (v *visit) passServerHello(upstream *net.TCPConn, name string) error {
	retry, err := v.asksRetry(upstream)
	if err != nil || !retry {
		return err
	}
	if err := v.client.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	var h handshakes
	for {
		// The hello may come after a cipher change for old middleboxes, and after early
		// data that the server skips.
		if h.at == len(v.read) {
			if err := v.more(); err != nil {
				return err
			}
			continue
		}
		if v.read[h.at] == recordHandshake {
			break
		}
		if _, err := h.next(v.read); errors.Is(err, errMore) {
			err = v.more()
			if err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	second, err := v.readHello(&h)
	if err != nil {
		return err
	}
	if second != name {
		return &refusal{name: second, rule: "the second TLS client hello has another server name than the first"}
	}
	return v.client.SetReadDeadline(time.Time{})
}

// asksRetry passes on what the server sends until its first message is known.
func (v *visit) asksRetry(upstream *net.TCPConn) (bool, error) {
	if err := upstream.SetReadDeadline(time.Now().Add(serverHelloWait)); err != nil {
		return false, err
	}
	var h handshakes
	var stream []byte
	buffer := make([]byte, 4<<10)
	for {
		kind, err := h.next(stream)
		switch {
		case errors.Is(err, errMore):
		case err != nil || kind != recordHandshake || h.message[0] != handshakeServerHello:
			return false, upstream.SetReadDeadline(time.Time{})
		case len(h.message) >= handshakeHeader+2+len(helloRetry):
			random := h.message[handshakeHeader+2:][:len(helloRetry)]
			return bytes.Equal(random, []byte(helloRetry)), upstream.SetReadDeadline(time.Time{})
		default:
			continue
		}
		n, err := upstream.Read(buffer)
		if n == 0 && err != nil {
			return false, err
		}
		stream = append(stream, buffer[:n]...)
		if _, err := v.client.Write(buffer[:n]); err != nil {
			return false, err
		}
	}
}
