package packages

import (
	"strconv"
	"strings"
)

// The code is not parsed: what is looked for are the few spellings in which programs ask for
// a variable by its name.

// script looks through JavaScript or TypeScript.
func (p *page) script() {
	p.rank = 1
	for _, object := range [...]string{"process.env", "Bun.env"} {
		p.each(object, func(start, end int) {
			if start > 0 && isWord(p.text[start-1]) || end < len(p.text) && isWord(p.text[end]) {
				return
			}
			p.member(end)
			p.unpacked(start)
		})
	}
	// The environment under a name of its own: a parameter, a field, import.meta.env.
	p.each("env.", func(start, end int) {
		if name := word(p.text[end:]); (start == 0 || !isWord(p.text[start-1])) && largeWords(name) {
			p.variable(name, end)
		}
	})
	p.each("Deno.env.get(", func(_, end int) { p.quotedVariable(end) })
	p.literals()
}

// each calls found for every place of a text.
func (p *page) each(word string, found func(start, end int)) {
	for from := 0; ; {
		at := strings.Index(p.text[from:], word)
		if at < 0 {
			return
		}
		from += at + len(word)
		found(from-len(word), from)
	}
}

// member takes .NAME, ?.NAME, ["NAME"] or ?.["NAME"] behind an object.
func (p *page) member(at int) {
	at = p.skip(at)
	at += len(prefix(p.text[at:], "?"))
	if dot := prefix(p.text[at:], "."); dot != "" {
		at = p.skip(at + 1)
		if name := word(p.text[at:]); name != "" {
			p.variable(name, at)
			return
		}
	}
	if prefix(p.text[at:], "[") != "" {
		p.quotedVariable(at + 1)
	}
}

// quotedVariable takes a name in quotes.
func (p *page) quotedVariable(at int) {
	at = p.skip(at)
	if name, ok := quoted(p.text[at:]); ok {
		p.variable(name, at)
	}
}

// maxPattern bounds how far before its value a pattern may begin, in bytes.
const maxPattern = 4000

// unpacked takes the names of `{A, B: b, C = "x"} = process.env`.
func (p *page) unpacked(at int) {
	before := strings.TrimRight(p.text[max(0, at-maxPattern):at], " \t\r\n")
	pattern, assigned := strings.CutSuffix(before, "=")
	if !assigned {
		return
	}
	pattern = strings.TrimRight(pattern, " \t\r\n")
	if !strings.HasSuffix(pattern, "}") {
		return
	}
	depth, open := 0, -1
	for i := len(pattern) - 1; i >= 0 && open < 0; i-- {
		switch pattern[i] {
		case '}':
			depth++
		case '{':
			if depth--; depth == 0 {
				open = i
			}
		}
	}
	if open < 0 {
		return
	}
	offset := max(0, at-maxPattern) + open + 1
	depth = 0
	start := true // of a property
	inside := pattern[open+1 : len(pattern)-1]
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case c == '{' || c == '[' || c == '(':
			depth++
		case c == '}' || c == ']' || c == ')':
			depth--
		case c == ',' && depth == 0:
			start = true
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case start && depth == 0:
			if name := word(inside[i:]); name != "" {
				p.variable(name, offset+i)
			}
		}
		start = false
	}
}

// python looks through Python.
func (p *page) python() {
	p.rank = 1
	p.each("environ", func(start, end int) {
		if start > 0 && isWord(p.text[start-1]) || end < len(p.text) && isWord(p.text[end]) {
			return
		}
		rest := p.text[end:]
		for _, call := range [...]string{"[", ".get(", ".pop(", ".setdefault("} {
			if prefix(rest, call) != "" {
				p.quotedVariable(end + len(call))
			}
		}
	})
	p.each("getenv(", func(_, end int) { p.quotedVariable(end) })
	p.each("envvar=", func(_, end int) { p.quotedVariable(end) }) // click, typer
	p.literals()
}

// literals takes the hosts of texts in code that begin with https://. Others are sentences
// and comments that name a page to read.
func (p *page) literals() {
	p.each("https://", func(start, end int) {
		if start == 0 || strings.IndexByte("\"'`", p.text[start-1]) < 0 {
			return
		}
		at := end
		for at < len(p.text) && (isLetter(p.text[at]) || isDigit(p.text[at]) || p.text[at] == '.' || p.text[at] == '-') {
			at++
		}
		host := strings.ToLower(p.text[end:at])
		port := "443"
		if at < len(p.text) && p.text[at] == ':' {
			digits := at + 1
			for at++; at < len(p.text) && isDigit(p.text[at]); at++ {
			}
			port = p.text[digits:at]
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
				return
			}
		}
		// Anything else goes on with a value that is not known here.
		if at == len(p.text) || strings.IndexByte("\"'`/?#", p.text[at]) < 0 || !hostName(host) {
			return
		}
		p.note(p.reader.hosts, host+":"+port, start)
	})
}

// skip passes white space.
func (p *page) skip(at int) int {
	for at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[at]) >= 0 {
		at++
	}
	return at
}

func prefix(s, want string) string {
	if strings.HasPrefix(s, want) {
		return want
	}
	return ""
}

// word is the name that a text begins with.
func word(s string) string {
	end := 0
	for end < len(s) && end <= maxVariable && isWord(s[end]) {
		end++
	}
	return s[:end]
}

// quoted is what stands in the quotes that a text begins with, when it is one word.
func quoted(s string) (string, bool) {
	if s == "" || strings.IndexByte("\"'`", s[0]) < 0 {
		return "", false
	}
	name := word(s[1:])
	if len(name)+1 >= len(s) || s[len(name)+1] != s[0] {
		return "", false
	}
	return name, true
}
