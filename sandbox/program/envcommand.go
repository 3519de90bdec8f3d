package program

import (
	"fmt"
	"strings"
)

// envCommand is what a command line of env(1) starts.
type envCommand struct {
	name string
	args []string
}

// parseEnv reads the arguments of env(1), as GNU coreutils does, without its own name.
// Only what changes nothing but the program is followed: a changed environment is the
// profile's to give, and its values must not travel through a plan. reason says what
// stands in the way; "" when nothing does.
func parseEnv(args []string) (command envCommand, reason string) {
	// -S may hold a -S of its own; the length of the words only shrinks, this bounds it.
	for range 8 {
		if len(args) == 0 {
			return envCommand{}, "env is given no program to start"
		}
		word := args[0]
		var text string
		rest := args[1:]
		switch {
		case word == "--":
			args = rest
			if len(args) == 0 {
				return envCommand{}, "env is given no program to start"
			}
			return envProgram(args)
		case word == "-S" || word == "--split-string":
			if len(rest) == 0 {
				return envCommand{}, "env -S is given nothing to split"
			}
			text, rest = rest[0], rest[1:]
		case strings.HasPrefix(word, "-S"):
			text = word[2:]
		case strings.HasPrefix(word, "--split-string="):
			text = word[len("--split-string="):]
		case word == "-" || word == "-i" || word == "--ignore-environment":
			return envCommand{}, "env -i empties the environment, which is the profile's to choose"
		case strings.HasPrefix(word, "-"):
			return envCommand{}, fmt.Sprintf("env option %q cannot be followed", word)
		default:
			return envProgram(args)
		}
		words, problem := splitWords(text)
		if problem != "" {
			return envCommand{}, problem
		}
		args = append(words, rest...)
	}
	return envCommand{}, "env -S is nested too deeply"
}

func envProgram(args []string) (envCommand, string) {
	if name, _, found := strings.Cut(args[0], "="); found {
		return envCommand{}, fmt.Sprintf("env sets %s, which is the profile's to set (environment: set)", name)
	}
	if args[0] == "" {
		return envCommand{}, "env is given an empty program name"
	}
	return envCommand{name: args[0], args: args[1:]}, ""
}

// splitWords splits the text of env -S by the rules of GNU coreutils 8.30 and later:
// blanks separate, quotes group, a backslash escapes, `#` at the start of a word begins a
// comment. Variables are not looked up: the jail's environment is another one.
func splitWords(text string) (words []string, reason string) {
	var word strings.Builder
	inWord := false
	quote := byte(0)
	flush := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b == '\\':
			i++
			if i == len(text) {
				return nil, "the text of env -S ends in a backslash"
			}
			escaped, action := unescape(text[i], quote)
			switch action {
			case escapeByte:
				word.WriteByte(escaped)
				inWord = true
			case escapeBoth:
				word.WriteByte('\\')
				word.WriteByte(escaped)
				inWord = true
			case escapeSpace:
				flush()
			case escapeStop:
				flush()
				return words, ""
			case escapeBad:
				return nil, fmt.Sprintf("the text of env -S holds the unknown escape \\%c", text[i])
			}
		case quote != 0 && b == quote:
			quote = 0
		case quote == 0 && (b == '\'' || b == '"'):
			quote = b
			inWord = true
		case b == '$' && quote != '\'':
			return nil, "the text of env -S depends on a variable"
		case quote == 0 && isSplitSpace(b):
			flush()
		case quote == 0 && b == '#' && !inWord:
			return words, ""
		default:
			word.WriteByte(b)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, "the text of env -S has a quote that never ends"
	}
	flush()
	return words, ""
}

func isSplitSpace(b byte) bool {
	return b == ' ' || b >= '\t' && b <= '\r'
}

type escapeAction uint8

const (
	escapeByte  escapeAction = iota // stands for one byte
	escapeBoth                      // is no escape here: the backslash stays
	escapeSpace                     // separates words
	escapeStop                      // ends the text
	escapeBad
)

// unescape says what a backslash and the byte after it stand for, inside the given quote
// (0 for none).
func unescape(b, quote byte) (byte, escapeAction) {
	if quote == '\'' {
		// Single quotes know only these two.
		if b == '\'' || b == '\\' {
			return b, escapeByte
		}
		return b, escapeBoth
	}
	switch b {
	case '"', '#', '$', '\'', '\\':
		return b, escapeByte
	case '_':
		if quote == '"' {
			return ' ', escapeByte
		}
		return 0, escapeSpace
	case 'c':
		if quote == '"' {
			return 0, escapeBad
		}
		return 0, escapeStop
	case 'f':
		return '\f', escapeByte
	case 'n':
		return '\n', escapeByte
	case 'r':
		return '\r', escapeByte
	case 't':
		return '\t', escapeByte
	case 'v':
		return '\v', escapeByte
	}
	return 0, escapeBad
}
