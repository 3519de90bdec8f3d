package profiles

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// plainNode is what both readers have to agree on.
type plainNode struct {
	Kind         nodeKind
	Null         bool
	Text         string
	Quoted       bool
	Line, Column int
	Children     []plainNode
}

func fromOurs(n *node) plainNode {
	out := plainNode{Kind: n.kind, Line: n.line, Column: n.column}
	switch n.kind {
	case textNode:
		out.Null, out.Quoted = n.null(), n.style != plainText
		if !out.Null {
			out.Text = n.text
		}
	case listNode:
		for i := range n.items {
			out.Children = append(out.Children, fromOurs(&n.items[i]))
		}
	case mapNode:
		for i := range n.pairs {
			key := fromOurs(&n.pairs[i].key)
			// A key named null is a key.
			key.Null, key.Text = false, n.pairs[i].key.text
			out.Children = append(out.Children, key, fromOurs(&n.pairs[i].value))
		}
	}
	// Where a missing value stands is nobody's business.
	if out.Null && n.text == "" {
		out.Line, out.Column = 0, 0
	}
	return out
}

// fromTheirs converts a node of the full parser. Its columns count characters.
func fromTheirs(t *testing.T, lines []string, n *yaml.Node) plainNode {
	t.Helper()
	column := n.Column
	if n.Line >= 1 && n.Line <= len(lines) {
		runes := []rune(lines[n.Line-1])
		column = len(string(runes[:min(n.Column-1, len(runes))])) + 1
	}
	out := plainNode{Line: n.Line, Column: column}
	switch n.Kind {
	case yaml.ScalarNode:
		out.Null = n.Tag == "!!null"
		out.Quoted = n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		if !out.Null {
			out.Text = n.Value
		}
		if out.Null && n.Value == "" {
			out.Line, out.Column = 0, 0
		}
	case yaml.SequenceNode:
		out.Kind = listNode
		for _, c := range n.Content {
			out.Children = append(out.Children, fromTheirs(t, lines, c))
		}
	case yaml.MappingNode:
		out.Kind = mapNode
		for i, c := range n.Content {
			child := fromTheirs(t, lines, c)
			if i%2 == 0 {
				child.Null, child.Text = false, c.Value
			}
			out.Children = append(out.Children, child)
		}
	default:
		t.Fatalf("the full parser found kind %d in text that this reader accepts", n.Kind)
	}
	return out
}

// compareReaders requires that whatever this reader accepts, the full parser accepts with
// the same meaning and the same places.
func compareReaders(t *testing.T, src string) {
	t.Helper()
	if len(checkBytes("f", strings.TrimPrefix(src, "\ufeff"))) > 0 || strings.HasPrefix(src, "\ufeff") {
		return
	}
	ours, syntax := readYAML(src)
	if syntax != nil {
		if syntax.line < 1 || syntax.column < 1 || syntax.message == "" {
			t.Fatalf("the error %q has no place: %d:%d", syntax.message, syntax.line, syntax.column)
		}
		return
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(src), &doc); err != nil {
		t.Fatalf("the full parser refuses what this reader accepts: %v\n%s", err, src)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		t.Fatalf("the full parser found %d values", len(doc.Content))
	}
	lines := strings.Split(src, "\n")
	if diff := cmp.Diff(fromTheirs(t, lines, doc.Content[0]), fromOurs(&ours)); diff != "" {
		t.Fatalf("readers differ (-full parser, +this one):\n%s\n%s", diff, src)
	}
}

var yamlSeeds = []string{
	"version: 1\nname: x\n",
	"---\n# c\na: [x, \"y\", 'it''s', ~, 0x10, yes] # c\nb:\n- 1\n- c: d\n  e: f\n-\n  - - g\n",
	"a: |\n  x\n\n   y\n  z\n\n\nb: >-\n  x\n  y\n\n  z\n    more\n  w\nc: |+\n\n  k\n\n",
	"a: >\n\n\n  x\n\n  y\n   z\n\n  w\n",
	"a: |-\n  no line end",
	"a: >+\n  no line end",
	"a: |\n  no line end",
	"a: {b: c, d: [e, {f: }], \"g\": 1,}\nh: [\n  i, # c\n  j,\n]\n",
	"a:\r\n  - b\r\n  - \"c\\u00e9\\x41\\n\\t\\U0001f600\\/\\\\\\\"\"\r\n",
	"ü: é # x\n\"üü\": {a: 1, é: 2}\n", "x:\n- a: b\n  c:\n  - d\n- e\n", "a: b # c\n#d\n  # e\nf: -g\nh: --i\n",
	"a:\n  b\nc: http://x:1/#y\nd: a:b\n", "? a\n: b\n", "a: &x b\nc: *x\n", "a: !!str b\n", "<<: {a: b}\n",
	"a: b\n---\nc: d\n", "a: b\n...\n", "%YAML 1.2\n---\na: b\n", "a: [b\n", "a: \"b\n", "a: [b c: d]\n", "a: b: c\n", "a: [${roots}]\n",
	"a: - b\n", "-\n-\n", "[a, b]\n", "{a: b}\n", "plain\n", "\"quoted\"\n", "", "# only\n", "a:\n b: c\n  d: e\n", "a:\n   b: c\n  d: e\n",
	"a: |\n x\n  y\n b\n", "a: |\n\n   \n  x\n", "a: |\n", "a: >\n\nb: c\n", "a: |  # c\n  x\n", "a:\n- |\n  x\n- >\n y\n", "a: 'b' c\n", "a: \"b\"#c\n",
	"null: 1\n~: 2\n", "a: ''\nb: \"\"\n", "a:   \n  # c\nb: 1\n", "a: [[a], [b, [c]]]\n", "a: [a: b]\n", "a: {b}\n", "a: [,]\n", "a: [-]\n", "a: [- b]\n", "a: ? b\n",
	"a: {b: |}\n", "a: |2\n   x\n", "x:\n- - - a\n    - b\n  - c\n- d\n", "a: b\n c\n", "\"a\": b\n'c': d\n\"e\" : f\ng : h\n", "a:\n- b\nc: d\n", "a: x y # z\n", "a: #c\n",
	"a: [\n---\n]\n", "a: [b,\nc]\n", "--- \na: b\n", "--- a\n", "-a: b\n", ":a: b\n", "a: :b\n", "a: [:b]\n", "{\"a\":1}\n", "a: %b\n", "a: b%\n", "a: @b\n", "a: `b\n",
	"description: |\n  a: b\n  - c\n  # not a comment\n\n# a comment\nversion: 1\n",
	"a: >\n  x\n   \n  y\n", "a: >\n  x\n     \n  y\n", "a: |\n  x\n     \n",
}

func TestReadYAMLAgreesWithFullParser(t *testing.T) {
	for _, src := range yamlSeeds {
		t.Run(src, func(t *testing.T) { compareReaders(t, src) })
	}
}

func FuzzReadYAML(f *testing.F) {
	for _, src := range yamlSeeds {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) { compareReaders(t, src) })
}
