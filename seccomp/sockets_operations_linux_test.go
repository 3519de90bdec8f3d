package seccomp_test

import (
	"encoding/binary"
	hexadecimal "encoding/hex"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

var socketOperations = map[string]operation{
	"pair":   makePair,
	"aim":    aimPair,
	"socket": useSocket,
	"option": setOption,
}

// setOption sets an option of descriptor 3: the level, the option, the value in hexadecimal.
func setOption(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	level, option := number(s, args[0]), number(s, args[1])
	value, err := hexadecimal.DecodeString(args[2])
	if err != nil || len(value) == 0 {
		s.Failf("reading the value: %d bytes, %v", len(value), err)
	}
	return func() jailtest.Outcome {
		return do(unix.SYS_SETSOCKOPT, 3, level, option, pointerTo(&value[0]), uintptr(len(value)))
	}
}

// makePair makes a Unix socket pair of the given type and sends a byte through it.
func makePair(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	kind := number(s, args[0])
	return func() jailtest.Outcome {
		var pair [2]int32
		if outcome := do(unix.SYS_SOCKETPAIR, unix.AF_UNIX, kind, 0, pointerTo(&pair)); outcome.Errno != 0 {
			return outcome
		}
		if _, err := unix.Write(int(pair[0]), []byte{42}); err != nil {
			s.Failf("writing to the pair: %v", err)
		}
		got := make([]byte, 1)
		if n, err := unix.Read(int(pair[1]), got); err != nil || n != 1 || got[0] != 42 {
			s.Failf("reading from the pair: %d bytes, %v, %v", n, got, err)
		}
		return jailtest.Outcome{}
	}
}

// unixAddress is struct sockaddr_un for a path.
func unixAddress(s *jailtest.Stage, path string) ([]byte, uintptr) {
	address := make([]byte, unix.SizeofSockaddrUnix)
	binary.NativeEndian.PutUint16(address, unix.AF_UNIX)
	if copy(address[2:len(address)-1], path) != len(path) {
		s.Failf("the path of the socket file is too long")
	}
	return address, uintptr(2 + len(path) + 1)
}

// message is struct msghdr for one buffer and an address.
func message(address []byte, size uintptr, content []byte) *unix.Msghdr {
	vector := &unix.Iovec{Base: &content[0], Len: uint64(len(content))}
	return &unix.Msghdr{Name: &address[0], Namelen: uint32(size), Iov: vector, Iovlen: 1}
}

// aimPair makes a pair and tries to send from one end of it to a socket file: the type,
// the way, the path.
func aimPair(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	kind, way := number(s, args[0]), args[1]
	address, size := unixAddress(s, args[2])
	content := []byte("aimed")
	header := message(address, size, content)
	return func() jailtest.Outcome {
		var pair [2]int32
		if outcome := do(unix.SYS_SOCKETPAIR, unix.AF_UNIX, kind, 0, pointerTo(&pair)); outcome.Errno != 0 {
			return outcome
		}
		fd, at := uintptr(pair[0]), pointerTo(&address[0])
		switch way {
		case "connect":
			if outcome := do(unix.SYS_CONNECT, fd, at, size); outcome.Errno != 0 {
				return outcome
			}
			return do(unix.SYS_SENDTO, fd, pointerTo(&content[0]), 5, 0, 0, 0)
		case "sendto":
			return do(unix.SYS_SENDTO, fd, pointerTo(&content[0]), 5, 0, at, size)
		case "sendmsg":
			return do(unix.SYS_SENDMSG, fd, pointerTo(header), 0)
		case "send":
			return do(unix.SYS_SENDTO, fd, pointerTo(&content[0]), 5, 0, 0, 0)
		default:
			s.Failf("there is no way %q", way)
			return jailtest.Outcome{}
		}
	}
}

// useSocket uses the socket that is descriptor 3: the way, a port of the loopback address.
func useSocket(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	const fd = 3
	port, err := strconv.ParseUint(args[1], 10, 16)
	if err != nil {
		s.Failf("reading the port: %v", err)
	}
	address := make([]byte, unix.SizeofSockaddrInet4)
	binary.NativeEndian.PutUint16(address, unix.AF_INET)
	binary.BigEndian.PutUint16(address[2:], uint16(port))
	copy(address[4:], []byte{127, 0, 0, 1})
	size := uintptr(len(address))
	content := []byte("used")
	header := message(address, size, content)
	many := &struct {
		header unix.Msghdr
		length uint32
	}{header: *header}
	one, length := new(int32), new(uint32)
	*one, *length = 1, uint32(size)
	if args[0] == "accept" || args[0] == "accept4" {
		prepareAccept(s, fd, address)
	}
	at := uintptr(unsafe.Pointer(&address[0]))
	ways := map[string]func() jailtest.Outcome{
		"connect":            func() jailtest.Outcome { return do(unix.SYS_CONNECT, fd, at, size) },
		"bind":               func() jailtest.Outcome { return do(unix.SYS_BIND, fd, at, size) },
		"listen":             func() jailtest.Outcome { return do(unix.SYS_LISTEN, fd, 1) },
		"accept":             func() jailtest.Outcome { return do(unix.SYS_ACCEPT, fd, 0, 0) },
		"accept4":            func() jailtest.Outcome { return do(unix.SYS_ACCEPT4, fd, 0, 0, 0) },
		"getsockname":        func() jailtest.Outcome { return do(unix.SYS_GETSOCKNAME, fd, at, pointerTo(length)) },
		"sendto":             func() jailtest.Outcome { return do(unix.SYS_SENDTO, fd, pointerTo(&content[0]), 4, 0, at, size) },
		"sendmsg":            func() jailtest.Outcome { return do(unix.SYS_SENDMSG, fd, pointerTo(header), 0) },
		"sendmmsg":           func() jailtest.Outcome { return do(unix.SYS_SENDMMSG, fd, pointerTo(many), 1, 0) },
		"sendto fast open":   func() jailtest.Outcome { return do(unix.SYS_SENDTO, fd, pointerTo(&content[0]), 4, fastOpen, at, size) },
		"sendmsg fast open":  func() jailtest.Outcome { return do(unix.SYS_SENDMSG, fd, pointerTo(header), fastOpen) },
		"sendmmsg fast open": func() jailtest.Outcome { return do(unix.SYS_SENDMMSG, fd, pointerTo(many), 1, fastOpen) },
		"fast open option": func() jailtest.Outcome {
			return do(unix.SYS_SETSOCKOPT, fd, unix.SOL_TCP, unix.TCP_FASTOPEN_CONNECT, pointerTo(one), 4)
		},
		"no delay option": func() jailtest.Outcome {
			return do(unix.SYS_SETSOCKOPT, fd, unix.SOL_TCP, unix.TCP_NODELAY, pointerTo(one), 4)
		},
	}
	way, known := ways[args[0]]
	if !known {
		s.Failf("there is no way %q", args[0])
	}
	return way
}

// prepareAccept makes the socket listen without blocking, so that the kernel's own answer
// to accept is EAGAIN.
func prepareAccept(s *jailtest.Stage, fd int, address []byte) {
	for what, outcome := range map[string]jailtest.Outcome{
		"binding":   do(unix.SYS_BIND, uintptr(fd), pointerTo(&address[0]), uintptr(len(address))),
		"listening": do(unix.SYS_LISTEN, uintptr(fd), 1),
	} {
		if outcome.Errno != 0 {
			s.Failf("%s: %v", what, outcome.Errno)
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		s.Failf("not blocking: %v", err)
	}
}
