package supervise_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"os/signal"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

func pair(s *jailtest.Stage, kind int) [2]int {
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.Failf("making a pair: %v", err)
	}
	return p
}

// cmsg is one control message.
func cmsg(level, kind int32, body []byte) []byte {
	out := make([]byte, unix.CmsgSpace(len(body)))
	*(*unix.Cmsghdr)(unsafe.Pointer(&out[0])) = unix.Cmsghdr{Len: uint64(unix.CmsgLen(len(body))), Level: level, Type: kind}
	copy(out[unix.SizeofCmsghdr:], body)
	return out
}

// checksum of all that can be read until the end.
func checksum(fd int) (sum uint32, length int, err error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return sum, length, err
		}
		sum = crc32.Update(sum, crc32.IEEETable, buffer[:n])
		length += n
	}
}

var messageVictims = jailtest.Victims{
	// rights: the type of a pair. Two descriptors go through it, one of them twice.
	"rights": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, kinds[args[0]])
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			s.Failf("making a pipe: %v", err)
		}
		control := append(unix.UnixRights(pipe[1], pipe[1]), unix.UnixRights(pipe[0])...)
		s.Begin()
		if n, errno := sendmsg(p[0], nil, []byte("take these"), control, 0); errno != 0 || n != 10 {
			return jailtest.Outcome{Errno: errno, Value: int64(n)}
		}
		content, got := make([]byte, 32), make([]byte, 256)
		n, room, _, _, err := unix.Recvmsg(p[1], content, got, unix.MSG_CMSG_CLOEXEC)
		if err != nil || string(content[:n]) != "take these" {
			s.Failf("received %q, %v", content[:n], err)
		}
		messages, err := unix.ParseSocketControlMessage(got[:room])
		if err != nil {
			s.Failf("parsing control data: %v", err)
		}
		var fds []int
		for _, m := range messages {
			more, err := unix.ParseUnixRights(&m)
			if err != nil {
				s.Failf("parsing rights: %v", err)
			}
			fds = append(fds, more...)
		}
		if len(fds) != 3 {
			s.Failf("received %d descriptors", len(fds))
		}
		unix.Close(pipe[1])
		if _, err := unix.Write(fds[0], []byte("a")); err != nil {
			s.Failf("writing: %v", err)
		}
		if _, err := unix.Write(fds[1], []byte("b")); err != nil {
			s.Failf("writing: %v", err)
		}
		unix.Close(fds[0])
		unix.Close(fds[1])
		n, err = unix.Read(fds[2], content)
		if err != nil || string(content[:n]) != "ab" {
			s.Failf("read %q, %v", content[:n], err)
		}
		// Whoever still held the writing end would keep this from being the end.
		n, err = unix.Read(pipe[0], content)
		return jailtest.Outcome{Value: int64(n), Note: fmt.Sprint(err)}
	},
	// stream: many pieces, more than any buffer, to a slow reader, in one blocking call.
	"stream": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		p := pair(s, unix.SOCK_STREAM)
		content := make([]byte, 9<<20+12345)
		for i := range content {
			content[i] = byte(i * i >> 7)
		}
		vectors := make([]unix.Iovec, 0, 1024)
		for rest, size := content, 1; len(rest) > 0; size = size*3%70001 + 1 {
			if len(vectors) == 1023 {
				size = len(rest)
			}
			size = min(size, len(rest))
			vectors = append(vectors, unix.Iovec{Base: &rest[0], Len: uint64(size)})
			rest = rest[size:]
		}
		h := unix.Msghdr{Iov: &vectors[0], Iovlen: uint64(len(vectors))}
		type end struct {
			sum    uint32
			length int
			err    error
		}
		read := make(chan end)
		go func() {
			sum, length, err := checksum(p[1])
			read <- end{sum, length, err}
		}()
		s.Begin()
		n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(p[0]), at(&h), 0)
		unix.Close(p[0])
		if e := <-read; e.err != nil || e.sum != crc32.ChecksumIEEE(content) || e.length != len(content) {
			s.Failf("read %d bytes, %v: not what was sent", e.length, e.err)
		}
		return jailtest.Outcome{Errno: errno, Value: int64(n)}
	},
	// full: how. The errno, and how much a pair that nobody reads took of the last message.
	"full": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, kinds[args[1]])
		content := make([]byte, 64<<10)
		var flags uintptr
		switch args[0] {
		case "flag":
			flags = unix.MSG_DONTWAIT
		case "nonblocking":
			if err := unix.SetNonblock(p[0], true); err != nil {
				s.Failf("making it not block: %v", err)
			}
		case "limit":
			if err := unix.SetsockoptTimeval(p[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
				s.Failf("setting a time-out: %v", err)
			}
		}
		s.Begin()
		for total := 0; ; {
			n, errno := sendmsg(p[0], nil, content, nil, flags)
			if errno != 0 {
				return jailtest.Outcome{Errno: errno, Note: fmt.Sprint(total)}
			}
			total += n
		}
	},
	// waits: the type of a pair. A message that finds it full is sent when it is read.
	"waits": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, kinds[args[0]])
		content := bytes.Repeat([]byte("x"), 16<<10)
		filled := 0
		for {
			n, errno := sendmsg(p[0], nil, content, nil, unix.MSG_DONTWAIT)
			if errno == unix.EAGAIN {
				break
			}
			if errno != 0 {
				s.Failf("filling the pair: %v", errno)
			}
			filled += n
		}
		s.Begin()
		sent := make(chan jailtest.Outcome, 1)
		go func() {
			n, errno := sendmsg(p[0], nil, content, nil, 0)
			sent <- jailtest.Outcome{Errno: errno, Value: int64(n)}
			unix.Close(p[0])
		}()
		_, length, err := checksum(p[1])
		out := <-sent
		if err != nil || length != filled+len(content) {
			s.Failf("read %d bytes, %v, sent %d before", length, err, filled)
		}
		return out
	},
	// pipe: flags. A stream without a reader: the errno, and how many SIGPIPE came.
	"pipe": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, unix.SOCK_STREAM)
		unix.Close(p[1])
		came := make(chan os.Signal, 8)
		signal.Notify(came, unix.SIGPIPE)
		var flags uintptr
		if args[0] == "quiet" {
			flags = unix.MSG_NOSIGNAL
		}
		s.Begin()
		_, errno := sendmsg(p[0], nil, []byte("content"), nil, flags)
		return jailtest.Outcome{Errno: errno, Value: int64(countUntil(came))}
	},
	// control: level, type, body. What a message on a UDP socket with it says.
	"control": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		to := netip.MustParseAddrPort(args[0])
		domain := unix.AF_INET
		if to.Addr().Is6() {
			domain = unix.AF_INET6
		}
		fd := makeSocket(s, domain, unix.SOCK_DGRAM)
		control := controls[args[1]]
		s.Begin()
		n, errno := sendmsg(fd, wire(domain, to), []byte("datagram"), cmsg(control.level, control.kind, control.body), 0)
		return jailtest.Outcome{Errno: errno, Value: int64(n)}
	},
	// credentials: whose.
	"credentials": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, unix.SOCK_STREAM)
		who := unix.Ucred{Pid: int32(unix.Getpid()), Uid: uint32(unix.Getuid()), Gid: uint32(unix.Getgid())}
		switch args[0] {
		case "parent":
			who.Pid = int32(unix.Getppid())
		case "user":
			who.Uid += 7
		}
		if err := unix.SetsockoptInt(p[1], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
			s.Failf("asking for credentials: %v", err)
		}
		s.Begin()
		if _, errno := sendmsg(p[0], nil, []byte("me"), unix.UnixCredentials(&who), 0); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		content, got := make([]byte, 8), make([]byte, 64)
		_, room, _, _, err := unix.Recvmsg(p[1], content, got, 0)
		if err != nil {
			s.Failf("receiving: %v", err)
		}
		messages, err := unix.ParseSocketControlMessage(got[:room])
		if err != nil || len(messages) != 1 {
			s.Failf("parsing control data: %d, %v", len(messages), err)
		}
		seen, err := unix.ParseUnixCredentials(&messages[0])
		if err != nil {
			s.Failf("parsing credentials: %v", err)
		}
		return jailtest.Outcome{Note: fmt.Sprint(seen.Uid == who.Uid, seen.Gid == who.Gid)}
	},
	// large: a datagram of so many bytes.
	"large": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		p := pair(s, unix.SOCK_SEQPACKET)
		content := make([]byte, 2<<20)
		s.Begin()
		_, errno := sendmsg(p[0], nil, content, nil, 0)
		return jailtest.Outcome{Errno: errno}
	},
	// several: a sendmmsg on a stream pair.
	"several": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		p := pair(s, unix.SOCK_STREAM)
		s.Begin()
		return sendmmsg(p[0], make([][]byte, 200), []byte("content"))
	},
	// netlink: asks the kernel for the machine's addresses, named as resolvers do.
	"netlink": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		request := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtGenmsg+3)
		*(*unix.NlMsghdr)(unsafe.Pointer(&request[0])) = unix.NlMsghdr{
			Len: uint32(len(request)), Type: unix.RTM_GETADDR, Flags: unix.NLM_F_DUMP | unix.NLM_F_REQUEST, Seq: 1,
		}
		to := unix.RawSockaddrNetlink{Family: unix.AF_NETLINK}
		if args[0] == "stranger" {
			to.Pid = uint32(unix.Getpid())
		}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&to)), unsafe.Sizeof(to))
		s.Begin()
		if _, errno := sendto(fd, raw, request); errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		got := make([]byte, 8<<10)
		n, err := readSoon(fd, got)
		if err != nil || n < unix.SizeofNlMsghdr {
			s.Failf("reading: %d, %v", n, err)
		}
		kind := (*unix.NlMsghdr)(unsafe.Pointer(&got[0])).Type
		return jailtest.Outcome{Value: int64(kind)}
	},
}

// countUntil counts SIGPIPE until SIGWINCH, which came after: of signals that wait together,
// the Go runtime hands on the lower number first.
func countUntil(came chan os.Signal) (count int) {
	last := make(chan os.Signal, 1)
	signal.Notify(last, unix.SIGWINCH)
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		return -1
	}
	<-last
	for {
		select {
		case <-came:
			count++
		default:
			return count
		}
	}
}

var kinds = map[string]int{
	"stream": unix.SOCK_STREAM, "packets": unix.SOCK_SEQPACKET, "datagrams": unix.SOCK_DGRAM,
}

var controls = map[string]struct {
	level, kind int32
	body        []byte
}{
	"IP_TTL":      {unix.SOL_IP, unix.IP_TTL, []byte{64, 0, 0, 0}},
	"IP_PKTINFO":  {unix.SOL_IP, unix.IP_PKTINFO, make([]byte, 12)},
	"IP_RETOPTS":  {unix.SOL_IP, unix.IP_RETOPTS, []byte{1, 1, 1, 0}},
	"UDP_SEGMENT": {unix.SOL_UDP, unix.UDP_SEGMENT, []byte{8, 0}},
	"IPV6_TCLASS": {unix.SOL_IPV6, unix.IPV6_TCLASS, []byte{0, 0, 0, 0}},
	"IPV6_RTHDR":  {unix.SOL_IPV6, unix.IPV6_RTHDR, append([]byte{0, 2, 2, 1, 0, 0, 0, 0}, make([]byte, 16)...)},
	"unknown":     {unix.SOL_SOCKET, 99, []byte{0, 0, 0, 0}},
}

func TestRights(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for kind := range kinds {
			if kind == "datagrams" {
				continue // the filter admits no such pair
			}
			for name, r := range map[string]jailtest.Result{
				"inside":  internet().run(t, user, "rights", kind),
				"outside": jailtest.RunAs(t, user, "rights", kind),
			} {
				jailtest.WantValue(t, r, 0)
				if r.Outcome.Note != "<nil>" {
					t.Errorf("%s: the pipe's end says %s", name, r.Outcome.Note)
				}
			}
		}
	})
}

func TestStream(t *testing.T) {
	const want = 9<<20 + 12345
	jailtest.WantValue(t, internet().run(t, jailtest.User{}, "stream"), want)
	jailtest.WantValue(t, jailtest.Run(t, "stream"), want)
}

// TestFull: a pair that is full says so as it does outside, and took as much.
func TestFull(t *testing.T) {
	for _, how := range []string{"flag", "nonblocking", "limit"} {
		for _, kind := range []string{"stream", "packets"} {
			t.Run(how+" "+kind, func(t *testing.T) {
				inside, outside := internet().run(t, jailtest.User{}, "full", how, kind), jailtest.Run(t, "full", how, kind)
				jailtest.WantErrno(t, inside, unix.EAGAIN)
				jailtest.WantErrno(t, outside, unix.EAGAIN)
				if inside.Outcome.Note != outside.Outcome.Note {
					t.Errorf("took %s bytes, outside %s", inside.Outcome.Note, outside.Outcome.Note)
				}
			})
		}
	}
}

func TestFullWaits(t *testing.T) {
	for _, kind := range []string{"stream", "packets"} {
		jailtest.WantValue(t, internet().run(t, jailtest.User{}, "waits", kind), 16<<10)
		jailtest.WantValue(t, jailtest.Run(t, "waits", kind), 16<<10)
	}
}

func TestPipeSignal(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for how, want := range map[string]int64{"loud": 1, "quiet": 0} {
			for name, r := range map[string]jailtest.Result{
				"inside":  internet().run(t, user, "pipe", how),
				"outside": jailtest.RunAs(t, user, "pipe", how),
			} {
				jailtest.WantErrno(t, r, unix.EPIPE)
				if r.Outcome.Value != want {
					t.Errorf("%s, %s: %d signals, want %d", how, name, r.Outcome.Value, want)
				}
			}
		}
	})
}

func TestControl(t *testing.T) {
	open4, open6 := receive(t, "127.0.0.2:0"), receive(t, "[::1]:0")
	rules := internet(open4.at.String(), open6.at.String())
	for _, test := range []struct {
		name    string
		to      receiver
		refused bool
	}{
		{"IP_TTL", open4, false},
		{"IP_PKTINFO", open4, false},
		{"UDP_SEGMENT", open4, false},
		{"IPV6_TCLASS", open6, false},
		{"IP_RETOPTS", open4, true},
		{"IPV6_RTHDR", open6, true},
		{"unknown", open4, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rules.run(t, jailtest.User{}, "control", test.to.at.String(), test.name)
			if test.refused {
				jailtest.WantErrno(t, r, unix.EPERM)
				wantDenied(t, r, "send", "a control message")
				if got := test.to.take(t); len(got) != 0 {
					t.Errorf("%q got out", got)
				}
				return
			}
			jailtest.WantValue(t, r, 8)
			if got := test.to.take(t); len(got) != 1 {
				t.Errorf("came %q", got)
			}
		})
	}
	// What is refused works outside, but for what no kernel knows.
	jailtest.WantValue(t, jailtest.Run(t, "control", open4.at.String(), "IP_RETOPTS"), 8)
}

func TestCredentials(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for name, r := range map[string]jailtest.Result{
			"inside":  internet().run(t, user, "credentials", "own"),
			"outside": jailtest.RunAs(t, user, "credentials", "own"),
		} {
			jailtest.WantOK(t, r)
			if r.Outcome.Note != "true true" {
				t.Errorf("%s: user and group are the sender's: %s", name, r.Outcome.Note)
			}
		}
		for _, whose := range []string{"parent", "user"} {
			jailtest.WantErrno(t, internet().run(t, user, "credentials", whose), unix.EPERM)
		}
	})
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		if user.UID == 0 {
			return // root may name anybody, outside
		}
		jailtest.WantErrno(t, jailtest.RunAs(t, user, "credentials", "parent"), unix.EPERM)
	})
}

func TestLargeDatagram(t *testing.T) {
	jailtest.WantErrno(t, internet().run(t, jailtest.User{}, "large"), unix.EMSGSIZE)
	jailtest.WantErrno(t, jailtest.Run(t, "large"), unix.EMSGSIZE)
}

func TestSeveral(t *testing.T) {
	inside, outside := internet().run(t, jailtest.User{}, "several"), jailtest.Run(t, "several")
	jailtest.WantValue(t, inside, 200)
	jailtest.WantValue(t, outside, 200)
	if inside.Outcome.Note != outside.Outcome.Note {
		t.Errorf("lengths are %s, want %s", inside.Outcome.Note, outside.Outcome.Note)
	}
}

func TestNetlink(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jailtest.WantValue(t, internet().run(t, user, "netlink", "kernel"), unix.RTM_NEWADDR)
		jailtest.WantValue(t, jailtest.RunAs(t, user, "netlink", "kernel"), unix.RTM_NEWADDR)
		r := internet().run(t, user, "netlink", "stranger")
		jailtest.WantErrno(t, r, unix.EACCES)
		wantDenied(t, r, "send", "a message to another program by netlink")
	})
}
