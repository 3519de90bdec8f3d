package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Where returns "file:line:column", or the file alone when the value has no line.
func (p Position) Where() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one problem of a profile, or of a grant flag, with its place and its cure.
type Error struct {
	Position
	Message string // what is wrong; never an environment value, never a file's content beyond the word at fault
	Hint    string // what to write instead; "" when the message says it all
}

// Error returns "file:line:column: message".
func (e Error) Error() string {
	where := e.Where()
	if where == "" {
		return e.Message
	}
	return where + ": " + e.Message
}

// Errors is every problem that was found, sorted by position. An empty list is not an
// error; functions of this package return nil then.
type Errors []Error

// Error returns one line for each problem.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i := range es {
		lines[i] = es[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Hint is the first cure, for callers that print one.
func (es Errors) Hint() string {
	for i := range es {
		if es[i].Hint != "" {
			return es[i].Hint
		}
	}
	return ""
}

// maxErrors bounds what one file can print.
const maxErrors = 100

// orNil sorts the errors and drops repeated ones. It returns nil when there are none, so
// that callers do not return a non-nil error that holds nothing.
func (es Errors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	es = slices.Compact(es)
	if len(es) > maxErrors {
		last := es[maxErrors-1].Position
		es = append(es[:maxErrors:maxErrors], Error{Position: last, Message: fmt.Sprintf("and %d more problems from here on", len(es)-maxErrors)})
	}
	return es
}

// problem is what is wrong with one value, before its place is known.
type problem struct{ message, hint string }

func wrong(hint, format string, args ...any) *problem {
	return &problem{message: fmt.Sprintf(format, args...), hint: hint}
}

func (p *problem) at(pos Position) Error {
	return Error{Position: pos, Message: shorten(p.message), Hint: shorten(p.hint)}
}

// maxMessage bounds a line that quotes a word of the file. It leaves room for a path.
const maxMessage = maxPath + 512

func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}
