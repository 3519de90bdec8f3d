package guard

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// member is one key of an object, with its value.
type member struct {
	name  string
	whole span // from the key to the end of the value
	value span
}

// members lists what an object of a line holds. The line was parsed strictly before, so it
// cannot fail; what is no object has no members.
func members(line []byte, object span) []member {
	if !object.object(line) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(object.of(line)), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var out []member
	for d.PeekKind() == '"' {
		key, err := d.ReadValue()
		if err != nil {
			return nil
		}
		from := object.from + int(d.InputOffset()) - len(key)
		name, _ := textOf(key)
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		to := object.from + int(d.InputOffset())
		out = append(out, member{name, span{from, to}, span{to - len(value), to}})
	}
	return out
}

// elements lists the values of a list.
func elements(line []byte, list span) []span {
	if list.absent() || list.kind(line) != '[' {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(list.of(line)), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var out []span
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		to := list.from + int(d.InputOffset())
		out = append(out, span{to - len(value), to})
	}
	return out
}

// keys are the values of the known keys of an object.
type keys map[string]span

// pick returns the values of known keys, and an error for a key that looks like one of them.
func pick(line []byte, object span, known ...string) (keys, error) {
	out := keys{}
next:
	for _, m := range members(line, object) {
		for _, k := range known {
			if m.name == k {
				out[k] = m.value
				continue next
			}
		}
		if k := lookAlike(m.name, known); k != "" {
			return nil, refusal("the key " + quoted(m.name) + " looks like \"" + k + "\"")
		}
	}
	return out, nil
}

// text returns the text of a known key; "" and false when it is absent or no text.
func (k keys) text(line []byte, name string) (string, bool) {
	at := k[name]
	if at.absent() {
		return "", false
	}
	return textOf(at.of(line))
}
