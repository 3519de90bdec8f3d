package egress_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"stockade/sandbox/egress"
)

// withID sets the id of a packed message.
func withID(id byte, message []byte) []byte {
	message[0], message[1] = 0, id
	return message
}

// Resolvers send both questions at once, and a slow answer to one must not hold up the other.
func TestStubPipelining(t *testing.T) {
	release := make(chan struct{})
	ns := startNameServer(t, func(_ string, q dnsmessage.Message) []byte {
		if q.Questions[0].Type == dnsmessage.TypeA {
			<-release
		}
		return zoneAnswer(testZone(), q)
	})
	// Two servers' worth of the same one: it answers one question at a time.
	other := startNameServer(t, zone(testZone()))
	stub, _ := startStub(t, egress.NewDecider(policy(t, "good.example", "v4only.example"), nil), ns.addr, other.addr)
	c, err := net.Dial("tcp", stub.Addr(netip.IPv4Unspecified()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	pair := append(framed(withID(1, query("good.example.", dnsmessage.TypeA))), framed(withID(2, query("evil.example.", dnsmessage.TypeA)))...)
	// Split where no message ends.
	c.Write(pair[:7])
	c.Write(pair[7:])
	read := func() dnsmessage.Message {
		reply, err := readFramed(c)
		if err != nil {
			t.Fatal(err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := read(); m.ID != 2 || summary(m) != "NameError" {
		t.Errorf("first answer: %d %q", m.ID, summary(m))
	}
	close(release)
	if m := read(); m.ID != 1 || summary(m) != "Success good.example.=8.8.4.4" {
		t.Errorf("second answer: %d %q", m.ID, summary(m))
	}
	// The connection goes on.
	c.Write(framed(withID(3, query("v4only.example.", dnsmessage.TypeA))))
	c.(*net.TCPConn).CloseWrite()
	if m := read(); m.ID != 3 || summary(m) != "Success v4only.example.=9.9.9.11" {
		t.Errorf("third answer: %d %q", m.ID, summary(m))
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the client's end: %v", err)
	}
}

// The connection that was idle for longest makes room for the newest.
func TestStubManyStreams(t *testing.T) {
	stub, _ := startStub(t, egress.NewDecider(policy(t, "good.example"), nil))
	to := stub.Addr(netip.IPv4Unspecified())
	var all []net.Conn
	for i := range 70 {
		c, err := net.Dial("tcp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		c.Write(framed(query("evil.example.", dnsmessage.TypeA)))
		if _, err := readFramed(c); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		all = append(all, c)
	}
	// Which ones exactly depends on when the stub learns that its answers are out.
	var closed []int
	for i, c := range all {
		c.Write(framed(query("evil.example.", dnsmessage.TypeA)))
		if _, err := readFramed(c); err != nil {
			closed = append(closed, i)
		}
	}
	if len(closed) != 6 || closed[5] > 35 {
		t.Errorf("closed: %d, want six early ones", closed)
	}
}

func TestStubMalformed(t *testing.T) {
	ns := startNameServer(t, zone(testZone()))
	stub, _ := startStub(t, egress.NewDecider(policy(t, "good.example"), nil), ns.addr)
	to := stub.Addr(netip.IPv4Unspecified())
	good := query("good.example.", dnsmessage.TypeA)
	c, err := net.Dial("udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	answerTo := append([]byte(nil), good...)
	answerTo[2] |= 0x80
	loop := append([]byte(nil), good[:12]...)
	loop = append(loop, 0xc0, 12, 0, 1, 0, 1)
	for _, dropped := range [][]byte{nil, {1}, good[:11], answerTo} {
		c.Write(dropped)
	}
	// These get an answer, the ones before get none: the first answer is to them.
	for i, broken := range [][]byte{good[:12], good[:20], loop} {
		c.Write(withID(byte(i), append([]byte(nil), broken...)))
		reply := make([]byte, 512)
		n, err := c.Read(reply)
		if err != nil {
			t.Fatal(err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply[:n]); err != nil || m.ID != uint16(i) || summary(m) != "FormatError" {
			t.Errorf("answer to %x: %x, %v", broken, reply[:n], err)
		}
	}
	if got, want := summary(exchange(t, "udp", to, good)), "Success good.example.=8.8.4.4"; got != want {
		t.Errorf("afterwards: %q, want %q", got, want)
	}
}

// More questions than the stub takes in hand are refused at once, not kept for ever.
func TestStubFlood(t *testing.T) {
	ns := startNameServer(t, func(string, dnsmessage.Message) []byte { return nil })
	stub, _ := startStub(t, egress.NewDecider(policy(t, "*.wide.example"), nil), ns.addr)
	c, err := net.Dial("udp", stub.Addr(netip.IPv4Unspecified()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	for i := range 600 {
		c.Write(query(fmt.Sprintf("n%d.wide.example.", i), dnsmessage.TypeA))
		if i%50 == 49 {
			// The stub reads in order: an answer to this means that all before were read.
			if got := summary(exchange(t, "udp", stub.Addr(netip.IPv4Unspecified()), query("evil.example.", dnsmessage.TypeA))); got != "NameError" {
				t.Fatalf("a refused name in a flood: %q", got)
			}
		}
	}
	reply := make([]byte, 512)
	n, err := c.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply[:n]); err != nil || summary(m) != "ServerFailure" {
		t.Errorf("the first answer in a flood: %q, %v", summary(m), err)
	}
}

func TestStubAddr(t *testing.T) {
	stub, _ := startStub(t, egress.NewDecider(policy(t), nil))
	four := stub.Addr(netip.MustParseAddr("192.0.2.1"))
	if !four.Addr().Is4() || !four.Addr().IsLoopback() {
		t.Errorf("for IPv4: %s", four)
	}
	mapped := stub.Addr(netip.MustParseAddr("::ffff:192.0.2.1"))
	if want := netip.MustParseAddr("::ffff:127.0.0.1"); mapped.Addr() != want || mapped.Port() != four.Port() {
		t.Errorf("for mapped addresses: %s", mapped)
	}
	six := stub.Addr(netip.MustParseAddr("2001:db8::1"))
	probe, err := net.Listen("tcp6", "[::1]:0")
	want := netip.MustParseAddr("::ffff:127.0.0.1")
	if err == nil {
		probe.Close()
		want = netip.IPv6Loopback()
	}
	if six.Addr() != want || six.Port() != four.Port() {
		t.Errorf("for IPv6: %s, want %s", six, want)
	}
	for _, to := range []netip.AddrPort{four, six} {
		for _, network := range []string{"udp", "tcp"} {
			if got := summary(exchange(t, network, to, query("evil.example.", dnsmessage.TypeA))); got != "NameError" {
				t.Errorf("%s %s: %q", network, to, got)
			}
		}
	}
}

func TestForward(t *testing.T) {
	ns := startNameServer(t, zone(testZone()))
	d := egress.NewDecider(policy(t, "good.example", "v4only.example"), nil)
	stub, told := startStub(t, d, ns.addr)
	const never = "refused.stockade.invalid."
	odd := query("Good.Example.", dnsmessage.TypeA)
	odd[2] |= 2 // truncated: no business of a query
	tests := []struct {
		name  string
		query []byte
		want  string
	}{
		{"allowed", odd, "TypeA good.example."},
		{"allowed AAAA", query("good.example.", dnsmessage.TypeAAAA), "TypeAAAA good.example."},
		{"other type", query("good.example.", dnsmessage.TypeTXT), "TypeA good.example."},
		{"refused", query("tunnel.evil.example.", dnsmessage.TypeA), "TypeA " + never},
		{"PTR", query("4.4.8.8.in-addr.arpa.", dnsmessage.TypePTR), "TypeA " + never},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := stub.Forward(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			var m dnsmessage.Message
			if err := m.Unpack(out); err != nil {
				t.Fatal(err)
			}
			if got := m.Questions[0].Type.String() + " " + m.Questions[0].Name.String(); got != tt.want {
				t.Errorf("forwarded %q, want %q", got, tt.want)
			}
			if want := (dnsmessage.Header{ID: 0x4711, RecursionDesired: true}); m.Header != want || len(m.Questions) != 1 {
				t.Errorf("forwarded header %+v", m.Header)
			}
		})
	}
	if got := d.Stream(netip.MustParseAddrPort("8.8.4.4:443")).Verdict; got != egress.Relayed {
		t.Errorf("the forwarded name's address is %s", got)
	}
	if lines := told.lines(); len(lines) != 2 || !strings.Contains(lines[0], "tunnel.evil.example") {
		t.Errorf("refusals: %q", lines)
	}
	// Answers from the cache are not what the server says now.
	before := len(ns.questions())
	for range 2 {
		if _, err := stub.Forward(query("v4only.example.", dnsmessage.TypeA)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(ns.questions()) - before; got != 2 {
		t.Errorf("two forwarded queries led to %d questions", got)
	}
	answer := query("good.example.", dnsmessage.TypeA)
	answer[2] |= 0x80
	for _, bad := range [][]byte{nil, {1, 2, 3}, answer} {
		if out, err := stub.Forward(bad); err == nil {
			t.Errorf("Forward(%x) = %x", bad, out)
		}
	}
}

// FuzzStubMessage: whatever a client sends, the answer is one, has its id, and never more
// than 512 bytes over UDP.
func FuzzStubMessage(f *testing.F) {
	d := egress.NewDecider(policy(f, "good.example"), nil)
	stub, _ := startStub(f, d)
	stub.SetHosts(egress.ParseHosts([]byte("9.9.9.9 good.example")))
	to := stub.Addr(netip.IPv4Unspecified()).String()
	f.Add(query("good.example.", dnsmessage.TypeA))
	f.Add(query("evil.example.", dnsmessage.TypeAAAA))
	f.Add([]byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	c, err := net.Dial("udp", to)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close()
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > 4000 || bytes.HasPrefix(message, []byte{0xfe, 0xed}) {
			return
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write(message); err != nil {
			t.Fatal(err)
		}
		// One that is answered for certain comes after it.
		marker := query("good.example.", dnsmessage.TypeA)
		marker[0], marker[1] = 0xfe, 0xed
		c.Write(marker)
		reply := make([]byte, 1<<16)
		for answers := 0; ; answers++ {
			n, err := c.Read(reply)
			if err != nil {
				t.Fatal(err)
			}
			var m dnsmessage.Message
			if err := m.Unpack(reply[:n]); err != nil || !m.Response || n > 512 {
				t.Fatalf("answer %x: %v", reply[:n], err)
			}
			if m.ID == 0xfeed {
				return
			}
			if len(message) < 2 || m.ID != uint16(message[0])<<8|uint16(message[1]) || answers > 0 {
				t.Fatalf("answer %x to %x", reply[:n], message)
			}
		}
	})
}
