package profiles

// flow reads a list in square brackets or a mapping in braces. It may span lines.
func (r *yamlReader) flow() (node, *syntaxError) {
	if err := r.enter(); err != nil {
		return node{}, err
	}
	defer r.leave()
	if r.peek(0) == '[' {
		return r.flowList()
	}
	return r.flowMap()
}

// flowSpace moves to the next sign inside brackets, over line ends and comments.
func (r *yamlReader) flowSpace(open node) *syntaxError {
	for {
		r.skipSpaces()
		if !r.atEnd() {
			if r.marker("---") || r.marker("...") {
				return r.fail("one file holds one profile", "document marker inside brackets")
			}
			return nil
		}
		r.nextLine()
		if r.pos >= len(r.src) {
			return r.failAt(open.line, open.column, "close it with ] or }", "the bracket is never closed")
		}
	}
}

func (r *yamlReader) flowList() (node, *syntaxError) {
	n := r.here(listNode)
	r.pos++
	for {
		if err := r.flowSpace(n); err != nil {
			return node{}, err
		}
		if r.peek(0) == ']' {
			r.pos++
			return n, nil
		}
		item, err := r.flowValue()
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
		if err := r.flowComma(n, ']'); err != nil {
			return node{}, err
		}
	}
}

func (r *yamlReader) flowMap() (node, *syntaxError) {
	n := r.here(mapNode)
	r.pos++
	for {
		if err := r.flowSpace(n); err != nil {
			return node{}, err
		}
		if r.peek(0) == '}' {
			r.pos++
			return n, nil
		}
		p, err := r.flowPair(n)
		if err != nil {
			return node{}, err
		}
		n.pairs = append(n.pairs, p)
		if err := r.flowComma(n, '}'); err != nil {
			return node{}, err
		}
	}
}

// flowPair reads "key: value" inside braces. Key and colon stand on one line.
func (r *yamlReader) flowPair(open node) (pair, *syntaxError) {
	if c := r.peek(0); c == '[' || c == '{' {
		return pair{}, r.fail("write a plain key", "a list or mapping cannot be a key")
	}
	key, err := r.flowValue()
	if err != nil {
		return pair{}, err
	}
	r.skipSpaces()
	if r.peek(0) != ':' || !blank(r.peek(1)) {
		return pair{}, r.fail(`write "key: value", with a space after the colon`, "a key without a value")
	}
	if key.text == "" {
		return pair{}, r.failAt(key.line, key.column, `write "key: value"`, "an empty key")
	}
	if err := r.checkKey(&key); err != nil {
		return pair{}, err
	}
	r.pos++
	nothing := r.here(textNode)
	if err := r.flowSpace(open); err != nil {
		return pair{}, err
	}
	if c := r.peek(0); c == ',' || c == '}' {
		return pair{key: key, value: nothing}, nil
	}
	value, err := r.flowValue()
	return pair{key: key, value: value}, err
}

func (r *yamlReader) flowValue() (node, *syntaxError) {
	switch c := r.peek(0); c {
	case '[', '{':
		return r.flow()
	case '"', '\'':
		return r.quoted()
	case '|', '>':
		return node{}, r.fail("put quotes around the text", "block text cannot stand inside brackets")
	}
	return r.plain(flowContext)
}

// flowComma ends an entry: a comma, or the closing bracket, which it leaves in place.
func (r *yamlReader) flowComma(open node, closing byte) *syntaxError {
	if err := r.flowSpace(open); err != nil {
		return err
	}
	switch c := r.peek(0); c {
	case ',':
		r.pos++
		return nil
	case closing:
		return nil
	case ':':
		return r.fail(`write {key: value} for a mapping; put quotes around text that holds ": "`, `":" inside a list`)
	default:
		return r.fail("separate entries with commas; put quotes around text that holds brackets", "expected a comma or %q", closing)
	}
}
