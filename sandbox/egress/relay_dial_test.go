package egress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// TestDialVets: an address that is refused is not connected to, and one that is refused by the
// time that it is connected is not used.
func TestDialVets(t *testing.T) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.Addr().(*net.TCPAddr).AddrPort()
	refused := refuse("an address of this machine")
	for _, tt := range []struct {
		name      string
		refuse    int // the question, from 1, at which it is refused; 0 for none
		connected bool
	}{{"never", 0, true}, {"before", 1, false}, {"after", 2, true}} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			conn, err := dial(t.Context(), []netip.Addr{at.Addr()}, at.Port(), func(to netip.AddrPort) error {
				if asked++; to != at {
					t.Errorf("asked about %v", to)
				}
				if asked == tt.refuse {
					return refused
				}
				return nil
			})
			if tt.refuse == 0 && err != nil || tt.refuse != 0 && !errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
			if conn != nil {
				defer conn.Close()
			}
			// What connected is in the queue before this comes.
			knock, err := net.Dial("tcp4", at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer knock.Close()
			came := 0
			for {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				from := c.RemoteAddr().String()
				_ = c.Close()
				if from == knock.LocalAddr().String() {
					break
				}
				came++
			}
			if (came == 1) != tt.connected {
				t.Errorf("%d connections came, connected is %v", came, tt.connected)
			}
		})
	}
}
