package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
)

// planView is the plan as explain shows it: the JSON form is documented in the help, and
// the text form is written from the same values. It holds names of variables and no values.
type planView struct {
	Profile     profileView     `json:"profile"`
	Program     programView     `json:"program"`
	Stored      *entryView      `json:"stored,omitempty"`
	Dir         string          `json:"dir"`
	Grants      []grantView     `json:"grants"`
	Network     networkView     `json:"network"`
	Syscalls    syscallsView    `json:"syscalls"`
	Environment []string        `json:"environment"`
	Secrets     []secretView    `json:"secrets"`
	Install     installView     `json:"install"`
	Folders     foldersView     `json:"folders"`
	Limits      limitsView      `json:"limits"`
	Guard       *guardView      `json:"guard,omitempty"`
	Layers      []layerView     `json:"layers"`
	Waived      []sandbox.Layer `json:"waived"`
	Warnings    []string        `json:"warnings"`
	Notes       []string        `json:"notes"`
	Residual    []residualView  `json:"residual"`
}

type profileView struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

type programView struct {
	File    string   `json:"file"`
	Argv    []string `json:"argv"`
	Runtime string   `json:"runtime"`
	Entry   string   `json:"entry"`
	Package string   `json:"package"`
}

// entryView is the package of the store that a runner's command line asks for.
type entryView struct {
	Runner   string   `json:"runner"`
	Request  string   `json:"request"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Digest   string   `json:"digest"`
	Folder   string   `json:"folder"`
	Packages int      `json:"packages"`
	Scripts  []string `json:"scripts"`
}

func viewEntry(p *packaged) *entryView {
	if p == nil {
		return nil
	}
	return &entryView{
		Runner: p.command.Runner, Request: p.command.Request.Key(), Kind: string(p.entry.Kind), Name: p.entry.Name, Version: p.entry.Version,
		Digest: p.entry.Digest, Folder: p.entry.Folder, Packages: len(p.entry.Locked), Scripts: list(p.entry.Scripts),
	}
}

type grantView struct {
	Access string     `json:"access"`
	Path   string     `json:"path"`
	Target string     `json:"target"`
	Kind   string     `json:"kind"`
	State  string     `json:"state"`
	Why    string     `json:"why"`
	Broad  string     `json:"broad"`
	Origin originView `json:"origin"`
}

type originView struct {
	Source string `json:"source"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type networkView struct {
	Egress     string       `json:"egress"`
	Rules      []ruleView   `json:"rules"`
	Listen     []uint16     `json:"listen"`
	Unix       []socketView `json:"unix"`
	Supervised bool         `json:"supervised"`
	Observed   bool         `json:"observed"`
}

// ruleView is one rule of egress. Names is how the name is held on the rule's ports, and
// Addresses where it may lead, "ordinary" or "any"; both are "" where there is no name.
type ruleView struct {
	To        string     `json:"to"`
	Names     string     `json:"names"`
	Addresses string     `json:"addresses"`
	Origin    originView `json:"origin"`

	note string // what to add to Names, for people
}

type socketView struct {
	Path   string     `json:"path"`
	Broad  string     `json:"broad"`
	Origin originView `json:"origin"`
}

type syscallsView struct {
	Default string       `json:"default"`
	Allowed int          `json:"allowed"`
	Answers []answerView `json:"answers"`
}

// answerView is one answer other than "allowed", and the calls that may get it.
type answerView struct {
	Answer string   `json:"answer"`
	Calls  []string `json:"calls"`
}

type foldersView struct {
	Home string `json:"home"`
	Tmp  string `json:"tmp"`
}

type limitsView struct {
	OpenFiles uint64 `json:"open_files"`
	FileSize  uint64 `json:"file_size"`
	Memory    uint64 `json:"memory"`
	Processes uint64 `json:"processes"`
}

type layerView struct {
	Layer   sandbox.Layer `json:"layer"`
	Verdict string        `json:"verdict"`
	Detail  string        `json:"detail"`
}

type residualView struct {
	Promise string `json:"promise"`
	Open    string `json:"open"`
}

func view(l launch, opened *sandbox.Opened) (planView, error) {
	plan := opened.Plan
	calls, err := viewSyscalls(plan)
	if err != nil {
		return planView{}, err
	}
	v := planView{
		Profile: profileView{Name: plan.Name, Source: l.source},
		Program: programView{
			File: plan.File, Argv: maskArguments(plan.Argv), Runtime: runtimeName(l.resolved.Program.Runtime),
			Entry: l.resolved.Program.Entry, Package: l.resolved.Program.Package,
		},
		Stored:      viewEntry(l.packaged),
		Dir:         plan.Dir,
		Network:     viewNetwork(plan),
		Syscalls:    calls,
		Environment: variableNames(plan.Env),
		Secrets:     viewSecrets(l.resolved.Profile, plan.Env),
		Install:     viewInstall(l.resolved.Profile),
		Folders:     foldersView{Home: plan.Home.Path, Tmp: plan.Tmp.Path},
		Limits:      limitsView(plan.Limits),
		Guard:       viewGuard(plan.Guard),
		Waived:      list(plan.Missing),
		Warnings:    list(l.warnings(opened.Grants)),
		Notes:       list(l.resolved.Notes),
		Grants:      []grantView{}, Layers: []layerView{}, Residual: []residualView{},
	}
	for _, g := range opened.Grants {
		v.Grants = append(v.Grants, grantView{
			Access: g.Access.String(), Path: g.Path, Target: g.Target, Kind: kindName(g), State: stateName(g.State),
			Why: g.Why, Broad: g.Broad, Origin: originView(g.Origin),
		})
	}
	for _, p := range sandbox.Probe() {
		v.Layers = append(v.Layers, layerView{Layer: p.Layer, Verdict: p.Verdict.String(), Detail: p.Detail})
	}
	for _, r := range l.resolved.Residual {
		v.Residual = append(v.Residual, residualView{Promise: r.Promise, Open: r.Open})
	}
	return v, nil
}

// list makes an empty list of none, so that JSON never has null in place of a list.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

func variableNames(env []string) []string {
	names := make([]string, 0, len(env))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func kindName(g sandbox.OpenedGrant) string {
	if g.State == sandbox.Skipped {
		return "absent"
	}
	return g.Kind.String()
}

func stateName(s sandbox.GrantState) string {
	switch s {
	case sandbox.Granted:
		return "granted"
	case sandbox.Skipped:
		return "skipped"
	case sandbox.Pending:
		return "pending"
	}
	return "unknown"
}

func viewNetwork(p sandbox.Plan) networkView {
	v := networkView{
		Egress: egressName(p.Network), Rules: []ruleView{}, Listen: list(p.Network.Listen),
		Unix: []socketView{}, Supervised: p.Mediated(),
	}
	for i := range p.Network.Rules.Rules {
		r := &p.Network.Rules.Rules[i]
		rule := ruleView{To: r.String(), Origin: originView(profiles.RuleOrigin(r))}
		names, note := profiles.NamesHeld(r)
		rule.Names, rule.note = string(names), note
		if r.Host != "" {
			rule.Addresses = r.Addresses.String()
		}
		v.Rules = append(v.Rules, rule)
	}
	for _, g := range p.Network.Unix {
		v.Unix = append(v.Unix, socketView{Path: g.Path, Broad: g.Broad, Origin: originView(g.Origin)})
	}
	return v
}

func egressName(n sandbox.Network) string {
	switch n.Egress {
	case sandbox.EgressNone:
		return "none"
	case sandbox.EgressAll:
		return "all"
	case sandbox.EgressRules:
		return n.Rules.Mode.String()
	}
	return "unknown"
}

func runtimeName(r program.Runtime) string {
	switch r {
	case program.Native:
		return "native"
	case program.Node:
		return "node"
	case program.Python:
		return "python"
	case program.Shell:
		return "shell"
	}
	return "unknown"
}

// viewSyscalls groups the filter's rules by their answer. A call with conditions stands
// under each answer that it may get.
func viewSyscalls(p sandbox.Plan) (syscallsView, error) {
	filter, err := p.Filter.Filter()
	if err != nil {
		return syscallsView{}, fmt.Errorf("describing the system call filter: %w", err)
	}
	v := syscallsView{Default: answerName(filter.DefaultAction, filter.DefaultErrnoRet), Answers: []answerView{}}
	allowed := make(map[string]struct{})
	for _, rule := range filter.Syscalls {
		if rule.Action == specs.ActAllow {
			for _, name := range rule.Names {
				allowed[name] = struct{}{}
			}
			continue
		}
		v.add(answerName(rule.Action, rule.ErrnoRet), rule.Names)
	}
	v.Allowed = len(allowed)
	for i := range v.Answers {
		slices.Sort(v.Answers[i].Calls)
		v.Answers[i].Calls = slices.Compact(v.Answers[i].Calls)
	}
	slices.SortFunc(v.Answers, func(a, b answerView) int { return strings.Compare(a.Answer, b.Answer) })
	return v, nil
}

func (v *syscallsView) add(answer string, calls []string) {
	for i := range v.Answers {
		if v.Answers[i].Answer == answer {
			v.Answers[i].Calls = append(v.Answers[i].Calls, calls...)
			return
		}
	}
	v.Answers = append(v.Answers, answerView{Answer: answer, Calls: slices.Clone(calls)})
}

// answerName is the errno that a program sees, or the action when there is none.
func answerName(action specs.LinuxSeccompAction, errno *uint) string {
	switch action {
	case specs.ActErrno:
	case specs.ActNotify:
		return "asks the supervisor"
	default:
		return string(action)
	}
	number := uint(unix.EPERM) // the specification's default
	if errno != nil {
		number = *errno
	}
	if number == 0 {
		return "success, and nothing done"
	}
	if name := unix.ErrnoName(unix.Errno(number)); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", number)
}
