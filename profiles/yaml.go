package profiles

import (
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Profiles are YAML. A library reads it into nodes; this file refuses what a profile has
// no use for (anchors, aliases, tags, merge keys, directives, several documents, keys that
// are not text) and keeps the rest in nodes of the package's own.
//
// The library's types are not used: a plain scalar keeps its text as it stands, and the key
// that it belongs to says how it is read. So yes, 0x10, 1_000 and dates, which YAML 1.1 and
// 1.2 read differently, are text where text is expected and an error where a number or
// true is.
//
// Nothing is expanded: loading into nodes leaves an alias a leaf, and it is refused before
// anybody follows it.

type nodeKind uint8

const (
	textNode nodeKind = iota
	listNode
	mapNode
)

// node is one value of a file with its place. Columns count bytes from 1.
type node struct {
	kind         nodeKind
	plain        bool // text without quotes and without a block sign
	text         string
	line, column int
	items        []node
	pairs        []pair
}

type pair struct{ key, value node }

// null tells whether nothing was written where a value could be, or a word for nothing.
func (n *node) null() bool {
	if n.kind != textNode || !n.plain {
		return false
	}
	switch n.text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// maxDepth bounds the nesting of brackets, and of indentation; a profile needs four levels.
const maxDepth = 32

// Errors that the library hands back as its own message's text.
var (
	errTooDeep  = errors.New("nested too deep")
	errFollowed = errors.New("an alias is followed")
)

// readingLimits are the bounds that the library asks for while it reads.
type readingLimits struct{}

// CheckDepth refuses what is nested deeper than maxDepth, before it is read.
func (readingLimits) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return errTooDeep
	}
	return nil
}

// CheckAlias refuses every use of an alias.
func (readingLimits) CheckAlias(used, _ int) error {
	if used > 0 {
		return errFollowed
	}
	return nil
}

// syntaxError is the place where reading stopped.
type syntaxError struct {
	line, column int
	problem
}

// document turns the library's nodes into the package's.
type document struct {
	text string
	// Where the last node stood: the offset and number of its line, and its column, in
	// characters and in bytes from 1. Nodes come in the order of the file, so that looking
	// up all their columns walks over it once.
	start, line, chars, bytes int
}

// readYAML reads one document, a mapping. The source has passed [checkBytes].
func readYAML(src string) (node, *syntaxError) {
	d := &document{text: src, line: 1, chars: 1, bytes: 1}
	loader, err := yaml.NewLoader(strings.NewReader(src), yaml.WithStreamNodes(), yaml.WithPlugin(readingLimits{}))
	if err != nil {
		return node{}, d.syntax(err)
	}
	var root *yaml.Node
	var end yaml.Node
	for {
		var next yaml.Node
		err := loader.Load(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return node{}, d.syntax(err)
		}
		switch {
		case next.Kind != yaml.DocumentNode: // what stands before and behind documents
			if next.Stream != nil && (next.Stream.Version != nil || len(next.Stream.TagDirectives) > 0) {
				return node{}, d.directive()
			}
			end = next
		case root != nil:
			return node{}, d.fail(next.Line, next.Column, "one file holds one profile", "more than one document")
		default:
			root = next.Content[0]
		}
	}
	const empty, write = "the profile is empty", `write at least "version: 1"`
	if root == nil {
		return node{}, d.fail(end.Line, end.Column, write, empty)
	}
	var out node
	if bad := d.node(root, &out); bad != nil {
		return node{}, bad
	}
	switch {
	case out.null():
		return node{}, d.fail(root.Line, root.Column, write, empty)
	case out.kind != mapNode:
		return node{}, d.fail(root.Line, root.Column, `begin with "version: 1"`, "a profile is a mapping of keys to values")
	}
	return out, nil
}

func (d *document) fail(line, chars int, hint, message string) *syntaxError {
	out := &syntaxError{problem: problem{message: message, hint: hint}}
	out.line, out.column = d.place(line, chars)
	return out
}

// place counts a column in bytes. The library counts characters from 1, and 0 is a place
// that it does not know.
func (d *document) place(line, chars int) (int, int) {
	line, chars = max(line, 1), max(chars, 1)
	if line < d.line || line == d.line && chars < d.chars {
		d.start, d.line, d.chars, d.bytes = 0, 1, 1, 1
	}
	for d.line < line {
		end := strings.IndexByte(d.text[d.start:], '\n')
		if end < 0 {
			break // behind the last line
		}
		d.start, d.line, d.chars, d.bytes = d.start+end+1, d.line+1, 1, 1
	}
	for _, r := range d.text[d.start+d.bytes-1:] {
		if d.chars >= chars || r == '\n' {
			break
		}
		d.chars++
		d.bytes += len(string(r))
	}
	return d.line, d.bytes
}

// directive is the error for a line that begins with %. Before the first document there
// are only such lines and comments.
func (d *document) directive() *syntaxError {
	line := 0
	for text := range strings.SplitSeq(d.text, "\n") {
		line++
		if strings.HasPrefix(text, "%") {
			break
		}
	}
	return d.fail(line, 1, hintRemove, noDirectives)
}

// node copies one node and what is in it, and refuses what has no use in a profile.
func (d *document) node(n *yaml.Node, out *node) *syntaxError {
	out.line, out.column = d.place(n.Line, n.Column)
	switch {
	case n.Kind == yaml.AliasNode:
		return d.fail(n.Line, n.Column, hintAlias, noAliases)
	case n.Anchor != "":
		return d.fail(n.Line, n.Column, hintAnchor, noAnchors)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		return d.fail(n.Line, n.Column, hintTag, noTags)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		out.kind, out.text, out.plain = textNode, n.Value, n.Style&quoted == 0
		if strings.IndexByte(n.Value, 0) >= 0 {
			return d.fail(n.Line, n.Column, hintRemove, "text cannot hold a NUL byte")
		}
	case yaml.SequenceNode:
		out.kind, out.items = listNode, make([]node, len(n.Content))
		for i, item := range n.Content {
			if bad := d.node(item, &out.items[i]); bad != nil {
				return bad
			}
		}
	case yaml.MappingNode:
		out.kind, out.pairs = mapNode, make([]pair, len(n.Content)/2)
		for i := range out.pairs {
			key := n.Content[2*i]
			if bad := d.node(key, &out.pairs[i].key); bad != nil {
				return bad
			}
			if bad := d.key(key); bad != nil {
				return bad
			}
			if bad := d.node(n.Content[2*i+1], &out.pairs[i].value); bad != nil {
				return bad
			}
		}
	default:
		return d.fail(n.Line, n.Column, hintSyntax, notRead)
	}
	return nil
}

// key refuses keys that are not text: lists, mappings, numbers, true and null.
func (d *document) key(n *yaml.Node) *syntaxError {
	switch {
	case n.Kind != yaml.ScalarNode:
		return d.fail(n.Line, n.Column, "write \"key: value\"; put quotes around brackets that are meant as text", "a list or mapping cannot be a key")
	case n.Tag == "!!merge":
		return d.fail(n.Line, n.Column, `write the keys out, or use "extends"`, "YAML merge keys are not read")
	case n.Tag != "!!str":
		return d.fail(n.Line, n.Column, "put quotes around it if it is meant as text", "a key has to be text")
	}
	return nil
}

// readDocument reads the text of a file into nodes.
func readDocument(name string, data []byte, kind string) (node, error) {
	if len(data) > maxFile {
		at := Position{File: name, Line: 1, Column: 1}
		return node{}, Errors{wrong(kind+" has a few dozen lines", "the file is larger than %d bytes", maxFile).at(at)}
	}
	// Editors on other systems begin a file with a byte order mark; no column counts it.
	src := strings.TrimPrefix(string(data), "\ufeff")
	if errs := checkBytes(name, src); len(errs) > 0 {
		return node{}, errs.orNil()
	}
	doc, syntax := readYAML(src)
	if syntax != nil {
		at := Position{File: name, Line: syntax.line, Column: syntax.column}
		return node{}, Errors{syntax.at(at)}
	}
	return doc, nil
}
