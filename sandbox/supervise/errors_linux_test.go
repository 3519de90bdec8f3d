package supervise_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// raw6 makes one system call and names its errno.
func raw6(number uintptr, a ...uintptr) string {
	var args [6]uintptr
	copy(args[:], a)
	n, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(n)
}

func at[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

const nowhere = 8 // an address that no process can read

var errorVictims = jailtest.Victims{
	// errors: makes wrong calls and notes what each one says.
	"errors": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		open := netip.MustParseAddrPort(args[0])
		var b strings.Builder
		say := func(what, got string) { fmt.Fprintf(&b, "%s: %s\n", what, got) }
		s.Begin()
		wrongConnects(s, open, say)
		wrongSends(s, open, say)
		wrongMessages(s, say)
		return jailtest.Outcome{Note: b.String()}
	},
}

func wrongConnects(s *jailtest.Stage, open netip.AddrPort, say func(what, got string)) {
	good4, good6 := wire(unix.AF_INET, open), wire(unix.AF_INET6, open)
	big := make([]byte, 256)
	copy(big, good4)
	odd := append([]byte{}, good4...)
	odd[0] = unix.AF_APPLETALK
	file, err := os.Open("/")
	if err != nil {
		s.Failf("%v", err)
	}
	for _, k := range []struct {
		name         string
		domain, kind int
	}{
		{"tcp4", unix.AF_INET, unix.SOCK_STREAM},
		{"tcp6", unix.AF_INET6, unix.SOCK_STREAM},
		{"udp4", unix.AF_INET, unix.SOCK_DGRAM},
		{"udp6", unix.AF_INET6, unix.SOCK_DGRAM},
		{"stream", unix.AF_UNIX, unix.SOCK_STREAM},
		{"packets", unix.AF_UNIX, unix.SOCK_SEQPACKET},
		{"datagrams", unix.AF_UNIX, unix.SOCK_DGRAM},
	} {
		for _, a := range []struct {
			name string
			raw  []byte
			size int
		}{
			{"nothing", big, 0},
			{"a byte", big, 1},
			{"a family", good4, 2},
			{"a family of IPv6", good6, 2},
			{"short IPv4", good4, 15},
			{"short IPv6", good6, 23},
			{"IPv6 without a scope", good6, 24},
			{"whole IPv4", good4, 16},
			{"long IPv4", big, 128},
			{"too long", big, 129},
			{"negative", big, -1},
			{"of another family", odd, 16},
			{"no family", make([]byte, 16), 16},
			{"a missing file", []byte("\x01\x00/missing/file\x00"), 16},
			{"below a file", []byte("\x01\x00/proc/version/x\x00"), 18},
			{"a file that is no socket", []byte("\x01\x00/proc/version\x00"), 16},
			{"an unnamed file", []byte("\x01\x00"), 2},
			{"too long a path", append([]byte{1, 0}, strings.Repeat("/", 126)...), 111},
		} {
			fd := makeSocket(s, k.domain, k.kind)
			say("connecting "+k.name+" to "+a.name, raw6(unix.SYS_CONNECT, uintptr(fd), at(&a.raw[0]), uintptr(a.size)))
			unix.Close(fd)
		}
		fd := makeSocket(s, k.domain, k.kind)
		say("connecting "+k.name+" to unreadable memory", raw6(unix.SYS_CONNECT, uintptr(fd), nowhere, 16))
		if k.kind != unix.SOCK_STREAM || k.domain == unix.AF_UNIX {
			say("listening with "+k.name, raw6(unix.SYS_LISTEN, uintptr(fd), 1))
		}
		unix.Close(fd)
	}
	say("connecting what is not open", raw6(unix.SYS_CONNECT, 999, at(&good4[0]), 16))
	say("connecting a negative descriptor", raw6(unix.SYS_CONNECT, ^uintptr(0), at(&good4[0]), 16))
	say("connecting a folder", raw6(unix.SYS_CONNECT, file.Fd(), at(&good4[0]), 16))
	say("listening on a folder", raw6(unix.SYS_LISTEN, file.Fd(), 1))
	say("listening on what is not open", raw6(unix.SYS_LISTEN, 999, 1))
}

func wrongSends(s *jailtest.Stage, open netip.AddrPort, say func(what, got string)) {
	good := wire(unix.AF_INET, open)
	content := []byte("content")
	for _, k := range []struct {
		name         string
		domain, kind int
	}{
		{"tcp4", unix.AF_INET, unix.SOCK_STREAM},
		{"udp4", unix.AF_INET, unix.SOCK_DGRAM},
		{"udp6", unix.AF_INET6, unix.SOCK_DGRAM},
		{"stream", unix.AF_UNIX, unix.SOCK_STREAM},
		{"packets", unix.AF_UNIX, unix.SOCK_SEQPACKET},
		{"datagrams", unix.AF_UNIX, unix.SOCK_DGRAM},
	} {
		fd := uintptr(makeSocket(s, k.domain, k.kind))
		send := func(what string, args ...uintptr) {
			args = append([]uintptr{fd}, args...)
			say("sending by "+k.name+" "+what, raw6(unix.SYS_SENDTO, args...))
		}
		send("to a short address", at(&content[0]), 7, unix.MSG_NOSIGNAL, at(&good[0]), 8)
		send("to no address", at(&content[0]), 7, unix.MSG_NOSIGNAL, at(&good[0]), 0)
		send("to too long an address", at(&content[0]), 7, unix.MSG_NOSIGNAL, at(&good[0]), 129)
		send("to unreadable memory", at(&content[0]), 7, unix.MSG_NOSIGNAL, nowhere, 16)
		if k.kind == unix.SOCK_DGRAM && k.domain == unix.AF_INET {
			send("unreadable memory", nowhere, 7, 0, at(&good[0]), 16)
		}
		var h unix.Msghdr
		message := func(what string) {
			say("a message by "+k.name+" "+what, raw6(unix.SYS_SENDMSG, fd, at(&h), unix.MSG_NOSIGNAL))
		}
		message("without anything")
		say("a message by "+k.name+" in unreadable memory", raw6(unix.SYS_SENDMSG, fd, nowhere, 0))
		h.Iovlen = 1025
		message("of too many pieces")
		h = unix.Msghdr{Namelen: 1 << 31, Name: &good[0]}
		message("to an address of negative length")
		vector := unix.Iovec{Base: &content[0], Len: 1 << 63}
		h = unix.Msghdr{Iov: &vector, Iovlen: 1}
		message("of negative length")
		unix.Close(int(fd))
	}
	say("sending on what is not open", raw6(unix.SYS_SENDTO, 999, at(&content[0]), 7, 0, at(&good[0]), 16))
}

// wrongMessages uses a connected pair, so that what is wrong is the message.
func wrongMessages(s *jailtest.Stage, say func(what, got string)) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.Failf("making a pair: %v", err)
	}
	content := []byte("content")
	vector := unix.Iovec{Base: &content[0], Len: 7}
	control := make([]byte, 64)
	*(*unix.Cmsghdr)(unsafe.Pointer(&control[0])) = unix.Cmsghdr{Len: 20, Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}
	fd := (*int32)(unsafe.Pointer(&control[16]))
	h := unix.Msghdr{Iov: &vector, Iovlen: 1, Control: &control[0], Controllen: 24}
	message := func(what string) {
		say("a message with "+what, raw6(unix.SYS_SENDMSG, uintptr(pair[0]), at(&h), unix.MSG_NOSIGNAL))
	}
	*fd = 0
	message("a descriptor")
	*fd = 999
	message("a descriptor that is not open")
	*fd = -1
	message("a negative descriptor")
	(*unix.Cmsghdr)(unsafe.Pointer(&control[0])).Len = 15
	message("a short control message")
	(*unix.Cmsghdr)(unsafe.Pointer(&control[0])).Len = 65
	message("a long control message")
	h.Controllen = 8
	message("half a control message")
	h.Controllen = 1 << 40
	message("too much control data")
	empty := unix.Msghdr{}
	say("an empty message", raw6(unix.SYS_SENDMSG, uintptr(pair[0]), at(&empty), 0))
	say("sending to a name on a pair", raw6(unix.SYS_SENDTO, uintptr(pair[0]), at(&content[0]), 7, 0, at(&content[0]), 7))
	unix.Close(pair[1])
	h = unix.Msghdr{Iov: &vector, Iovlen: 1}
	message("nobody to read it")
	say("no messages", raw6(unix.SYS_SENDMMSG, uintptr(pair[0]), nowhere, 0, 0))
	say("messages in unreadable memory", raw6(unix.SYS_SENDMMSG, uintptr(pair[0]), nowhere, 1, 0))
}

// TestErrorsAreTheKernels compares wrong calls with and without a supervisor.
func TestErrorsAreTheKernels(t *testing.T) {
	open := greet(t, "127.0.0.2:0")
	w := internet(open.String(), "0.0.0.0/0:1-65535", "[::/0]:1-65535")
	w.Sockets = []string{"/missing/file"}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		outside := jailtest.RunAs(t, user, "errors", open.String())
		jailtest.WantOK(t, outside)
		inside := w.run(t, user, "errors", open.String())
		jailtest.WantOK(t, inside)
		if diff := cmp.Diff(strings.Split(outside.Outcome.Note, "\n"), strings.Split(inside.Outcome.Note, "\n")); diff != "" {
			t.Errorf("outside (-) and inside (+) differ:\n%s", diff)
		}
	})
}
