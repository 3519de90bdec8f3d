package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"stockade/sandbox/packages"
)

const packageListAbout = `
DESCRIPTION
    Prints the packages of the store: name, version, what was asked for, size, since when,
    and the version that is newest for it now, which is asked of the registry (--offline
    leaves that out). "in use" lists processes that run it.

    With --json: [{"kind", "name", "version", "digest", "folder", "requests", "runtime",
    "installed", "size", "files", "packages", "scripts", "in_use", "newest"}]; "size" is in
    bytes, "packages" counts the packages of the tree, and "newest" is "" when it is not
    known.
` + askStatus

type packageListOptions struct{ json, offline bool }

func newPackageListCommand(c *call) *cli.Command {
	opts := &packageListOptions{}
	return &cli.Command{
		Name: "list", Usage: "list the packages of the store, and what is newer",
		UsageText: "stockade package list [--offline] [--json]", Description: packageListAbout,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "offline", Usage: "do not ask the registries", Destination: &opts.offline},
			&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json},
		},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runPackageList(ctx.Context, opts, c.stdio)
		},
	}
}

type storedView struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Digest    string    `json:"digest"`
	Folder    string    `json:"folder"`
	Requests  []string  `json:"requests"`
	Runtime   string    `json:"runtime"`
	Installed time.Time `json:"installed"`
	Size      int64     `json:"size"`
	Files     int       `json:"files"`
	Packages  int       `json:"packages"`
	Scripts   []string  `json:"scripts"`
	InUse     []int     `json:"in_use"`
	Newest    string    `json:"newest"`
}

func runPackageList(ctx context.Context, opts *packageListOptions, std stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	m, err := lookAround()
	if err != nil {
		return err
	}
	in := newInstaller(m, std)
	listed, err := in.store.List()
	if err != nil {
		return err
	}
	views := make([]storedView, 0, len(listed))
	for _, l := range listed {
		v := storedView{
			Kind: string(l.Kind), Name: l.Name, Version: l.Version, Digest: l.Digest, Folder: l.Folder, Requests: []string{},
			Runtime: l.Runtime, Installed: l.Installed, Size: l.Size, Files: l.Files, Packages: len(l.Locked),
			Scripts: list(l.Scripts), InUse: list(l.InUse),
		}
		for _, r := range l.Requests {
			v.Requests = append(v.Requests, r.Key())
		}
		views = append(views, v)
	}
	if !opts.offline {
		in.newest(ctx, listed, views)
	}
	if opts.json {
		return writeJSON(std.out, views)
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		rows = append(rows, []string{
			v.Kind + ":" + escape(v.Name), escape(v.Version), sized(v.Size), v.Installed.Local().Format("2006-01-02"), escape(v.state()),
		})
	}
	return table(std.out, rows)
}

// state is what a person should know of an entry, in a few words.
func (v *storedView) state() string {
	var words []string
	switch {
	case len(v.Requests) == 0:
		words = append(words, "not asked for any more")
	case v.Newest != "" && v.Newest != v.Version:
		words = append(words, v.Newest+" is there")
	case v.Newest != "":
		words = append(words, "newest")
	}
	if len(v.Scripts) > 0 {
		words = append(words, "install scripts of "+strings.Join(v.Scripts, ", "))
	}
	if len(v.InUse) > 0 {
		words = append(words, "in use by "+strings.Trim(fmt.Sprint(v.InUse), "[]"))
	}
	return strings.Join(words, "; ")
}

// sized writes a number of bytes for a person.
func sized(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

const packageRemoveAbout = `
DESCRIPTION
    Removes packages from the store: what was asked for and its tree, unless another request
    has the same tree. --unused removes the trees that no request has any more, also those
    that an update left, and what broken installs left.

    A tree that a running server was started from stays, and is named; --force removes it.

    With --json: [{"kind", "name", "version", "folder", "removed", "in_use"}].

EXIT STATUS
    0    all was removed
    1    something is in use, and stays
    125  stockade could not do it
`

type packageRemoveOptions struct{ json, unused, force bool }

func newPackageRemoveCommand(c *call) *cli.Command {
	opts := &packageRemoveOptions{}
	return &cli.Command{
		Name: "remove", Usage: "remove packages from the store",
		UsageText: "stockade package remove [--unused] [--force] [--json] [PACKAGE...]", Description: packageRemoveAbout,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "unused", Usage: "remove what no request has any more", Destination: &opts.unused},
			&cli.BoolFlag{Name: "force", Usage: "also what a running server was started from", Destination: &opts.force},
			&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json},
		},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 0, ctx.Args().Len())
			if err != nil {
				return err
			}
			if len(words) == 0 && !opts.unused {
				return &usageError{problem: `"stockade package remove" needs packages, or --unused`, hint: `"stockade package list" shows what is there`}
			}
			return runPackageRemove(ctx.Context, opts, words, c.stdio)
		},
	}
}

type removedView struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Folder  string `json:"folder"`
	Removed bool   `json:"removed"`
	InUse   []int  `json:"in_use"`
}

func runPackageRemove(ctx context.Context, opts *packageRemoveOptions, words []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	store := m.store()
	listed, err := store.List()
	if err != nil {
		return err
	}
	var doomed []packages.Listed
	if len(words) > 0 {
		if doomed, err = named(listed, words); err != nil {
			return err
		}
	}
	if opts.unused {
		for _, l := range listed {
			if len(l.Requests) == 0 {
				doomed = append(doomed, l)
			}
		}
	}
	views := []removedView{}
	kept := 0
	for _, l := range doomed {
		v := removedView{Kind: string(l.Kind), Name: l.Name, Version: l.Version, Folder: l.Folder, InUse: list(l.InUse)}
		if len(l.InUse) > 0 && !opts.force {
			kept++
		} else {
			if err := store.Remove(ctx, l); err != nil {
				return err
			}
			v.Removed = true
		}
		views = append(views, v)
	}
	if err := writeRemoved(opts, views, std); err != nil {
		return err
	}
	if kept > 0 {
		return &noError{answer: counted(kept, "package") + " in use, and still there", hint: "end the servers, or use --force: they fail when they load a file that is gone"}
	}
	return nil
}

func writeRemoved(opts *packageRemoveOptions, views []removedView, std stdio) error {
	if opts.json {
		return writeJSON(std.out, views)
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		what := "removed"
		if !v.Removed {
			what = "in use by " + strings.Trim(fmt.Sprint(v.InUse), "[]")
		}
		rows = append(rows, []string{v.Kind + ":" + escape(v.Name), escape(v.Version), what})
	}
	return table(std.out, rows)
}
