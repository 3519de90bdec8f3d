package profiles_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"stockade/profiles"
	"stockade/sandbox/program"
)

// TestBuiltinsMatchApart: each package and command that a built-in profile names gets that
// profile, so no two of them claim the same.
func TestBuiltinsMatchApart(t *testing.T) {
	packages, commands := map[string]string{}, map[string]string{}
	for _, name := range profiles.BuiltinNames() {
		p, _ := profiles.Builtin(name)
		for _, c := range p.Match.Commands {
			if other := commands[c.Value]; other != "" {
				t.Errorf("%s and %s both match the command %s", other, name, c.Value)
			}
			commands[c.Value] = name
		}
		for _, pkg := range p.Match.Packages {
			if other := packages[pkg.Value]; other != "" {
				t.Errorf("%s and %s both match the package %s", other, name, pkg.Value)
			}
			packages[pkg.Value] = name
			got, err := profiles.Search{}.MatchPackage(pkg.Value)
			if err != nil || got == nil || got.Name.Value != name {
				t.Errorf("%s gets profile %v (%v), want %s", pkg.Value, got, err, name)
			}
		}
	}
	if len(packages) == 0 {
		t.Error("no built-in profile matches a package")
	}
	for _, foreign := range []string{"npm:@somebody/server-github", "npm:server-github", "pypi:tavily-mcp", "npm:exa-mcp-server-2"} {
		if got, err := (profiles.Search{}).MatchPackage(foreign); got != nil || err != nil {
			t.Errorf("%s gets profile %v (%v), want none", foreign, got, err)
		}
	}
}

// TestBuiltinWithoutItsProgram: the error names the program, and where a person reads what to
// install; nobody is sent to correct a built-in profile.
func TestBuiltinWithoutItsProgram(t *testing.T) {
	for profile, missing := range map[string]struct{ program, in string }{
		"kubernetes": {"kubectl", "kubernetes"},
		"puppeteer":  {"/usr/lib/chromium/chromium", "chromium"},
	} {
		b, _ := profiles.Builtin(profile)
		_, err := compile(t, b, func(f *profiles.Facts) {
			f.Execute[missing.program] = profiles.Closure{Err: &program.NotFoundError{Name: missing.program}}
		})
		errs, ok := errors.AsType[profiles.Errors](err)
		if !ok || len(errs) != 1 {
			t.Errorf("%s: got %v, want one error", profile, err)
			continue
		}
		want := `install it; "stockade profile show ` + missing.in + `" says which package it is in`
		if !strings.Contains(errs[0].Message, strconv.Quote(missing.program)) || errs[0].Hint != want {
			t.Errorf("%s: got %q with hint %q, want hint %q", profile, errs[0].Message, errs[0].Hint, want)
		}
		text, _ := profiles.BuiltinSource(missing.in)
		if named := map[string]string{"kubernetes": "kubernetes-client", "chromium": "apt install chromium"}[missing.in]; !strings.Contains(string(text), named) {
			t.Errorf("the text of %s does not name %q", missing.in, named)
		}
	}
}
