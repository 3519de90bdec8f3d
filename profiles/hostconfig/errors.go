package hostconfig

import (
	"bytes"
	"fmt"
)

// Error is one thing that is wrong with a file, with its place and its cure. It never holds
// a value of the file.
type Error struct {
	File         string // as given to [Parse]
	Line, Column int    // from 1, columns in bytes; 0 when the place is the whole file
	Message      string // what is wrong
	Hint         string // what to do; "" when the message says it
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if where == "" {
		return e.Message
	}
	return where + ": " + e.Message
}

// lineStarts are the offsets of all lines.
func lineStarts(src []byte) []int {
	starts := []int{0}
	for at := 0; ; {
		next := bytes.IndexByte(src[at:], '\n')
		if next < 0 {
			return starts
		}
		at += next + 1
		starts = append(starts, at)
	}
}

// problem is an Error that does not know its file yet.
type problem struct {
	at            int // offset in the text without its byte-order mark; -1 for the whole file
	message, hint string
}

// asDocumented is the cure for a key in another case, of which nobody can say whether a host
// reads it.
const asDocumented = "write it as the host's documentation does"

func (p *problem) ofCase() bool { return p.hint == asDocumented }
