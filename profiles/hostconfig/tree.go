package hostconfig

import (
	"bytes"
	"slices"
	"strings"
)

type kind uint8

const (
	text  kind = iota
	plain      // number, true, false, null, date
	list
	table
)

// node is a value of any of the three syntaxes, with the bytes that write it.
type node struct {
	kind kind
	text string // what text says; how plain is written
	// lead is where the value begins as a list's item: its dash, where items have one.
	lead, start, end int
	// block is a list of dashes, or a table without brackets: neither has an end.
	block   bool
	odd     string // why its bytes cannot be moved or changed; "" when they can
	shared  string // which YAML sign makes it depend on another place; "" for none
	items   []*node
	members []member
}

// member is a key and its value.
type member struct {
	key string
	// lead is where the member begins: its key, or the first part of a dotted one.
	lead, keyStart, keyEnd int
	value                  *node
}

// revision says which nodes of a tree are to say something else. The tree itself is shared
// by everybody who reads the file, and never changed.
type revision map[*node]*node

// same tells whether a tree, revised, says what another one says. Order counts, layout does
// not.
func (r revision) same(a, b *node) bool {
	if revised := r[a]; revised != nil {
		a = revised
	}
	return a.kind == b.kind && a.text == b.text && a.shared == b.shared &&
		slices.EqualFunc(a.items, b.items, r.same) &&
		slices.EqualFunc(a.members, b.members, func(x, y member) bool {
			return x.key == y.key && r.same(x.value, y.value)
		})
}

// with returns a table whose first member of a key has another value.
func (n *node) with(key string, value *node) *node {
	out := *n
	out.members = slices.Clone(n.members)
	for i := range out.members {
		if out.members[i].key == key {
			out.members[i].value = value
			break
		}
	}
	return &out
}

// find returns the last member with a key, as hosts read it, and how many have that key.
func (n *node) find(key string) (last *member, count int) {
	for i := range n.members {
		if n.members[i].key == key {
			last, count = &n.members[i], count+1
		}
	}
	return last, count
}

// otherCase returns the first member whose key is another one in case only. Hosts whose
// readers do not look at case, such as those written in Go, take it for the key.
func (n *node) otherCase(key string) *member {
	for i := range n.members {
		if k := n.members[i].key; k != key && strings.EqualFold(k, key) {
			return &n.members[i]
		}
	}
	return nil
}

// counts says how many members have each key.
func (n *node) counts() map[string]int {
	out := make(map[string]int, len(n.members))
	for i := range n.members {
		out[n.members[i].key]++
	}
	return out
}

// anyShared returns the first sign in a tree that makes it depend on another place.
func (n *node) anyShared() *node {
	if n.shared != "" {
		return n
	}
	for _, item := range n.items {
		if bad := item.anyShared(); bad != nil {
			return bad
		}
	}
	for i := range n.members {
		if bad := n.members[i].value.anyShared(); bad != nil {
			return bad
		}
	}
	return nil
}

// splice replaces the bytes from start to end.
type splice struct {
	start, end int
	text       string
}

// apply makes changes that do not overlap.
func apply(src []byte, changes []splice) []byte {
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b splice) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, c := range changes {
		out.Write(src[at:c.start])
		out.WriteString(c.text)
		at = c.end
	}
	out.Write(src[at:])
	return out.Bytes()
}

// lineEnd is how the line around an offset ends; "\n" where no line does.
func lineEnd(src []byte, offset int) string {
	at := bytes.IndexByte(src[offset:], '\n')
	if at >= 0 {
		at += offset
	} else {
		at = bytes.LastIndexByte(src[:offset], '\n')
	}
	if at > 0 && src[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// blankBefore is the run of blanks and line ends right before an offset, from its last line
// end on. One without a line end is returned whole.
func blankBefore(src []byte, offset int) string {
	start := offset
	for start > 0 && bytes.IndexByte([]byte(" \t\r\n"), src[start-1]) >= 0 {
		start--
	}
	run := src[start:offset]
	if at := bytes.LastIndexByte(run, '\n'); at >= 0 {
		if at > 0 && run[at-1] == '\r' {
			at--
		}
		run = run[at:]
	}
	return string(run)
}

// only tells whether a range holds nothing but the given signs.
func only(src []byte, start, end int, signs string) bool {
	return start <= end && len(bytes.Trim(src[start:end], signs)) == 0
}

// maxDepth bounds nesting in every syntax. Session state beside the servers nests some
// tens deep; parsers that call themselves end the process at some millions.
const maxDepth = 500
