package profiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// TestDisagreements: entries that say different things about one host and port are told, with
// both places and with what holds.
func TestDisagreements(t *testing.T) {
	tests := []struct {
		name, egress string
		flags, want  []string
	}{
		{"the same twice", "[a.example, \"A.example:443\", {to: a.example, names: strict}]", nil, nil},
		{"hosts of their own", "[a.example, {to: b.example, names: pinned}, {to: \"*.a.example\", names: pinned, addresses: any}]", nil, nil},
		{"ports of their own", "[a.example, {to: \"a.example:444-500\", names: pinned, addresses: any}]", nil, nil},
		{
			"the later is weaker", "[a.example, {to: a.example, names: pinned}]", nil,
			[]string{"p.yaml:3:36: a.example:443 has names: pinned here and names: strict at p.yaml:3:20; what holds is names: pinned"},
		},
		{
			"the earlier is weaker, and the later does not say", "[{to: a.example, names: pinned}, a.example]", nil,
			[]string{"p.yaml:3:52: a.example:443 has names: strict here and names: pinned at p.yaml:3:25; what holds is names: pinned"},
		},
		{
			"the earlier is weaker, and the later says so", "[{to: a.example, names: pinned}, {to: a.example, names: strict}]", nil,
			[]string{"p.yaml:3:57: a.example:443 has names: strict here and names: pinned at p.yaml:3:25; what holds is names: strict"},
		},
		{
			"a range over a port", "[a.example, {to: \"a.example:400-8080\", names: pinned}]", nil,
			[]string{"p.yaml:3:36: a.example:443 has names: pinned here and names: strict at p.yaml:3:20; what holds is names: pinned"},
		},
		{
			"a port in a range", "[{to: \"*.a.example:400-8080\", names: pinned}, \"*.a.example:8080\"]", nil,
			[]string{"p.yaml:3:65: *.a.example:8080 has names: strict here and names: pinned at p.yaml:3:25; what holds is names: strict"},
		},
		{"ranges that no relay serves", "[\"a.example:22-24\", {to: \"a.example:24-30\", names: pinned}]", nil, nil},
		{
			"addresses", "[a.example, {to: a.example, addresses: any}]", nil,
			[]string{"p.yaml:3:36: a.example:443 has addresses: any here and addresses: ordinary at p.yaml:3:20; what holds is addresses: any"},
		},
		{
			"addresses of ranges", "[{to: \"a.example:22-24\", addresses: any}, \"a.example:24-30\"]", nil,
			[]string{"p.yaml:3:61: a.example:24 has addresses: ordinary here and addresses: any at p.yaml:3:25; what holds is addresses: ordinary"},
		},
		{
			"a flag that does not say", "[{to: a.example, names: pinned}]",
			[]string{"a.example"},
			[]string{"--egress: a.example:443 has names: strict here and names: pinned at p.yaml:3:25; what holds is names: pinned"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parse(t, "network: {egress: "+tt.egress+"}\n").With(profiles.Flags{Egress: tt.flags})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, mustCompile(t, p, nil).Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExtendingReplacesWords: what one file says in place of another is meant, and not told.
// What it leaves to the other one by accident is.
func TestExtendingReplacesWords(t *testing.T) {
	for child, want := range map[string]int{
		"{to: a.example, names: pinned}":                 0,
		"{to: a.example, names: strict}":                 0,
		"a.example":                                      1,
		"{to: a.example, names: pinned, addresses: any}": 0,
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{
			"under.yaml": "version: 1\nnetwork: {egress: [{to: a.example, names: pinned}]}\n",
			"over.yaml":  "version: 1\nextends: [under]\nnetwork: {egress: [" + child + "]}\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(folder, "over.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profiles.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = (profiles.Search{}).Complete(p); err != nil {
			t.Fatal(err)
		}
		if got := mustCompile(t, p, nil).Warnings; len(got) != want {
			t.Errorf("%s: told %q, want %d warnings", child, got, want)
		}
	}
}
