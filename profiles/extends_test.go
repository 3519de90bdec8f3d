package profiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inFolder makes a folder of profiles and returns the search whose user folder it is.
func inFolder(t *testing.T, files map[string]string) (Search, string) {
	t.Helper()
	config := t.TempDir()
	folder := filepath.Join(config, "stockade", "profiles")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name+suffix), []byte("version: 1\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Search{Config: config}, folder
}

func complete(t *testing.T, s Search, name string) (*Profile, error) {
	t.Helper()
	p, err := s.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Complete(p)
}

func valuesOf[T any](list []Sourced[T]) []T {
	var out []T
	for _, s := range list {
		out = append(out, s.Value)
	}
	return out
}

func TestCompleteMerges(t *testing.T) {
	s, folder := inFolder(t, map[string]string{
		"a": "extends: [b, c]\ndescription: d\nfilesystem: {home: real, optional: [/a]}\nenvironment: {set: {X: a}, pass: [TZ]}\nlimits: {memory: 1GiB}\n",
		"b": "extends: [d]\nname: b\nmatch: {commands: [b]}\nfilesystem: {home: private, metadata: refuse, optional: [/b]}\nenvironment: {set: {X: b, Y: b}, secrets: [TZ]}\n",
		"c": "extends: [d]\nfilesystem: {optional: [/c]}\nlimits: {memory: 2GiB, open-files: 64}\n",
		"d": "filesystem: {optional: [/d]}\nenvironment: {pass: [X, LANG]}\n",
	})
	p, err := complete(t, s, "a")
	if err != nil {
		t.Fatal(err)
	}
	var optional []string
	for _, e := range p.Filesystem.Optional {
		optional = append(optional, e.Path+" "+filepath.Base(e.File))
	}
	if diff := cmp.Diff([]string{"/d d.yaml", "/b b.yaml", "/c c.yaml", "/a a.yaml"}, optional); diff != "" {
		t.Errorf("lists append in order, and a file counts once (-want +got):\n%s", diff)
	}
	if p.Filesystem.Home.Value != HomeReal || p.Filesystem.Metadata.Value != MetadataRefuse || p.Limits.Memory.Value != 1<<30 || p.Limits.OpenFiles.Value != 64 {
		t.Errorf("single values do not replace: %+v %+v", p.Filesystem, p.Limits)
	}
	if p.Name.Value != "a" || p.Description != "d" || len(p.Match.Commands) > 0 || len(p.Extends) > 0 || p.File != filepath.Join(folder, "a.yaml") {
		t.Errorf("what is a profile's own was inherited: %+v", p)
	}
	env := p.Environment
	var set []string
	for _, v := range env.Set {
		set = append(set, v.Name+"="+v.Value)
	}
	if diff := cmp.Diff([]string{"Y=b", "X=a"}, set); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"LANG", "TZ"}, valuesOf(env.Pass)); diff != "" || len(env.Secrets) > 0 {
		t.Errorf("the later word about a variable counts; secrets %v, pass (-want +got):\n%s", env.Secrets, diff)
	}
}

func TestCompleteRefuses(t *testing.T) {
	deep := map[string]string{}
	for i := range 10 {
		deep[fmt.Sprintf("deep%d", i)] = fmt.Sprintf("extends: [deep%d]\n", i+1)
	}
	deep["deep10"] = ""
	tests := []struct {
		name  string
		files map[string]string
		start string
		want  []string
	}{
		{"unknown", map[string]string{"a": "extends: [nod, zzz]\n"}, "a", []string{
			`a.yaml:2:11: extends: no profile is named "nod" | did you mean "node"?`,
			`a.yaml:2:16: extends: no profile is named "zzz" | built-in profiles are ` + strings.Join(BuiltinNames(), ", ") + `; others lie beside the file, as "zzz.yaml"`,
		}},
		{"cycle", map[string]string{"a": "extends: [b]\n", "b": "\nextends: [a]\n"}, "a", []string{
			"b.yaml:3:11: profiles extend each other: DIR/a.yaml -> DIR/b.yaml -> DIR/a.yaml | remove one of the entries",
		}},
		{"itself", map[string]string{"a": "extends: [a]\n"}, "a", []string{
			`a.yaml:2:11: extends: no profile is named "a" | built-in profiles are ` + strings.Join(BuiltinNames(), ", ") + `; others lie beside the file, as "a.yaml"`,
		}},
		{"nine on a line", deep, "deep0", []string{"deep7.yaml:2:11: more than 8 profiles on one line of extends | merge some of the files"}},
		{"broken parent", map[string]string{"a": "extends: [b]\n", "b": "view: half\n"}, "a", []string{`b.yaml:2:7: view: "half" is not known | write full or grants`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, folder := inFolder(t, tt.files)
			_, err := complete(t, s, tt.start)
			var many Errors
			if !errors.As(err, &many) {
				t.Fatalf("got %v", err)
			}
			var got []string
			for _, e := range many {
				text := strings.TrimPrefix(e.Error(), folder+"/") + " | " + e.Hint
				got = append(got, strings.ReplaceAll(text, folder, "DIR"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := complete(t, func() Search { s, _ := inFolder(t, deep); return s }(), "deep3"); err != nil {
		t.Errorf("eight on a line: %v", err)
	}
}

// TestCompleteOwnNode: a profile may have the name of the built-in one that it extends.
func TestCompleteOwnNode(t *testing.T) {
	s, _ := inFolder(t, map[string]string{"node": "extends: [node]\nfilesystem: {read: [/x]}\n"})
	p, err := complete(t, s, "node")
	if err != nil {
		t.Fatal(err)
	}
	if p.Environment.Pass[0].File != "built-in base" || p.Filesystem.Read[0].Path != "/x" {
		t.Errorf("got %+v", p)
	}
}

func TestCompleteBuiltins(t *testing.T) {
	for _, name := range BuiltinNames() {
		p, _ := Builtin(name)
		before := fmt.Sprintf("%+v", *p)
		done, err := Search{}.Complete(p)
		if err != nil {
			t.Fatal(err)
		}
		done.Environment.Pass = append(done.Environment.Pass, Sourced[string]{Value: "X"})
		if again, _ := Builtin(name); fmt.Sprintf("%+v", *again) != before {
			t.Errorf("completing %q changed the built-in profile", name)
		}
	}
}

// TestRepositoryExtends: a repository's profile extends files of the repository only.
func TestRepositoryExtends(t *testing.T) {
	repo := t.TempDir()
	folder := filepath.Join(repo, ".stockade", "profiles")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "out.yaml")
	for path, text := range map[string]string{
		filepath.Join(folder, "a.yaml"): "version: 1\nextends: [b]\n", filepath.Join(folder, "b.yaml"): "version: 1\nfilesystem: {read: [/b]}\n",
		filepath.Join(folder, "c.yaml"): "version: 1\nextends: [out]\n", outside: "version: 1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "out.yaml")); err != nil {
		t.Fatal(err)
	}
	s := Search{Repo: repo}
	p, err := complete(t, s, "a")
	if err != nil || !p.FromRepo || len(p.Filesystem.Read) != 1 {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := complete(t, s, "c"); err == nil || !strings.Contains(err.Error(), "path escapes") {
		t.Errorf("a link out of the repository is extended: %v", err)
	}
}

// eachKey calls visit with every key of a profile that holds a value, and its path.
func eachKey(keys []key, within string, visit func(*key, string)) {
	for i := range keys {
		path := join(within, keys[i].name)
		if keys[i].field != nil {
			visit(&keys[i], path)
		}
		eachKey(keys[i].keys, path, visit)
	}
}

// ownKeys are not inherited.
var ownKeys = map[string]bool{"version": true, "name": true, "description": true, "match.packages": true, "match.commands": true, "extends": true}

// TestMergeKnowsEveryKey: whatever key an extended profile writes arrives in one that
// writes nothing, and stays when the extending profile writes it over nothing.
func TestMergeKnowsEveryKey(t *testing.T) {
	full, err := Parse("p.yaml", []byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	eachKey(profileKeys, "", func(k *key, path string) {
		if ownKeys[path] {
			return
		}
		t.Run(path, func(t *testing.T) {
			want := reflect.ValueOf(k.field(full)).Elem()
			if want.IsZero() {
				t.Fatalf("the test's profile does not write %s", path)
			}
			for name, merged := range map[string]*Profile{"under": merge(full, &Profile{}), "over": merge(&Profile{}, full)} {
				if diff := cmp.Diff(want.Interface(), reflect.ValueOf(k.field(merged)).Elem().Interface()); diff != "" {
					t.Errorf("lost as %s (-want +got):\n%s", name, diff)
				}
			}
		})
	})
}

// TestMergeForms has the keys that are a word or a list.
func TestMergeForms(t *testing.T) {
	tests := []struct{ name, under, over, want string }{
		{"word over word", "network: {egress: all}", "network: {egress: none}", "none [] args=false []"},
		{"word over list", "network: {egress: [\"a.example:1\"]}", "network: {egress: none}", "none [] args=false []"},
		{"list over word", "network: {egress: all}", "network: {egress: [\"a.example:1\"]}", " [a.example:1] args=false []"},
		{"list over list", "network: {egress: [\"a.example:1\"]}", "network: {egress: [\"b.example:1\"]}", " [a.example:1 b.example:1] args=false []"},
		{"empty list over word", "network: {egress: all}", "network: {egress: []}", " [] args=false []"},
		{"empty list over list", "network: {egress: [\"a.example:1\"]}", "network: {egress: []}", " [a.example:1] args=false []"},
		{"nothing over word", "network: {egress: all}", "network: {}", "all [] args=false []"},
		{"list over public", "network: {egress: public}", "network: {egress: [\"a.example:1\"]}", " [a.example:1] args=false []"},
		{"public in a list over a list", "network: {egress: [\"a.example:1\"]}", "network: {egress: [public]}", "public [a.example:1] args=false []"},
		{"list over public in a list", "network: {egress: [public]}", "network: {egress: [\"a.example:1\"]}", "public [a.example:1] args=false []"},
		{"word over public in a list", "network: {egress: [public, \"a.example:1\"]}", "network: {egress: none}", "none [] args=false []"},
		{"word over a list with names", "network: {egress: [\"a.example:1\"], names: pinned}", "network: {egress: public}", "public [] args=false []"},
		{"args over list", "roots: [/a]", "roots: args", " [] args=true []"},
		{"list over args", "roots: args", "roots: [/a]", " [] args=false [/a]"},
		{"list over list of roots", "roots: [/a]", "roots: [/b]", " [] args=false [/a /b]"},
		{"empty list over args", "roots: args", "roots: []", " [] args=false []"},
		{"nothing over args", "roots: args", "name: x", " [] args=true []"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			under, err := Parse("u.yaml", []byte("version: 1\n"+tt.under+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			over, err := Parse("o.yaml", []byte("version: 1\n"+tt.over+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			m := merge(under, over)
			var roots []string
			for _, e := range m.Roots.List {
				roots = append(roots, e.Path)
			}
			if m.Network.Names.written() {
				t.Error("what the list said about names stays")
			}
			hosts := []string{}
			for _, h := range m.Network.Hosts {
				hosts = append(hosts, h.To)
			}
			got := fmt.Sprintf("%s %v args=%v %v", m.Network.Egress.Value, hosts, m.Roots.FromArgs.Value, roots)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMergeMissing(t *testing.T) {
	allow := func(names ...string) Missing {
		var m Missing
		for _, n := range names {
			m.Allow = append(m.Allow, Sourced[string]{Value: n})
		}
		return m
	}
	refuse := Missing{Refuse: Sourced[bool]{true, Position{File: "p.yaml", Line: 1, Column: 1}}}
	for _, tt := range []struct {
		name              string
		under, over, want Missing
	}{
		{"nothing", allow("a"), Missing{}, allow("a")},
		{"append", allow("a"), allow("b"), allow("a", "b")},
		{"take back", allow("a"), refuse, refuse},
		{"allow again", refuse, allow("b"), allow("b")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mergeMissing(&tt.under, &tt.over)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}
