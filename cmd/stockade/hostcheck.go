package main

import (
	"fmt"
	"strings"

	"stockade/profiles"
)

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
