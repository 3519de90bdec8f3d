package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stockade/profiles"
	"stockade/sandbox/packages"
)

// systemFolder holds the machine's profiles and policy, in its folder stockade, and
// systemOwner owns them. No word of a command line and no variable says another one.
var (
	systemFolder = "/etc"
	systemOwner  = 0
)

func systemPolicyFile() string { return filepath.Join(systemFolder, "stockade", "policy.yaml") }

// policies are what holds here: the machine's own, and those that --policy adds.
type policies struct {
	system *profiles.Policy // nil: the machine has none
	added  []*profiles.Policy
}

func (ps policies) all() []*profiles.Policy {
	if ps.system == nil {
		return ps.added
	}
	return append([]*profiles.Policy{ps.system}, ps.added...)
}

// admits tells whether every policy lets profiles come from a place.
func (ps policies) admits(place profiles.Place) bool {
	return !slices.ContainsFunc(ps.all(), func(p *profiles.Policy) bool { return !p.Admits(place) })
}

// each asks all of them, and returns the first refusal.
func (ps policies) each(ask func(*profiles.Policy) error) error {
	for _, p := range ps.all() {
		if err := ask(p); err != nil {
			return err
		}
	}
	return nil
}

// addPolicies reads the files of --policy.
func (m *machine) addPolicies(files []string) error {
	for _, file := range files {
		p, err := profiles.ReadPolicy(file)
		if err != nil {
			return err
		}
		m.policies.added = append(m.policies.added, p)
	}
	return nil
}

// hold holds a plan to every limit.
func (m machine) hold(r *profiles.Resolved) error {
	return m.policies.each(func(p *profiles.Policy) error {
		f := profiles.PolicyFacts{Real: realAsFar}
		if p.UsesHome() {
			var err error
			if f.Homes, err = m.homes(p.File); err != nil {
				return err
			}
		}
		return p.Apply(r, f)
	})
}

// homes are the user's home folders: the one of the user database, and HOME if it says
// another. A limit that holds for HOME alone would be the person's to move.
func (m machine) homes(file string) ([]string, error) {
	out := []string{m.home}
	uid := strconv.Itoa(os.Getuid())
	home := ""
	if u, err := user.LookupId(uid); err == nil {
		home = u.HomeDir
	} else if home, err = homeBySwitch(uid); err != nil {
		return nil, &factError{
			problem: fmt.Sprintf("%s has limits below ${home}, and the home folder of user %s is not known", file, uid),
			hint:    "add the user to the machine's user database (getent passwd " + uid + ")", cause: err,
		}
	}
	if filepath.IsAbs(home) && filepath.Clean(home) != m.home {
		out = append(out, filepath.Clean(home))
	}
	return out, nil
}

// homeBySwitch asks the name service switch, which knows users that are in no file.
func homeBySwitch(uid string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ask := exec.CommandContext(ctx, "/usr/bin/getent", "passwd", uid)
	ask.Env = []string{} // nothing of the person's decides what it answers
	said, err := ask.Output()
	if err != nil {
		return "", fmt.Errorf("asking getent: %w", err)
	}
	fields := bytes.Split(bytes.TrimRight(said, "\n"), []byte(":"))
	if len(fields) != 7 || string(fields[2]) != uid {
		return "", errors.New("getent's answer is not an entry of that user")
	}
	return string(fields[5]), nil
}

// realAsFar resolves the links of a path as far as it exists.
func realAsFar(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if !errors.Is(err, fs.ErrNotExist) || at == "/" {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// admit judges a profile by where it comes from.
func (m machine) admit(search profiles.Search, found *profiles.Profile) error {
	place := search.PlaceOf(found)
	return m.policies.each(func(p *profiles.Policy) error { return p.CheckProfile(found, place) })
}

// auditStart tells the machine's log of a start, where a policy wants that. No argument and
// no variable is told: they may be secrets.
func (m machine) auditStart(l launch) error {
	return m.policies.each(func(p *profiles.Policy) error {
		if p.Starts.Value != profiles.AuditSyslog {
			return nil
		}
		plan := &l.resolved.Plan
		line := fmt.Sprintf("start uid=%d profile=%q source=%q program=%q package=%q egress=%s", os.Getuid(), plan.Name, l.source,
			plan.File, l.resolved.Program.Package, egressName(plan.Network))
		if err := toSystemLog(line); err != nil {
			return &factError{
				problem: fmt.Sprintf("%s wants each start told to the system's log", p.Starts.Where()),
				hint:    "start the service that reads /dev/log (rsyslog, or systemd-journald)", cause: err,
			}
		}
		return nil
	})
}

// auditsDenials tells whether a policy wants refusals told.
func (ps policies) auditsDenials() bool {
	return slices.ContainsFunc(ps.all(), func(p *profiles.Policy) bool { return p.Denied.Value == profiles.AuditSyslog })
}

// policyView is a policy as explain and doctor show it.
type policyView struct {
	File   string   `json:"file"`
	Limits []string `json:"limits"` // "limits.network.egress (line 7)"
}

func viewPolicies(list []*profiles.Policy) []policyView {
	out := []policyView{}
	for _, p := range list {
		v := policyView{File: p.File, Limits: []string{}}
		for _, l := range p.Written() {
			v.Limits = append(v.Limits, fmt.Sprintf("%s (line %d)", l.Key, l.Line))
		}
		out = append(out, v)
	}
	return out
}

// policyNotes are for people who read a plan: which policies held it.
func policyNotes(list []*profiles.Policy) []string {
	var out []string
	for _, v := range viewPolicies(list) {
		out = append(out, "held to the policy "+v.File+": "+strings.Join(v.Limits, ", "))
	}
	return out
}

// admitPackages holds a request to the policies' lists of packages, before anything is
// installed.
func (m machine) admitPackages(r packages.Request) error {
	for _, spec := range r.Specs {
		name := ""
		if spec.Source == packages.Registry {
			name = string(r.Kind) + ":" + spec.Name
		}
		if err := m.policies.each(func(p *profiles.Policy) error { return p.CheckPackage(name, "") }); err != nil {
			return err
		}
	}
	return nil
}

// admitEntry holds what was installed to them: its version is known by now.
func (m machine) admitEntry(r packages.Request, e *packages.Entry) error {
	if !r.Registered() {
		return nil // admitted package by package, or not at all
	}
	return m.policies.each(func(p *profiles.Policy) error { return p.CheckPackage(string(e.Kind)+":"+e.Name, e.Version) })
}
