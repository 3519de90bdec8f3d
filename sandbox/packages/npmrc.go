package packages

import (
	"encoding/json"
	"strings"
)

// npmSetting is one line of an npm configuration file. The value may be a credential.
type npmSetting struct{ key, value string }

// parseNPMRC reads npm's configuration format: `key = value` lines, quoted or not, with `;`
// and `#` comments; a section's head only prefixes keys that no program here asks for. A
// value is as written: ${VARIABLE} is not replaced.
func parseNPMRC(text string) []npmSetting {
	var all []npmSetting
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			section = line[1:len(line)-1] + "."
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			value = "true"
		}
		key = strings.TrimSuffix(unquoteNPM(key), "[]")
		all = append(all, npmSetting{key: section + key, value: unquoteNPM(value)})
	}
	return all
}

// unquoteNPM takes quotes off, or the comment that ends an unquoted value.
func unquoteNPM(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		inner := text[1 : len(text)-1]
		var plain string
		if json.Unmarshal([]byte(`"`+inner+`"`), &plain) == nil {
			return plain
		}
		return inner
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.IndexByte(`\;#`, text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		case c == ';' || c == '#':
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// replaceVariables puts variables in place of ${NAME} and ${NAME?}, as npm does: an unset
// one stays as it is written, or is empty with the question mark, and a backslash in front
// takes the meaning away. It calls lookup for each name.
func replaceVariables(text string, lookup func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			break
		}
		end := start + length + 1
		name, optional := strings.CutSuffix(text[start+2:end-1], "?")
		slashes := start - len(strings.TrimRight(text[:start], `\`))
		b.WriteString(text[:start-slashes])
		b.WriteString(strings.Repeat(`\`, slashes/2))
		value, set := "", false
		if slashes%2 == 0 && name != "" && !strings.ContainsAny(name, "${") {
			value, set = lookup(name)
		}
		if set || optional && slashes%2 == 0 {
			b.WriteString(value)
		} else {
			b.WriteString(text[start:end])
		}
		text = text[end:]
	}
	b.WriteString(text)
	return b.String()
}
