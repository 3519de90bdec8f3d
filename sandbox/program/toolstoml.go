package program

import (
	"fmt"
	"strings"
)

// parseTools reads the [tools] table of a mise.toml: lines NAME = "1.2", NAME = ["1", "2"]
// and NAME = {version = "1.2", …}, and tables [tools.NAME] with a version line. Anything
// else about tools is an error: a line that is not understood may be the one that counts.
func parseTools(text string) ([]tool, error) {
	var tools []tool
	const elsewhere, inTools, inTool = 0, 1, 2
	table, current := elsewhere, ""
	quote := "" // of a string over several lines, which may hold anything
	for number, line := range strings.Split(text, "\n") {
		refuse := func(what string) ([]tool, error) {
			return nil, fmt.Errorf("line %d: %s", number+1, what)
		}
		line = strings.TrimSpace(line)
		if quote != "" {
			if strings.Contains(line, quote) {
				quote = ""
			}
			continue
		}
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			header, _, closed := strings.Cut(line[1:], "]")
			header = strings.TrimSpace(header)
			switch name, isTool := strings.CutPrefix(header, "tools."); {
			case !closed || header == "":
				continue // an element of an array over several lines
			case header == "tools":
				table = inTools
			case isTool:
				name, rest, ok := cutKey(name)
				if !ok || rest != "" {
					return refuse("the table of a tool is not understood")
				}
				table, current = inTool, name
			case strings.Trim(header, `"'`) == "tools" || strings.HasPrefix(header, "[tools"):
				return refuse("a table of tools in this form is not understood")
			default:
				table = elsewhere
			}
			continue
		}
		if table == elsewhere {
			if strings.HasPrefix(line, "tools.") || strings.HasPrefix(line, "tools ") || strings.HasPrefix(line, "tools=") {
				return refuse("tools outside of a [tools] table are not understood")
			}
			quote = openQuote(line)
			continue
		}
		key, rest, ok := cutKey(line)
		value, isSet := strings.CutPrefix(rest, "=")
		if !ok || !isSet {
			return refuse("a line about tools is not understood")
		}
		if table == inTool {
			if key != "version" {
				quote = openQuote(line)
				continue
			}
			key = current
		}
		versions, ok := toolVersionsOf(strings.TrimSpace(value))
		if !ok {
			return refuse(fmt.Sprintf("the version of %q is not understood", key))
		}
		tools = append(tools, tool{name: key, versions: versions})
	}
	return tools, nil
}

// openQuote is the mark of a string that begins on a line and does not end there.
func openQuote(line string) string {
	for _, mark := range [...]string{`"""`, "'''"} {
		if strings.Count(line, mark)%2 == 1 {
			return mark
		}
	}
	return ""
}

// cutKey cuts a bare or quoted key off a line.
func cutKey(line string) (key, rest string, ok bool) {
	if line == "" {
		return "", "", false
	}
	if line[0] == '"' || line[0] == '\'' {
		key, rest, ok = cutString(line)
		return key, strings.TrimSpace(rest), ok && key != ""
	}
	end := strings.IndexFunc(line, func(r rune) bool {
		return r != '-' && r != '_' && !isLetter(r) && (r < '0' || r > '9')
	})
	if end < 0 {
		end = len(line)
	}
	return line[:end], strings.TrimSpace(line[end:]), end > 0
}

// cutString cuts a one-line string off a text. Strings with escapes are not understood.
func cutString(text string) (value, rest string, ok bool) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return "", "", false
	}
	value, rest, ok = strings.Cut(text[1:], text[:1])
	if !ok || text[0] == '"' && strings.Contains(value, `\`) {
		return "", "", false
	}
	return value, rest, true
}

// toolVersionsOf reads the value behind a tool's name.
func toolVersionsOf(value string) ([]string, bool) {
	if value == "" {
		return nil, false
	}
	var versions []string
	var rest string
	switch value[0] {
	case '"', '\'':
		version, after, ok := cutString(value)
		if !ok {
			return nil, false
		}
		versions, rest = []string{version}, after
	case '[':
		rest = strings.TrimSpace(value[1:])
		for !strings.HasPrefix(rest, "]") {
			version, after, ok := cutString(rest)
			if !ok {
				return nil, false
			}
			versions = append(versions, version)
			after = strings.TrimSpace(after)
			after, comma := strings.CutPrefix(after, ",")
			if rest = strings.TrimSpace(after); !comma && !strings.HasPrefix(rest, "]") {
				return nil, false
			}
		}
		rest = rest[1:]
	case '{':
		return inlineVersion(value)
	default:
		return nil, false
	}
	rest = strings.TrimSpace(rest)
	if rest != "" && rest[0] != '#' {
		return nil, false
	}
	return versions, plainVersions(versions)
}

// inlineVersion finds version = "…" in an inline table of strings and plain words.
func inlineVersion(value string) ([]string, bool) {
	var versions []string
	rest := strings.TrimSpace(value[1:])
	for !strings.HasPrefix(rest, "}") {
		key, after, ok := cutKey(rest)
		after, isSet := strings.CutPrefix(after, "=")
		if !ok || !isSet {
			return nil, false
		}
		after = strings.TrimSpace(after)
		if word, tail, ok := cutString(after); ok {
			if key == "version" {
				versions = []string{word}
			}
			after = strings.TrimSpace(tail)
		} else if word, tail, ok := cutKey(after); ok && (word == "true" || word == "false") {
			after = tail
		} else {
			return nil, false
		}
		after, comma := strings.CutPrefix(after, ",")
		if rest = strings.TrimSpace(after); !comma && !strings.HasPrefix(rest, "}") {
			return nil, false
		}
	}
	rest = strings.TrimSpace(rest[1:])
	if rest != "" && rest[0] != '#' {
		return nil, false
	}
	return versions, len(versions) > 0 && plainVersions(versions)
}

// plainVersions says whether no version is a template, which mise would fill in.
func plainVersions(versions []string) bool {
	for _, v := range versions {
		if strings.Contains(v, "{{") || v == "" {
			return false
		}
	}
	return len(versions) > 0
}
