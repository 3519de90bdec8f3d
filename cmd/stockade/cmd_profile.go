package main

import (
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles"
)

const profileAbout = `
DESCRIPTION
    A profile says what a server may touch. Profiles are YAML files; these commands list
    the ones that are found, print their source, check files, compare what two profiles
    grant, and write a first one for a command.

    Profiles are looked for in this order, and the first of a name wins:
        .stockade/profiles/ of the repository, $XDG_CONFIG_HOME/stockade/profiles/,
        /etc/stockade/profiles/, the built-in ones.
` + askStatus

func newProfileCommand(c *call) *cli.Command {
	return &cli.Command{
		UsageText: `stockade profile list [--json]
			stockade profile show NAME|FILE
			stockade profile check [--json] FILE...
			stockade profile diff [--json] A B [-- COMMAND [ARG]...]
			stockade profile init [--name NAME] [-- COMMAND [ARG]...]`,
		Description: profileAbout,
		Subcommands: []*cli.Command{
			newProfileListCommand(c), newProfileShowCommand(c), newProfileCheckCommand(c),
			newProfileDiffCommand(c), newProfileInitCommand(c),
		},
		Action: c.needsSubcommand,
	}
}

const profileListAbout = `
DESCRIPTION
    Prints one line for each profile: its name, where it was found, and its description.
    A profile behind one of the same name is marked "hidden", a file that cannot be used
    "broken", one of the repository that "stockade deny" passes over "denied".

    With --json: [{"name", "place", "file", "description", "matches", "hidden", "denied", "error"}];
    "place" is repository, user, system or built-in, and "file" is "" for built-in ones.
` + askStatus

type profileListOptions struct{ json bool }

func newProfileListCommand(c *call) *cli.Command {
	opts := &profileListOptions{}
	return &cli.Command{
		Name: "list", Usage: "list the profiles that are found",
		UsageText: "stockade profile list [--json]", Description: profileListAbout,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json}},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runProfileList(opts, c.stdio)
		},
	}
}

type listedView struct {
	Name        string   `json:"name"`
	Place       string   `json:"place"`
	File        string   `json:"file"`
	Description string   `json:"description"`
	Matches     []string `json:"matches"`
	Hidden      bool     `json:"hidden"`
	Denied      bool     `json:"denied"`
	Error       string   `json:"error"`
}

func runProfileList(opts *profileListOptions, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	found, err := m.search().List()
	if err != nil {
		return err
	}
	views := make([]listedView, 0, len(found))
	rows := make([][]string, 0, len(found))
	for _, l := range found {
		v := listedView{
			Name: l.Name, Place: string(l.Place), File: l.File, Description: l.Description,
			Matches: list(l.Matches), Hidden: l.Hidden, Denied: l.Denied,
		}
		text := l.Description
		if l.Err != nil {
			v.Error = l.Err.Error()
			first, _, _ := strings.Cut(v.Error, "\n")
			text = "broken: " + first
		}
		if l.Hidden {
			text = "hidden: " + text
		}
		if l.Denied {
			text = "denied: " + text
		}
		views = append(views, v)
		rows = append(rows, []string{escape(l.Name), string(l.Place), escape(text)})
	}
	if opts.json {
		return writeJSON(std.out, views)
	}
	return table(std.out, rows)
}

const profileShowAbout = `
DESCRIPTION
    Prints the source of a profile as it was written, so that it can be copied and changed.
    The word is a name, or a file when it holds "/" or ends in .yaml. The profile is checked
    first.
` + askStatus

func newProfileShowCommand(c *call) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "print a profile's source",
		UsageText: "stockade profile show NAME|FILE", Description: profileShowAbout,
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 1, 1)
			if err != nil {
				return err
			}
			return runProfileShow(words[0], c.stdio)
		},
	}
}

func runProfileShow(name string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	p, err := m.search().FindAt(name, profiles.Position{})
	if err != nil {
		return err
	}
	source, err := sourceOf(p)
	if err != nil {
		return err
	}
	_, err = std.out.Write(source)
	return err
}

// sourceOf reads a profile's text again. It is what was checked, unless the file changed
// in between; printing it is harmless.
func sourceOf(p *profiles.Profile) ([]byte, error) {
	if text, ok := profiles.BuiltinSource(p.Name.Value); ok && p.File == "built-in "+p.Name.Value {
		return text, nil
	}
	return readFile(p.File, maxSource)
}

// maxSource is more than a profile may have (package profiles refuses more).
const maxSource = 4 << 20

const profileCheckAbout = `
DESCRIPTION
    Reads each file as strictly as a start does, follows what it extends, and prints all
    problems with file, line and column on standard error; keys whose layer is not built yet
    are among them. Valid files are listed on standard output.

    With --json: [{"file", "valid", "problems": [{"file", "line", "column", "message",
    "hint"}]}] on standard output, and nothing else.

EXIT STATUS
    0    every file is valid
    1    a file is not, or cannot be read
    125  stockade could not do it
`

type profileCheckOptions struct{ json bool }

func newProfileCheckCommand(c *call) *cli.Command {
	opts := &profileCheckOptions{}
	return &cli.Command{
		Name: "check", Usage: "check profile files",
		UsageText: "stockade profile check [--json] FILE...", Description: profileCheckAbout,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json}},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			files, err := c.words(ctx, 1, ctx.Args().Len())
			if err != nil {
				return err
			}
			return runProfileCheck(opts, files, c.stdio)
		},
	}
}

type checkedView struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Problems []problemView `json:"problems"`
}

type problemView struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func runProfileCheck(opts *profileCheckOptions, files []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	views := []checkedView{}
	invalid := 0
	for _, file := range files {
		err := checkFile(m, file)
		if err != nil {
			invalid++
		}
		switch {
		case opts.json:
			views = append(views, checkedView{File: file, Valid: err == nil, Problems: problemsOf(err)})
		case err != nil:
			std.fail(err)
		default:
			if _, err := io.WriteString(std.out, escape(file)+": valid\n"); err != nil {
				return err
			}
		}
	}
	if opts.json {
		if err := writeJSON(std.out, views); err != nil {
			return err
		}
	}
	if invalid > 0 {
		return &toldError{status: exitNo}
	}
	return nil
}

func checkFile(m machine, file string) error {
	p, err := profiles.ParseFile(file)
	if err != nil {
		return err
	}
	if p, err = m.search().Complete(p); err != nil {
		return err
	}
	if unbuilt := p.Unbuilt(); len(unbuilt) > 0 {
		return unbuilt
	}
	return nil
}

// problemsOf is every problem of an error, as far as its places are known.
func problemsOf(err error) []problemView {
	out := []problemView{}
	if err == nil {
		return out
	}
	var many profiles.Errors
	if !errors.As(err, &many) {
		return append(out, problemView{Message: err.Error(), Hint: hintOf(err)})
	}
	for i := range many {
		e := &many[i]
		out = append(out, problemView{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint})
	}
	return out
}
