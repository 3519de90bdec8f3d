package hostconfig

import "slices"

// Masking says what texts become for people. One that comes back as it was stays.
type Masking struct {
	Variable string                        // in the place of a variable's value, a header's, and whatever else an entry nests
	Text     func(key, text string) string // any other text, with the key that it stands under
	Words    func(words []string) []string // a list of text; as many come back
}

// Masked returns the file with texts masked, for showing it. It is false, without bytes, when one
// that has to be masked is written in a form whose end is not known. Comments stay.
func (f *File) Masked(by Masking) ([]byte, bool) {
	k := masker{file: f, by: by, entries: map[*node]bool{}}
	for i := range f.Servers {
		s := &f.Servers[i]
		k.entries[s.entry], k.entries[s.holder] = true, true
	}
	k.walk(f.root, "")
	if k.lost {
		return nil, false
	}
	return slices.Concat(f.mark, apply(f.src, k.changes)), true
}

type masker struct {
	file    *File
	by      Masking
	entries map[*node]bool // tables of entries, and those that hold their command lines
	changes []splice
	lost    bool
}

func (k *masker) walk(n *node, key string) {
	switch n.kind {
	case table:
		for i := range n.members {
			m := &n.members[i]
			if k.entries[n] && !k.entries[m.value] && m.value.kind == table {
				k.all(m.value)
			} else {
				k.walk(m.value, m.key)
			}
		}
	case list:
		k.list(n, key)
	case text:
		k.replace(n, k.by.Text(key, n.text))
	case plain:
	}
}

func (k *masker) list(n *node, key string) {
	if slices.ContainsFunc(n.items, func(item *node) bool { return item.kind == list || item.kind == table }) {
		for _, item := range n.items {
			k.walk(item, key)
		}
		return
	}
	var words []string
	for _, item := range n.items {
		words = append(words, item.text)
	}
	for i, word := range k.by.Words(words) {
		k.replace(n.items[i], word)
	}
}

// all masks every value below a node.
func (k *masker) all(n *node) {
	for i := range n.members {
		k.all(n.members[i].value)
	}
	for _, item := range n.items {
		k.all(item)
	}
	if (n.kind == text || n.kind == plain) && n.text != "" {
		k.replace(n, k.by.Variable)
	}
}

func (k *masker) replace(n *node, word string) {
	switch {
	case word == n.text || n.shared == anAlias: // what it stands for is masked in its place
	case n.odd != "":
		k.lost = true
	default:
		k.changes = append(k.changes, splice{n.start, n.end, k.file.syntax.quote(word)})
	}
}

// WordPlace is the line and column of a word of an entry's command line, the launcher's words
// counted, from 0; 0 and 0 when it has none of that number.
func (f *File) WordPlace(ref Ref, at int) (line, column int) {
	s := f.find(ref)
	if s == nil || s.Kind != Command {
		return 0, 0
	}
	command, _ := s.holder.find(s.keys.Command)
	words := command.value.items
	if s.keys.Args != "" {
		words = []*node{command.value}
		if args, _ := s.holder.find(s.keys.Args); args != nil {
			words = append(words, args.value.items...)
		}
	}
	if at < 0 || at >= len(words) {
		return 0, 0
	}
	return f.place(words[at].start)
}
