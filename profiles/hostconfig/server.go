package hostconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says what an entry starts.
type Kind uint8

// The kinds of entries.
const (
	Command Kind = iota // Command: a program on this machine
	Remote              // Remote: an address; nothing is started here
	Empty               // Empty: neither; it changes a server that another file names, or is not finished
	Builtin             // Builtin: a part of the host itself
	Wrong               // Wrong: no host could start it as it is written; Server.Refusal says why
	Inline              // Inline: code in the file itself, which the host runs on this machine
)

// String returns the kind in one word.
func (k Kind) String() string {
	return [...]string{"command", "remote", "empty", "built-in", "wrong", "inline"}[k]
}

// Ref names one entry of a file.
type Ref struct {
	Project string // the folder that the entry belongs to, where a file has entries by folder; else ""
	Name    string
}

// Server is one entry of a file.
type Server struct {
	Ref
	Kind         Kind
	Command      string   // as the host reads it, so the launcher when it is wrapped
	Args         []string // likewise
	Env          []Variable
	Inherits     []string // names of variables that the host is to hand on (env_vars, env_keys)
	Cwd          string   // "" when it is not written
	URL          string
	Disabled     bool
	Line, Column int
	Wrapped      *Wrapping // nil when no launcher stands before the command
	Refusal      *Error    // why the entry cannot be wrapped or unwrapped; nil when it can

	entry, holder *node // the entry's table, and the one that holds command and args
	keys          *Keys
}

// Variable is one environment variable of an entry.
type Variable struct {
	Name         string
	Value        Secret
	Line, Column int
}

// Secret is text that is never shown by accident: every way of printing and encoding it
// gives the same word. It is behind a pointer because fmt calls no method of a field that is
// not exported, and follows no pointer there.
type Secret struct{ value *string }

const hidden = "(hidden)"

// Format writes the word that stands for every value, whatever the verb.
func (Secret) Format(s fmt.State, _ rune) { fmt.Fprint(s, hidden) }

// String returns the word that stands for every value.
func (Secret) String() string { return hidden }

// GoString returns the word that stands for every value.
func (Secret) GoString() string { return hidden }

// MarshalText returns the word that stands for every value.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal returns the value, for comparing and moving it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Wrapping is what stands before a wrapped server's own command line.
type Wrapping struct {
	Launcher string   // as written
	Words    []string // between it and "--"; the first is "run"
	Line     []string // the server's own command line, never empty
}

// Own is the server's own command line: what follows the launcher where there is one. It is
// nil for what is no [Command].
func (s *Server) Own() []string {
	switch {
	case s.Kind != Command:
		return nil
	case s.Wrapped != nil:
		return s.Wrapped.Line
	}
	return append([]string{s.Command}, s.Args...)
}

// launcherName is what a launcher's path ends in.
const launcherName = "stockade"

// isLauncher knows the launcher by its name, with or without folders.
func isLauncher(command string) bool {
	return command == launcherName || strings.HasSuffix(command, "/"+launcherName)
}

// wrapping splits a command line at the launcher's "--", its first one. It is nil when no
// launcher's run stands there.
func wrapping(line []string) *Wrapping {
	if len(line) < 4 || !isLauncher(line[0]) || line[1] != "run" {
		return nil
	}
	at := slices.Index(line, "--")
	if at < 0 || at+1 == len(line) {
		return nil
	}
	return &Wrapping{Launcher: line[0], Words: line[1:at], Line: line[at+1:]}
}
