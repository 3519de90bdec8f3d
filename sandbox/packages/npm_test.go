package packages_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
	"stockade/sandbox/packages/registrytest"
)

// program is a server's file for node.
const program = "#!/usr/bin/env node\nconsole.log('started')\n"

// script is a package.json's "scripts" with one that leaves a trace in the package's folder.
func script(name string) map[string]any {
	return map[string]any{name: "node -e \"require('fs').writeFileSync('ran', '')\""}
}

// shelves are the packages of the tests.
func shelves(t *testing.T, o registrytest.Options) *registrytest.Registry {
	t.Helper()
	reg := registrytest.StartWith(t, o)
	reg.AddNPM(
		registrytest.NPM{
			Name: "@example/server", Version: "1.2.0",
			Manifest: map[string]any{"bin": map[string]any{"server": "bin.js"}, "dependencies": map[string]any{"dep": "^1.0.0"}},
			Files:    map[string]string{"bin.js": program},
		},
		registrytest.NPM{Name: "@example/server", Version: "2.0.0-beta.1", Tags: []string{"next"}, Files: map[string]string{"bin.js": program}},
		registrytest.NPM{Name: "dep", Version: "1.0.0"},
		registrytest.NPM{Name: "dep", Version: "1.0.1", Manifest: map[string]any{"scripts": script("postinstall")}},
		registrytest.NPM{Name: "dep", Version: "2.0.0"},
		registrytest.NPM{Name: "two", Version: "3.0.0", Manifest: map[string]any{"bin": map[string]any{"one": "a.js", "other": "b.js"}}, Files: map[string]string{"a.js": program, "b.js": program}},
		registrytest.NPM{Name: "shim", Version: "1.0.0", Manifest: map[string]any{
			"bin": "shim.js", "optionalDependencies": map[string]any{"shim-linux": "1.0.0", "shim-win": "1.0.0"},
		}, Files: map[string]string{"shim.js": program}},
		registrytest.NPM{Name: "shim-linux", Version: "1.0.0", Manifest: map[string]any{"os": []string{"linux"}}, Files: map[string]string{"server": "#!/bin/true\n"}},
		registrytest.NPM{Name: "shim-win", Version: "1.0.0", Manifest: map[string]any{"os": []string{"win32"}}},
		registrytest.NPM{Name: "old-engine", Version: "1.0.0", Manifest: map[string]any{"engines": map[string]any{"node": ">=4"}}},
		registrytest.NPM{Name: "old-engine", Version: "2.0.0", Manifest: map[string]any{"engines": map[string]any{"node": ">=999"}}},
		registrytest.NPM{Name: "wants-script", Version: "1.0.0", Manifest: map[string]any{"scripts": script("install"), "dependencies": map[string]any{"dep": "1.0.1"}}},
		registrytest.NPM{Name: "bad-script", Version: "1.0.0", Manifest: map[string]any{"scripts": map[string]any{"install": "exit 3"}}},
	)
	return reg
}

// npmConfig finds and lists a person's configuration, with a line that names the registry
// in front of further ones.
func npmConfig(t *testing.T, p packages.Person, r packages.Request, s packages.Stage) packages.NPMConfig {
	t.Helper()
	c, err := packages.FindNPMConfig(p, realFile(t, "node"), realFile(t, "npm"))
	if err != nil {
		t.Fatal(err)
	}
	out, status := carryOut(t, c.List(s), s, p, c.Reach)
	if status != 0 {
		t.Fatalf("listing the configuration: exit status %d\n%s", status, out)
	}
	c, err = c.Listed(out, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// npmInstall installs a request with the real npm and returns the last step's words.
func npmInstall(t *testing.T, p packages.Person, r packages.Request, s packages.Stage) (packages.Installed, error) {
	t.Helper()
	c := npmConfig(t, p, r, s)
	steps, err := packages.NPMSteps(r, s, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step.Access == packages.Scripted {
			if err := packages.NPMScripts(r, s); err != nil {
				return packages.Installed{}, err
			}
		}
		if out, status := carryOut(t, step, s, p, c.Reach); status != 0 {
			t.Logf("%s", out)
			return packages.Installed{}, packages.NPMFailure(out, status)
		}
	}
	return packages.NPMInstalled(r, s)
}

func npmRequest(specs ...packages.Spec) packages.Request {
	return packages.Request{Kind: packages.NPM, Specs: specs}
}

func TestNPMInstall(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	local := registrytest.NPM{Name: "local", Version: "0.1.0", Manifest: map[string]any{"bin": "l.js", "scripts": script("prepare")}, Files: map[string]string{"l.js": program}}
	folder := writeAll(t, filepath.Join(t.TempDir(), "my server #1"), local.Folder())
	archive := filepath.Join(t.TempDir(), "local-0.1.0.tgz")
	write(t, archive, string(local.Tarball()))

	tests := []struct {
		name  string
		specs []packages.Spec
		want  []string // packages of the tree, NAME@VERSION
	}{
		{"scope and dependency", []packages.Spec{{Name: "@example/server"}}, []string{"@example/server@1.2.0", "dep@1.0.1"}},
		{"version", []packages.Spec{{Name: "dep", Version: "1.0.0"}}, []string{"dep@1.0.0"}},
		{"range", []packages.Spec{{Name: "dep", Version: "^1.0.0"}}, []string{"dep@1.0.1"}},
		{"range with spaces", []packages.Spec{{Name: "dep", Version: ">=1 <1.0.1"}}, []string{"dep@1.0.0"}},
		{"tag", []packages.Spec{{Name: "@example/server", Version: "next"}}, []string{"@example/server@2.0.0-beta.1"}},
		{"two programs", []packages.Spec{{Name: "two"}}, []string{"two@3.0.0"}},
		{"two packages", []packages.Spec{{Name: "two"}, {Name: "dep"}}, []string{"dep@2.0.0", "two@3.0.0"}},
		{"program in an optional package", []packages.Spec{{Name: "shim"}}, []string{"shim@1.0.0", "shim-linux@1.0.0"}},
		{"older one for this node", []packages.Spec{{Name: "old-engine"}}, []string{"old-engine@1.0.0"}},
		{"folder", []packages.Spec{{Source: packages.Folder, Place: folder}}, []string{"local@0.1.0"}},
		{"folder beside a package", []packages.Spec{{Source: packages.Folder, Place: folder}, {Name: "dep"}}, []string{"dep@2.0.0", "local@0.1.0"}},
		{"archive", []packages.Spec{{Source: packages.Archive, Place: archive}}, []string{"local@0.1.0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t)
			write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n")
			s := newStage(t)
			got, err := npmInstall(t, p, npmRequest(tt.specs...), s)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range got.Locked {
				names = append(names, l.Name+"@"+l.Version)
				if (l.Name != "local" || tt.name == "archive") && !strings.HasPrefix(l.Integrity, "sha512-") {
					t.Errorf("%s has the integrity %q", l.Name, l.Integrity)
				}
				if info, err := os.Lstat(filepath.Join(s.Tree, "node_modules", l.Name)); err != nil || !info.IsDir() {
					t.Errorf("%s is no folder of the tree: %v", l.Name, err)
				}
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			if got.Name+"@"+got.Version != tt.want[slices.IndexFunc(tt.want, func(w string) bool { return strings.HasPrefix(w, got.Name+"@") })] {
				t.Errorf("installed %s@%s", got.Name, got.Version)
			}
			if exists(filepath.Join(s.Tree, "node_modules", "dep", "ran")) {
				t.Error("an install script ran")
			}
			want := ""
			switch got.Name {
			case "old-engine":
				want = "2.0.0"
			case "@example/server":
				want = "1.2.0"
			case "dep":
				want = "2.0.0"
			case "two":
				want = "3.0.0"
			case "shim":
				want = "1.0.0"
			}
			if got.Newest != want {
				t.Errorf("newest is %q, want %q", got.Newest, want)
			}
		})
	}
}

// TestNPMScripts has three packages with install scripts in a tree: only the named one's may
// run, and it sees no credential.
func TestNPMScripts(t *testing.T) {
	reg := shelves(t, registrytest.Options{Token: "t0psecret"})
	p := person(t, "REGISTRY_TOKEN=t0psecret", "npm_config_x_secret=t0psecret")
	write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n//"+reg.Host()+"/npm/:_authToken=${REGISTRY_TOKEN}\n")
	reg.AddNPM(registrytest.NPM{Name: "nosy", Version: "1.0.0", Manifest: map[string]any{
		"scripts":      map[string]any{"install": "env > seen; npm config list >> seen; cat \"$npm_config_userconfig\" >> seen || true"},
		"dependencies": map[string]any{"wants-script": "1.0.0"},
	}})
	r := npmRequest(packages.Spec{Name: "nosy"})
	r.Scripts = []string{"nosy"}
	s := newStage(t)
	got, err := npmInstall(t, p, r, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"dep", "nosy", "wants-script"}, got.WithScripts); diff != "" {
		t.Errorf("packages with scripts (-want +got):\n%s", diff)
	}
	seen, err := os.ReadFile(filepath.Join(s.Tree, "node_modules", "nosy", "seen"))
	if err != nil {
		t.Fatalf("the named package's script did not run: %v", err)
	}
	if strings.Contains(string(seen), "t0psecret") {
		t.Errorf("the script saw the token:\n%s", seen)
	}
	for _, other := range []string{"wants-script", "dep"} {
		if exists(filepath.Join(s.Tree, "node_modules", other, "ran")) {
			t.Errorf("the script of %q ran, which nobody named", other)
		}
	}
	filepath.WalkDir(filepath.Dir(s.Tree), func(path string, d os.DirEntry, _ error) error {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "t0psecret") {
			t.Errorf("%s holds the token", path)
		}
		return nil
	})
}

// TestNPMScriptsOfAnother: under a name that the profile lists lies another package, by an alias
// or by its address. No script runs.
func TestNPMScriptsOfAnother(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	other := registrytest.NPM{Name: "other", Version: "1.0.0", Manifest: map[string]any{"scripts": script("postinstall")}}
	reg.AddNPM(other)
	for name, requirement := range map[string]string{
		"alias":   "npm:other@1.0.0",
		"address": "http://" + reg.Host() + other.Path(),
	} {
		t.Run(name, func(t *testing.T) {
			reg.AddNPM(registrytest.NPM{Name: "by-" + name, Version: "1.0.0", Manifest: map[string]any{"dependencies": map[string]any{"native": requirement}}})
			p := person(t)
			write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n")
			r := npmRequest(packages.Spec{Name: "by-" + name})
			r.Scripts = []string{"native"}
			s := newStage(t)
			_, err := npmInstall(t, p, r, s)
			if err == nil || name == "alias" && !strings.Contains(err.Error(), `the package under the name "native" is not the registry's package of that name`) {
				t.Errorf("got %v", err)
			}
			if exists(filepath.Join(s.Tree, "node_modules", "native", "ran")) {
				t.Error("the other package's script ran")
			}
		})
	}
}

func TestNPMScriptsNeedTheirPackage(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	p := person(t)
	write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n")
	r := npmRequest(packages.Spec{Name: "two"})
	r.Scripts = []string{"dep"}
	if _, err := npmInstall(t, p, r, newStage(t)); err == nil || !strings.Contains(err.Error(), `"dep" run, and the package is not installed`) {
		t.Errorf("got %v", err)
	}
}

// hostile is a configuration that would put the tree elsewhere, leave half of it out or
// print nothing of use.
const hostile = `global=true
location=global
prefix=/nowhere
cache=/nowhere
omit[]=optional
optional=false
package-lock=false
package-lock-only=true
shrinkwrap=false
dry-run=true
install-strategy=linked
global-style=true
legacy-bundling=true
install-links=false
save=false
save-dev=true
save-bundle=true
bin-links=false
ignore-scripts=false
offline=true
loglevel=silent
json=true
lockfile-version=1
workspaces=true
fetch-retries=9
only=prod
`

func TestNPMHostileConfiguration(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	for _, where := range []string{"file", "variables"} {
		t.Run(where, func(t *testing.T) {
			p := person(t)
			text := "registry=" + reg.NPM() + "\n"
			if where == "file" {
				text += hostile
			} else {
				for line := range strings.Lines(hostile) {
					p.Environ = append(p.Environ, "npm_config_"+strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(line), "-", "_"), "[]", ""))
				}
			}
			write(t, filepath.Join(p.Home, ".npmrc"), text)
			s := newStage(t)
			got, err := npmInstall(t, p, npmRequest(packages.Spec{Name: "shim"}, packages.Spec{Name: "wants-script"}), s)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Locked) != 4 {
				t.Errorf("installed %v", got.Locked)
			}
			if exists(filepath.Join(s.Tree, "node_modules", "wants-script", "ran")) {
				t.Error("an install script ran")
			}
			if !exists(filepath.Join(s.Tree, "node_modules", ".bin", "shim")) {
				t.Error("there is no link to the program")
			}
		})
	}
}

// TestNPMProjectIsNotRead installs below a folder whose own configuration names another
// registry: npm must not ask it.
func TestNPMProjectIsNotRead(t *testing.T) {
	reg, other := shelves(t, registrytest.Options{}), shelves(t, registrytest.Options{})
	p := person(t)
	write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n")
	s := newStage(t)
	project := filepath.Dir(s.Tree)
	write(t, filepath.Join(project, ".npmrc"), "registry="+other.NPM()+"\n")
	write(t, filepath.Join(project, "package.json"), `{"name":"project","workspaces":["tree"]}`)
	if _, err := npmInstall(t, p, npmRequest(packages.Spec{Name: "dep"}), s); err != nil {
		t.Fatal(err)
	}
	if other.Total() != 0 || reg.Total() == 0 {
		t.Errorf("the person's registry had %d requests, the project's %d", reg.Total(), other.Total())
	}
}

func TestNPMNewest(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	p := person(t)
	write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n")
	s := newStage(t)
	c := npmConfig(t, p, npmRequest(packages.Spec{Name: "dep"}), s)
	for name, want := range map[string]string{"dep": "2.0.0", "@example/server": "1.2.0"} {
		out, status := carryOut(t, c.Newest(name, s), s, p, c.Reach)
		if got := packages.ParseNPMNewest(out); status != 0 || got != want {
			t.Errorf("newest of %s is %q (exit status %d), want %q\n%s", name, got, status, want, out)
		}
	}
}
