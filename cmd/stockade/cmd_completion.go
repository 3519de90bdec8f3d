package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

const completionAbout = `
DESCRIPTION
    Prints a script that completes commands, flags and profile names. It is made from the
    same table as the help. Load it with one of:

        bash    source <(stockade completion bash)
        zsh     source <(stockade completion zsh)
        fish    stockade completion fish | source

    After "--" it leaves the completion of the server's command to the shell.
` + askStatus

type completionOptions struct{ shell string }

func newCompletionCommand(c *call) *cli.Command {
	return &cli.Command{
		UsageText:   "stockade completion bash|zsh|fish",
		Description: completionAbout,
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 1, 1)
			if err != nil {
				return err
			}
			return runCompletion(&completionOptions{shell: words[0]}, c.stdio)
		},
	}
}

func runCompletion(opts *completionOptions, std stdio) error {
	var script string
	switch opts.shell {
	case "bash":
		script = bashScript(completionTable())
	case "zsh":
		script = zshScript(completionTable())
	case "fish":
		script = fishScript(completionTable())
	default:
		return &usageError{
			problem: fmt.Sprintf("no completion for shell %q", opts.shell),
			hint:    "there are scripts for bash, zsh and fish",
		}
	}
	_, err := io.WriteString(std.out, script)
	return err
}

// completion is what a shell needs to know of one command.
type completion struct {
	path    string // "run", "profile list"
	summary string
	flags   []flagCompletion
	below   []string // subcommands
	answers []string // fixed words that it takes
}

// flagCompletion is one flag; value is the kind of what follows it.
type flagCompletion struct {
	name, summary string
	value         valueKind
}

// valueKind says what completes the value of a flag.
type valueKind uint8

const (
	valueNone    valueKind = iota // the flag takes none
	valueAny                      // nothing completes it
	valueFile                     // file names
	valueFolder                   // folder names
	valueProfile                  // profile names and file names
	valueFormat                   // output formats
	valueDenial                   // kinds of refusals
	valueEgress                   // words of --egress
)

// kindOf says what follows a flag of this name.
func kindOf(flag string) valueKind {
	switch flag {
	case "profile":
		return valueProfile
	case "root":
		return valueFolder
	case "read", "write", "exec", "unix":
		return valueFile
	case "egress":
		return valueEgress
	case "format":
		return valueFormat
	case "kind":
		return valueDenial
	}
	return valueAny
}

const (
	formatWords = "text json oci"
	denialWords = kindNetwork + " " + kindFile + " " + kindProgram + " " + kindSocket
	egressWords = "none public all"
	listNames   = `stockade profile list 2>/dev/null`
)

// completionTable builds every command once. It is only called to print a script.
func completionTable() []completion {
	var out []completion
	none := &call{}
	for _, e := range commandTable() {
		cmd := none.finish(e)
		out = append(out, describe(cmd, cmd.Name))
		for _, sub := range cmd.Subcommands {
			out = append(out, describe(sub, cmd.Name+" "+sub.Name))
		}
	}
	return out
}

func describe(cmd *cli.Command, path string) completion {
	c := completion{path: path, summary: cmd.Usage}
	for _, f := range cmd.Flags {
		c.flags = append(c.flags, flagCompletion{f.Names()[0], flagRow(f)[1], kindOfValue(f)})
	}
	c.flags = append(c.flags, flagCompletion{"help", "print this command's help", valueNone})
	for _, sub := range cmd.Subcommands {
		c.below = append(c.below, sub.Name)
	}
	if path == "completion" {
		c.answers = []string{"bash", "zsh", "fish"}
	}
	return c
}

func kindOfValue(f cli.Flag) valueKind {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok || !d.TakesValue() {
		return valueNone
	}
	return kindOf(f.Names()[0])
}

// place cuts a path into the command that it is below, "" for none, and its own name.
func (c completion) place() (parent, name string) {
	if before, after, ok := strings.Cut(c.path, " "); ok {
		return before, after
	}
	return "", c.path
}

// takesProfiles tells which commands take profile names or files as words.
func (c completion) takesProfiles() bool {
	return strings.HasPrefix(c.path, "profile ") && c.path != "profile list" && c.path != "profile init"
}

func (c completion) flagWords() string {
	words := make([]string, len(c.flags))
	for i, f := range c.flags {
		words[i] = "--" + f.name
	}
	return strings.Join(words, " ")
}
