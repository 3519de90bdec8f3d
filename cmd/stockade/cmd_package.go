package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"stockade/sandbox/packages"
)

const packageAbout = `
DESCRIPTION
    The store behind package runners. "stockade run -- npx -y PACKAGE" installs a package
    once, in a jail that reaches its registry and writes the store, and runs its own program
    in another jail that reaches neither. These commands do the first half by hand.

    What is installed stays: a name without a version, or with a tag or range, is resolved
    once, and only "stockade package update" resolves it again.

    PACKAGE is npm:NAME, npm:NAME@VERSION, pypi:NAME or pypi:NAME==VERSION; versions may be
    ranges, and npm's may be tags. update and remove also take a bare NAME.

    Install scripts do not run, unless a profile that matches the package, or the one that
    --profile names, lists it under install.scripts.

    The store is $XDG_DATA_HOME/stockade/packages (~/.local/share when unset). It is checked
    at every start: a file that changed since is an error.
` + askStatus

func newPackageCommand(c *call) *cli.Command {
	return &cli.Command{
		UsageText: `stockade package add [--profile NAME|FILE] [--egress RULE]... [--json] PACKAGE... | -- RUNNER [ARG]...
			stockade package update [--egress RULE]... [--json] [PACKAGE...]
			stockade package list [--offline] [--json]
			stockade package remove [--unused] [--force] [--json] [PACKAGE...]`,
		Description: packageAbout,
		Subcommands: []*cli.Command{newPackageAddCommand(c), newPackageUpdateCommand(c), newPackageListCommand(c), newPackageRemoveCommand(c)},
		Action:      c.needsSubcommand,
	}
}

// packageOptions are the flags of the commands that install.
type packageOptions struct {
	json    bool
	profile once
	egress  many
}

func (o *packageOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "egress", Value: &o.egress, Usage: "`RULE` a further host that this install may reach; may be repeated"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &o.json},
	}
}

const packageAddAbout = `
DESCRIPTION
    Installs packages that are not in the store yet. With a runner's command line after "--"
    it installs what that would run, and starts nothing.

    With --json: [{"request", "kind", "name", "version", "folder", "changed", "previous"}];
    "changed" is false when it was there already.
` + askStatus

func newPackageAddCommand(c *call) *cli.Command {
	opts := &packageOptions{}
	return &cli.Command{
		Name: "add", Usage: "install packages into the store",
		UsageText: "stockade package add [--profile NAME|FILE] [--egress RULE]... [--json] PACKAGE... | -- RUNNER [ARG]...", Description: packageAddAbout,
		Flags: append(opts.flags(), &cli.GenericFlag{Name: "profile", Value: &opts.profile, Usage: "`NAME|FILE` the profile whose install section holds; default: the one that matches"}),
		Action: func(ctx *cli.Context) error {
			words, err := c.words(ctx, 0, ctx.Args().Len())
			if err != nil {
				return err
			}
			if (len(words) == 0) == (c.server == nil) {
				return &usageError{problem: `"stockade package add" needs packages, or a runner's command line after "--"`, hint: "stockade package add npm:NAME"}
			}
			return runPackageAdd(ctx.Context, opts, words, c.server, c.stdio)
		},
	}
}

// installedView is what add and update did with one request.
type installedView struct {
	Request  string `json:"request"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Folder   string `json:"folder"`
	Changed  bool   `json:"changed"`
	Previous string `json:"previous"`
}

func runPackageAdd(ctx context.Context, opts *packageOptions, words, server []string, std stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	m, err := lookAround()
	if err != nil {
		return err
	}
	requests, err := m.requests(words, server)
	if err != nil {
		return err
	}
	views := []installedView{}
	for _, r := range requests {
		in := newInstaller(m, std)
		in.egress = opts.egress
		if err := in.allowScripts(opts.profile.value, &r); err != nil {
			return err
		}
		_, there, err := in.store.Find(r)
		if err != nil {
			return err
		}
		e, err := in.ensure(ctx, r)
		if err != nil {
			return err
		}
		views = append(views, newInstalledView(r, e, !there, ""))
	}
	return writeInstalled(opts, views, std)
}

// requests are the packages that words name, or the one that a runner's command line does.
func (m machine) requests(words, server []string) ([]packages.Request, error) {
	if server == nil {
		var out []packages.Request
		for _, word := range words {
			r, err := packages.AddRequest(word)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	if len(server) == 0 {
		return nil, &usageError{problem: `no command after "--"`, hint: "stockade package add -- npx -y PACKAGE"}
	}
	c, isRunner, err := packages.Parse(server, m.where())
	switch {
	case err != nil:
		return nil, err
	case !isRunner:
		return nil, &usageError{problem: fmt.Sprintf("%q is no package runner", server[0]), hint: "stockade package add npm:NAME"}
	}
	return []packages.Request{c.Request}, nil
}

func newInstalledView(r packages.Request, e packages.Entry, changed bool, previous string) installedView {
	return installedView{
		Request: r.Key(), Kind: string(e.Kind), Name: e.Name, Version: e.Version, Folder: e.Folder, Changed: changed, Previous: previous,
	}
}

func writeInstalled(opts *packageOptions, views []installedView, std stdio) error {
	if opts.json {
		return writeJSON(std.out, list(views))
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		what := "installed"
		switch {
		case !v.Changed:
			what = "unchanged"
		case v.Previous != "":
			what = "was " + v.Previous
		}
		rows = append(rows, []string{v.Kind + ":" + escape(v.Name), escape(v.Version), escape(what)})
	}
	return table(std.out, rows)
}

const packageUpdateAbout = `
DESCRIPTION
    Resolves what was asked for again and installs what is newer: for the packages that are
    named, or for all. The old trees stay for servers that run; "stockade package remove
    --unused" takes them away.

    With --json as "stockade package add".
` + askStatus

func newPackageUpdateCommand(c *call) *cli.Command {
	opts := &packageOptions{}
	return &cli.Command{
		Name: "update", Usage: "resolve and install packages again",
		UsageText: "stockade package update [--egress RULE]... [--json] [PACKAGE...]", Description: packageUpdateAbout,
		Flags: opts.flags(),
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 0, ctx.Args().Len())
			if err != nil {
				return err
			}
			return runPackageUpdate(ctx.Context, opts, words, c.stdio)
		},
	}
}

func runPackageUpdate(ctx context.Context, opts *packageOptions, words []string, std stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	m, err := lookAround()
	if err != nil {
		return err
	}
	store := m.store()
	listed, err := store.List()
	if err != nil {
		return err
	}
	if listed, err = named(listed, words); err != nil {
		return err
	}
	views := []installedView{}
	var failed []error
	for _, l := range listed {
		for _, r := range l.Requests {
			in := newInstaller(m, std)
			in.egress = opts.egress
			e, err := in.again(ctx, r)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			v := newInstalledView(r, e, e.Folder != l.Folder, "")
			if v.Changed {
				v.Previous = l.Version
			}
			views = append(views, v)
		}
	}
	if err := writeInstalled(opts, views, std); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// named keeps the entries that words name: "npm:NAME", with a version or not, or NAME alone.
// A word that names none is an error. No words name all.
func named(listed []packages.Listed, words []string) ([]packages.Listed, error) {
	if len(words) == 0 {
		return listed, nil
	}
	var out []packages.Listed
	for _, word := range words {
		found := false
		for _, l := range listed {
			full := string(l.Kind) + ":" + l.Name
			if word != full && word != l.Name && word != full+"@"+l.Version && word != full+"=="+l.Version {
				continue
			}
			found = true
			if !slices.ContainsFunc(out, func(o packages.Listed) bool { return o.Folder == l.Folder }) {
				out = append(out, l)
			}
		}
		if !found {
			return nil, &usageError{problem: fmt.Sprintf("%q is not in the store", hideValue(word)), hint: `"stockade package list" shows what is`}
		}
	}
	return out, nil
}

// interruptible ends an install at the signals that a person or a host sends.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
}
