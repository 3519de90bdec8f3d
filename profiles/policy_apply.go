package profiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/egress"
)

// PolicyFacts are what a policy's limits depend on besides themselves.
type PolicyFacts struct {
	// Homes are what ${home} stands for: the user database's word, and HOME where that says
	// another one. A limit holds for both, since HOME is the person's to set.
	Homes []string
	// Real resolves the links of a path, as far as it exists.
	Real func(path string) string
}

// Under lays the defaults under a complete profile, as if it extended them first.
func (p *Policy) Under(over *Profile) *Profile {
	if p == nil {
		return over
	}
	return merge(&p.Defaults, over)
}

// Admits tells whether profiles may come from a place.
func (p *Policy) Admits(place Place) bool {
	return p == nil || len(p.From) == 0 || slices.ContainsFunc(p.From, func(s Sourced[string]) bool { return s.Value == string(place) })
}

// CheckFlags refuses grant flags where the policy does. --root counts: it is a grant.
func (p *Policy) CheckFlags(f Flags) error {
	given := len(f.Roots) + len(f.Read) + len(f.Write) + len(f.Exec) + len(f.Egress) + len(f.Listen) + len(f.Unix) + len(f.Env)
	if p.Flags.Value != wordRefuse || given == 0 {
		return nil
	}
	return Errors{p.refuses(p.Flags.Position, "a profile can say it", "grant flags are refused")}
}

// CheckProfile refuses a profile from a place that the policy does not admit, and the empty
// one where it wants one.
func (p *Policy) CheckProfile(found *Profile, place Place) error {
	if found.File == "" && p.Unknown.Value == wordRefuse {
		return Errors{p.refuses(p.Unknown.Position, "name a profile with --profile, or ask who keeps the policy for one", "no profile is for this server, and the policy refuses unknown ones")}
	}
	if found.File != "" && !p.Admits(place) {
		return Errors{p.refuses(p.From[0].Position, "use another profile; see: stockade profile list", "%s is a profile of the %s place, which the policy does not admit", found.File, place)}
	}
	return nil
}

// CheckApproval refuses what a person allowed, where the policy takes nobody's word.
func (p *Policy) CheckApproval(file string) error {
	if p.Approvals.Value != wordRefuse {
		return nil
	}
	return Errors{p.refuses(p.Approvals.Position, "the profile may narrow what applies without it, and no more", "%s grants more than what applies without it, and approvals are refused", file)}
}

// CheckPackage refuses what a package runner may not install or start. name is "npm:NAME" or
// "pypi:NAME", "" for what comes from no registry; version is "" as long as it is not known.
func (p *Policy) CheckPackage(name, version string) error {
	at, limited := p.at["limits.packages"]
	if !limited {
		return nil
	}
	for _, s := range p.Packages {
		pattern, only := cutVersion(s.Value)
		if name != "" && matches(pattern, name) && (only == "" || version == "" || only == version) {
			return nil
		}
	}
	what := "a package from no registry"
	if name != "" {
		what = strings.TrimSuffix(name+" "+version, " ")
	}
	return Errors{p.refuses(at, "the machine's policy has the last word: use another package, or ask who keeps it", "%s is none of the packages that may be installed and started", what)}
}

func (p *Policy) refuses(at Position, hint, format string, args ...any) Error {
	return wrong(hint, format, args...).at(at)
}

// beyond is a grant that a limit refuses, reported where the grant is written.
func beyond(grant sandbox.Origin, limit Position, format string, args ...any) Error {
	at := Position{File: grant.Source, Line: grant.Line, Column: grant.Column}
	return wrong("the machine's policy has the last word: grant less, or ask who keeps it", "%s: beyond the policy's limit, %s", fmt.Sprintf(format, args...), limit.Where()).at(at)
}

// Apply holds a plan to the limits. Places that no grant reaches are guarded in the plan, so
// that they are compared with what is really opened; the rest is judged here. A resource limit
// that the plan does not have is set. The error is an [Errors]: each names the grant and the
// policy's line.
func (p *Policy) Apply(r *Resolved, f PolicyFacts) error {
	plan := &r.Plan
	h := holder{policy: p, facts: f, resolved: r, plan: plan}
	h.guard()
	h.programs()
	h.egress()
	h.sockets()
	h.variables()
	h.words()
	h.resources()
	return h.errs.orNil()
}

// holder is one run of Apply.
type holder struct {
	policy   *Policy
	facts    PolicyFacts
	resolved *Resolved
	plan     *sandbox.Plan
	errs     Errors
}

// paths are what an entry of a limit stands for.
func (h *holder) paths(text string) []string {
	rest, ofHome := strings.CutPrefix(text, "${home}")
	if !ofHome {
		if rest, ofHome = strings.CutPrefix(text, "~"); !ofHome {
			return []string{filepath.Clean(text)}
		}
	}
	var out []string
	for _, home := range h.facts.Homes {
		out = append(out, filepath.Clean(home+rest))
	}
	return out
}

func (h *holder) guard() {
	p := h.policy
	for _, list := range [...][]PathEntry{p.Never, p.NeverWrite} {
		for _, e := range list {
			for _, path := range h.paths(e.Path) {
				for _, own := range [...]string{h.plan.Home.Path, h.plan.Tmp.Path} {
					if inside(own, path) || inside(own, h.facts.Real(path)) {
						h.errs = append(h.errs, p.refuses(e.Position, "name the folders beside it", "%s holds stockade's own folder %s, which every server writes", path, own))
					}
				}
			}
		}
	}
	add := func(text string, at Position, rule sandbox.GuardRule) {
		for _, path := range h.paths(text) {
			h.plan.Guarded = append(slices.Clip(h.plan.Guarded), sandbox.Guarded{Path: path, Why: "closed", Rule: rule, Origin: originAt(at)})
		}
	}
	for _, e := range p.Never {
		add(e.Path, e.Position, sandbox.GuardNever)
	}
	for _, e := range p.NeverWrite {
		add(e.Path, e.Position, sandbox.GuardNeverWrite)
	}
	for _, s := range p.NeverExecute {
		if strings.ContainsAny(s.Value, "/~$") {
			add(s.Value, s.Position, sandbox.GuardNeverExecute)
			continue
		}
		for _, folder := range standardPath {
			add(folder+"/"+s.Value, s.Position, sandbox.GuardNeverExecute)
		}
	}
}

// programs compares names: a program of the name elsewhere is meant as well.
func (h *holder) programs() {
	for _, s := range h.policy.NeverExecute {
		if strings.ContainsAny(s.Value, "/~$") {
			continue
		}
		if filepath.Base(h.plan.File) == s.Value || len(h.plan.Argv) > 0 && filepath.Base(h.plan.Argv[0]) == s.Value {
			h.errs = append(h.errs, h.policy.refuses(s.Position, "the machine's policy has the last word", "%s is never executed", h.plan.File))
			continue
		}
		for i := range h.plan.Grants {
			if g := &h.plan.Grants[i]; g.Access == sandbox.Execute && filepath.Base(g.Path) == s.Value {
				h.errs = append(h.errs, beyond(g.Origin, s.Position, "executing %s", g.Path))
			}
		}
	}
}

func (h *holder) egress() {
	p, net := h.policy, &h.plan.Network
	if at, limited := p.at["limits.network.egress"]; limited {
		c := compiler{profile: &Profile{Network: Network{Egress: p.Network.Egress, Hosts: p.Network.Hosts, HostsAt: p.Network.HostsAt}}, facts: &Facts{}}
		var most sandbox.Plan
		c.network(&most)
		h.ordinary(&most.Network)
		d := differ{}
		d.egress(&most.Network, net)
		for _, change := range widening(d.out) {
			origin := change.Origin
			if origin == (sandbox.Origin{}) {
				origin = originAt(h.resolved.Profile.Network.Egress.Position)
			}
			h.errs = append(h.errs, beyond(origin, at, "network.%s", change.What))
		}
	}
	if len(p.NeverReached) == 0 {
		return
	}
	if net.Egress == sandbox.EgressAll {
		h.errs = append(h.errs, beyond(originAt(h.resolved.Profile.Network.Egress.Position), p.NeverReached[0].Position, "network.egress: all leads everywhere"))
		return
	}
	if net.Egress != sandbox.EgressRules {
		return
	}
	for _, s := range p.NeverReached {
		rules, err := egress.ParseNever(s.Value)
		if err != nil {
			h.errs = append(h.errs, ruleProblem(err).at(s.Position))
			continue
		}
		for _, never := range rules {
			never.Origin = s.Where()
			net.Rules.Never = append(slices.Clip(net.Rules.Never), never)
			// A pinned, unbounded twin: what is within it is closed, however it is held.
			never.Names, never.Addresses = egress.Pinned, egress.AnyAddress
			for i := range net.Rules.Rules {
				if rule := &net.Rules.Rules[i]; rule.Within(never) {
					h.errs = append(h.errs, beyond(RuleOrigin(rule), s.Position, "network.egress %s", rule))
				}
			}
		}
	}
}

// ordinary takes the word about addresses from the install jail's own rules, where the limit
// names the host without it.
func (h *holder) ordinary(most *sandbox.Network) {
	rules := slices.Clone(h.plan.Network.Rules.Rules)
	for i := range rules {
		r := rules[i]
		if r.Addresses != egress.AnyAddress || r.Origin != InstallPosition.Where() {
			continue
		}
		limit := letsOutOf(most)
		if narrow := r; !limit.holds(&r) {
			if narrow.Addresses = egress.Ordinary; limit.holds(&narrow) {
				rules[i] = narrow
			}
		}
	}
	h.plan.Network.Rules.Rules = rules
}

func (h *holder) sockets() {
	p := h.policy
	if at, limited := p.at["limits.network.listen"]; limited {
		for _, port := range h.plan.Network.Listen {
			if !slices.ContainsFunc(p.Network.Listen, func(s Sourced[uint16]) bool { return s.Value == port }) {
				h.errs = append(h.errs, beyond(h.listenOrigin(port), at, "network.listen %d", port))
			}
		}
	}
	at, limited := p.at["limits.network.unix"]
	for _, g := range h.plan.Network.Unix {
		if limited && !slices.ContainsFunc(p.Network.Unix, func(e PathEntry) bool { return h.names(e.Path, g.Path) }) {
			h.errs = append(h.errs, beyond(g.Origin, at, "network.unix %s", g.Path))
		}
		for _, e := range p.Never {
			if slices.ContainsFunc(h.paths(e.Path), func(path string) bool { return inside(g.Path, path) || inside(g.Path, h.facts.Real(path)) }) {
				h.errs = append(h.errs, beyond(g.Origin, e.Position, "network.unix %s", g.Path))
			}
		}
	}
}

// names tells whether an entry stands for a real path.
func (h *holder) names(entry, real string) bool {
	return slices.ContainsFunc(h.paths(entry), func(path string) bool { return path == real || h.facts.Real(path) == real })
}

// inside tells whether a clean path is a folder or lies in it.
func inside(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

func (h *holder) listenOrigin(port uint16) sandbox.Origin {
	for _, l := range h.resolved.Profile.Network.Listen {
		if l.Value == port {
			return originAt(l.Position)
		}
	}
	return sandbox.Origin{}
}

func (h *holder) variables() {
	for _, s := range h.policy.NeverPassed {
		for _, e := range h.plan.Env {
			name, _, _ := strings.Cut(e, "=")
			if holdsName(s.Value, name) && made(name) == "" && name != resolverOptions {
				h.errs = append(h.errs, beyond(originAt(h.variableAt(name)), s.Position, "variable %s", name))
			}
		}
	}
}

// variableAt is where a profile says that the server has a variable.
func (h *holder) variableAt(name string) Position {
	env := &h.resolved.Profile.Environment
	for _, s := range env.Secrets {
		if s.Name == name {
			return s.Position
		}
	}
	for _, v := range env.Set {
		if v.Name == name {
			return v.Position
		}
	}
	for _, s := range env.Pass {
		if passes(s.Value, name) {
			return s.Position
		}
	}
	return Position{}
}

// words judges what a profile may not say at all.
func (h *holder) words() {
	p, profile := h.policy, h.resolved.Profile
	theirs := func(at Position) bool { return at.File != p.File && at != InstallPosition }
	if p.Syscalls.Value == wordRefuse {
		for _, s := range profile.Syscalls.Allow {
			if theirs(s.Position) {
				h.errs = append(h.errs, beyond(originAt(s.Position), p.Syscalls.Position, "syscalls.allow %s", s.Value))
			}
		}
		if s := profile.Syscalls.Profile; profile.SyscallFile() != "" && theirs(s.Position) {
			h.errs = append(h.errs, beyond(originAt(s.Position), p.Syscalls.Position, "syscalls.profile %s", s.Value))
		}
	}
	if p.Broad.Value == wordRefuse {
		fs := &profile.Filesystem
		for _, list := range [...][]PathEntry{fs.Read, fs.Write, fs.Optional, profile.Roots.List, profile.Network.Unix} {
			for _, e := range list {
				if e.Broad && theirs(e.Position) {
					h.errs = append(h.errs, beyond(originAt(e.Position), p.Broad.Position, "%s with broad", e.Path))
				}
			}
		}
	}
	if home := profile.Filesystem.Home; p.Home.written() && home.Value == HomeReal {
		h.errs = append(h.errs, beyond(originAt(home.Position), p.Home.Position, "filesystem.home: real"))
	}
	for _, layer := range p.Layers {
		for _, m := range profile.Missing.Allow {
			if m.Value == layer.Value {
				h.errs = append(h.errs, beyond(originAt(m.Position), layer.Position, "going without %s", m.Value))
			}
		}
	}
}

func (h *holder) resources() {
	most, have := &h.policy.Most, &h.resolved.Profile.Limits
	for _, l := range [...]struct {
		name    string
		most    Sourced[uint64]
		written Sourced[uint64]
		plan    *uint64
	}{
		{"open-files", most.OpenFiles, have.OpenFiles, &h.plan.Limits.OpenFiles},
		{"file-size", most.FileSize, have.FileSize, &h.plan.Limits.FileSize},
		{"memory", most.Memory, have.Memory, &h.plan.Limits.Memory},
		{"processes", most.Processes, have.Processes, &h.plan.Limits.Processes},
	} {
		switch {
		case !l.most.written():
		case *l.plan == 0:
			*l.plan = l.most.Value
		case *l.plan > l.most.Value:
			h.errs = append(h.errs, beyond(originAt(l.written.Position), l.most.Position, "limits.%s %d", l.name, *l.plan))
		}
	}
}
