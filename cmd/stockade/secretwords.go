package main

import (
	"regexp"
	"slices"
	"strings"
)

// masked stands in the place of what may be a secret. The arguments of a process are
// visible to the whole machine, but what we print is copied into reports and chats.
const masked = "masked"

// maskArguments replaces the parts of a command line that look like secrets: values of
// flags, variables, headers and URL parameters with such a name, passwords in URLs, and words
// that have the form of one.
// It is for printing alone.
func maskArguments(argv []string) []string {
	out := slices.Clone(argv)
	for i := 1; i < len(out); i++ {
		if before := argv[i-1]; i > 1 && before[:min(1, len(before))] == "-" && !strings.Contains(before, "=") && secretName(before) &&
			(!strings.HasPrefix(out[i], "-") || longCode(out[i])) {
			out[i] = masked
			continue
		}
		out[i] = maskWord(out[i])
	}
	return out
}

// maskWord masks one argument by itself.
func maskWord(word string) string {
	at := strings.Index(word, "://")
	if name, value, found := strings.Cut(word, "="); found && (at < 0 || len(name) < at) {
		if value != "" && secretName(name) {
			return name + "=" + masked
		}
		return name + "=" + maskWord(value)
	}
	if at >= 0 {
		return word[:at+3] + maskAddress(word[at+3:])
	}
	if name, value, found := strings.Cut(word, ":"); found && strings.TrimSpace(value) != "" && secretName(name) {
		return name + ": " + masked // a header
	}
	return maskCode(word)
}

// maskAssigned masks the value of NAME=VALUE, whatever the name.
func maskAssigned(word string) string {
	if name, value, found := strings.Cut(word, "="); found && value != "" {
		return name + "=" + masked
	}
	return word
}

// tokens are the forms of secrets that those who hand them out mark: of GitHub, GitLab, OpenAI and
// Anthropic, Slack, AWS, Google, Stripe, npm, PyPI, Hugging Face and others, and signed claims (JWT).
var tokens = regexp.MustCompile(`(^|[^A-Za-z0-9])(?:` + strings.Join([]string{
	`gh[pousr]_[A-Za-z0-9]{6,}`, `github_pat_\w{6,}`, `gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[\w-]{6,}`,
	`sk-ant-[\w-]{6,}`, `sk-[\w-]*[0-9A-Z][\w-]{7,}`, `sk-[A-Za-z0-9]{20,}`, `[spr]k_(?:live|test)_\w{6,}`,
	`(?:AKIA|ASIA)[A-Z0-9]{8,}`, `AIza[\w-]{10,}`, `ya29\.[\w-]{6,}`, `xox[a-z]-[\w-]{6,}`, `xapp-[\w-]{6,}`,
	`npm_[A-Za-z0-9]{20,}`, `pypi-AgE[\w-]{6,}`, `hf_[A-Za-z0-9]{10,}`, `gsk_[A-Za-z0-9]{10,}`, `nvapi-[\w-]{10,}`, `tvly-[\w-]{8,}`, `pplx-\w{10,}`,
	`lin_api_\w{6,}`, `ntn_[A-Za-z0-9]{10,}`, `do[opr]_v1_[0-9a-f]{6,}`, `SG\.[\w-]{10,}`, `shp(?:at|ca|pa|ss)_\w{6,}`, `figd_[\w-]{6,}`, `dckr_pat_[\w-]{6,}`,
	`eyJ[\w-]{6,}\.[\w.-]+`,
}, "|") + `)`)

// maskTokens masks the secrets in a text that are known by their form.
func maskTokens(text string) string { return tokens.ReplaceAllString(text, "${1}"+masked) }

// maskCode masks a word that is a secret by its form: a known one, or long and mixed.
func maskCode(word string) string {
	if keyLike(word) {
		return masked
	}
	return maskTokens(word)
}

// keyLike tells whether a word reads as a key and as nothing that a person names things: letters
// of both cases with digits, or a long number in hexadecimal, an UUID among them.
func keyLike(word string) bool {
	// Of all words with slashes only those of an AWS key's length count: paths are long and mixed.
	if len(word) < 20 || word[0] == '-' || word[0] == '/' || strings.Contains(word, "/") && len(word) != 40 {
		return false
	}
	var upper, lower, digits, beyondHex int
	for i := range len(word) {
		switch c := word[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			lower++
			if c > 'f' {
				beyondHex++
			}
		case c >= 'A' && c <= 'Z':
			upper++
			if c > 'F' {
				beyondHex++
			}
		case c == '-':
		case strings.IndexByte("+/=_", c) >= 0:
			beyondHex++
		default:
			return false
		}
	}
	hexadecimal := beyondHex == 0 && digits+lower+upper >= 32 && lower+upper > 0
	return digits > 1 && (hexadecimal || upper > 1 && lower > 1)
}

// maskAddress masks what follows "://".
func maskAddress(rest string) string {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, tail := rest[:end], rest[end:]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		if name, _, found := strings.Cut(host[:at], ":"); found {
			host = name + ":" + masked + host[at:]
		} else {
			host = masked + host[at:] // a token alone, as git takes it
		}
	}
	path, query, found := strings.Cut(tail, "?")
	segments := strings.Split(path, "/")
	for i := range segments {
		segments[i] = maskCode(segments[i])
	}
	path = strings.Join(segments, "/")
	if !found {
		return host + path
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		name, value, found := strings.Cut(p, "=")
		if found && secretName(name) {
			value = masked
		}
		if found {
			parameters[i] = name + "=" + maskCode(value)
		}
	}
	return host + path + "?" + strings.Join(parameters, "&")
}

// secretName tells whether the name of a flag, variable, header or parameter says that its
// value is a secret. One of its words has to be such a word ("--api-key", "githubToken",
// "X_API_KEY"), or the whole has to hold one that means nothing else.
func secretName(name string) bool {
	lower := strings.ToLower(name)
	for _, part := range [...]string{"token", "secret", "password", "passwd", "passphrase", "apikey", "credential", "authorization"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == '/' || r == ' ' }) {
		switch strings.ToLower(word) {
		case "key", "pass", "pwd", "pat", "auth", "bearer", "cookie":
			return true
		}
		if strings.HasSuffix(word, "Key") { // "accessKey"
			return true
		}
	}
	return false
}

// longCode tells whether a word is long and of the letters of base64 or hexadecimal: a key
// and no flag, though it begins with a dash.
func longCode(word string) bool {
	if len(word) < 20 || strings.HasPrefix(word, "--") {
		return false
	}
	for i := range len(word) {
		c := word[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("+/=_-", c) < 0 {
			return false
		}
	}
	return true
}

// ownWords shows our words of a command line in a hint. As soon as one of them could be the
// value of a variable (--env may have taken the word before it), the names of flags are all
// that is shown.
func ownWords(words []string) (shown string, whole bool) {
	whole = !slices.ContainsFunc(words, func(w string) bool {
		return strings.Contains(w, "=") || w == "--env" || w == "-env"
	})
	if whole {
		return shellWords(words), true
	}
	var names []string
	for _, w := range words {
		if name, ok := flagName(w); ok {
			names = append(names, name+" ...")
		}
	}
	return strings.Join(names, " "), false
}

// flagName returns the name of a flag of ours, without a value. Nothing else of a word is
// ever shown.
func flagName(word string) (string, bool) {
	name, _, _ := strings.Cut(word, "=")
	bare := strings.TrimLeft(name, "-")
	if len(name)-len(bare) == 0 || bare == "" {
		return "", false
	}
	var o launchOptions
	for _, f := range o.flags() {
		if slices.Contains(f.Names(), bare) {
			return "--" + bare, true
		}
	}
	return "", false
}
