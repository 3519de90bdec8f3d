package hostconfig

import (
	"bytes"
	"slices"
)

// Unwrap returns the file with the launcher taken away from the named entries. An entry
// that is not wrapped stays as it is. On an error, an [*Error], there are no bytes: an entry
// with a Refusal, a name without an entry, or something of a person's between the
// launcher's words, such as a comment, that would be lost.
func (f *File) Unwrap(refs ...Ref) ([]byte, error) {
	plan, err := f.unwrap(refs)
	if err != nil {
		return nil, err
	}
	out := slices.Concat(f.mark, apply(f.src, plan.changes))
	got, err := Parse(f.Name, out, f.Place)
	if err != nil || !plan.want.same(f.root, got.root) {
		return nil, f.failEdit(refs, "the entry's layout does not let the launcher be taken away: the result would not read as wanted")
	}
	return out, nil
}

// unwrapping is the change of a file, and what is to come of it.
type unwrapping struct {
	changes []splice
	want    revision
}

func (f *File) unwrap(refs []Ref) (unwrapping, error) {
	plan := unwrapping{want: revision{}}
	for _, ref := range refs {
		s, err := f.editable(ref)
		if err != nil {
			return plan, err
		}
		if s.Wrapped == nil || plan.want[s.holder] != nil {
			continue
		}
		cut := f.unwrapOne(s)
		if cut.lost {
			return plan, f.failServer(s, "something stands between the launcher's words that unwrapping would lose")
		}
		plan.changes = append(plan.changes, cut.changes...)
		plan.want[s.holder] = s.revisedUnwrapped(cut.whole)
	}
	return plan, nil
}

// removal is what unwrapping one entry takes away.
type removal struct {
	changes []splice
	whole   whole
	lost    bool // something else than our words would go
}

// whole says whether the list of words goes too.
type whole uint8

const (
	keepList whole = iota
	dropList       // it was not there before
)

func (f *File) unwrapOne(s *Server) removal {
	command, _ := s.holder.find(s.keys.Command)
	if s.keys.Args == "" {
		count := len(s.Wrapped.Words) + 2 // the launcher and "--"
		change, lost := f.remove(command, command.value.items[:count], command.value.items[count:])
		return removal{changes: []splice{change}, lost: lost}
	}
	args, _ := s.holder.find(s.keys.Args)
	count := len(s.Wrapped.Words) + 2 // "--" and the command
	ours, rest := args.value.items[:count], args.value.items[count:]
	own := ours[count-1]
	replace := splice{command.value.start, command.value.end, string(f.src[own.start:own.end])}
	lost := own.odd != "" || own.shared != ""
	if len(rest) == 0 && f.inserted(command, args) {
		cut := splice{command.value.end, args.value.end, ""}
		_, more := f.remove(args, ours, nil)
		return removal{[]splice{replace, cut}, dropList, lost || more}
	}
	change, more := f.remove(args, ours, rest)
	return removal{[]splice{replace, change}, keepList, lost || more}
}

// inserted knows the layout of a list that wrapping has added.
func (f *File) inserted(command, args *member) bool {
	n := args.value
	return !n.block && n.odd == "" && bytes.HasPrefix(f.src[n.start:], []byte("[ ")) && n.items[0].start == n.start+2 &&
		n.items[len(n.items)-1].end == n.end-1 && only(f.src, command.value.end, args.lead, ", \t\r\n") &&
		only(f.src, args.keyEnd, n.start, ":= \t")
}

// remove takes the first items out of a member's list.
func (f *File) remove(m *member, ours, rest []*node) (change splice, lost bool) {
	signs := ", \t\r\n"
	if m.value.block {
		signs = "- \t\r\n"
	}
	for i := 1; i < len(ours); i++ {
		lost = lost || !only(f.src, ours[i-1].end, ours[i].start, signs)
	}
	first, last := ours[0], ours[len(ours)-1]
	switch {
	case len(rest) > 0:
		lost = lost || !only(f.src, last.end, rest[0].start, signs)
		return splice{first.lead, rest[0].lead, ""}, lost
	case m.value.block:
		// A list of dashes with no items is null, which is no list.
		lost = lost || !only(f.src, m.keyEnd, first.start, ":"+signs)
		colon := m.keyEnd + bytes.IndexByte(f.src[m.keyEnd:], ':')
		return splice{colon + 1, last.end, " []"}, lost
	}
	end := last.end
	if comma := bytes.TrimLeft(f.src[end:m.value.end], " \t\r\n"); bytes.HasPrefix(comma, []byte(",")) {
		end = m.value.end - len(comma) + 1
	}
	return splice{first.start, end, ""}, lost
}

// revisedUnwrapped is the table of a server's command line as unwrapping is meant to leave
// it.
func (s *Server) revisedUnwrapped(w whole) *node {
	count := len(s.Wrapped.Words) + 2
	if s.keys.Args == "" {
		command, _ := s.holder.find(s.keys.Command)
		return s.holder.with(s.keys.Command, &node{kind: list, items: command.value.items[count:]})
	}
	out := s.holder.with(s.keys.Command, &node{kind: text, text: s.Wrapped.Line[0]})
	if w == dropList {
		out.members = slices.DeleteFunc(out.members, func(m member) bool { return m.key == s.keys.Args })
		return out
	}
	args, _ := s.holder.find(s.keys.Args)
	return out.with(s.keys.Args, &node{kind: list, items: args.value.items[count:]})
}
