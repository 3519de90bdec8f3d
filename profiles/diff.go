package profiles

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"stockade/sandbox"
	"stockade/seccomp"
)

// Effect says what a change means for the jail.
type Effect uint8

const (
	// Neutral changes allow nothing more and nothing less.
	Neutral Effect = iota
	// Narrowing changes take something away.
	Narrowing
	// Widening changes allow something that was not allowed, or cannot be told from one
	// that does.
	Widening
)

// String returns the word that people read.
func (e Effect) String() string {
	switch e {
	case Neutral:
		return "neutral"
	case Narrowing:
		return "narrowing"
	case Widening:
		return "widening"
	}
	return "unknown"
}

// Verb says how a plan changed.
type Verb uint8

const (
	// Added says that only the second plan has it.
	Added Verb = iota + 1
	// Removed says that only the first plan has it.
	Removed
	// Changed says that both have it, differently.
	Changed
)

// String returns the word that people read.
func (v Verb) String() string {
	switch v {
	case Added:
		return "added"
	case Removed:
		return "removed"
	case Changed:
		return "changed"
	}
	return "unknown"
}

// Change is one difference between two plans.
type Change struct {
	Section string // "program", "filesystem", "network", "environment", "syscalls", "limits", "missing", "guarded", "guard", "install"
	Verb    Verb
	What    string // "write /home/me/project", "listen 8080", "variable TOKEN"; never a variable's value
	Effect  Effect
	Origin  sandbox.Origin // where the grant is written; empty for what is not a grant
}

// String returns "section: what verb (effect)".
func (c Change) String() string {
	return fmt.Sprintf("%s: %s %s (%s)", c.Section, c.What, c.Verb, c.Effect)
}

// Diff lists what b changes in a, section by section: in the plan, and in what a plan does
// not say, which is what install scripts may do and which variables are secret. Both should
// be compiled from the same facts. The temporary folder differs by name from run to run;
// that is not a change. The private home is kept, so another one is.
func Diff(a, b Resolved) []Change {
	d := differ{}
	d.plans(&a.Plan, &b.Plan)
	d.secrets(&a, &b)
	d.install(&a.Profile.Install, &b.Profile.Install)
	return d.out
}

func (d *differ) plans(a, b *sandbox.Plan) {
	d.program(a, b)
	d.grants(a, b)
	d.guarded(a.Guarded, b.Guarded)
	d.network(a, b)
	d.environment(a, b)
	d.filter(&a.Filter, &b.Filter)
	d.limits(&a.Limits, &b.Limits)
	d.guard(a.Guard, b.Guard)
	d.set("missing", "layer ", names(a.Missing), names(b.Missing), Widening, Narrowing)
}

// Narrower compares a repository's profile with what would apply without it, and returns
// what it widens; an empty list means that the profile may be used without asking anyone.
// It is strict: a folder inside a granted folder counts as a widening, because a link in
// its place would be followed.
func Narrower(repo, base Resolved) []Change {
	return widening(Diff(base, repo))
}

func widening(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		if c.Effect == Widening {
			out = append(out, c)
		}
	}
	return out
}

type differ struct{ out []Change }

func (d *differ) add(section string, verb Verb, what string, effect Effect) {
	d.out = append(d.out, Change{Section: section, Verb: verb, What: what, Effect: effect})
}

func names[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = string(n)
	}
	return out
}

// set compares two lists of names without order.
func (d *differ) set(section, what string, a, b []string, added, removed Effect) {
	for _, name := range b {
		if !slices.Contains(a, name) {
			d.add(section, Added, what+name, added)
		}
	}
	for _, name := range a {
		if !slices.Contains(b, name) {
			d.add(section, Removed, what+name, removed)
		}
	}
}

func (d *differ) program(a, b *sandbox.Plan) {
	if a.File != b.File {
		d.add("program", Changed, "program "+b.File, Widening)
	}
	if !slices.Equal(a.Argv, b.Argv) {
		d.add("program", Changed, "arguments", Widening)
	}
	if a.Dir != b.Dir {
		d.add("program", Changed, "working folder "+b.Dir, Widening)
	}
}

// own tells whether a grant is one of the plan's private folders.
func own(p *sandbox.Plan, g *sandbox.Grant) bool {
	return g.Access == sandbox.Scratch && g.Origin.Source == sandbox.OriginAlways && (g.Path == p.Home.Path || g.Path == p.Tmp.Path)
}

func (d *differ) grants(a, b *sandbox.Plan) {
	if (a.Home.Path == "") != (b.Home.Path == "") {
		effect, verb := Widening, Added
		if b.Home.Path == "" {
			effect, verb = Narrowing, Removed
		}
		d.add("filesystem", verb, "private home", effect)
	} else if a.Home.Path != b.Home.Path {
		// It holds what the server kept under the other profile: tokens, for one.
		d.add("filesystem", Changed, "private home "+filepath.Base(b.Home.Path), Widening)
	}
	for i := range b.Grants {
		g := &b.Grants[i]
		if own(b, g) {
			continue
		}
		if have := same(a, g); have != nil {
			d.grantChanged(have, g)
			continue
		}
		c := Change{Section: "filesystem", Verb: Added, What: grantText(g), Effect: Widening, Origin: g.Origin}
		if covered(a, g) {
			c.Effect = Neutral
		}
		d.out = append(d.out, c)
	}
	for i := range a.Grants {
		g := &a.Grants[i]
		if own(a, g) || same(b, g) != nil {
			continue
		}
		c := Change{Section: "filesystem", Verb: Removed, What: grantText(g), Effect: Narrowing, Origin: g.Origin}
		if covered(b, g) {
			c.Effect = Neutral
		}
		d.out = append(d.out, c)
	}
}

// grantChanged reports what one grant says differently. A reason that was not there lets
// the grant reach guarded places.
func (d *differ) grantChanged(a, b *sandbox.Grant) {
	if (a.Broad == "") != (b.Broad == "") {
		effect := Widening
		if b.Broad == "" {
			effect = Narrowing
		}
		d.out = append(d.out, Change{Section: "filesystem", Verb: Changed, What: grantText(b) + ": broad", Effect: effect, Origin: b.Origin})
	}
	if a.Want != b.Want && a.Want != sandbox.KindAny {
		d.out = append(d.out, Change{Section: "filesystem", Verb: Changed, What: grantText(b) + ": any kind of file", Effect: Widening, Origin: b.Origin})
	}
}

func grantText(g *sandbox.Grant) string { return g.Access.String() + " " + g.Path }

func same(p *sandbox.Plan, g *sandbox.Grant) *sandbox.Grant {
	for i := range p.Grants {
		if h := &p.Grants[i]; h.Path == g.Path && h.Access == g.Access {
			return h
		}
	}
	return nil
}

// covered tells whether a plan allows on the same path what a grant allows. Folders above
// do not count: what a path below them leads to is not known here.
func covered(p *sandbox.Plan, g *sandbox.Grant) bool {
	for i := range p.Grants {
		h := &p.Grants[i]
		if h.Path != g.Path || h.Want != sandbox.KindAny && h.Want != g.Want || g.Broad != "" && h.Broad == "" {
			continue
		}
		switch h.Access {
		case sandbox.Scratch:
			if g.Access == sandbox.Read || g.Access == sandbox.Write {
				return true
			}
		case sandbox.Write, sandbox.Execute, sandbox.Device:
			if g.Access == sandbox.Read {
				return true
			}
		case sandbox.Read:
		}
	}
	return false
}

// guarded compares the guarded places. Losing one is a widening.
func (d *differ) guarded(a, b []sandbox.Guarded) {
	text := func(list []sandbox.Guarded) []string {
		out := make([]string, len(list))
		for i, g := range list {
			out[i] = fmt.Sprintf("%s (rule %d)", g.Path, g.Rule)
			if g.Own != "" {
				out[i] += " but " + g.Own
			}
		}
		return out
	}
	d.set("guarded", "place ", text(a), text(b), Narrowing, Widening)
}

// environment compares variables by name and value, and shows names only. What the launcher
// makes itself is compared without the private folders' names.
func (d *differ) environment(a, b *sandbox.Plan) {
	before, after := variables(a), variables(b)
	for _, name := range sortedKeys(after) {
		value, known := before[name]
		switch {
		case !known:
			d.add("environment", Added, "variable "+name, Widening)
		case value != after[name]:
			d.add("environment", Changed, "variable "+name, Widening)
		}
	}
	for _, name := range sortedKeys(before) {
		if _, kept := after[name]; !kept {
			d.add("environment", Removed, "variable "+name, Narrowing)
		}
	}
}

func variables(p *sandbox.Plan) map[string]string {
	out := make(map[string]string, len(p.Env))
	for _, e := range p.Env {
		name, value, _ := strings.Cut(e, "=")
		for _, own := range [...]struct{ folder, word string }{{p.Home.Path, "${private}"}, {p.Tmp.Path, "${tmp}"}} {
			if own.folder != "" {
				value = strings.ReplaceAll(value, own.folder, own.word)
			}
		}
		if name == resolverOptions && p.Network.Egress == sandbox.EgressRules {
			if value = strings.TrimSpace(strings.TrimSuffix(value, useVC)); value == "" {
				continue
			}
		}
		out[name] = value
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (d *differ) filter(a, b *seccomp.Policy) {
	if before, after := reach(a), reach(b); before != after {
		effect := Widening
		if after < before {
			effect = Narrowing
		}
		d.add("syscalls", Changed, "sockets", effect)
	} else if a.Supervision != b.Supervision {
		// Unix sockets can be made under a supervisor, and reach what the plan lists.
		d.add("syscalls", Changed, "calls that the supervisor answers", Neutral)
	}
	if a.Listening != b.Listening {
		effect := Widening
		if b.Listening == seccomp.ListenRefused {
			effect = Narrowing
		}
		d.add("syscalls", Changed, "listening", effect)
	}
	// Answering success without doing anything allows as little as refusing.
	if a.Metadata != b.Metadata {
		d.add("syscalls", Changed, "answer to metadata calls", Neutral)
	}
	if a.Truncation != b.Truncation {
		effect := Widening
		if b.Truncation == seccomp.TruncationByFilter {
			effect = Narrowing
		}
		d.add("syscalls", Changed, "truncation by the filter", effect)
	}
	if !reflect.DeepEqual(a.Base, b.Base) {
		d.add("syscalls", Changed, "list of allowed calls", Widening)
	}
	d.set("syscalls", "allow ", a.Allow, b.Allow, Widening, Narrowing)
	d.set("syscalls", "deny ", a.Deny, b.Deny, Narrowing, Widening)
}

func (d *differ) limits(a, b *sandbox.Limits) {
	for _, l := range [...]struct {
		name          string
		before, after uint64
	}{
		{"open-files", a.OpenFiles, b.OpenFiles},
		{"file-size", a.FileSize, b.FileSize},
		{"memory", a.Memory, b.Memory},
		{"processes", a.Processes, b.Processes},
	} {
		switch {
		case l.before == l.after:
		case l.before == 0:
			d.add("limits", Added, fmt.Sprintf("%s %d", l.name, l.after), Narrowing)
		case l.after == 0:
			d.add("limits", Removed, fmt.Sprintf("%s %d", l.name, l.before), Widening)
		case l.after < l.before:
			d.add("limits", Changed, fmt.Sprintf("%s %d to %d", l.name, l.before, l.after), Narrowing)
		default:
			d.add("limits", Changed, fmt.Sprintf("%s %d to %d", l.name, l.before, l.after), Widening)
		}
	}
}
