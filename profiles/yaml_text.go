package profiles

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainContext says where plain text stands: inside brackets, commas and brackets end it.
type plainContext uint8

const (
	blockContext plainContext = iota
	flowContext
)

func flowSign(c byte) bool {
	return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'
}

// plainSpan takes plain text up to its end: the line's end, a comment, a colon before a
// space, or in flow context a comma or bracket.
func (r *yamlReader) plainSpan(ctx plainContext) string {
	from := r.pos
	for {
		c := r.peek(0)
		if lineEnd(c) || ctx == flowContext && flowSign(c) {
			break
		}
		if c == ':' && (blank(r.peek(1)) || ctx == flowContext && flowSign(r.peek(1))) {
			break
		}
		if c == '#' && r.pos > from && r.src[r.pos-1] == ' ' {
			break
		}
		r.pos++
	}
	return strings.TrimRight(r.src[from:r.pos], " ")
}

// plain reads plain text as a value.
func (r *yamlReader) plain(ctx plainContext) (node, *syntaxError) {
	if err := r.plainStart(ctx); err != nil {
		return node{}, err
	}
	n := r.here(textNode)
	n.text = r.plainSpan(ctx)
	c := r.peek(0)
	if c == ':' && ctx == blockContext {
		return node{}, r.fail("put quotes around the text, or begin the mapping on a line of its own", `": " inside text`)
	}
	if ctx == flowContext && (c == '[' || c == '{') {
		return node{}, r.fail("put quotes around the text", "%q inside text in a list", c)
	}
	return n, nil
}

// plainStart refuses what plain text cannot begin with. The messages name the YAML
// features that are left out, because a person meant one, or meant text.
func (r *yamlReader) plainStart(ctx plainContext) *syntaxError {
	const quote = "put quotes around the text"
	c := r.peek(0)
	switch c {
	case '&':
		return r.fail("write the value out where it is needed; if & is meant, "+quote, "YAML anchors are not read")
	case '*':
		return r.fail("if * is meant, "+quote, "YAML aliases are not read")
	case '!':
		return r.fail("if ! is meant, "+quote, "YAML tags are not read")
	case '%', '@', '`', '#', ',', ']', '}':
		return r.fail(quote, "text cannot begin with %q", c)
	case '-', '?', ':':
		next := r.peek(1)
		if blank(next) || c != '-' || ctx == flowContext && flowSign(next) {
			return r.fail(quote+"; a list begins on a line of its own", "text cannot begin with %q here", c)
		}
	}
	return nil
}

// quoted reads text in single or double quotes, on one line.
func (r *yamlReader) quoted() (node, *syntaxError) {
	n := r.here(textNode)
	n.style = quotedText
	mark := r.peek(0)
	r.pos++
	from := r.pos
	var b strings.Builder
	for {
		c := r.peek(0)
		switch {
		case lineEnd(c):
			return node{}, r.failAt(n.line, n.column, "close it on its own line", "the quote is never closed")
		case c == mark && mark == '\'' && r.peek(1) == '\'':
			b.WriteString(r.src[from : r.pos+1])
			r.pos += 2
			from = r.pos
		case c == mark:
			if b.Len() == 0 {
				n.text = r.src[from:r.pos]
			} else {
				b.WriteString(r.src[from:r.pos])
				n.text = b.String()
			}
			r.pos++
			return n, nil
		case c == '\\' && mark == '"':
			b.WriteString(r.src[from:r.pos])
			if err := r.escape(&b); err != nil {
				return node{}, err
			}
			from = r.pos
		default:
			r.pos++
		}
	}
}

// escape reads one escape of a double quoted text.
func (r *yamlReader) escape(b *strings.Builder) *syntaxError {
	digits := 0
	switch c := r.peek(1); c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return r.fail(`known are \" \\ \/ \n \t \xHH \uHHHH \UHHHHHHHH; single quotes take text as it is`, "unknown escape")
	}
	if digits == 0 {
		r.pos += 2
		return nil
	}
	end := min(r.pos+2+digits, len(r.src))
	code, err := strconv.ParseUint(r.src[r.pos+2:end], 16, 32)
	switch {
	case err != nil || end-r.pos-2 != digits:
		return r.fail("", "the escape needs %d hexadecimal digits", digits)
	case code == 0:
		return r.fail("remove it", "text cannot hold a NUL byte")
	case code > utf8.MaxRune || code >= 0xd800 && code < 0xe000:
		return r.fail("", "the escape is not a character")
	}
	b.WriteRune(rune(code))
	r.pos = end
	return nil
}

// blockText reads text below a | or > sign. Lines deeper than parent belong to it; the
// first line that is not blank sets the indentation that is taken off.
func (r *yamlReader) blockText(parent int) (node, *syntaxError) {
	n := r.here(textNode)
	n.style = blockText
	style := literalBlock
	if r.peek(0) == '>' {
		style = foldedBlock
	}
	r.pos++
	chomp := r.peek(0)
	if chomp == '-' || chomp == '+' {
		r.pos++
	}
	r.skipSpaces()
	if !r.atEnd() {
		return node{}, r.fail("write the text on the lines below", "unexpected text after a block sign")
	}
	r.nextLine()
	lines, err := r.blockLines(parent)
	if err != nil {
		return node{}, err
	}
	if r.pos == len(r.src) && !strings.HasSuffix(r.src, "\n") && len(lines) > 0 && lines[len(lines)-1] != "" {
		chomp = '-' // the last line has no break that could be kept
	}
	n.text = joinBlock(lines, style, chomp)
	return n, r.nextContent()
}

// blockLines takes the lines of a block text without their indentation.
func (r *yamlReader) blockLines(parent int) ([]string, *syntaxError) {
	var lines []string
	indent, widest := -1, 0
	for r.pos < len(r.src) {
		end := strings.IndexByte(r.src[r.pos:], '\n')
		if end < 0 {
			end = len(r.src) - r.pos
		}
		line := strings.TrimSuffix(r.src[r.pos:r.pos+end], "\r")
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case spaces == len(line) && (indent < 0 || spaces <= indent):
			widest = max(widest, spaces)
			lines = append(lines, "")
			r.nextLine()
			continue
		case spaces == len(line):
			return nil, r.failAt(r.line, indent+1, "remove the spaces", "a blank line with more spaces than the text around it")
		case indent < 0 && spaces > parent && spaces > 0:
			indent = spaces
			if widest > indent {
				return nil, r.failAt(r.line, indent+1, "remove the spaces from the blank lines above", "the text is indented less than the blank line above it")
			}
		case spaces < indent || indent < 0:
			if spaces > max(parent, 0) {
				return nil, r.failAt(r.line, spaces+1, "indent all lines of the text alike", "the line is indented less than the text above it")
			}
			return lines, nil
		}
		lines = append(lines, line[indent:])
		r.nextLine()
	}
	return lines, nil
}

// blockStyle is the sign before a block text.
type blockStyle uint8

const (
	literalBlock blockStyle = iota // |
	foldedBlock                    // >
)

// joinBlock puts the lines of a block text together. In folded text a line break between
// two lines that are not indented further becomes a space, and blank lines between them
// become the line breaks. Of the breaks at the end, "-" keeps none, "+" all, else one.
func joinBlock(lines []string, style blockStyle, chomp byte) string {
	body := len(lines)
	for body > 0 && lines[body-1] == "" {
		body--
	}
	var b strings.Builder
	blanks := 0
	for i, line := range lines[:body] {
		if line == "" {
			blanks++
			continue
		}
		if i > blanks {
			last := lines[i-blanks-1]
			switch {
			case style == literalBlock || last[0] == ' ' || line[0] == ' ':
				b.WriteByte('\n')
			case blanks == 0:
				b.WriteByte(' ')
			}
		}
		for ; blanks > 0; blanks-- {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	if chomp == '-' {
		return b.String()
	}
	if body > 0 {
		b.WriteByte('\n')
	}
	if chomp == '+' {
		for range lines[body:] {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
