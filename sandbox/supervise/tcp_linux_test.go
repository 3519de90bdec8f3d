package supervise_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// wire is a sockaddr for a socket of the domain.
func wire(domain int, to netip.AddrPort) []byte {
	if domain == unix.AF_INET {
		raw := make([]byte, 16)
		binary.NativeEndian.PutUint16(raw, unix.AF_INET)
		binary.BigEndian.PutUint16(raw[2:], to.Port())
		addr := to.Addr().As4()
		copy(raw[4:], addr[:])
		return raw
	}
	raw := make([]byte, 28)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET6)
	binary.BigEndian.PutUint16(raw[2:], to.Port())
	addr := to.Addr().As16()
	copy(raw[8:], addr[:])
	return raw
}

// domains are the words of victims' arguments.
var domains = map[string]int{"v4": unix.AF_INET, "v6": unix.AF_INET6, "unix": unix.AF_UNIX}

func makeSocket(s *jailtest.Stage, domain, kind int) int {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.Failf("making a socket: %v", err)
	}
	return fd
}

// connect makes one raw call: a wrapper could try again.
func connect(fd int, raw []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	return errno
}

// heard reads a greeting.
func heard(fd int) error {
	got := make([]byte, len(greeting))
	for n := 0; n < len(got); {
		more, err := unix.Read(fd, got[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if more == 0 {
			return fmt.Errorf("the peer said %q only", got[:n])
		}
		n += more
	}
	if string(got) != greeting {
		return fmt.Errorf("the peer said %q", got)
	}
	return nil
}

// wait polls until the socket is writable.
func wait(fd int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		_, err := unix.Poll(fds, 10_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && fds[0].Revents == 0 {
			err = errors.New("nothing happened")
		}
		return err
	}
}

var tcpVictims = jailtest.Victims{
	// tcp: the domain, how, the destination. It connects and hears the greeting.
	"tcp": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		domain, to := domains[args[0]], netip.MustParseAddrPort(args[2])
		kind := unix.SOCK_STREAM
		if args[1] == "nonblocking" {
			kind |= unix.SOCK_NONBLOCK
		}
		fd := makeSocket(s, domain, kind)
		events := watchSocket(s, fd)
		s.Begin()
		errno := connect(fd, wire(domain, to))
		if errno == unix.EINPROGRESS && args[1] == "nonblocking" {
			if got, err := waitEvent(events); err != nil || got&unix.EPOLLOUT == 0 {
				s.Failf("epoll reports %#x, %v", got, err)
			}
			value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err != nil {
				s.Failf("reading SO_ERROR: %v", err)
			}
			if errno = unix.Errno(value); errno == 0 {
				if again := connect(fd, wire(domain, to)); again != 0 && again != unix.EISCONN {
					s.Failf("connecting again: %v", again)
				}
				if err := unix.SetNonblock(fd, false); err != nil {
					s.Failf("making it block: %v", err)
				}
			}
		}
		if errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		if err := heard(fd); err != nil {
			s.Failf("%v", err)
		}
		peer, err := unix.Getpeername(fd)
		if err != nil {
			s.Failf("asking for the peer: %v", err)
		}
		return jailtest.Outcome{Note: fmt.Sprint(peerPort(peer))}
	},
	// dissolve: a destination. A connected socket connects again after AF_UNSPEC.
	"dissolve": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		s.Begin()
		for _, raw := range [][]byte{to, make([]byte, 16), to} {
			if errno := connect(fd, raw); errno != 0 {
				return jailtest.Outcome{Errno: errno}
			}
		}
		return jailtest.OutcomeOf(s, heard(fd))
	},
	// many: a destination, how many at once, how often. Each thread blocks in its connect.
	"many": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		at, _ := strconv.Atoi(args[1])
		times, _ := strconv.Atoi(args[2])
		s.Begin()
		return together(at, times, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if errno := connect(fd, to); errno != 0 {
				return errno
			}
			return heard(fd)
		})
	},
}

func peerPort(peer unix.Sockaddr) int {
	switch p := peer.(type) {
	case *unix.SockaddrInet4:
		return p.Port
	case *unix.SockaddrInet6:
		return p.Port
	}
	return 0
}

// watchSocket puts a socket into an epoll of its own, edge-triggered, as runtimes do before
// they connect.
func watchSocket(s *jailtest.Stage, fd int) int {
	events, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.EpollCtl(events, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET})
	}
	if err != nil {
		s.Failf("watching the socket: %v", err)
	}
	// A new socket hangs up first; that is not what is waited for.
	var first [1]unix.EpollEvent
	if _, err := unix.EpollWait(events, first[:], 0); err != nil {
		s.Failf("reading the first event: %v", err)
	}
	return events
}

func waitEvent(events int) (uint32, error) {
	for {
		var got [1]unix.EpollEvent
		n, err := unix.EpollWait(events, got[:], 10_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = errors.New("nothing happened")
		}
		return got[0].Events, err
	}
}

// together does something so many times on so many goroutines; the value is how often it
// worked, the errno and the note are of one time that it did not.
func together(at, times int, do func() error) jailtest.Outcome {
	ends := make(chan error, at)
	for range at {
		go func() {
			for range times {
				ends <- do()
			}
		}()
	}
	var out jailtest.Outcome
	for range at * times {
		err := <-ends
		if err == nil {
			out.Value++
			continue
		}
		out.Note = err.Error()
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			out.Errno = errno
		}
	}
	return out
}

func TestTCP(t *testing.T) {
	open4, shut4 := greet(t, "127.0.0.2:0"), greet(t, "127.0.0.3:0")
	open6, shut6 := greet(t, "[::1]:0"), greet(t, "[::1]:0")
	rules := internet(open4.String(), open6.String())
	mapped := func(at netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(at.Addr().As16()), at.Port())
	}
	tests := []struct {
		name, domain string
		open, shut   netip.AddrPort
		asked        string
	}{
		{"IPv4", "v4", open4, shut4, "tcp " + shut4.String()},
		{"IPv6", "v6", open6, shut6, "tcp " + shut6.String()},
		{"IPv4 in IPv6", "v6", mapped(open4), mapped(shut4), "tcp " + shut4.String()},
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, test := range tests {
			for _, how := range []string{"blocking", "nonblocking"} {
				t.Run(test.name+" "+how, func(t *testing.T) {
					r := rules.run(t, user, "tcp", test.domain, how, test.open.String())
					jailtest.WantOK(t, r)
					wantNoDenial(t, r)
					if want := strconv.Itoa(int(test.open.Port())); r.Outcome.Note != want {
						t.Errorf("the peer has port %s, want %s", r.Outcome.Note, want)
					}
					r = rules.run(t, user, "tcp", test.domain, how, test.shut.String())
					jailtest.WantErrno(t, r, unix.EACCES)
					wantDenied(t, r, "connect", test.asked)
					jailtest.WantOK(t, jailtest.RunAs(t, user, "tcp", test.domain, how, test.shut.String()))
				})
			}
		}
	})
}

// TestTCPUnspecified: the unspecified address leads to this machine and is judged as that.
func TestTCPUnspecified(t *testing.T) {
	open, shut := greet(t, "127.0.0.1:0"), greet(t, "127.0.0.1:0")
	rules := internet(open.String())
	any4 := func(at netip.AddrPort) string {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()).String()
	}
	jailtest.WantOK(t, rules.run(t, jailtest.User{}, "tcp", "v4", "blocking", any4(open)))
	r := rules.run(t, jailtest.User{}, "tcp", "v4", "blocking", any4(shut))
	jailtest.WantErrno(t, r, unix.EACCES)
	wantDenied(t, r, "connect", "tcp "+shut.String())
	jailtest.WantOK(t, jailtest.Run(t, "tcp", "v4", "blocking", any4(shut)))
}

func TestTCPWithoutListener(t *testing.T) {
	closed := greet(t, "127.0.0.2:0")
	gone := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), closed.Port())
	for _, how := range []string{"blocking", "nonblocking"} {
		jailtest.WantErrno(t, internet(gone.String()).run(t, jailtest.User{}, "tcp", "v4", how, gone.String()), unix.ECONNREFUSED)
		jailtest.WantErrno(t, jailtest.Run(t, "tcp", "v4", how, gone.String()), unix.ECONNREFUSED)
	}
}

func TestNoEgress(t *testing.T) {
	open := greet(t, "127.0.0.2:0")
	w := world{Supervision: 2}
	r := w.run(t, jailtest.User{}, "tcp", "v4", "blocking", open.String())
	jailtest.WantErrno(t, r, unix.EACCES)
	wantDenied(t, r, "connect", "tcp "+open.String())
	jailtest.WantOK(t, internet(open.String()).run(t, jailtest.User{}, "tcp", "v4", "blocking", open.String()))
}

func TestDissolve(t *testing.T) {
	open := greet(t, "127.0.0.2:0")
	jailtest.WantOK(t, internet(open.String()).run(t, jailtest.User{}, "dissolve", open.String()))
	jailtest.WantOK(t, jailtest.Run(t, "dissolve", open.String()))
}

func TestTwoHundredAtOnce(t *testing.T) {
	open := greet(t, "127.0.0.2:0")
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jailtest.WantValue(t, internet(open.String()).run(t, user, "many", open.String(), "200", "2"), 400)
	})
}

// TestTenThousand leaves no descriptor behind: the harness compares before and after.
func TestTenThousand(t *testing.T) {
	open := greet(t, "127.0.0.2:0")
	started := time.Now()
	jailtest.WantValue(t, internet(open.String()).run(t, jailtest.User{}, "many", open.String(), "10", "1000"), 10_000)
	t.Logf("%.0f connects a second", 10_000/time.Since(started).Seconds())
}
