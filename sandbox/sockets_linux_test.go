package sandbox_test

import (
	"encoding/json"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

func init() { //nolint:gochecknoinits // the table of operations is split by subject
	operations["connect-unix"] = connectUnix
	operations["reaim"] = reaim
	operations["connect-stdin"] = func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Connect(0, &unix.SockaddrUnix{Name: a[0]}))
	}
	operations["stream-pair"] = streamPair
	operations["echo"] = echo
}

func connectUnix(s *jailtest.Stage, a []string) jailtest.Outcome {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: a[0]})
	}
	return jailtest.OutcomeOf(s, err)
}

// reaim makes a datagram pair, which needs no socket(2), and aims one end at a socket file.
func reaim(s *jailtest.Stage, a []string) jailtest.Outcome {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if err := unix.Connect(pair[0], &unix.SockaddrUnix{Name: a[0]}); err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	_, err = unix.Write(pair[0], []byte("x"))
	return jailtest.OutcomeOf(s, err)
}

func streamPair(s *jailtest.Stage, _ []string) jailtest.Outcome {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if _, err := unix.Write(pair[0], []byte("x")); err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	var b [1]byte
	n, err := unix.Read(pair[1], b[:])
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(n)
	return o
}

// echo reads from standard input and writes what it read to it: standard input is a
// socket pair, as many hosts hand one over.
func echo(s *jailtest.Stage, _ []string) jailtest.Outcome {
	var b [16]byte
	n, err := unix.Read(0, b[:])
	if err == nil {
		_, err = unix.Write(0, b[:n])
	}
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(n)
	return o
}

// serve puts a stream and a datagram socket file into the ground's write grant.
func (g *ground) serve(t *testing.T) (stream, datagram string) {
	t.Helper()
	stream, datagram = g.at("write/s"), g.at("write/d")
	l, err := net.Listen("unix", stream) //nolint:noctx // a socket file of this test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagram, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	jailtest.Own(t, g.user, stream, datagram)
	return stream, datagram
}

// TestSocketFilesInGrants: a socket file is not reached because its folder is granted.
func TestSocketFilesInGrants(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		stream, datagram := g.serve(t)
		jailtest.WantErrno(t, g.jailed(t, "connect-unix", stream), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "reaim", datagram), unix.EPERM)
		jailtest.WantOK(t, g.outside(t, "connect-unix", stream))
		jailtest.WantOK(t, g.outside(t, "reaim", datagram))
		jailtest.WantValue(t, g.jailed(t, "stream-pair"), 1)
	})
}

// stdinPair starts the launcher with one end of a socket pair as standard input.
func (g *ground) stdinPair(t *testing.T, kind int, op ...string) (jailtest.Result, *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := os.NewFile(uintptr(pair[0]), "theirs"), os.NewFile(uintptr(pair[1]), "ours")
	defer theirs.Close()
	t.Cleanup(func() { _ = ours.Close() })
	if _, err := ours.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal(g.plan)
	if err != nil {
		t.Fatal(err)
	}
	return jailtest.Launch{User: g.user, StdinFile: theirs}.Run(t, "jail", append([]string{string(plan)}, op...)...), ours
}

// TestStandardStreams: hosts hand over stream socket pairs, and those work. What would be
// more than a stream is refused before the server starts.
func TestStandardStreams(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		stream, datagram := g.serve(t)
		got, ours := g.stdinPair(t, unix.SOCK_STREAM, "echo")
		jailtest.WantValue(t, got, 5)
		var b [16]byte
		if n, err := ours.Read(b[:]); err != nil || string(b[:n]) != "hello" {
			t.Errorf("read %q, %v from the server", b[:n], err)
		}
		aimed, _ := g.stdinPair(t, unix.SOCK_STREAM, "connect-stdin", stream)
		jailtest.WantErrno(t, aimed, unix.EACCES)

		refused, _ := g.stdinPair(t, unix.SOCK_DGRAM, "connect-stdin", datagram)
		wantRefusedStart(t, refused, "datagram socket")

		folder, err := os.Open(g.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		plan, err := json.Marshal(g.plan)
		if err != nil {
			t.Fatal(err)
		}
		r := jailtest.Launch{User: user.User, StdinFile: folder}.Run(t, "jail", string(plan), "env")
		wantRefusedStart(t, r, "it is a folder")
	})
}

func wantRefusedStart(t *testing.T, r jailtest.Result, reason string) {
	t.Helper()
	if r.Started || r.Finished || r.Signal != 0 || r.Status != setupFailed || !contains(r.Stderr, reason) {
		t.Errorf("want a start refused for %q\n%s", reason, r)
	}
}
