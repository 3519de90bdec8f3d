package nettest_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/nettest"
)

func TestNetworkIsItsOwn(t *testing.T) {
	nettest.Get(t)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if !slices.Contains(nettest.Interfaces, i.Name) {
			t.Errorf("interface %s is not the network's: packets could leave", i.Name)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 && (data[0].Permitted|data[1].Permitted) != 0 {
		t.Errorf("an ordinary user's tests run with capabilities %x", data[0].Permitted)
	}
}

// resolver asks the network's name server by one transport.
func resolver(transport string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, transport, netip.AddrPortFrom(nettest.Address(nettest.NameServer), 53).String())
	}}
}

func TestNames(t *testing.T) {
	n := nettest.Get(t)
	n.Rebind([]nettest.Place{nettest.Public}, []nettest.Place{nettest.Loopback, nettest.Metadata})
	tests := []struct {
		name, ask string
		want      []nettest.Place // nil: no such name
	}{
		{"one address", nettest.DataName, []nettest.Place{nettest.Public}},
		{"both families", nettest.APIName, []nettest.Place{nettest.Public, nettest.Public6}},
		{"IPv6 alone", nettest.SixName, []nettest.Place{nettest.SixOnly}},
		{"aliases", nettest.AliasName, []nettest.Place{nettest.Public}},
		{"alias to inside", nettest.OutName, []nettest.Place{nettest.Private}},
		{"below a wildcard", nettest.WildName, []nettest.Place{nettest.Public}},
		{"far below a wildcard", nettest.WildDeepName, []nettest.Place{nettest.Public}},
		{"letter case", "DATA.corp-demo.ORG", []nettest.Place{nettest.Public}},
		{"shared", nettest.ForeignName, []nettest.Place{nettest.CDN}},
		{"no such name", "nothing.corp-demo.org", nil},
		{"no such zone", "data.example.com", nil},
		{"in the hosts file alone", nettest.HostsName, []nettest.Place{nettest.Public}},
		{"rebinding, first", nettest.RebindName, []nettest.Place{nettest.Public}},
		{"rebinding, then", nettest.RebindName, []nettest.Place{nettest.Loopback, nettest.Metadata}},
		{"rebinding, for ever", nettest.RebindName, []nettest.Place{nettest.Loopback, nettest.Metadata}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := resolver("udp").LookupHost(t.Context(), tt.ask)
			var want []netip.Addr
			for _, p := range tt.want {
				want = append(want, nettest.Address(p))
			}
			dns, isDNS := errors.AsType[*net.DNSError](err)
			switch {
			case tt.want == nil && (!isDNS || !dns.IsNotFound):
				t.Errorf("got %v, %v; want no such host", got, err)
			case tt.want != nil && (err != nil || !sameAddresses(got, want)):
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}

func TestLongAnswersComeByTCP(t *testing.T) {
	n := nettest.Get(t)
	mark := n.Mark(t)
	got, err := resolver("udp").LookupHost(t.Context(), nettest.ManyName)
	if err == nil {
		t.Errorf("over UDP alone: got %d addresses, want none", len(got))
	}
	got, err = new(net.Resolver).LookupHost(t.Context(), nettest.ManyName)
	if err != nil || len(got) != 100 {
		t.Errorf("got %d addresses (%v), want 100", len(got), err)
	}
	if !slices.ContainsFunc(n.Queries(mark), func(q nettest.Query) bool { return q.Transport == "tcp" && q.Name == nettest.ManyName }) {
		t.Errorf("no query came over TCP: %v", n.Queries(mark))
	}
}

// TestCountersMissNothing sends what a forbidden connection looks like at its least, and
// wants it counted by the time that anybody looks.
func TestCountersMissNothing(t *testing.T) {
	n := nettest.Get(t)
	tests := []struct {
		name, network, address string
		place                  nettest.Place
		event                  nettest.Event
	}{
		{"a connection without a byte", "tcp", "169.254.169.254:80", nettest.Metadata, nettest.Connected},
		{"one to a TLS port", "tcp", "151.101.1.69:443", nettest.CDN, nettest.Connected},
		{"one over IPv6", "tcp", "[fd00:ec2::254]:80", nettest.Metadata6, nettest.Connected},
		{"a datagram", "udp", "10.0.0.5:443", nettest.Private, nettest.Received},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := n.Mark(t)
			if hits := n.Hits(t, mark); len(hits) != 0 {
				t.Fatalf("a network at rest counts %v", hits)
			}
			conn, err := net.Dial(tt.network, tt.address)
			if err != nil {
				t.Fatal(err)
			}
			if tt.network == "udp" {
				if _, err := conn.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			hits := n.Hits(t, mark)
			if len(hits) != 1 || hits[0].Place != tt.place || hits[0].Event != tt.event {
				t.Errorf("counted %v, want one %s at %s", hits, tt.event, tt.place)
			}
			if !n.Reached(t, mark, tt.place) {
				t.Errorf("%s counts as not reached", tt.place)
			}
			judgeTouched(t, n, mark, tt.place)
		})
	}
}

// judgeTouched wants Untouched to fail.
func judgeTouched(t *testing.T, n *nettest.Network, mark nettest.Mark, place nettest.Place) {
	t.Helper()
	rec := &recorder{TB: t}
	n.Untouched(rec, mark, place)
	if !strings.Contains(rec.text.String(), string(place)) {
		t.Errorf("Untouched accepts that %s was reached", place)
	}
	n.Untouched(t, mark, nettest.Attacker)
}

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB
	text bytes.Buffer
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	for _, a := range args {
		if s, ok := a.(interface{ String() string }); ok {
			r.text.WriteString(format + s.String())
		}
	}
}

// TestDeadAddress is about the address that clients must get over: it gives no answer, not
// even a refusal.
func TestDeadAddress(t *testing.T) {
	nettest.Get(t)
	addresses, err := new(net.Resolver).LookupNetIP(t.Context(), "ip6", nettest.EyeballsName)
	if err != nil || len(addresses) != 1 {
		t.Fatalf("got %v, %v; want one address", addresses, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = new(net.Dialer).DialContext(ctx, "tcp", netip.AddrPortFrom(addresses[0], 443).String())
	if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("got %v, want silence", err)
	}
}
