package egress

import "encoding/binary"

// TLS numbers, RFC 8446 4 and 5.1, RFC 6066 3.
const (
	recordCipherSpec  = 20
	recordAlert       = 21
	recordHandshake   = 22
	recordApplication = 23

	handshakeClientHello = 1
	handshakeServerHello = 2

	extensionServerName = 0
	nameTypeHost        = 0

	recordHeader    = 5
	handshakeHeader = 4
	maxRecord       = 1 << 14
)

// handshakes puts the handshake messages of plaintext records together. It never looks at a
// byte twice, so a hello in records of one byte costs no more than the bytes that it has, and
// what it finds depends on the bytes alone, not on how they were split over reads.
type handshakes struct {
	at      int    // where in the stream the next record begins
	message []byte // what handshake records held so far
}

// next takes the record at h.at from stream, which is everything since the connection
// began. It returns errMore until the record is whole, and the type of the record then.
func (h *handshakes) next(stream []byte) (byte, error) {
	rest := stream[h.at:]
	if len(rest) > 0 && (rest[0] < recordCipherSpec || rest[0] > recordApplication) {
		return 0, refuse("a TLS record has an unknown type")
	}
	if len(rest) > 1 && rest[1] != 3 {
		return 0, refuse("a TLS record has an unknown version")
	}
	if len(rest) < recordHeader {
		return 0, errMore
	}
	length := int(binary.BigEndian.Uint16(rest[3:]))
	switch {
	case length == 0:
		return 0, refuse("a TLS record is empty")
	case rest[0] == recordHandshake && length > maxRecord:
		return 0, refuse("a TLS record is longer than 16 KiB")
	case h.at+recordHeader+length > firstBytes:
		return 0, refuse("the TLS client hello is longer than 64 KiB")
	case len(rest) < recordHeader+length:
		return 0, errMore
	}
	if rest[0] == recordHandshake {
		h.message = append(h.message, rest[recordHeader:recordHeader+length]...)
	}
	h.at += recordHeader + length
	return rest[0], nil
}

// hello returns the server name of the ClientHello that stream begins with, or goes on with
// after an earlier call. Anything but one whole hello that ends where a record ends is
// refused: a server that reads it otherwise could take another name from it.
func (h *handshakes) hello(stream []byte) (string, error) {
	for {
		kind, err := h.next(stream)
		if err != nil {
			return "", err
		}
		if kind != recordHandshake {
			return "", refuse("the TLS client hello is interrupted by another record")
		}
		if h.message[0] != handshakeClientHello {
			return "", refuse("the TLS handshake does not begin with a client hello")
		}
		if len(h.message) < handshakeHeader {
			continue
		}
		length := int(h.message[1])<<16 | int(binary.BigEndian.Uint16(h.message[2:]))
		switch body := h.message[handshakeHeader:]; {
		case length > firstBytes:
			return "", refuse("the TLS client hello is longer than 64 KiB")
		case len(body) > length:
			return "", refuse("the TLS client hello is followed by something in its last record")
		case len(body) == length:
			return helloName(body)
		}
	}
}

// fields reads length-prefixed parts. After the first short one everything is empty and
// short is true, so that callers ask once.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if n > len(f.rest) {
		f.short, f.rest = true, nil
		return nil
	}
	part := f.rest[:n]
	f.rest = f.rest[n:]
	return part
}

func (f *fields) uint8() int {
	if b := f.take(1); b != nil {
		return int(b[0])
	}
	return 0
}

func (f *fields) uint16() int {
	if b := f.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

// helloName finds the server name in the body of a ClientHello (RFC 8446 4.1.2, RFC 5246
// 7.4.1.2). With an encrypted client hello this is the outer one, which is what decides: the
// inner name cannot be read, and only the owner of the outer name can.
func helloName(body []byte) (string, error) {
	malformed := refuse("the TLS client hello is malformed")
	f := fields{rest: body}
	if version := f.uint16(); version>>8 != 3 {
		return "", malformed
	}
	f.take(32)
	if session := f.uint8(); session > 32 {
		return "", malformed
	} else {
		f.take(session)
	}
	suites := f.uint16()
	f.take(suites)
	compressions := f.uint8()
	f.take(compressions)
	if f.short || suites == 0 || suites%2 != 0 || compressions == 0 {
		return "", malformed
	}
	missing := refuse("the TLS client hello has no server name")
	if len(f.rest) == 0 {
		return "", missing
	}
	extensions := fields{rest: f.take(f.uint16())}
	if f.short || len(f.rest) != 0 {
		return "", malformed
	}
	var seen [1 << 16 / 64]uint64
	var list []byte
	found := false
	for len(extensions.rest) > 0 {
		kind := extensions.uint16()
		data := extensions.take(extensions.uint16())
		if extensions.short {
			return "", malformed
		}
		bit := uint64(1) << (kind % 64)
		if seen[kind/64]&bit != 0 {
			return "", refuse("the TLS client hello has an extension twice")
		}
		seen[kind/64] |= bit
		if kind == extensionServerName {
			list, found = data, true
		}
	}
	if !found {
		return "", missing
	}
	return listedName(list)
}

// listedName reads the server name extension (RFC 6066 3).
func listedName(list []byte) (string, error) {
	malformed := refuse("the server name of the TLS client hello is malformed")
	f := fields{rest: list}
	entries := fields{rest: f.take(f.uint16())}
	if f.short || len(f.rest) != 0 {
		return "", malformed
	}
	if len(entries.rest) == 0 {
		return "", refuse("the TLS client hello has no server name")
	}
	kind := entries.uint8()
	name := entries.take(entries.uint16())
	switch {
	case entries.short || kind != nameTypeHost:
		return "", malformed
	case len(entries.rest) != 0:
		return "", refuse("the TLS client hello has two server names")
	}
	return serverName(string(name))
}
