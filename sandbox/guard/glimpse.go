package guard

import "github.com/go-json-experiment/json/jsontext"

// glimpse looks for the id of a message that cannot be parsed, or is too large to be held.
// It decides only who is told that the message did not pass.
type glimpse struct {
	depth           int
	quoted, escaped bool
	value           bool // behind the colon of a key at the top
	nested          bool // the value at the top is an object or a list
	key, text       []byte
	id              []byte
	ids             int
	method, version bool
}

func glimpseOf(line []byte) *glimpse {
	g := &glimpse{}
	g.feed(line)
	return g
}

// found returns the id, if there is exactly one. asks tells whether the message is a request.
func (g *glimpse) found() (id []byte, key string, asks bool) {
	if g.ids != 1 || len(g.id) == 0 || !jsontext.Value(g.id).IsValid() {
		return nil, "", false
	}
	key, err := idKey(g.id)
	if err != nil {
		return nil, "", false
	}
	return g.id, key, g.method
}

func (g *glimpse) feed(text []byte) {
	for _, c := range text {
		g.next(c)
	}
}

func (g *glimpse) next(c byte) {
	if g.quoted {
		g.keep(c)
		switch {
		case g.escaped:
			g.escaped = false
		case c == '\\':
			g.escaped = true
		case c == '"':
			g.quoted = false
		}
		return
	}
	switch c {
	case ' ', '\t', '\r', '\n':
	case '"':
		g.quoted = true
		g.keep(c)
	case '{', '[':
		g.nested = g.depth > 0
		g.depth++
	case '}', ']':
		g.depth--
		if g.depth == 0 {
			g.member()
		}
	case ',':
		if g.depth == 1 {
			g.member()
		}
	case ':':
		if g.depth == 1 && !g.value {
			g.key, g.text, g.value = append(g.key[:0], g.text...), g.text[:0], true
		}
	default:
		g.keep(c)
	}
}

// keep holds on to what stands at the top, as far as an id goes.
func (g *glimpse) keep(c byte) {
	if g.depth == 1 && len(g.text) <= maxID {
		g.text = append(g.text, c)
	}
}

// member is the end of a key's value at the top.
func (g *glimpse) member() {
	switch string(g.key) {
	case `"id"`:
		g.ids++
		if !g.nested && len(g.text) <= maxID {
			g.id = append([]byte(nil), g.text...)
		}
	case `"method"`:
		g.method = true
	case `"jsonrpc"`:
		g.version = true
	}
	g.key, g.text, g.value, g.nested = g.key[:0], g.text[:0], false, false
}
