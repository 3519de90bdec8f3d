package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles"
	"stockade/profiles/hostconfig"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// standing is what a server's entry in a host's file is to stockade.
type standing string

const (
	standsOpen    standing = "open"    // started by the host as it is: to be wrapped
	standsJailed  standing = "jailed"  // started behind stockade
	standsRemote  standing = "remote"  // runs on another machine
	standsOutside standing = "outside" // starts on this machine, where no jail of ours holds it
	standsNothing standing = "nothing" // starts nothing: an override, a part of the host
	standsBroken  standing = "broken"  // no host could start it, or the entry cannot be changed
)

// hostServer is one entry, judged.
type hostServer struct {
	host     *hostFile
	entry    *hostconfig.Server
	standing standing
	why      string // for a standing that says not enough by itself

	foreign bool              // what is called stockade is another program
	words   launchOptions     // of a jailed entry
	profile *profiles.Profile // that holds, or would; nil: the empty one
	place   profiles.Place
	err     error  // why the profile cannot be told
	pinned  string // "npm:x 1.2.3" when a start takes just that; else "" or what is asked for
	pins    bool
}

// judgeServer looks at one entry. It starts nothing and asks no registry.
func (m machine) judgeServer(f *hostFile, entry *hostconfig.Server) hostServer {
	m = m.startsIn(entry)
	s := hostServer{host: f, entry: entry}
	line := entry.Own()
	switch entry.Kind {
	case hostconfig.Remote:
		s.standing, s.why = standsRemote, "runs on another machine; nothing is started here"
		return s
	case hostconfig.Empty:
		s.standing, s.why = standsNothing, "neither command nor address: it changes an entry of another file"
		return s
	case hostconfig.Builtin:
		s.standing, s.why = standsNothing, "a part of the host itself"
		return s
	case hostconfig.Inline:
		s.standing, s.why = standsOutside, "code in the file itself, which the host runs on this machine"
		return s
	case hostconfig.Wrong:
		s.standing, s.why = standsBroken, refusalText(entry.Refusal)
		return s
	case hostconfig.Command:
	}
	s.standing = standsOpen
	if entry.Refusal != nil { // whatever it says it starts, a host may read something else
		s.standing, s.why = standsBroken, refusalText(entry.Refusal)
		return s
	}
	if why := m.decidesBefore(f, entry); why != "" {
		s.standing, s.why = standsOutside, why
		return s
	}
	if entry.Wrapped != nil {
		if why := m.foreignLauncher(entry.Wrapped.Launcher); why != "" {
			s.standing, s.why, s.foreign = standsOutside, why, true
			return s
		}
		s.standing = standsJailed
		if s.words, s.err = parseRunWords(entry.Wrapped.Words); s.err != nil {
			return s
		}
	}
	c, isRunner, err := packages.Parse(line, m.where())
	switch {
	case err != nil:
		s.outside(oneLine(err))
		return s
	case isRunner:
		m.pin(&s, c)
	default:
		if why := startsAnother(line); why != "" {
			s.outside(why)
			return s
		}
		if w := packages.Wrapped(line); w != nil {
			why := w.Shown + " " + w.Why
			if w.Runs != nil {
				why += "; instead: " + shellWords(maskArguments(w.Runs))
			}
			s.outside(why)
			return s
		}
	}
	s.profile, s.place, s.err = m.profileFor(s.words.profile.value, line)
	return s
}

// decidesBefore names a variable of an entry that decides which stockade its host starts, or
// whose profiles and approvals that takes for the person's; "" for none. One that says what is so
// anyway decides nothing. The folder of an entry (cwd) is no such thing: a repository's profile
// holds as far as a person approved it, wherever the server starts.
func (m machine) decidesBefore(f *hostFile, entry *hostconfig.Server) string {
	bare := entry.Wrapped == nil && f.scope == hostconfig.Project || entry.Wrapped != nil && !strings.Contains(entry.Wrapped.Launcher, "/")
	for _, v := range entry.Env {
		name := v.Name
		if now, set := m.env[name]; set && now == v.Value.Reveal() {
			continue
		}
		switch {
		case name == "HOME", strings.HasPrefix(name, "XDG_") && strings.HasSuffix(name, "_HOME"):
			return fmt.Sprintf("line %d: the entry sets %s, which decides whose profiles and approvals hold; remove it", v.Line, name)
		case strings.HasPrefix(name, "LD_"):
			return fmt.Sprintf("line %d: the entry sets %s, which puts code into stockade itself; remove it", v.Line, name)
		case name == "PATH" && bare:
			return fmt.Sprintf("line %d: the entry sets PATH, which decides which program stockade is; remove it, or write stockade's full path", v.Line)
		}
	}
	return ""
}

// foreignLauncher says why a program of the name is not known to be this one; "" when it is. A
// bare name is looked up as a host with this PATH does.
func (m machine) foreignLauncher(launcher string) string {
	self, err := ownProgram()
	if err != nil {
		return oneLine(err)
	}
	path := launcher
	switch {
	case filepath.IsAbs(launcher):
	case strings.Contains(launcher, "/"):
		return fmt.Sprintf("%s is another program in each folder", launcher)
	default:
		if path, err = exec.LookPath(launcher); err != nil {
			return fmt.Sprintf("no program %s is on the PATH", launcher)
		}
	}
	found, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("%s: %v", path, plainError(err))
	}
	own, err := os.Stat(self)
	if err != nil || !os.SameFile(found, own) {
		return fmt.Sprintf("%s is not this program (%s), so nobody knows what it starts", path, self)
	}
	return ""
}

// outside marks a command line that no jail of ours holds. One that is wrapped all the same
// does not start, so it is jailed in its way.
func (s *hostServer) outside(why string) {
	s.why = why
	if s.standing == standsOpen {
		s.standing = standsOutside
	}
}

func refusalText(e *hostconfig.Error) string {
	if e == nil {
		return "the entry cannot be read"
	}
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// pin tells whether a start takes one version alone: the one that the store has.
func (m machine) pin(s *hostServer, c packages.Command) {
	first := c.Request.Specs[0]
	s.pinned = first.Name
	if first.Name == "" {
		s.pinned = maskWord(first.Place)
	}
	if s.standing == standsJailed {
		e, found, err := m.store().Find(c.Request)
		if err == nil && found {
			s.pinned, s.pins = e.Name+" "+e.Version, true
			return
		}
	}
	if first.Version != "" {
		s.pinned += "@" + first.Version
	}
}

// profileFor finds the profile that holds for a server's own command line.
func (m machine) profileFor(name string, line []string) (*profiles.Profile, profiles.Place, error) {
	search := m.search()
	var found *profiles.Profile
	var err error
	if name == "" {
		found, err = matchLine(search, m, line)
	} else {
		found, err = m.find(search, name)
	}
	if err != nil || found == nil {
		return nil, "", err
	}
	return found, search.PlaceOf(found), nil
}

// matchLine finds the profile that matches a command line, as far as its spelling says.
func matchLine(search profiles.Search, m machine, line []string) (*profiles.Profile, error) {
	c, isRunner, err := packages.Parse(line, m.where())
	switch {
	case err != nil:
		return nil, err
	case isRunner && c.Request.Registered():
		return search.MatchPackage(fmt.Sprintf("%s:%s", c.Request.Kind, c.Request.Specs[0].Name))
	case isRunner:
		return nil, nil //nolint:nilnil // its name says nothing: no profile matches by it
	}
	p, err := program.Resolve(line, m.program)
	if err != nil { // the host's PATH is another one, or it fills a placeholder in
		p = program.Program{Named: filepath.Base(line[0])}
	}
	return search.Match(p)
}

// parseRunWords reads what stands between a launcher and "--": run and its flags.
func parseRunWords(words []string) (launchOptions, error) {
	var o launchOptions
	flags := o.flags()
	for i := 1; i < len(words); i++ {
		word := words[i]
		name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		at := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		if !strings.HasPrefix(word, "-") || at < 0 {
			return o, &usageError{problem: "the words before \"--\" are not those of stockade run", hint: "see: stockade run --help"}
		}
		set, takes := flagValue(flags[at])
		if !takes {
			continue
		}
		if !joined {
			if i++; i == len(words) {
				return o, &usageError{problem: fmt.Sprintf("--%s needs a value", name), hint: "see: stockade run --help"}
			}
			value = words[i]
		}
		if err := set(value); err != nil {
			return o, err
		}
	}
	return o, o.check()
}

// gets says in a few words what a profile grants.
func (m machine) gets(p *profiles.Profile) string {
	if p == nil {
		return "its own program and runtime"
	}
	whole, err := m.search().Complete(p)
	if err != nil {
		return "unknown: " + oneLine(err)
	}
	var parts []string
	add := func(word string, list []string) {
		if len(list) > 0 {
			parts = append(parts, word+" "+strings.Join(list, " "))
		}
	}
	paths := func(list []profiles.PathEntry) []string {
		var out []string
		for _, e := range list {
			out = append(out, e.Path)
		}
		return out
	}
	add("writes", paths(whole.Filesystem.Write))
	add("reads", paths(whole.Filesystem.Read))
	if n := len(whole.Filesystem.Execute); n > 4 {
		parts = append(parts, fmt.Sprintf("starts %d programs", n))
	} else {
		add("starts", texts(whole.Filesystem.Execute))
	}
	if word := whole.Network.Egress.Value; word != "" && word != profiles.EgressNone {
		parts = append(parts, "reaches "+string(word))
	}
	var hosts []string
	for _, e := range whole.Network.Hosts {
		hosts = append(hosts, e.To)
	}
	add("reaches", hosts)
	var secrets []string
	for _, s := range whole.Environment.Secrets {
		secrets = append(secrets, s.Name)
	}
	add("knows", secrets)
	if len(parts) == 0 {
		return "its own program and runtime"
	}
	return strings.Join(parts, "; ")
}

func texts(list []profiles.Sourced[string]) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Value)
	}
	return out
}
