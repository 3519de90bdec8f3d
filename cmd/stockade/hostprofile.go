package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"stockade/profiles"
	"stockade/profiles/hostconfig"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// flagValue is what takes a flag's value; false for one that has none.
func flagValue(f cli.Flag) (set func(string) error, takes bool) {
	if generic, ok := f.(*cli.GenericFlag); ok {
		return generic.Value.Set, true
	}
	return nil, false
}

// change is what wrap does with one entry.
type change struct {
	server   *hostServer
	edit     hostconfig.Edit
	proposal *proposal // a profile that is written with it; nil for none
	notes    []string
}

// proposal is a first profile for a server that no profile is for.
type proposal struct {
	name, file string
	text       []byte
	kept       bool // an earlier wrap wrote it: it is the person's by now
}

// change works out how an entry is wrapped. launcher is what its command becomes.
func (m machine) change(s *hostServer, launcher string, taken map[string]bool) (change, error) {
	c := change{server: s, edit: hostconfig.Edit{Ref: s.entry.Ref, Launcher: launcher}}
	plain, secret, notes := variables(s.entry)
	c.notes = append(notes, toldArguments(s)...)
	if s.profile != nil {
		whole, err := m.search().Complete(s.profile)
		if err != nil {
			return c, err
		}
		for _, name := range slices.Concat(plain, secret) {
			if !passesVariable(whole, name) {
				c.edit.Words = append(c.edit.Words, "--env", name)
			}
		}
		c.notes = append(c.notes, ownValues(whole, s.entry, nil)...)
		return c, nil
	}
	if s.host.scope == hostconfig.Project {
		// Others read this file too, and have no profile of ours.
		for _, name := range slices.Concat(plain, secret) {
			c.edit.Words = append(c.edit.Words, "--env", name)
		}
		c.notes = append(c.notes, "no profile is for it: it gets its own program and runtime; write .stockade/profiles/NAME.yaml for more")
		return c, nil
	}
	p, err := m.proposalFor(s, plain, secret, taken)
	if err != nil {
		return c, err
	}
	c.proposal = p
	c.edit.Words = []string{"--profile", p.name}
	return c, nil
}

// passesVariable tells whether a server of the profile has a variable of its host's.
func passesVariable(p *profiles.Profile, name string) bool {
	env := &p.Environment
	return slices.ContainsFunc(env.Secrets, func(s profiles.Secret) bool { return s.Name == name }) ||
		slices.ContainsFunc(env.Set, func(v profiles.EnvSet) bool { return v.Name == name }) ||
		slices.ContainsFunc(env.Pass, func(s profiles.Sourced[string]) bool { return profiles.Passes(s.Value, name) })
}

// ownValues are notes of the entry's variables that have no effect, since the profile sets them
// itself. A name that --env gives in words is another matter.
func ownValues(whole *profiles.Profile, entry *hostconfig.Server, given []string) []string {
	var notes []string
	for _, name := range namesSet(entry) {
		sets := slices.ContainsFunc(whole.Environment.Set, func(v profiles.EnvSet) bool { return v.Name == name })
		if sets && !givesVariable(given, name) {
			notes = append(notes, fmt.Sprintf("%s: the profile sets its own, so the entry's value has no effect; see: stockade profile show %s", name, whole.Name.Value))
		}
	}
	return notes
}

// unreached are notes of every variable of a jailed entry that does not reach the server as it is
// written.
func unreached(whole *profiles.Profile, entry *hostconfig.Server, given []string) []string {
	notes := ownValues(whole, entry, given)
	for _, name := range namesSet(entry) {
		switch why := profiles.NeverPassed(name); {
		case why != "":
			notes = append(notes, fmt.Sprintf("%s does not reach the server: %s", name, why))
		case !passesVariable(whole, name) && !givesVariable(given, name):
			notes = append(notes, fmt.Sprintf("%s does not reach the server: neither its profile nor --env names it", name))
		}
	}
	return notes
}

// givesVariable tells whether --env has a variable.
func givesVariable(given []string, name string) bool {
	return slices.ContainsFunc(given, func(word string) bool { return word == name || strings.HasPrefix(word, name+"=") })
}

func namesSet(entry *hostconfig.Server) []string {
	names := slices.Clone(entry.Inherits)
	for _, v := range entry.Env {
		if !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// variables splits the variables that an entry sets by whether they are secrets. Notes say
// which are written out where others may read them, and which no server gets.
func variables(entry *hostconfig.Server) (plain, secret, notes []string) {
	for _, v := range entry.Env {
		if secretName(v.Name) && v.Value.Reveal() != "" && !placeholderAlone(v.Value.Reveal()) {
			notes = append(notes, fmt.Sprintf("line %d: the value of %s is written out in this file", v.Line, v.Name))
		}
	}
	for _, name := range namesSet(entry) {
		switch why := profiles.NeverPassed(name); {
		case why != "":
			notes = append(notes, fmt.Sprintf("%s does not reach the server: %s", name, why))
		case secretName(name):
			secret = append(secret, name)
		default:
			plain = append(plain, name)
		}
	}
	return plain, secret, notes
}

// toldArguments are notes of the arguments that look like secrets, without them.
func toldArguments(s *hostServer) []string {
	own := s.entry.Own()
	before := 0
	if w := s.entry.Wrapped; w != nil {
		before = len(w.Words) + 2 // the launcher and "--"
	}
	var notes []string
	for i, shown := range maskArguments(own) {
		if shown == own[i] || strings.Contains(own[i], "${") || placeholderAlone(own[i]) {
			continue
		}
		line, _ := s.host.file.WordPlace(s.entry.Ref, before+i)
		notes = append(notes, fmt.Sprintf("line %d: an argument looks like a secret: it is written out in this file, and every process of the machine can read it", line))
	}
	return notes
}

// placeholderAlone tells whether a value is one thing that the host fills in.
func placeholderAlone(value string) bool {
	return strings.HasPrefix(value, "$") || strings.HasPrefix(value, "{env:") || strings.HasPrefix(value, "{file:")
}

// proposalFor writes a first profile: its runtime, its folder arguments, its variables.
func (m machine) proposalFor(s *hostServer, plain, secret []string, taken map[string]bool) (*proposal, error) {
	folder := filepath.Join(m.config, "stockade", "profiles")
	header := fmt.Sprintf("# Proposed by \"stockade wrap\" for the server %q of %s.\n", s.entry.Name, oneOf(s.host.title, s.host.path))
	name, kept := proposedFor(header, s.entry.Name, folder, taken)
	p := &proposal{name: name, file: filepath.Join(folder, name+".yaml"), kept: kept}
	taken[name] = true
	if kept {
		return p, nil
	}
	var b strings.Builder
	b.WriteString(header)
	b.WriteString("# What is not granted here is refused by the kernel. Lines to uncomment are examples.\n")
	fmt.Fprintf(&b, "version: 1\nname: %s\nextends: [%s]\n\nfilesystem:\n", p.name, m.baseFor(s.entry.Own()))
	if slices.ContainsFunc(m.argumentsOf(s.entry.Own()), isPathThere) {
		b.WriteString("  write: [\"${args}\"]            # the paths among the server's own arguments: read and write\n\n")
	} else {
		b.WriteString("  # write: [\"${home}/project\"]  # read and write\n  # read: [\"${home}/reference\"]\n\n")
	}
	b.WriteString("# network: {egress: [api.example.com]}   # the hosts that it may connect to\n")
	if len(plain)+len(secret) > 0 {
		b.WriteString("\nenvironment:                            # what the host's configuration sets\n")
		if len(plain) > 0 {
			fmt.Fprintf(&b, "  pass: [%s]\n", strings.Join(plain, ", "))
		}
		if len(secret) > 0 {
			fmt.Fprintf(&b, "  secrets: [%s]\n", strings.Join(secret, ", "))
		}
	}
	p.text = []byte(b.String())
	if _, err := profiles.Parse(p.file, p.text); err != nil {
		return nil, fmt.Errorf("proposing a profile for %q: %w", s.entry.Name, err)
	}
	return p, nil
}

// argumentsOf are the server's own arguments, without what starts it, as far as that is known.
func (m machine) argumentsOf(line []string) []string {
	if c, isRunner, err := packages.Parse(line, m.where()); isRunner && err == nil {
		return c.Args
	}
	if p, err := program.Resolve(line, m.program); err == nil {
		return p.Args
	}
	return line[1:]
}

// isPathThere tells whether an argument names something on this machine, in whatever folder the
// host starts the server.
func isPathThere(arg string) bool {
	if !filepath.IsAbs(arg) {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil
}

// baseFor is the built-in profile for the runtime of a command line, by its spelling: nothing
// is installed or started to find it.
func (m machine) baseFor(line []string) string {
	if c, isRunner, err := packages.Parse(line, m.where()); isRunner && err == nil {
		if c.Request.Kind == packages.PyPI {
			return "python"
		}
		return "node"
	}
	switch base := filepath.Base(line[0]); {
	case strings.HasPrefix(base, "node"), base == "bun", base == "deno":
		return "node"
	case strings.HasPrefix(base, "python"):
		return "python"
	}
	return "base"
}

// proposedFor is the profile's name for a server: that of the file which an earlier wrap
// proposed for it, else one that no file has.
func proposedFor(header, server, folder string, taken map[string]bool) (name string, kept bool) {
	stem := profileStem(server)
	for n, candidate := 2, stem; ; n++ {
		_, builtin := profiles.Builtin(candidate)
		text, err := os.ReadFile(filepath.Join(folder, candidate+".yaml"))
		switch {
		case builtin || taken[candidate]:
		case err == nil && strings.HasPrefix(string(text), header):
			return candidate, true
		case errors.Is(err, fs.ErrNotExist):
			return candidate, false
		}
		candidate = fmt.Sprintf("%s-%d", stem, n)
	}
}

// profileStem makes a profile's name from a server's.
func profileStem(server string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(server) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "server-" + name
	}
	return strings.Trim(name[:min(len(name), 48)], "-")
}

// write puts the profile into the person's folder. A file that is there by now is an error.
func (p *proposal) write() error {
	fail := func(err error) error {
		return &factError{problem: fmt.Sprintf("writing the profile %q", p.file), hint: "make its folder writable", cause: plainError(err)}
	}
	if err := os.MkdirAll(filepath.Dir(p.file), 0o700); err != nil {
		return fail(err)
	}
	if _, err := os.Lstat(p.file); err == nil {
		return fail(os.ErrExist)
	}
	if err := renameio.WriteFile(p.file, p.text, 0o600, renameio.IgnoreUmask()); err != nil {
		return fail(err)
	}
	return nil
}
