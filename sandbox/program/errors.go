package program

import (
	"fmt"
	"strings"
)

// NotFoundError says that a command line names no file at all. It stands for exit
// status 127.
type NotFoundError struct {
	// Name is the command as it was written.
	Name string
	// Searched are the folders of PATH in their order; empty when Name is a path.
	Searched []string
	// Err is the system's answer for a path; nil after a search.
	Err error
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("finding program %q: %v", e.Name, e.Err)
	case len(e.Searched) == 0:
		return fmt.Sprintf("finding program %q: PATH names no usable folder", e.Name)
	}
	return fmt.Sprintf("finding program %q: not found on PATH (%s)", e.Name, strings.Join(e.Searched, ":"))
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// NotExecutableError says that a file was found and cannot be started, or that what it
// would start cannot be told without running it. It stands for exit status 126.
type NotExecutableError struct {
	// Path is the file that cannot run: the program, or an interpreter or loader behind it.
	Path string
	// Reason completes "starting PATH: ".
	Reason string
	// Hint says what to do instead; "" when there is nothing to say.
	Hint string
	// Err is the system's answer; nil when the reason is our own.
	Err error
}

func (e *NotExecutableError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("starting %q: %s: %v", e.Path, e.Reason, e.Err)
	}
	return fmt.Sprintf("starting %q: %s", e.Path, e.Reason)
}

func (e *NotExecutableError) Unwrap() error { return e.Err }

// blocked is a NotExecutableError of our own judgement.
func blocked(path, hint, format string, args ...any) error {
	return &NotExecutableError{Path: path, Reason: fmt.Sprintf(format, args...), Hint: hint}
}
