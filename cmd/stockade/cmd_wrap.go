package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles/hostconfig"
)

const wrapAbout = `
DESCRIPTION
    Puts "stockade run --" in front of the servers in hosts' configuration files. Without FILE
    it looks at every known file on this machine: your own, and those of the project in this
    folder. It shows what it would change, each server with its profile and what that grants,
    and what stays as it is and why; then it asks.

    Nothing else in a file changes: comments, order, layout, unknown keys and placeholders stay
    byte for byte, and "stockade unwrap" gives the same bytes back. A copy of each file is kept
    in $XDG_STATE_HOME/stockade/backups. A file that its host writes meanwhile is left alone.

    A server whose package or command has a profile gets that one. For another one a first
    profile is written to $XDG_CONFIG_HOME/stockade/profiles: its runtime, the paths among its
    arguments and its variables, and no network. In a repository's file it gets its own program and
    runtime alone. Variables that an entry sets go on to the server (--env, or the profile).

    Your own files get the full path of this program, a repository's files the bare name.
    Remote servers, containers, lines of shells and programs that start others (env, timeout, sudo)
    are told and left, and so is what the machine's policy refuses.

    With --dry-run: a unified diff, with values of variables and what looks like a secret masked,
    and nothing is written.
` + hostStatus + `
EXAMPLES
    stockade wrap --dry-run
    stockade wrap --host claude-code --server filesystem
    stockade wrap .mcp.json
`

const unwrapAbout = `
DESCRIPTION
    Takes "stockade run --" away from the servers in hosts' configuration files, all or those
    that are named. The files are then what they were. Profiles stay.
` + hostStatus + `
EXAMPLES
    stockade unwrap
    stockade unwrap --host cursor --yes
`

const hostStatus = `
EXIT STATUS
    0    done, or nothing to do
    1    the answer was no, or a file could not be changed; the others are
    125  nothing was done; the error says why
`

// hostOptions say which entries of which files are meant.
type hostOptions struct {
	yes, dryRun    bool
	hosts, servers many
	unread         int // files that could not be read
}

// done is the end of what could be done.
func (o *hostOptions) done() error {
	if o.unread > 0 {
		return &toldError{status: exitNo}
	}
	return nil
}

func (o *hostOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "host", Value: &o.hosts, Usage: "`NAME` only this host's files; may be repeated"},
		&cli.GenericFlag{Name: "server", Value: &o.servers, Usage: "`NAME` only servers of this name; may be repeated"},
		&cli.BoolFlag{Name: "dry-run", Usage: "print a diff and change nothing", Destination: &o.dryRun},
		&cli.BoolFlag{Name: "yes", Usage: "do not ask", Destination: &o.yes},
	}
}

func newWrapCommand(c *call) *cli.Command {
	return newHostCommand(c, "stockade wrap", wrapAbout, runWrap)
}

func newUnwrapCommand(c *call) *cli.Command {
	return newHostCommand(c, "stockade unwrap", unwrapAbout, runUnwrap)
}

func newHostCommand(c *call, path, about string, run func(*hostOptions, []string, stdio) error) *cli.Command {
	opts := &hostOptions{}
	return &cli.Command{
		UsageText: path + " [--host NAME]... [--server NAME]... [--dry-run] [--yes] [FILE...]", Description: about, Flags: opts.flags(),
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 0, ctx.Args().Len())
			if err != nil {
				return err
			}
			return run(opts, words, c.stdio)
		},
	}
}

// hostFilesFor are the files that a command line means. A known file that cannot be read is
// told and left out; one that was named is an error.
func (m machine) hostFilesFor(opts *hostOptions, names []string, std stdio) ([]hostFile, error) {
	if len(names) == 0 {
		found, err := m.hostFiles(opts.hosts)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(found, func(f hostFile) bool {
			if f.err != nil {
				opts.unread++
				std.say(sayWarning, "left as it is: "+oneLine(f.err))
			}
			return f.err != nil
		}), nil
	}
	if len(opts.hosts) > 0 {
		return nil, &usageError{problem: "--host and a file are both given", hint: "leave one of them out"}
	}
	var out []hostFile
	for _, name := range names {
		f, err := namedHostFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func (o *hostOptions) means(s *hostconfig.Server) bool {
	return len(o.servers) == 0 || slices.Contains(o.servers, s.Name)
}

// checkServers refuses a name that no entry has: it is a typing mistake, and not nothing to do.
func (o *hostOptions) checkServers(files []hostFile) error {
	var known []string
	for i := range files {
		for j := range files[i].file.Servers {
			known = append(known, files[i].file.Servers[j].Name)
		}
	}
	for _, name := range o.servers {
		if slices.Contains(known, name) {
			continue
		}
		slices.Sort(known)
		hint := "there are " + strings.Join(slices.Compact(known), ", ")
		if len(known) == 0 {
			hint = "no file that was read has one"
		}
		if near := nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return &usageError{problem: fmt.Sprintf("no server is called %q", name), hint: hint}
	}
	return nil
}

// rewrite is what becomes of one file.
type rewrite struct {
	file    *hostFile
	after   []byte
	changes []change
}

func runWrap(opts *hostOptions, names []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	files, err := m.hostFilesFor(opts, names, std)
	if err == nil {
		err = opts.checkServers(files)
	}
	if err != nil {
		return err
	}
	self, err := ownProgram()
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	var todo []rewrite
	var rows [][]string
	for i := range files {
		f := &files[i]
		r := rewrite{file: f}
		for _, note := range f.file.Notes {
			std.say(sayWarning, "left as it is: "+oneLine(hostError(note)))
		}
		for j := range f.file.Servers {
			s := m.judgeServer(f, &f.file.Servers[j])
			if !opts.means(s.entry) {
				continue
			}
			if s.standing != standsOpen {
				rows = append(rows, planRow(&s, "stays", oneOf(s.why, "jailed already")))
				continue
			}
			launcher := self
			if f.scope == hostconfig.Project {
				launcher = "stockade"
			}
			there := m.startsIn(s.entry)
			c, err := there.change(&s, launcher, taken)
			if err == nil {
				err = there.starts(&c)
			}
			if err != nil {
				rows = append(rows, planRow(&s, "stays", oneLine(err)))
				continue
			}
			// One entry that cannot be wrapped does not keep the others from it.
			if _, err := f.file.Wrap(c.edit); err != nil {
				rows = append(rows, planRow(&s, "stays", oneLine(hostError(err))))
				continue
			}
			r.changes = append(r.changes, c)
			rows = append(rows, planRow(&s, "wrap", strings.Join(append([]string{m.planText(&c)}, c.notes...), "; ")))
		}
		if len(r.changes) == 0 {
			continue
		}
		var edits []hostconfig.Edit
		for _, c := range r.changes {
			edits = append(edits, c.edit)
		}
		if r.after, err = f.file.Wrap(edits...); err != nil {
			return hostError(err)
		}
		todo = append(todo, r)
	}
	if err := opts.showPlan(rows, std); err != nil {
		return err
	}
	return m.carryOut(opts, todo, "Wrap these servers?", std)
}

// carryOut shows, asks and writes.
func (m machine) carryOut(opts *hostOptions, todo []rewrite, question string, std stdio) error {
	if len(todo) == 0 {
		if _, err := fmt.Fprintln(std.out, "Nothing to change."); err != nil {
			return err
		}
		return opts.done()
	}
	if opts.dryRun {
		if err := writeDiffs(todo, std); err != nil {
			return err
		}
		return opts.done()
	}
	for _, r := range todo {
		fmt.Fprintf(std.out, "%s: %s\n", escape(r.file.real), counted(len(r.changes), "server"))
	}
	yes, err := confirm(question, &trustOptions{yes: opts.yes}, std)
	if err != nil {
		return err
	}
	if !yes {
		return &noError{answer: "nothing was changed", hint: "name hosts, files or servers to change some of it; --dry-run shows the difference"}
	}
	var failed []error
	for _, r := range todo {
		if err := m.carryOutOne(&r); err != nil {
			failed = append(failed, err)
			std.fail(err)
			continue
		}
		fmt.Fprintf(std.out, "Changed %s.\n", escape(r.file.real))
	}
	if len(failed) > 0 {
		return &toldError{status: exitNo}
	}
	if _, err = fmt.Fprintln(std.out, "The hosts read their files at their next start; some ask again whether a changed server may start."); err != nil {
		return err
	}
	return opts.done()
}

// carryOutOne writes one file, and before it the profiles that its servers are to have.
func (m machine) carryOutOne(r *rewrite) error {
	var written []string
	for _, c := range r.changes {
		if c.proposal == nil || c.proposal.kept {
			continue
		}
		if err := c.proposal.write(); err != nil {
			return err
		}
		written = append(written, c.proposal.file)
	}
	err := r.file.write(r.after, backupFolder(m.state))
	if err != nil {
		for _, file := range written { // nobody names them
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

func runUnwrap(opts *hostOptions, names []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	files, err := m.hostFilesFor(opts, names, std)
	if err == nil {
		err = opts.checkServers(files)
	}
	if err != nil {
		return err
	}
	var todo []rewrite
	var rows [][]string
	for i := range files {
		f := &files[i]
		r := rewrite{file: f}
		var refs []hostconfig.Ref
		for j := range f.file.Servers {
			entry := &f.file.Servers[j]
			if entry.Wrapped == nil || !opts.means(entry) {
				continue
			}
			s := hostServer{host: f, entry: entry}
			if _, err := f.file.Unwrap(entry.Ref); err != nil {
				rows = append(rows, planRow(&s, "stays", oneLine(hostError(err))))
				continue
			}
			refs = append(refs, entry.Ref)
			r.changes = append(r.changes, change{server: &s})
			rows = append(rows, planRow(&s, "unwrap", "starts without a jail"))
		}
		if len(refs) == 0 {
			continue
		}
		if r.after, err = f.file.Unwrap(refs...); err != nil {
			return hostError(err)
		}
		if !bytes.Equal(r.after, f.data) {
			todo = append(todo, r)
		}
	}
	if err := opts.showPlan(rows, std); err != nil {
		return err
	}
	return m.carryOut(opts, todo, "Take these servers out of their jails?", std)
}
