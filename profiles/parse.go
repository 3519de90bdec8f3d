package profiles

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxFile bounds a profile, in bytes.
const maxFile = mib

// Parse reads one profile. name is what errors call the file. The error is an [Errors]
// with every problem of the file, or with the first one when its syntax is broken.
func Parse(name string, data []byte) (*Profile, error) {
	doc, err := readDocument(name, data, "a profile")
	if err != nil {
		return nil, err
	}
	r := reader{profile: &Profile{File: name}, file: name, top: profileKeys}
	r.section(profileKeys, "", &doc)
	if r.profile.Version == 0 && !r.sawVersion {
		r.fail(&doc, `write "version: 1"`, "the version is missing")
	}
	r.checkTwice()
	if err := r.errs.orNil(); err != nil {
		return nil, err
	}
	return r.profile, nil
}

// reader turns nodes into a profile by the table of keys.
type reader struct {
	profile    *Profile
	file       string
	top        []key // of the whole file
	errs       Errors
	sawVersion bool
	// written takes where each key stands; nil: nobody asks.
	written map[string]Position
}

func (r *reader) at(n *node) Position {
	return Position{File: r.file, Line: n.line, Column: n.column}
}

func (r *reader) fail(n *node, hint, format string, args ...any) {
	r.add(n, wrong(hint, format, args...))
}

func (r *reader) add(n *node, p *problem) {
	// A few more than are printed, so that the count of the rest is right for all but
	// hostile files.
	if len(r.errs) < 10*maxErrors {
		r.errs = append(r.errs, p.at(r.at(n)))
	}
}

// section reads a mapping. within is the path of its key, "" for the whole file.
func (r *reader) section(keys []key, within string, n *node) {
	if n.null() {
		r.nothing(within, n)
		return
	}
	if n.kind != mapNode {
		r.fail(n, fmt.Sprintf("write its keys below it: %s", nameList(keys)), "%s: expected a mapping, found %s", within, n.what())
		return
	}
	seen := make([]int, len(keys))
	for i := range n.pairs {
		name, value := &n.pairs[i].key, &n.pairs[i].value
		k := find(keys, name.text)
		if k < 0 {
			r.unknownKey(keys, within, name)
			continue
		}
		if seen[k] > 0 {
			r.fail(name, "keep one of them", "key %q is already written in line %d", name.text, seen[k])
			continue
		}
		seen[k] = name.line
		if r.written != nil {
			r.written[join(within, name.text)] = r.at(name)
		}
		r.value(&keys[k], join(within, name.text), value)
	}
}

// nothing takes a list or mapping without content: an empty one, that grants nothing. A
// word for nothing is refused, because not every reader of YAML takes each of them for one.
func (r *reader) nothing(path string, n *node) bool {
	if n.text == "" {
		return true
	}
	r.fail(n, "leave it out; nothing behind a key is an empty list or mapping", "%s: %s is not a value", path, n.text)
	return false
}

func join(within, name string) string {
	if within == "" {
		return name
	}
	return within + "." + name
}

func find(keys []key, name string) int {
	for i := range keys {
		if keys[i].name == name {
			return i
		}
	}
	return -1
}

func nameList(keys []key) string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	return strings.Join(names, ", ")
}

// unknownKey names the nearest key of the section, or the section that has the key.
func (r *reader) unknownKey(keys []key, within string, name *node) {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	in := ""
	if within != "" {
		in = fmt.Sprintf(" in %q", within)
	}
	hint := ""
	if near := nearest(name.text, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if home := r.sectionOf(name.text, within); home != "" {
		hint = fmt.Sprintf("%q belongs under %q", name.text, home)
	} else {
		hint = "known here: " + strings.Join(names, ", ")
	}
	r.fail(name, hint, "unknown key %q%s", name.text, in)
}

// sectionOf finds the section, other than within, that has a key.
func (r *reader) sectionOf(name, within string) string {
	for i := range r.top {
		section := &r.top[i]
		if section.name != within && find(section.keys, name) >= 0 {
			return section.name
		}
	}
	if within != "" && find(r.top, name) >= 0 {
		return "the file itself"
	}
	return ""
}

// what names the kind of a node for messages.
func (n *node) what() string {
	switch {
	case n.kind == listNode:
		return "a list"
	case n.kind == mapNode:
		return "a mapping"
	case n.null():
		return "nothing"
	}
	return "text"
}

// value reads what is written at one key.
func (r *reader) value(k *key, path string, n *node) {
	switch k.form {
	case formSection:
		if k.name == "guard" { // the key alone turns it on
			r.profile.guard().Position = r.at(n)
		}
		r.section(k.keys, path, n)
	case formVersion:
		r.version(n)
	case formText, formWord, formDuration:
		r.text(k, path, n)
	case formTexts:
		if list, ok := r.list(path, "texts", n); ok {
			*k.field(r.profile).(*[]Sourced[string]) = r.texts(k, path, list)
			if path == "guard.tools" { // an empty list admits no tool
				r.profile.guard().ToolsAt = r.at(n)
			}
		}
	case formPaths:
		if list, ok := r.list(path, "paths", n); ok {
			*k.field(r.profile).(*[]PathEntry) = r.paths(k, path, list)
		}
	case formPorts:
		if list, ok := r.list(path, "port numbers", n); ok {
			*k.field(r.profile).(*[]Sourced[uint16]) = r.ports(path, list)
		}
	case formVariables:
		*k.field(r.profile).(*[]EnvSet) = r.variables(k, path, n)
	case formSize, formCount:
		*k.field(r.profile).(*Sourced[uint64]) = r.number(k, path, n)
	case formEgress:
		r.egress(k, path, n)
	case formRoots:
		r.roots(k, path, n)
	case formSecrets:
		if list, ok := r.list(path, "variables", n); ok {
			*k.field(r.profile).(*[]Secret) = r.secrets(k, path, list)
		}
	case formMissing:
		r.missing(k, path, n)
	}
}

func (r *reader) version(n *node) {
	r.sawVersion = true
	switch {
	case n.kind == textNode && n.plain && n.text == "1":
		r.profile.Version = 1
	case n.kind == textNode && n.plain && isDigits(n.text):
		r.fail(n, `write "version: 1"`, "version %s is not known", n.text)
	default:
		r.fail(n, `write "version: 1"`, "version: expected the number 1, found %s", n.what())
	}
}

// text reads one text, word or duration into a field.
func (r *reader) text(k *key, path string, n *node) {
	text, ok := r.scalar(path, n)
	if !ok {
		return
	}
	if k.form == formWord && !r.word(k, path, n) {
		return
	}
	check := k.check
	if k.form == formDuration {
		check = checkDuration
	}
	if check != nil {
		var bad *problem
		if text, bad = check(text); bad != nil {
			r.add(n, &problem{message: path + ": " + bad.message, hint: bad.hint})
			return
		}
	}
	at := r.at(n)
	switch f := k.field(r.profile).(type) {
	case *string:
		*f = text
	case *Sourced[string]:
		*f = Sourced[string]{text, at}
	case *Sourced[MetadataMode]:
		*f = Sourced[MetadataMode]{MetadataMode(text), at}
	case *Sourced[SpecialFilesMode]:
		*f = Sourced[SpecialFilesMode]{SpecialFilesMode(text), at}
	case *Sourced[HomeMode]:
		*f = Sourced[HomeMode]{HomeMode(text), at}
	case *Sourced[ViewMode]:
		*f = Sourced[ViewMode]{ViewMode(text), at}
	case *Sourced[NamesMode]:
		*f = Sourced[NamesMode]{NamesMode(text), at}
	case *Sourced[PinsMode]:
		*f = Sourced[PinsMode]{PinsMode(text), at}
	case *Sourced[AuditPlace]:
		*f = Sourced[AuditPlace]{AuditPlace(text), at}
	default:
		panic(fmt.Sprintf("profiles: key %s has a field of type %T", path, f))
	}
}

// scalar takes a text that has to be there.
func (r *reader) scalar(path string, n *node) (string, bool) {
	switch {
	case n.null():
		r.fail(n, "write one, or remove the key; text that means nothing to YAML needs quotes", "%s: no value", path)
		return "", false
	case n.kind != textNode:
		r.fail(n, "", "%s: expected text, found %s", path, n.what())
		return "", false
	case n.text == "":
		r.fail(n, "write one, or remove it", "%s: the text is empty", path)
		return "", false
	}
	return n.text, true
}

// word tells whether a text is one of the key's words, and reports it otherwise.
func (r *reader) word(k *key, path string, n *node) bool {
	if slices.Contains(k.words, n.text) {
		return true
	}
	hint := "write " + strings.Join(k.words, " or ")
	if near := nearest(n.text, k.words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fail(n, hint, "%s: %q is not known", path, n.text)
	return false
}

// list takes the items of a list. Nothing written is an empty list: it grants nothing.
func (r *reader) list(path, of string, n *node) ([]node, bool) {
	switch {
	case n.null():
		return nil, r.nothing(path, n)
	case n.kind != listNode:
		r.fail(n, "write [...], also for one entry", "%s: expected a list of %s, found %s", path, of, n.what())
		return nil, false
	}
	return n.items, true
}

func (r *reader) texts(k *key, path string, items []node) []Sourced[string] {
	var out []Sourced[string]
	for i := range items {
		text, ok := r.scalar(path, &items[i])
		if !ok {
			continue
		}
		if k.check != nil {
			var bad *problem
			if text, bad = k.check(text); bad != nil {
				r.add(&items[i], bad)
				continue
			}
		}
		out = append(out, Sourced[string]{text, r.at(&items[i])})
	}
	return out
}

func (r *reader) ports(path string, items []node) []Sourced[uint16] {
	var out []Sourced[uint16]
	for i := range items {
		text, ok := r.scalar(path, &items[i])
		if !ok {
			continue
		}
		if !items[i].plain {
			r.fail(&items[i], "write the port without quotes", "%s: expected a number, found quoted text", path)
			continue
		}
		port, bad := checkPort(text)
		if bad != nil {
			r.add(&items[i], bad)
			continue
		}
		out = append(out, Sourced[uint16]{port, r.at(&items[i])})
	}
	return out
}

// number reads a size or a count within the key's bounds.
func (r *reader) number(k *key, path string, n *node) Sourced[uint64] {
	text, ok := r.scalar(path, n)
	if !ok {
		return Sourced[uint64]{}
	}
	read := checkCount
	if k.form == formSize {
		read = checkSize
	}
	value, bad := read(text)
	switch {
	case bad != nil:
		r.add(n, &problem{message: path + ": " + bad.message, hint: bad.hint})
		return Sourced[uint64]{}
	case k.form == formCount && !n.plain:
		r.fail(n, "write the number without quotes", "%s: expected a number, found quoted text", path)
		return Sourced[uint64]{}
	case value < k.least:
		r.fail(n, fmt.Sprintf("at least %d; sizes take a unit, such as 512MiB", k.least), "%s: %s is too small", path, text)
		return Sourced[uint64]{}
	case value > k.most:
		r.fail(n, "at most "+strconv.FormatUint(k.most, 10), "%s: %s is too large", path, text)
		return Sourced[uint64]{}
	}
	return Sourced[uint64]{value, r.at(n)}
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
