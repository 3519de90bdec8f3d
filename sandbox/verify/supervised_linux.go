package verify

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Operations of the checks for supervised plans. They use system calls of their own and not
// package net, whose dialer hides the errno of a refused attempt behind the next one.

// answerWait bounds how long an answer may take that the stub gives at once.
const answerWait = 5 * time.Second

// withInternetSocket runs f on a socket of the family of an address.
func withInternetSocket(address string, kind int, f func(fd int, to unix.Sockaddr) error) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	family := unix.AF_INET6
	if at.Addr().Is4() {
		to, family = &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, unix.AF_INET
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd, to)
}

func connectTo(c Check) error {
	return withInternetSocket(c.Path, unix.SOCK_STREAM, unix.Connect)
}

// sendTo sends one byte. The peer does not matter: nobody has to listen for a datagram to
// be sent.
func sendTo(c Check) error {
	return withInternetSocket(c.Path, unix.SOCK_DGRAM, func(fd int, to unix.Sockaddr) error {
		return unix.Sendto(fd, []byte{0}, 0, to)
	})
}

func fastOpen(c Check) error {
	return withInternetSocket(c.Path, unix.SOCK_STREAM, func(fd int, to unix.Sockaddr) error {
		return unix.Sendto(fd, []byte{0}, unix.MSG_FASTOPEN, to)
	})
}

// lookUp asks a name server for an address and returns what the answer says.
func lookUp(c Check) error {
	query, err := addressQuery(c.Names[0])
	if err != nil {
		return err
	}
	return withInternetSocket(c.Path, unix.SOCK_DGRAM, func(fd int, to unix.Sockaddr) error {
		if err := unix.Connect(fd, to); err != nil {
			return err
		}
		wait := unix.NsecToTimeval(int64(answerWait))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
			return err
		}
		if _, err := unix.Write(fd, query); err != nil {
			return err
		}
		var answer [512]byte
		n, err := unix.Read(fd, answer[:])
		if err != nil {
			return err
		}
		return responseCode(query, answer[:n])
	})
}

// addressQuery is a query for the IPv4 address of a name (RFC 1035, section 4).
func addressQuery(name string) ([]byte, error) {
	query := []byte{0x5a, 0x5a, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0} // recursion desired, one question
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return nil, errors.New("a name with a part of " + strconv.Itoa(len(label)) + " letters")
		}
		query = append(query, byte(len(label))) //nolint:gosec // at most 63
		query = append(query, label...)
	}
	return append(query, 0, 0, 1, 0, 1), nil // the root, type A, class IN
}

// responseCode judges an answer: nil for success, else the code's name.
func responseCode(query, answer []byte) error {
	const answered = 0x80
	if len(answer) < 12 || binary.BigEndian.Uint16(answer) != binary.BigEndian.Uint16(query) || answer[2]&answered == 0 {
		return errors.New("an answer to something else")
	}
	switch code := answer[3] & 0xf; code {
	case 0:
		return nil
	case 3:
		return errors.New("NXDOMAIN")
	case 5:
		return errors.New("REFUSED")
	default:
		return errors.New("response code " + strconv.Itoa(int(code)))
	}
}

func connectUnix(c Check) error { return dialUnix(c.Path) }

func dialUnix(name string) error {
	return withSocket(unix.AF_UNIX, func(fd int) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: name}) })
}

// abstractUnix aims at a name that nobody has: where connecting is not refused, nobody
// answers (ECONNREFUSED). The leading @ stands for the NUL byte of abstract names.
func abstractUnix(Check) error { return dialUnix("@stockade-verify") }

// ownUnix listens on a socket in a folder of its own, and connects to it.
func ownUnix(c Check) error {
	return withSocket(unix.AF_UNIX, func(fd int) error {
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: c.Path}); err != nil {
			return err
		}
		defer func() { _ = unix.Unlink(c.Path) }()
		if err := unix.Listen(fd, 1); err != nil {
			return err
		}
		return dialUnix(c.Path)
	})
}
