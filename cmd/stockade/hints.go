package main

import (
	"errors"

	"stockade/sandbox/program"
)

// hintOf finds the cure that an error carries, and has one for every error: a person is
// never left with a bare problem.
func hintOf(err error) string {
	var h interface {
		error
		Hint() string
	}
	for e := err; errors.As(e, &h); e = errors.Unwrap(h) {
		if text := h.Hint(); text != "" {
			return text
		}
	}
	if cannotRun, ok := errors.AsType[*program.NotExecutableError](err); ok {
		if cannotRun.Hint != "" {
			return cannotRun.Hint
		}
		return "the file has to be executable, and its interpreter and loader have to exist"
	}
	if notFound, ok := errors.AsType[*program.NotFoundError](err); ok {
		if notFound.Err != nil {
			return "correct the path; a relative one begins at the working folder"
		}
		return "check the spelling, or write the command with its absolute path: a host that was started from a desktop often has another PATH than a shell"
	}
	return `"stockade explain" prints the plan without starting the server; "stockade doctor" tells what this kernel can do`
}
