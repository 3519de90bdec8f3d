package hostconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tailscale/hujson"
)

// jsonSyntax reads JSON with comments and trailing commas. Which of both a host bears is
// its business: nothing that is written here adds one.
type jsonSyntax struct{}

func (jsonSyntax) read(src []byte) (*node, *problem) {
	if at := tooDeep(src); at >= 0 {
		return nil, &problem{at: at, message: "nested too deep"}
	}
	value, err := hujson.Parse(src)
	if err != nil {
		return nil, jsonProblem(src, err)
	}
	return jsonNode(&value), nil
}

// jsonProblem keeps the place of the library's error. Its words quote the file.
func jsonProblem(src []byte, err error) *problem {
	out := &problem{at: -1, message: "this cannot be read as JSON", hint: "look at the quotes, commas and brackets here"}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		out.message, out.hint = "the file ends too early", "close what is open"
	}
	var line, column int
	if _, err := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); err == nil {
		out.at = offsetOf(src, line, column)
	}
	return out
}

func offsetOf(src []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(src[at:], '\n')
		if next < 0 {
			return len(src)
		}
		at += next + 1
	}
	return min(at+column-1, len(src))
}

// tooDeep returns where brackets nest deeper than maxDepth, or -1. The library has no bound
// of its own, and a stack that is used up cannot be caught. Up to the first error that the
// library would find, both see the same strings and comments.
func tooDeep(src []byte) int {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(src) && src[i+1] == '/':
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(src) && src[i+1] == '*':
			for i += 3; i < len(src) && (src[i-1] != '*' || src[i] != '/'); i++ {
			}
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

func jsonNode(v *hujson.Value) *node {
	n := &node{start: v.StartOffset, lead: v.StartOffset, end: v.EndOffset}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.kind = table
		for i := range value.Members {
			m := &value.Members[i]
			key, _ := m.Name.Value.(hujson.Literal)
			n.members = append(n.members, member{
				key: key.String(), lead: m.Name.StartOffset, keyStart: m.Name.StartOffset, keyEnd: m.Name.EndOffset,
				value: jsonNode(&m.Value),
			})
		}
	case *hujson.Array:
		n.kind = list
		for i := range value.Elements {
			n.items = append(n.items, jsonNode(&value.Elements[i]))
		}
	case hujson.Literal:
		n.kind, n.text = plain, string(value)
		if value.Kind() == '"' {
			n.kind, n.text = text, value.String()
		}
	}
	return n
}

func (jsonSyntax) quote(word string) string { return string(hujson.String(word)) }

func (jsonSyntax) key(src []byte, _ *node, before *member, name string) string {
	gap, colon := blankBefore(src, before.lead), ": "
	if only(src, before.keyEnd, before.value.start, ": \t") {
		colon = string(src[before.keyEnd:before.value.start])
	}
	if gap == "" && colon != ":" {
		gap = " "
	}
	return "," + gap + string(hujson.String(name)) + colon
}
