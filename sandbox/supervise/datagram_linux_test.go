package supervise_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// receiver is a datagram socket that counts what comes.
type receiver struct {
	conn *net.UDPConn
	at   netip.AddrPort
}

func receive(t *testing.T, address string) receiver {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return receiver{conn, conn.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// take returns the datagrams that have come.
func (r receiver) take(t *testing.T) []string {
	t.Helper()
	return waiting(t, r.conn)
}

// waiting reads what a socket has. On this machine a datagram is there when the call that
// sends it returns.
func waiting(t *testing.T, conn syscall.Conn) (out []string) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64<<10)
	err = raw.Control(func(fd uintptr) {
		for {
			n, _, err := unix.Recvfrom(int(fd), buffer, unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return
			case err != nil:
				t.Errorf("receiving: %v", err)
				return
			default:
				out = append(out, string(buffer[:n]))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sendmsg sends with all that a message can have.
func sendmsg(fd int, address, content, control []byte, flags uintptr) (int, unix.Errno) {
	vector := unix.Iovec{Base: &content[0], Len: uint64(len(content))}
	h := unix.Msghdr{Iov: &vector, Iovlen: 1}
	if len(address) > 0 {
		h.Name, h.Namelen = &address[0], uint32(len(address))
	}
	if len(control) > 0 {
		h.Control, h.Controllen = &control[0], uint64(len(control))
	}
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), at(&h), flags)
	return int(n), errno
}

func sendto(fd int, address, content []byte) (int, unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), at(&content[0]), uintptr(len(content)), 0, at(&address[0]), uintptr(len(address)))
	return int(n), errno
}

var datagramVictims = jailtest.Victims{
	// udp: the domain, how, the destination. It sends "datagram" there, from a bound socket
	// that somebody could answer to.
	"udp": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		domain, to := domains[args[0]], netip.MustParseAddrPort(args[2])
		fd := makeSocket(s, domain, unix.SOCK_DGRAM)
		raw, content := wire(domain, to), []byte("datagram")
		s.Begin()
		var n int
		var errno unix.Errno
		switch args[1] {
		case "sendto":
			n, errno = sendto(fd, raw, content)
		case "unspecified":
			raw[0], raw[1] = 0, 0
			n, errno = sendto(fd, raw, content)
		case "sendmsg":
			n, errno = sendmsg(fd, raw, content, nil, 0)
		case "sendmmsg":
			return sendmmsg(fd, [][]byte{raw, raw, raw}, content)
		case "connect":
			if errno = connect(fd, raw); errno == 0 {
				var count uintptr
				count, _, errno = unix.Syscall(unix.SYS_WRITE, uintptr(fd), at(&content[0]), uintptr(len(content)))
				n = int(count)
			}
		}
		if errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		return jailtest.Outcome{Value: int64(n)}
	},
	// mixed: two destinations. One call sends to the first, the second, the first.
	"mixed": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		first := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		second := wire(unix.AF_INET, netip.MustParseAddrPort(args[1]))
		s.Begin()
		return sendmmsg(fd, [][]byte{first, second, first}, []byte("datagram"))
	},
	// reconnect: an open and a shut destination. A socket that was connected to the open one
	// must not send there what is meant for the shut one.
	"reconnect": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		s.Begin()
		for _, to := range args {
			if errno := connect(fd, wire(unix.AF_INET, netip.MustParseAddrPort(to))); errno != 0 {
				return jailtest.Outcome{Errno: errno}
			}
		}
		_, err := unix.Write(fd, []byte("datagram"))
		return jailtest.OutcomeOf(s, err)
	},
	// routes: destinations. It notes the source address for each, on one socket, as glibc
	// asks: connect, read, dissolve.
	"routes": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		s.Begin()
		var b strings.Builder
		for _, to := range args {
			errno := connect(fd, wire(unix.AF_INET, netip.MustParseAddrPort(to)))
			name, err := unix.Getsockname(fd)
			if err != nil {
				s.Failf("asking for the name: %v", err)
			}
			four := name.(*unix.SockaddrInet4)
			fmt.Fprintf(&b, "%v %v %v;", errno, netip.AddrFrom4(four.Addr), four.Port != 0)
			if errno := connect(fd, make([]byte, 16)); errno != 0 {
				return jailtest.Outcome{Errno: errno}
			}
		}
		return jailtest.Outcome{Note: b.String()}
	},
	// ask: how, a name server, a name. It notes the answer's code or what went to the server.
	"ask": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[1]))
		query := question(s, args[2])
		kind := unix.SOCK_DGRAM
		if args[0] == "tcp" {
			kind = unix.SOCK_STREAM
			query = append([]byte{byte(len(query) >> 8), byte(len(query))}, query...)
		}
		fd := makeSocket(s, unix.AF_INET, kind)
		s.Begin()
		if args[0] == "unconnected" {
			return askUnconnected(s, fd, to, query)
		}
		if errno := connect(fd, to); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		var errno unix.Errno
		if args[0] == "named" {
			_, errno = sendto(fd, to, query)
		} else {
			_, _, errno = unix.Syscall(unix.SYS_WRITE, uintptr(fd), at(&query[0]), uintptr(len(query)))
		}
		if errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		got := make([]byte, 512)
		n, err := readSoon(fd, got)
		if err != nil {
			s.Failf("reading the answer: %v", err)
		}
		if args[0] == "tcp" {
			got, n = got[2:], n-2
		}
		var p dnsmessage.Parser
		head, err := p.Start(got[:n])
		if err != nil || head.ID != queryID || !head.Response {
			s.Failf("the answer is %+v, %v", head, err)
		}
		return jailtest.Outcome{Note: head.RCode.String()}
	},
}

const queryID = 0x1234

func question(s *jailtest.Stage, name string) []byte {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: queryID, RecursionDesired: true})
	err := errors.Join(b.StartQuestions(), b.Question(dnsmessage.Question{
		Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}))
	out, failed := b.Finish()
	if err != nil || failed != nil {
		s.Failf("making a query: %v, %v", err, failed)
	}
	return out
}

// askUnconnected sends a query by name and notes the name in what was sent to the server:
// nobody listens there, so the kernel gives it back on the error queue.
func askUnconnected(s *jailtest.Stage, fd int, to, query []byte) jailtest.Outcome {
	if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1); err != nil {
		s.Failf("asking for errors: %v", err)
	}
	n, errno := sendto(fd, to, query)
	if errno != 0 {
		return jailtest.Outcome{Errno: errno}
	}
	if n != len(query) {
		s.Failf("sent %d bytes of %d", n, len(query))
	}
	fds := []unix.PollFd{{Fd: int32(fd)}}
	if _, err := unix.Poll(fds, 10_000); err != nil || fds[0].Revents&unix.POLLERR == 0 {
		s.Failf("nothing came back: %#x, %v", fds[0].Revents, err)
	}
	got := make([]byte, 512)
	n, _, _, _, err := unix.Recvmsg(fd, got, make([]byte, 512), unix.MSG_ERRQUEUE)
	if err != nil {
		s.Failf("reading the error queue: %v", err)
	}
	var p dnsmessage.Parser
	head, err := p.Start(got[:n])
	if err != nil || head.ID != queryID {
		s.Failf("what was sent is %+v, %v", head, err)
	}
	asked, err := p.Question()
	if err != nil {
		s.Failf("what was sent asks nothing: %v", err)
	}
	return jailtest.Outcome{Note: asked.Name.String()}
}

func readSoon(fd int, into []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 10_000); err != nil {
		return 0, err
	}
	return unix.Read(fd, into)
}

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	unix.Msghdr
	sent uint32
	_    uint32
}

// sendmmsg sends the content to each address in one call; the note is the length of each.
func sendmmsg(fd int, to [][]byte, content []byte) jailtest.Outcome {
	vector := unix.Iovec{Base: &content[0], Len: uint64(len(content))}
	list := make([]mmsghdr, len(to))
	for i := range list {
		list[i].Msghdr = unix.Msghdr{Iov: &vector, Iovlen: 1}
		if len(to[i]) > 0 {
			list[i].Name, list[i].Namelen = &to[i][0], uint32(len(to[i]))
		}
	}
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&list[0])), uintptr(len(list)), 0, 0, 0)
	if errno != 0 {
		return jailtest.Outcome{Errno: errno}
	}
	lengths := make([]uint32, len(list))
	for i := range list {
		lengths[i] = list[i].sent
	}
	return jailtest.Outcome{Value: int64(n), Note: fmt.Sprint(lengths)}
}

func TestUDP(t *testing.T) {
	open4, shut4 := receive(t, "127.0.0.2:0"), receive(t, "127.0.0.3:0")
	open6, shut6 := receive(t, "[::1]:0"), receive(t, "[::1]:0")
	rules := internet(open4.at.String(), open6.at.String())
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, how := range []string{"sendto", "sendmsg", "sendmmsg", "connect"} {
			for _, test := range []struct {
				domain     string
				open, shut receiver
			}{{"v4", open4, shut4}, {"v6", open6, shut6}, {"v6", open4, shut4}} {
				t.Run(how+" "+test.domain, func(t *testing.T) {
					want := 1
					if how == "sendmmsg" {
						want = 3
					}
					r := rules.run(t, user, "udp", test.domain, how, test.open.at.String())
					jailtest.WantOK(t, r)
					wantNoDenial(t, r)
					if got := test.open.take(t); len(got) != want || got[0] != "datagram" {
						t.Errorf("came %q", got)
					}
					r = rules.run(t, user, "udp", test.domain, how, test.shut.at.String())
					if how == "connect" {
						// The route probe is answered; nothing can be sent.
						jailtest.WantErrno(t, r, unix.EDESTADDRREQ)
						wantNoDenial(t, r)
					} else {
						jailtest.WantErrno(t, r, unix.EACCES)
						wantDenied(t, r, "send", "udp "+test.shut.at.String())
					}
					if got := test.shut.take(t); len(got) != 0 {
						t.Errorf("%q got out", got)
					}
					jailtest.WantOK(t, jailtest.RunAs(t, user, "udp", test.domain, how, test.shut.at.String()))
					if got := test.shut.take(t); len(got) != want {
						t.Errorf("outside came %q", got)
					}
				})
			}
		}
	})
}

// TestUDPUnspecifiedFamily: IPv4 sockets take AF_UNSPEC in a send for AF_INET.
func TestUDPUnspecifiedFamily(t *testing.T) {
	open, shut := receive(t, "127.0.0.2:0"), receive(t, "127.0.0.3:0")
	rules := internet(open.at.String())
	jailtest.WantOK(t, rules.run(t, jailtest.User{}, "udp", "v4", "unspecified", open.at.String()))
	jailtest.WantErrno(t, rules.run(t, jailtest.User{}, "udp", "v4", "unspecified", shut.at.String()), unix.EACCES)
	jailtest.WantOK(t, jailtest.Run(t, "udp", "v4", "unspecified", shut.at.String()))
	if in, out := open.take(t), shut.take(t); len(in) != 1 || len(out) != 1 {
		t.Errorf("came %q and %q", in, out)
	}
}

func TestSendmmsgMixed(t *testing.T) {
	open, shut := receive(t, "127.0.0.2:0"), receive(t, "127.0.0.3:0")
	r := internet(open.at.String()).run(t, jailtest.User{}, "mixed", open.at.String(), shut.at.String())
	jailtest.WantValue(t, r, 1)
	wantDenied(t, r, "send", "udp "+shut.at.String())
	if in, out := open.take(t), shut.take(t); len(in) != 1 || len(out) != 0 || r.Outcome.Note != "[8 0 0]" {
		t.Errorf("came %q and %q, lengths %s", in, out, r.Outcome.Note)
	}
	r = jailtest.Run(t, "mixed", open.at.String(), shut.at.String())
	jailtest.WantValue(t, r, 3)
	if in, out := open.take(t), shut.take(t); len(in) != 2 || len(out) != 1 || r.Outcome.Note != "[8 8 8]" {
		t.Errorf("outside came %q and %q, lengths %s", in, out, r.Outcome.Note)
	}
}

func TestUDPReconnect(t *testing.T) {
	open, shut := receive(t, "127.0.0.2:0"), receive(t, "127.0.0.3:0")
	rules := internet(open.at.String())
	jailtest.WantErrno(t, rules.run(t, jailtest.User{}, "reconnect", open.at.String(), shut.at.String()), unix.EDESTADDRREQ)
	jailtest.WantOK(t, rules.run(t, jailtest.User{}, "reconnect", shut.at.String(), open.at.String()))
	if in, out := open.take(t), shut.take(t); len(in) != 1 || len(out) != 0 {
		t.Errorf("came %q and %q", in, out)
	}
}

// TestRoutes: source addresses are the kernel's, allowed or not, in any order.
func TestRoutes(t *testing.T) {
	to := []string{"127.0.0.2:9", "127.0.0.3:9", "203.0.113.9:443", "127.0.0.2:9", "224.0.0.1:9", "127.0.0.3:9"}
	outside := jailtest.Run(t, "routes", to...)
	jailtest.WantOK(t, outside)
	inside := internet("127.0.0.2:9").run(t, jailtest.User{}, "routes", to...)
	jailtest.WantOK(t, inside)
	wantNoDenial(t, inside)
	if inside.Outcome.Note != outside.Outcome.Note {
		t.Errorf("got  %s\nwant %s", inside.Outcome.Note, outside.Outcome.Note)
	}
}

// TestNoRoutes is TestRoutes on a machine whose routes lead nowhere, and on one where not even
// the loopback interface is up.
func TestNoRoutes(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"loopback alone": "ip link set lo up && exec \"$0\" \"$@\"", "nothing": "exec \"$0\" \"$@\""} {
		t.Run(name, func(t *testing.T) {
			cmd := inNetwork(t, script, program, "-test.run=^TestRoutes$", "-test.v")
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("--- PASS: TestRoutes ")) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestNames(t *testing.T) {
	const server, stranger = "127.0.0.77:53", "127.0.0.78:53"
	w := internet("known.example:443")
	w.Servers = []string{server}
	tests := []struct {
		name, how, to, asked string
		want                 string
		errno                unix.Errno
		call, denied         string
	}{
		{name: "connected", how: "udp", to: server, asked: "known.example.", want: "RCodeSuccess"},
		{name: "connected to any server", how: "udp", to: "203.0.113.53:53", asked: "known.example.", want: "RCodeSuccess"},
		{name: "connected and named", how: "named", to: server, asked: "known.example.", want: "RCodeSuccess"},
		{name: "stream", how: "tcp", to: server, asked: "known.example.", want: "RCodeSuccess"},
		{name: "unknown", how: "udp", to: server, asked: "secret.evil.example.", want: "RCodeNameError", call: "dns", denied: "name secret.evil.example"},
		{name: "unconnected", how: "unconnected", to: server, asked: "known.example.", want: "known.example."},
		{name: "unconnected and unknown", how: "unconnected", to: server, asked: "secret.evil.example.", want: "refused.stockade.invalid.", call: "dns", denied: "name secret.evil.example"},
		{name: "unconnected to a stranger", how: "unconnected", to: stranger, asked: "known.example.", errno: unix.EACCES, call: "send", denied: "udp " + stranger},
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				r := w.run(t, user, "ask", test.how, test.to, test.asked)
				if test.errno != 0 {
					jailtest.WantErrno(t, r, test.errno)
				} else {
					jailtest.WantOK(t, r)
				}
				if r.Outcome.Note != test.want {
					t.Errorf("got %q, want %q\n%s", r.Outcome.Note, test.want, r)
				}
				all := denials(t, r)
				if test.call == "" && len(all) != 0 || test.call != "" && (len(all) != 1 || all[0].Call != test.call || all[0].Asked != test.denied) {
					t.Errorf("got denials %+v", all)
				}
			})
		}
	})
}

// TestNoQuery: what is no name query does not get out by way of the name server.
func TestNoQuery(t *testing.T) {
	w := internet("known.example:443")
	w.Servers = []string{"127.0.0.77:53"}
	r := w.run(t, jailtest.User{}, "udp", "v4", "sendto", "127.0.0.77:53")
	jailtest.WantOK(t, r)
	wantDenied(t, r, "dns", "udp 127.0.0.77:53")
	if !bytes.Contains([]byte(r.Stderr), []byte("it is no name query")) {
		t.Errorf("no reason\n%s", r)
	}
}
