package sandbox

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// closeInherited marks every descriptor above 2 close-on-exec, so that execve(2) closes
// them: what the host left open (a secret file, a listening socket, a folder) does not
// reach the server, and what this process still needs lives until then.
// CLOSE_RANGE_CLOEXEC: Linux 5.11, close_range(2); Landlock needs 5.13.
//
// A descriptor made for this is left open first, and its mark read back.
func closeInherited() error {
	witness, err := unix.FcntlInt(0, unix.F_DUPFD, 3)
	if err != nil {
		return fmt.Errorf("making a descriptor to see it closed: %w", err)
	}
	defer unix.Close(witness)
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing descriptors above 2: %w", err)
	}
	flags, err := unix.FcntlInt(uintptr(witness), unix.F_GETFD, 0)
	if err != nil {
		return fmt.Errorf("reading the mark of a descriptor: %w", err)
	}
	if flags&unix.FD_CLOEXEC == 0 {
		return &WeakerError{LayerDescriptors, "all above 2 to close", "one staying open"}
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
