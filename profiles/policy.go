package profiles

import (
	"cmp"
	"slices"
	"strings"
)

// Policy is what an administrator says about every server of a machine, read from
// /etc/stockade/policy.yaml: defaults that profiles build on, and limits that no profile,
// flag, approval or variable passes. [ParsePolicy] reads it, [Policy.Apply] holds a plan to it.
type Policy struct {
	File string // as shown

	From      []Sourced[string] // places that profiles may come from
	Unknown   Sourced[string]   // "allow" or "refuse": servers that no profile is for
	Flags     Sourced[string]   // "allow" or "refuse": grant flags
	Approvals Sourced[string]   // "allow" or "refuse": a repository's profiles that people allowed

	// Defaults is laid under every profile, as if each extended it first.
	Defaults Profile

	Never        []PathEntry       // no grant reaches these
	NeverWrite   []PathEntry       // no grant that writes does
	NeverExecute []Sourced[string] // programs, by name or path
	Broad        Sourced[string]   // "allow" or "refuse": grants that say why they are broad
	// Network holds the most that is let out, bound and connected to.
	Network Network
	// NeverReached are hosts and networks (see [egress.ParseNever]).
	NeverReached []Sourced[string]
	NeverPassed  []Sourced[string] // variables; a * may end a name
	Packages     []Sourced[string] // the only ones that runners install and start
	Syscalls     Sourced[string]   // "allow" or "refuse": changes of the filter that open it
	Most         Limits            // the largest; also for plans that say nothing

	Layers []Sourced[string]   // that no plan goes without
	Home   Sourced[HomeMode]   // "private": no plan has another
	Pins   Sourced[PinsMode]   // "require": every server has approved definitions
	Starts Sourced[AuditPlace] // where starts are told
	Denied Sourced[AuditPlace] // where refusals are told

	at map[string]Position // where each key is written
}

// AuditPlace is where a policy has events told.
type AuditPlace string

// AuditSyslog is the system's log, by syslog(3)'s socket /dev/log.
const AuditSyslog AuditPlace = "syslog"

const (
	wordAllow  = "allow"
	wordRefuse = "refuse"
)

var permitWords = []string{wordAllow, wordRefuse}

// policyKeys is every key of a policy. Sections of defaults are those of a profile.
func policyKeys(p *Policy) []key {
	permit := func(name, doc string, field *Sourced[string]) key {
		return key{name: name, form: formWord, words: permitWords, doc: doc, field: func(*Profile) any { return field }}
	}
	return []key{
		{
			name: "version", form: formVersion, doc: "The version of the policy language: 1.",
			field: func(p *Profile) any { return &p.Version },
		},
		{name: "profiles", form: formSection, doc: "Which profiles there are.", keys: []key{
			{
				name: "from", form: formTexts, doc: "The only places that profiles come from: repository, user, system, built-in. All when left out.",
				field: func(*Profile) any { return &p.From }, check: checkPlace,
			},
			permit("unknown", "Servers that no profile is for: allow (they get the empty profile), or refuse.", &p.Unknown),
			permit("flags", "Grant flags on the command line: allow or refuse.", &p.Flags),
			permit("approvals", "Profiles of repositories that grant more, and that a person allowed: allow or refuse.", &p.Approvals),
		}},
		{name: "defaults", form: formSection, doc: "Laid under every profile, as if each extended it first.", keys: defaultKeys()},
		{name: "limits", form: formSection, doc: "What no profile, flag, approval or variable passes.", keys: policyLimitKeys(p, permit)},
		{name: "require", form: formSection, doc: "What every plan has.", keys: []key{
			{
				name: "layers", form: formTexts, doc: "Layers that no profile may go without.",
				field: func(*Profile) any { return &p.Layers }, check: checkLayer,
			},
			{
				name: "home", form: formWord, words: []string{string(HomePrivate)}, doc: "private: HOME is never the person's own.",
				field: func(*Profile) any { return &p.Home },
			},
			{
				name: "pins", form: formWord, words: []string{"require"}, doc: "require: tool definitions are approved.",
				field: func(*Profile) any { return &p.Pins },
			},
		}},
		{name: "audit", form: formSection, doc: "What is told to the machine's own log.", keys: []key{
			{
				name: "starts", form: formWord, words: []string{string(AuditSyslog)}, doc: "Each start, with user, profile and program; without the log nothing starts.",
				field: func(*Profile) any { return &p.Starts },
			},
			{
				name: "denials", form: formWord, words: []string{string(AuditSyslog)}, doc: "Each refusal of a supervisor.",
				field: func(*Profile) any { return &p.Denied },
			},
		}},
	}
}

// defaultKeys are the sections of a profile that mean something for all.
func defaultKeys() []key {
	var out []key
	for _, name := range [...]string{"filesystem", "network", "environment", "syscalls", "limits", "missing"} {
		out = append(out, profileKeys[find(profileKeys, name)])
	}
	return out
}

func policyLimitKeys(p *Policy, permit func(name, doc string, field *Sourced[string]) key) []key {
	most := make([]key, 0, len(limitsKeys))
	most = append(most, limitsKeys...)
	for i, field := range [...]*Sourced[uint64]{&p.Most.OpenFiles, &p.Most.FileSize, &p.Most.Memory, &p.Most.Processes} {
		most[i].field = func(*Profile) any { return field }
	}
	return append([]key{
		{name: "filesystem", form: formSection, doc: "Files, folders and programs.", keys: []key{
			{
				name: "never", form: formPaths, doc: "Files and folders that no grant reaches, nor one of a folder that holds them.",
				field: func(*Profile) any { return &p.Never }, check: checkPolicyPath,
			},
			{
				name: "never-write", form: formPaths, doc: "The same for grants that write.",
				field: func(*Profile) any { return &p.NeverWrite }, check: checkPolicyPath,
			},
			{
				name: "never-execute", form: formTexts, doc: "Programs that no server starts, by name or path; nor is one of them a server.",
				field: func(*Profile) any { return &p.NeverExecute }, check: checkPolicyProgram,
			},
			permit("broad", "Grants of guarded places with broad and a reason: allow or refuse.", &p.Broad),
		}},
		{name: "network", form: formSection, doc: "What servers connect to and listen on.", keys: []key{
			{
				name: "egress", form: formEgress, words: []string{string(EgressNone), string(EgressPublic), string(EgressAll)}, doc: "The most that is let out, as in a profile.",
				field: func(*Profile) any { return &p.Network }, check: checkEgress,
			},
			{
				name: "never", form: formTexts, doc: `Hosts and networks that nothing leads to: "*.internal.example", "10.0.0.0/8".`,
				field: func(*Profile) any { return &p.NeverReached }, check: checkNever,
			},
			{
				name: "listen", form: formPorts, doc: "The only TCP ports that may be bound.",
				field: func(*Profile) any { return &p.Network.Listen },
			},
			{
				name: "unix", form: formPaths, doc: "The only Unix sockets that may be connected to.",
				field: func(*Profile) any { return &p.Network.Unix }, check: checkPolicySocket,
			},
		}},
		{name: "environment", form: formSection, doc: "Variables.", keys: []key{{
			name: "never", form: formTexts, doc: "Variables that no server has. A * may end a name.",
			field: func(*Profile) any { return &p.NeverPassed }, check: checkNeverPassed,
		}}},
		{
			name: "packages", form: formTexts, doc: `The only packages that package runners install and start: "npm:@scope/name", "npm:@scope/*", "npm:name@1.2.3", "pypi:name@1.2.3".`,
			field: func(*Profile) any { return &p.Packages }, check: checkPolicyPackage,
		},
		permit("syscalls", "Profiles that open the system call filter, by allow or by a file: allow or refuse.", &p.Syscalls),
	}, most...)
}

// WrittenKey is a key of a policy and the line where it stands.
type WrittenKey struct {
	Key  string
	Line int
}

// Written lists what a policy says, by line, without the sections that hold it.
func (p *Policy) Written() []WrittenKey {
	var out []WrittenKey
	for key, at := range p.at {
		holds := false
		for other := range p.at {
			holds = holds || strings.HasPrefix(other, key+".")
		}
		if !holds && key != "version" {
			out = append(out, WrittenKey{key, at.Line})
		}
	}
	slices.SortFunc(out, func(a, b WrittenKey) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key)) })
	return out
}

// UsesHome tells whether a limit depends on the home folder.
func (p *Policy) UsesHome() bool {
	ofHome := func(s string) bool { return strings.HasPrefix(s, "${home}") || strings.HasPrefix(s, "~") }
	for _, list := range [...][]PathEntry{p.Never, p.NeverWrite, p.Network.Unix} {
		if slices.ContainsFunc(list, func(e PathEntry) bool { return ofHome(e.Path) }) {
			return true
		}
	}
	return slices.ContainsFunc(p.NeverExecute, func(s Sourced[string]) bool { return ofHome(s.Value) })
}
