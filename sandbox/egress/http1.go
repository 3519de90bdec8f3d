package egress

import (
	"bytes"
	"math"
	"strings"
)

// An upgrade is what a request asks the connection to become (RFC 9110 7.8).
type upgrade uint8

const (
	_ upgrade = iota // nothing
	// toWebSocket is let through: a WebSocket goes to the server that answered for the name.
	toWebSocket
	// toOther is left out of the request that is passed on, which any intermediary may do.
	// HTTP/2 and TLS inside the connection could name another server, unseen.
	toOther
)

// chunked is the length of a body that says itself where it ends.
const chunked = -1

// request is the head of an HTTP/1 request, as far as the relay needs it.
type request struct {
	host    string // in the form that rules hold
	length  int64  // of the body in bytes, or chunked
	upgrade upgrade
	head    []byte // what to pass on, with its empty line
}

// parseRequest reads a whole head, from the request line through the empty line. It takes
// only what all servers read alike (RFC 9112): where two of them could see another host or
// another end of the body, requests could be smuggled past the relay, so that is refused.
func parseRequest(head []byte) (*request, error) {
	lines, err := headLines(head)
	if err != nil {
		return nil, err
	}
	req := &request{}
	authority, version, err := requestLine(lines[0])
	if err != nil {
		return nil, err
	}
	var f framing
	var hosts []string
	var upgrades [][]byte
	for _, line := range lines[1:] {
		name, value, err := headerField(line)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.EqualFold(name, "Host"):
			hosts = append(hosts, value)
		case strings.EqualFold(name, "Upgrade"):
			upgrades = append(upgrades, line)
			req.upgrade = toOther
			if sameASCII(value, "websocket") && len(upgrades) == 1 && version == '1' {
				req.upgrade = toWebSocket
			}
		default:
			if err := f.field(name, value); err != nil {
				return nil, err
			}
		}
	}
	if req.length, err = f.length(version); err != nil {
		return nil, err
	}
	if req.upgrade == toWebSocket && req.length != 0 {
		req.upgrade = toOther
	}
	if req.host, err = requestHost(hosts, authority); err != nil {
		return nil, err
	}
	req.head = head
	if req.upgrade == toOther {
		req.head = without(head, upgrades)
	}
	return req, nil
}

// headLines splits a head at its line ends, which are CRLF and nothing else.
func headLines(head []byte) ([][]byte, error) {
	body, whole := bytes.CutSuffix(head, []byte("\r\n\r\n"))
	if !whole {
		return nil, refuse("the HTTP request has no end")
	}
	lines := bytes.Split(body, []byte("\r\n"))
	for _, line := range lines {
		if bytes.ContainsAny(line, "\r\n\x00") {
			return nil, refuse("the HTTP request has a line end that is not CRLF, or a NUL")
		}
	}
	return lines, nil
}

// requestLine returns the authority of a request in absolute form, "" for one in origin
// form, and the digit after HTTP/1.
func requestLine(line []byte) (authority string, minor byte, err error) {
	method, rest, found := strings.Cut(string(line), " ")
	target, version, both := strings.Cut(rest, " ")
	if !found || !both || !isToken(method) || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return "", 0, refuse("the HTTP request line is malformed")
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return "", 0, refuse("the HTTP request line is malformed")
		}
	}
	minor = version[len(version)-1]
	scheme, after, absolute := strings.Cut(target, "://")
	switch {
	case method == "CONNECT":
		return "", 0, refuse("HTTP CONNECT asks for another server")
	case strings.HasPrefix(target, "/"), target == "*" && method == "OPTIONS":
		return "", minor, nil
	case absolute && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")):
		if end := strings.IndexAny(after, "/?#"); end >= 0 {
			after = after[:end]
		}
		if after == "" {
			return "", 0, refuse("the HTTP request names no server")
		}
		return after, minor, nil
	}
	return "", 0, refuse("the HTTP request line has a target of no known form")
}

// headerField splits a line into name and value. Continued lines begin with a space, which
// no name does.
func headerField(line []byte) (name, value string, err error) {
	name, value, found := strings.Cut(string(line), ":")
	if !found || !isToken(name) {
		return "", "", refuse("the HTTP request has a malformed header line")
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if value[i] < ' ' && value[i] != '\t' || value[i] == 0x7f {
			return "", "", refuse("the HTTP request has a control character in a header")
		}
	}
	return name, value, nil
}

// isToken knows method and header names (RFC 9110 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		letter := s[i]&^0x20 >= 'A' && s[i]&^0x20 <= 'Z'
		if !letter && !isDigit(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// framing collects what says where a body ends.
type framing struct {
	lengths, codings []string
}

// field takes a header of a request, or of the trailer after a chunked body.
func (f *framing) field(name, value string) error {
	switch {
	case strings.EqualFold(name, "Content-Length"):
		f.lengths = append(f.lengths, value)
	case strings.EqualFold(name, "Transfer-Encoding"):
		f.codings = append(f.codings, value)
	case strings.EqualFold(name, "Connection"), strings.EqualFold(name, "Proxy-Connection"):
		// Names in it are dropped by the next intermediary: of these, none may be.
		for token := range strings.SplitSeq(value, ",") {
			token = strings.Trim(token, " \t")
			if sameASCII(token, "Host") || sameASCII(token, "Content-Length") || sameASCII(token, "Transfer-Encoding") {
				return refuse("the HTTP request has a Connection header about its own end or host")
			}
		}
	}
	return nil
}

// length decides on the body's length (RFC 9112 6.3), and refuses what could be read in two
// ways: both headers, one of them twice, other codings, lists, signs, spaces.
func (f *framing) length(version byte) (int64, error) {
	ambiguous := refuse("the HTTP request has a body whose end is ambiguous")
	switch {
	case len(f.lengths)+len(f.codings) > 1:
		return 0, ambiguous
	case len(f.codings) == 1:
		if version == '0' || !sameASCII(f.codings[0], "chunked") {
			return 0, ambiguous
		}
		return chunked, nil
	case len(f.lengths) == 1:
		n, ok := digits(f.lengths[0], 10)
		if !ok {
			return 0, ambiguous
		}
		return n, nil
	}
	return 0, nil
}

// digits reads a number with nothing around it.
func digits(text string, base int64) (int64, bool) {
	if text == "" {
		return 0, false
	}
	var n int64
	for i := range len(text) {
		var digit int64
		switch c := text[i]; {
		case isDigit(c):
			digit = int64(c - '0')
		case 'a' <= c && c <= 'f':
			digit = int64(c-'a') + 10
		case 'A' <= c && c <= 'F':
			digit = int64(c-'A') + 10
		default:
			return 0, false
		}
		if digit >= base || n > (math.MaxInt64-digit)/base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, true
}

// requestHost brings Host and the authority of an absolute target together. Which of the two
// a server believes differs between servers, so they have to agree to the byte, but for case.
func requestHost(hosts []string, authority string) (string, error) {
	if len(hosts) != 1 {
		return "", refuse("the HTTP request does not have exactly one Host header")
	}
	if authority != "" && !sameASCII(authority, hosts[0]) {
		return "", refuse("the HTTP request names one server in its target and another one in Host")
	}
	return authorityName(hosts[0])
}

// authorityName takes the name out of "name" or "name:port".
func authorityName(authority string) (string, error) {
	name, port, found := strings.Cut(authority, ":")
	if _, ok := digits(port, 10); found && (!ok || len(port) > 5) {
		return "", refuse("the server name " + quoted(authority) + " is not a name, or a name and a port")
	}
	return serverName(name)
}

// without returns a head without some of its lines, which are parts of it.
func without(head []byte, lines [][]byte) []byte {
	kept := make([]byte, 0, len(head))
	for line := range bytes.Lines(head) {
		drop := false
		for _, l := range lines {
			drop = drop || &line[0] == &l[0]
		}
		if !drop {
			kept = append(kept, line...)
		}
	}
	return kept
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// sameASCII compares without case. Unicode folds some letters onto ASCII ones, but those
// take more bytes.
func sameASCII(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
