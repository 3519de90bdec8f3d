package hostconfig

import (
	"bytes"
	"fmt"
	"slices"
)

// ReplaceVariable returns the file with another value for one environment variable of an
// entry: a placeholder of the host, where a secret stood. Unwrapping does not bring the
// first value back. On an error, an [*Error] that holds neither value, there are no bytes.
func (f *File) ReplaceVariable(ref Ref, name, value string) ([]byte, error) {
	m, err := f.variable(ref, name)
	if err != nil {
		return nil, err
	}
	change := splice{m.value.start, m.value.end, f.syntax.quote(value)}
	env := f.environment(f.find(ref)).value
	return f.change(ref, change, revision{env: env.with(name, &node{kind: text, text: value})})
}

// RemoveVariable returns the file without one environment variable of an entry, for a
// server that gets it in another way. The table stays, be it empty. On an error, an
// [*Error], there are no bytes: among other things when a comment beside the variable would
// go, or end up beside another one.
func (f *File) RemoveVariable(ref Ref, name string) ([]byte, error) {
	m, err := f.variable(ref, name)
	if err != nil {
		return nil, err
	}
	env := f.environment(f.find(ref))
	change, lost := f.removeMember(env, slices.IndexFunc(env.value.members, func(m member) bool { return m.key == name }))
	if lost {
		return nil, f.fail(problem{m.lead, "something stands beside this variable that removing it would lose", "remove it by hand"})
	}
	left := *env.value
	left.members = slices.DeleteFunc(slices.Clone(left.members), func(m member) bool { return m.key == name })
	return f.change(ref, change, revision{env.value: &left})
}

// environment is the member that holds an entry's variables, or nil.
func (f *File) environment(s *Server) *member {
	m, count := s.holder.find(s.keys.Env)
	if m == nil || count > 1 || m.value.kind != table {
		return nil
	}
	return m
}

// variable returns a member of an entry's environment that can be changed.
func (f *File) variable(ref Ref, name string) (*member, error) {
	s := f.find(ref)
	switch {
	case s == nil:
		return nil, &Error{File: f.Name, Message: fmt.Sprintf("there is no server %q", ref.Name)}
	case s.Refusal != nil:
		return nil, s.Refusal
	}
	env := f.environment(s)
	if env == nil {
		return nil, f.failServer(s, "the entry has no table of environment variables")
	}
	m, count := env.value.find(name)
	switch {
	case count == 0:
		return nil, f.failServer(s, fmt.Sprintf("the entry sets no variable %q", name))
	case count > 1:
		return nil, f.fail(problem{m.lead, "this variable is written twice: hosts take the last, people the first", "remove one"})
	case m.value.odd != "":
		return nil, f.fail(problem{m.value.start, m.value.odd, "write it in one line"})
	case m.value.kind == list || m.value.kind == table:
		return nil, f.fail(problem{m.value.start, "this variable's value is no text", ""})
	}
	return m, nil
}

// change makes a change in one entry, and proves that it is the wanted one and no other.
func (f *File) change(ref Ref, change splice, want revision) ([]byte, error) {
	out := slices.Concat(f.mark, apply(f.src, []splice{change}))
	got, err := Parse(f.Name, out, f.Place)
	if err != nil || !want.same(f.root, got.root) {
		return nil, f.failEdit([]Ref{ref}, "the entry's layout does not take the change: the result would not read as wanted")
	}
	return out, nil
}

// removeMember cuts one member out of a table that a member holds.
func (f *File) removeMember(holder *member, at int) (change splice, lost bool) {
	members := holder.value.members
	m := &members[at]
	switch {
	case holder.value.block && len(members) == 1 && f.Place.Format == YAML:
		// A table without brackets and without members is null, which is no table.
		colon := holder.keyEnd + bytes.IndexByte(f.src[holder.keyEnd:], ':')
		return splice{colon + 1, m.value.end, " {}"}, !only(f.src, colon+1, m.lead, " \t\r\n")
	case holder.value.block && !inLine(f.src, m.lead):
		end := bytes.IndexByte(f.src[m.value.end:], '\n') + m.value.end + 1
		if end == m.value.end {
			end = len(f.src)
		}
		return splice{lineStart(f.src, m.lead), end, ""}, !only(f.src, m.value.end, end, " \t\r\n")
	case at+1 < len(members):
		next := members[at+1].lead
		return splice{m.lead, next, ""}, !only(f.src, m.value.end, next, ", \t\r\n")
	case at > 0:
		before := members[at-1].value.end
		return splice{before, m.value.end, ""}, !only(f.src, before, m.lead, ", \t\r\n")
	}
	end := m.value.end
	if comma := bytes.TrimLeft(f.src[end:], " \t\r\n"); bytes.HasPrefix(comma, []byte(",")) {
		end = len(f.src) - len(comma) + 1
	}
	return splice{m.lead, end, ""}, false
}
