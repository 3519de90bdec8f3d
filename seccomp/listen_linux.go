package seccomp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ListenFlags are the flags of seccomp(2) that [Listen] installs with, for those who make
// the call themselves: a listener, and callers that only a fatal signal interrupts once the
// supervisor has taken up their call (Linux 5.19). Without the latter a signal restarts a
// call that the supervisor has already done, and a second connect(2) fails.
const ListenFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// Listen is [Install] with a listener. It returns the listener's descriptor, which is
// close-on-exec: whoever holds it answers the waiting calls of this thread, and of every
// thread and child that it makes. When the last holder is gone, waiting calls fail with
// ENOSYS.
//
// A filter of this thread that has a listener already makes it a [*NestedError].
func Listen(p Program) (fd int, err error) {
	fd, err = load(p, ListenFlags)
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return -1, ListenError(errno)
	}
	if err != nil {
		return -1, explainInstall(err)
	}
	return fd, nil
}

// NestedError says that a supervisor answers calls of this process already: one that was
// started inside another, or in a container whose engine supervises calls. The kernel takes
// one listener for all filters of a process.
type NestedError struct{}

// Error says what was tried and why it cannot be.
func (*NestedError) Error() string {
	return "installing the supervised system call filter: a supervisor answers calls of this process already, and the kernel takes one only"
}

// Unwrap returns the kernel's EBUSY.
func (*NestedError) Unwrap() error { return unix.EBUSY }

// ListenError explains an errno of seccomp(2) with [ListenFlags], for those who make the
// call themselves. On EINVAL it asks the running kernel whether it knows the flags.
func ListenError(errno unix.Errno) error {
	switch {
	case errno == unix.EBUSY:
		return &NestedError{}
	case errno == unix.EINVAL && !knowsListenFlags():
		return fmt.Errorf("installing the supervised system call filter: the kernel is older than Linux 5.19, or has no CONFIG_SECCOMP_FILTER: %w", errno)
	case errno == unix.EMFILE:
		return fmt.Errorf("installing the supervised system call filter: no descriptor is left for the listener: %w", errno)
	default:
		return explainInstall(errno)
	}
}

// knowsListenFlags asks with a null pointer for a program. The kernel looks at the flags
// first (EINVAL), then reads the program (EFAULT); nothing can be installed.
func knowsListenFlags() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, ListenFlags, 0)
	return errno == unix.EFAULT
}
