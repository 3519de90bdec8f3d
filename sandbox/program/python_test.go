package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/program"
)

// pythonWorld has a CPython 3.11 in usr and another in opt/py.
func pythonWorld(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb)
	w.program("usr/bin/python3.11")
	w.link("python3.11", "usr/bin/python3")
	w.file("usr/lib/python3.11/os.py", "")
	w.program("opt/py/bin/python3.12")
	w.link("python3.12", "opt/py/bin/python3")
	w.file("opt/py/lib/python3.12/os.py", "")
	return w
}

func TestPythonScripts(t *testing.T) {
	const work = "home/me/code"
	tests := []struct {
		name     string
		files    map[string]string
		argv     []string
		entry    string
		pkg      string
		args     []string
		wantRead []string // beyond the standard library
		note     string
	}{
		{
			name: "script in a project", files: map[string]string{work + "/pyproject.toml": "", work + "/src/s.py": ""},
			argv: []string{"python3", "-u", "src/s.py", "-x"}, entry: work + "/src/s.py", args: []string{"-x"}, wantRead: []string{work},
		},
		{
			name: "script alone in its folder", files: map[string]string{work + "/src/s.py": ""},
			argv: []string{"python3", "src/s.py"}, entry: work + "/src/s.py", args: []string{}, wantRead: []string{work + "/src/s.py"},
			note: `no pyproject.toml, setup.cfg or setup.py near the script "ROOT/home/me/code/src/s.py": only this file is readable`,
		},
		{
			name: "project file of the home folder", files: map[string]string{"home/me/setup.py": "", work + "/s.py": ""},
			argv: []string{"python3", "s.py"}, entry: work + "/s.py", args: []string{}, wantRead: []string{work + "/s.py"},
			note: "only this file is readable",
		},
		{
			name: "script in the home folder", files: map[string]string{"home/me/s.py": ""},
			argv: []string{"python3", "../s.py"}, entry: "home/me/s.py", args: []string{}, wantRead: []string{"home/me/s.py"},
			note: `near the script "ROOT/home/me/s.py": only this file is readable`,
		},
		{
			name: "folder", files: map[string]string{work + "/app/__main__.py": ""},
			argv: []string{"python3", "app"}, entry: work + "/app", args: []string{}, wantRead: []string{work + "/app"},
		},
		{
			name: "archive", files: map[string]string{work + "/dist/app.pyz": ""},
			argv: []string{"python3", "dist/app.pyz", "a"}, entry: work + "/dist/app.pyz", args: []string{"a"}, wantRead: []string{work + "/dist/app.pyz"},
			note: "only this file is readable",
		},
		{
			name: "installed module", argv: []string{"python3", "-I", "-m", "server.main", "-x"}, pkg: "server.main", args: []string{"-x"},
		},
		{
			name: "module in the working folder", files: map[string]string{work + "/server/__init__.py": ""},
			argv: []string{"python3", "-m", "server"}, pkg: "server", args: []string{}, wantRead: []string{work + "/server"},
		},
		{
			name: "module in a project", files: map[string]string{work + "/setup.cfg": "", work + "/server.py": ""},
			argv: []string{"python3", "-m", "server"}, pkg: "server", args: []string{}, wantRead: []string{work},
		},
		{name: "code", argv: []string{"python3", "-c", "pass", "a"}, args: []string{"a"}},
		{name: "gone", argv: []string{"python3", "gone.py"}, args: []string{}, note: `the script "gone.py" was not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := pythonWorld(t)
			for path, content := range tt.files {
				w.file(path, content)
			}
			p := w.mustResolve(tt.argv...)
			if p.Runtime != program.Python {
				t.Errorf("runtime %d", p.Runtime)
			}
			want := ""
			if tt.entry != "" {
				want = w.at(tt.entry)
			}
			if p.Entry != want || p.Package != tt.pkg {
				t.Errorf("entry %q, package %q; want %q, %q", w.rel(p.Entry), p.Package, want, tt.pkg)
			}
			if diff := cmp.Diff(tt.args, p.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			wantRead := append(slices.Clone(tt.wantRead), "usr/lib/python3.11")
			if diff := cmp.Diff(wantRead, beyond(w.reads(p.Read))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if notes := w.notes(p); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

func TestPythonLayouts(t *testing.T) {
	w := pythonWorld(t)
	w.file("usr/lib/python311.zip", "")
	w.file("usr/lib64/python3.11/lib-dynload/x.txt", "")
	p := w.mustResolve("python3")
	want := []string{"usr/lib/python3.11", "usr/lib/python311.zip", "usr/lib64/python3.11"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	// An interpreter without a version in its name takes the highest that is complete.
	w = newWorld(t)
	w.program("p/bin/python")
	for _, version := range []string{"3.9", "3.10"} {
		w.file("p/lib/python"+version+"/os.py", "")
	}
	w.folder("p/lib/python3.11")
	p = w.mustResolve("ROOT/p/bin/python")
	if diff := cmp.Diff([]string{"p/lib/python3.10"}, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	w = newWorld(t)
	w.program("p/bin/python3.99")
	p = w.mustResolve("ROOT/p/bin/python3.99", "x.py")
	if p.Runtime != program.Native || !strings.Contains(w.notes(p), "has no standard library") {
		t.Errorf("runtime %d, notes %q", p.Runtime, p.Notes)
	}
}

func TestVirtualEnvironments(t *testing.T) {
	build := func(t *testing.T, config string) *world {
		t.Helper()
		w := pythonWorld(t)
		w.link("ROOT/opt/py/bin/python3.12", "venv/bin/python")
		w.link("python", "venv/bin/python3")
		w.file("venv/pyvenv.cfg", "home = ROOT/opt/py/bin\n"+config)
		w.file("venv/lib/python3.12/site-packages/server/__init__.py", "")
		w.file("opt/py/lib/python3.12/site-packages/base/__init__.py", "")
		w.script("venv/bin/server", "#!ROOT/venv/bin/python\nimport server\n")
		w.program("venv/bin/other")
		return w
	}
	t.Run("console script", func(t *testing.T) {
		w := build(t, "include-system-site-packages = false\n")
		p := w.mustResolve("ROOT/venv/bin/server", "-x")
		if diff := cmp.Diff([]string{"ROOT/venv/bin/python", "ROOT/venv/bin/server", "-x"}, w.rel(p.Argv...)); diff != "" {
			t.Errorf("argv (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ROOT/opt/py/bin/python3.12", "ROOT/lib/ld.so"}, w.rel(p.Execute...)); diff != "" {
			t.Errorf("execute (-want +got):\n%s", diff)
		}
		want := []string{"opt/py/lib/python3.12", "venv/bin/server", "venv/lib/python3.12/site-packages", "venv/pyvenv.cfg"}
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ROOT/venv/bin", "ROOT/opt/py/bin"}, w.rel(p.Path...)); diff != "" {
			t.Errorf("path (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ROOT/venv/lib/python3.12/site-packages"}, w.rel(p.Sites...)); diff != "" {
			t.Errorf("sites (-want +got):\n%s", diff)
		}
		if p.Entry != w.at("venv/bin/server") || len(p.Notes) != 0 {
			t.Errorf("entry %q, notes %q", p.Entry, p.Notes)
		}
	})
	t.Run("found on PATH", func(t *testing.T) {
		w := build(t, "").with(map[string]string{"PATH": "ROOT/venv/bin:ROOT/usr/bin"})
		p := w.mustResolve("python3", "-m", "server")
		if diff := cmp.Diff([]string{"ROOT/venv/bin/python3", "-m", "server"}, w.rel(p.Argv...)); diff != "" {
			t.Errorf("argv (-want +got):\n%s", diff)
		}
	})
	t.Run("packages of the base", func(t *testing.T) {
		w := build(t, "include-system-site-packages = true\n")
		w.file("home/me/proj/pyproject.toml", "")
		w.file("opt/py/lib/python3.12/site-packages/base.pth", "ROOT/home/me/proj\n")
		w.elf("lib/libbase.so", elfFile{})
		w.elf("opt/py/lib/python3.12/site-packages/base/_x.so", elfFile{needed: []string{"libbase.so"}})
		p := w.mustResolve("ROOT/venv/bin/python")
		want := []string{"lib/libbase.so", "lib/libc.so.6", "opt/py/lib/python3.12", "venv/lib/python3.12/site-packages", "venv/pyvenv.cfg"}
		if diff := cmp.Diff(want, w.reads(p.Read)); diff != "" {
			t.Errorf("with them: read (-want +got):\n%s", diff)
		}
		both := []string{"ROOT/venv/lib/python3.12/site-packages", "ROOT/opt/py/lib/python3.12/site-packages"}
		if diff := cmp.Diff(both, w.rel(p.Sites...)); diff != "" {
			t.Errorf("sites (-want +got):\n%s", diff)
		}
		if !strings.Contains(w.notes(p), `base.pth names "ROOT/home/me/proj"`) {
			t.Errorf("notes %q", w.notes(p))
		}
		w.file("venv/pyvenv.cfg", "home = ROOT/opt/py/bin\ninclude-system-site-packages = false\n")
		p = w.mustResolve("ROOT/venv/bin/python")
		if diff := cmp.Diff(want[1:], w.reads(p.Read)); diff != "" {
			t.Errorf("without them: read (-want +got):\n%s", diff)
		}
	})
	t.Run("moved base", func(t *testing.T) {
		// The home key is stale; the interpreter itself shows the way.
		w := build(t, "home = ROOT/gone/bin\n")
		p := w.mustResolve("ROOT/venv/bin/python")
		want := []string{"opt/py/lib/python3.12", "venv/lib/python3.12/site-packages", "venv/pyvenv.cfg"}
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	})
	t.Run("copied interpreter", func(t *testing.T) {
		w := build(t, "")
		w.program("opt/py/env/bin/python3.12")
		w.file("opt/py/env/pyvenv.cfg", "home=ROOT/opt/py/bin\n")
		w.file("opt/py/env/lib/python3.12/site-packages/x.py", "")
		p := w.mustResolve("ROOT/opt/py/env/bin/python3.12")
		want := []string{"opt/py/env/lib/python3.12/site-packages", "opt/py/env/pyvenv.cfg", "opt/py/lib/python3.12"}
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	})
}

func TestPythonCompiledModules(t *testing.T) {
	w := pythonWorld(t)
	w.elf("lib/libdyn.so", elfFile{needed: []string{"libdeep.so"}})
	w.elf("lib/libdeep.so", elfFile{})
	w.elf("lib/libsite.so", elfFile{})
	w.elf("lib/libunused.so", elfFile{})
	w.elf("usr/lib/python3.11/lib-dynload/m.so", elfFile{needed: []string{"libdyn.so", "libc.so.6"}})
	site := "usr/lib/python3.11/site-packages/"
	w.elf(site+"pkg/sub/_x.so", elfFile{needed: []string{"libsite.so", "libbundled.so"}, runPath: "$ORIGIN/../../pkg.libs"})
	w.elf(site+"pkg.libs/libbundled.so", elfFile{})
	w.elf(site+"pkg/foreign.so", elfFile{machine: 8, needed: []string{"libunused.so"}})
	w.file(site+"pkg/text.so", "INPUT(libunused.so)")
	w.elf(site+"pkg/__pycache__/c.so", elfFile{needed: []string{"libunused.so"}})
	p := w.mustResolve("python3")
	want := []string{"lib/libc.so.6", "lib/libdeep.so", "lib/libdyn.so", "lib/libsite.so", "usr/lib/python3.11"}
	if diff := cmp.Diff(want, w.reads(p.Read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	for i := range 2001 {
		w.file(fmt.Sprintf("%smany/f%d", site, i), "")
	}
	p = w.mustResolve("python3")
	if !strings.Contains(w.notes(p), "more than the 2000 entries that are looked at") {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestPythonPackagesInDevelopment(t *testing.T) {
	w := pythonWorld(t)
	const proj = "home/me/proj/"
	w.link("ROOT/opt/py/bin/python3.12", proj+".venv/bin/python")
	w.file(proj+".venv/pyvenv.cfg", "home = ROOT/opt/py/bin\n")
	w.file(proj+"pyproject.toml", "")
	w.file(proj+"src/pkg/__init__.py", "")
	w.file(proj+"flat/setup.py", "")
	w.file(proj+"mapped/setup.cfg", "")
	w.file(proj+"mapped/lib/m/__init__.py", "")
	w.file("home/me/djapp/pyproject.toml", "")
	w.link("ROOT/home/me/djapp", proj+"linked")
	site := proj + ".venv/lib/python3.12/site-packages/"
	w.file(site+"a.pth", "import os; os\nROOT/home/me/proj/src\nROOT/home/me/proj/flat\nrelative\nROOT/gone\n")
	w.file(site+"b.pth", "ROOT/home/me/djapp\nROOT/home/me\n")
	w.file(site+"c.pth", "ROOT/home/me/proj/linked\n")
	w.file(site+"__editable___m_finder.py", "MAPPING: dict[str, str] = {'m': 'ROOT/home/me/proj/mapped/lib/m'}\n")
	p := w.mustResolve("ROOT/home/me/proj/.venv/bin/python")
	installed := []string{proj + ".venv/lib/python3.12/site-packages", proj + ".venv/pyvenv.cfg"}
	base := []string{"opt/py/lib/python3.12"}
	want := slices.Concat(installed, []string{proj + "flat", proj + "mapped/lib/m", proj + "src"}, base)
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	for _, note := range []string{
		`b.pth names "ROOT/home/me/djapp", which lies outside of the project`, `b.pth names "ROOT/home/me", which`,
		`c.pth names "ROOT/home/me/djapp", which`, `add read: ["ROOT/home/me/djapp"] to the profile`,
	} {
		if !strings.Contains(w.notes(p), note) {
			t.Errorf("notes %q lack %q", w.notes(p), note)
		}
	}

	// A script from elsewhere chooses the interpreter, and not the project around it.
	w.script("home/me/evil/s", "#!ROOT/home/me/proj/.venv/bin/python\n")
	p = w.mustResolve("ROOT/home/me/evil/s")
	want = slices.Concat([]string{"home/me/evil/s"}, installed, base)
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("for a script from elsewhere: read (-want +got):\n%s", diff)
	}
}

func TestPipUserScripts(t *testing.T) {
	w := pythonWorld(t)
	w.script("home/me/.local/bin/server", "#!ROOT/usr/bin/python3\n")
	w.file("home/me/.local/lib/python3.11/site-packages/server.py", "")
	p := w.mustResolve("ROOT/home/me/.local/bin/server")
	want := []string{"home/me/.local/bin/server", "home/me/.local/lib/python3.11/site-packages", "usr/lib/python3.11"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if !strings.Contains(w.notes(p), `set PYTHONUSERBASE to "ROOT/home/me/.local"`) {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestShellPrograms(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/dash")
	w.link("dash", "usr/bin/sh")
	w.program("usr/bin/busybox")
	w.link("ROOT/usr/bin/busybox", "usr/sbin/sh")
	w.link("ROOT/usr/bin/busybox", "usr/sbin/cat")
	w.script("home/me/code/s.sh", "#!ROOT/usr/bin/sh -e\n")
	const script = "home/me/code/s.sh"
	tests := []struct {
		name    string
		argv    []string
		runtime program.Runtime
		entry   string
		args    []string
	}{
		{"script", []string{"sh", "-eu", "s.sh", "a"}, program.Shell, script, []string{"a"}},
		{"by its first line", []string{"./s.sh", "a"}, program.Shell, script, []string{"a"}},
		{"code", []string{"sh", "-c", "code", "a"}, program.Shell, "", []string{"a"}},
		{"busybox by its argument", []string{"busybox", "sh", "s.sh", "a"}, program.Shell, script, []string{"a"}},
		{"busybox by a link", []string{"ROOT/usr/sbin/sh", "s.sh", "a"}, program.Shell, script, []string{"a"}},
		{"busybox as another", []string{"ROOT/usr/sbin/cat", "s.sh"}, program.Native, "", []string{"s.sh"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := w.mustResolve(tt.argv...)
			want := ""
			if tt.entry != "" {
				want = w.at(tt.entry)
			}
			if p.Runtime != tt.runtime || p.Entry != want {
				t.Errorf("runtime %d, entry %q", p.Runtime, w.rel(p.Entry))
			}
			if diff := cmp.Diff(tt.args, p.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if len(p.Execute) != 2 {
				t.Errorf("execute %q", w.rel(p.Execute...))
			}
		})
	}
}

// TestPythonOfThisMachine compares the needs of the distribution's Python with what the
// interpreter and the loader say.
func TestPythonOfThisMachine(t *testing.T) {
	p, err := program.Resolve([]string{"/usr/bin/python3"}, realFacts(t))
	if err != nil {
		t.Fatal(err)
	}
	readable := func(path string) bool {
		return slices.ContainsFunc(p.Read, func(n program.Need) bool {
			return path == n.Path || strings.HasPrefix(path, n.Path+"/")
		}) || slices.Contains(p.Execute, path)
	}
	text, err := exec.Command("/usr/bin/python3", "-I", "-c", "import sys; print('\\n'.join(sys.path))").Output()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for folder := range strings.FieldsSeq(string(text)) {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			count++
			if !readable(real) {
				t.Errorf("%q is on sys.path and not readable", real)
			}
		}
	}
	if count < 2 {
		t.Errorf("only %d folders on sys.path", count)
	}
	modules, err := filepath.Glob("/usr/lib/python3*/lib-dynload/*.so")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no compiled modules: %v", err)
	}
	for path := range ldd(t, append(modules, p.File)...) {
		if !readable(path) {
			t.Errorf("%q is a library and not readable", path)
		}
	}
	for _, path := range []string{"/usr/bin/env", "/etc/passwd", "/usr/bin", "/usr/lib", "/etc"} {
		if real, err := filepath.EvalSymlinks(path); err == nil && readable(real) {
			t.Errorf("%q is readable", real)
		}
	}
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Errorf("the folder of programs is not where it is looked for: %v", err)
	}
}
