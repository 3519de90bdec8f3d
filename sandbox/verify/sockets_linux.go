package verify

import (
	"errors"

	"golang.org/x/sys/unix"
)

func socket(c Check) error {
	return withSocket(c.Num, func(int) error { return nil })
}

// withSocket runs f on a stream socket of a family; packet sockets are asked for as raw.
func withSocket(family int, f func(fd int) error) error {
	kind := unix.SOCK_STREAM
	if family == unix.AF_PACKET {
		kind = unix.SOCK_RAW
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

func loopback(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// connect aims at a loopback port; only the kernel's verdict on the call itself counts.
func connect(c Check) error {
	return withSocket(unix.AF_INET, func(fd int) error { return unix.Connect(fd, loopback(c.Num)) })
}

// bind answers EACCES for a port that is not granted. A port in use proves that binding
// it is allowed, which is what a twin wants to know.
func bind(c Check) error {
	return withSocket(unix.AF_INET, func(fd int) error {
		err := unix.Bind(fd, loopback(c.Num))
		if errors.Is(err, unix.EADDRINUSE) {
			return nil
		}
		return err
	})
}

func listen(c Check) error {
	return withSocket(unix.AF_INET, func(fd int) error {
		err := unix.Bind(fd, loopback(c.Num))
		if errors.Is(err, unix.EADDRINUSE) {
			return nil
		}
		if err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	})
}

// listenAnywhere listens without binding: the kernel would pick a port.
func listenAnywhere(Check) error {
	return withSocket(unix.AF_INET, func(fd int) error { return unix.Listen(fd, 1) })
}
