package packages

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Wrapping is a command line that starts something else than its first word says.
type Wrapping struct {
	Shown string // what it is: "bash -c", "docker run", "a remote address"
	Why   string // what stockade does with it, and why
	// Runs is the command line inside it, when it is a package runner's or a program's; Set are
	// the names of the variables that it sets for it.
	Runs []string
	Set  []string
	// Refused tells whether it is refused. Else it is started as it is, and Why is a note.
	Refused bool
}

const (
	whyEngine  = "is refused: the server would be a process of the container engine, where this jail does not reach"
	whyRemote  = "is refused: a remote server runs on another machine, so there is nothing to put into a jail here"
	whyScripts = "is refused: it starts what a project's own file says, through a shell and the package manager, and the server would have both"
	whyLine    = "is refused: a host starts programs without a shell, so a whole command line in one word is no program"
	whyInside  = "is refused: the package runner in it would need the registry, a shell and a cache in the server's jail"
	whyProgram = "runs in the jail as it is, and starts no program but those that the profile grants (filesystem.execute)"
)

// Wrapped looks at a command line that is no package runner's own; nil when it starts what it
// says.
func Wrapped(argv []string) *Wrapping {
	if len(argv) == 0 {
		return nil
	}
	word, name := argv[0], filepath.Base(argv[0])
	switch {
	case strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://"):
		return &Wrapping{Shown: "a remote address", Why: whyRemote, Refused: true}
	case strings.Contains(word, " ") && len(argv) == 1 && !strings.HasPrefix(word, "/"):
		return inside(Wrapping{Shown: "a command line in one word", Why: whyLine, Refused: true}, word)
	}
	switch name {
	case "docker", "podman", "nerdctl":
		shown := name
		if verb := firstWord(argv[1:]); verb != "" {
			shown += " " + verb
		}
		return &Wrapping{Shown: shown, Why: whyEngine, Refused: true}
	case "sh", "bash", "dash", "zsh", "ksh":
		return shellLine(name, argv[1:])
	case "env":
		return envLine(argv[1:])
	case "cmd", "cmd.exe":
		if i := slices.IndexFunc(argv, func(w string) bool { return strings.EqualFold(w, "/c") }); i > 0 && i+1 < len(argv) {
			return around(Wrapping{Shown: name + " /c", Why: "is refused: it is the shell of another system", Refused: true}, argv[i+1:])
		}
	case "wsl", "wsl.exe":
		return &Wrapping{Shown: name, Why: "is refused: it is a command of another system; write what it starts", Refused: true}
	case "npm", "pnpm", "yarn", "bun", "uv":
		return projectScript(name, argv[1:])
	}
	return nil
}

// projectScript knows the verbs that start what a project's file says.
func projectScript(name string, args []string) *Wrapping {
	verb := firstWord(args)
	if name == "uv" && verb != "run" || name == "bun" && verb != "run" {
		return nil
	}
	switch verb {
	case "run", "run-script", "start", "exec":
		return &Wrapping{Shown: name + " " + verb, Why: whyScripts, Refused: true}
	}
	return nil
}

func firstWord(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// shellLine looks into the line of sh -c. Flags may be joined: -lc.
func shellLine(name string, args []string) *Wrapping {
	for i, a := range args {
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			return nil // a script
		}
		if a[1] != '-' && strings.HasSuffix(a, "c") && i+1 < len(args) {
			w := inside(Wrapping{Shown: name + " " + a}, args[i+1])
			if !w.Refused && w.Runs == nil {
				return nil // shell words alone, or too many to tell
			}
			return w
		}
	}
	return nil
}

// inside reads a line of shell. Only a single simple command of plain words is understood:
// whatever else the line does would be lost.
func inside(w Wrapping, line string) *Wrapping {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return namesRunner(w, line)
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Redirs) > 0 || stmt.Background || stmt.Negated || stmt.Coprocess {
		return namesRunner(w, line)
	}
	for _, a := range call.Assigns {
		if a.Name != nil {
			w.Set = append(w.Set, a.Name.Value)
		}
	}
	var words []string
	for _, part := range call.Args {
		text, plain := literalWord(part)
		if !plain {
			return namesRunner(w, line)
		}
		words = append(words, text)
	}
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	return around(w, words)
}

// namesRunner is for lines that are not taken apart: with a runner in it nothing can be
// promised of the line.
func namesRunner(w Wrapping, line string) *Wrapping {
	w.Set = nil
	for _, field := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) }) {
		switch filepath.Base(field) {
		case "npx", "bunx", "pnpx", "uvx", "pipx":
			w.Why, w.Refused = whyInside, true
			return &w
		}
	}
	return &w
}

// literalWord is a word without expansions.
func literalWord(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			// The parser leaves backslashes; a word with one is left alone.
			if strings.ContainsAny(p.Value, `\*?[~{`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// around looks whether the command line inside is a runner's, or wrapped once more.
func around(w Wrapping, words []string) *Wrapping {
	if len(words) == 0 {
		return &w
	}
	if g, _ := runnerOf(words); g != nil {
		w.Runs, w.Refused = words, true
		if w.Why == "" {
			w.Why = whyInside
		}
		return &w
	}
	inner := Wrapped(words)
	switch {
	case inner != nil && inner.Refused:
		w.Refused, w.Runs, w.Set = true, inner.Runs, append(w.Set, inner.Set...)
		if w.Why == "" {
			w.Why = inner.Why
		}
	case !slices.Contains(builtins, words[0]):
		w.Runs = words
		if w.Why == "" {
			w.Why = whyProgram
		}
	}
	return &w
}

// builtins are words of a shell that start nothing.
var builtins = []string{
	":", ".", "[", "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export", "false", "fg", "getopts",
	"hash", "jobs", "kill", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "times", "trap", "true", "type",
	"ulimit", "umask", "unalias", "unset", "wait",
}

// envLine looks behind env's own words: NAME=VALUE and -u, -i. What it starts is followed by
// the launcher itself, unless that is a package runner.
func envLine(args []string) *Wrapping {
	w := Wrapping{Shown: "env"}
	for i := 0; i < len(args); i++ {
		name, _, assigns := strings.Cut(args[i], "=")
		switch {
		case args[i] == "-u" || args[i] == "--unset":
			i++
		case strings.HasPrefix(args[i], "-"):
		case assigns:
			w.Set = append(w.Set, name)
		default:
			if found := around(w, args[i:]); found.Refused {
				return found
			}
			return nil
		}
	}
	return nil
}
