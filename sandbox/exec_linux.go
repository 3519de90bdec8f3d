package sandbox

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// ExecError is an execve(2) that failed. The exit status follows from Errno: 127 for a
// program that is not there, 126 for one that cannot run.
type ExecError struct {
	File  string
	Errno unix.Errno
}

func (e *ExecError) Error() string { return fmt.Sprintf("executing %q: %v", e.File, e.Errno) }

func (e *ExecError) Unwrap() error { return e.Errno }

// Hint is the cure, for a person.
func (e *ExecError) Hint() string {
	switch e.Errno {
	case unix.EACCES:
		return "the program, its interpreter or its loader is not granted or not executable; stockade explain lists what is"
	case unix.ENOENT:
		return "the program or its loader went away after it was looked up"
	case unix.ENOEXEC:
		return "the file is no program that this kernel runs; a script needs a #! line"
	case unix.E2BIG:
		return "the arguments and the environment together are too long for the kernel"
	}
	return ""
}

// Exec starts the server in place of this process, on the thread that is in the jail. It
// returns only on failure, and then removes the folders that Enter made.
//
// The file is executed by its real path. A descriptor would say the same: Landlock allows
// execution of the opened objects alone, so a file swapped in between is refused; and the
// server keeps its name (before Linux 6.14 a program executed by descriptor is called by
// that number).
func Exec(o *Opened) error {
	// syscall.Exec also waits for the Go runtime to finish starting threads, and puts
	// RLIMIT_NOFILE back to what the host set unless the plan set one.
	err := syscall.Exec(o.Plan.File, o.Plan.Argv, o.Plan.Env)
	o.discard()
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("executing %q: %w", o.Plan.File, err)
	}
	return &ExecError{File: o.Plan.File, Errno: errno}
}
