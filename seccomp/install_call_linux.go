package seccomp

import "golang.org/x/sys/unix"

// Listener says whether a program is installed with a descriptor on which a supervisor
// answers the calls that it notifies.
type Listener uint8

const (
	// WithoutListener is for programs that decide everything themselves.
	WithoutListener Listener = iota
	// WithListener makes seccomp(2) answer the descriptor ([ListenFlags]).
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
		call.Flags = ListenFlags
	}
	return call
}

// InstallError explains why that call failed.
func InstallError(errno unix.Errno, l Listener) error {
	if l == WithListener {
		return ListenError(errno)
	}
	return explainInstall(errno)
}
