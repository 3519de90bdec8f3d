package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestParseRequest(t *testing.T) {
	tests := []struct {
		name    string
		head    string
		host    string
		length  int64
		upgrade upgrade
		passed  string // when it is not the head itself
		refuse  string // part of the reason
	}{
		{name: "plain", head: "GET / HTTP/1.1\r\nHost: Good.Example\r\n\r\n", host: "good.example"},
		{name: "port", head: "GET /x?y=http://evil.example/ HTTP/1.1\r\nHost: good.example:8080\r\n\r\n", host: "good.example"},
		{name: "HTTP/1.0", head: "GET / HTTP/1.0\r\nhost:good.example\r\n\r\n", host: "good.example"},
		{name: "absolute", head: "GET http://GOOD.example/x HTTP/1.1\r\nHost: good.example\r\n\r\n", host: "good.example"},
		{name: "absolute without path", head: "GET http://good.example?x HTTP/1.1\r\nHost: good.example\r\n\r\n", host: "good.example"},
		{name: "asterisk", head: "OPTIONS * HTTP/1.1\r\nHost: good.example\r\n\r\n", host: "good.example"},
		{name: "length", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 17\r\n\r\n", host: "good.example", length: 17},
		{name: "chunks", head: "POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: Chunked\r\n\r\n", host: "good.example", length: chunked},
		{
			name: "WebSocket", head: "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
			host: "good.example", upgrade: toWebSocket,
		},
		{
			name: "HTTP/2 in the connection", head: "GET / HTTP/1.1\r\nHost: good.example\r\nUpgrade: h2c\r\nA: b\r\n\r\n",
			host: "good.example", upgrade: toOther, passed: "GET / HTTP/1.1\r\nHost: good.example\r\nA: b\r\n\r\n",
		},
		{
			name: "two wishes", head: "GET / HTTP/1.1\r\nUpgrade: websocket\r\nHost: good.example\r\nUpgrade: TLS/1.2\r\n\r\n",
			host: "good.example", upgrade: toOther, passed: "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
		},
		{
			name: "WebSocket with a body", head: "GET / HTTP/1.1\r\nHost: good.example\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n",
			host: "good.example", length: 1, upgrade: toOther, passed: "GET / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 1\r\n\r\n",
		},
		{name: "no host", head: "GET / HTTP/1.1\r\n\r\n", refuse: "exactly one Host"},
		{name: "empty host", head: "GET / HTTP/1.1\r\nHost:\r\n\r\n", refuse: "is no name"},
		{name: "two hosts", head: "GET / HTTP/1.1\r\nHost: good.example\r\nHost: good.example\r\n\r\n", refuse: "exactly one Host"},
		{name: "host list", head: "GET / HTTP/1.1\r\nHost: good.example, evil.example\r\n\r\n", refuse: "no host name has"},
		{name: "address", head: "GET / HTTP/1.1\r\nHost: 203.0.113.9\r\n\r\n", refuse: "as an address"},
		{name: "short address", head: "GET / HTTP/1.1\r\nHost: 127.1:80\r\n\r\n", refuse: "as an address"},
		{name: "IPv6 address", head: "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", refuse: "is not a name"},
		{name: "user", head: "GET / HTTP/1.1\r\nHost: good.example@evil.example\r\n\r\n", refuse: "no host name has"},
		{name: "empty port", head: "GET / HTTP/1.1\r\nHost: good.example:\r\n\r\n", refuse: "a name and a port"},
		{name: "odd port", head: "GET / HTTP/1.1\r\nHost: good.example:80@evil.example\r\n\r\n", refuse: "a name and a port"},
		{name: "absolute and another host", head: "GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "one server in its target"},
		{name: "absolute and another port", head: "GET http://good.example:81/ HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "one server in its target"},
		{name: "absolute with a user", head: "GET http://good.example@evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "one server in its target"},
		{name: "absolute with nobody", head: "GET http:///x HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "names no server"},
		{name: "other scheme", head: "GET ftp://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "no known form"},
		{name: "CONNECT", head: "CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n", refuse: "CONNECT"},
		{name: "target without slash", head: "GET x HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "no known form"},
		{name: "space in target", head: "GET /a b HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "request line"},
		{name: "tab in target", head: "GET /a\tb HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "request line"},
		{name: "HTTP/0.9", head: "GET /\r\nHost: good.example\r\n\r\n", refuse: "request line"},
		{name: "HTTP/1.2", head: "GET / HTTP/1.2\r\nHost: good.example\r\n\r\n", refuse: "request line"},
		{name: "empty line first", head: "\r\nGET / HTTP/1.1\r\nHost: good.example\r\n\r\n", refuse: "request line"},
		{name: "length and chunks", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", refuse: "ambiguous"},
		{name: "two lengths", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", refuse: "ambiguous"},
		{name: "length list", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3, 3\r\n\r\n", refuse: "ambiguous"},
		{name: "signed length", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: +3\r\n\r\n", refuse: "ambiguous"},
		{name: "huge length", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 99999999999999999999\r\n\r\n", refuse: "ambiguous"},
		{name: "other coding", head: "POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", refuse: "ambiguous"},
		{name: "coding with a Kelvin sign", head: "POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chun\u212Aed\r\n\r\n", refuse: "ambiguous"},
		{name: "chunks in HTTP/1.0", head: "POST / HTTP/1.0\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n", refuse: "ambiguous"},
		{name: "space before colon", head: "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length : 3\r\n\r\n", refuse: "malformed header"},
		{name: "continued line", head: "GET / HTTP/1.1\r\nHost: good.example\r\nA: b\r\n Host: evil.example\r\n\r\n", refuse: "malformed header"},
		{name: "bare LF", head: "GET / HTTP/1.1\r\nHost: good.example\nHost: evil.example\r\n\r\n", refuse: "not CRLF"},
		{name: "bare CR", head: "GET / HTTP/1.1\r\nHost: good.example\rHost: evil.example\r\n\r\n", refuse: "not CRLF"},
		{name: "NUL", head: "GET / HTTP/1.1\r\nHost: good.example\x00\r\n\r\n", refuse: "NUL"},
		{name: "line without colon", head: "GET / HTTP/1.1\r\nHost: good.example\r\nx\r\n\r\n", refuse: "malformed header"},
		{name: "host as a matter of the connection", head: "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: close, host\r\n\r\n", refuse: "Connection header"},
		{name: "two heads", head: "GET / HTTP/1.1\r\nHost: good.example\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", refuse: "malformed header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := parseRequest([]byte(tt.head))
			if tt.refuse != "" {
				if why := (*refusal)(nil); !errors.As(err, &why) || !strings.Contains(why.rule, tt.refuse) {
					t.Errorf("request = %+v, %v; want a refusal with %q", req, err, tt.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.passed == "" {
				tt.passed = tt.head
			}
			if req.host != tt.host || req.length != tt.length || req.upgrade != tt.upgrade || string(req.head) != tt.passed {
				t.Errorf("request = %q, %d, %d, %q", req.host, req.length, req.upgrade, req.head)
			}
		})
	}
}

// FuzzRequest: where the relay takes a head, a real server that takes it too sees the same
// host and the same body, and what is passed on is taken alike again.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: good.example:80\r\n\r\n"))
	f.Add([]byte("POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 5\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: good.example\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n\r\n"))
	f.Add([]byte("GET //evil.example/ HTTP/1.1\r\nHost: good.example\r\nX: \xff\r\n\r\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		req, err := parseRequest(bytes.Clone(head))
		if err != nil {
			return
		}
		again, err := parseRequest(bytes.Clone(req.head))
		if err != nil || again.host != req.host || again.length != req.length || again.upgrade == toOther {
			t.Fatalf("what is passed on reads as %+v, %v; want %+v", again, err, req)
		}
		theirs, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(req.head)))
		if err != nil {
			return
		}
		host, _, _ := strings.Cut(theirs.Host, ":")
		if got, problem := canonicalName(host); problem != "" || got != req.host {
			t.Errorf("a server sees host %q, the relay %q", theirs.Host, req.host)
		}
		if length := theirs.ContentLength; length != req.length {
			t.Errorf("a server sees %d bytes of body, the relay %d", length, req.length)
		}
		if (len(theirs.TransferEncoding) > 0) != (req.length == chunked) {
			t.Errorf("a server sees coding %q, the relay a length of %d", theirs.TransferEncoding, req.length)
		}
	})
}
