package supervise_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// flip changes something between two states until it is stopped, on a thread of its own.
func flip(change func(first bool)) (stop func()) {
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over.Load() {
			change(true)
			change(false)
		}
	}()
	return func() {
		over.Store(true)
		<-ended
	}
}

// ports flips the port in a sockaddr.
func ports(raw []byte, first, second netip.AddrPort) func(bool) {
	to := func(at netip.AddrPort) uint64 {
		copied := append([]byte{}, raw...)
		copy(copied, wire(unix.AF_INET, at))
		return *(*uint64)(unsafe.Pointer(&copied[0]))
	}
	one, two := to(first), to(second)
	word := (*uint64)(unsafe.Pointer(&raw[0]))
	return func(isFirst bool) {
		if isFirst {
			atomic.StoreUint64(word, one)
		} else {
			atomic.StoreUint64(word, two)
		}
	}
}

// aligned is room for a sockaddr whose first word is written at once.
func aligned() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&make([]uint64, 2)[0])), 16) }

var raceVictims = jailtest.Victims{
	// flip address: an open and a shut destination, how often. The address changes while it
	// connects; the value is how often it got somewhere.
	"flip address": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		raw := aligned()
		copy(raw, wire(unix.AF_INET, netip.MustParseAddrPort(args[0])))
		stop := flip(ports(raw, netip.MustParseAddrPort(args[0]), netip.MustParseAddrPort(args[1])))
		defer stop()
		s.Begin()
		var out jailtest.Outcome
		for range 4000 {
			fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
			switch errno := connect(fd, raw); errno {
			case 0:
				out.Value++
			case unix.EACCES:
			default:
				s.Failf("connecting: %v", errno)
			}
			unix.Close(fd)
		}
		return out
	},
	// flip name: the same with the address of a message.
	"flip name": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		raw := aligned()
		copy(raw, wire(unix.AF_INET, netip.MustParseAddrPort(args[0])))
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		stop := flip(ports(raw, netip.MustParseAddrPort(args[0]), netip.MustParseAddrPort(args[1])))
		defer stop()
		s.Begin()
		var out jailtest.Outcome
		for range 20_000 {
			switch _, errno := sendmsg(fd, raw, []byte("x"), nil, 0); errno {
			case 0:
				out.Value++
			case unix.EACCES:
			default:
				s.Failf("sending: %v", errno)
			}
		}
		return out
	},
	// swap: a shut destination. A descriptor is now one end of a pair, now a datagram socket,
	// while messages with an address go out through it.
	"swap": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p, udp := pair(s, unix.SOCK_SEQPACKET), makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		const fd = 100
		if err := unix.Dup3(p[0], fd, 0); err != nil {
			s.Failf("%v", err)
		}
		stop := flip(func(first bool) {
			from := p[0]
			if first {
				from = udp
			}
			_ = unix.Dup3(from, fd, 0)
		})
		defer stop()
		raw, drain := wire(unix.AF_INET, netip.MustParseAddrPort(args[0])), make([]byte, 8)
		s.Begin()
		var out jailtest.Outcome
		for range 20_000 {
			switch _, errno := sendmsg(fd, raw, []byte("x"), nil, unix.MSG_DONTWAIT); errno {
			case 0:
				out.Value++
			case unix.EACCES, unix.EAGAIN:
			default:
				s.Failf("sending: %v", errno)
			}
			_, _, _ = unix.Recvfrom(p[1], drain, unix.MSG_DONTWAIT)
		}
		return out
	},
	// flip link: an open and a shut socket file, a folder. A link points now to one, now to
	// the other.
	"flip link": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		path := args[2] + "/link"
		for i, target := range args[:2] {
			if err := os.Symlink(target, fmt.Sprint(path, i)); err != nil {
				s.Failf("%v", err)
			}
		}
		if err := os.Symlink(args[0], path); err != nil {
			s.Failf("%v", err)
		}
		stop := flip(func(bool) {
			// The two links change their names with a third's.
			_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+"1", unix.RENAME_EXCHANGE)
		})
		defer stop()
		s.Begin()
		var out jailtest.Outcome
		for range 3000 {
			fd := makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM)
			switch errno := connect(fd, unixWire(path)); errno {
			case 0:
				out.Value++
			case unix.EACCES:
			default:
				s.Failf("connecting: %v", errno)
			}
			unix.Close(fd)
		}
		return out
	},
}

// count listens and counts who comes; it greets nobody. What it returns comes itself and
// waits for its turn, so that everyone before is counted.
func count(t *testing.T, network, address string) (net.Addr, func() int64) {
	t.Helper()
	l, err := net.Listen(network, address) //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var n, own atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr(), func() int64 {
		c, err := net.Dial(network, l.Addr().String()) //nolint:noctx // it ends at once
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("somebody greets")
		}
		return n.Load() - own.Add(1)
	}
}

func TestFlippedAddress(t *testing.T) {
	openAt, _ := count(t, "tcp", "127.0.0.2:0")
	shutAt, hits := count(t, "tcp", "127.0.0.3:0")
	open, shut := openAt.String(), shutAt.String()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		before := hits()
		r := internet(open).run(t, user, "flip address", open, shut)
		jailtest.WantOK(t, r)
		if hit := hits() - before; hit != 0 || r.Outcome.Value == 0 || r.Outcome.Value == 4000 {
			t.Errorf("%d connects got out, %d went to where they may", hit, r.Outcome.Value)
		}
		r = jailtest.RunAs(t, user, "flip address", open, shut)
		jailtest.WantValue(t, r, 4000)
		if hits() == before {
			t.Error("outside, no connect went to the other address: the race is none")
		}
	})
}

func TestFlippedName(t *testing.T) {
	open, shut := receive(t, "127.0.0.2:0"), receive(t, "127.0.0.3:0")
	r := internet(open.at.String()).run(t, jailtest.User{}, "flip name", open.at.String(), shut.at.String())
	jailtest.WantOK(t, r)
	if out := shut.take(t); len(out) != 0 || r.Outcome.Value == 0 || r.Outcome.Value == 20_000 {
		t.Errorf("%d datagrams got out, %d went to where they may", len(out), r.Outcome.Value)
	}
	jailtest.WantValue(t, jailtest.Run(t, "flip name", open.at.String(), shut.at.String()), 20_000)
	if len(shut.take(t)) == 0 {
		t.Error("outside, no datagram went to the other address: the race is none")
	}
}

func TestSwappedSocket(t *testing.T) {
	shut := receive(t, "127.0.0.3:0")
	r := internet("127.0.0.2:1").run(t, jailtest.User{}, "swap", shut.at.String())
	jailtest.WantOK(t, r)
	if out := shut.take(t); len(out) != 0 || r.Outcome.Value == 0 || r.Outcome.Value == 20_000 {
		t.Errorf("%d datagrams got out, %d went through the pair", len(out), r.Outcome.Value)
	}
	jailtest.WantOK(t, jailtest.Run(t, "swap", shut.at.String()))
	if len(shut.take(t)) == 0 {
		t.Error("outside, no datagram got out: the race is none")
	}
}

func TestFlippedLink(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		dir, own := jailtest.Dir(t, user), jailtest.Dir(t, user)
		count(t, "unix", dir+"/open")
		_, hits := count(t, "unix", dir+"/shut")
		for _, path := range []string{dir + "/open", dir + "/shut"} {
			if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // other users connect
				t.Fatal(err)
			}
		}
		w := world{Supervision: 1, Sockets: []string{dir + "/open"}}
		r := w.run(t, user, "flip link", dir+"/open", dir+"/shut", own)
		jailtest.WantOK(t, r)
		if hit := hits(); hit != 0 || r.Outcome.Value == 0 || r.Outcome.Value == 3000 {
			t.Errorf("%d connects got out, %d went to where they may", hit, r.Outcome.Value)
		}
		again := jailtest.Dir(t, user)
		jailtest.WantValue(t, jailtest.RunAs(t, user, "flip link", dir+"/open", dir+"/shut", again), 3000)
		if hits() == 0 {
			t.Error("outside, no connect went to the other socket: the race is none")
		}
	})
}
