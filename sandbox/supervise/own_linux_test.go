package supervise

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnAddress asks about what every machine has, and about what nobody's has.
func TestOwnAddress(t *testing.T) {
	t.Run("kept socket", func(t *testing.T) {
		ask, err := openRoutes()
		if err != nil {
			t.Fatal(err)
		}
		defer ask.close()
		testOwnAddress(t, ask)
	})
	t.Run("after its end", func(t *testing.T) {
		ask, err := openRoutes()
		if err != nil {
			t.Fatal(err)
		}
		ask.close()
		ask.close()
		testOwnAddress(t, ask)
	})
	t.Run("after an answer that is none", func(t *testing.T) {
		ask, err := openRoutes()
		if err != nil {
			t.Fatal(err)
		}
		defer ask.close()
		// An answer that nobody has read is there already.
		if err := unix.Sendto(ask.fd, routeQuestion(netip.MustParseAddr("127.0.0.1"), 77), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			t.Fatal(err)
		}
		if why, err := ask.own(netip.MustParseAddr("93.184.216.34")); err == nil {
			t.Errorf("another question's answer is taken: %q", why)
		}
		testOwnAddress(t, ask)
	})
	if err := ReachRoutes(); err != nil {
		t.Error(err)
	}
}

func testOwnAddress(t *testing.T, ask *routes) {
	t.Helper()
	const mine = "an address of this machine"
	tests := []struct{ name, addr, want string }{
		{"loopback", "127.0.0.1", mine},
		{"all of loopback", "127.200.3.4", mine},
		{"public", "93.184.216.34", ""},
		{"public, IPv6", "2606:2800:220:1::1", ""},
		{"multicast", "224.0.0.251", "an address of several machines, this one among them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ask.own(netip.MustParseAddr(tt.addr))
			if got != tt.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	t.Run("of the interfaces", func(t *testing.T) {
		addrs, err := net.InterfaceAddrs()
		if err != nil || len(addrs) == 0 {
			t.Fatalf("%v, %v", addrs, err)
		}
		for _, a := range addrs {
			addr := netip.MustParsePrefix(a.String()).Addr()
			if addr.Is6() && addr.IsLinkLocalUnicast() {
				continue // its route is one of a single interface
			}
			if got, err := ask.own(addr); got != mine || err != nil {
				t.Errorf("%v: got %q, %v", addr, got, err)
			}
		}
	})
}

// TestReadRoute: what is no answer is no "somebody else's".
func TestReadRoute(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	message := func(kind uint16, seq uint32, body []byte) []byte {
		head := unix.NlMsghdr{Len: uint32(netlinkHeader + len(body)), Type: kind, Seq: seq}
		return append(append([]byte{}, bytesOf(&head)...), body...)
	}
	route := func(kind uint8) []byte {
		r := unix.RtMsg{Family: unix.AF_INET, Type: kind}
		return append([]byte{}, bytesOf(&r)...)
	}
	failure := func(errno unix.Errno) []byte {
		number := -int32(errno)
		return append(append([]byte{}, bytesOf(&number)...), make([]byte, 16)...)
	}
	tests := []struct {
		name  string
		reply []byte
		addr  netip.Addr
		want  byte
		fails bool
	}{
		{"unicast", message(unix.RTM_NEWROUTE, 1, route(unix.RTN_UNICAST)), four, unix.RTN_UNICAST, false},
		{"local", message(unix.RTM_NEWROUTE, 1, route(unix.RTN_LOCAL)), six, unix.RTN_LOCAL, false},
		{"no route", message(unix.NLMSG_ERROR, 1, failure(unix.ENETUNREACH)), four, unix.RTN_UNREACHABLE, false},
		{"no way to the host", message(unix.NLMSG_ERROR, 1, failure(unix.EHOSTUNREACH)), four, unix.RTN_UNREACHABLE, false},
		{"no IPv6", message(unix.NLMSG_ERROR, 1, failure(unix.EOPNOTSUPP)), six, unix.RTN_UNREACHABLE, false},

		{"no IPv4", message(unix.NLMSG_ERROR, 1, failure(unix.EOPNOTSUPP)), four, 0, true},
		{"not understood", message(unix.NLMSG_ERROR, 1, failure(unix.EINVAL)), four, 0, true},
		{"forbidden", message(unix.NLMSG_ERROR, 1, failure(unix.EPERM)), six, 0, true},
		{"an acknowledgement", message(unix.NLMSG_ERROR, 1, failure(0)), four, 0, true},
		{"another question's", message(unix.RTM_NEWROUTE, 2, route(unix.RTN_UNICAST)), four, 0, true},
		{"another type", message(unix.RTM_NEWADDR, 1, route(unix.RTN_UNICAST)), four, 0, true},
		{"cut off", message(unix.RTM_NEWROUTE, 1, route(unix.RTN_UNICAST))[:20], four, 0, true},
		{"nothing", nil, four, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readRoute(tt.reply, 1, tt.addr)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func BenchmarkOwnAddress(b *testing.B) {
	ask, err := openRoutes()
	if err != nil {
		b.Fatal(err)
	}
	defer ask.close()
	for _, text := range []string{"93.184.216.34", "127.0.0.1", "2606:2800:220:1::1"} {
		b.Run(text, func(b *testing.B) {
			addr := netip.MustParseAddr(text)
			for b.Loop() {
				if _, err := ask.own(addr); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
