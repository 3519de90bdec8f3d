package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// refusal is why a message does not pass, for the person and for the other side.
type refusal string

func (r refusal) Error() string { return string(r) }

// badJSON is the refusal of a line that no parser reads.
const badJSON = refusal("it is no valid JSON")

// noMessage is the refusal of a line that is not meant as a message.
const noMessage = refusal("no JSON-RPC message")

// span is a part of a line, from its first byte to before its last. The empty span is absent.
type span struct{ from, to int }

func (s span) absent() bool            { return s.to == 0 }
func (s span) of(line []byte) []byte   { return line[s.from:s.to] }
func (s span) size() int               { return s.to - s.from }
func (s span) kind(line []byte) byte   { return line[s.from] } // the first byte of a value tells its kind
func (s span) object(line []byte) bool { return !s.absent() && s.kind(line) == '{' }

// role says what a message is.
type role uint8

const (
	request role = iota + 1
	notification
	response
)

// message is one JSON-RPC message within a line.
type message struct {
	role                       role
	whole                      span
	id                         span   // as it was written, quotes included
	key                        string // the id, for comparison
	method                     string
	params, result, errorValue span
}

// form says how messages stand in a line.
type form uint8

const (
	single form = iota
	batch       // a list of messages
)

// routing are the keys of a message that decide where it goes.
var routing = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// reader parses the lines of one direction.
type reader struct {
	decoder jsontext.Decoder
	source  bytes.Buffer
}

// line parses a line strictly: one message, or a list of them.
func (r *reader) line(line []byte) ([]message, form, error) {
	if err := checkShape(line); err != nil {
		return nil, single, err
	}
	r.source = *bytes.NewBuffer(line)
	r.decoder.Reset(&r.source, jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	var out []message
	how := single
	switch r.decoder.PeekKind() {
	case '{':
		m, err := r.message(line)
		if err != nil {
			return nil, single, err
		}
		out = append(out, m)
	case '[':
		how = batch
		if err := r.list(line, &out); err != nil {
			return nil, batch, err
		}
	default:
		return nil, single, noMessage
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, how, refusal("something stands behind the message in its line")
	}
	return out, how, nil
}

// maxBatch bounds how many messages one list may hold.
const maxBatch = MaxInFlight

func (r *reader) list(line []byte, out *[]message) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return syntax(err)
	}
	for r.decoder.PeekKind() == '{' {
		if len(*out) == maxBatch {
			return refusal("a list of more than " + strconv.Itoa(maxBatch) + " messages")
		}
		m, err := r.message(line)
		if err != nil {
			return err
		}
		*out = append(*out, m)
	}
	if r.decoder.PeekKind() != ']' || len(*out) == 0 {
		return refusal("a list that does not hold messages alone")
	}
	_, err := r.decoder.ReadToken()
	return syntax(err)
}

// message parses the object that comes next.
func (r *reader) message(line []byte) (message, error) {
	var m message
	if _, err := r.decoder.ReadToken(); err != nil {
		return m, syntax(err)
	}
	m.whole.from = int(r.decoder.InputOffset()) - 1
	seen := 0 // of the routing keys, by bit
	version := false
	for r.decoder.PeekKind() != '}' {
		token, err := r.decoder.ReadToken()
		if err != nil {
			return m, syntax(err)
		}
		name := token.String()
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return m, syntax(err)
		}
		end := int(r.decoder.InputOffset())
		value := span{end - len(raw), end}
		which := -1
		for i, known := range routing {
			if name == known {
				which = i
			}
		}
		if which < 0 {
			if known := lookAlike(name, routing); known != "" {
				return m, refusal(fmt.Sprintf("the key %s looks like %q", quoted(name), known))
			}
			continue
		}
		seen |= 1 << which
		switch name {
		case "jsonrpc":
			text, isText := textOf(raw)
			version = isText && text == "2.0"
		case "id":
			m.id = value
		case "method":
			text, isText := textOf(raw)
			if !isText {
				return m, refusal("the method is no text")
			}
			m.method = text
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.errorValue = value
		}
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return m, syntax(err)
	}
	m.whole.to = int(r.decoder.InputOffset())
	if !version {
		return m, noMessage
	}
	return m, m.classify(line, seen)
}

// Bits of the routing keys, in the order of their table.
const (
	hasID = 1 << (iota + 1)
	hasMethod
	hasParams
	hasResult
	hasError
)

// classify says what the message is by the keys that it has (JSON-RPC 2.0, sections 4 and 5).
func (m *message) classify(line []byte, seen int) error {
	switch seen & (hasID | hasMethod | hasResult | hasError) {
	case hasID | hasMethod:
		m.role = request
	case hasMethod:
		m.role = notification
	case hasID | hasResult, hasID | hasError:
		m.role = response
		if seen&hasParams != 0 {
			return refusal("an answer with parameters")
		}
	default:
		return refusal("neither a request nor a notification nor an answer")
	}
	if m.role == notification {
		return nil
	}
	var err error
	m.key, err = idKey(m.id.of(line))
	return err
}

// idKey turns an id into what is compared: numbers of the same value are one id, however
// they are written, and a text is never a number.
func idKey(raw []byte) (string, error) {
	if len(raw) > maxID {
		return "", refusal("the id is longer than 1024 bytes")
	}
	switch raw[0] {
	case '"':
		text, _ := textOf(raw)
		return "s" + text, nil
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		text := string(raw)
		if text == "-0" {
			return "n0", nil
		}
		if strings.ContainsAny(text, ".eE") {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || number != float64(int64(number)) || number > 1<<53 || number < -(1<<53) {
				return "", refusal("the id is no whole number")
			}
			text = strconv.FormatInt(int64(number), 10)
		}
		return "n" + text, nil
	}
	return "", refusal("the id is neither text nor number")
}

// textOf returns the text of a JSON string.
func textOf(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}

// syntax makes a parser's error one for a person: without the text, which may hold anything.
func syntax(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return refusal("a key stands twice in one object")
	}
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) && bad.Err != nil && strings.Contains(bad.Err.Error(), "UTF-8") {
		return refusal("it holds bytes that are no UTF-8")
	}
	return badJSON
}

// lookAlike returns the known key that a name could be taken for: one that differs in the
// case of letters, or in characters that cannot be seen, NUL among them. Parsers exist that
// take either for the known key. The name itself is none of the known ones.
func lookAlike(name string, known []string) string {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f {
			name = strings.Map(func(r rune) rune {
				if unicode.In(r, unicode.C, unicode.Z, unicode.M, unicode.Variation_Selector) {
					return -1
				}
				return r
			}, name)
			break
		}
	}
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return k
		}
	}
	return ""
}

// quoted writes text of the other side for a person: one line, bounded, nothing that a
// terminal acts on.
func quoted(text string) string {
	const most = 200
	more := ""
	if len(text) > most {
		text, more = text[:most], fmt.Sprintf(" and %d bytes more", len(text)-most)
	}
	return strconv.QuoteToASCII(text) + more
}
