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

// lineColumn turns an offset into a line and a column, both from 1, columns in bytes.
func lineColumn(src []byte, offset int) (line, column int) {
	before := src[:min(max(offset, 0), len(src))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// problem is an Error that does not know its file yet.
type problem struct {
	at            int // offset in the text without its byte-order mark; -1 for the whole file
	message, hint string
}
