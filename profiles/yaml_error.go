package profiles

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What is wrong and what to do, where more than one place says it.
const (
	noAnchors    = "YAML anchors are not read"
	noAliases    = "YAML aliases are not read"
	noTags       = "YAML tags are not read"
	noDirectives = "YAML directives are not read"
	notRead      = "this cannot be read as YAML"

	hintRemove = "remove it"
	hintAnchor = "write the value out where it is needed; if & is meant, put quotes around the text"
	hintAlias  = "if * is meant, put quotes around the text"
	hintTag    = "if ! is meant, put quotes around the text"
	hintSyntax = "look at the quotes, brackets and indentation here"
	hintKey    = `align it with its neighbours, and write "key: value"; put quotes around whole texts`
	hintClose  = "close it with ] or }"
	hintComma  = "separate entries with commas; put quotes around text that holds brackets"
	hintQuote  = "put quotes around the text"
	hintEscape = `write \xHH, \uHHHH or \UHHHHHHHH for a character`
)

// markOf says which of the library's two places is the person's.
type markOf uint8

const (
	markStop  markOf = iota // where it could not go on
	markBegin               // where what it was reading begins
)

// complaint is one of the library's errors, in words of a profile. The library's own words
// are never shown: they quote text, and name its parts.
type complaint struct {
	during  string // its context begins so; "" for any
	says    string // its message begins so; "" for any
	mark    markOf
	message string
	hint    string
}

// complaints is searched from the top. A test has a text for each.
var complaints = [...]complaint{
	{says: errTooDeep.Error(), message: errTooDeep.Error()},
	{during: "while scanning an anchor", mark: markBegin, message: noAnchors, hint: hintAnchor},
	{during: "while scanning an alias", mark: markBegin, message: noAliases, hint: hintAlias},
	{says: "unknown anchor", message: noAliases, hint: hintAlias},
	{during: "while scanning a tag", mark: markBegin, message: noTags, hint: hintTag},
	{during: "while parsing a tag", mark: markBegin, message: noTags, hint: hintTag},
	{says: "found undefined tag handle", message: noTags, hint: hintTag},
	{during: "while scanning a directive", mark: markBegin, message: noDirectives, hint: hintRemove},
	{during: "while scanning a %", mark: markBegin, message: noDirectives, hint: hintRemove},
	{during: "while parsing a %", mark: markBegin, message: noDirectives, hint: hintRemove},
	{says: "found duplicate %", message: noDirectives, hint: hintRemove},
	{says: "found incompatible YAML document", message: noDirectives, hint: hintRemove},
	{says: "found unexpected end of stream", mark: markBegin, message: "the quote is never closed", hint: "close it; a quote inside is written twice, or after \\ in double quotes"},
	{says: "found unexpected document indicator", mark: markBegin, message: "the quote is never closed", hint: "close it before the next document"},
	{says: "found unknown escape character", message: "unknown escape", hint: `write \\ for a backslash; single quotes take text as it is`},
	{says: "did not find expected hexadecimal number", message: "the escape has too few hexadecimal digits", hint: hintEscape},
	{says: "found invalid Unicode character escape code", message: "the escape is not a character", hint: hintEscape},
	{says: "mapping values are not allowed", message: `":" where no key can be`, hint: `put quotes around text that holds ": ", and align keys with their neighbours`},
	{says: "mapping keys are not allowed", message: `"?" where no key can be`, hint: hintQuote},
	{says: "block sequence entries are not allowed", message: "a list cannot begin here", hint: "begin it on a line of its own; put quotes around a dash that is meant"},
	{during: "while scanning a simple key", mark: markBegin, message: "expected a key", hint: hintKey},
	{says: "did not find expected key", message: "expected a key", hint: hintKey},
	{says: "did not find expected '-' indicator", message: "expected a list item", hint: "begin it with a dash, in the column of the other items, or align the key with its neighbours"},
	{says: "did not find expected ',' or ']'", message: "expected a comma or ']'", hint: hintComma},
	{says: "did not find expected ',' or '}'", message: "expected a comma or '}'", hint: hintComma},
	{says: "did not find expected node content", message: "expected a value", hint: "write one, or remove the sign; put quotes around text that begins with it"},
	{says: "found character that cannot start any token", message: "text cannot begin with this sign", hint: hintQuote},
	{says: "found a comment without preceding whitespace", message: "text right before a #", hint: "begin a comment with a space and #; put quotes around text that holds #"},
	{during: "while scanning a block scalar", message: "a block sign with more than - or + behind it", hint: "write the text on the lines below"},
	{says: "did not find expected <document start>", message: "text behind the profile's end", hint: `a profile is a mapping: write "key: value" on each line`},
	{during: "while scanning a document-end marker", mark: markBegin, message: "more than one document", hint: "one file holds one profile"},
}

// syntax turns the library's error into ours.
func (d *document) syntax(err error) *syntaxError {
	load, known := errors.AsType[*yaml.LoadError](err)
	if !known {
		return d.fail(1, 1, hintSyntax, notRead)
	}
	for i := range complaints {
		c := &complaints[i]
		if !strings.HasPrefix(load.ContextMsg, c.during) || !strings.HasPrefix(load.Message, c.says) {
			continue
		}
		switch {
		case c.hint == hintComma && d.atEnd(load.Mark):
			return d.fail(load.ContextMark.Line, load.ContextMark.Column, hintClose, "the bracket is never closed")
		case c.mark == markBegin:
			return d.fail(load.ContextMark.Line, load.ContextMark.Column, c.hint, c.message)
		}
		return d.fail(load.Mark.Line, load.Mark.Column, c.hint, c.message)
	}
	return d.fail(load.Mark.Line, load.Mark.Column, hintSyntax, notRead)
}

// atEnd tells whether a place is behind everything that is written.
func (d *document) atEnd(m yaml.Mark) bool {
	line, column := d.place(m.Line, m.Column)
	return line == d.line && strings.TrimSpace(d.text[d.start+column-1:]) == ""
}
