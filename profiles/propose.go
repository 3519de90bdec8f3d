package profiles

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"stockade/sandbox/program"
)

// Proposal is what a first profile is made from.
type Proposal struct {
	Name    string // of the profile; "server" when it cannot be one
	Program program.Program
	Module  string // answer of [FindModule]
	Store   string // answer of [StorePath]
	// Mentions is what the server's own files name; nil when nobody looked.
	Mentions *Mentions
}

// Propose writes a first profile for a program, with comments that say what each part is
// for. It grants what the program's own command line shows and nothing else; what the
// server's files mention is written as comments. Parse accepts it whatever the program and
// its files say, also when a person takes the signs of comment away.
func Propose(of Proposal) []byte {
	p, name := of.Program, of.Name
	if _, bad := checkName(name); bad != nil {
		name = "server"
	}
	var b strings.Builder
	b.WriteString("# A stockade profile. What is not granted here is refused by the kernel.\n")
	b.WriteString("# Lists that are left out or empty grant nothing. Lines to uncomment are examples.\n")
	fmt.Fprintf(&b, "version: 1\nname: %s\n# description: what this server is for\n\n", quoteText(name))
	proposeMatch(&b, &p, installedName(&p, of.Module, of.Store))
	fmt.Fprintf(&b, "extends: [%s]\n\n", proposeBase(&p))
	proposeFilesystem(&b, &p)
	mentions := of.Mentions
	if mentions == nil {
		mentions = &Mentions{}
	}
	proposeNetwork(&b, mentions)
	proposeEnvironment(&b, mentions)
	return []byte(b.String())
}

// proposeBase is the built-in profile for a runtime.
func proposeBase(p *program.Program) string {
	switch p.Runtime {
	case program.Node:
		return "node"
	case program.Python:
		return "python"
	case program.Native:
		if len(p.Execute) <= 1 {
			return "static"
		}
	case program.Shell:
	}
	return "base"
}

// proposeMatch names the package if it is installed as one, or else the command. Patterns
// are for people to write: a sign in a name is escaped.
func proposeMatch(b *strings.Builder, p *program.Program, installed string) {
	b.WriteString("match:                          # which command lines this profile is for\n")
	if kind, name, found := strings.Cut(installed, ":"); found && plainName(name) {
		if text, bad := checkPackage(kind + ":" + escapeGlob(name)); bad == nil {
			fmt.Fprintf(b, "  packages: [%s]\n\n", quoteText(text))
			return
		}
	}
	files := []string{p.Entry, p.Named, p.File}
	if p.Entry == "" && p.Runtime != program.Native {
		files = nil // an interpreter's name is that of every server in its language
	}
	for _, file := range files {
		base := filepath.Base(file)
		if file == "" || !plainName(base) {
			continue
		}
		if text, bad := checkCommand(escapeGlob(base)); bad == nil {
			fmt.Fprintf(b, "  commands: [%s]  # wherever it lies; leave it empty to name this profile with --profile alone\n\n", quoteText(text))
			return
		}
	}
	b.WriteString("  commands: []                  # none: name this profile with --profile\n\n")
}

// plainName tells whether a name can be written in one line.
func plainName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unseen(r) || r == unicode.ReplacementChar })
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// proposeFilesystem takes the arguments that are spelled as paths for the server's roots.
func proposeFilesystem(b *strings.Builder, p *program.Program) {
	roots := false
	for _, arg := range p.Args {
		roots = roots || spelledAsPath(arg)
	}
	b.WriteString("filesystem:\n")
	if roots {
		b.WriteString(`  # The server's own folder arguments. read: would be enough for a server that only looks.
  write: ["${roots}"]           # read and write, never execute
  # read: ["${home}/reference"]
  # execute: [git]              # other programs that it may start
roots: args

`)
		return
	}
	b.WriteString(`  # write: ["${roots}"]         # read and write, never execute; then also:  roots: args
  # read: ["${home}/reference"]
  # execute: [git]              # other programs that it may start

`)
}

// quoteText writes text so that it reads back as it is: as a plain word when it can be
// taken for nothing else, in double quotes otherwise.
func quoteText(s string) string {
	plain := s != "" && letter(s[0])
	for i := range len(s) {
		c := s[i]
		plain = plain && (letter(c) || digit(c) || c == '-' || c == '_' || c == '.')
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
