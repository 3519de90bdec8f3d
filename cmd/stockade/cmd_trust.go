package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"stockade/profiles"
	"stockade/sandbox/program"
)

const allowAbout = `
DESCRIPTION
    A profile in a repository's .stockade/profiles may narrow what applies without it; to
    grant more it needs your word. This prints exactly what such a profile would grant beyond
    that, and keeps your yes: for this file and this content. Any edit, also of a profile that
    it extends or of its system call file, ends the approval. A denial is taken back.

    FILE is a profile; without one, every profile of the repository that needs a word is
    asked about in turn. With a command the plans for that command are compared, as "run"
    does it; without one the plans for a stand-in, with the repository's top folder in place
    of the server's folder arguments.

    Approvals lie in $XDG_STATE_HOME/stockade/approvals, where no jail reaches, and not in
    the repository.
` + trustStatus + `
EXAMPLES
    stockade allow
    stockade allow .stockade/profiles/web.yaml -- npx -y some-server
`

const denyAbout = `
DESCRIPTION
    The profile in FILE is passed over from now on, whatever it holds and grants: what would
    apply without it applies. To name it with --profile FILE is an error. An approval of it is
    forgotten. "stockade allow FILE" takes the denial back.
` + trustStatus + `
EXAMPLES
    stockade deny .stockade/profiles/web.yaml
`

const trustStatus = `
EXIT STATUS
    0    done, or nothing to do
    1    the answer was no
    125  it could not be done; the error says why
`

type trustOptions struct{ yes bool }

func newAllowCommand(c *call) *cli.Command {
	opts := &trustOptions{}
	return &cli.Command{
		UsageText: "stockade allow [--yes] [FILE] [-- COMMAND [ARG]...]", Description: allowAbout,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "do not ask", Destination: &opts.yes}},
		Action: func(ctx *cli.Context) error {
			words, err := c.words(ctx, 0, 1)
			if err != nil {
				return err
			}
			return runAllow(ctx.Context, opts, words, c.server, c.stdio)
		},
	}
}

func newDenyCommand(c *call) *cli.Command {
	return &cli.Command{
		UsageText: "stockade deny FILE", Description: denyAbout,
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 1, 1)
			if err != nil {
				return err
			}
			return runDeny(words[0], c.stdio)
		},
	}
}

func runAllow(ctx context.Context, opts *trustOptions, words, server []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	files := words
	if len(files) == 0 {
		if files, err = m.repositoryFiles(); err != nil {
			return err
		}
	}
	p, err := resolveIfGiven(ctx, server, &m, refuseMissing, std)
	if err != nil {
		return err
	}
	asked := false
	for _, file := range files {
		q, err := m.question(file, p, server)
		if err != nil {
			return err
		}
		if len(words) == 0 && q.word == profiles.Denied {
			fmt.Fprintf(std.out, "%s is denied since %s; name it to take that back.\n", escape(file), q.since.Local().Format(time.DateOnly))
			continue
		}
		if len(q.changes) == 0 && q.word != profiles.Denied {
			if len(words) > 0 {
				fmt.Fprintf(std.out, "%s grants nothing beyond %s and needs no approval.\n", escape(file), escape(q.than))
			}
			continue
		}
		if q.word == profiles.Allowed {
			fmt.Fprintf(std.out, "%s is allowed already, since %s.\n", escape(file), q.since.Local().Format(time.DateOnly))
			continue
		}
		asked = true
		if err := m.allow(q, opts, std); err != nil {
			return err
		}
	}
	if len(words) == 0 && !asked {
		fmt.Fprintf(std.out, "No profile of this repository needs an approval.\n")
	}
	return nil
}

// repositoryFiles are the profiles of the repository that can be read.
func (m machine) repositoryFiles() ([]string, error) {
	if m.repo == "" {
		return nil, &usageError{problem: "this folder is in no repository", hint: "name the profile: stockade allow FILE"}
	}
	search := m.search()
	search.Denied = nil // a denied one can be allowed again, by its name
	listed, err := search.List()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, l := range listed {
		if l.Place != profiles.PlaceRepo {
			continue
		}
		if l.Err != nil {
			return nil, l.Err
		}
		files = append(files, l.File)
	}
	return files, nil
}

// question is what a person is asked about one profile.
type question struct {
	subject profiles.Subject
	than    string
	changes []profiles.Change
	word    profiles.Word
	since   time.Time
	standIn bool // in place of a command
}

// question compares a repository's profile with what applies without it.
func (m machine) question(file string, p program.Program, server []string) (question, error) {
	profile, err := profiles.ParseFile(file)
	if err != nil {
		return question{}, err
	}
	if !profile.FromRepo && !m.inRepository(profile.File) {
		return question{}, &usageError{
			problem: fmt.Sprintf("%q is no repository's profile: it needs no approval", file),
			hint:    "profiles of repositories lie in a folder .stockade/profiles",
		}
	}
	profile.FromRepo = true
	c := comparison{profile: profile, named: profile.Name.Value, server: server}
	search := m.search()
	whole, err := search.Complete(profile)
	if err != nil {
		return question{}, err
	}
	if server == nil {
		if p, err = standIn(); err != nil {
			return question{}, err
		}
		if whole.UsesRoots() {
			top, err := filepath.Abs(filepath.Join(filepath.Dir(file), "../.."))
			if err != nil {
				return question{}, err
			}
			// It stands for the folder arguments that the server would have.
			c.flags.Roots = []string{top}
		}
	}
	if c.facts, err = m.facts(p, anotherProcess); err != nil {
		return question{}, err
	}
	c.facts.Env = standIns(c.facts.Env, whole)
	if c.resolved, err = compile(search, c.profile, c.flags, c.facts); err != nil {
		return question{}, err
	}
	q := question{standIn: server == nil}
	if q.subject, err = m.subject(c.resolved.Profile, c.resolved.Files); err != nil {
		return q, err
	}
	if q.word, q.since, err = m.approvals().Of(&q.subject); err != nil {
		return q, err
	}
	// Named with --profile, it stands in the place of the one of its name; else, and when its
	// file is named, in that of what matches the command. The word is for all of them.
	if err := q.compare(search, c); err != nil {
		return q, err
	}
	if server == nil && len(q.changes) == 0 && m.matchesAsNamed(search, whole) {
		return q, nil
	}
	c.named = ""
	return q, q.compare(search, c)
}

// compare adds what a plan grants beyond what would apply without the repository.
func (q *question) compare(search profiles.Search, c comparison) error {
	changes, base, err := wider(search, c)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if !slices.ContainsFunc(q.changes, func(have profiles.Change) bool { return have.Section == change.Section && have.What == change.What }) {
			q.changes = append(q.changes, change)
		}
	}
	if than := shownFile(base.Profile); q.than == "" {
		q.than = than
	} else if q.than != than {
		q.than += " or " + than
	}
	return nil
}

// matchesAsNamed tells whether a profile is for no more command lines than the one of its name
// in the other places: then that is what it is compared with at every start.
func (m machine) matchesAsNamed(search profiles.Search, p *profiles.Profile) bool {
	base, err := search.WithoutRepo().Find(p.Name.Value)
	if err != nil {
		return false
	}
	within := func(list, of []profiles.Sourced[string]) bool {
		return !slices.ContainsFunc(list, func(s profiles.Sourced[string]) bool {
			return !slices.ContainsFunc(of, func(o profiles.Sourced[string]) bool { return o.Value == s.Value })
		})
	}
	return within(p.Match.Packages, base.Match.Packages) && within(p.Match.Commands, base.Match.Commands)
}

// standIn is a program in the place of one that is not known: it makes no difference between
// two plans.
func standIn() (program.Program, error) {
	self, err := ownProgram()
	return program.Program{File: self, Argv: []string{self}}, err
}

// standIns gives a value to each secret that is not set here: hosts set them, and a
// comparison needs none.
func standIns(env map[string]string, p *profiles.Profile) map[string]string {
	env = maps.Clone(env)
	for _, s := range p.Environment.Secrets {
		if env[s.Name] == "" {
			env[s.Name] = "stand-in"
		}
	}
	return env
}

// allow asks, and keeps a yes.
func (m machine) allow(q question, opts *trustOptions, std stdio) error {
	fmt.Fprintf(std.out, "%s grants beyond %s:\n", escape(q.subject.File), escape(q.than))
	rows := make([][]string, 0, len(q.changes))
	var lines []string
	for _, c := range q.changes {
		if q.standIn && strings.HasPrefix(c.What, "private home ") {
			c.What = "private home" // its name holds the stand-in's
		}
		rows = append(rows, []string{"  " + c.Section, escape(c.What) + " " + c.Verb.String(), escape(place(originView(c.Origin)))})
		lines = append(lines, c.String())
	}
	if len(rows) == 0 {
		rows = [][]string{{"  nothing; it is denied"}}
	}
	if err := table(std.out, rows); err != nil {
		return err
	}
	if err := m.policies.each(func(p *profiles.Policy) error { return p.CheckApproval(q.subject.File) }); len(q.changes) > 0 && err != nil {
		return err
	}
	yes, err := confirm("Allow this content?", opts, std)
	if err != nil {
		return err
	}
	if !yes {
		return &noError{answer: "not allowed", hint: "the profile stays refused; " + shellWords([]string{"stockade", "deny", q.subject.File}) + " passes it over"}
	}
	if err := m.approvals().Allow(&q.subject, lines, time.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "Allowed %s; any edit ends it.\n", escape(q.subject.File))
	return nil
}

// confirm asks a person at a terminal. Without one there is nobody to ask.
func confirm(text string, opts *trustOptions, std stdio) (bool, error) {
	if opts.yes {
		return true, nil
	}
	in, isFile := std.in.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) { //nolint:gosec // a descriptor fits an int
		return false, &usageError{problem: "there is no terminal to ask at", hint: "read what it says above, and give --yes"}
	}
	if _, err := io.WriteString(std.err, text+" [y/N] "); err != nil {
		return false, fmt.Errorf("asking: %w", err)
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF { //nolint:errorlint // ReadString returns io.EOF itself
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))), nil
}

func runDeny(file string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(file)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return &factError{problem: fmt.Sprintf("looking for %q", file), hint: "correct the path", cause: plainError(err)}
	}
	if !strings.Contains(real, "/.stockade/") && !m.inRepository(file) {
		return &usageError{
			problem: fmt.Sprintf("%q is no repository's profile: it is yours to remove", file),
			hint:    "profiles of repositories lie in a folder .stockade/profiles",
		}
	}
	if err := m.approvals().Deny(real, time.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "Denied %s; it is passed over from now on.\n", escape(file))
	return nil
}
