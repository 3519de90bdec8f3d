package main

import (
	"fmt"

	"stockade/sandbox/packages"
)

// wrappedError refuses a command line that starts something else than its first word says,
// out of this jail's reach or with programs that the server would have too.
type wrappedError struct {
	w      packages.Wrapping
	server []string
}

func (e *wrappedError) Error() string { return e.w.Shown + " " + e.w.Why }

// Hint is the cure, for a person: the command line that works, where there is one.
func (e *wrappedError) Hint() string {
	if e.w.Runs == nil {
		return "install the server on this machine, or write the program that it starts: stockade run -- PROGRAM [ARG]..."
	}
	return rewritten(e.w)
}

// rewritten is the command line that works. Values of variables are not shown.
func rewritten(w packages.Wrapping) string {
	words := []string{"stockade", "run"}
	for _, name := range w.Set {
		words = append(words, "--env", name+"=...")
	}
	return shellWords(append(append(words, "--"), maskArguments(w.Runs)...))
}

// unwrap refuses what cannot be put into a jail as it is written. The note is for command
// lines that can, and say less than they seem to; "" for none.
func unwrap(server []string) (note string, err error) {
	w := packages.Wrapped(server)
	switch {
	case w == nil:
		return "", nil
	case w.Refused:
		return "", &wrappedError{w: *w, server: server}
	}
	return fmt.Sprintf("%s %s; without the shell: %s", w.Shown, w.Why, rewritten(*w)), nil
}
