package egress_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
)

// throughput measures how fast a connection brings bytes, 1 MiB an operation.
func throughput(b *testing.B, c net.Conn) {
	b.Helper()
	b.SetBytes(1 << 20)
	buffer := make([]byte, 1<<16)
	b.ResetTimer()
	for range b.N {
		for left := 1 << 20; left > 0; {
			n, err := c.Read(buffer[:min(left, len(buffer))])
			if err != nil {
				b.Fatal(err)
			}
			left -= n
		}
	}
}

// endless sends for as long as it is read. It says hello as TLS does, and then anything:
// what the relay costs is not hidden behind what encryption costs.
func endless(b *testing.B) net.Listener {
	b.Helper()
	return serve(b, func(c *net.TCPConn) {
		if _, err := io.ReadFull(c, make([]byte, 64)); err != nil {
			return
		}
		// An alert: the server's first message is no hello that asks for another one.
		c.Write([]byte{21, 3, 3, 0, 2, 1, 0})
		block := make([]byte, 1<<18)
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
}

// helloFor is the first message that crypto/tls sends for a name.
func helloFor(b *testing.B, name string) []byte {
	b.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go tls.Client(here, &tls.Config{ServerName: name}).Handshake()
	hello := make([]byte, 1<<14)
	n, err := there.Read(hello)
	if err != nil {
		b.Fatal(err)
	}
	return hello[:n]
}

func BenchmarkRelayThroughput(b *testing.B) {
	l := endless(b)
	s := startSite(b, l, "good.example")
	c := s.connect(b)
	c.Write(helloFor(b, "good.example"))
	throughput(b, c)
}

func BenchmarkDirectThroughput(b *testing.B) {
	l := endless(b)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	c.Write(helloFor(b, "good.example"))
	throughput(b, c)
}

// BenchmarkRelayConnect is a connection with its handshake, and BenchmarkDirectConnect one
// without the relay.
func BenchmarkRelayConnect(b *testing.B) {
	l, pool := serveTLS(b, &tls.Config{})
	s := startSite(b, l, "good.example")
	for b.Loop() {
		c := tls.Client(s.connect(b), &tls.Config{ServerName: "good.example", RootCAs: pool})
		if err := c.Handshake(); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

func BenchmarkDirectConnect(b *testing.B) {
	l, pool := serveTLS(b, &tls.Config{})
	for b.Loop() {
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		c := tls.Client(raw, &tls.Config{ServerName: "good.example", RootCAs: pool})
		if err := c.Handshake(); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
