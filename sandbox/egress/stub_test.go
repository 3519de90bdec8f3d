package egress_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"stockade/sandbox/egress"
)

// nameServer is a name server on loopback that answers as a test says.
type nameServer struct {
	addr   netip.AddrPort
	answer func(network string, q dnsmessage.Message) []byte // nil: no answer

	mu    sync.Mutex
	asked []string // "udp A name."
	raw   [][]byte
}

func startNameServer(t testing.TB, answer func(network string, q dnsmessage.Message) []byte) *nameServer {
	t.Helper()
	ns := &nameServer{answer: answer}
	var udp net.PacketConn
	var tcp net.Listener
	for try := 0; ; try++ {
		var err error
		if tcp, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if udp, err = net.ListenPacket("udp4", tcp.Addr().String()); err == nil {
			break
		}
		tcp.Close()
		if try == 20 {
			t.Fatal(err)
		}
	}
	ns.addr = tcp.Addr().(*net.TCPAddr).AddrPort()
	var running sync.WaitGroup
	running.Go(func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := ns.reply("udp", append([]byte(nil), buffer[:n]...)); reply != nil {
				udp.WriteTo(reply, from)
			}
		}
	})
	running.Go(func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			if query, err := readFramed(c); err == nil {
				c.Write(framed(ns.reply("tcp", query)))
			}
			c.Close()
		}
	})
	t.Cleanup(func() { udp.Close(); tcp.Close(); running.Wait() })
	return ns
}

func (ns *nameServer) reply(network string, query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	ns.mu.Lock()
	ns.asked = append(ns.asked, network+" "+strings.TrimPrefix(m.Questions[0].Type.String(), "Type")+" "+m.Questions[0].Name.String())
	ns.raw = append(ns.raw, query)
	ns.mu.Unlock()
	return ns.answer(network, m)
}

func (ns *nameServer) questions() []string {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return append([]string(nil), ns.asked...)
}

func framed(m []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...) }

func readFramed(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	m := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, m)
	return m, err
}

// zone answers from a table: name → addresses, or "=other" for an alias.
func zone(names map[string][]string) func(string, dnsmessage.Message) []byte {
	return func(_ string, q dnsmessage.Message) []byte { return zoneAnswer(names, q) }
}

func zoneAnswer(names map[string][]string, q dnsmessage.Message) []byte {
	q.Response, q.RecursionAvailable, q.Additionals = true, true, nil
	name := q.Questions[0].Name
	for range 5 {
		values, known := names[strings.TrimSuffix(name.String(), ".")]
		if !known {
			q.RCode = dnsmessage.RCodeNameError
			break
		}
		next := name
		for _, v := range values {
			header := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 1000}
			if target, is := strings.CutPrefix(v, "="); is {
				next = dnsmessage.MustNewName(target + ".")
				q.Answers = append(q.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: next}})
				continue
			}
			addr := netip.MustParseAddr(v)
			switch {
			case addr.Is4() && q.Questions[0].Type == dnsmessage.TypeA:
				q.Answers = append(q.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
			case addr.Is6() && q.Questions[0].Type == dnsmessage.TypeAAAA:
				q.Answers = append(q.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
			}
		}
		if next == name {
			break
		}
		name = next
	}
	message, err := q.Pack()
	if err != nil {
		panic(err)
	}
	return message
}

// denials collects refusals.
type denials struct {
	mu  sync.Mutex
	all []egress.Denial
}

func (d *denials) add(one egress.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
}

// lines are "call|asked|rule|hint".
func (d *denials) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	for _, one := range d.all {
		lines = append(lines, strings.Join([]string{one.Call, one.Asked, one.Rule, one.Hint}, "|"))
	}
	return lines
}

func policy(t testing.TB, rules ...string) egress.Policy {
	t.Helper()
	var p egress.Policy
	for _, text := range rules {
		parsed, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, parsed...)
	}
	return p
}

func startStub(t testing.TB, d *egress.Decider, servers ...netip.AddrPort) (*egress.Stub, *denials) {
	t.Helper()
	told := &denials{}
	stub, err := egress.NewStub(d, servers, told.add)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stub.Close(); err != nil {
			t.Error(err)
		}
	})
	return stub, told
}

// nobody is an address where no name server is: its port was free a moment ago.
func nobody(t testing.TB) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func query(name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0x4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

// exchange sends a message over UDP or TCP and returns the answer.
func exchange(t testing.TB, network string, to netip.AddrPort, message []byte) dnsmessage.Message {
	t.Helper()
	c, err := net.Dial(network, to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	var reply []byte
	if network == "tcp" {
		c.Write(framed(message))
		reply, err = readFramed(c)
	} else {
		c.Write(message)
		reply = make([]byte, 1<<16)
		var n int
		n, err = c.Read(reply)
		reply = reply[:n]
		if n > 512 {
			t.Errorf("an answer over UDP has %d bytes, limit 512", n)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	return m
}

// summary is what a client sees: code, flags, and records.
func summary(m dnsmessage.Message) string {
	parts := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	if m.Truncated {
		parts = append(parts, "truncated")
	}
	for _, r := range m.Answers {
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			parts = append(parts, r.Header.Name.String()+"="+netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			parts = append(parts, r.Header.Name.String()+"="+netip.AddrFrom16(body.AAAA).String())
		default:
			parts = append(parts, r.Header.Name.String()+"="+r.Header.Type.String())
		}
	}
	return strings.Join(parts, " ")
}

func testZone() map[string][]string {
	return map[string][]string{
		"good.example":     {"8.8.4.4", "2001:4860:4860::8844"},
		"alias.example":    {"=edge.example"},
		"edge.example":     {"=edge2.example"},
		"edge2.example":    {"9.9.9.9"},
		"mixed.example":    {"10.0.0.5", "9.9.9.10", "127.0.0.1"},
		"private.example":  {"10.0.0.6"},
		"v4only.example":   {"9.9.9.11"},
		"evil.example":     {"6.6.6.6"},
		"a.wide.example":   {"9.9.9.12"},
		"metadata.example": {"169.254.169.254"},
	}
}

func TestStubAnswers(t *testing.T) {
	ns := startNameServer(t, zone(testZone()))
	d := egress.NewDecider(policy(t, "good.example", "alias.example", "mixed.example", "private.example:5432", "v4only.example",
		"gone.example", "*.wide.example", "metadata.example", "local.example"), nil)
	stub, told := startStub(t, d, ns.addr)
	stub.SetHosts(egress.ParseHosts([]byte("9.9.9.20 Local.Example other.example # x\n2620:fe::fe local.example\n")))

	header := func(change func(*dnsmessage.Message)) []byte {
		m := dnsmessage.Message{
			Header:    dnsmessage.Header{ID: 0x4711},
			Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("good.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		}
		change(&m)
		packed, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	tests := []struct {
		name  string
		query []byte
		want  string
	}{
		{"A", query("good.example.", dnsmessage.TypeA), "Success good.example.=8.8.4.4"},
		{"AAAA", query("good.example.", dnsmessage.TypeAAAA), "Success good.example.=2001:4860:4860::8844"},
		{"spelling comes back", query("GooD.eXample.", dnsmessage.TypeA), "Success GooD.eXample.=8.8.4.4"},
		{"alias is followed and left out", query("alias.example.", dnsmessage.TypeA), "Success alias.example.=9.9.9.9"},
		{"special addresses are left out", query("mixed.example.", dnsmessage.TypeA), "Success mixed.example.=9.9.9.10"},
		{"only special addresses", query("private.example.", dnsmessage.TypeA), "Success"},
		{"metadata address", query("metadata.example.", dnsmessage.TypeA), "Success"},
		{"no address of the kind", query("v4only.example.", dnsmessage.TypeAAAA), "Success"},
		{"wildcard", query("a.wide.example.", dnsmessage.TypeA), "Success a.wide.example.=9.9.9.12"},
		{"name does not exist", query("gone.example.", dnsmessage.TypeA), "NameError"},
		{"hosts file A", query("local.example.", dnsmessage.TypeA), "Success local.example.=9.9.9.20"},
		{"hosts file AAAA", query("local.example.", dnsmessage.TypeAAAA), "Success local.example.=2620:fe::fe"},
		{"hosts file, no rule", query("other.example.", dnsmessage.TypeA), "NameError"},
		{"HTTPS record", query("good.example.", dnsmessage.Type(65)), "Success"},
		{"SVCB record", query("good.example.", dnsmessage.Type(64)), "Success"},
		{"TXT", query("good.example.", dnsmessage.TypeTXT), "Success"},
		{"ANY", query("good.example.", dnsmessage.TypeALL), "Success"},
		{"refused", query("evil.example.", dnsmessage.TypeA), "NameError"},
		{"refused TXT", query("secret.evil.example.", dnsmessage.TypeTXT), "NameError"},
		{"refused again", query("EVIL.example.", dnsmessage.TypeAAAA), "NameError"},
		{"wildcard's own name", query("wide.example.", dnsmessage.TypeA), "NameError"},
		{"root", query(".", dnsmessage.TypeNS), "NameError"},
		{"no host name", query("good.example\x00.", dnsmessage.TypeA), "NameError"},
		{"PTR", query("4.4.8.8.in-addr.arpa.", dnsmessage.TypePTR), "NameError"},
		{"PTR of an allowed name", query("good.example.", dnsmessage.TypePTR), "NameError"},
		{"class", header(func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), "Refused"},
		{"no question", header(func(m *dnsmessage.Message) { m.Questions = nil }), "FormatError"},
		{"two questions", header(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), "FormatError"},
		{"update", header(func(m *dnsmessage.Message) { m.OpCode = 5 }), "NotImplemented"},
		{"EDNS", header(func(m *dnsmessage.Message) {
			var rh dnsmessage.ResourceHeader
			if err := rh.SetEDNS0(4096, 0, true); err != nil {
				t.Fatal(err)
			}
			m.Additionals = []dnsmessage.Resource{{Header: rh, Body: &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: 3, Data: []byte("secret")}}}}}
		}), "Success good.example.=8.8.4.4"},
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, tt := range tests {
			t.Run(network+" "+tt.name, func(t *testing.T) {
				m := exchange(t, network, stub.Addr(netip.IPv4Unspecified()), tt.query)
				if got := summary(m); got != tt.want {
					t.Errorf("answer = %q, want %q", got, tt.want)
				}
				if m.ID != 0x4711 || !m.Response || len(m.Additionals) != 0 {
					t.Errorf("the answer has the header %+v and %d additional records", m.Header, len(m.Additionals))
				}
				for _, r := range m.Answers {
					if r.Header.TTL > 300 {
						t.Errorf("the answer is for %d seconds", r.Header.TTL)
					}
				}
			})
		}
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for _, raw := range ns.raw {
		if strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "GooD") {
			t.Errorf("a query went out with the client's own words: %q", raw)
		}
	}
	want := []string{
		`dns|name mixed.example at 10.0.0.5|10.0.0.5 is private (RFC 1918)|add {to: "mixed.example:443", addresses: any} to network.egress`,
		`dns|name mixed.example at 127.0.0.1|127.0.0.1 is loopback (RFC 1122)|add {to: "mixed.example:443", addresses: any} to network.egress`,
		`dns|name private.example at 10.0.0.6|10.0.0.6 is private (RFC 1918)|add {to: "private.example:5432", addresses: any} to network.egress`,
		`dns|name metadata.example at 169.254.169.254|169.254.169.254 is cloud metadata (Amazon, Azure, Google Cloud and others)|`,
		`dns|name other.example|no rule names other.example|add "other.example:443" to network.egress`,
		`dns|name evil.example|no rule names evil.example|add "evil.example:443" to network.egress`,
		`dns|name secret.evil.example|no rule names secret.evil.example|add "secret.evil.example:443" to network.egress`,
		`dns|name wide.example|no rule names wide.example|add "wide.example:443" to network.egress`,
		`dns|name |"" is no name|`,
		`dns|name "good.example\x00"|"good.example\x00" holds '\x00', which no host name has|`,
		`dns|name 4.4.8.8.in-addr.arpa|no rule names 4.4.8.8.in-addr.arpa|add "4.4.8.8.in-addr.arpa:443" to network.egress`,
	}
	if diff := cmp.Diff(want, told.lines()); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	for _, asked := range ns.asked {
		if strings.Contains(asked, "evil") || strings.Contains(asked, "arpa") || strings.Contains(asked, "local") {
			t.Errorf("the name server was asked %q", asked)
		}
	}
}

func TestStubPinsWhatItAnswers(t *testing.T) {
	ns := startNameServer(t, zone(testZone()))
	d := egress.NewDecider(policy(t, "good.example:443", "mixed.example:5432"), nil)
	stub, _ := startStub(t, d, ns.addr)
	at := netip.MustParseAddrPort("8.8.4.4:443")
	if got := d.Stream(at).Verdict; got != egress.Refused {
		t.Fatalf("before the answer, %s is %s", at, got)
	}
	exchange(t, "udp", stub.Addr(netip.IPv6Unspecified()), query("good.example.", dnsmessage.TypeA))
	if got := d.Stream(at).Verdict; got != egress.Relayed {
		t.Errorf("after the answer, %s is %s", at, got)
	}
	addrs, err := stub.Resolve(t.Context(), "Mixed.Example.")
	if err != nil || !cmp.Equal(addrs, []netip.Addr{netip.MustParseAddr("9.9.9.10")}, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
		t.Errorf("Resolve = %v, %v", addrs, err)
	}
	if got := d.Stream(netip.MustParseAddrPort("9.9.9.10:5432")).Verdict; got != egress.Direct {
		t.Errorf("a resolved address is %s", got)
	}
}

func TestStubWithoutNameServer(t *testing.T) {
	d := egress.NewDecider(policy(t, "good.example"), nil)
	for _, servers := range [][]netip.AddrPort{nil, {nobody(t)}} {
		stub, _ := startStub(t, d, servers...)
		to := stub.Addr(netip.IPv4Unspecified())
		if got := summary(exchange(t, "udp", to, query("evil.example.", dnsmessage.TypeA))); got != "NameError" {
			t.Errorf("a refused name: %q", got)
		}
		if got := summary(exchange(t, "udp", to, query("good.example.", dnsmessage.TypeA))); got != "ServerFailure" {
			t.Errorf("an allowed name: %q", got)
		}
		if addrs, err := stub.Resolve(t.Context(), "good.example"); err == nil {
			t.Errorf("Resolve = %v", addrs)
		}
	}
}

func TestStubNextServer(t *testing.T) {
	failing := startNameServer(t, func(_ string, q dnsmessage.Message) []byte {
		q.Response, q.RCode = true, dnsmessage.RCodeServerFailure
		packed, _ := q.Pack()
		return packed
	})
	ns := startNameServer(t, zone(testZone()))
	d := egress.NewDecider(policy(t, "good.example", "v4only.example"), nil)
	stub, _ := startStub(t, d, nobody(t), failing.addr, ns.addr)
	to := stub.Addr(netip.IPv4Unspecified())
	for _, name := range []string{"good.example.", "v4only.example."} {
		if got := summary(exchange(t, "udp", to, query(name, dnsmessage.TypeA))); !strings.HasPrefix(got, "Success "+name) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The one that answered is asked first from then on.
	if got := failing.questions(); len(got) != 1 {
		t.Errorf("the failing server was asked %q", got)
	}
}

// forge changes an answer to one that must not be believed.
func TestStubForeignAnswers(t *testing.T) {
	tests := []struct {
		name  string
		forge func(*dnsmessage.Message)
	}{
		{"other id", func(m *dnsmessage.Message) { m.ID++ }},
		{"other name", func(m *dnsmessage.Message) {
			m.Questions[0].Name = dnsmessage.MustNewName("good.example.evil.example.")
		}},
		{"other type", func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeAAAA }},
		{"other class", func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }},
		{"a query", func(m *dnsmessage.Message) { m.Response = false }},
		{"two questions", func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var server net.PacketConn
			server, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				buffer := make([]byte, 1500)
				n, from, err := server.ReadFrom(buffer)
				if err != nil {
					return
				}
				var q, forged dnsmessage.Message
				if q.Unpack(buffer[:n]) != nil {
					return
				}
				if forged.Unpack(zoneAnswer(map[string][]string{"good.example": {"6.6.6.6"}}, q)) != nil {
					return
				}
				tt.forge(&forged)
				packed, _ := forged.Pack()
				server.WriteTo(packed, from)
				server.WriteTo([]byte("x"), from)
				server.WriteTo(zoneAnswer(testZone(), q), from)
			}()
			defer func() { server.Close(); <-done }()
			d := egress.NewDecider(policy(t, "good.example"), nil)
			stub, _ := startStub(t, d, server.LocalAddr().(*net.UDPAddr).AddrPort())
			m := exchange(t, "udp", stub.Addr(netip.IPv4Unspecified()), query("good.example.", dnsmessage.TypeA))
			if got, want := summary(m), "Success good.example.=8.8.4.4"; got != want {
				t.Errorf("answer = %q, want %q", got, want)
			}
		})
	}
}

// Records about other names than the question leads to are nobody's answer.
func TestStubIgnoresOtherRecords(t *testing.T) {
	ns := startNameServer(t, func(_ string, q dnsmessage.Message) []byte {
		q.Response = true
		for name, addr := range map[string][4]byte{"evil.example.": {6, 6, 6, 6}, "good.example.": {8, 8, 4, 4}} {
			q.Answers = append(q.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 5},
				Body:   &dnsmessage.AResource{A: addr},
			})
		}
		packed, _ := q.Pack()
		return packed
	})
	stub, _ := startStub(t, egress.NewDecider(policy(t, "good.example"), nil), ns.addr)
	m := exchange(t, "udp", stub.Addr(netip.IPv4Unspecified()), query("good.example.", dnsmessage.TypeA))
	if got, want := summary(m), "Success good.example.=8.8.4.4"; got != want {
		t.Errorf("answer = %q, want %q", got, want)
	}
}

func TestStubTruncation(t *testing.T) {
	names := map[string][]string{"good.example": nil}
	for i := range 60 {
		names["good.example"] = append(names["good.example"], netip.AddrFrom4([4]byte{9, 9, 9, byte(i)}).String())
	}
	ns := startNameServer(t, func(network string, q dnsmessage.Message) []byte {
		if network == "udp" {
			q.Response, q.Truncated = true, true
			packed, _ := q.Pack()
			return packed
		}
		return zoneAnswer(names, q)
	})
	stub, _ := startStub(t, egress.NewDecider(policy(t, "good.example"), nil), ns.addr)
	to := stub.Addr(netip.IPv4Unspecified())
	m := exchange(t, "udp", to, query("good.example.", dnsmessage.TypeA))
	if !m.Truncated {
		t.Errorf("60 addresses over UDP: %q", summary(m))
	}
	if m := exchange(t, "tcp", to, query("good.example.", dnsmessage.TypeA)); m.Truncated || len(m.Answers) != 60 {
		t.Errorf("over TCP there are %d addresses", len(m.Answers))
	}
	if diff := cmp.Diff([]string{"udp A good.example.", "tcp A good.example."}, ns.questions()); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

func TestStubSharesQuestions(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	ns := startNameServer(t, func(_ string, q dnsmessage.Message) []byte {
		arrived <- struct{}{}
		<-release
		return zoneAnswer(testZone(), q)
	})
	stub, _ := startStub(t, egress.NewDecider(policy(t, "v4only.example"), nil), ns.addr)
	to := stub.Addr(netip.IPv4Unspecified())
	var clients []net.Conn
	for range 50 {
		c, err := net.Dial("udp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(query("v4only.example.", dnsmessage.TypeA))
		clients = append(clients, c)
	}
	<-arrived
	// A refused name is answered while the others wait.
	if got := summary(exchange(t, "udp", to, query("evil.example.", dnsmessage.TypeA))); got != "NameError" {
		t.Errorf("a refused name meanwhile: %q", got)
	}
	close(release)
	for _, c := range clients {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if n, err := c.Read(make([]byte, 512)); err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if got := ns.questions(); len(got) != 1 {
		t.Errorf("the name server was asked %d times", len(got))
	}
}

func TestStubResolveStops(t *testing.T) {
	ns := startNameServer(t, func(string, dnsmessage.Message) []byte { return nil })
	d := egress.NewDecider(policy(t, "good.example"), nil)
	stub, told := startStub(t, d, ns.addr)
	ctx, cancel := context.WithCancel(t.Context())
	var failed atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := stub.Resolve(ctx, "good.example")
		failed.Store(errors.Is(err, context.Canceled))
	}()
	cancel()
	<-done
	if !failed.Load() {
		t.Error("Resolve does not end with its context")
	}
	if _, err := stub.Resolve(t.Context(), "evil.example"); err == nil || len(told.lines()) != 1 {
		t.Errorf("Resolve of a refused name: %v, reports %q", err, told.lines())
	}
}
