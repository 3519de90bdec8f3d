package egress

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// HTTP/2 numbers, RFC 9113 4.1, 6 and 6.5.2.
const (
	frameHeader = 9

	frameData         = 0
	frameHeaders      = 1
	frameSettings     = 4
	framePushPromise  = 5
	frameContinuation = 9

	flagAck        = 0x1 // of settings
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	firstTable   = 4 << 10 // bytes of the dynamic table, before anybody says otherwise
	largestTable = 64 << 10
)

// frame is the head of a frame.
type frame struct {
	length int
	kind   byte
	flags  byte
	stream uint32
}

func parseFrame(b []byte) frame {
	return frame{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   b[3],
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// requests2 reads the headers of the requests on one HTTP/2 connection. It keeps the client's
// dynamic table as the server does. Should a server give it less room than 4 KiB and a
// client not follow, the server has a beginning of this table: what it can look up at all
// is the same here.
type requests2 struct {
	decoder *hpack.Decoder
	newest  uint32 // stream that a client has opened
	block   []byte // header fragments
	stream  uint32 // of the block; 0 for none
	fields  fields2
}

// fields2 is what one header block says.
type fields2 struct {
	seen      map[string]string // pseudo headers
	hosts     []string
	regular   bool // a regular field has been seen
	malformed bool
}

func newRequests2() *requests2 {
	r := &requests2{}
	r.decoder = hpack.NewDecoder(firstTable, func(f hpack.HeaderField) { r.fields.add(f) })
	r.decoder.SetAllowedMaxDynamicTableSize(largestTable)
	r.decoder.SetMaxStringLength(firstBytes)
	return r
}

func (f *fields2) add(field hpack.HeaderField) {
	if strings.HasPrefix(field.Name, ":") {
		_, twice := f.seen[field.Name]
		if twice || f.regular {
			f.malformed = true
		}
		if f.seen == nil {
			f.seen = map[string]string{}
		}
		f.seen[field.Name] = field.Value
		return
	}
	f.regular = true
	if strings.ToLower(field.Name) != field.Name {
		f.malformed = true
	}
	if field.Name == "host" {
		f.hosts = append(f.hosts, field.Value)
	}
}

// headers tells whether a frame is part of a header block, which has to be read before it is
// passed on. What no client may send there is refused.
func (r *requests2) headers(f frame) (bool, error) {
	switch {
	case r.stream != 0 && (f.kind != frameContinuation || f.stream != r.stream),
		r.stream == 0 && f.kind == frameContinuation,
		f.kind == framePushPromise,
		f.kind == frameHeaders && f.stream%2 == 0:
		return false, refuse("the HTTP/2 client breaks the order of frames")
	case f.kind != frameHeaders && f.kind != frameContinuation:
		return false, nil
	case f.length+len(r.block) > firstBytes:
		return false, refuse("the head of the HTTP/2 request is longer than 64 KiB")
	}
	return true, nil
}

// read takes the payload of a frame of a header block. The last one brings the server name;
// a trailer has none. whole tells whether it was the last.
func (r *requests2) read(f frame, payload []byte) (name string, whole bool, err error) {
	if f.kind == frameHeaders {
		if payload, err = fragment(f, payload); err != nil {
			return "", false, err
		}
		r.stream, r.block = f.stream, r.block[:0]
	}
	r.block = append(r.block, payload...)
	if f.flags&flagEndHeaders == 0 {
		return "", false, nil
	}
	stream := r.stream
	r.stream, r.fields = 0, fields2{}
	if _, err := r.decoder.Write(r.block); err != nil || r.decoder.Close() != nil {
		return "", false, refuse("the HTTP/2 request has malformed headers")
	}
	if stream <= r.newest && len(r.fields.seen) == 0 && !r.fields.malformed && len(r.fields.hosts) == 0 {
		return "", true, nil
	}
	if stream <= r.newest {
		return "", false, refuse("the HTTP/2 client uses a stream twice")
	}
	r.newest = stream
	name, err = r.fields.name()
	return name, err == nil, err
}

// fragment takes padding and priority off a HEADERS frame (RFC 9113 6.2).
func fragment(f frame, payload []byte) ([]byte, error) {
	in := fields{rest: payload}
	padding := 0
	if f.flags&flagPadded != 0 {
		padding = in.uint8()
	}
	if f.flags&flagPriority != 0 {
		in.take(5)
	}
	if in.short || padding > len(in.rest) {
		return nil, refuse("the HTTP/2 request has malformed headers")
	}
	return in.rest[:len(in.rest)-padding], nil
}

// name returns the server name of a request. Its authority and its Host field have to agree,
// since which of the two a server believes differs between servers.
func (f *fields2) name() (string, error) {
	authority, named := f.seen[":authority"]
	_, extended := f.seen[":protocol"]
	switch {
	case f.malformed || len(f.hosts) > 1:
		return "", refuse("the HTTP/2 request has malformed headers")
	case f.seen[":method"] == "CONNECT" || extended:
		return "", refuse("HTTP CONNECT asks for another server")
	case f.seen[":scheme"] != "http" && f.seen[":scheme"] != "https":
		return "", refuse("the HTTP/2 request has no scheme")
	case !named && len(f.hosts) == 0:
		return "", refuse("the HTTP/2 request names no server")
	case named && len(f.hosts) == 1 && !sameASCII(authority, f.hosts[0]):
		return "", refuse("the HTTP/2 request names one server as its authority and another one as its host")
	case !named:
		authority = f.hosts[0]
	}
	if path := f.seen[":path"]; !strings.HasPrefix(path, "/") && path != "*" {
		return "", refuse("the HTTP/2 request has no path")
	}
	return authorityName(authority)
}
