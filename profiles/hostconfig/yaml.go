package hostconfig

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// yamlSyntax takes the library's nodes for where values begin, and finds their ends itself
// for the values that are edited: words, and lists of words. What has no plain form of
// either (block text, words over several lines, anchors, aliases, tags) is marked and not
// edited.
type yamlSyntax struct{}

// yamlLimits bound what the library reads.
type yamlLimits struct{}

var errTooDeep = errors.New("nested too deep")

// CheckDepth refuses what is nested deeper than maxDepth.
func (yamlLimits) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return errTooDeep
	}
	return nil
}

// CheckAlias bears every alias: loading into nodes leaves it a leaf.
func (yamlLimits) CheckAlias(_, _ int) error { return nil }

// yamlDocument finds offsets. Nodes come nearly in the order of the file, so the last line
// that was looked up is remembered.
type yamlDocument struct {
	src         []byte
	lines       []int // the offset of each line
	line        int   // where the last place was: its line,
	chars, byte int   // its column in characters from 1, and its offset
}

func (yamlSyntax) read(src []byte) (*node, *problem) {
	if at := foreignBreak(src); at >= 0 {
		return nil, &problem{at, "a line ends here for some readers of YAML and not for others", "use common line ends"}
	}
	d := &yamlDocument{src: src, lines: lineStarts(src)}
	loader, err := yaml.NewLoader(bytes.NewReader(src), yaml.WithStreamNodes(), yaml.WithPlugin(yamlLimits{}))
	if err != nil {
		return nil, d.problem(err)
	}
	var root *node
	for {
		var next yaml.Node
		err := loader.Load(&next)
		switch {
		case errors.Is(err, io.EOF):
			if root == nil {
				root = &node{kind: plain}
			}
			return root, nil
		case err != nil:
			return nil, d.problem(err)
		case next.Kind != yaml.DocumentNode:
			if next.Stream != nil && (next.Stream.Version != nil || len(next.Stream.TagDirectives) > 0) {
				return nil, &problem{-1, "YAML directives are not read", "remove the line that begins with %"}
			}
		case root != nil:
			return nil, &problem{d.offset(next.Line, next.Column), "more than one document: hosts read one", "keep one"}
		case len(next.Content) == 1:
			root = d.node(next.Content[0])
		}
	}
}

// foreignBreak returns the first sign that only some versions of YAML take for a line end,
// or -1: line numbers would differ.
func foreignBreak(src []byte) int {
	for i, c := range src {
		if c == '\r' && (i+1 == len(src) || src[i+1] != '\n') {
			return i
		}
	}
	return bytes.IndexAny(src, "\u0085\u2028\u2029\x00\ufeff")
}

// problem keeps the place of the library's error. Its words quote the file.
func (d *yamlDocument) problem(err error) *problem {
	out := &problem{at: -1, message: "this cannot be read as YAML", hint: "look at the quotes, brackets and indentation here"}
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		mark := load.Mark
		if mark.Line == 0 {
			mark = load.ContextMark
		}
		if mark.Line > 0 {
			out.at = d.offset(mark.Line, mark.Column)
		}
		if load.Message == errTooDeep.Error() {
			out.message, out.hint = load.Message, ""
		}
	}
	return out
}

// offset turns a line and a column in characters, both from 1, into an offset.
func (d *yamlDocument) offset(line, column int) int {
	if line < 1 || line > len(d.lines) {
		return len(d.src)
	}
	if line != d.line || column < d.chars {
		d.line, d.chars, d.byte = line, 1, d.lines[line-1]
	}
	for d.chars < column && d.byte < len(d.src) && d.src[d.byte] != '\n' {
		_, size := utf8.DecodeRune(d.src[d.byte:])
		d.byte += size
		d.chars++
	}
	return d.byte
}

func (d *yamlDocument) node(y *yaml.Node) *node {
	at := d.offset(y.Line, y.Column)
	n := &node{lead: at, start: at, end: at}
	switch {
	case y.Kind == yaml.AliasNode:
		n.kind, n.text, n.shared, n.odd = plain, "*"+y.Value, anAlias, "an alias stands for this value"
		return n
	case y.Anchor != "":
		n.shared, n.odd = "an anchor", "an anchor stands before this value"
	case y.Style&yaml.TaggedStyle != 0 || y.Tag == "!":
		n.odd = "a tag stands before this value"
	}
	switch y.Kind {
	case yaml.MappingNode:
		d.mapping(n, y)
	case yaml.SequenceNode:
		d.sequence(n, y)
	default:
		d.scalar(n, y)
	}
	return n
}

func (d *yamlDocument) mapping(n *node, y *yaml.Node) {
	n.kind, n.block = table, y.Style&yaml.FlowStyle == 0
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := d.node(y.Content[i])
		value := d.node(y.Content[i+1])
		switch {
		case y.Content[i].Tag == "!!merge":
			value.shared = "a merge key"
		case key.shared != "":
			value.shared = key.shared
		case key.kind == table || key.kind == list:
			value.shared, key.text = "a key that is no text", "?"
		}
		n.members = append(n.members, member{key: key.text, lead: key.start, keyStart: key.start, keyEnd: key.end, value: value})
	}
}

const (
	anAlias   = "an alias"
	overLines = "the text goes over several lines"
	blockText = "the text is a block below its sign"
)

func (d *yamlDocument) scalar(n *node, y *yaml.Node) {
	n.kind, n.text = plain, y.Value
	if y.Tag == "!!str" || n.odd != "" {
		n.kind = text
	}
	if n.odd != "" {
		return
	}
	rest := d.src[n.start:]
	length := -1
	switch {
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n.odd = blockText
		return
	case y.Style&yaml.DoubleQuotedStyle != 0:
		length = quotedEnd(rest, '"', '\\')
	case y.Style&yaml.SingleQuotedStyle != 0:
		length = quotedEnd(rest, '\'', '\'')
	case bytes.HasPrefix(rest, []byte(y.Value)):
		length = len(y.Value)
	}
	if length < 0 {
		n.odd = overLines
		return
	}
	n.end = n.start + length
	if bytes.IndexByte(d.src[n.start:n.end], '\n') >= 0 {
		n.odd = overLines
	}
}

// quotedEnd is the length of a quoted text with its quotes, or -1. An escape takes the sign
// behind it along; in single quotes only a quote behind a quote is one.
func quotedEnd(src []byte, quote, escape byte) int {
	if len(src) == 0 || src[0] != quote {
		return -1
	}
	for i := 1; i < len(src); i++ {
		switch {
		case src[i] == escape && (escape != quote || i+1 < len(src) && src[i+1] == quote):
			i++
		case src[i] == quote:
			return i + 1
		}
	}
	return -1
}

func (d *yamlDocument) sequence(n *node, y *yaml.Node) {
	n.kind, n.block = list, y.Style&yaml.FlowStyle == 0
	for _, item := range y.Content {
		n.items = append(n.items, d.node(item))
	}
	if n.odd != "" {
		return
	}
	if n.block {
		for _, item := range n.items {
			item.lead = bytes.LastIndexByte(d.src[:item.start], '-')
			if item.lead < 0 || !only(d.src, item.lead+1, item.start, " ") || !only(d.src, lineStart(d.src, item.lead), item.lead, " ") {
				n.odd, item.lead = "an item is not in one line with its dash", item.start
			}
		}
		return
	}
	if !bytes.HasPrefix(d.src[n.start:], []byte("[")) {
		n.odd = "the list begins in another place"
		return
	}
	at := n.start + 1
	if len(n.items) > 0 {
		at = n.items[len(n.items)-1].end
	}
	n.end = d.closing(at)
	if n.end < 0 {
		n.odd, n.end = "where the list ends cannot be told", n.start
	}
}

// closing passes blanks, commas and comments, and is the offset behind the bracket that has
// to follow, or -1.
func (d *yamlDocument) closing(at int) int {
	for at < len(d.src) {
		switch c := d.src[at]; {
		case strings.IndexByte(betweenItems, c) >= 0:
			at++
		case c == '#':
			for at < len(d.src) && d.src[at] != '\n' {
				at++
			}
		case c == ']':
			return at + 1
		default:
			return -1
		}
	}
	return -1
}

// quote writes a word without quotes where every reader takes it for text.
func (yamlSyntax) quote(word string) string {
	if bare(word) {
		return word
	}
	return jsonSyntax{}.quote(word)
}

// bare knows words that no reader takes for something else: they begin with a slash or are
// the ones that wrapping writes itself.
func bare(word string) bool {
	if word == "run" || word == launcherName {
		return true
	}
	return strings.HasPrefix(word, "/") && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// key begins a line of its own in a table without brackets, below the key before it.
func (yamlSyntax) key(src []byte, holder *node, before *member, name string) string {
	if !holder.block {
		return ", " + name + ": "
	}
	column := utf8.RuneCount(src[lineStart(src, before.lead):before.lead])
	return lineEnd(src, before.value.end) + strings.Repeat(" ", column) + name + ": "
}
