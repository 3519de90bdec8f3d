package hostconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// syntax is what differs between the formats.
type syntax interface {
	// read turns text without a byte-order mark into a tree. Its text begins at offset 0.
	read(src []byte) (*node, *problem)
	// quote writes a word so that it can stand as a value, also in a list.
	quote(word string) string
	// key writes what goes between a member's value and that of a new member behind it.
	key(src []byte, holder *node, before *member, name string) string
}

// syntaxOf is nil for a format that nobody edits here.
func syntaxOf(f Format) syntax {
	switch f {
	case JSON:
		return jsonSyntax{}
	case TOML:
		return tomlSyntax{}
	case YAML:
		return yamlSyntax{}
	case Script:
	}
	return nil
}

// File is a configuration file that has been read. It is not changed by its methods.
type File struct {
	Name    string
	Place   Place
	Servers []Server // in the order of the file, shape by shape
	// Notes say what is no error and still leaves servers unseen: a table where the host
	// wants a list, or another host's key.
	Notes []*Error

	syntax syntax
	mark   []byte // the byte-order mark, or nothing
	src    []byte // what follows it
	lines  []int  // the offset of each line
	root   *node
	// unread are notes that mean nothing where another shape reads the same place.
	unread []unreadPlace
	read   map[*node]bool // places that a shape takes for its servers
}

// unreadPlace is a place of servers in a form that one shape does not take.
type unreadPlace struct {
	at   *node
	note *Error
}

// String returns the file's name: its text may hold secrets.
func (f *File) String() string { return f.Name }

// GoString returns the file's name.
func (f *File) GoString() string { return f.Name }

// maxSize bounds a file. State files with years of history stay below some ten megabytes.
const maxSize = 64 << 20

// maxTOML bounds a file that is read in the square of the number of its tables: the library
// compares each with all before it.
const maxTOML = 512 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// Parse reads a file. name is used in errors and nowhere else; place says how to read the
// text, see [Recognise] and [Guess]. The bytes are kept and must not change. An error is an
// [*Error] with the line and column where reading stopped; such a file is to be left alone.
func Parse(name string, data []byte, place Place) (*File, error) {
	f := &File{Name: name, Place: place, syntax: syntaxOf(place.Format), src: data, read: map[*node]bool{}}
	if bytes.HasPrefix(data, byteOrderMark) {
		f.mark, f.src = data[:len(byteOrderMark)], data[len(byteOrderMark):]
	}
	f.lines = lineStarts(f.src)
	switch at := invalidUTF8(f.src); {
	case f.syntax == nil:
		return nil, f.fail(problem{-1, "servers in this file are started by a program of the host's own: it is not changed", "put the launcher's words in front of each server by hand"})
	case len(data) > maxSize || place.Format == TOML && len(data) > maxTOML:
		return nil, f.fail(problem{-1, "the file is too large to be a configuration", ""})
	case at >= 0:
		return nil, f.fail(problem{at, "this is not UTF-8", "save the file as UTF-8"})
	}
	root, bad := f.syntax.read(f.src)
	if bad != nil {
		return nil, f.fail(*bad)
	}
	f.root = root
	for i := range place.Shapes {
		f.shape(&place.Shapes[i])
	}
	f.refuseTwins()
	f.note()
	return f, nil
}

// invalidUTF8 returns the first place that is none, or -1.
func invalidUTF8(src []byte) int {
	for at := 0; at < len(src); {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// place turns an offset into a line and a column, both from 1, columns in bytes.
func (f *File) place(offset int) (line, column int) {
	line, exact := slices.BinarySearch(f.lines, offset)
	if exact {
		line++
	}
	return line, offset - f.lines[line-1] + 1
}

func (f *File) fail(p problem) *Error {
	e := &Error{File: f.Name, Message: p.message, Hint: p.hint}
	if p.at >= 0 {
		e.Line, e.Column = f.place(p.at)
	}
	return e
}

// shape adds the servers that are where one shape says.
func (f *File) shape(s *Shape) {
	if len(s.If) > 0 && !f.holdsTables(s.If) || len(s.Unless) > 0 && f.holdsTables(s.Unless) {
		return
	}
	f.walk(f.root, s.Path, "", nil, func(n *node, project string, blocked *problem) {
		switch {
		case n.kind == table && !s.List:
			f.read[n] = true
			counts := n.counts()
			for i := range n.members {
				m := &n.members[i]
				hold := blocked
				if counts[m.key] > 1 {
					hold = &problem{m.lead, "this name is written twice: hosts take the last, people the first", "remove one"}
				}
				f.Servers = append(f.Servers, f.server(Ref{project, m.key}, m.keyStart, m.value, s.Keys, hold))
			}
		case n.kind == list && s.List:
			f.read[n] = true
			for _, item := range n.items {
				name, _ := item.find("name")
				ref, hold := Ref{Project: project}, blocked
				if name != nil && name.value.kind == text {
					ref.Name = name.value.text
				} else if hold == nil {
					hold = &problem{item.start, "the entry has no name", "give it one"}
				}
				f.Servers = append(f.Servers, f.server(ref, item.start, item, s.Keys, hold))
			}
		case n.kind == table || n.kind == list:
			want := "a table with a name for each server"
			if s.List {
				want = "a list of servers"
			}
			f.unread = append(f.unread, unreadPlace{n, f.fail(problem{n.start, strings.Join(s.Path, ".") + ": this host wants " + want + " here", ""})})
		case n.kind == text && n.text != "":
			f.Notes = append(f.Notes, f.fail(problem{n.start, strings.Join(s.Path, ".") + ": a server's command line in one text is not changed", "write it as an entry of its own"}))
		}
	})
}

// walk visits every node that a path leads to. blocked says why nothing below can be
// changed.
func (f *File) walk(n *node, path []string, project string, blocked *problem, visit func(*node, string, *problem)) {
	if n.shared != "" && blocked == nil {
		blocked = &problem{n.start, n.shared + " binds these servers to another place of the file", "write them out"}
	}
	if len(path) == 0 {
		visit(n, project, blocked)
		return
	}
	if n.kind != table {
		return
	}
	counts, seen := n.counts(), map[string]int{}
	for i := range n.members {
		m := &n.members[i]
		if seen[m.key]++; path[0] != "*" && !strings.EqualFold(path[0], m.key) || seen[m.key] < counts[m.key] {
			continue // hosts take the last
		}
		below, hold := project, blocked
		if path[0] == "*" {
			below = m.key
		} else if path[0] != m.key {
			if hold == nil {
				hold = &problem{m.lead, fmt.Sprintf("%q is %q but for case: some hosts take either", m.key, path[0]), asDocumented}
			}
		} else if other := n.otherCase(path[0]); other != nil && hold == nil {
			hold = &problem{other.lead, fmt.Sprintf("%q and %q differ in case only: some hosts take either", other.key, path[0]), "remove one"}
		}
		if counts[m.key] > 1 && hold == nil {
			hold = &problem{m.lead, fmt.Sprintf("%q is written twice: hosts take the last, people the first", m.key), "remove one"}
		}
		f.walk(m.value, path[1:], below, hold, visit)
	}
}

// holdsTables tells whether a path leads to a table of tables that is no server itself.
func (f *File) holdsTables(path []string) bool {
	found := false
	f.walk(f.root, path, "", nil, func(n *node, _ string, _ *problem) {
		found = n.kind == table && !looksLikeServer(n) && !slices.ContainsFunc(n.members, func(m member) bool {
			return m.value.kind != table
		})
	})
	return found
}

// refuseTwins refuses entries that share project and name: an edit could not say which.
func (f *File) refuseTwins() {
	count := map[Ref]int{}
	for i := range f.Servers {
		count[f.Servers[i].Ref]++
	}
	for i := range f.Servers {
		if s := &f.Servers[i]; count[s.Ref] > 1 && s.Refusal == nil {
			s.Refusal = f.fail(problem{s.entry.start, "two entries have this name", "rename one"})
		}
	}
}

// note looks for servers that this place's host may start and that no shape has found: in a
// form that it does not want, under another host's key, and beside the servers of another of its
// versions. Keys that no host has are no servers: formatters and language servers look like them.
func (f *File) note() {
	for _, u := range f.unread {
		if !f.read[u.at] {
			f.Notes = append(f.Notes, u.note)
		}
	}
	for i := range f.Place.Shapes {
		if s := &f.Place.Shapes[i]; len(s.If) > 0 && f.holdsTables(s.If) {
			f.noteBeside(s.If)
		}
	}
	if len(f.Servers) > 0 {
		return
	}
	for i := range f.root.members {
		m := &f.root.members[i]
		own := slices.ContainsFunc(f.Place.Shapes, func(s Shape) bool { return len(s.Path) > 0 && s.Path[0] == m.key })
		if !own && isServersKey(m.key) && holdsServers(m.value) {
			f.Notes = append(f.Notes, f.fail(problem{m.lead, fmt.Sprintf("%q looks like servers, but this host does not read it", m.key), ""}))
		}
	}
}

// noteBeside notes servers that stand beside a path's last key.
func (f *File) noteBeside(path []string) {
	last := len(path) - 1
	f.walk(f.root, path[:last], "", nil, func(n *node, _ string, _ *problem) {
		for i := range n.members {
			if m := &n.members[i]; m.key != path[last] && looksLikeServer(m.value) {
				f.Notes = append(f.Notes, f.fail(problem{m.lead, fmt.Sprintf("%q stands beside %s: one version of this host starts it, another does not", m.key, strings.Join(path, ".")), "move it there"}))
			}
		}
	})
}

// isServersKey tells whether some host keeps its servers under a key of the root.
func isServersKey(key string) bool {
	for _, h := range Hosts {
		for i := range h.Files {
			if slices.ContainsFunc(h.Files[i].Shapes, func(s Shape) bool { return len(s.Path) > 0 && strings.EqualFold(s.Path[0], key) }) {
				return true
			}
		}
	}
	return false
}
