package supervise_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// unixWire is a sockaddr for a path, or for an abstract name that begins with @.
func unixWire(path string) []byte {
	raw := append([]byte{unix.AF_UNIX, 0}, path...)
	if strings.HasPrefix(path, "@") {
		raw[2] = 0
		return raw
	}
	return append(raw, 0)
}

var unixVictims = jailtest.Victims{
	// unix: how, a path, and a folder to work in. It connects and hears the greeting.
	"unix": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		if err := os.Chdir(args[2]); err != nil {
			s.Failf("%v", err)
		}
		kind := unix.SOCK_STREAM
		switch args[0] {
		case "nonblocking":
			kind |= unix.SOCK_NONBLOCK
		case "datagram", "sent":
			kind = unix.SOCK_DGRAM
		}
		fd, raw := makeSocket(s, unix.AF_UNIX, kind), unixWire(args[1])
		s.Begin()
		if args[0] == "sent" {
			n, errno := sendto(fd, raw, []byte("datagram"))
			return jailtest.Outcome{Errno: errno, Value: int64(n)}
		}
		if errno := connect(fd, raw); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		if args[0] == "datagram" {
			n, err := unix.Write(fd, []byte("datagram"))
			out := jailtest.OutcomeOf(s, err)
			out.Value = int64(n)
			return out
		}
		if err := unix.SetNonblock(fd, false); err != nil {
			s.Failf("making it block: %v", err)
		}
		return jailtest.OutcomeOf(s, heard(fd))
	},
	// own: a folder. A socket of the victim's own, listened on and connected to.
	"own": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		server, path := makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM), filepath.Join(args[0], "own")
		fd := makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM)
		s.Begin()
		if err := unix.Bind(server, &unix.SockaddrUnix{Name: path}); err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		if got := raw6(unix.SYS_LISTEN, uintptr(server), 1); got != "0" {
			s.Failf("listening: %s", got)
		}
		if errno := connect(fd, unixWire(path)); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		conn, _, err := unix.Accept(server)
		if err == nil {
			_, err = unix.Write(conn, []byte(greeting))
		}
		if err != nil {
			s.Failf("accepting: %v", err)
		}
		return jailtest.OutcomeOf(s, heard(fd))
	},
	// queue: how, a path whose queue is full. What a connect says.
	"queue": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM)
		switch args[0] {
		case "nonblocking":
			if err := unix.SetNonblock(fd, true); err != nil {
				s.Failf("making it not block: %v", err)
			}
		case "limit":
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
				s.Failf("setting a time-out: %v", err)
			}
		}
		s.Begin()
		fmt.Fprintln(os.Stderr, "connecting")
		return jailtest.Outcome{Errno: connect(fd, unixWire(args[1]))}
	},
	// listens: an address, or "none", for a socket that is bound before.
	"listens": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		port, err := strconv.Atoi(args[0])
		if err != nil && args[0] != "unbound" {
			s.Failf("reading the port: %v", err)
		}
		s.Begin()
		if args[0] != "unbound" {
			if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}); err != nil {
				return jailtest.OutcomeOf(s, err)
			}
		}
		if _, _, errno := unix.Syscall(unix.SYS_LISTEN, uintptr(fd), 5, 0); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil || on != 1 {
			s.Failf("it does not listen: %d, %v", on, err)
		}
		return jailtest.Outcome{}
	},
}

// greetUnix listens on a socket file and greets everyone who comes.
func greetUnix(t *testing.T, path string) string {
	t.Helper()
	l, err := net.Listen("unix", path) //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if !strings.HasPrefix(path, "@") {
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // other users connect
			t.Fatal(err)
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting))
			_ = c.Close()
		}
	}()
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnix(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		dir, own := jailtest.Dir(t, user), jailtest.Dir(t, user)
		open, shut := greetUnix(t, dir+"/open"), greetUnix(t, dir+"/shut")
		inOwn := greetUnix(t, own+"/theirs")
		beside := jailtest.Dir(t, user)
		if err := os.Rename(beside, own+"-beside"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(own + "-beside") })
		nextTo := greetUnix(t, own+"-beside/socket")
		abstract := greetUnix(t, "@stockade-test-"+strconv.Itoa(os.Getpid())+user.String())
		w := world{Supervision: 1, Sockets: []string{open}, Own: []string{own}}
		for _, test := range []struct {
			name, path, dir string
			denied          string // "" for allowed
		}{
			{name: "absolute", path: open},
			{name: "relative", path: "open", dir: dir},
			{name: "by way of a parent", path: "../" + filepath.Base(dir) + "/open", dir: dir},
			{name: "through a link", path: link(t, open, own+"/to-open")},
			{name: "through an absolute link of a folder", path: link(t, dir, own+"/to-dir") + "/open"},
			{name: "own", path: inOwn},
			{name: "refused", path: shut, denied: shut},
			{name: "refused relative", path: "shut", dir: dir, denied: shut},
			{name: "refused by way of a parent", path: own + "/../" + filepath.Base(dir) + "/shut", denied: shut},
			{name: "refused through a link", path: link(t, shut, own+"/to-shut"), denied: shut},
			{name: "refused beside the own folder", path: nextTo, denied: nextTo},
			{name: "abstract", path: abstract, denied: abstract},
			{name: "by way of /proc", path: "/proc/self/root" + open, denied: "/proc/self/root" + open},
			{name: "refused by way of /proc", path: "/proc/self/cwd/shut", dir: dir, denied: "/proc/self/cwd/shut"},
		} {
			for _, how := range []string{"blocking", "nonblocking"} {
				t.Run(test.name+" "+how, func(t *testing.T) {
					if test.dir == "" {
						test.dir = "/"
					}
					r := w.run(t, user, "unix", how, test.path, test.dir)
					if test.denied == "" {
						jailtest.WantOK(t, r)
						wantNoDenial(t, r)
						return
					}
					jailtest.WantErrno(t, r, unix.EACCES)
					wantDenied(t, r, "unix", "unix "+test.denied)
					jailtest.WantOK(t, jailtest.RunAs(t, user, "unix", how, test.path, test.dir))
				})
			}
		}
		r := w.run(t, user, "unix", "blocking", dir+"/missing", "/")
		jailtest.WantErrno(t, r, unix.ENOENT)
		wantNoDenial(t, r)
		jailtest.WantOK(t, w.run(t, user, "own", own))
		jailtest.WantErrno(t, w.run(t, user, "own", dir), unix.EACCES)
	})
}

func TestUnixDatagrams(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		dir := jailtest.Dir(t, user)
		var got [2]*net.UnixConn
		var paths [2]string
		for i, name := range []string{"/open", "/shut"} {
			paths[i] = dir + name
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: paths[i], Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if err := os.Chmod(paths[i], 0o777); err != nil { //nolint:gosec // other users send
				t.Fatal(err)
			}
			got[i] = conn
		}
		w := world{Supervision: 1, Sockets: paths[:1]}
		for _, how := range []string{"datagram", "sent"} {
			jailtest.WantValue(t, w.run(t, user, "unix", how, paths[0], "/"), 8)
			r := w.run(t, user, "unix", how, paths[1], "/")
			jailtest.WantErrno(t, r, unix.EACCES)
			wantDenied(t, r, "unix", "unix "+paths[1])
		}
		for i, want := range []int{2, 0} {
			if came := waiting(t, got[i]); len(came) != want {
				t.Errorf("%s got %q, want %d datagrams", paths[i], came, want)
			}
		}
		jailtest.WantValue(t, jailtest.RunAs(t, user, "unix", "sent", paths[1], "/"), 8)
	})
}

// fullQueue listens on a socket file and fills its queue.
func fullQueue(t *testing.T, path string) (accept func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { unix.Close(fd) })
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err == nil {
		err = os.Chmod(path, 0o777) //nolint:gosec // other users connect
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		filler, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(filler) })
		if err := unix.Connect(filler, &unix.SockaddrUnix{Name: path}); err != nil {
			return func() {
				if conn, _, err := unix.Accept(fd); err == nil {
					unix.Close(conn)
				}
			}
		}
	}
}

func TestUnixQueue(t *testing.T) {
	path := jailtest.Dir(t, jailtest.User{}) + "/full"
	accept := fullQueue(t, path)
	w := world{Supervision: 1, Sockets: []string{path}}
	for _, how := range []string{"nonblocking", "limit"} {
		jailtest.WantErrno(t, w.run(t, jailtest.User{}, "queue", how, path), unix.EAGAIN)
		jailtest.WantErrno(t, jailtest.Run(t, "queue", how, path), unix.EAGAIN)
	}
	// A blocking connect waits until there is room, which there is at some time from now on.
	go accept()
	jailtest.WantOK(t, w.run(t, jailtest.User{}, "queue", "blocking", path))
}

func TestListen(t *testing.T) {
	port := int(quietPort(t))
	granted := strconv.Itoa(port)
	for _, w := range []world{
		{Supervision: 1, Listen: []uint16{uint16(port)}},
		{Supervision: 2, Egress: []string{}, Listen: []uint16{uint16(port)}},
	} {
		jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
			jailtest.WantOK(t, w.run(t, user, "listens", granted))
			r := w.run(t, user, "listens", "unbound")
			jailtest.WantErrno(t, r, unix.EACCES)
			wantDenied(t, r, "listen", "tcp without a port")
			jailtest.WantOK(t, jailtest.RunAs(t, user, "listens", "unbound"))
			// A port that the kernel picks may be bound, as clients do, but not listened on.
			r = w.run(t, user, "listens", "0")
			jailtest.WantErrno(t, r, unix.EACCES)
			if all := denials(t, r); len(all) != 1 || all[0].Call != "listen" {
				t.Errorf("denials %+v", all)
			}
			w.Listen = nil
			r = w.run(t, user, "listens", granted)
			jailtest.WantErrno(t, r, unix.EACCES)
			wantDenied(t, r, "bind", "tcp 127.0.0.1:"+granted)
			w.Listen = []uint16{uint16(port)}
			jailtest.WantOK(t, jailtest.RunAs(t, user, "listens", granted))
		})
	}
}
