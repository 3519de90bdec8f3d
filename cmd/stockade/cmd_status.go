package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles"
)

const statusAbout = `
DESCRIPTION
    Prints every server in every known configuration file of every host on this machine, your
    own and those of the project in this folder, or in the files that are named: whether it is
    in a jail, with which profile, whether a repository's profile is approved, whether one
    version of its package is pinned, and what is granted beyond the built-in profile.

    standing: "open" is started by the host without a jail, "jailed" behind stockade; "remote"
    runs on another machine, "outside" starts where this jail does not reach (containers, lines of
    shells, programs that start others, another program of the name, an entry whose variables
    decide whose profiles hold); "nothing" starts nothing, and of "broken" nobody can say what a
    host makes. Files with servers in a form or a place that hosts may read or not are "unread".

    With --check the status is 1 when a server is open, outside or broken, when a profile that
    holds one is missing, broken or not approved, or the machine's policy refuses it, or when a
    file cannot be read: for CI and checks of many machines. The hint says what to do about the
    first server of each kind. Disabled servers count: a click enables them.

    With --json: {"servers": [{"host", "file", "project", "server", "line", "disabled",
    "standing", "why", "command", "profile", "place", "approval", "package", "pinned",
    "broader", "error", "notes"}], "files": [{"file", "error"}]}
` + statusStatus

const statusStatus = `
EXIT STATUS
    0    printed; with --check: every server that this machine starts is in its jail
    1    with --check: one is not
    125  it could not be told
`

type statusOptions struct {
	hostOptions
	json, check bool
}

func newStatusCommand(c *call) *cli.Command {
	opts := &statusOptions{}
	return &cli.Command{
		UsageText: "stockade status [--host NAME]... [--check] [--json] [FILE...]", Description: statusAbout,
		Flags: []cli.Flag{
			&cli.GenericFlag{Name: "host", Value: &opts.hosts, Usage: "`NAME` only this host's files; may be repeated"},
			&cli.BoolFlag{Name: "check", Usage: "exit with 1 when a server is not in its jail", Destination: &opts.check},
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
			return runStatus(opts, words, c.stdio)
		},
	}
}

// serverView is one server of status; its form is documented in the help.
type serverView struct {
	Host     string   `json:"host"`
	File     string   `json:"file"`
	Project  string   `json:"project"`
	Server   string   `json:"server"`
	Line     int      `json:"line"`
	Disabled bool     `json:"disabled"`
	Standing standing `json:"standing"`
	Why      string   `json:"why"`
	Command  string   `json:"command"`
	Profile  string   `json:"profile"`
	Place    string   `json:"place"`
	Approval string   `json:"approval"`
	Package  string   `json:"package"`
	Pinned   bool     `json:"pinned"`
	Broader  []string `json:"broader"`
	Error    string   `json:"error"`
	Notes    []string `json:"notes"`

	foreign     bool   // another program is started in stockade's place
	profileFile string // "" for a built-in one
}

type fileView struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

type statusView struct {
	Servers []serverView `json:"servers"`
	Files   []fileView   `json:"files"`
}

func runStatus(opts *statusOptions, names []string, std stdio) error {
	m, err := lookAround()
	if err != nil {
		return err
	}
	v := statusView{Servers: []serverView{}, Files: []fileView{}}
	var files []hostFile
	if len(names) == 0 {
		if files, err = m.hostFiles(opts.hosts); err != nil {
			return err
		}
	} else if files, err = m.hostFilesFor(&opts.hostOptions, names, std); err != nil {
		return err
	}
	for i := range files {
		f := &files[i]
		if f.err != nil {
			v.Files = append(v.Files, fileView{File: f.path, Error: oneLine(f.err)})
			continue
		}
		for _, note := range f.file.Notes {
			v.Files = append(v.Files, fileView{File: f.path, Error: oneLine(hostError(note))})
		}
		for j := range f.file.Servers {
			s := m.judgeServer(f, &f.file.Servers[j])
			v.Servers = append(v.Servers, m.startsIn(s.entry).viewServer(&s))
		}
	}
	if opts.json {
		err = writeJSON(std.out, v)
	} else {
		err = writeStatus(v, std)
	}
	if err != nil || !opts.check {
		return err
	}
	return v.objection()
}

func (m machine) viewServer(s *hostServer) serverView {
	v := serverView{
		Host: s.host.title, File: s.host.path, Project: s.entry.Project, Server: s.entry.Name, Line: s.entry.Line, Disabled: s.entry.Disabled,
		Standing: s.standing, Why: s.why, Command: shortLine(s.entry), Package: s.pinned, Pinned: s.pins, Broader: []string{}, Notes: []string{},
		foreign: s.foreign,
	}
	if s.err != nil {
		v.Error = oneLine(s.err)
	}
	if s.standing != standsOpen && s.standing != standsJailed {
		return v
	}
	switch {
	case s.profile != nil:
		v.Profile, v.Place, v.profileFile = s.profile.Name.Value, string(s.place), s.profile.File
	case s.err != nil:
		v.Profile = s.words.profile.value
	default:
		v.Profile = "empty"
	}
	if s.err == nil && s.standing == standsJailed {
		err := m.compareWithBuiltin(s, &v)
		if err == nil {
			err = m.policyRefuses(s, oneProfile(s.profile), s.place, s.words.grants())
		}
		if err != nil {
			v.Error = oneLine(err)
		}
		if whole, err := m.search().Complete(oneProfile(s.profile)); err == nil {
			v.Notes = append(unreached(whole, s.entry, s.words.env), toldArguments(s)...)
		}
	}
	return v
}

// oneProfile is a profile, or the empty one where none was found.
func oneProfile(found *profiles.Profile) *profiles.Profile {
	if found == nil {
		return profiles.Empty()
	}
	return found
}

// compareWithBuiltin says what is granted beyond the built-in profile that would hold, and
// whether a repository's profile has the word that it needs for that.
func (m machine) compareWithBuiltin(s *hostServer, v *serverView) error {
	found := oneProfile(s.profile)
	whole, err := m.search().Complete(found)
	if err != nil {
		return err
	}
	c := comparison{profile: found, flags: s.words.grants()}
	p, err := standIn()
	if err != nil {
		return err
	}
	if c.facts, err = m.facts(p, anotherProcess); err != nil {
		return err
	}
	c.facts.Env = standIns(c.facts.Env, whole)
	if whole.UsesRoots() && len(c.flags.Roots) == 0 {
		c.flags.Roots = []string{m.dir}
	}
	if c.resolved, err = compile(m.search(), found, c.flags, c.facts); err != nil {
		return err
	}
	if found.FromRepo {
		subject, err := m.subject(c.resolved.Profile, c.resolved.Files)
		if err != nil {
			return err
		}
		changes, _, err := wider(m.search(), c)
		if err != nil {
			return err
		}
		v.Approval = "narrows alone"
		if word, _, err := m.approvals().Of(&subject); err != nil {
			return err
		} else if len(changes) > 0 || word == profiles.Denied {
			v.Approval = word.String()
		}
	}
	builtin, err := m.builtinFor(s)
	if err != nil || builtin == nil {
		return err
	}
	flags := profiles.Flags{}
	if baseWhole, err := m.search().Complete(builtin); err == nil && baseWhole.UsesRoots() {
		flags.Roots = c.flags.Roots
	}
	c.facts.Env = standIns(c.facts.Env, builtin)
	base, err := compile(m.search(), builtin, flags, c.facts)
	if err != nil {
		return err
	}
	for _, change := range profiles.Narrower(c.resolved, base) {
		if !strings.HasPrefix(change.What, "private home") { // each profile has one of its own
			v.Broader = append(v.Broader, change.Section+": "+change.What)
		}
	}
	return nil
}

// builtinFor is the built-in profile that would hold for a server; nil for none.
func (m machine) builtinFor(s *hostServer) (*profiles.Profile, error) {
	only := m
	only.repo, only.config = "", ""
	search := only.search()
	search.System = ""
	found, err := matchLine(search, only, s.entry.Own())
	return found, err
}

func writeStatus(v statusView, std stdio) error {
	var rows [][]string
	for i := range v.Servers {
		s := &v.Servers[i]
		name := s.Server
		if s.Project != "" {
			name += " (" + s.Project + ")"
		}
		rows = append(rows, []string{string(s.Standing), escape(oneOf(s.Host, s.File)), escape(name), escape(s.Command), escape(s.told())})
	}
	for _, f := range v.Files {
		rows = append(rows, []string{"unread", escape(f.File), "", "", escape(f.Error)})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(std.out, "No configuration file of a known host is here.")
		return err
	}
	return table(std.out, rows)
}

// told is the last cell of a server's line.
func (s *serverView) told() string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if s.Standing == standsJailed {
		if s.Profile != "" {
			add("profile " + s.Profile)
		}
		add(s.Approval)
		if s.Package != "" {
			word := "not pinned: "
			if s.Pinned {
				word = "pinned: "
			}
			add(word + s.Package)
		}
		if len(s.Broader) > 0 {
			add("broader than the built-in profile: " + strings.Join(s.Broader, ", "))
		}
	}
	add(s.Why)
	add(s.Error)
	for _, note := range s.Notes {
		add(note)
	}
	if s.Disabled {
		add("disabled in the host")
	}
	return strings.Join(parts, "; ")
}
