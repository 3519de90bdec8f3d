package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages/registrytest"
)

// probePython is probeJS for Python.
const probePython = `import json, os, socket, subprocess, sys
import probe_library

def attempt(f):
    try:
        f()
        return "done"
    except OSError as e:
        return {1: "EPERM", 2: "ENOENT", 13: "EACCES", 97: "EAFNOSUPPORT", 111: "ECONNREFUSED"}.get(e.errno, str(e))

def main():
    rc, registry, outside, project = sys.argv[1:5]
    host, port = registry.split(":")
    here = os.path.dirname(__file__)
    print(json.dumps({
        "version": "1.0.0", "dependency": probe_library.said,
        "rc": attempt(lambda: open(rc).read()),
        "store": attempt(lambda: open(here + "/planted.py", "w")),
        "outside": attempt(lambda: open(outside, "w")),
        "project": attempt(lambda: open(project + "/made", "w")),
        "shell": attempt(lambda: subprocess.run(["/bin/sh", "-c", "true"])),
        "npm": attempt(lambda: subprocess.run([sys.prefix + "/bin/pip", "--version"])),
        "secret": [n for n in os.environ if "TOKEN" in n or "PIP_" in n],
        "registry": attempt(lambda: socket.create_connection((host, int(port)))),
    }))
`

const indexUser, indexPassword = "corp", "password-that-nobody-may-see"

// newIndex is a person whose pip is configured for a private index.
func newIndex(t *testing.T) workshop {
	t.Helper()
	w := workshop{place: newPlace(t), registry: registrytest.StartWith(t, registrytest.Options{User: indexUser, Password: indexPassword})}
	w.registry.AddPython(
		registrytest.Wheel{
			Name: "corp-probe", Version: "1.0.0", Requires: []string{"probe-library>=1"}, Extras: []string{"more"},
			Programs: map[string]string{"corp-probe": "corp_probe:main", "corp-other": "corp_probe:main"},
			Files:    map[string]string{"corp_probe/__init__.py": probePython},
		},
		registrytest.Wheel{Name: "probe-library", Version: "1.2.0", Files: map[string]string{"probe_library/__init__.py": "said = 'of the library'\n"}},
	)
	index := strings.Replace(w.registry.Index(), "://", "://"+indexUser+":"+indexPassword+"@", 1)
	if err := os.MkdirAll(filepath.Join(w.home, ".config", "pip"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.home, ".config", "pip", "pip.conf"), "[global]\nindex-url = "+index+"\n")
	t.Cleanup(func() { writable(t, w.home) })
	return w
}

func (w workshop) probeIndex(t *testing.T, runner ...string) (probed, string) {
	t.Helper()
	words := append([]string{"run", "--write", w.project, "--"}, runner...)
	words = append(words, filepath.Join(w.home, ".config/pip/pip.conf"), w.registry.Host(), filepath.Join(w.home, "outside"), w.project)
	stdout, stderr := output(t, w.stockade(t, words...), 0)
	var said probed
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatalf("%v in %q; stderr:\n%s", err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, indexPassword) {
		t.Errorf("the password is shown:\n%s%s", stdout, stderr)
	}
	return said, stderr
}

func TestPythonRunner(t *testing.T) {
	w := newIndex(t)
	want := jailedProbe
	want.NPM = "ENOENT" // the environment has no package manager at all
	said, stderr := w.probeIndex(t, "uvx", "corp-probe")
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("in the jail (-want +got):\n%s", diff)
	}
	if line := "stockade: note: installed pypi:corp-probe 1.0.0, 2 packages"; !strings.Contains(stderr, line) {
		t.Errorf("got %q, want %q", stderr, line)
	}

	// Outside, the same environment gives the same server all of it.
	scripts, err := filepath.Glob(filepath.Join(w.home, ".local/share/stockade/packages/pypi/corp-probe@1.0.0-*/venv/bin/corp-probe"))
	if err != nil || len(scripts) != 1 {
		t.Fatalf("%v, %v", scripts, err)
	}
	cmd := w.command(filepath.Join(filepath.Dir(scripts[0]), "python"), scripts[0],
		filepath.Join(w.home, ".config/pip/pip.conf"), w.registry.Host(), filepath.Join(w.home, "outside"), w.project)
	stdout, _ := output(t, cmd, 0)
	var free probed
	if err := json.Unmarshal([]byte(stdout), &free); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"rc": free.RC, "outside": free.Outside, "shell": free.Shell, "registry": free.Registry} {
		if got != "done" {
			t.Errorf("outside: %s: got %q, want it to work", name, got)
		}
	}

	// As root it also wrote into its own environment, which no later start would take.
	for _, planted := range mustGlob(t, filepath.Join(filepath.Dir(scripts[0]), "../lib/python*/site-packages/corp_probe/planted.py")) {
		if err := os.Remove(planted); err != nil {
			t.Fatal(err)
		}
	}

	asked := w.registry.Total()
	w.registry.Stop()
	for _, runner := range [][]string{
		{"uvx", "corp-probe"},
		{"uvx", "corp-probe@latest"},
		{"uv", "tool", "run", "corp-probe@latest"},
		{"pipx", "run", "corp-probe"},
		{"uvx", "--from", "corp-probe", "corp-other"},
	} {
		if said, stderr := w.probeIndex(t, runner...); said.Version != "1.0.0" || strings.Contains(stderr, "installing") {
			t.Errorf("%v: got %+v; stderr:\n%s", runner, said, stderr)
		}
	}
	if now := w.registry.Total(); now != asked {
		t.Errorf("second starts made %d requests", now-asked)
	}
}

func TestPythonRefusals(t *testing.T) {
	tests := []struct {
		name   string
		runner []string
		spoil  func(w workshop)
		want   string
	}{
		{"no such package", []string{"uvx", "nothing-there"}, nil, "nothing-there"},
		{"no such version", []string{"uvx", "corp-probe==9.9"}, nil, "9.9"},
		{"no such program", []string{"uvx", "--from", "corp-probe", "other"}, nil, `corp-probe has no program "other"`},
		{"the index is down", []string{"uvx", "corp-probe"}, func(w workshop) { w.registry.Stop() }, ""},
		{"other content than the index announced", []string{"uvx", "corp-probe"}, func(w workshop) {
			w.registry.Break("/files/corp_probe-1.0.0-py3-none-any.whl", registrytest.Tampered)
		}, ""},
		{"it would have to be built", []string{"uvx", "built"}, func(w workshop) {
			w.registry.AddSource(registrytest.Source{Wheel: registrytest.Wheel{
				Name: "built", Version: "1.0", Programs: map[string]string{"built": "built:main"},
				Files: map[string]string{"built/__init__.py": "def main(): print('built')\n"},
			}, Build: "pass\n"})
		}, ""},
		{"an index on the command line", []string{"uvx", "--index-url", "https://example.com/simple", "corp-probe"}, nil, "uvx --index-url cannot be kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newIndex(t)
			if tt.spoil != nil {
				tt.spoil(w)
			}
			stdout, stderr := output(t, w.stockade(t, append([]string{"run", "--"}, tt.runner...)...), 125)
			errs, hints := lines(stderr, "stockade: error: "), lines(stderr, "stockade: hint: ")
			if stdout != "" || len(errs) != 1 || len(hints) != 1 || !strings.Contains(errs[0], tt.want) {
				t.Errorf("want one error with %q and one hint; stdout %q, stderr:\n%s", tt.want, stdout, stderr)
			}
			if strings.Contains(stderr, indexPassword) {
				t.Errorf("the password is shown:\n%s", stderr)
			}
		})
	}
}

func TestPythonUpdate(t *testing.T) {
	w := newIndex(t)
	w.probeIndex(t, "uvx", "corp-probe")
	w.registry.AddPython(registrytest.Wheel{
		Name: "corp-probe", Version: "2.0.0", Programs: map[string]string{"corp-probe": "corp_probe:main"},
		Files: map[string]string{"corp_probe/__init__.py": "def main(): print('{\"version\": \"2.0.0\"}')\n"},
	})
	if said, _ := w.probeIndex(t, "uvx", "corp-probe"); said.Version != "1.0.0" {
		t.Errorf("a later start runs %s", said.Version)
	}
	stdout, _ := output(t, w.stockade(t, "package", "list"), 0)
	if !strings.Contains(stdout, "pypi:corp-probe  1.0.0") || !strings.Contains(stdout, "2.0.0 is there") {
		t.Errorf("package list: got %q", stdout)
	}
	stdout, _ = output(t, w.stockade(t, "package", "update"), 0)
	if want := "pypi:corp-probe  2.0.0  was 1.0.0\n"; stdout != want {
		t.Errorf("package update: got %q, want %q", stdout, want)
	}
	if said, _ := w.probeIndex(t, "uvx", "corp-probe"); said.Version != "2.0.0" {
		t.Errorf("after the update it runs %s", said.Version)
	}
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
