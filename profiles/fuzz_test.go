package profiles_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// FuzzParse: nothing panics, every error has a place in the file, and what parses parses
// to the same again and compiles or is refused with a place.
func FuzzParse(f *testing.F) {
	for _, name := range profiles.BuiltinNames() {
		source, _ := profiles.BuiltinSource(name)
		f.Add(source)
	}
	f.Add([]byte(profiles.EveryKey))
	f.Add([]byte("version: 1\nfilesystem: {read: [{path: /, broad: true, reason: x}], execute: [git]}\nroots: [\"~/x\"]\n"))
	f.Add([]byte("version: 1\nnetwork: {egress: [\"*.a.example:1\", \"[::1]:2\", \"10.0.0.0/8:3\"]}\nlimits: {memory: 1GiB}\n"))
	for _, src := range yamlSeeds {
		f.Add([]byte("version: 1\n" + src))
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := profiles.Parse("p.yaml", data)
		if err != nil {
			if p != nil {
				t.Error("a profile comes with the error")
			}
			placed(t, err)
			return
		}
		again, err := profiles.Parse("p.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("the second reading differs:\n%s", diff)
		}
		if p.Name.Value == "" {
			p.Name.Value = "p"
		}
		facts := profiles.FactsForTests()
		if w := p.Wants(facts); w.Path == "" {
			t.Error("no PATH")
		}
		if _, err := profiles.Compile(p, facts); err != nil {
			placed(t, err)
		}
	})
}

// yamlSeeds show the signs of YAML in places where they mean something, and where not.
var yamlSeeds = []string{
	"---\n# c\na: [x, \"y\", 'it''s', ~, 0x10, yes] # c\nb:\n- 1\n- c: d\n  e: f\n-\n  - - g\n",
	"a: |\n  x\n\n   y\nb: >-\n  x\n\n  z\n    more\nc: |+\n\n  k\n\n",
	"a: {b: c, d: [e, {f: }], \"g\": 1,}\nh: [\n  i, # c\n  j,\n]\n",
	"a:\r\n  - b\r\n  - \"c\\u00e9\\x41\\n\\t\\U0001f600\\/\\\\\\\"\"\r\n",
	"ü: é # x\n\"üü\": {a: 1, é: 2}\n", "? a\n: b\n", "a: &x b\nc: *x\n", "a: !!str b\n", "<<: {a: b}\n",
	"a: b\n---\nc: d\n", "a: b\n...\n", "%YAML 1.1\n---\na: b\n", "a: [b\n", "a: \"b\n", "a: b: c\n", "a: - b\n",
	"plain\n", "\"quoted\"\n", "a:\n   b: c\n  d: e\n", "a: |2\n   x\n", "a: |#\n", "a: [,]\n", "a: [? b]\n", "{a}: b\n", "a: b\n c\n",
}

func placed(t *testing.T, err error) {
	t.Helper()
	var many profiles.Errors
	if !errors.As(err, &many) || len(many) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	for _, e := range many {
		if e.File != "p.yaml" || e.Line < 1 || e.Column < 1 || e.Message == "" {
			t.Errorf("an error without a place: %+v", e)
		}
	}
}

const sixtyLines = "testdata/sixty-lines.yaml"

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(sixtyLines)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := profiles.Parse("p.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile has what a start does with the built-in file server profile.
func BenchmarkCompile(b *testing.B) {
	data, err := os.ReadFile(sixtyLines)
	if err != nil {
		b.Fatal(err)
	}
	p, err := profiles.Parse("p.yaml", data)
	if err != nil {
		b.Fatal(err)
	}
	p.Extends = nil
	facts := profiles.FactsForTests()
	r, err := profiles.Compile(p, facts)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := profiles.Compile(p, facts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(r.Plan.Grants)), "grants")
}

func BenchmarkBuiltin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p, _ := profiles.Builtin("filesystem")
		if _, err := (profiles.Search{}).Complete(p); err != nil {
			b.Fatal(err)
		}
	}
}
