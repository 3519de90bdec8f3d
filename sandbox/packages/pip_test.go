package packages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
	"stockade/sandbox/packages/registrytest"
)

// systemPython is the distribution's interpreter: one on PATH may be a version manager's
// script.
const systemPython = "/usr/bin/python3"

// registryOptions are those of an open registry.
var registryOptions = registrytest.Options{}

// pythonShelves are the Python packages of the tests.
func pythonShelves(t *testing.T, o registrytest.Options) *registrytest.Registry {
	t.Helper()
	reg := registrytest.StartWith(t, o)
	reg.AddPython(
		registrytest.Wheel{
			Name: "Example.Server", Version: "1.2.0", Requires: []string{"dep>=1,<2", `more; extra == "cli"`}, Extras: []string{"cli"},
			Programs: map[string]string{"example-server": "example:main"},
			Files: map[string]string{
				"example/__init__.py":     "import dep\n\ndef main():\n    print('started', dep.x, __file__)\n    raise SystemExit(7)\n",
				"example/template.py":     "{{ no Python }}\n",
				"example/data.txt":        "data\n",
				"example/sub/__init__.py": "",
			},
		},
		registrytest.Wheel{Name: "Example.Server", Version: "0.9", Files: map[string]string{"example/__init__.py": ""}},
		registrytest.Wheel{Name: "dep", Version: "1.0", Files: map[string]string{"dep.py": "x = 1\n"}},
		registrytest.Wheel{Name: "dep", Version: "2.0", Files: map[string]string{"dep.py": "x = 2\n"}},
		registrytest.Wheel{Name: "more", Version: "1.0", Files: map[string]string{"more.py": ""}},
		registrytest.Wheel{Name: "windows", Version: "1.0", Platform: "win_amd64"},
		registrytest.Wheel{Name: "later", Version: "1.0", RequiresPython: ">=99"},
		registrytest.Wheel{Name: "bad", Version: "1.0"},
		registrytest.Wheel{Name: "gone", Version: "1.0"},
		registrytest.Wheel{Name: "forbidden", Version: "1.0"},
		registrytest.Wheel{Name: "failing", Version: "1.0"},
		registrytest.Wheel{Name: "hanging", Version: "1.0"},
		registrytest.Wheel{Name: "pip", Version: "99.0", Files: map[string]string{"pip/__init__.py": "the_index_s = True\n"}},
	)
	return reg
}

func pipRequest(specs ...packages.Spec) packages.Request {
	return packages.Request{Kind: packages.PyPI, Specs: specs}
}

// indexPerson is somebody whose pip.conf names an index.
func indexPerson(t *testing.T, index string, environ ...string) packages.Person {
	t.Helper()
	p := person(t, environ...)
	write(t, filepath.Join(p.Home, ".config", "pip", "pip.conf"), "[global]\nindex-url = "+index+"\n")
	return p
}

// pipInstall installs a request with the real pip.
func pipInstall(t *testing.T, p packages.Person, r packages.Request, s packages.Stage) (packages.Installed, error) {
	t.Helper()
	c, err := packages.FindPipConfig(p, r, "/")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := packages.PipSteps(r, s, systemPython, c)
	if err != nil {
		return packages.Installed{}, err
	}
	if err := c.Prepare(r, s); err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if out, status := carryOut(t, step, s, p, c.Reach); status != 0 {
			t.Logf("%s:\n%s", step.Title, out)
			return packages.Installed{}, packages.PipFailure(s, out, status)
		}
	}
	return packages.PipInstalled(r, s)
}

func names(locked []packages.Locked) []string {
	var all []string
	for _, l := range locked {
		all = append(all, l.Name+"@"+l.Version)
	}
	return all
}

// TestPipInstall installs, moves the tree as the store does, and starts the program.
func TestPipInstall(t *testing.T) {
	reg := pythonShelves(t, registrytest.Options{})
	r := pipRequest(packages.Spec{Name: "example-server", Extras: []string{"cli"}, Version: "==1.*"}, packages.Spec{Name: "pip"})
	var locks []string
	var trees []map[string]string
	for range 2 {
		s := newStage(t)
		got, err := pipInstall(t, indexPerson(t, reg.Index()), r, s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"dep@1.0", "example-server@1.2.0", "more@1.0", "pip@99.0"}, names(got.Locked)); diff != "" {
			t.Errorf("packages (-want +got):\n%s", diff)
		}
		if got.Name != "example-server" || got.Version != "1.2.0" || !strings.HasPrefix(got.Locked[0].Integrity, "sha256=") {
			t.Errorf("installed %+v", got)
		}
		moved := filepath.Join(t.TempDir(), "entry")
		if err := os.Rename(s.Tree, moved); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(moved, "venv", "bin", "python"), filepath.Join(moved, "venv", "bin", "example-server"))
		cmd.Env = []string{"PYTHONDONTWRITEBYTECODE=1"}
		out, _ := cmd.CombinedOutput()
		if want := "started 1 " + moved; cmd.ProcessState.ExitCode() != 7 || !strings.HasPrefix(string(out), want) {
			t.Errorf("the program ended with %d and said %q, want 7 and %q", cmd.ProcessState.ExitCode(), out, want)
		}
		if exists(filepath.Join(moved, "venv", "bin", "pip")) {
			t.Error("the tree has a package manager")
		}
		locks = append(locks, readFile(t, filepath.Join(moved, "requirements.txt")))
		trees = append(trees, contents(t, moved, filepath.Dir(s.Tree)))
	}
	if locks[0] != locks[1] || !strings.Contains(locks[0], "dep==1.0 --hash=sha256:") {
		t.Errorf("the locks are\n%s\nand\n%s", locks[0], locks[1])
	}
	if diff := cmp.Diff(trees[0], trees[1]); diff != "" {
		t.Errorf("two installs differ by more than their place:\n%s", diff)
	}
}

// contents returns the files of a tree by path, without the place of the install. RECORD
// has the hashes of scripts, and these hold the place.
func contents(t *testing.T, tree, place string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "RECORD" {
			return err
		}
		name, _ := filepath.Rel(tree, path)
		all[name] = strings.ReplaceAll(readFile(t, path), place, "PLACE")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPipBuild has a package without wheels: refused, and built when it is named, without
// credentials.
func TestPipBuild(t *testing.T) {
	reg := pythonShelves(t, registrytest.Options{})
	trace := filepath.Join(t.TempDir(), "trace")
	source := registrytest.Source{
		Wheel: registrytest.Wheel{Name: "source", Version: "1.0", Requires: []string{"dep"}, Files: map[string]string{"source.py": ""}},
		Build: "import os\nfor root, _, names in os.walk(os.environ['HOME']):\n    for n in names:\n        open('" + trace + "', 'ab').write(open(os.path.join(root, n), 'rb').read() if 'tool' not in root else b'.')\nopen('" + trace + "', 'ab').write(repr(os.environ).encode())",
	}
	reg.AddSource(source)
	index := strings.Replace(reg.Index(), "://", "://me:t0psecret@", 1)
	folder := writeAll(t, filepath.Join(t.TempDir(), "source"), source.Folder())
	for _, tt := range []struct {
		name    string
		spec    packages.Spec
		scripts []string
		want    string
	}{
		{"registry, not named", packages.Spec{Name: "source"}, nil, `there is no wheel of "source" for this machine: the index has its source only`},
		{"registry, named", packages.Spec{Name: "source"}, []string{"source"}, ""},
		{"folder, not named", packages.Spec{Source: packages.Folder, Place: folder}, nil, `"source" has to be built, which runs code of the package`},
		{"folder, named", packages.Spec{Source: packages.Folder, Place: folder}, []string{"source"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			os.Remove(trace)
			p := indexPerson(t, index, "PIP_EXTRA_INDEX_URL="+index, "https_proxy_password=t0psecret")
			write(t, filepath.Join(p.Home, ".netrc"), "machine 127.0.0.1 login me password t0psecret\n")
			r := pipRequest(tt.spec)
			r.Scripts = tt.scripts
			got, err := pipInstall(t, p, r, newStage(t))
			if tt.want != "" {
				fails(t, err, tt.want)
				if exists(trace) {
					t.Error("a build ran")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"dep@2.0", "source@1.0"}, names(got.Locked)); diff != "" || got.Name != "source" {
				t.Errorf("installed %q with (-want +got):\n%s", got.Name, diff)
			}
			if got.Locked[1].Integrity != "" {
				t.Errorf("what was built here has the integrity %q", got.Locked[1].Integrity)
			}
			if strings.Contains(readFile(t, trace), "t0psecret") {
				t.Error("the build saw a password")
			}
		})
	}
}

func TestPipFailures(t *testing.T) {
	reg := pythonShelves(t, registrytest.Options{})
	reg.Break("/files/bad-1.0-py3-none-any.whl", registrytest.Tampered)
	reg.Break("/files/gone-1.0-py3-none-any.whl", registrytest.Missing)
	reg.Break("/simple/forbidden/", registrytest.Forbidden)
	reg.Break("/simple/failing/", registrytest.Failing)
	reg.Break("/simple/hanging/", registrytest.Hang)
	reg.AddSource(registrytest.Source{Wheel: registrytest.Wheel{Name: "unbuildable", Version: "1.0"}, Build: "raise SystemExit('no compiler')"})
	locked := pythonShelves(t, registrytest.Options{User: "me", Password: "t0psecret"})
	down := registrytest.Start(t)
	down.Stop()
	tests := []struct {
		name, pkg, version, index string
		scripts                   []string
		want                      string
	}{
		{name: "no package", pkg: "nothing", want: `the index has no package "nothing"`},
		{name: "no version", pkg: "dep", version: ">=3", want: `no version matches "dep>=3"; there are 1.0, 2.0`},
		{name: "tampered", pkg: "bad", want: `the archive of "bad" is not what the index's hash says`},
		{name: "archive missing", pkg: "gone", want: "the index lists a file and does not have it"},
		{name: "forbidden", pkg: "forbidden", want: "the index " + reg.Host() + " does not let you have the package (403)"},
		{name: "broken", pkg: "failing", want: "the index " + reg.Host() + " is broken"},
		{name: "hanging", pkg: "hanging", want: "does not answer (ETIMEDOUT)"},
		{name: "other machine", pkg: "windows", want: `there is no wheel of "windows" for this machine: its wheels are for other machines`},
		{name: "other Python", pkg: "later", want: `"later" needs another Python (>=99)`},
		{name: "no credentials", pkg: "dep", index: locked.Index(), want: "wants credentials"},
		{name: "wrong credentials", pkg: "dep", index: strings.Replace(locked.Index(), "://", "://me:t0psecret2@", 1), want: "wants credentials"},
		{name: "down", pkg: "dep", index: down.Index(), want: "does not answer (ECONNREFUSED)"},
		{name: "build fails", pkg: "unbuildable", scripts: []string{"unbuildable"}, want: `building "unbuildable" failed`},
	}
	// One environment for pip serves all: only the step that fetches is carried out.
	tool := newStage(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			index := tt.index
			if index == "" {
				index = reg.Index()
			}
			p := indexPerson(t, index)
			r := pipRequest(packages.Spec{Name: tt.pkg, Version: tt.version})
			r.Scripts = tt.scripts
			c, err := packages.FindPipConfig(p, r, "/")
			if err != nil {
				t.Fatal(err)
			}
			steps, err := packages.PipSteps(r, tool, systemPython, c)
			if err != nil {
				t.Fatal(err)
			}
			if !exists(filepath.Join(tool.Home, "tool")) {
				if out, status := carryOut(t, steps[0], tool, p, c.Reach); status != 0 {
					t.Fatalf("%s", out)
				}
			}
			for _, name := range []string{"pip.conf", ".netrc", "pip.log", "wheels"} {
				os.RemoveAll(filepath.Join(tool.Home, name))
			}
			if err := c.Prepare(r, tool); err != nil {
				t.Fatal(err)
			}
			fetch := steps[1]
			for i, word := range fetch.Argv {
				if word == "--timeout=10" && tt.name == "hanging" { // not to wait for long
					fetch.Argv[i] = "--timeout=0.3"
				}
			}
			out, status := carryOut(t, fetch, tool, p, c.Reach)
			if status == 0 {
				t.Fatalf("it fetched something:\n%s", out)
			}
			err = packages.PipFailure(tool, out, status)
			fails(t, err, tt.want)
			if strings.Contains(err.Error()+hintOf(err), "t0psecret") {
				t.Errorf("the error shows a password: %v", err)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// TestPipCredentials has an index that wants a password, from each place that people keep it.
func TestPipCredentials(t *testing.T) {
	reg := pythonShelves(t, registrytest.Options{User: "me", Password: `t0p secret"\`})
	for _, tt := range []struct {
		name    string
		prepare func(p *packages.Person)
	}{
		{"netrc", func(p *packages.Person) {
			write(t, filepath.Join(p.Home, ".netrc"), "machine other.example login x password elsewhere\n\nmachine 127.0.0.1\n  login me\n  password \"t0p secret\\\"\\\\\"\ndefault login y password everywhere\n")
		}},
		{"URL in a variable", func(p *packages.Person) {
			p.Environ = append(p.Environ, "PIP_INDEX_URL="+strings.Replace(reg.Index(), "://", "://me:t0p%20secret%22%5C@", 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := indexPerson(t, reg.Index())
			tt.prepare(&p)
			s := newStage(t)
			if _, err := pipInstall(t, p, pipRequest(packages.Spec{Name: "dep"}), s); err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile(filepath.Join(s.Home, ".netrc"))
			if err != nil || bytes.Contains(kept, []byte("elsewhere")) || bytes.Contains(kept, []byte("everywhere")) {
				t.Errorf("the install has passwords of other hosts: %v", err)
			}
			out, status := carryOut(t, packages.PipNewest("dep", s), s, p, packages.Registries{})
			if got := packages.ParsePipNewest(out); status != 0 || got != "2.0" {
				t.Errorf("newest is %q (exit status %d)\n%s", got, status, out)
			}
		})
	}
}
