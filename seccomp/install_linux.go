package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts the program on the calling thread, for good, and on every thread and child
// that it makes from then on. Other threads of the process stay as they are: the caller
// has locked the thread and goes on to execve.
//
// It needs no_new_privs (or CAP_SYS_ADMIN, which no jail keeps); without it the kernel
// answers EACCES.
func Install(p Program) error {
	_, err := load(p, 0)
	return explainInstall(err)
}

// load makes the one seccomp(2) call of both ways to install a program. The value is the
// listener, when flags ask for one. The error is a [unix.Errno] when the kernel refused.
func load(p Program, flags uintptr) (value int, err error) {
	if len(p) == 0 || len(p) > maxInstructions {
		return -1, fmt.Errorf("it has %d instructions, the kernel takes 1 to %d", len(p), maxInstructions)
	}
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}                                                             //nolint:gosec // at most 4096
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the kernel reads it during the call
	runtime.KeepAlive(p)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil //nolint:gosec // a descriptor, or 0
}

func explainInstall(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("installing the system call filter: no_new_privs is not set: %w", err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("installing the system call filter: seccomp(2) needs Linux 3.17 with CONFIG_SECCOMP_FILTER, or an outer jail refuses it: %w", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("installing the system call filter: the kernel does not take these instructions, or has no CONFIG_SECCOMP_FILTER: %w", err)
	default:
		return fmt.Errorf("installing the system call filter: %w", err)
	}
}

// Mode is how the kernel filters a thread's system calls (PR_GET_SECCOMP).
type Mode int

const (
	// ModeDisabled is no filter.
	ModeDisabled Mode = 0
	// ModeStrict is read, write, exit and sigreturn only.
	ModeStrict Mode = 1
	// ModeFilter is at least one filter program.
	ModeFilter Mode = 2
)

// String returns the mode in a word, for messages.
func (m Mode) String() string {
	switch m {
	case ModeDisabled:
		return "disabled"
	case ModeStrict:
		return "strict"
	case ModeFilter:
		return "filter"
	default:
		return fmt.Sprintf("mode %d", int(m))
	}
}

// Active reads back from the kernel how the calling thread is filtered. It cannot tell
// which program it is.
func Active() (Mode, error) {
	mode, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0)
	if errno != 0 {
		return ModeDisabled, fmt.Errorf("reading back the system call filter: %w", errno)
	}
	return Mode(mode), nil //nolint:gosec // 0, 1 or 2
}
