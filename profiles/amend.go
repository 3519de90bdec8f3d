package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Addition is one entry more of a list of a profile.
type Addition struct {
	Key     string // "filesystem.read"; one of [amendable]
	Entry   string // as [Profile] holds it: a path, a program, a rule, a port
	Because string // a few words, for the comment
}

// amendable are the lists that can be added to, in the order of a profile.
var amendable = []string{
	"filesystem.read", "filesystem.write", "filesystem.execute", "network.egress", "network.listen", "network.unix",
}

// Amend adds entries to a profile's text and leaves everything else of it as it is: comments,
// order and spelling. What a person wrote in a form that cannot be added to is an error; so
// is a result that says anything but the old text and the additions.
func Amend(file string, text []byte, add []Addition) ([]byte, error) {
	before, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	root, bad := readYAML(string(text))
	if bad != nil {
		return nil, fmt.Errorf("amending %s: it is no longer YAML", file)
	}
	a := &amending{text: string(text), starts: lineStarts(string(text))}
	for _, key := range amendable {
		var entries []Addition
		for _, one := range add {
			if one.Key == key {
				entries = append(entries, one)
			}
		}
		if len(entries) == 0 {
			continue
		}
		section, name, _ := strings.Cut(key, ".")
		if err := a.list(&root, section, name, entries); err != nil {
			return nil, fmt.Errorf("amending %s: %s: %w", file, key, err)
		}
	}
	out := a.apply()
	after, err := Parse(file, []byte(out))
	if err != nil {
		return nil, fmt.Errorf("amending %s: %w", file, err)
	}
	for _, key := range amendable {
		if want := slices.Concat(entriesOf(before, key), entriesAdded(add, key)); !sameEntries(want, entriesOf(after, key)) {
			return nil, fmt.Errorf("amending %s: %s cannot be added to as it is written", file, key)
		}
	}
	return []byte(out), nil
}

func entriesAdded(add []Addition, key string) (out []string) {
	for _, one := range add {
		if one.Key == key {
			out = append(out, one.Entry)
		}
	}
	return out
}

func sameEntries(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// entriesOf are the entries of one list of a profile.
func entriesOf(p *Profile, key string) (out []string) {
	paths := func(list []PathEntry) {
		for _, e := range list {
			out = append(out, e.Path)
		}
	}
	switch key {
	case "filesystem.read":
		paths(p.Filesystem.Read)
	case "filesystem.write":
		paths(p.Filesystem.Write)
	case "filesystem.execute":
		for _, e := range p.Filesystem.Execute {
			out = append(out, e.Value)
		}
	case "network.egress":
		if p.Network.Egress.Value == EgressPublic || p.Network.Egress.Value == EgressAll {
			out = append(out, string(p.Network.Egress.Value))
		}
		for _, e := range p.Network.Hosts {
			out = append(out, e.To)
		}
	case "network.listen":
		for _, e := range p.Network.Listen {
			out = append(out, strconv.Itoa(int(e.Value)))
		}
	case "network.unix":
		paths(p.Network.Unix)
	}
	return out
}

// amending is a text with what goes in where.
type amending struct {
	text   string
	starts []int // offset of each line
	edits  []edit
	tail   []string // new sections
}

// edit puts text in the place of so many bytes. Of several at one place, whole lists come
// before the comments on the line that is there.
type edit struct {
	at, length int
	text       string
	rank       int
}

func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (a *amending) at(n *node) int { return a.starts[n.line-1] + n.column - 1 }

// begins tells whether a node's text begins with a sign.
func (a *amending) begins(n *node, sign byte) bool {
	at := a.at(n)
	return at < len(a.text) && a.text[at] == sign
}

func (a *amending) put(at int, text string) { a.edits = append(a.edits, edit{at: at, text: text}) }

// unwritable is a form that is not added to.
type unwritable struct{ what string }

func (e unwritable) Error() string { return "it is written as " + e.what + "; write it as a list" }

func pairOf(n *node, key string) *pair {
	for i := range n.pairs {
		if n.pairs[i].key.text == key {
			return &n.pairs[i]
		}
	}
	return nil
}

// list adds entries to one list.
func (a *amending) list(root *node, section, name string, entries []Addition) error {
	if a.begins(root, '{') {
		return unwritable{"one line in braces"}
	}
	in := pairOf(root, section)
	switch {
	case in == nil:
		a.section(section, name, entries)
		return nil
	case in.value.null() && in.value.text == "":
		a.put(a.after(&in.key), "  "+name+":\n"+blockItems("    ", entries))
		return nil
	case in.value.kind != mapNode:
		return unwritable{"a single value"}
	}
	have := pairOf(&in.value, name)
	flow := a.begins(&in.value, '{')
	switch {
	case have == nil && flow:
		a.above(&in.key, entries)
		text := name + ": [" + flowItems(entries) + "]"
		if len(in.value.pairs) > 0 {
			text += ", "
		}
		a.put(a.at(&in.value)+1, text)
		return nil
	case have == nil:
		first := &in.value.pairs[0].key
		indent := strings.Repeat(" ", first.column-1)
		a.edits = append(a.edits, edit{at: a.starts[first.line-1], text: indent + name + ":\n" + blockItems(indent+"  ", entries), rank: -1})
		return nil
	}
	return a.extend(have, name, entries)
}

// extend adds to a list that is there.
func (a *amending) extend(have *pair, name string, entries []Addition) error {
	list := &have.value
	switch {
	case list.kind == listNode && a.begins(list, '['):
		text := flowItems(entries)
		if len(list.items) > 0 {
			text += ", "
		}
		a.above(&have.key, entries)
		a.put(a.at(list)+1, text)
	case list.kind == listNode && a.begins(list, '-'):
		a.put(a.starts[list.line-1], blockItems(strings.Repeat(" ", list.column-1), entries))
	case list.null() && list.text == "":
		a.put(a.after(&have.key), blockItems(strings.Repeat(" ", have.key.column+1), entries))
	case name == "egress" && list.kind == textNode && list.plain && (list.text == "none" || list.text == "public"):
		text := flowItems(entries)
		if list.text == "public" {
			text = "public, " + text
		}
		a.above(&have.key, entries)
		a.edits = append(a.edits, edit{at: a.at(list), length: len(list.text), text: "[" + text + "]"})
	default:
		return unwritable{"something else"}
	}
	return nil
}

// after is the offset of the line behind a key's.
func (a *amending) after(key *node) int {
	if key.line < len(a.starts) {
		return a.starts[key.line]
	}
	a.put(len(a.text), "\n") // the last line has no end
	return len(a.text)
}

// above puts the reasons on lines of their own over the one that a key stands in.
func (a *amending) above(key *node, entries []Addition) {
	start := a.starts[key.line-1]
	line := a.text[start:]
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s# %s: %s\n", indent, commentText(e.Entry), commentText(e.Because))
	}
	a.put(start, b.String())
}

// section adds a list in a section that is not there, after all others.
func (a *amending) section(section, name string, entries []Addition) {
	head := section + ":\n"
	if !slices.Contains(a.tail, head) {
		a.tail = append(a.tail, "\n", head)
	}
	a.tail = append(a.tail, "  "+name+":\n"+blockItems("    ", entries))
}

func (a *amending) apply() string {
	slices.SortStableFunc(a.edits, func(x, y edit) int { return cmp.Or(x.at-y.at, x.rank-y.rank) })
	var b strings.Builder
	done := 0
	for _, e := range a.edits {
		b.WriteString(a.text[done:e.at])
		b.WriteString(e.text)
		done = e.at + e.length
	}
	b.WriteString(a.text[done:])
	if len(a.tail) == 0 {
		return b.String()
	}
	text := b.String()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + strings.Join(a.tail, "")
}

func blockItems(indent string, entries []Addition) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s- %s  # %s\n", indent, itemText(e), commentText(e.Because))
	}
	return b.String()
}

func flowItems(entries []Addition) string {
	items := make([]string, len(entries))
	for i, e := range entries {
		items[i] = itemText(e)
	}
	return strings.Join(items, ", ")
}

// itemText writes an entry so that it reads back as it is: ports are numbers, all else is in
// double quotes.
func itemText(e Addition) string {
	if e.Key == "network.listen" {
		return e.Entry
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.Entry) + `"`
}

// commentText is text that cannot end its comment. A server has a part in it.
func commentText(s string) string {
	if !plainName(s) {
		s = strconv.QuoteToASCII(s)
	}
	return s
}

// Extension writes a profile of a person's own that is a built-in one and more: under its
// name, for the same command lines.
func Extension(of *Profile) []byte {
	var b strings.Builder
	name := of.Name.Value
	fmt.Fprintf(&b, "# The built-in profile %s, and what is added here.\nversion: 1\nname: %s\n", name, quoteText(name))
	if len(of.Match.Packages)+len(of.Match.Commands) > 0 {
		b.WriteString("match:\n")
	}
	for _, m := range []struct {
		key  string
		list []Sourced[string]
	}{{"packages", of.Match.Packages}, {"commands", of.Match.Commands}} {
		items := make([]string, len(m.list))
		for i, e := range m.list {
			items[i] = quoteText(e.Value)
		}
		if len(items) > 0 {
			fmt.Fprintf(&b, "  %s: [%s]\n", m.key, strings.Join(items, ", "))
		}
	}
	fmt.Fprintf(&b, "extends: [%s]\n", quoteText(name))
	return []byte(b.String())
}
