package sandbox

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeInherited marks every descriptor above 2 close-on-exec, so that execve(2) closes
// them: what the host left open (a secret file, a listening socket, a folder) does not
// reach the server, and what this process still needs lives until then.
// CLOSE_RANGE_CLOEXEC: Linux 5.11, close_range(2); Landlock needs 5.13.
func closeInherited() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing descriptors above 2: %w", err)
	}
	return checkInherited()
}

// checkInherited reads the close-on-exec mark of every open descriptor back. Descriptors
// are listed by the kernel (/proc/self/fd), since there may be a gap of any size before
// one that the host left open.
func checkInherited() error {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("listing descriptors: %w", err)
	}
	defer unix.Close(dir)
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil {
			return fmt.Errorf("listing descriptors: %w", err)
		}
		if n == 0 {
			return nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if err := checkClosing(name); err != nil {
				return err
			}
		}
	}
}

func checkClosing(name string) error {
	fd, err := strconv.Atoi(name)
	if err != nil {
		return fmt.Errorf("listing descriptors: unexpected name %q", name)
	}
	if fd <= 2 {
		return nil
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil {
		return fmt.Errorf("reading the mark of descriptor %d: %w", fd, err)
	}
	if flags&unix.FD_CLOEXEC == 0 {
		return &WeakerError{LayerDescriptors, "all above 2 to close", fmt.Sprintf("descriptor %d staying open", fd)}
	}
	return nil
}

// checkStdio refuses standard streams that would be more than streams. A folder opens its
// whole tree to openat(2), since Landlock rules do not touch what is open already. A
// datagram or unconnected socket could be aimed at any address.
func checkStdio() error {
	for fd := range 3 {
		if err := checkStream(fd); err != nil {
			return fmt.Errorf("checking descriptor %d (%s): %w", fd, streamName[fd], err)
		}
	}
	return nil
}

var streamName = [...]string{"stdin", "stdout", "stderr"}

func checkStream(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return errors.New("it is a folder, which would open its whole tree to the server")
	case unix.S_IFSOCK:
		return checkSocket(fd)
	case unix.S_IFCHR, unix.S_IFIFO, unix.S_IFREG:
		return nil
	}
	return fmt.Errorf("it is neither file, pipe, terminal nor socket (mode %#o)", st.Mode)
}

func checkSocket(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("asking for its socket type: %w", err)
	}
	if kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET {
		return errors.New("it is a datagram socket, which the server could aim at any address")
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return fmt.Errorf("it is a socket without a peer, which the server could connect: %w", err)
	}
	return nil
}
