package profiles_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// TestOptionalSecrets: an optional one is passed when it is set, and its absence is a note.
func TestOptionalSecrets(t *testing.T) {
	tests := []struct {
		name, list string
		passed     []string
		note       string
	}{
		{"set", "{name: TOKEN, optional: true}", []string{"TOKEN=hunter2"}, ""},
		{"not set", "{name: NONE, optional: true}", nil, "environment.secrets: optional, and not set or empty in the host's environment: NONE"},
		{"empty", "{name: EMPTY, optional: true}", nil, "environment.secrets: optional, and not set or empty in the host's environment: EMPTY"},
		{"several", "TOKEN, {name: Z, optional: true}, {name: A, optional: true}", []string{"TOKEN=hunter2"}, "environment.secrets: optional, and not set or empty in the host's environment: A Z"},
		{"required in a mapping", "{name: TOKEN}", []string{"TOKEN=hunter2"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompile(t, parse(t, "environment: {secrets: ["+tt.list+"]}\n"), nil)
			var passed []string
			for _, e := range r.Plan.Env {
				for _, name := range []string{"TOKEN=", "NONE=", "EMPTY=", "A=", "Z="} {
					if strings.HasPrefix(e, name) {
						passed = append(passed, e)
					}
				}
			}
			if diff := cmp.Diff(tt.passed, passed); diff != "" {
				t.Errorf("passed (-want +got):\n%s", diff)
			}
			if got := slices.Contains(r.Notes, tt.note); got != (tt.note != "") {
				t.Errorf("notes %q", r.Notes)
			}
		})
	}
	for _, text := range []string{"NONE", "{name: NONE}", "{name: NONE, optional: false}", "EMPTY"} {
		facts := profiles.FactsForTests()
		if _, err := profiles.Compile(parse(t, "environment: {secrets: ["+text+"]}\n"), facts); err == nil || !strings.Contains(err.Error(), "environment.secrets: ") {
			t.Errorf("%s, required: %v", text, err)
		}
	}
}

func TestSecretsParse(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"no name", "[{optional: true}]", "2:25: environment.secrets: the entry has no name | write {name: NAME, optional: true}"},
		{"word", "[{name: A, optional: yes}]", "2:45: environment.secrets.optional: expected true or false | write true or false"},
		{"quoted", "[{name: A, optional: \"true\"}]", "2:45: environment.secrets.optional: expected true or false | write true or false"},
		{"unknown key", "[{name: A, optinal: true}]", `2:35: unknown key "optinal" in an entry of "environment.secrets" | did you mean "optional"?`},
		{"twice", "[{name: A, name: B}]", `2:35: key "name" is already written in line 2 | keep one of them`},
		{"pattern", "[{name: \"A*\", optional: true}]", `2:32: "A*": secrets have no patterns | name each secret`},
		{"list", "[[A]]", "2:25: environment.secrets: expected a variable, found a list | write NAME, or {name: NAME, optional: true}"},
		{"two entries for one", "[A, {name: A, optional: true}]", `2:35: variable "A" is already listed in line 2 | keep one of them`},
		{"empty name", "[{name: \"\"}]", "2:32: environment.secrets.name: the text is empty | write one, or remove it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := profiles.Parse("p.yaml", []byte("version: 1\nenvironment: {secrets: "+tt.text+"}\n"))
			var many profiles.Errors
			if !errors.As(err, &many) || len(many) != 1 {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(many[0].Error(), "p.yaml:") + " | " + many[0].Hint; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestSecretsExtended: the later word about a name counts, also about whether it is needed.
func TestSecretsExtended(t *testing.T) {
	s := places(t, map[string]string{
		"user/child.yaml":  "version: 1\nextends: [parent]\nenvironment: {secrets: [A, {name: B, optional: true}], pass: [C]}\n",
		"user/parent.yaml": "version: 1\nenvironment: {secrets: [{name: A, optional: true}, B, C, {name: D, optional: true}]}\n",
	})
	p, err := s.Find("child")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = s.Complete(p); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, e := range p.Environment.Secrets {
		got[e.Name] = e.Optional
	}
	if diff := cmp.Diff(map[string]bool{"A": false, "B": true, "D": true}, got); diff != "" {
		t.Errorf("optional (-want +got):\n%s", diff)
	}
}

func TestDiffOfSecrets(t *testing.T) {
	tests := []struct {
		a, b string
		want []string
	}{
		{"secrets: [TOKEN]", "secrets: [{name: TOKEN, optional: true}]", []string{"environment: secret TOKEN: optional changed (neutral)"}},
		{"secrets: [{name: TOKEN, optional: true}]", "secrets: [TOKEN]", []string{"environment: secret TOKEN: required changed (neutral)"}},
		{"secrets: [{name: NONE, optional: true}]", "secrets: [{name: NONE, optional: true}]", nil},
		{"secrets: [TOKEN]", "pass: [TOKEN]", []string{"environment: secrecy of variable TOKEN removed (widening)"}},
		{"pass: [TOKEN]", "secrets: [{name: TOKEN, optional: true}]", []string{"environment: secrecy of variable TOKEN added (narrowing)"}},
		{"pass: [NONE]", "secrets: [{name: NONE, optional: true}]", nil},
		{"", "secrets: [{name: TOKEN, optional: true}]", []string{"environment: variable TOKEN added (widening)"}},
	}
	for _, tt := range tests {
		t.Run(tt.a+" to "+tt.b, func(t *testing.T) {
			a, b := mustCompile(t, parse(t, "environment: {"+tt.a+"}\n"), nil), mustCompile(t, parse(t, "environment: {"+tt.b+"}\n"), nil)
			var got []string
			for _, c := range profiles.Diff(a, b) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// provided gives a profile what it needs of its host and machine: variables, programs, and a
// folder when it takes its roots from nowhere else.
func provided(t *testing.T, p *profiles.Profile) (*profiles.Profile, func(*profiles.Facts)) {
	t.Helper()
	whole, err := profiles.Search{}.Complete(p)
	if err != nil {
		t.Fatal(err)
	}
	asks := slices.ContainsFunc(whole.Filesystem.Write, func(e profiles.PathEntry) bool { return e.Path == "${roots}" })
	if asks && !whole.Roots.FromArgs.Value && len(whole.Roots.List) == 0 {
		if whole, err = whole.With(profiles.Flags{Roots: []string{"/data/a"}}); err != nil {
			t.Fatal(err)
		}
	}
	return whole, func(f *profiles.Facts) {
		for _, s := range whole.Environment.Secrets {
			f.Env[s.Name] = "hunter4"
		}
		for _, e := range whole.Filesystem.Execute {
			f.Execute[e.Value] = profiles.Closure{Execute: []string{"/usr/bin/" + filepath.Base(e.Value)}}
		}
	}
}
