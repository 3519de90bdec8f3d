package packages

import (
	"net/url"
	"strings"
	"unicode"
)

// clean makes a line of a package manager fit to be shown: no credential, no control
// character, no more than 300 bytes.
func clean(line string) string {
	line = withoutStyle(strings.TrimRight(line, "\r\n"))
	line = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, line)
	line = withoutSecrets(line)
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return strings.TrimRight(line, " ")
}

// withoutStyle takes terminal colours out (ESC [ … letter).
func withoutStyle(line string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		line = strings.TrimLeft(rest, "0123456789;?")
		if line != "" {
			line = line[1:]
		}
	}
}

// secretMarks stand in front of credentials in what package managers print.
var secretMarks = []string{"_authToken=", "_auth=", "_password=", "Bearer ", "Basic ", "token=", "npm_", "ghp_", "github_pat_", "glpat-", "pypi-Ag"}

// withoutSecrets takes the user and password out of each URL of a line, and what stands
// behind the usual marks of a token.
func withoutSecrets(line string) string {
	var b strings.Builder
	rest := line
	for {
		i := strings.Index(rest, "://")
		if i < 0 {
			break
		}
		end := i + 3
		for end < len(rest) && !strings.ContainsRune(" \t'\"<>)`,;", rune(rest[end])) {
			end++
		}
		authority := rest[i+3 : end]
		tail := ""
		if slash := strings.IndexAny(authority, "/?#"); slash >= 0 {
			authority, tail = authority[:slash], authority[slash:]
		}
		b.WriteString(rest[:i+3])
		// The last "@" ends the credentials, whatever stands in them; one that belongs to a
		// password with a "/" in it is behind the path's first slash.
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			authority = authority[at+1:]
		} else if colon := strings.IndexByte(authority, ':'); colon >= 0 && strings.ContainsRune(tail, '@') && !allDigits(authority[colon+1:]) {
			at := strings.LastIndexByte(tail, '@')
			authority, tail = "", tail[at+1:]
		}
		if query := strings.IndexByte(tail, '?'); query >= 0 {
			tail = tail[:query]
		}
		b.WriteString(authority + tail)
		rest = rest[end:]
	}
	b.WriteString(rest)
	line = b.String()
	for _, mark := range secretMarks {
		line = withoutWordAfter(line, mark)
	}
	return line
}

func allDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}

// withoutWordAfter replaces the word behind each mark, if it is long enough for a secret.
func withoutWordAfter(line, mark string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(mark)
		end := strings.IndexAny(rest, " \t'\"<>)`,;&")
		if end < 0 {
			end = len(rest)
		}
		if word := rest[:end]; len(word) >= 16 || strings.HasSuffix(mark, "=") && word != "" {
			b.WriteString("***")
		} else {
			b.WriteString(word)
		}
		line = rest[end:]
	}
}

// hostIn returns the host of the first URL in some lines, or the one that a failed
// connection or look-up names; "" for none.
func hostIn(lines []string) string {
	for _, line := range lines {
		for _, scheme := range []string{"https://", "http://"} {
			if i := strings.Index(line, scheme); i >= 0 {
				word, _, _ := strings.Cut(line[i:], " ")
				if u, err := url.Parse(strings.TrimRight(word, `'",.;)`)); err == nil && u.Host != "" {
					return u.Host
				}
			}
		}
	}
	for _, mark := range []string{"getaddrinfo ENOTFOUND ", "getaddrinfo EAI_AGAIN ", "connect ECONNREFUSED ", "connect ETIMEDOUT ", "host='"} {
		if host := after(lines, mark, " ',"); host != "" {
			return host
		}
	}
	return ""
}

// space puts a space behind a word that is there.
func space(word string) string {
	if word == "" {
		return ""
	}
	return word + " "
}
