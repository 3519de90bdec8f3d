package profiles

import (
	"fmt"
	"strings"
)

// Profiles are written in a strict part of YAML: block and flow lists and mappings, plain,
// quoted and block text, comments. Everything that this reader accepts means the same to a
// full YAML parser (a fuzz test compares the two), and what a profile has no use for is an
// error with a cure: anchors, aliases, tags, merge keys, directives, several documents,
// tabs, text over several lines without quotes or a block sign.
//
// A reader of our own, because linking a full YAML parser costs each start of a server a
// third of a millisecond (its package initialisers compile regular expressions and fill
// tables, needed or not), gives columns in characters instead of bytes, and names neither
// the cure nor, for alias and tag tricks, the problem.

type nodeKind uint8

const (
	textNode nodeKind = iota
	listNode
	mapNode
)

type textStyle uint8

const (
	plainText textStyle = iota
	quotedText
	blockText
)

// node is one value of a file with its place. Columns count bytes from 1.
type node struct {
	kind         nodeKind
	style        textStyle
	text         string
	line, column int
	items        []node
	pairs        []pair
}

type pair struct{ key, value node }

// null tells whether nothing was written where a value could be.
func (n *node) null() bool {
	if n.kind != textNode || n.style != plainText {
		return false
	}
	switch n.text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// maxDepth bounds nesting; a profile needs four levels.
const maxDepth = 32

// syntaxError is the place where reading stopped.
type syntaxError struct {
	line, column int
	problem
}

// yamlReader walks a file. Between values, pos is at the first byte of a line's content
// and indent is the number of spaces before it; at the end of the file indent is -1.
type yamlReader struct {
	src    string
	pos    int
	line   int // number of the line that holds pos
	start  int // offset of that line's first byte
	indent int
	depth  int
}

// readYAML reads one document, a mapping. The source has passed [checkBytes].
func readYAML(src string) (node, *syntaxError) {
	r := &yamlReader{src: src, line: 1}
	if err := r.nextContent(); err != nil {
		return node{}, err
	}
	if r.marker("---") {
		r.pos += len("---")
		if err := r.advance(); err != nil {
			return node{}, err
		}
	}
	if r.indent < 0 {
		return node{}, r.fail(`write at least "version: 1"`, "the profile is empty")
	}
	n, err := r.block(r.indent)
	if err != nil {
		return node{}, err
	}
	if n.kind != mapNode {
		return node{}, r.failAt(n.line, n.column, `begin with "version: 1"`, "a profile is a mapping of keys to values")
	}
	if r.indent >= 0 {
		return node{}, r.stray()
	}
	return n, nil
}

func (r *yamlReader) fail(hint, format string, args ...any) *syntaxError {
	return r.failAt(r.line, r.pos-r.start+1, hint, format, args...)
}

func (r *yamlReader) failAt(line, column int, hint, format string, args ...any) *syntaxError {
	return &syntaxError{line: line, column: column, problem: problem{message: fmt.Sprintf(format, args...), hint: hint}}
}

// peek returns the byte at an offset from pos; 0 at the end (NUL never passes checkBytes).
func (r *yamlReader) peek(offset int) byte {
	if r.pos+offset >= len(r.src) {
		return 0
	}
	return r.src[r.pos+offset]
}

// lineEnd tells whether a byte ends a line's content.
func lineEnd(c byte) bool { return c == 0 || c == '\n' || c == '\r' }

func blank(c byte) bool { return c == ' ' || lineEnd(c) }

func (r *yamlReader) skipSpaces() {
	for r.peek(0) == ' ' {
		r.pos++
	}
}

// atEnd tells whether the rest of the line holds nothing: its end, or a comment, which
// needs a space before it.
func (r *yamlReader) atEnd() bool {
	c := r.peek(0)
	return lineEnd(c) || c == '#' && (r.pos == r.start || r.src[r.pos-1] == ' ')
}

// nextLine moves to the first byte of the next line.
func (r *yamlReader) nextLine() {
	end := strings.IndexByte(r.src[r.pos:], '\n')
	if end < 0 {
		r.pos = len(r.src)
		return
	}
	r.pos += end + 1
	r.start = r.pos
	r.line++
}

// nextContent moves from a line's first byte to the next content, past blank lines and
// comments.
func (r *yamlReader) nextContent() *syntaxError {
	for r.pos < len(r.src) {
		r.skipSpaces()
		if r.atEnd() {
			r.nextLine()
			continue
		}
		r.indent = r.pos - r.start
		if r.indent == 0 && r.peek(0) == '%' {
			return r.fail("remove it", "YAML directives are not read")
		}
		return nil
	}
	r.indent = -1
	return nil
}

// advance ends a value: nothing but a comment may follow on its line.
func (r *yamlReader) advance() *syntaxError {
	r.skipSpaces()
	if !r.atEnd() {
		if r.peek(0) == ':' {
			return r.fail("quote text that holds a colon", `":" after a value`)
		}
		return r.fail("put quotes around the whole text, or begin a comment with a space and #", "unexpected text after a value")
	}
	r.nextLine()
	return r.nextContent()
}

// marker tells whether a document marker stands at pos.
func (r *yamlReader) marker(m string) bool {
	return r.pos == r.start && strings.HasPrefix(r.src[r.pos:], m) && blank(r.peek(len(m)))
}

// stray is the error for content that no open list or mapping takes.
func (r *yamlReader) stray() *syntaxError {
	switch {
	case r.marker("---") || r.marker("..."):
		return r.fail("one file holds one profile", "more than one document")
	case r.dash():
		return r.fail("put it under its key, with the indentation of the other items", "this list item belongs to nothing")
	}
	return r.fail("align it with its neighbours; text over several lines needs quotes on one line, or | after the key", "unexpected indentation")
}

// dash tells whether a list item starts at pos.
func (r *yamlReader) dash() bool { return r.peek(0) == '-' && blank(r.peek(1)) }

// block reads the value whose first byte is at pos, in the column indent.
func (r *yamlReader) block(indent int) (node, *syntaxError) {
	if err := r.enter(); err != nil {
		return node{}, err
	}
	defer r.leave()
	if r.marker("---") || r.marker("...") {
		return node{}, r.stray()
	}
	if r.dash() {
		return r.blockList(indent)
	}
	key, found, err := r.key()
	if err != nil {
		return node{}, err
	}
	if found {
		return r.blockMap(indent, key)
	}
	return r.inline(indent - 1)
}

func (r *yamlReader) enter() *syntaxError {
	r.depth++
	if r.depth > maxDepth {
		return r.fail("", "nested too deep")
	}
	return nil
}

func (r *yamlReader) leave() { r.depth-- }

// here starts a node at pos.
func (r *yamlReader) here(kind nodeKind) node {
	return node{kind: kind, line: r.line, column: r.pos - r.start + 1}
}

// blockMap reads the mapping whose keys are in the column indent; its first key is read
// and pos is behind that key's colon.
func (r *yamlReader) blockMap(indent int, key node) (node, *syntaxError) {
	n := node{kind: mapNode, line: key.line, column: key.column}
	for {
		value, err := r.mapValue(indent)
		if err != nil {
			return node{}, err
		}
		n.pairs = append(n.pairs, pair{key: key, value: value})
		if r.indent < indent {
			return n, nil
		}
		if r.indent > indent || r.dash() || r.marker("---") || r.marker("...") {
			return node{}, r.stray()
		}
		var found bool
		key, found, err = r.key()
		if err != nil {
			return node{}, err
		}
		if !found {
			return node{}, r.fail(`write "key: value", with a space after the colon`, "expected a key")
		}
	}
}

// mapValue reads what follows a key's colon: on its line, or below it.
func (r *yamlReader) mapValue(indent int) (node, *syntaxError) {
	nothing := r.here(textNode)
	r.skipSpaces()
	if !r.atEnd() {
		return r.inline(indent)
	}
	if err := r.advance(); err != nil {
		return node{}, err
	}
	if r.indent > indent || r.indent == indent && r.dash() {
		return r.block(r.indent)
	}
	return nothing, nil
}

// blockList reads the list whose dashes are in the column indent.
func (r *yamlReader) blockList(indent int) (node, *syntaxError) {
	n := r.here(listNode)
	for {
		r.pos++
		item, err := r.listItem(indent)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
		// A key in the same column goes on with the mapping that this list is a value of.
		if r.indent < indent || r.indent == indent && !r.dash() {
			return n, nil
		}
		if r.indent > indent {
			return node{}, r.stray()
		}
	}
}

// listItem reads what follows a dash. A list or mapping may begin on the dash's own line;
// its column is then where its first key or dash stands.
func (r *yamlReader) listItem(indent int) (node, *syntaxError) {
	nothing := r.here(textNode)
	r.skipSpaces()
	if r.atEnd() {
		if err := r.advance(); err != nil {
			return node{}, err
		}
		if r.indent > indent {
			return r.block(r.indent)
		}
		return nothing, nil
	}
	if r.dash() {
		return r.block(r.pos - r.start)
	}
	column := r.pos - r.start
	key, found, err := r.key()
	if err != nil {
		return node{}, err
	}
	if !found {
		return r.inline(indent)
	}
	if err := r.enter(); err != nil {
		return node{}, err
	}
	defer r.leave()
	return r.blockMap(column, key)
}

// inline reads a value that starts at pos and is not a block list or mapping. parent is
// the column of what holds it: block text below has to be indented deeper.
func (r *yamlReader) inline(parent int) (node, *syntaxError) {
	var n node
	var err *syntaxError
	switch r.peek(0) {
	case '[', '{':
		n, err = r.flow()
	case '"', '\'':
		n, err = r.quoted()
	case '|', '>':
		return r.blockText(parent)
	default:
		n, err = r.plain(blockContext)
	}
	if err != nil {
		return node{}, err
	}
	return n, r.advance()
}
