package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

// serveHTTP is a server for many names that speaks HTTP/1 and HTTP/2 without TLS. It echoes
// bodies after a line with what it saw.
func serveHTTP(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols: &protocols,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "websocket" {
				hijack(w)
				return
			}
			// Without it the server throws parts of a body away once it answers.
			http.NewResponseController(w).EnableFullDuplex()
			fmt.Fprintf(w, "%s %s %s upgrade=%q\n", r.Proto, r.Method, strings.Split(r.Host, ":")[0], r.Header.Get("Upgrade"))
			io.Copy(w, r.Body)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-done })
	return l
}

// hijack agrees to a WebSocket and echoes.
func hijack(w http.ResponseWriter) {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	io.Copy(c, rw)
}

// client connects through the relay, whatever the URL says.
func (s *site) client(t testing.TB, set func(*http.Protocols)) *http.Client {
	t.Helper()
	var protocols http.Protocols
	set(&protocols)
	transport := &http.Transport{
		Protocols:   &protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.connect(t), nil },
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func fetch(t testing.TB, c *http.Client, method, host string, body io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+"/", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// stream hides what kind of reader it is, so that the length of a body is not known.
type stream struct{ io.Reader }

func TestRelayHTTP1(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example", "second.example")
	c := s.client(t, func(p *http.Protocols) { p.SetHTTP1(true) })
	large := strings.Repeat("0123456789", 200_000)
	for range 2 {
		for _, tt := range []struct {
			method string
			body   io.Reader
			want   string
		}{
			{"GET", nil, ""},
			{"POST", strings.NewReader("short"), "short"},
			{"POST", strings.NewReader(large), large},
			{"PUT", stream{strings.NewReader(large)}, large},
		} {
			status, text := fetch(t, c, tt.method, "good.example", tt.body)
			want := "HTTP/1.1 " + tt.method + " good.example upgrade=\"\"\n" + tt.want
			if status != 200 || text != want {
				t.Errorf("%s: %d, %d bytes %.60q", tt.method, status, len(text), text)
			}
		}
	}
	s.wantNoDenial(t)
	status, text := fetch(t, c, "GET", "evil.example", nil)
	if want := fmt.Sprintf("blocked by profile: no rule names evil.example:%d\n", s.dst.Port()); status != 403 || !strings.HasPrefix(text, want) {
		t.Errorf("refused: %d %q", status, text)
	}
	s.wantDenial(t, "server name evil.example on "+s.dst.String(), "no rule names evil.example:")
}

// exchange1 sends requests as they are and returns all that comes back.
func exchange1(t testing.TB, c *net.TCPConn, requests string) (string, error) {
	t.Helper()
	if _, err := io.WriteString(c, requests); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	return string(got), err
}

const good1 = "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"

// Every request on a connection is judged, in whatever way it tries to hide.
func TestRelayHTTP1Later(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example", "second.example")
	const evil = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	post := "POST / HTTP/1.1\r\nHost: good.example\r\n"
	tests := []struct{ name, send, rule string }{
		{"another host", evil, "no rule names evil.example:"},
		{"after a body", post + "Content-Length: 3\r\n\r\nabc" + evil, "no rule names evil.example:"},
		{"after chunks", post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + evil, "no rule names evil.example:"},
		{"after a trailer", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n" + evil, "no rule names evil.example:"},
		{"in a chunk that is too short", post + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", "longer than it says"},
		{"chunk extension", post + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n", "malformed chunk"},
		{"chunk with sign", post + "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", "malformed chunk"},
		{"chunk line with bare LF", post + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", "not CRLF"},
		{"endless chunk line", post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 5000) + "\r\n", "more than 4 KiB"},
		{"length in the trailer", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", "after its body"},
		{"host in the trailer", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.example\r\n\r\n", "after its body"},
		{"ambiguous", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", "ambiguous"},
		{"CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "CONNECT"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "request line"},
		{"head too long", "GET / HTTP/1.1\r\nHost: good.example\r\nX: " + strings.Repeat("x", 70_000) + "\r\n\r\n", "longer than 64 KiB"},
	}
	for _, tt := range tests {
		for _, first := range []struct{ name, send string }{{"first", ""}, {"later", good1}} {
			if first.name == "first" && strings.Contains(tt.name, "HTTP/2") {
				continue
			}
			t.Run(first.name+" "+tt.name, func(t *testing.T) {
				c := s.connect(t)
				in := bufio.NewReader(c)
				if first.send != "" {
					io.WriteString(c, first.send)
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				go io.WriteString(c, tt.send)
				all, _ := io.ReadAll(in)
				if !strings.Contains(string(all), "HTTP/1.1 403 Forbidden\r\n") || strings.Contains(string(all), "GET evil.example") {
					t.Errorf("answers: %.300q", all)
				}
				asked := "tcp " + s.dst.String()
				if strings.HasPrefix(tt.rule, "no rule") {
					asked = "server name evil.example on " + s.dst.String()
				}
				s.wantDenial(t, asked, tt.rule)
			})
		}
	}
}

// A second host that is allowed has a connection of its own behind the relay.
func TestRelayHTTP1SecondHost(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example", "second.example")
	c := s.connect(t)
	in := bufio.NewReader(c)
	for _, host := range []string{"good.example", "second.example", "good.example"} {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := "HTTP/1.1 GET " + host + " upgrade=\"\"\n"; string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", host, text, err)
		}
	}
	s.wantNoDenial(t)
}

func TestRelayHTTP1PipelinesAndEnds(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example")
	c := s.connect(t)
	io.WriteString(c, good1+good1+good1)
	c.CloseWrite()
	all, err := io.ReadAll(c)
	if n := strings.Count(string(all), "GET good.example"); n != 3 || err != nil {
		t.Errorf("%d answers, %v: %q", n, err, all)
	}
	got, err := exchange1(t, s.connect(t), "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n")
	if strings.Count(got, "GET good.example") != 1 || err != nil {
		t.Errorf("with an end asked for: %v: %q", err, got)
	}
}

func TestRelayWebSocket(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example")
	const wish = "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for _, before := range []string{"", good1} {
		c := s.connect(t)
		in := bufio.NewReader(c)
		if before != "" {
			io.WriteString(c, before)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		// Frames are not requests, whatever they look like.
		frames := "\x81\x05hello GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
		io.WriteString(c, wish+frames[:4])
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatalf("%+v, %v", resp, err)
		}
		resp.Body.Close()
		io.WriteString(c, frames[4:])
		c.CloseWrite()
		got, err := io.ReadAll(in)
		if string(got) != frames || err != nil {
			t.Errorf("came back: %q, %v", got, err)
		}
	}
	// A server that does not agree gets requests like before, and they are judged.
	l := serve(t, func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body := "saw " + req.Host
			fmt.Fprintf(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	s = startSite(t, l, "good.example")
	got, _ := exchange1(t, s.connect(t), wish+good1+"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if strings.Contains(got, "saw evil") || !strings.Contains(got, "saw good") || !strings.Contains(got, "403 Forbidden") {
		t.Errorf("without agreement: %q", got)
	}
	s.wantDenial(t, "server name evil.example on "+s.dst.String(), "no rule names evil.example:")
}

func TestRelayDropsOtherUpgrades(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example")
	got, err := exchange1(t, s.connect(t), "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
	if !strings.Contains(got, `HTTP/1.1 GET good.example upgrade=""`) || err != nil {
		t.Errorf("answer: %q, %v", got, err)
	}
}

// A server that ends with a reset in the middle of its answer is not taken for one that ends.
func TestRelayHTTP1Reset(t *testing.T) {
	l := serve(t, func(c *net.TCPConn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nhalf")
		io.ReadFull(c, make([]byte, 1))
		c.SetLinger(0)
	})
	s := startSite(t, l, "good.example")
	c := s.connect(t)
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 10\r\n\r\n")
	head := make([]byte, len("HTTP/1.0 200 OK\r\n\r\nhalf"))
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "x")
	if _, err := io.ReadAll(c); !isReset(err) {
		t.Errorf("the client saw %v, want a reset", err)
	}
}

func TestRelayHTTP2(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example", "second.example")
	c := s.client(t, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
	large := strings.Repeat("0123456789", 100_000)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			status, text := fetch(t, c, "POST", "good.example", strings.NewReader(large))
			if want := "HTTP/2.0 POST good.example upgrade=\"\"\n" + large; status != 200 || text != want {
				t.Errorf("%d, %d bytes %.60q", status, len(text), text)
			}
		})
	}
	wait.Wait()
	s.wantNoDenial(t)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://evil.example/", nil)
	if resp, err := c.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("refused: %d", resp.StatusCode)
	}
	s.wantDenial(t, "server name evil.example on "+s.dst.String(), "no rule names evil.example:")
}

// frame2 is an HTTP/2 frame.
func frame2(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// encoder2 writes header blocks with one dynamic table, as one client does.
type encoder2 struct {
	buffer bytes.Buffer
	hpack  *hpack.Encoder
}

func newEncoder2() *encoder2 {
	e := &encoder2{}
	e.hpack = hpack.NewEncoder(&e.buffer)
	return e
}

func (e *encoder2) block(pairs ...string) []byte {
	e.buffer.Reset()
	for i := 0; i < len(pairs); i += 2 {
		e.hpack.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(e.buffer.Bytes())
}

func (e *encoder2) get(host string) []byte {
	return e.block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", host)
}

const (
	preface2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	end      = 0x4 | 0x1 // of headers and of the stream
)

func TestRelayHTTP2Refuses(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example", "second.example")
	settings := frame2(4, 0, 0, nil)
	tests := []struct {
		name, rule string
		frames     func(e *encoder2) [][]byte
	}{
		{"second host that is allowed", "the HTTP/2 connection leads to good.example", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.get("good.example")), frame2(1, end, 3, e.get("second.example"))}
		}},
		{"second host", "the HTTP/2 connection leads to good.example", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.get("good.example")), frame2(1, end, 3, e.get("evil.example"))}
		}},
		{"host from the dynamic table", "the HTTP/2 connection leads to good.example", func(e *encoder2) [][]byte {
			first := e.block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "good.example", "x", "evil.example")
			return [][]byte{frame2(1, end, 1, first), frame2(1, end, 3, e.get("evil.example")), frame2(1, end, 5, e.get("evil.example"))}
		}},
		{"over continuations", "no rule names evil.example:", func(e *encoder2) [][]byte {
			b := e.get("evil.example")
			return [][]byte{frame2(1, 1, 1, b[:2]), frame2(9, 0, 1, b[2:5]), frame2(9, 4, 1, b[5:])}
		}},
		{"padded, with a priority", "no rule names evil.example:", func(e *encoder2) [][]byte {
			b := append([]byte{3, 0, 0, 0, 0, 16}, e.get("evil.example")...)
			return [][]byte{frame2(1, end|0x8|0x20, 1, append(b, 0, 0, 0))}
		}},
		{"host and authority", "another one as its host", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, append(e.get("good.example"), e.block("host", "evil.example")...))}
		}},
		{"host alone", "no rule names evil.example:", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.block(":method", "GET", ":scheme", "http", ":path", "/", "host", "evil.example"))}
		}},
		{"two authorities", "malformed headers", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, append(e.get("good.example"), e.block(":authority", "evil.example")...))}
		}},
		{"no authority", "names no server", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.block(":method", "GET", ":scheme", "http", ":path", "/"))}
		}},
		{"address", "as an address", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.get("127.0.0.1:80"))}
		}},
		{"CONNECT", "CONNECT", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.block(":method", "CONNECT", ":authority", "good.example:80"))}
		}},
		{"frame inside a block", "order of frames", func(e *encoder2) [][]byte {
			b := e.get("good.example")
			return [][]byte{frame2(1, 0, 1, b[:2]), frame2(6, 0, 0, make([]byte, 8)), frame2(9, 4, 1, b[2:])}
		}},
		{"continuation of nothing", "order of frames", func(e *encoder2) [][]byte {
			return [][]byte{frame2(9, 4, 1, e.get("good.example"))}
		}},
		{"promise", "order of frames", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.get("good.example")), frame2(5, 4, 1, append([]byte{0, 0, 0, 2}, e.get("evil.example")...))}
		}},
		{"stream twice", "stream twice", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, e.get("good.example")), frame2(1, end, 1, e.get("good.example"))}
		}},
		{"stream of the server", "order of frames", func(e *encoder2) [][]byte {
			return [][]byte{frame2(1, end, 2, e.get("good.example"))}
		}},
		{"broken block", "malformed headers", func(*encoder2) [][]byte {
			return [][]byte{frame2(1, end, 1, []byte{0xff, 0xff, 0xff})}
		}},
		{"endless block", "longer than 64 KiB", func(e *encoder2) [][]byte {
			frames := [][]byte{frame2(1, 0, 1, e.get("good.example"))}
			for range 10 {
				frames = append(frames, frame2(9, 0, 1, bytes.Repeat(e.block("x", "y"), 8000)))
			}
			return frames
		}},
		{"no request", "sends no request", func(*encoder2) [][]byte {
			var frames [][]byte
			for range 10 {
				frames = append(frames, frame2(0xf0, 0, 0, make([]byte, 10_000)))
			}
			return frames
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			all := append([]byte(preface2), settings...)
			for _, f := range tt.frames(newEncoder2()) {
				all = append(all, f...)
			}
			go c.Write(all)
			if _, err := io.ReadAll(c); !isReset(err) {
				t.Errorf("the client saw %v, want a reset", err)
			}
			asked := "tcp " + s.dst.String()
			switch {
			case strings.HasPrefix(tt.rule, "no rule"), strings.HasPrefix(tt.name, "host from"), tt.name == "second host":
				asked = "server name evil.example on " + s.dst.String()
			case strings.HasPrefix(tt.name, "second host"):
				asked = "server name second.example on " + s.dst.String()
			}
			s.wantDenial(t, asked, tt.rule)
		})
	}
}

// A server that speaks HTTP/1 alone must not see the frames, in which requests could hide.
func TestRelayHTTP2NeedsHTTP2(t *testing.T) {
	saw := make(chan string, 1)
	l := serve(t, func(c *net.TCPConn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		all, _ := io.ReadAll(c)
		saw <- string(all)
	})
	s := startSite(t, l, "good.example")
	c := s.connect(t)
	hidden := "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	all := append([]byte(preface2), frame2(0xf0, 0, 0, []byte(hidden))...)
	all = append(all, frame2(1, end, 1, newEncoder2().get("good.example"))...)
	c.Write(all)
	if _, err := io.ReadAll(c); !isReset(err) {
		t.Errorf("the client saw %v, want a reset", err)
	}
	if got := <-saw; got != preface2 {
		t.Errorf("the server saw %q", got)
	}
	s.wantDenial(t, "server name good.example on "+s.dst.String(), "which the server does not")
}

func TestRelayHTTP2Trailer(t *testing.T) {
	s := startSite(t, serveHTTP(t), "good.example")
	c := s.connect(t)
	e := newEncoder2()
	all := append([]byte(preface2), frame2(4, 0, 0, nil)...)
	all = append(all, frame2(1, 4, 1, e.block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "good.example", "trailer", "x"))...)
	all = append(all, frame2(0, 0, 1, []byte("body"))...)
	all = append(all, frame2(1, end, 1, e.block("x", "y"))...)
	c.Write(all)
	var seen []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(seen, []byte("body")) {
		n, err := c.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, buffer[:n]...)
	}
	s.wantNoDenial(t)
}
