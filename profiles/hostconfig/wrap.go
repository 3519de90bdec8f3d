package hostconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Edit puts a launcher before one server's command line:
//
//	LAUNCHER run WORDS… -- COMMAND ARGS…
type Edit struct {
	Ref
	Launcher string   // "stockade", or a path that ends in "/stockade"
	Words    []string // between "run" and "--", as in ["--profile", "github"]
}

// Wrap returns the file with every edit made. An entry that is wrapped already stays as it
// is, whatever its words. On an error, an [*Error] that names the entry's place, there are
// no bytes: an entry with a Refusal, an edit of no entry, or a layout whose edit would not
// read back as wanted and unwrap to the same bytes.
func (f *File) Wrap(edits ...Edit) ([]byte, error) {
	out, err := f.wrapAll(edits)
	if err == nil || len(edits) < 2 {
		return out, err
	}
	for _, e := range edits { // whose fault it is
		if _, alone := f.wrapAll([]Edit{e}); alone != nil {
			return nil, alone
		}
	}
	return nil, err
}

func (f *File) wrapAll(edits []Edit) ([]byte, error) {
	want := revision{}
	var changes []splice
	var refs []Ref
	for _, e := range edits {
		s, err := f.editable(e.Ref)
		if err != nil {
			return nil, err
		}
		if s.Wrapped != nil || slices.Contains(refs, e.Ref) {
			continue
		}
		if why := e.unusable(); why != "" {
			return nil, f.failServer(s, why)
		}
		refs = append(refs, e.Ref)
		changes = append(changes, f.wrapOne(s, &e)...)
		want[s.holder] = s.revisedWrapped(&e)
	}
	out := slices.Concat(f.mark, apply(f.src, changes))
	got, err := Parse(f.Name, out, f.Place)
	if err != nil || !want.same(f.root, got.root) {
		return nil, f.failEdit(refs, "the entry's layout cannot take the launcher: the result would not read as wanted")
	}
	for _, ref := range refs {
		if s := got.find(ref); s.Wrapped == nil || !slices.Equal(s.Own(), f.find(ref).Own()) {
			return nil, f.failEdit(refs, "the entry's layout cannot take the launcher: the server's own command line would change")
		}
	}
	if back, err := got.unwrap(refs); err != nil || !bytes.Equal(apply(got.src, back.changes), f.src) {
		return nil, f.failEdit(refs, "the entry's layout cannot take the launcher: unwrapping would not give the same bytes")
	}
	return out, nil
}

// unusable says what is wrong with an edit; "" when nothing is.
func (e *Edit) unusable() string {
	switch {
	case e.Launcher != launcherName && (!strings.HasPrefix(e.Launcher, "/") || !isLauncher(e.Launcher)):
		return `the launcher has to be "stockade", or an absolute path that ends so: nothing else is known again`
	case slices.Contains(e.Words, "--"):
		return `"--" ends the launcher's words and cannot be one of them`
	}
	for _, word := range append([]string{e.Launcher}, e.Words...) {
		if strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "a word for the launcher holds a control character"
		}
	}
	return ""
}

// wrapOne is the change of one entry.
func (f *File) wrapOne(s *Server, e *Edit) []splice {
	command, _ := s.holder.find(s.keys.Command)
	tokens := []string{f.syntax.quote("run")}
	for _, word := range append(slices.Clone(e.Words), "--") {
		tokens = append(tokens, f.syntax.quote(word))
	}
	launcher := f.syntax.quote(e.Launcher)
	if s.keys.Args == "" {
		return []splice{f.insert(command.value, append([]string{launcher}, tokens...))}
	}
	tokens = append(tokens, string(f.src[command.value.start:command.value.end]))
	replace := splice{command.value.start, command.value.end, launcher}
	if args, _ := s.holder.find(s.keys.Args); args != nil {
		return []splice{replace, f.insert(args.value, tokens)}
	}
	replace.text += f.syntax.key(f.src, s.holder, command, s.keys.Args) + "[ " + strings.Join(tokens, ", ") + "]"
	return []splice{replace}
}

// insert puts tokens before a list's items, laid out like the first of them.
func (f *File) insert(n *node, tokens []string) splice {
	if len(n.items) == 0 {
		return splice{n.start + 1, n.start + 1, strings.Join(tokens, ", ")}
	}
	at := n.items[0].lead
	gap := blankBefore(f.src, at)
	var out strings.Builder
	for _, token := range tokens {
		switch {
		case n.block:
			out.WriteString("- " + token + gap)
		case strings.Contains(gap, "\n"):
			out.WriteString(token + "," + gap)
		default:
			out.WriteString(token + ", ")
		}
	}
	return splice{at, at, out.String()}
}

// revisedWrapped is the table of a server's command line as the edit is meant to leave it.
func (s *Server) revisedWrapped(e *Edit) *node {
	words := slices.Concat([]string{"run"}, e.Words, []string{"--"})
	command, _ := s.holder.find(s.keys.Command)
	if s.keys.Args == "" {
		words = append([]string{e.Launcher}, words...)
		return s.holder.with(s.keys.Command, &node{kind: list, items: append(said(words), command.value.items...)})
	}
	items := said(append(words, s.Command))
	out := s.holder.with(s.keys.Command, &node{kind: text, text: e.Launcher})
	if args, _ := s.holder.find(s.keys.Args); args != nil {
		return out.with(s.keys.Args, &node{kind: list, items: append(items, args.value.items...)})
	}
	at := slices.IndexFunc(out.members, func(m member) bool { return m.key == s.keys.Command })
	out.members = slices.Insert(out.members, at+1, member{key: s.keys.Args, value: &node{kind: list, items: items}})
	return out
}

// said are nodes that say words.
func said(words []string) []*node {
	var items []*node
	for _, word := range words {
		items = append(items, &node{kind: text, text: word})
	}
	return items
}

// find returns the entry with a name, or nil.
func (f *File) find(ref Ref) *Server {
	for i := range f.Servers {
		if f.Servers[i].Ref == ref {
			return &f.Servers[i]
		}
	}
	return nil
}

// editable returns an entry that may be changed.
func (f *File) editable(ref Ref) (*Server, error) {
	s := f.find(ref)
	switch {
	case s == nil:
		return nil, &Error{File: f.Name, Message: fmt.Sprintf("there is no server %q", ref.Name)}
	case s.Refusal != nil:
		return nil, s.Refusal
	case s.Kind != Command:
		return nil, f.failServer(s, "the entry is "+s.Kind.String()+": it starts no program here")
	}
	return s, nil
}

func (f *File) failServer(s *Server, message string) *Error {
	return &Error{File: f.Name, Line: s.Line, Column: s.Column, Message: message}
}

// failEdit blames the only entry of an edit, or the file.
func (f *File) failEdit(refs []Ref, message string) *Error {
	if len(refs) == 1 {
		return f.failServer(f.find(refs[0]), message)
	}
	return &Error{File: f.Name, Message: message}
}
