package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stockade/profiles"
	"stockade/profiles/hostconfig"
	"stockade/sandbox/packages"
)

// startsIn is the machine as an entry's server sees it: its folder decides which repository's
// profiles there are. One with a placeholder, or relative to what the host has open, is not known
// here, so that the folder of this process stands for it.
func (m machine) startsIn(entry *hostconfig.Server) machine {
	if !filepath.IsAbs(entry.Cwd) || strings.ContainsAny(entry.Cwd, "${") {
		return m
	}
	m.dir = realAsFar(filepath.Clean(entry.Cwd))
	m.repo = repository(m.dir, m.home, os.Getuid())
	m.program.Dir = m.dir
	return m
}

// policyRefuses says why a policy would refuse the start of a server, as far as that is told
// before anything is installed: by the place of its profile, its flags and its package.
func (m machine) policyRefuses(s *hostServer, found *profiles.Profile, place profiles.Place, flags profiles.Flags) error {
	err := m.policies.each(func(p *profiles.Policy) error {
		if err := p.CheckFlags(flags); err != nil {
			return err
		}
		return p.CheckProfile(found, place)
	})
	if err != nil {
		return err
	}
	if c, isRunner, err := packages.Parse(s.entry.Own(), m.where()); isRunner && err == nil {
		return m.admitPackages(c.Request)
	}
	return nil
}

// starts says why the server of a change would not start: what a policy refuses, as an error, and
// a repository's profile that nobody approved, in a note.
func (m machine) starts(c *change) error {
	words, err := parseRunWords(append([]string{"run"}, c.edit.Words...))
	if err != nil {
		return err
	}
	found, place := oneProfile(c.server.profile), c.server.place
	if c.proposal != nil {
		found, place = &profiles.Profile{File: c.proposal.file}, profiles.PlaceUser
	}
	if err := m.policyRefuses(c.server, found, place, words.grants()); err != nil {
		return err
	}
	if !found.FromRepo {
		return nil
	}
	would := *c.server
	would.words = words
	var v serverView
	if err := m.compareWithBuiltin(&would, &v); err != nil {
		return err
	}
	switch v.Approval {
	case profiles.Unasked.String(), profiles.Denied.String():
		c.notes = append(c.notes, "the repository's profile is "+v.Approval+", so the server does not start before: "+shellWords([]string{"stockade", "allow", found.File}))
	}
	return nil
}

// fault is what status --check objects to in a server; "" for nothing.
type fault string

const (
	faultOpen     fault = "open"
	faultOutside  fault = "outside"
	faultBroken   fault = "broken"
	faultUnasked  fault = "not approved"
	faultDenied   fault = "denied"
	faultProfile  fault = "profile"
	faultLauncher fault = "launcher"
)

func (s *serverView) fault() fault {
	switch s.Standing {
	case standsOpen:
		return faultOpen
	case standsOutside:
		if s.foreign {
			return faultLauncher
		}
		return faultOutside
	case standsBroken:
		return faultBroken
	case standsJailed:
		switch {
		case s.Error != "":
			return faultProfile
		case s.Approval == profiles.Unasked.String():
			return faultUnasked
		case s.Approval == profiles.Denied.String():
			return faultDenied
		}
	case standsRemote, standsNothing:
	}
	return ""
}

// cure is what to do about a server's fault.
func (s *serverView) cure() string {
	at := fmt.Sprintf("%s, line %d", s.File, s.Line)
	switch s.fault() {
	case faultOpen:
		return shellWords([]string{"stockade", "wrap", "--server", s.Server})
	case faultOutside, faultBroken:
		return "correct the entry in " + at + ": " + s.Why
	case faultLauncher:
		return "have " + at + " start this program: " + s.Why
	case faultUnasked:
		return shellWords([]string{"stockade", "allow", s.profileFile})
	case faultDenied:
		return "its profile is denied; take that back with: " + shellWords([]string{"stockade", "allow", s.profileFile})
	case faultProfile:
		return "mend its profile, or the words before \"--\" in " + at + ": " + s.Error
	}
	return ""
}

// objection is what --check says; nil when every server is as it should be. Of each fault the
// hint names the first server, with its cure.
func (v *statusView) objection() error {
	n := len(v.Files)
	var hints []string
	told := map[fault]bool{}
	for i := range v.Servers {
		s := &v.Servers[i]
		f := s.fault()
		if f == "" {
			continue
		}
		if n++; !told[f] {
			told[f] = true
			hints = append(hints, fmt.Sprintf("%q: %s", s.Server, s.cure()))
		}
	}
	if len(v.Files) > 0 {
		hints = append(hints, "correct the file: "+v.Files[0].Error)
	}
	if n == 0 {
		return nil
	}
	return &noError{answer: counted(n, "server or file") + " not as it should be", hint: strings.Join(hints, "; ")}
}
