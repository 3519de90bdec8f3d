package profiles

// maxKey bounds a key. YAML itself stops at 1024 characters, escapes included.
const maxKey = 128

// key reads a key and its colon. Without a colon on the line it reads nothing.
func (r *yamlReader) key() (node, bool, *syntaxError) {
	line, start, pos := r.line, r.start, r.pos
	n := r.here(textNode)
	switch c := r.peek(0); c {
	case '"', '\'':
		var err *syntaxError
		if n, err = r.quoted(); err != nil {
			return node{}, false, err
		}
		r.skipSpaces()
	case '[', '{', '|', '>', '&', '*', '!', '%', '@', '`', '#', ',', ']', '}':
		return node{}, false, nil
	default:
		if c == '?' && blank(r.peek(1)) {
			return node{}, false, r.fail(`write "key: value"`, `"?" keys are not read`)
		}
		n.text = r.plainSpan(blockContext)
	}
	if r.peek(0) == ':' && blank(r.peek(1)) && (n.style == quotedText || n.text != "") {
		r.pos++
		return n, true, r.checkKey(&n)
	}
	r.line, r.start, r.pos = line, start, pos
	return node{}, false, nil
}

// checkKey refuses keys that YAML gives a meaning of its own.
func (r *yamlReader) checkKey(n *node) *syntaxError {
	switch {
	case len(n.text) > maxKey:
		return r.failAt(n.line, n.column, "", "the key is longer than %d bytes", maxKey)
	case n.style != plainText:
		return nil
	case n.text == "<<":
		return r.failAt(n.line, n.column, `write the keys out, or use "extends"`, "YAML merge keys are not read")
	case n.text[0] == ':' || n.text[0] == '?' || n.text[0] == '-' && len(n.text) == 1:
		return r.failAt(n.line, n.column, "put quotes around it", "a key cannot begin with %q", n.text[:1])
	}
	return nil
}
