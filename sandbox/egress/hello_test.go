package egress

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// realHello is what crypto/tls sends for a name; "" and addresses get no server name.
func realHello(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		c := tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		_ = c.Handshake()
		_ = client.Close()
	}()
	head := make([]byte, recordHeader)
	if _, err := io.ReadFull(server, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}

func sized16(b ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

func extension(kind uint16, data ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, kind), sized16(data...)...)
}

func nameEntry(kind byte, name string) []byte {
	return append([]byte{kind}, sized16([]byte(name)...)...)
}

func named(name string) []byte { return extension(0, sized16(nameEntry(0, name)...)...) }

// helloMessage is a handshake message with a ClientHello that has these extensions.
func helloMessage(extensions ...[]byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0)                   // no session
	body = append(body, 0, 2, 0x13, 1, 1, 0) // a suite, no compression
	body = append(body, sized16(bytes.Join(extensions, nil)...)...)
	return append([]byte{handshakeClientHello, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// records cuts a message into handshake records of a size.
func records(message []byte, size int) []byte {
	var out []byte
	for len(message) > 0 {
		n := min(size, len(message))
		out = append(out, recordHandshake, 3, 1)
		out = append(out, sized16(message[:n]...)...)
		message = message[n:]
	}
	return out
}

// readAll is the answer to a stream that came in one piece.
func readAll(stream []byte) (string, error) {
	var h handshakes
	return h.hello(stream)
}

func TestHello(t *testing.T) {
	good := named("good.example")
	plainHello := helloMessage(good)
	tests := []struct {
		name   string
		stream []byte
		want   string
		refuse string // part of the reason
	}{
		{name: "crypto/tls", stream: realHello(t, "Good.Example"), want: "good.example"},
		{name: "made here", stream: records(plainHello, maxRecord), want: "good.example"},
		{name: "records of one byte", stream: records(plainHello, 1), want: "good.example"},
		{name: "other extensions around", stream: records(helloMessage(extension(43, 2, 3, 4), good, extension(0xfe0d, 0)), 100), want: "good.example"},
		{name: "a large hello", stream: records(helloMessage(extension(21, make([]byte, 40000)...), good), maxRecord), want: "good.example"},
		{name: "crypto/tls without a name", stream: realHello(t, ""), refuse: "no server name"},
		{name: "no extensions", stream: records(helloMessage(), 100), refuse: "no server name"},
		{name: "empty list", stream: records(helloMessage(extension(0, 0, 0)), 100), refuse: "no server name"},
		{name: "empty extension", stream: records(helloMessage(extension(0)), 100), refuse: "malformed"},
		{name: "empty name", stream: records(helloMessage(named("")), 100), refuse: "is no name"},
		{name: "IPv4 address", stream: records(helloMessage(named("203.0.113.9")), 100), refuse: "as an address"},
		{name: "hexadecimal address", stream: records(helloMessage(named("0x7f000001")), 100), refuse: "as an address"},
		{name: "IPv6 address", stream: records(helloMessage(named("::1")), 100), refuse: "no host name has"},
		{name: "NUL inside", stream: records(helloMessage(named("good.example\x00.evil.example")), 100), refuse: "no host name has"},
		{name: "not ASCII", stream: records(helloMessage(named("gööd.example")), 100), refuse: "not ASCII"},
		{name: "space", stream: records(helloMessage(named("good.example ")), 100), refuse: "no host name has"},
		{name: "two names", stream: records(helloMessage(extension(0, sized16(append(nameEntry(0, "good.example"), nameEntry(0, "evil.example")...)...)...)), 100), refuse: "two server names"},
		{name: "a second name of another kind", stream: records(helloMessage(extension(0, sized16(append(nameEntry(0, "good.example"), nameEntry(1, "x")...)...)...)), 100), refuse: "two server names"},
		{name: "a name of another kind", stream: records(helloMessage(extension(0, sized16(nameEntry(1, "good.example")...)...)), 100), refuse: "malformed"},
		{name: "extension twice", stream: records(helloMessage(good, named("evil.example")), 100), refuse: "extension twice"},
		{name: "other extension twice", stream: records(helloMessage(extension(5), good, extension(5)), 100), refuse: "extension twice"},
		{name: "bytes after the list", stream: records(helloMessage(extension(0, append(sized16(nameEntry(0, "good.example")...), 0)...)), 100), refuse: "malformed"},
		{name: "short list", stream: records(helloMessage(extension(0, 0, 99, 0)), 100), refuse: "malformed"},
		{name: "server hello", stream: records(append([]byte{handshakeServerHello}, plainHello[1:]...), 100), refuse: "does not begin with a client hello"},
		{name: "bytes after the hello", stream: records(append(bytes.Clone(plainHello), 0), maxRecord), refuse: "followed by something"},
		{name: "alert between", stream: append(records(plainHello[:10], 100), append([]byte{recordAlert, 3, 1, 0, 2, 1, 0}, records(plainHello[10:], 100)...)...), refuse: "interrupted"},
		{name: "empty record between", stream: append(records(plainHello[:10], 100), append([]byte{recordHandshake, 3, 1, 0, 0}, records(plainHello[10:], 100)...)...), refuse: "empty"},
		{name: "record of another version", stream: append([]byte{recordHandshake, 2}, records(plainHello, 100)[2:]...), refuse: "unknown version"},
		{name: "record too long", stream: append([]byte{recordHandshake, 3, 1, 0x40, 1}, make([]byte, maxRecord+1)...), refuse: "longer than 16 KiB"},
		{name: "message too long", stream: records([]byte{handshakeClientHello, 1, 0, 1, 0}, 100), refuse: "longer than 64 KiB"},
		{name: "records of one byte beyond the bound", stream: records(helloMessage(extension(21, make([]byte, 20000)...), good), 1), refuse: "longer than 64 KiB"},
		{name: "session too long", stream: records(append(append([]byte{1, 0, 0, 40, 3, 3}, make([]byte, 32)...), 33, 0, 0, 0, 0, 0), 100), refuse: "malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name, err := readAll(tt.stream)
			if tt.refuse == "" {
				if name != tt.want || err != nil {
					t.Fatalf("hello = %q, %v; want %q", name, err, tt.want)
				}
				for n := range len(tt.stream) {
					if name, err := readAll(tt.stream[:n]); !errors.Is(err, errMore) {
						t.Fatalf("hello of the first %d bytes = %q, %v; want %v", n, name, err, errMore)
					}
				}
				return
			}
			if why := (*refusal)(nil); !errors.As(err, &why) || !strings.Contains(why.rule, tt.refuse) {
				t.Errorf("hello = %q, %v; want a refusal with %q", name, err, tt.refuse)
			}
		})
	}
}

func TestHelloRetryNumber(t *testing.T) {
	if want := sha256.Sum256([]byte("HelloRetryRequest")); helloRetry != string(want[:]) {
		t.Errorf("the random of a retry is %x, want %x", helloRetry, want)
	}
}

// FuzzHello: the answer depends on the bytes alone, not on how they arrive, and not on what
// comes after a whole hello.
func FuzzHello(f *testing.F) {
	good := helloMessage(named("good.example"))
	f.Add(records(good, maxRecord), uint16(1))
	f.Add(records(good, 1), uint16(3))
	f.Add(records(helloMessage(named("a"), named("b")), 7), uint16(7))
	f.Add(realHello(f, "good.example"), uint16(100))
	f.Add([]byte{recordHandshake, 3, 1, 0, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, stream []byte, step uint16) {
		if len(stream) > 4<<10 {
			return // the steps would take too long
		}
		var whole handshakes
		name, err := whole.hello(stream)
		var parts handshakes
		gotName, gotErr := "", errMore
		for end := 0; errors.Is(gotErr, errMore) && end < len(stream); {
			end = min(len(stream), end+1+int(step%997))
			gotName, gotErr = parts.hello(bytes.Clone(stream[:end])[:end:end])
		}
		if len(stream) == 0 {
			return
		}
		if gotName != name || errorText(gotErr) != errorText(err) {
			t.Fatalf("in steps: %q, %v; at once: %q, %v", gotName, gotErr, name, err)
		}
		if err != nil {
			return
		}
		if canonical, problem := canonicalName(name); problem != "" || canonical != name {
			t.Fatalf("the name %q is not in the form of rules", name)
		}
		if again, err := readAll(stream[:whole.at]); again != name || err != nil {
			t.Fatalf("without what follows: %q, %v; want %q", again, err, name)
		}
		if longer, err := readAll(append(bytes.Clone(stream), 0xff)); longer != name || err != nil {
			t.Fatalf("with more after it: %q, %v; want %q", longer, err, name)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
