package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/urfave/cli/v2"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/supervise"
	"stockade/seccomp"
)

const learnAbout = `
DESCRIPTION
    Runs the server in its jail, as "stockade run --explain-denials" does, and lets you use
    it: standard input and output are its own. When it has ended, prints to standard error
    the smallest addition to its profile that grants what it asked for and was refused, as a
    diff, each entry with what asked for it. Nothing is ever run outside of the jail, and
    nothing is granted while it runs: what comes after a refusal is learned at the next run.

    Where the profile grants no network, the server can make sockets all the same, so that
    the supervisor sees where they lead; it lets nothing out, and answers every lookup of a
    name with a refusal.

    Several files of one folder become the folder, but never your home folder, the system's
    folders or a place that is kept from servers. Keys, passwords and what no profile can
    grant are never proposed: they are listed, with who asked. Each entry has been tried: a
    plan with it could start.

    For a built-in profile, or none, the diff makes a profile of your own. With --save it is
    put there: into $XDG_CONFIG_HOME/stockade/profiles, in the place of your file when it is
    in that folder. Read it first: a server that wants more than it needs learns that, too.

EXIT STATUS
    125  stockade stopped, before the server started or at the proposal
    126  the server's program was found but cannot run
    127  the server's program was not found
    else the server's own; 128 + N when signal N ended it

EXAMPLES
    stockade learn -- npx -y some-server ~/project
    stockade learn --profile notes --save -- node server.js
`

type learnOptions struct {
	launchOptions
	save bool
}

func newLearnCommand(c *call) *cli.Command {
	opts := &learnOptions{}
	return &cli.Command{
		UsageText:   "stockade learn [--save] " + sameSynopsis,
		Description: learnAbout,
		Flags:       append(opts.flags(), &cli.BoolFlag{Name: "save", Usage: "put the result into your own profiles", Destination: &opts.save}),
		Action: func(ctx *cli.Context) error {
			if err := c.needsServer(ctx); err != nil {
				return err
			}
			return runLearn(ctx.Context, opts, c.server, c.stdio)
		},
	}
}

func runLearn(ctx context.Context, opts *learnOptions, server []string, std stdio) error {
	l, err := prepareLesson(ctx, opts, server, std)
	if err != nil {
		return err
	}
	target, err := learnTarget(l, server)
	if err != nil {
		return err
	}
	if opts.save {
		if err := target.writable(); err != nil {
			return err
		}
	}
	opened, err := sandbox.Open(l.resolved.Plan)
	if err != nil {
		return err
	}
	for _, w := range l.warnings(opened.Grants) {
		std.say(sayWarning, w)
	}
	if err := l.machine.auditStart(l); err != nil {
		return err
	}
	learned := newLessons(advisor{plan: l.resolved.Plan, source: l.source, dir: l.machine.dir}, l.machine.home)
	ended := superviseLesson(opened, l, learned, std)
	if _, told := errors.AsType[*toldError](ended); ended != nil && !told {
		return ended
	}
	if err := target.propose(learned, opts, std); err != nil {
		return err
	}
	return ended
}

// superviseLesson supervises a server whose refusals are learned from and logged. The lines
// about refusals come at the end, so there are none meanwhile; the guard's come at once.
func superviseLesson(opened *sandbox.Opened, from launch, learned *lessons, std stdio) error {
	m := from.machine
	denials := openDenialLog(m.state, opened.Plan.Name, stdio{in: std.in, out: std.out, err: io.Discard})
	defer denials.close()
	if m.policies.auditsDenials() {
		denials.audit = toSystemLog
	}
	denials.hide = hider(from.resolved.Profile, opened.Plan.Env)
	lines := newSpool(std.err)
	defer lines.close()
	return superviseServer(opened, hearing{
		note: noteTo(stdio{in: std.in, out: std.out, err: lines}, denials.hide),
		deny: func(d egress.Denial) {
			denials.deny(d)
			learned.denied(d)
		},
		refused: func(r supervise.Refusal) {
			denials.observed(learned.advice.entry(r))
			learned.refused(r)
		},
		unseen: denials.overlooked,
	}, std)
}

// nowhere is a rule for an address that is nobody's (TEST-NET-1, RFC 5737). With it the plan
// has what a server with rules has, resolver files and sockets, and a supervisor; the rule
// itself is taken out again, so that nothing is let out.
const nowhere = "192.0.2.1:9"

// prepareLesson works out the plan of a run, with observation, and with a supervisor for a
// network of which nothing is granted.
func prepareLesson(ctx context.Context, opts *learnOptions, server []string, std stdio) (launch, error) {
	l, err := prepare(ctx, &opts.launchOptions, server, thisProcess, installMissing, std)
	if err != nil {
		return launch{}, err
	}
	if l.resolved.Plan.Network.Egress == sandbox.EgressNone {
		more := opts.launchOptions
		more.egress = append(slices.Clone(more.egress), nowhere)
		wider, err := prepare(ctx, &more, server, thisProcess, refuseMissing, std)
		if err != nil {
			std.say(sayNote, "hosts are not learned: "+err.Error())
		} else {
			l.resolved = wider.resolved
			l.resolved.Plan.Network.Rules.Rules = nil
		}
	}
	l.resolved.Plan.Filter.Observation = seccomp.Observed
	return l, nil
}

// lessonTarget is the profile that a proposal is about.
type lessonTarget struct {
	launch launch
	file   string // where the profile is, or will be
	own    string // the folder of a person's profiles
	base   []byte // its text; of a new one, what it begins with
	isNew  bool
}

// learnTarget finds what a proposal adds to, before the server starts.
func learnTarget(l launch, server []string) (lessonTarget, error) {
	t := lessonTarget{launch: l, own: filepath.Join(l.machine.config, "stockade", "profiles")}
	name, builtin := strings.CutPrefix(l.profile.File, builtInSource)
	switch {
	case builtin:
		t.isNew, t.base = true, profiles.Extension(l.profile)
	case l.profile.File == "":
		p := l.resolved.Program
		p.Args = nil // it ran without folders of its own
		name = learnedName(l, server)
		t.isNew = true
		t.base = profiles.Propose(profiles.Proposal{Name: name, Program: p, Module: l.facts.Module, Store: l.machine.packages})
		parsed, err := profiles.Parse(name+".yaml", t.base)
		if err != nil {
			return t, fmt.Errorf("making a first profile: %w", err)
		}
		name = parsed.Name.Value
	default:
		var err error
		if t.file, err = filepath.Abs(l.profile.File); err != nil {
			return t, fmt.Errorf("finding the profile's file: %w", err)
		}
		t.base, err = readFile(t.file, maxLearned)
		return t, err
	}
	t.file = filepath.Join(t.own, name+".yaml")
	if _, err := os.Lstat(t.file); err == nil {
		return t, &factError{problem: fmt.Sprintf("%q is there already, and is not the profile of this command", t.file), hint: "name it with --profile, or give it a match for this command"}
	}
	return t, nil
}

// commonNames say nothing about a server: scripts and folders of so many have them.
var commonNames = []string{"index", "main", "cli", "bin", "start", "server", "__main__", "dist", "build", "lib", "src", "out"}

// learnedName names a profile after the server's script, or the nearest folder with a name
// that says something, and never as a built-in profile: others may extend that.
func learnedName(l launch, server []string) string {
	name := proposedName(server, l.machine)
	if entry := l.resolved.Program.Entry; entry != "" && l.packaged == nil {
		name = strings.TrimSuffix(filepath.Base(entry), filepath.Ext(entry))
		for folder := filepath.Dir(entry); slices.Contains(commonNames, name) && folder != "/"; folder = filepath.Dir(folder) {
			name = filepath.Base(folder)
		}
	}
	search := l.machine.search()
	if list, err := search.List(); err == nil && slices.ContainsFunc(list, func(have profiles.Listed) bool { return have.Name == name }) {
		name += "-server"
	}
	return strings.ToLower(name)
}

// maxLearned bounds a profile's file.
const maxLearned = 1 << 20

// writable refuses to write anywhere but among a person's own profiles.
func (t lessonTarget) writable() error {
	if filepath.Dir(t.file) == t.own && !t.launch.resolved.Profile.FromRepo {
		return nil
	}
	return &factError{
		problem: fmt.Sprintf("--save: %q is not one of your own profiles in %q", t.file, t.own),
		hint:    "leave out --save, and apply the diff with patch",
	}
}

// propose prints what to add, and puts it there when that is wanted.
func (t lessonTarget) propose(learned *lessons, opts *learnOptions, std stdio) error {
	adds, refused := t.tried(learned.additions(), opts)
	if len(adds) == 0 {
		std.say(sayNote, "nothing was asked for that the profile could grant and does not")
	} else if err := t.addition(adds, opts, std); err != nil {
		return err
	}
	for _, text := range append(learned.withheld(), refused...) {
		std.say(sayNote, "not proposed: "+text)
	}
	return nil
}

// tried keeps the additions with which a plan can be opened, and says why the others are none.
func (t lessonTarget) tried(adds []profiles.Addition, opts *learnOptions) (kept []profiles.Addition, refused []string) {
	for _, one := range adds {
		flags := opts.grants()
		list := map[string]*[]string{
			"filesystem.read": &flags.Read, "filesystem.write": &flags.Write, "filesystem.execute": &flags.Exec,
			"network.egress": &flags.Egress, "network.listen": &flags.Listen, "network.unix": &flags.Unix,
		}[one.Key]
		*list = append(slices.Clone(*list), one.Entry)
		if err := t.try(t.launch.profile, flags); err != nil {
			refused = append(refused, fmt.Sprintf("%s: %s: asked for by %s: %v", one.Key, one.Entry, one.Because, err))
			continue
		}
		kept = append(kept, one)
	}
	return kept, refused
}

// try works out a plan and opens it, as a start would.
func (t lessonTarget) try(p *profiles.Profile, flags profiles.Flags) error {
	m := t.launch.machine
	search := m.search()
	if err := m.admit(search, p); err != nil {
		return err
	}
	resolved, err := compile(search, p, flags, t.launch.facts)
	if err != nil {
		return err
	}
	if err := m.hold(&resolved); err != nil {
		return err
	}
	opened, err := sandbox.Open(resolved.Plan)
	if err != nil {
		return err
	}
	opened.Close()
	return nil
}

// addition prints the diff.
func (t lessonTarget) addition(adds []profiles.Addition, opts *learnOptions, std stdio) error {
	text, err := profiles.Amend(t.file, t.base, adds)
	if err != nil {
		for _, one := range adds {
			std.say(sayNote, fmt.Sprintf("%s: %q: asked for by %s", one.Key, one.Entry, one.Because))
		}
		return err
	}
	parsed, err := profiles.Parse(t.file, text)
	if err != nil {
		return fmt.Errorf("checking the proposal: %w", err)
	}
	if err := t.try(parsed, opts.grants()); err != nil {
		return fmt.Errorf("checking the proposal: %w", err)
	}
	name, before := t.file, string(t.base)
	if t.isNew {
		name, before = os.DevNull, ""
	}
	for line := range strings.Lines(udiff.Unified(name, t.file, before, string(text))) {
		if _, err := io.WriteString(std.err, escape(strings.TrimSuffix(line, "\n"))+"\n"); err != nil {
			return fmt.Errorf("printing the proposal: %w", err)
		}
	}
	if !opts.save {
		std.say(sayNote, counted(len(adds), "addition")+`; read them, and apply them with patch, or run again with --save`)
		return nil
	}
	if err := writeProfile(t.file, text); err != nil {
		return err
	}
	std.say(sayNote, fmt.Sprintf("wrote %q", t.file))
	return nil
}

// writeProfile puts a profile in place with one step, so that no start ever reads half of it.
func writeProfile(file string, text []byte) (err error) {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of your profiles: %w", err)
	}
	f, err := os.CreateTemp(folder, ".learned-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", file, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", file, err)
	}
	return nil
}
