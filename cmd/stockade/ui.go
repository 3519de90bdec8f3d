package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stockade/profiles"
)

// stdio is where a command reads and prints. It is the only door to the terminal.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// voice is the word after "stockade: " on standard error.
type voice string

const (
	sayError   voice = "error"
	sayHint    voice = "hint"
	sayWarning voice = "warning"
	sayNote    voice = "note"
)

// say prints one line on standard error. The line is written with one call, so that lines
// of several processes do not mix.
func (s stdio) say(v voice, text string) {
	_, _ = io.WriteString(s.err, "stockade: "+string(v)+": "+escape(text)+"\n")
}

// fail prints what went wrong: each problem is one error line, with its own hint after it.
// Where no problem has one there is a hint for all of them.
func (s stdio) fail(err error) {
	if _, told := errors.AsType[*toldError](err); told {
		return
	}
	var many profiles.Errors
	if !errors.As(err, &many) || len(many) == 0 {
		s.say(sayError, err.Error())
		s.say(sayHint, hintOf(err))
		return
	}
	hinted := false
	for i := range many {
		s.say(sayError, many[i].Error())
		if many[i].Hint != "" {
			s.say(sayHint, many[i].Hint)
			hinted = true
		}
	}
	if !hinted {
		s.say(sayHint, hintOf(err))
	}
}

// toldError is a failure whose lines are on standard error already, from a child process.
type toldError struct{ status int }

func (e *toldError) Error() string { return "exit status " + strconv.Itoa(e.status) }

// escape makes text safe for one line of a terminal: everything that unicode.IsPrint does
// not pass (control characters, line and paragraph separators, direction overrides) and
// every byte that is not UTF-8 becomes a Go escape. Spaces other than U+0020 are escaped
// too. Escaping twice is harmless: the result holds printable characters only.
func escape(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// clean is the fast path of escape: printable ASCII only.
func clean(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// shellWord shows one word of a command so that a person can paste it back. Words with
// characters that cannot be shown are written in the $'...' form of bash, zsh and ksh.
func shellWord(word string) string {
	if word == "" {
		return "''"
	}
	plain := true
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("@%+=:,./_-", c) >= 0 {
			continue
		}
		plain = false
		break
	}
	if plain {
		return word
	}
	if escape(word) != word {
		shown := escape(strings.ReplaceAll(word, `\`, `\\`))
		return "$'" + strings.ReplaceAll(shown, "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellWords shows a command line. It is for people to read; nothing is ever started from
// it.
func shellWords(words []string) string {
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = shellWord(w)
	}
	return strings.Join(shown, " ")
}

// table prints rows in columns, two spaces apart. A column is as wide as its widest cell
// that another one follows: the last cell of a row may run on.
func table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(row)-1 {
				break
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
