package profiles_test

import (
	"testing"

	"stockade/profiles"
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
