package profiles

import "unicode/utf8"

// checkBytes finds what no profile may hold, wherever it stands: invalid UTF-8, control
// characters, tabs, and characters that a reviewer does not see.
func checkBytes(file, src string) Errors {
	var errs Errors
	line, start := 1, 0
	add := func(pos int, hint, format string, args ...any) {
		at := Position{File: file, Line: line, Column: pos - start + 1}
		errs = append(errs, wrong(hint, format, args...).at(at))
	}
	tabLine := 0
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(src[i:])
			if r == utf8.RuneError && size == 1 {
				add(i, "save the file as UTF-8", "invalid UTF-8")
			} else if unseen(r) {
				add(i, "remove it: what a person reads has to be what is meant", "invisible character U+%04X", r)
			}
			i += size
			continue
		case c == '\n':
			line, start = line+1, i+1
		case c == '\t' && tabLine != line:
			tabLine = line
			add(i, "indent and align with spaces", "tab character")
		case c == '\r' && i+1 < len(src) && src[i+1] == '\n', c == '\t':
		case c == 0:
			add(i, "remove it", "NUL byte")
		case c < 0x20 || c == 0x7f:
			add(i, "remove it", "control character 0x%02x", c)
		}
		i++
		if len(errs) > maxErrors {
			break
		}
	}
	return errs
}

// unseen tells which characters show as nothing, reorder a line, or break it for some
// readers and not for others.
func unseen(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, // C1 controls, with NEL, a line break to YAML 1.1
		r == 0xad,                    // soft hyphen
		r >= 0x200b && r <= 0x200f,   // zero width, direction marks
		r >= 0x2028 && r <= 0x202e,   // line and paragraph separators, overrides
		r >= 0x2060 && r <= 0x2064,   // word joiner, invisible operators
		r >= 0x2066 && r <= 0x206f,   // isolates, deprecated format controls
		r == 0xfeff,                  // byte order mark inside the file
		r >= 0xfff0 && r <= 0xfffb,   // specials
		r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors
		return true
	}
	return r&0xfffe == 0xfffe // noncharacters
}
