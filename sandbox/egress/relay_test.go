package egress_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

// site is a relay with what it needs, and a server on loopback that all names lead to.
type site struct {
	relay *egress.Relay
	told  *denials
	dst   netip.AddrPort // of the server
}

// startSite lets the relay reach names on a listener's port.
func startSite(t testing.TB, l net.Listener, names ...string) *site {
	t.Helper()
	dst := l.Addr().(*net.TCPAddr).AddrPort()
	// The address rule lets a pin on loopback count, as one to a private network would.
	rules := []string{fmt.Sprintf("127.0.0.0/8:%d", dst.Port())}
	records := map[string][]string{}
	for _, name := range names {
		rules = append(rules, fmt.Sprintf("%s:%d", name, dst.Port()))
		records[strings.TrimPrefix(name, "*.")] = []string{"127.0.0.2", dst.Addr().String()}
	}
	records["evil.example"] = []string{dst.Addr().String()}
	ns := startNameServer(t, zone(records))
	d := egress.NewDecider(policy(t, rules...), nil)
	stub, _ := startStub(t, d, ns.addr)
	s := &site{told: &denials{}, dst: dst}
	var err error
	if s.relay, err = egress.NewRelay(d, stub, s.told.add); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.relay.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var somebody = egress.Client{PID: 4711, Program: "victim"}

// connect is what a supervisor does for a jailed client.
func (s *site) connect(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp4", s.relay.Addr(s.dst.Addr()).String())
	if err != nil {
		t.Fatal(err)
	}
	s.relay.Expect(c.LocalAddr().(*net.TCPAddr).AddrPort(), s.dst, somebody)
	c.SetDeadline(time.Now().Add(30 * time.Second))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func (s *site) wantDenial(t testing.TB, asked, rule string) {
	t.Helper()
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	for _, d := range s.told.all {
		if d.Call == "relay" && d.Asked == asked && strings.Contains(d.Rule, rule) && d.PID == 4711 && d.Program == "victim" && !d.Time.IsZero() {
			return
		}
	}
	t.Errorf("no refusal of %q with %q in %+v", asked, rule, s.told.all)
}

func (s *site) wantNoDenial(t testing.TB) {
	t.Helper()
	if lines := s.told.lines(); len(lines) > 0 {
		t.Errorf("refusals: %q", lines)
	}
}

// serve answers connections until the test ends.
func serve(t testing.TB, answer func(c *net.TCPConn)) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				answer(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return l.(*net.TCPListener)
}

// authority makes certificates that its pool trusts.
func authority(t testing.TB, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveTLS has many names behind one address, and tells each client which one it asked for.
func serveTLS(t testing.TB, config *tls.Config) (*net.TCPListener, *x509.CertPool) {
	t.Helper()
	cert, pool := authority(t, "good.example", "other.example", "evil.example")
	config.Certificates = []tls.Certificate{cert}
	l := serve(t, func(raw *net.TCPConn) {
		c := tls.Server(raw, config)
		if c.Handshake() != nil {
			return
		}
		fmt.Fprintf(c, "%s\n", c.ConnectionState().ServerName)
		io.Copy(c, c)
		c.Close()
	})
	return l, pool
}

// isReset tells a reset from an orderly end.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// splitter writes in pieces, each in a segment of its own as far as the kernel allows.
type splitter struct {
	net.Conn
	size int
}

func (s splitter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n, err := s.Conn.Write(p[:min(s.size, len(p))])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// resplitter cuts the first record, which is the hello, into records of a size.
type resplitter struct {
	net.Conn
	size int
	done bool
}

func (r *resplitter) Write(p []byte) (int, error) {
	if r.done {
		return r.Conn.Write(p)
	}
	r.done = true
	var out []byte
	for rest := p[5:]; len(rest) > 0; {
		n := min(r.size, len(rest))
		out = append(out, 22, 3, 1, byte(n>>8), byte(n))
		out = append(out, rest[:n]...)
		rest = rest[n:]
	}
	if _, err := r.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func TestRelayTLS(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example", "*.other.example")
	tests := []struct {
		name    string
		version uint16
		wrap    func(net.Conn) net.Conn
	}{
		{name: "TLS 1.3", version: tls.VersionTLS13},
		{name: "TLS 1.2", version: tls.VersionTLS12},
		{name: "segments of one byte", version: tls.VersionTLS13, wrap: func(c net.Conn) net.Conn { return splitter{c, 1} }},
		{name: "records of one byte", version: tls.VersionTLS13, wrap: func(c net.Conn) net.Conn { return &resplitter{Conn: c, size: 1} }},
		{name: "records of 100 bytes in segments of 7", version: tls.VersionTLS12, wrap: func(c net.Conn) net.Conn { return &resplitter{Conn: splitter{c, 7}, size: 100} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := s.connect(t)
			var under net.Conn = raw
			if tt.wrap != nil {
				under = tt.wrap(raw)
			}
			c := tls.Client(under, &tls.Config{ServerName: "good.example", RootCAs: pool, MinVersion: tt.version, MaxVersion: tt.version})
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(c)
			if name, err := in.ReadString('\n'); name != "good.example\n" || err != nil {
				t.Fatalf("the server saw %q, %v", name, err)
			}
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
			go func() {
				c.Write(sent)
				c.CloseWrite()
				raw.CloseWrite()
			}()
			got, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("came back: %d of %d bytes, %v", len(got), len(sent), err)
			}
		})
	}
	s.wantNoDenial(t)
}

func TestRelayRefusesTLS(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example", "*.other.example")
	tests := []struct {
		name, server, asked, rule string
	}{
		{"another name at the same address", "evil.example", "server name evil.example on ", "no rule names evil.example:"},
		{"above a wildcard", "other.example", "server name other.example on ", "no rule names other.example:"},
		{"no name", "", "tcp ", "has no server name"},
		{"an address", "127.0.0.1", "tcp ", "has no server name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := &tls.Config{ServerName: tt.server, RootCAs: pool}
			if tt.server == "" {
				config.InsecureSkipVerify = true
			}
			err := tls.Client(s.connect(t), config).Handshake()
			if !isReset(err) {
				t.Errorf("handshake: %v, want a reset", err)
			}
			s.wantDenial(t, tt.asked+s.dst.String(), tt.rule)
			// The twin: the server itself has the name.
			direct, err := net.Dial("tcp", s.dst.String())
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			config.InsecureSkipVerify = true
			if err := tls.Client(direct, config).Handshake(); err != nil {
				t.Errorf("without the relay: %v", err)
			}
		})
	}
}

// A server may ask for a second hello, and go by the name in that one.
func TestRelayRetry(t *testing.T) {
	// The client offers one curve first, the server takes another one only.
	l, pool := serveTLS(t, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP521}, MinVersion: tls.VersionTLS13})
	s := startSite(t, l, "good.example")
	config := &tls.Config{ServerName: "good.example", RootCAs: pool, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP521}}
	t.Run("same name", func(t *testing.T) {
		c := tls.Client(s.connect(t), config)
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		if !c.ConnectionState().HelloRetryRequest {
			t.Error("the server asked for no second hello: the test tests nothing")
		}
		if name, err := bufio.NewReader(c).ReadString('\n'); name != "good.example\n" || err != nil {
			t.Errorf("the server saw %q, %v", name, err)
		}
		s.wantNoDenial(t)
	})
	t.Run("another name", func(t *testing.T) {
		c := tls.Client(&renamer{Conn: s.connect(t)}, config)
		if err := c.Handshake(); !isReset(err) {
			t.Errorf("handshake: %v, want a reset", err)
		}
		s.wantDenial(t, "server name evil.example on "+s.dst.String(), "another server name than the first")
	})
}

// renamer puts another name of the same length into every hello but the first.
type renamer struct {
	net.Conn
	hellos int
}

func (r *renamer) Write(p []byte) (int, error) {
	out := p
	if bytes.Contains(p, []byte("good.example")) {
		if r.hellos++; r.hellos > 1 {
			out = bytes.ReplaceAll(p, []byte("good.example"), []byte("evil.example"))
		}
	}
	if _, err := r.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func TestRelayFirstBytes(t *testing.T) {
	l := serve(t, func(c *net.TCPConn) { io.Copy(c, c) })
	s := startSite(t, l, "good.example")
	tests := []struct{ name, send, rule string }{
		{"SSH", "SSH-2.0-OpenSSH_9.2\r\n\r\n", "request line is malformed"},
		{"NUL", "\x00", "neither TLS nor HTTP"},
		{"old hello", "\x80\x2e\x01\x00\x02", "neither TLS nor HTTP"},
		{"lower case", "get / HTTP/1.1\r\nHost: good.example\r\n\r\n", "neither TLS nor HTTP"},
		{"no hello", "\x16\x03\x01\x00\x04\x02\x00\x00\x00", "does not begin with a client hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			if _, err := io.WriteString(c, tt.send); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if strings.HasPrefix(tt.name, "SSH") {
				if !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
					t.Errorf("answer: %q, %v", got, err)
				}
			} else if len(got) > 0 || !isReset(err) {
				t.Errorf("answer: %q, %v; want a reset", got, err)
			}
			s.wantDenial(t, "tcp "+s.dst.String(), tt.rule)
		})
	}
}

// Nobody gets in without being announced.
func TestRelayStranger(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	c, err := net.Dial("tcp4", s.relay.Addr(s.dst.Addr()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	err = tls.Client(c, &tls.Config{ServerName: "good.example", RootCAs: pool}).Handshake()
	if !isReset(err) {
		t.Errorf("handshake: %v, want a reset", err)
	}
	s.wantNoDenial(t)
	// Announced before it is made, and with a wrapped address, it gets in.
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	probe, err := net.ListenTCP("tcp4", local)
	if err != nil {
		t.Fatal(err)
	}
	source := probe.Addr().(*net.TCPAddr)
	probe.Close()
	mapped := netip.AddrPortFrom(netip.AddrFrom16(source.AddrPort().Addr().As16()), source.AddrPort().Port())
	s.relay.Expect(mapped, s.dst, somebody)
	dialer := net.Dialer{LocalAddr: source}
	c2, err := dialer.Dial("tcp4", s.relay.Addr(s.dst.Addr()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	if err := tls.Client(c2, &tls.Config{ServerName: "good.example", RootCAs: pool}).Handshake(); err != nil {
		t.Errorf("announced ahead: %v", err)
	}
}

// A server that is allowed and does not answer is a reset, as near as one comes to a refused
// connection.
func TestRelayServerGone(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	l.Close()
	err := tls.Client(s.connect(t), &tls.Config{ServerName: "good.example", RootCAs: pool}).Handshake()
	if !isReset(err) {
		t.Errorf("handshake: %v, want a reset", err)
	}
	s.wantNoDenial(t)
}

// The address that the client chose comes first, and the name's others when it fails.
func TestRelayOtherAddress(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	s.dst = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), s.dst.Port()) // nobody listens there
	if err := tls.Client(s.connect(t), &tls.Config{ServerName: "good.example", RootCAs: pool}).Handshake(); err != nil {
		t.Error(err)
	}
	s.wantNoDenial(t)
}

// Neither descriptors nor goroutines are left, however connections end.
func TestRelayLeavesNothing(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	ends := []func(){
		func() { // in order
			raw := s.connect(t)
			c := tls.Client(raw, &tls.Config{ServerName: "good.example", RootCAs: pool})
			if err := c.Handshake(); err != nil {
				t.Error(err)
			}
			c.Close()
			io.Copy(io.Discard, raw)
			raw.Close()
		},
		func() { // reset by the client, in the middle
			raw := s.connect(t)
			c := tls.Client(raw, &tls.Config{ServerName: "good.example", RootCAs: pool})
			if err := c.Handshake(); err != nil {
				t.Error(err)
			}
			raw.SetLinger(0)
			raw.Close()
		},
		func() { // refused
			raw := s.connect(t)
			tls.Client(raw, &tls.Config{ServerName: "evil.example", RootCAs: pool}).Handshake()
			raw.Close()
		},
		func() { s.connect(t).Close() }, // never used
		func() { // half a hello
			raw := s.connect(t)
			raw.Write([]byte{22, 3, 1})
			raw.Close()
		},
		func() { // HTTP, refused
			raw := s.connect(t)
			io.WriteString(raw, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
			io.Copy(io.Discard, raw)
			raw.Close()
		},
	}
	round := func(n int) {
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				for i := range n {
					ends[i%len(ends)]()
				}
			})
		}
		wait.Wait()
	}
	round(len(ends)) // fills pools of pipes
	settled := func() (goroutines, descriptors int) {
		runtime.GC() // closes idle pipes
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(fds)
	}
	wantGoroutines, wantDescriptors := settled()
	round(102)
	// What ends takes a moment to be gone: the condition is polled, not the time.
	deadline := time.Now().Add(30 * time.Second)
	for {
		goroutines, descriptors := settled()
		if goroutines <= wantGoroutines && descriptors <= wantDescriptors {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d descriptors; before: %d, %d", goroutines, descriptors, wantGoroutines, wantDescriptors)
		}
		runtime.Gosched()
	}
}

func TestRelayHalfClose(t *testing.T) {
	cert, _ := authority(t, "good.example")
	upstreamEnd := make(chan error, 1)
	l := serve(t, func(raw *net.TCPConn) {
		c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
		if c.Handshake() != nil {
			return
		}
		// The client's end arrives while this side still sends.
		_, err := io.ReadAll(raw)
		upstreamEnd <- err
		io.WriteString(raw, "after the end")
	})
	s := startSite(t, l, "good.example")
	raw := s.connect(t)
	c := tls.Client(raw, &tls.Config{ServerName: "good.example", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	raw.CloseWrite()
	if err := <-upstreamEnd; err != nil {
		t.Errorf("the server saw %v", err)
	}
	got, err := io.ReadAll(raw)
	if string(got) != "after the end" || err != nil {
		t.Errorf("the client got %q, %v", got, err)
	}
}

// A reset at one end arrives as a reset at the other: no half of an answer looks whole.
func TestRelayPassesReset(t *testing.T) {
	cert, _ := authority(t, "good.example")
	saw := make(chan error, 1)
	for _, who := range []string{"client", "server"} {
		t.Run(who, func(t *testing.T) {
			l := serve(t, func(raw *net.TCPConn) {
				c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				if c.Handshake() != nil {
					return
				}
				if who == "server" {
					io.ReadFull(raw, make([]byte, 1))
					raw.SetLinger(0)
					return
				}
				_, err := io.ReadAll(raw)
				saw <- err
			})
			s := startSite(t, l, "good.example")
			raw := s.connect(t)
			c := tls.Client(raw, &tls.Config{ServerName: "good.example", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			if who == "server" {
				raw.Write([]byte("x"))
				if _, err := io.ReadAll(raw); !isReset(err) {
					t.Errorf("the client saw %v, want a reset", err)
				}
				return
			}
			raw.SetLinger(0)
			raw.Close()
			if err := <-saw; !isReset(err) {
				t.Errorf("the server saw %v, want a reset", err)
			}
		})
	}
}

// There is a bound on connections, and those within it may be idle.
func TestRelayFull(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	config := &tls.Config{ServerName: "good.example", RootCAs: pool}
	idle := s.connect(t)
	// A connection is counted once its refusal or its server has been seen.
	for range 511 {
		s.connect(t)
	}
	deadline := time.Now().Add(20 * time.Second)
	for len(s.told.lines()) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("there is no bound")
		}
		if err := tls.Client(s.connect(t), config).Handshake(); err == nil {
			continue
		}
	}
	s.wantDenial(t, "tcp "+s.dst.String(), "512 connections are relayed already")
	if err := tls.Client(idle, config).Handshake(); err != nil {
		t.Errorf("one of the 512: %v", err)
	}
}

func TestRelayClose(t *testing.T) {
	l, pool := serveTLS(t, &tls.Config{})
	s := startSite(t, l, "good.example")
	used := tls.Client(s.connect(t), &tls.Config{ServerName: "good.example", RootCAs: pool})
	if err := used.Handshake(); err != nil {
		t.Fatal(err)
	}
	idle := s.connect(t)
	if err := s.relay.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(used); err == nil {
		t.Error("a relayed connection outlives the relay")
	}
	if _, err := io.ReadAll(idle); err == nil {
		t.Error("an idle connection outlives the relay")
	}
	if diff := cmp.Diff([]string(nil), s.told.lines()); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
