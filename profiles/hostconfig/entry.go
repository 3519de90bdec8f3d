package hostconfig

import (
	"fmt"
	"slices"
	"strings"
)

// entryReader reads one entry and keeps the first reason against changing it.
type entryReader struct {
	file *File
	out  *Server
}

func (r entryReader) refuse(at int, message, hint string) {
	if r.out.Refusal == nil {
		r.out.Refusal = r.file.fail(problem{at, message, hint})
	}
}

func (r entryReader) wrong(at int, message, hint string) {
	r.out.Kind = Wrong
	r.refuse(at, message, hint)
}

// one returns the value of a key that may stand once, and nil when it is not there or null.
func (r entryReader) one(n *node, key string) *node {
	if key == "" {
		return nil
	}
	m, count := n.find(key)
	if count > 1 {
		r.refuse(m.lead, fmt.Sprintf("%q is written twice in this entry: hosts take the last, people the first", key), "remove one")
	}
	if other := n.otherCase(key); other != nil {
		r.wrong(other.lead, fmt.Sprintf("%q is %q but for case: some hosts take either", other.key, key), asDocumented)
	}
	if m == nil || m.value.null() {
		return nil
	}
	return m.value
}

func (n *node) null() bool {
	return n.kind == plain && slices.Contains([]string{"null", "", "~", "Null", "NULL"}, n.text)
}

// server reads one entry. blocked says why it must not be changed whatever is in it.
func (f *File) server(ref Ref, at int, entry *node, keys *Keys, blocked *problem) Server {
	s := Server{Ref: ref, entry: entry, holder: entry, keys: keys}
	s.Line, s.Column = f.place(at)
	r := entryReader{f, &s}
	if blocked != nil {
		r.refuse(blocked.at, blocked.message, blocked.hint)
		if blocked.ofCase() {
			s.Kind = Wrong
		}
	}
	if bad := entry.anyShared(); bad != nil {
		r.refuse(bad.start, bad.shared+" binds this entry to another place of the file", "write the entry out")
	}
	if entry.kind != table {
		r.wrong(entry.start, "the entry is no table of keys", "")
		return s
	}
	r.kind()
	r.settings()
	return s
}

// kind decides what the entry starts.
func (r entryReader) kind() {
	s := r.out
	command := r.one(s.entry, s.keys.Command)
	kindOf := ""
	if n := r.one(s.entry, "type"); n != nil && n.kind == text {
		kindOf = n.text
	}
	var url *node
	for _, key := range urlKeys {
		if n := r.one(s.entry, key); n != nil && n.kind == text && url == nil {
			url, s.URL = n, n.text
		}
	}
	switch {
	case s.Kind == Wrong: // a key was written in another case
	case s.keys.Command == gooseKeys.Command && slices.Contains(builtinTypes, kindOf):
		switch {
		case command != nil:
			r.wrong(command.start, "the entry is both a part of the host and a command", "remove one")
		case kindOf == inlineType:
			s.Kind = Inline
		default:
			s.Kind = Builtin
		}
	case command != nil && (url != nil || slices.Contains(remoteTypes, kindOf)):
		r.wrong(command.start, "the entry is both a command and an address: hosts differ in which they take", "remove one")
	case command != nil:
		r.command(command)
	case url != nil:
		s.Kind = Remote
	default:
		s.Kind = Empty
	}
}

// command reads the command line, in the form that the host reads.
func (r entryReader) command(n *node) {
	s := r.out
	if s.keys.Args == "" {
		if n.kind != list || len(n.items) == 0 {
			r.wrong(n.start, fmt.Sprintf("this host wants %q as a list of words", s.keys.Command), "")
			return
		}
		words := r.words(n, s.keys.Command)
		if s.Kind != Wrong && words[0] == "" {
			r.wrong(n.start, "the command is empty", "")
		}
		if s.Kind != Wrong {
			s.Command, s.Args = words[0], words[1:]
			s.Wrapped = wrapping(words)
		}
		return
	}
	if n.kind == table && s.keys.Nested {
		s.holder, s.keys = n, nestedKeys
		if n = r.one(s.holder, s.keys.Command); n == nil {
			r.wrong(s.holder.start, "the command has no path", "")
			return
		}
	}
	switch {
	case n.kind != text:
		r.wrong(n.start, fmt.Sprintf("this host wants %q as text", s.keys.Command), "")
	case n.text == "":
		r.wrong(n.start, "the command is empty", "")
	case wholeLine(n.text):
		r.wrong(n.start, "the command is a whole line: hosts take it as one name and start nothing", "put the words behind the first into "+s.keys.Args)
	case n.odd != "":
		r.refuse(n.start, n.odd, "write it in one line")
	}
	s.Command = n.text
	r.one(s.holder, s.keys.Args)
	if m, _ := s.holder.find(s.keys.Args); m != nil {
		if m.value.kind != list {
			r.wrong(m.value.start, fmt.Sprintf("%q is no list of words", s.keys.Args), "")
			return
		}
		s.Args = r.words(m.value, s.keys.Args)
	}
	if s.Kind != Wrong {
		s.Wrapped = wrapping(append([]string{s.Command}, s.Args...))
	}
}

// words reads a list of text.
func (r entryReader) words(n *node, key string) []string {
	var words []string
	if n.odd != "" {
		r.refuse(n.start, n.odd, "write the list in its plain form")
	}
	for _, item := range n.items {
		if item.kind != text {
			r.wrong(item.start, fmt.Sprintf("%q holds something else than text", key), "put quotes around it")
			return nil
		}
		words = append(words, item.text)
	}
	return words
}

// wholeLine knows "npx some-server" in one text. A path may have spaces; the word before
// the first space of a command line has no folder and no placeholder in it.
func wholeLine(command string) bool {
	first, _, more := strings.Cut(strings.TrimLeft(command, " \t"), " ")
	return more && !strings.ContainsAny(first, `/\$~%{`)
}

// settings reads what is beside the command line.
func (r entryReader) settings() {
	s := r.out
	if n := r.one(s.entry, "cwd"); n != nil && n.kind == text {
		s.Cwd = n.text
	}
	if n := r.one(s.entry, "disabled"); n != nil && n.kind == plain && n.text == "true" {
		s.Disabled = true
	}
	if n := r.one(s.entry, "enabled"); n != nil && n.kind == plain && n.text == "false" {
		s.Disabled = true
	}
	if n := r.one(s.entry, s.keys.Inherits); n != nil {
		for _, item := range n.items {
			if item.kind == text {
				s.Inherits = append(s.Inherits, item.text)
			}
		}
	}
	env := r.one(s.holder, s.keys.Env)
	if env == nil {
		return
	}
	for i := range env.members {
		m := &env.members[i]
		if m.value.kind == list || m.value.kind == table || m.value.null() {
			continue
		}
		v := Variable{Name: m.key, Value: Secret{&m.value.text}}
		v.Line, v.Column = r.file.place(m.keyStart)
		s.Env = append(s.Env, v)
	}
}

// looksLikeServer knows an entry by its keys.
func looksLikeServer(n *node) bool {
	if n.kind != table {
		return false
	}
	for _, key := range append([]string{"command", "cmd"}, urlKeys...) {
		if m, _ := n.find(key); m != nil && !m.value.null() && m.value.kind != plain {
			return true
		}
	}
	return false
}

// holdsServers knows a table or list with at least one such entry.
func holdsServers(n *node) bool {
	return slices.ContainsFunc(n.items, looksLikeServer) ||
		slices.ContainsFunc(n.members, func(m member) bool { return looksLikeServer(m.value) })
}
