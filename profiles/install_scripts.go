package profiles

import (
	"fmt"
	"slices"
	"strings"
)

// InstallScripts is the section install: which packages' install scripts may run when a
// package runner's package is put into the store, and what they need. It is about the
// install jail alone; the plan of the server's own jail is the same without it.
type InstallScripts struct {
	Scripts []Sourced[string] // names on npm or PyPI, as written
	Execute []Sourced[string] // programs beside a shell and the runtime
	Read    []PathEntry
}

// Runs tells whether the install scripts of a package may run. kind is "npm" or "pypi";
// names on PyPI are the same in any case and with any of - _ . between words.
func (s *InstallScripts) Runs(kind, name string) bool {
	return slices.ContainsFunc(s.Scripts, func(listed Sourced[string]) bool {
		if kind == "pypi" {
			return canonicalPyPI(listed.Value) == canonicalPyPI(name)
		}
		return listed.Value == name
	})
}

// canonicalPyPI is the one spelling of a name on PyPI (PEP 503).
func canonicalPyPI(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return strings.Join(words, "-")
}

// maxPackageName is npm's bound; PyPI has none of its own.
const maxPackageName = 214

// checkScriptPackage judges a name of install.scripts. It may be of either registry: which
// one is known when something is installed. Old packages on npm have capital letters.
func checkScriptPackage(s string) (string, *problem) {
	if strings.ContainsAny(s, "*?[") {
		return "", wrong("name each package", "%q: install scripts have no patterns", s)
	}
	if kind, name, found := strings.Cut(s, ":"); found && slices.Contains(packageKinds, kind) {
		return "", wrong(fmt.Sprintf("write %q", name), "%q: install scripts go by the name alone", s)
	}
	if at := strings.LastIndexByte(s, '@'); at > 0 {
		return "", wrong(fmt.Sprintf("write %q", s[:at]), "package %q names a version", s)
	}
	name := s
	if scope, rest, scoped := strings.Cut(s, "/"); scoped {
		name = rest
		if len(scope) < 2 || scope[0] != '@' || !packageWord(scope[1:]) {
			return "", wrong(`a scope is "@scope/name"`, "%q is not a package's name", s)
		}
	}
	if len(s) > maxPackageName || !packageWord(name) {
		return "", wrong("letters, digits, dot, dash and underscore, beginning with a letter or digit", "%q is not a package's name", s)
	}
	return s, nil
}

// packageWord tells whether npm or PyPI takes a text as a name or a scope. What begins with a
// dash, as npm lets it, would be a flag where names are words of a command.
func packageWord(s string) bool {
	if s == "" || !letter(s[0]) && !digit(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && strings.IndexByte("._~-", c) < 0 {
			return false
		}
	}
	return true
}

// ofOneFolder are variables that differ from start to start. What is installed serves all
// starts, so nothing of one folder decides what goes into it.
var ofOneFolder = [...]string{"${roots}", "${args}", "${cwd}", "${repo}", "${private}", "${tmp}"}

func checkInstallPath(s string) (string, *problem) {
	s, bad := checkPath(s)
	if bad != nil {
		return "", bad
	}
	for _, v := range ofOneFolder {
		if strings.HasPrefix(s, v) {
			return "", wrong("write an absolute path, or one below ${home}", "an install is the same for every folder, and %s is not", v)
		}
	}
	return s, nil
}

func checkInstallProgram(s string) (string, *problem) {
	s, bad := checkProgram(s)
	if bad != nil || !strings.ContainsAny(s, "/$~") {
		return s, bad
	}
	return checkInstallPath(s)
}

// check refuses what has no effect: programs and paths are for scripts alone.
func (s *InstallScripts) check() Errors {
	if len(s.Scripts) > 0 {
		return nil
	}
	const hint = "name the packages under install.scripts, or remove it"
	var errs Errors
	for _, e := range s.Execute {
		errs = append(errs, wrong(hint, "install.execute: no install script may run, so nothing starts %q", e.Value).at(e.Position))
	}
	for _, e := range s.Read {
		errs = append(errs, wrong(hint, "install.read: no install script may run, so nothing reads %q", e.Path).at(e.Position))
	}
	return errs
}

// DiffInstall lists what profile b changes in what profile a lets install scripts do. Both
// are complete. Any addition is a widening: scripts are other people's programs.
func DiffInstall(a, b *Profile) []Change {
	d := differ{}
	d.install(&a.Install, &b.Install)
	return d.out
}

// NarrowerInstall compares a repository's profile with what would apply without it, before
// anything is installed, and returns what it widens (see [Narrower]).
func NarrowerInstall(repo, base *Profile) []Change {
	return widening(DiffInstall(base, repo))
}

func (d *differ) install(a, b *InstallScripts) {
	texts := func(list []Sourced[string]) []string {
		out := make([]string, len(list))
		for i := range list {
			out[i] = list[i].Value
		}
		return out
	}
	paths := func(list []PathEntry) []string {
		out := make([]string, len(list))
		for i, e := range list {
			out[i] = e.Path
			if e.Broad {
				out[i] += " (broad)"
			}
		}
		return out
	}
	d.set("install", "scripts of ", texts(a.Scripts), texts(b.Scripts), Widening, Narrowing)
	d.set("install", "execute ", texts(a.Execute), texts(b.Execute), Widening, Narrowing)
	d.set("install", "read ", paths(a.Read), paths(b.Read), Widening, Narrowing)
}
