package packages_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stockade/sandbox/packages"
)

// TestNPMInstalledRefuses has trees that npm would not make of itself.
func TestNPMInstalledRefuses(t *testing.T) {
	const both = `{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"1.0.0"}},"node_modules/a":{"version":"1.0.0","integrity":"sha512-x"}}}`
	const here = `{"lockfileVersion":3,"packages":{"node_modules/a":{"version":"1.0.0","integrity":"sha512-x"}}}`
	sane := map[string]string{
		"package.json":                    `{"dependencies":{"a":"1.0.0"}}`,
		"package-lock.json":               both,
		"node_modules/.package-lock.json": here,
		"node_modules/a/package.json":     `{"name":"a","version":"1.0.0"}`,
	}
	replaced := func(path, old, new string) map[string]string {
		return map[string]string{path: strings.Replace(sane[path], old, new, 1)}
	}
	tests := []struct {
		name   string
		change map[string]string // "" removes
		want   string            // "" for none
	}{
		{"sane", nil, ""},
		{"no lock", map[string]string{"package-lock.json": ""}, "no such file"},
		{"nothing listed as present", map[string]string{"node_modules/.package-lock.json": ""}, "no such file"},
		{"old format", replaced("package-lock.json", `"lockfileVersion":3`, `"lockfileVersion":1`), "lists no packages in the format"},
		{"no hash", map[string]string{
			"package-lock.json":               strings.Replace(both, `,"integrity":"sha512-x"`, "", 1),
			"node_modules/.package-lock.json": strings.Replace(here, `,"integrity":"sha512-x"`, "", 1),
		}, `the registry gives no hash for "node_modules/a"`},
		{"no hash, of a folder", map[string]string{
			"package-lock.json":               strings.Replace(both, `"integrity":"sha512-x"`, `"resolved":"file:../x"`, 1),
			"node_modules/.package-lock.json": strings.Replace(here, `"integrity":"sha512-x"`, `"resolved":"file:../x"`, 1),
		}, `"a" was asked of the registry, and did not come from there`},
		{"a repository", map[string]string{
			"package-lock.json":               strings.Replace(both, `"integrity"`, `"resolved":"git+ssh://git@github.com/u/r.git#0","integrity"`, 1),
			"node_modules/.package-lock.json": strings.Replace(here, `"integrity"`, `"resolved":"git+ssh://git@github.com/u/r.git#0","integrity"`, 1),
		}, `"a" was asked of the registry, and did not come from there`},
		{"other hash present", replaced("node_modules/.package-lock.json", "sha512-x", "sha512-y"), "is another version than npm has locked"},
		{"other version present", replaced("node_modules/a/package.json", "1.0.0", "1.0.1"), `holds version "1.0.1", and "1.0.0" is locked`},
		{"link", replaced("node_modules/.package-lock.json", `"version"`, `"link":true,"version"`), "is a link to another folder"},
		{"not there", map[string]string{"node_modules/.package-lock.json": `{"lockfileVersion":3,"packages":{"node_modules/b":{"version":"1.0.0"}}}`}, `"node_modules/a" was to be installed, and is not there`},
		{"planted package, listed", replaced("node_modules/.package-lock.json", `{"node_modules/a"`, `{"node_modules/b":{"version":"1.0.0","integrity":"sha512-x"},"node_modules/a"`), `"node_modules/b" was installed, and nothing asked for it`},
		{"planted package", map[string]string{"node_modules/b/package.json": "{}"}, `"node_modules/b" is in the tree, and npm does not list it`},
		{"planted scope", map[string]string{"node_modules/@s/b/package.json": "{}"}, `"node_modules/@s" is in the tree`},
		{"planted file", map[string]string{".npmrc": "x=y\n"}, `".npmrc" is in the tree`},
		{"outside", replaced("package-lock.json", "node_modules/a", "../a"), "lies outside node_modules"},
		{"climbing", replaced("package-lock.json", "node_modules/a", "node_modules/../../a"), "lies outside node_modules"},
	}
	t.Run("pipe in place of the lock", func(t *testing.T) {
		s := newStage(t)
		if err := syscall.Mkfifo(filepath.Join(s.Tree, "package-lock.json"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := packages.NPMInstalled(npmRequest(packages.Spec{Name: "a"}), s); err == nil || !strings.Contains(err.Error(), "is no file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("link out in place of the lock", func(t *testing.T) {
		s := newStage(t)
		outside := filepath.Join(t.TempDir(), "lock")
		write(t, outside, both)
		if err := os.Symlink(outside, filepath.Join(s.Tree, "package-lock.json")); err != nil {
			t.Fatal(err)
		}
		if _, err := packages.NPMInstalled(npmRequest(packages.Spec{Name: "a"}), s); err == nil || !strings.Contains(err.Error(), "escapes") {
			t.Errorf("got %v", err)
		}
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			writeAll(t, s.Tree, sane)
			for path, text := range tt.change {
				if text == "" {
					os.Remove(filepath.Join(s.Tree, path))
					continue
				}
				write(t, filepath.Join(s.Tree, path), text)
			}
			got, err := packages.NPMInstalled(npmRequest(packages.Spec{Name: "a"}), s)
			if tt.want == "" {
				if err != nil || got.Version != "1.0.0" {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
