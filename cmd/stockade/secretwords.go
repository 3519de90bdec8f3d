package main

import (
	"slices"
	"strings"
)

// masked stands in the place of what may be a secret. The arguments of a process are
// visible to the whole machine, but what we print is copied into reports and chats.
const masked = "masked"

// maskArguments replaces the parts of a command line that look like secrets: values of
// flags, variables, headers and URL parameters with such a name, and passwords in URLs.
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
	return word
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
	if !found {
		return host + path
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if name, _, found := strings.Cut(p, "="); found && secretName(name) {
			parameters[i] = name + "=" + masked
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
