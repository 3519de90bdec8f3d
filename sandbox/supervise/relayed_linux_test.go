package supervise_test

import (
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

var relayedVictims = jailtest.Victims{
	// relayed: the domain, how, an address of a relayed rule. It asks for another name there
	// and waits for the end. The note is where it is connected.
	"relayed": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		domain, to := domains[args[0]], netip.MustParseAddrPort(args[2])
		kind := unix.SOCK_STREAM
		if args[1] == "nonblocking" {
			kind |= unix.SOCK_NONBLOCK
		}
		fd := makeSocket(s, domain, kind)
		s.Begin()
		// A second call must not announce the connection again.
		for errno := connect(fd, wire(domain, to)); errno != 0; errno = connect(fd, wire(domain, to)) {
			if errno == unix.EISCONN {
				break
			}
			if errno != unix.EINPROGRESS && errno != unix.EALREADY {
				return jailtest.Outcome{Errno: errno}
			}
			if err := wait(fd); err != nil {
				s.Failf("%v", err)
			}
		}
		peer, err := unix.Getpeername(fd)
		if err != nil {
			s.Failf("asking for the peer: %v", err)
		}
		if err := unix.SetNonblock(fd, false); err != nil {
			s.Failf("making it block: %v", err)
		}
		f := os.NewFile(uintptr(fd), "connection")
		defer func() { _ = f.Close() }()
		if _, err := io.WriteString(f, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"); err != nil {
			s.Failf("asking: %v", err)
		}
		_, _ = io.Copy(io.Discard, f) // an answer or a reset
		return jailtest.Outcome{Note: peerAddr(peer)}
	},
}

func peerAddr(peer unix.Sockaddr) string {
	switch p := peer.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(p.Addr).String()
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(p.Addr).Unmap().String()
	}
	return ""
}

// TestRelayed: a connection that a host rule allows goes to the relay, which knows for whom
// and where to.
func TestRelayed(t *testing.T) {
	rules := internet("known.example:80")
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, domain := range []string{"v4", "v6"} {
			for _, how := range []string{"blocking", "nonblocking"} {
				t.Run(domain+" "+how, func(t *testing.T) {
					to := "93.184.215.14:80"
					if domain == "v6" {
						to = "[::ffff:93.184.215.14]:80"
					}
					r := rules.run(t, user, "relayed", domain, how, to)
					jailtest.WantOK(t, r)
					if r.Outcome.Note != "127.0.0.1" {
						t.Errorf("connected to %s, want the relay", r.Outcome.Note)
					}
					all := denials(t, r)
					if len(all) != 1 || all[0].Call != "relay" || all[0].PID <= 1 || all[0].Program != "victim" ||
						!strings.Contains(all[0].Asked, "evil.example") || !strings.Contains(all[0].Asked, "93.184.215.14:80") {
						t.Errorf("got denials %+v", all)
					}
					r = rules.run(t, user, "relayed", domain, how, strings.Replace(to, ":80", ":81", 1))
					jailtest.WantErrno(t, r, unix.EACCES)
				})
			}
		}
	})
}
