package profiles

import (
	"fmt"
	"strings"
)

// paths reads the entries of a path list: text, or a mapping with a reason.
func (r *reader) paths(k *key, path string, items []node) []PathEntry {
	var out []PathEntry
	for i := range items {
		entry, ok := r.entry(k, path, &items[i])
		if ok {
			out = append(out, entry)
		}
	}
	return out
}

func (r *reader) entry(k *key, path string, n *node) (PathEntry, bool) {
	e := PathEntry{Position: r.at(n)}
	if n.kind == textNode {
		if n.plain && n.text == "~" {
			r.fail(n, `write "~" with quotes, or "${home}"`, "%s: a bare ~ means nothing to YAML", path)
			return e, false
		}
		text, ok := r.scalar(path, n)
		if !ok {
			return e, false
		}
		clean, bad := k.check(text)
		if bad != nil {
			r.add(n, bad)
			return e, false
		}
		e.Path = clean
		return e, true
	}
	if n.kind != mapNode {
		r.fail(n, `write a path, or {path: ..., broad: true, reason: "..."}`, "%s: expected a path, found %s", path, n.what())
		return e, false
	}
	before := len(r.errs)
	broad := r.entryKeys(k, path, n, &e)
	if len(r.errs) > before {
		return e, false
	}
	switch {
	case e.Path == "":
		r.fail(n, `write {path: ..., broad: true, reason: "..."}`, "%s: the entry has no path", path)
	case e.Broad && e.Reason == "":
		r.fail(broad, `add reason: "...": who reads the profile has to know why`, "%s: broad needs a reason", path)
	case !e.Broad && e.Reason != "":
		r.fail(n, "write broad: true, or a comment", "%s: a reason has no effect without broad: true", path)
	default:
		return e, true
	}
	return e, false
}

// entryKeys reads the keys of one entry and returns the node of its broad key.
func (r *reader) entryKeys(k *key, path string, n *node, e *PathEntry) *node {
	broad := n
	lines := map[string]int{}
	for i := range n.pairs {
		name, value := &n.pairs[i].key, &n.pairs[i].value
		if lines[name.text] > 0 {
			r.fail(name, "keep one of them", "key %q is already written in line %d", name.text, lines[name.text])
			continue
		}
		lines[name.text] = name.line
		switch name.text {
		case "path":
			text, ok := r.scalar(path+".path", value)
			if !ok {
				continue
			}
			clean, bad := k.check(text)
			if bad != nil {
				r.add(value, bad)
				continue
			}
			e.Path, e.Position = clean, r.at(value)
		case "broad":
			broad = value
			switch {
			case value.kind == textNode && value.plain && value.text == "true":
				e.Broad = true
			case value.kind == textNode && value.plain && value.text == "false":
			default:
				r.fail(value, "write true or false", "%s.broad: expected true or false", path)
			}
		case "reason":
			if text, ok := r.scalar(path+".reason", value); ok {
				e.Reason = strings.TrimSpace(text)
				if e.Reason == "" {
					r.fail(value, "", "%s.reason: the text is empty", path)
				}
			}
		default:
			hint := "known here: " + strings.Join(entryKeys, ", ")
			if near := nearest(name.text, entryKeys); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.fail(name, hint, "unknown key %q in an entry of %q", name.text, path)
		}
	}
	return broad
}

// variables reads environment.set. A value is the text as it stands in the file: numbers
// and words such as yes keep their spelling.
func (r *reader) variables(k *key, path string, n *node) []EnvSet {
	if n.null() {
		r.nothing(path, n)
		return nil
	}
	if n.kind != mapNode {
		r.fail(n, "write {NAME: value}", "%s: expected a mapping from names to values, found %s", path, n.what())
		return nil
	}
	var out []EnvSet
	for i := range n.pairs {
		name, value := &n.pairs[i].key, &n.pairs[i].value
		if _, bad := k.check(name.text); bad != nil {
			r.add(name, bad)
			continue
		}
		for j := range out {
			if out[j].Name == name.text {
				r.fail(name, "keep one of them", "variable %q is already set in line %d", name.text, out[j].Line)
			}
		}
		switch {
		case value.null():
			r.fail(value, `write "" for an empty value; text that means nothing to YAML needs quotes`, "%s.%s: no value", path, name.text)
			continue
		case value.kind != textNode:
			r.fail(value, "", "%s.%s: expected text, found %s", path, name.text, value.what())
			continue
		}
		if bad := checkValue(value.text); bad != nil {
			r.add(value, &problem{message: fmt.Sprintf("%s.%s: %s", path, name.text, bad.message), hint: bad.hint})
			continue
		}
		out = append(out, EnvSet{Name: name.text, Value: value.text, Position: r.at(name)})
	}
	return out
}

func (r *reader) roots(k *key, path string, n *node) {
	if n.kind == textNode && !n.null() {
		if n.text == "" || n.text[0] == '/' || n.text[0] == '$' || n.text[0] == '~' {
			r.fail(n, "write [...], also for one folder", "%s: expected args or a list of folders, found text", path)
			return
		}
		if r.word(k, path, n) {
			r.profile.Roots.FromArgs = Sourced[bool]{true, r.at(n)}
		}
		return
	}
	if list, ok := r.list(path, "folders", n); ok {
		r.profile.Roots.ListAt = r.at(n)
		r.profile.Roots.List = r.paths(k, path, list)
		for _, e := range r.profile.Roots.List {
			if bad := checkRoot(e.Path); bad != nil {
				r.errs = append(r.errs, bad.at(e.Position))
			}
		}
	}
}

func (r *reader) missing(k *key, path string, n *node) {
	if n.kind == textNode && !n.null() {
		if n.text == "allow" {
			r.fail(n, "write {allow: [LAYER, ...]}: each layer by name", "%s: allow needs the names of layers", path)
			return
		}
		if r.word(k, path, n) {
			r.profile.Missing.Refuse = Sourced[bool]{true, r.at(n)}
		}
		return
	}
	r.section(k.keys, path, n)
}

// checkTwice reports variables that one file both passes and sets: one of the two would
// have no effect.
func (r *reader) checkTwice() {
	env := &r.profile.Environment
	report := func(at Position, name string, other Position) {
		r.errs = append(r.errs, wrong("keep one of them", "variable %q is already listed in line %d", name, other.Line).at(at))
	}
	for i, s := range env.Secrets {
		for _, p := range env.Pass {
			if p.Value == s.Name {
				report(s.Position, s.Name, p.Position)
			}
		}
		for _, earlier := range env.Secrets[:i] {
			if earlier.Name == s.Name {
				report(s.Position, s.Name, earlier.Position)
			}
		}
		for _, v := range env.Set {
			if v.Name == s.Name {
				report(v.Position, v.Name, s.Position)
			}
		}
	}
	for _, p := range env.Pass {
		for _, v := range env.Set {
			if v.Name == p.Value {
				report(v.Position, v.Name, p.Position)
			}
		}
	}
}
