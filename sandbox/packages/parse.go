package packages

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// RunnerError is a runner's command line that cannot be kept as it is.
type RunnerError struct{ Problem, Cure string }

func (e *RunnerError) Error() string { return e.Problem }

// Hint is the cure, for a person.
func (e *RunnerError) Hint() string { return e.Cure }

func refuse(cure, format string, args ...any) error {
	return &RunnerError{Problem: fmt.Sprintf(format, args...), Cure: cure}
}

// Parse takes a package runner's command line apart; false for other command lines. Only the
// runner's own words are read, by the runner's own grammar. A flag that is not known is an
// error: it could take the next word, which would then be the wrong package.
func Parse(argv []string, where Where) (Command, bool, error) {
	g, rest := runnerOf(argv)
	if g == nil {
		return Command{}, false, nil
	}
	c, err := g.parse(rest, where)
	return c, true, err
}

// runnerOf finds the runner that a command line begins with, and the words after it.
func runnerOf(argv []string) (*grammar, []string) {
	if len(argv) == 0 {
		return nil, nil
	}
	name, rest := filepath.Base(argv[0]), argv[1:]
	// npm's own launchers are scripts that hosts sometimes start by node.
	if (name == "node" || name == "nodejs") && len(rest) > 0 {
		if script := filepath.Base(rest[0]); script == "npx-cli.js" || script == "npm-cli.js" {
			name, rest = script, rest[1:]
		}
	}
	switch strings.TrimSuffix(name, "-cli.js") {
	case "npx":
		return &npx, rest
	case "bunx":
		return &bunx, rest
	case "pnpx", "pnx":
		return &pnpmDlx, rest
	case "uvx":
		return &uvx, rest
	case "npm":
		return afterVerb(rest, npmBefore, map[string]*grammar{"exec": &npmExec, "x": &npmExec})
	case "bun":
		return afterVerb(rest, nil, map[string]*grammar{"x": &bunx})
	case "pnpm":
		return afterVerb(rest, pnpmBefore, map[string]*grammar{"dlx": &pnpmDlx})
	case "yarn", "yarnpkg":
		return afterVerb(rest, nil, map[string]*grammar{"dlx": &yarnDlx})
	case "uv":
		return afterVerb(rest, uvBefore, map[string]*grammar{"tool": nil, "x": &uvx})
	case "pipx":
		return afterVerb(rest, nil, map[string]*grammar{"run": &pipxRun})
	}
	return nil, nil
}

// afterVerb finds the runner behind a package manager's verb. Flags may stand before the
// verb; those that take a value are known by before, and what stands there is handed on to
// the runner's grammar.
func afterVerb(args, before []string, verbs map[string]*grammar) (*grammar, []string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if strings.HasPrefix(word, "-") && word != "-" && word != "--" {
			if slices.Contains(before, word) {
				i++
			}
			continue
		}
		g, known := verbs[word]
		rest := args[i+1:]
		if known && g == nil { // uv tool run
			if len(rest) == 0 || rest[0] != "run" {
				return nil, nil
			}
			g, rest = &uvToolRun, rest[1:]
		}
		if g == nil {
			return nil, nil
		}
		return g, append(slices.Clone(args[:i]), rest...)
	}
	return nil, nil
}

// use says what a flag is to stockade.
type use uint8

const (
	// packageFlag names a package to install.
	packageFlag use = iota + 1
	// withFlag names a package that goes along.
	withFlag
	// pythonFlag names the interpreter.
	pythonFlag
	// bunFlag has the program run by bun.
	bunFlag
	// idle is a flag without a value that has no effect here.
	idle
	// idleValue is one with a value.
	idleValue
)

// grammar is how one runner reads its words.
type grammar struct {
	runner string
	kind   Kind
	uses   map[string]use    // by name, with the dashes
	never  map[string]string // flags that cannot be kept, and why
	cure   string            // for those
	// everywhere: the runner takes its flags after the package, too, until "--" (npm exec).
	everywhere bool
	// named: with a package flag the first word is the program, and without one the package.
	spec func(word string, where Where) (Spec, error)
}

type option struct{ name, value string }

// read parts the runner's own flags from the words after them.
func (g *grammar) read(args []string) (options []option, words []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			return options, append(words, args[i+1:]...), nil
		case len(word) < 2 || word[0] != '-':
			if !g.everywhere {
				return options, append(words, args[i:]...), nil
			}
			words = append(words, word)
			continue
		}
		o, taken, err := g.option(word, args[i+1:])
		if err != nil {
			return nil, nil, err
		}
		options = append(options, o)
		i += taken
	}
	return options, words, nil
}

// option reads one flag and says how many of the next words it takes.
func (g *grammar) option(word string, next []string) (option, int, error) {
	name, value, joined := strings.Cut(word, "=")
	if why, ok := g.never[name]; ok {
		return option{}, 0, refuse(g.cure, "%s %s cannot be kept: %s", g.runner, name, why)
	}
	kind, known := g.uses[name]
	if !known && !joined && len(word) > 2 && word[1] != '-' {
		// -pNAME, and -yq: short flags in one word.
		if kind, known = g.uses[word[:2]]; known {
			name, value, joined = word[:2], word[2:], true
			if kind == idle || kind == bunFlag {
				return option{}, 0, refuse(g.cure, "%s: write the flags of %q one by one", g.runner, word)
			}
		}
	}
	if !known {
		hint := g.cure
		if g.everywhere {
			hint = fmt.Sprintf(`npm takes flags for itself until a "--": %s -- PACKAGE [ARG]...`, g.runner)
		}
		return option{}, 0, refuse(hint, "%s has no flag %s that stockade knows", g.runner, name)
	}
	if joined || kind == idle || kind == bunFlag {
		return option{name, value}, 0, nil
	}
	if len(next) == 0 {
		return option{}, 0, refuse(g.cure, "%s %s needs a value", g.runner, name)
	}
	return option{name, next[0]}, 1, nil
}

func (g *grammar) parse(args []string, where Where) (Command, error) {
	c := Command{Runner: g.runner, Request: Request{Kind: g.kind}}
	options, words, err := g.read(args)
	if err != nil {
		return c, err
	}
	var named, along []Spec
	for _, o := range options {
		switch g.uses[o.name] {
		case packageFlag, withFlag:
			// A list separated by commas is one of uv's forms.
			for _, word := range g.list(o) {
				s, err := g.spec(word, where)
				if err != nil {
					return c, err
				}
				if g.uses[o.name] == packageFlag {
					named = append(named, s)
				} else {
					along = append(along, s)
				}
			}
		case pythonFlag:
			c.Request.Python = o.value
		case bunFlag:
			c.Runtime = "bun"
		case idle, idleValue:
			if !slices.Contains(quiet, o.name) {
				c.Notes = append(c.Notes, fmt.Sprintf("%s %s has no effect: what is installed stays until \"stockade package update\"", g.runner, o.name))
			}
		}
	}
	if len(words) == 0 {
		return c, refuse(g.cure, "%s names no package to run", g.runner)
	}
	if len(named) == 0 {
		s, program, err := g.runs(words[0], where)
		if err != nil {
			return c, err
		}
		named, c.Program = []Spec{s}, program
	} else {
		c.Program = words[0]
	}
	slices.SortFunc(along, compareSpecs)
	c.Request.Specs = append(named, along...)
	c.Args = words[1:]
	return c, nil
}

// list parts a value that may hold several packages.
func (g *grammar) list(o option) []string {
	if g.uses[o.name] == withFlag && !strings.ContainsAny(o.value, "[<>=!~ ") {
		return strings.FieldsFunc(o.value, func(r rune) bool { return r == ',' })
	}
	return []string{o.value}
}

// runs reads the word that names package and program in one.
func (g *grammar) runs(word string, where Where) (Spec, string, error) {
	s, err := g.spec(word, where)
	if err != nil {
		return s, "", err
	}
	if g.kind == PyPI && s.Source == Registry && s.Name != "" {
		// The program that has the package's name, as it was written.
		name, _, _ := strings.Cut(word, "@")
		name = strings.TrimRight(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("[<>=!~ ", r) })[0], " ")
		return s, name, nil
	}
	return s, "", nil
}
