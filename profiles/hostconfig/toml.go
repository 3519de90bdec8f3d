package hostconfig

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlSyntax reads TOML twice: the decoder refuses what is written twice, and the parser
// behind it tells which bytes write what.
type tomlSyntax struct{}

func (tomlSyntax) read(src []byte) (*node, *problem) {
	var all map[string]any
	if err := toml.Unmarshal(src, &all); err != nil {
		return nil, tomlProblem(src, err)
	}
	d := &tomlDocument{src: src, root: &node{kind: table, block: true}, opened: map[*node]map[string]*node{}}
	d.parser.Reset(src)
	current := d.root
	for d.parser.NextExpression() {
		e := d.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			current = d.open(e.Key())
		case unstable.ArrayTable:
			current = d.openItem(e.Key())
		case unstable.KeyValue:
			d.set(current, e)
		default: // comments are not asked for, and nothing else stands alone
		}
	}
	if d.parser.Error() != nil || d.bad != nil {
		return nil, &problem{at: -1, message: "this cannot be read as TOML"}
	}
	return d.root, nil
}

// tomlProblem keeps the place of the library's error. Its words quote the file.
func tomlProblem(src []byte, err error) *problem {
	out := &problem{at: -1, message: "this cannot be read as TOML", hint: "look at the quotes, brackets and names here"}
	if decode, ok := err.(*toml.DecodeError); ok { //nolint:errorlint // the decoder returns it bare
		line, column := decode.Position()
		out.at = offsetOf(src, line, column)
		if strings.Contains(decode.Error(), "already") || strings.Contains(decode.Error(), "duplicate") || strings.Contains(decode.Error(), "redefin") {
			out.message, out.hint = "this name is written twice", "remove one"
		}
	}
	return out
}

// tomlDocument turns the parser's expressions into one tree.
type tomlDocument struct {
	src    []byte
	parser unstable.Parser
	root   *node
	bad    *node // a value that could not be placed; nil for none
	// opened are the tables that headers and dotted keys have gone through, so that a file
	// of many costs no more than its length.
	opened map[*node]map[string]*node
}

// member returns what a key of a table holds, in a list of tables its last item.
func (d *tomlDocument) member(n *node, key *unstable.Node, lead int) *node {
	if n.kind == list && len(n.items) > 0 {
		n = n.items[len(n.items)-1]
	}
	if n.kind != table {
		d.bad = n
		return &node{kind: table, block: true}
	}
	name := string(key.Data)
	if inner := d.opened[n][name]; inner != nil {
		return inner
	}
	start, end := rawRange(key)
	inner := &node{kind: table, block: true, lead: lead, start: start, end: end}
	n.members = append(n.members, member{key: name, lead: lead, keyStart: start, keyEnd: end, value: inner})
	if d.opened[n] == nil {
		d.opened[n] = map[string]*node{}
	}
	d.opened[n][name] = inner
	return inner
}

func rawRange(n *unstable.Node) (start, end int) {
	return int(n.Raw.Offset), int(n.Raw.Offset) + int(n.Raw.Length)
}

// open goes to the table of a header, and makes it where it is new.
func (d *tomlDocument) open(keys unstable.Iterator) *node {
	n := d.root
	for keys.Next() {
		start, _ := rawRange(keys.Node())
		n = d.member(n, keys.Node(), start)
	}
	if n.kind == list && len(n.items) > 0 {
		n = n.items[len(n.items)-1]
	}
	return n
}

// openItem adds a table to the list of a header with two brackets.
func (d *tomlDocument) openItem(keys unstable.Iterator) *node {
	n, at := d.root, 0
	for keys.Next() {
		at, _ = rawRange(keys.Node())
		n = d.member(n, keys.Node(), at)
	}
	n.kind = list
	item := &node{kind: table, block: true, lead: at, start: at, end: at}
	n.items = append(n.items, item)
	return item
}

// set adds a key with its value to a table. A dotted key opens the tables in between.
func (d *tomlDocument) set(n *node, e *unstable.Node) {
	keys := e.Key()
	lead, at := -1, 0
	for keys.Next() {
		start, end := rawRange(keys.Node())
		if lead < 0 {
			lead = start
		}
		at = end
		if keys.IsLast() {
			break
		}
		n = d.member(n, keys.Node(), lead)
	}
	last := keys.Node()
	start, end := rawRange(last)
	if n.kind != table {
		d.bad = n
		return
	}
	equals := bytes.IndexByte(d.src[at:], '=')
	if equals < 0 {
		d.bad = n
		return
	}
	value := d.value(e.Value(), d.skip(at+equals+1, " \t"))
	n.members = append(n.members, member{key: string(last.Data), lead: lead, keyStart: start, keyEnd: end, value: value})
}

// skip passes signs, and comments where line ends are among them.
func (d *tomlDocument) skip(at int, signs string) int {
	for at < len(d.src) {
		switch {
		case strings.IndexByte(signs, d.src[at]) >= 0:
			at++
		case d.src[at] == '#' && strings.Contains(signs, "\n"):
			for at < len(d.src) && d.src[at] != '\n' {
				at++
			}
		default:
			return at
		}
	}
	return at
}

const betweenItems = " \t\r\n,"

// value turns a value that begins at an offset into a node.
func (d *tomlDocument) value(v *unstable.Node, start int) *node {
	n := &node{lead: start, start: start}
	switch v.Kind {
	case unstable.Array:
		n.kind = list
		at := start + 1
		for items := v.Children(); items.Next(); {
			item := d.value(items.Node(), d.skip(at, betweenItems))
			n.items = append(n.items, item)
			at = item.end
		}
		n.end = d.skip(at, betweenItems) + 1
	case unstable.InlineTable:
		n.kind = table
		at := start + 1
		for members := v.Children(); members.Next(); {
			if members.Node().Kind != unstable.KeyValue {
				continue
			}
			d.set(n, members.Node())
			at = max(at, lastEnd(n))
		}
		n.end = d.skip(at, betweenItems) + 1
	case unstable.String:
		n.kind, n.text = text, string(v.Data)
		_, n.end = rawRange(v)
	default:
		n.kind = plain
		_, n.end = rawRange(v)
		n.text = string(d.src[start:n.end])
	}
	if n.end > len(d.src) || n.end < start {
		d.bad, n.end = n, start
	}
	return n
}

// lastEnd is where the last value below a table ends.
func lastEnd(n *node) int {
	end := 0
	for i := range n.members {
		if v := n.members[i].value; v.kind == table && v.block {
			end = max(end, lastEnd(v))
		} else {
			end = max(end, v.end)
		}
	}
	return end
}

// quote writes a basic string. Its escapes are those of JSON but for four digits only.
func (tomlSyntax) quote(word string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range word {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < ' ' || r == 0x7f:
			out.WriteString(`\u00` + strconv.FormatInt(int64(r)+0x100, 16)[1:])
		default:
			out.WriteRune(r)
		}
	}
	return out.String() + `"`
}

// key begins a line of its own in a table under a header, and goes on in an inline one.
func (tomlSyntax) key(src []byte, holder *node, before *member, name string) string {
	prefix, gap := string(src[before.lead:before.keyStart]), ", "
	if holder.block && !inLine(src, before.lead) {
		gap = lineEnd(src, before.value.end) + string(src[lineStart(src, before.lead):before.lead])
	}
	return gap + prefix + name + " = "
}

// inLine tells whether something else than blanks stands before an offset in its line: a
// dotted key in an inline table.
func inLine(src []byte, at int) bool {
	return !only(src, lineStart(src, at), at, " \t")
}

func lineStart(src []byte, at int) int { return bytes.LastIndexByte(src[:at], '\n') + 1 }
