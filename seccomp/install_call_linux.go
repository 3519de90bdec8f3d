package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Listener says whether a program is installed with a descriptor on which a supervisor
// answers the calls that it notifies.
type Listener uint8

const (
	// WithoutListener is for programs that decide everything themselves.
	WithoutListener Listener = iota
	// WithListener makes seccomp(2) answer the descriptor (Linux 5.0). While a call waits
	// for its answer only a fatal signal ends the wait (WAIT_KILLABLE_RECV, Linux 5.19):
	// else a signal would make the kernel start it again after the supervisor acted on it.
	WithListener
)

// SystemCall is seccomp(2) with its arguments, for who installs a program by other means
// than [Install].
type SystemCall struct {
	Operation, Flags uintptr
	Program          *unix.SockFprog
}

// InstallCall returns the call that installs a program. The program stays with the caller.
func InstallCall(p Program, l Listener) SystemCall {
	call := SystemCall{Operation: unix.SECCOMP_SET_MODE_FILTER, Program: &unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}} //nolint:gosec // at most 4096
	if l == WithListener {
		call.Flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	return call
}

// InstallError explains why that call failed.
func InstallError(errno unix.Errno) error {
	switch errno {
	case unix.EACCES:
		return fmt.Errorf("installing the system call filter: no_new_privs is not set: %w", errno)
	case unix.EBUSY:
		return fmt.Errorf("installing the system call filter: an outer jail has a supervisor already, and the kernel allows one: %w", errno)
	case unix.ENOSYS:
		return fmt.Errorf("installing the system call filter: seccomp(2) needs Linux 3.17 with CONFIG_SECCOMP_FILTER, or an outer jail refuses it: %w", errno)
	case unix.EINVAL:
		return fmt.Errorf("installing the system call filter: the kernel does not take these instructions or flags: %w", errno)
	default:
		return fmt.Errorf("installing the system call filter: %w", errno)
	}
}
