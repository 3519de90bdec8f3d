package seccomp_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

func TestKernelSocketCreation(t *testing.T) {
	socket := func(family, kind, protocol uint64) []string {
		return []string{nr(t, "socket"), hex(family), hex(kind), hex(protocol)}
	}
	tcp := socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	withHigh := socket(1<<32|unix.AF_INET, 1<<32|unix.SOCK_STREAM, 1<<32)
	runKernelCases(t, []kernelCase{
		{name: "TCP without sockets", operation: "raw", args: tcp, inJail: refused(unix.EAFNOSUPPORT), opened: &server},
		{name: "TCP with high bits", operation: "raw", args: withHigh, inJail: refused(unix.EAFNOSUPPORT), opened: &server},
		{
			name: "TCP6 without sockets", operation: "raw", args: socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP),
			inJail: refused(unix.EAFNOSUPPORT), opened: &internet,
		},
		{
			name: "UDP for a server", policy: server, operation: "raw", args: socket(unix.AF_INET, unix.SOCK_DGRAM, 0),
			inJail: refused(unix.EPERM), twin: tcp, opened: &client,
		},
		{
			name: "netlink without the Internet", policy: server, operation: "raw", args: socket(unix.AF_NETLINK, unix.SOCK_RAW, 0),
			inJail: refused(unix.EAFNOSUPPORT), twin: tcp, opened: &client,
		},
		{
			name: "other netlink protocols", policy: internet, operation: "raw", args: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
			inJail: refused(unix.EPERM), twin: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		},
		{
			name: "Multipath TCP", policy: internet, operation: "raw", args: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP),
			inJail: refused(unix.EPROTONOSUPPORT), twin: tcp, free: worksOrLacksProtocol,
		},
		{
			name: "Unix", policy: internet, operation: "raw", args: socket(unix.AF_UNIX, unix.SOCK_STREAM, 0),
			inJail: refused(unix.EACCES), twin: tcp,
		},
		{
			name: "Unix datagram", operation: "raw", args: socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0),
			inJail: refused(unix.EACCES), twin: []string{nr(t, "getpid")},
		},
	})
}

// worksOrLacksProtocol is for protocols that a kernel may be built without; the errno it
// then gives is the one that the filter imitates.
func worksOrLacksProtocol(t *testing.T, r jailtest.Result) {
	t.Helper()
	if r.Outcome.Errno == unix.EPROTONOSUPPORT {
		refused(unix.EPROTONOSUPPORT)(t, r)
		return
	}
	works(t, r)
}

func TestKernelSocketPairs(t *testing.T) {
	stream := []string{hex(unix.SOCK_STREAM)}
	runKernelCases(t, []kernelCase{
		{name: "datagram", operation: "pair", args: []string{hex(unix.SOCK_DGRAM)}, inJail: refused(unix.EPERM), twin: stream},
		{name: "datagram with flags", operation: "pair", args: []string{hex(unix.SOCK_DGRAM | unix.SOCK_CLOEXEC)}, inJail: refused(unix.EPERM), twin: stream},
		{name: "datagram with high bits", operation: "pair", args: []string{hex(1<<32 | unix.SOCK_DGRAM)}, inJail: refused(unix.EPERM), twin: []string{hex(1<<32 | unix.SOCK_STREAM)}},
		{name: "raw is datagram", operation: "pair", args: []string{hex(unix.SOCK_RAW)}, inJail: refused(unix.EPERM), twin: []string{hex(unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK)}},
		{name: "datagram with the Internet", policy: internet, operation: "pair", args: []string{hex(unix.SOCK_DGRAM)}, inJail: refused(unix.EPERM), twin: stream},
	})
}

// TestKernelPairsCannotBeAimed holds that no end of an admitted pair reaches a socket
// file, with the jail that has connect; and that a datagram end would, outside.
func TestKernelPairsCannotBeAimed(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		path := filepath.Join(jailtest.Dir(t, user), "service")
		listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		jailtest.Own(t, user, path)
		received := func() bool {
			t.Helper()
			// What the victim sent is in the queue before it ended.
			var n int
			got := inQueue(t, listener, func(fd int) (err error) {
				n, _, err = unix.Recvfrom(fd, make([]byte, 64), unix.MSG_DONTWAIT)
				return err
			})
			return got && n > 0
		}
		for _, way := range []string{"connect", "sendto", "sendmsg"} {
			works(t, operate(t, user, outside, "aim", hex(unix.SOCK_DGRAM), way, path))
			if !received() {
				t.Fatalf("%s: a datagram end outside the jail reached nothing, so this proves nothing", way)
			}
			refused(unix.EPERM)(t, operate(t, user, inside(t, internet), "aim", hex(unix.SOCK_DGRAM), way, path))
		}
		for network, kind := range map[string]uint64{"unix": unix.SOCK_STREAM, "unixpacket": unix.SOCK_SEQPACKET} {
			// The kernel compares types before it says that an end is connected.
			connectable := filepath.Join(filepath.Dir(path), network)
			service, err := net.ListenUnix(network, &net.UnixAddr{Name: connectable, Net: network})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			jailtest.Own(t, user, connectable)
			refused(unix.EISCONN)(t, operate(t, user, inside(t, internet), "aim", hex(kind), "connect", connectable))
			refused(unix.EACCES)(t, operate(t, user, inside(t, strict), "aim", hex(kind), "connect", connectable))
			refused(unix.EACCES)(t, operate(t, user, inside(t, strict), "aim", hex(kind), "sendto", connectable))
			// Listeners of package net do not block, so the call says at once whether anybody came.
			if inQueue(t, service, func(fd int) error {
				came, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
				if err == nil {
					unix.Close(came)
				}
				return err
			}) {
				t.Errorf("%s: an end of a pair reached the listener", network)
			}
		}
		// A stream end says that it is connected, a seqpacket end ignores the address.
		refused(unix.EISCONN)(t, operate(t, user, inside(t, internet), "aim", hex(unix.SOCK_STREAM), "sendto", path))
		for _, policy := range []seccomp.Policy{strict, internet} {
			refused(unix.EISCONN)(t, operate(t, user, inside(t, policy), "aim", hex(unix.SOCK_STREAM), "sendmsg", path))
			works(t, operate(t, user, inside(t, policy), "aim", hex(unix.SOCK_SEQPACKET), "sendmsg", path))
		}
		works(t, operate(t, user, inside(t, internet), "aim", hex(unix.SOCK_SEQPACKET), "sendto", path))
		if received() {
			t.Error("an end of a pair reached the socket file")
		}
	})
}

// inQueue makes a call that does not wait on a listener, and tells whether there was something
// to take. EAGAIN alone says that there was nothing.
func inQueue(t *testing.T, listener syscall.Conn, take func(fd int) error) bool {
	t.Helper()
	raw, err := listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var taken error
	if err := raw.Control(func(fd uintptr) { taken = take(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if taken != nil && !errors.Is(taken, unix.EAGAIN) {
		t.Fatal(taken)
	}
	return taken == nil
}

// inherited is an open socket that a victim finds as descriptor 3: a filter must also hold
// for sockets that the jail did not make.
func inherited(t *testing.T, kind int) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { file.Close() })
	return file
}

func TestKernelInheritedSockets(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	datagrams, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	udpPort := fmt.Sprint(datagrams.LocalAddr().(*net.UDPAddr).Port)

	tests := []struct {
		name    string
		kind    int
		way     string // of the operation "socket"
		port    string
		policy  seccomp.Policy
		inJail  func(*testing.T, jailtest.Result)
		free    func(*testing.T, jailtest.Result)
		opened  seccomp.Policy
		twinWay string // in the same jail, with the same answer as outside
	}{
		{"connect", unix.SOCK_STREAM, "connect", port, strict, refused(unix.EACCES), works, client, "getsockname"},
		{"connect by a server", unix.SOCK_STREAM, "connect", port, server, refused(unix.EACCES), works, client, "bind"},
		{"bind", unix.SOCK_STREAM, "bind", "0", strict, refused(unix.EACCES), works, server, "getsockname"},
		{"listen", unix.SOCK_STREAM, "listen", "0", client, refused(unix.EACCES), works, server, "bind"},
		{"accept", unix.SOCK_STREAM, "accept", "0", client, refused(unix.EACCES), refused(unix.EAGAIN), server, "bind"},
		{"accept4", unix.SOCK_STREAM, "accept4", "0", client, refused(unix.EACCES), refused(unix.EAGAIN), server, "bind"},
		{"datagram to an address", unix.SOCK_DGRAM, "sendto", udpPort, strict, refused(unix.EACCES), works, client, "getsockname"},
		{"fast open", unix.SOCK_STREAM, "sendto fast open", port, server, refused(unix.EACCES), works, client, "bind"},
		{"fast open in a message", unix.SOCK_STREAM, "sendmsg fast open", port, server, refused(unix.EACCES), works, client, "bind"},
		{"fast open in messages", unix.SOCK_STREAM, "sendmmsg fast open", port, server, refused(unix.EACCES), works, client, "bind"},
		{"fast open without sockets", unix.SOCK_STREAM, "sendmsg fast open", port, strict, refused(unix.EACCES), works, client, "getsockname"},
		{"option to connect later", unix.SOCK_STREAM, "fast open option", port, server, refused(unix.EACCES), works, client, "no delay option"},
		{"option to connect later, without sockets", unix.SOCK_STREAM, "fast open option", port, strict, refused(unix.EACCES), works, client, "no delay option"},
	}
	needFastOpen(t)
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				try := func(policy, way string) jailtest.Result {
					t.Helper()
					return operateWith(t, user, []*os.File{inherited(t, test.kind)}, policy, "socket", way, test.port)
				}
				test.inJail(t, try(inside(t, test.policy), test.way))
				test.free(t, try(outside, test.way))
				test.free(t, try(inside(t, test.opened), test.way))
				works(t, operateWith(t, user, []*os.File{inherited(t, test.kind)}, inside(t, test.policy), "socket", test.twinWay, "0"))
			})
		}
	})
}

// needFastOpen asks for TCP fast open as a client, which is on by default.
func needFastOpen(t *testing.T) {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "TCP fast open (net.ipv4.tcp_fastopen)", Check: func() error {
		text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_fastopen")
		if err == nil && strings.TrimSpace(string(text)) == "0" {
			err = errors.New("it is 0")
		}
		return err
	}})
}
