package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/program"
)

// Exit statuses that are ours; else a started server has its own.
const (
	exitDone      = 0
	exitNo        = 1   // the answer to a question is no
	exitStopped   = 125 // stockade stopped before the server started
	exitCannotRun = 126 // the program was found but cannot run
	exitNotFound  = 127 // the program was not found
)

// noError is the answer "no" of a command that was asked a question: weaker than the plan,
// an invalid profile, a difference. What there is to say has been printed.
type noError struct{ answer, hint string }

func (e *noError) Error() string { return e.answer }

// Hint is the cure, for a person.
func (e *noError) Hint() string { return e.hint }

// exitStatus is the one place where an outcome becomes a number.
func exitStatus(err error) int {
	var (
		no        *noError
		told      *toldError
		notFound  *program.NotFoundError
		cannotRun *program.NotExecutableError
		failed    *sandbox.ExecError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &no):
		return exitNo
	case errors.As(err, &told):
		return told.status
	case errors.As(err, &cannotRun): // before the next: a missing interpreter is inside it
		return exitCannotRun
	case errors.As(err, &notFound):
		return exitNotFound
	case errors.As(err, &failed) && failed.Errno == unix.ENOENT:
		return exitNotFound
	case errors.As(err, &failed) && (failed.Errno == unix.EACCES || failed.Errno == unix.ENOEXEC):
		return exitCannotRun
	}
	return exitStopped
}
