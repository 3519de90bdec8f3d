package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

const profileDiffAbout = `
DESCRIPTION
    Compiles both profiles for this machine, and for the command when one is given, and
    prints what B adds to A ("+"), takes away ("-") and changes ("~"), with the effect on
    the jail: widening, narrowing or neutral. A and B are names, or files when they hold "/"
    or end in .yaml. Variables are shown by name.

    A profile that takes its roots from the server's arguments needs the command, or --root.

    With --json: [{"section", "verb", "what", "effect", "origin": {"source", "line",
    "column"}}].

EXIT STATUS
    0    both grant the same
    1    they differ
    125  one of them has no plan here
`

type profileDiffOptions struct {
	json  bool
	roots many
}

func newProfileDiffCommand(c *call) *cli.Command {
	opts := &profileDiffOptions{}
	return &cli.Command{
		Name: "diff", Usage: "compare what two profiles grant",
		UsageText: "stockade profile diff [--json] [--root DIR]... A B [-- COMMAND [ARG]...]", Description: profileDiffAbout,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json},
			&cli.GenericFlag{Name: "root", Value: &opts.roots, Usage: "`DIR` a folder of ${roots}; may be repeated"},
		},
		Action: func(ctx *cli.Context) error {
			words, err := c.words(ctx, 0, 2)
			if err != nil {
				return err
			}
			if len(words) != 2 {
				return &usageError{problem: fmt.Sprintf("%q needs two names", commandPath(ctx.Command)), hint: "see " + seeHelp(ctx.Command)}
			}
			return runProfileDiff(ctx.Context, opts, words[0], words[1], c.server, c.stdio)
		},
	}
}

func runProfileDiff(ctx context.Context, opts *profileDiffOptions, a, b string, server []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	p, err := resolveIfGiven(ctx, server, &m, refuseMissing, std)
	if err != nil {
		return err
	}
	if server == nil {
		// A plan has a program. Both get the same stand-in, which makes no difference.
		if p.File, err = ownProgram(); err != nil {
			return err
		}
		p.Argv = []string{p.File}
	}
	facts, err := m.facts(p, anotherProcess)
	if err != nil {
		return err
	}
	var plans [2]profiles.Resolved
	for i, name := range [2]string{a, b} {
		profile, err := m.search().FindAt(name, profiles.Position{})
		if err != nil {
			return err
		}
		if plans[i], err = compile(m.search(), profile, profiles.Flags{Roots: opts.roots}, facts); err != nil {
			return err
		}
	}
	changes := profiles.Diff(plans[0], plans[1])
	if err := writeChanges(opts, changes, std); err != nil {
		return err
	}
	if len(changes) > 0 {
		return &toldError{status: exitNo}
	}
	return nil
}

// resolveIfGiven resolves a command; without one the answer is a program of no kind.
func resolveIfGiven(ctx context.Context, server []string, m *machine, absent missing, std stdio) (program.Program, error) {
	if server == nil {
		return program.Program{}, nil
	}
	if len(server) == 0 {
		return program.Program{}, &usageError{problem: `no command after "--"`, hint: `leave out "--", or put a command after it`}
	}
	server, _, err := m.unpack(ctx, "", server, absent, std)
	if err != nil {
		return program.Program{}, err
	}
	return program.Resolve(server, m.program)
}

const profileInitAbout = `
DESCRIPTION
    Prints a first profile to standard output: a commented skeleton, or with a command one
    that matches it. It grants what the command line shows (folder arguments become
    ${roots}) and nothing else; what may be added is written beside each key. Variables and
    hosts that the server's own files name stand there as comments, each with its place; the
    files are read as text, and none is run. A package runner's package is installed into the
    store first. Put the profile into
    $XDG_CONFIG_HOME/stockade/profiles/NAME.yaml.
` + askStatus + `
EXAMPLES
    stockade profile init --name fs -- mcp-server-filesystem ~/project \
        > ~/.config/stockade/profiles/fs.yaml
`

type profileInitOptions struct{ name once }

func newProfileInitCommand(c *call) *cli.Command {
	opts := &profileInitOptions{}
	return &cli.Command{
		Name: "init", Usage: "propose a first profile",
		UsageText: "stockade profile init [--name NAME] [-- COMMAND [ARG]...]", Description: profileInitAbout,
		Flags: []cli.Flag{&cli.GenericFlag{Name: "name", Value: &opts.name, Usage: "`NAME` the profile's name; default: from the command"}},
		Action: func(ctx *cli.Context) error {
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runProfileInit(ctx.Context, opts, c.server, c.stdio)
		},
	}
}

func runProfileInit(ctx context.Context, opts *profileInitOptions, server []string, std stdio) error {
	if err := opts.name.check("name"); err != nil {
		return err
	}
	m, err := lookAround()
	if err != nil {
		return err
	}
	m.unwritten = true
	p, err := resolveIfGiven(ctx, server, &m, installMissing, std)
	if err != nil {
		return err
	}
	if server == nil {
		p.Runtime = program.Shell // the skeleton extends the profile that fits every runtime
	}
	name := opts.name.value
	if name == "" {
		name = proposedName(server, m)
	}
	module := profiles.FindModule(p, m.dir)
	mentions, err := mentionsOf(p, module, m)
	if err != nil {
		std.say(sayWarning, err.Error()+"; the proposal is made without it")
	}
	text := profiles.Propose(profiles.Proposal{Name: name, Program: p, Module: module, Store: m.packages, Mentions: mentions})
	parsed, err := profiles.Parse(name+".yaml", text)
	if err != nil {
		return fmt.Errorf("checking the proposed profile: %w", err)
	}
	if given := opts.name.value; given != "" && parsed.Name.Value != given {
		return &usageError{
			problem: fmt.Sprintf("%q cannot be a profile's name", given),
			hint:    "a name has small letters, digits and single dashes, and begins with a letter",
		}
	}
	_, err = std.out.Write(text)
	return err
}

// proposedName is the base name of the command, or of the package that a runner runs, without
// what ends a script's name. What cannot be a profile's name is replaced by the proposal.
func proposedName(server []string, m machine) string {
	if len(server) == 0 {
		return "server"
	}
	base := filepath.Base(server[0])
	if c, isRunner, err := packages.Parse(server, m.where()); isRunner && err == nil && c.Request.Specs[0].Name != "" {
		return filepath.Base(c.Request.Specs[0].Name)
	}
	return strings.TrimSuffix(base, filepath.Ext(base))
}

type changeView struct {
	Section string     `json:"section"`
	Verb    string     `json:"verb"`
	What    string     `json:"what"`
	Effect  string     `json:"effect"`
	Origin  originView `json:"origin"`
}

func writeChanges(opts *profileDiffOptions, changes []profiles.Change, std stdio) error {
	if opts.json {
		views := make([]changeView, 0, len(changes))
		for _, c := range changes {
			views = append(views, changeView{c.Section, c.Verb.String(), c.What, c.Effect.String(), originView(c.Origin)})
		}
		return writeJSON(std.out, views)
	}
	rows := make([][]string, 0, len(changes))
	for _, c := range changes {
		sign := "~"
		switch c.Verb {
		case profiles.Added:
			sign = "+"
		case profiles.Removed:
			sign = "-"
		case profiles.Changed:
		}
		rows = append(rows, []string{sign, c.Section, escape(c.What), c.Effect.String(), escape(place(originView(c.Origin)))})
	}
	return table(std.out, rows)
}
