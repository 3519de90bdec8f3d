package supervise

import (
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
	"stockade/seccomp"
)

// Observation has a supervisor tell of what the kernel refuses. It decides nothing: each
// observed call gets what the filter without observation answers, so an allowed one goes on,
// and Landlock decides on whatever its arguments point to by then. A server that changes them
// meanwhile gets what it would have got, and a wrong line is all that comes of it.
type Observation struct {
	// Filter is the server's filter without observation ([seccomp.Policy.Unobserved]).
	Filter seccomp.Program
	// Domain foresees what Landlock refuses.
	Domain *forecast.Domain
	// Tell is told each refusal once, after the server has its answer. The next call waits
	// for it.
	Tell func(Refusal)
	// Unseen is told of each call whose outcome cannot be foreseen.
	Unseen func()
}

func (o *Observation) complete() bool {
	return len(o.Filter) > 0 && o.Domain != nil && o.Tell != nil && o.Unseen != nil
}

// Operation is what a refused call was about to do.
type Operation uint8

// Operations on files, and making a socket.
const (
	Reading Operation = iota + 1
	Listing
	Writing
	Truncating
	Executing
	Creating
	Removing
	Moving
	Linking
	MakingSocket
)

// String returns the word for a sentence: "reading /etc/passwd".
func (o Operation) String() string {
	switch o {
	case Reading:
		return "reading"
	case Listing:
		return "listing"
	case Writing:
		return "writing to"
	case Truncating:
		return "truncating"
	case Executing:
		return "executing"
	case Creating:
		return "creating"
	case Removing:
		return "removing"
	case Moving:
		return "moving"
	case Linking:
		return "linking"
	case MakingSocket:
		return "making"
	}
	return "unknown"
}

// Refusal is one call that the kernel refuses, as far as it can be foreseen.
type Refusal struct {
	Time      time.Time
	Program   string // of the process, as it calls itself: not to be trusted
	PID       int
	Call      string // "openat"
	Operation Operation

	// Path is the real path of what the call is about, and Asked what the server wrote when
	// that is another path. Both are the server's words.
	Path, Asked string
	// Grant is the path that a grant has to name: Path, or the folder that holds it.
	Grant string
	// Uses are what the domain lacks there.
	Uses forecast.Use
	// Replaced says that Path was granted, as another file that is there no more.
	Replaced bool
	// Wider says that a folder grants more than the one that a file comes from, which moves
	// and links must not lead to.
	Wider bool

	// Family is the address family of a socket, and Errno what its making is answered.
	Family int
	Errno  unix.Errno
}
