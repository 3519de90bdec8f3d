package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/program"
)

// TestLinksOutOfATreeGrantNothing pairs each link that leads out of the tree it belongs to
// with a twin that stays in it.
func TestLinksOutOfATreeGrantNothing(t *testing.T) {
	const repo = "home/me/repo"
	workspace := func(w *world) {
		w.file(repo+"/package.json", `{"workspaces":["packages/*"]}`)
		w.file(repo+"/packages/server/package.json", `{"name":"server","dependencies":{"myapp":"1"}}`)
		w.file(repo+"/packages/server/index.js", "")
		w.file("home/me/private/myapp/package.json", `{"name":"myapp"}`)
	}
	venv := func(w *world) {
		w.link("ROOT/opt/py/bin/python3.12", "venv/bin/python")
		w.file("venv/pyvenv.cfg", "home = ROOT/opt/py/bin\n")
		w.folder("venv/lib/python3.12")
	}
	const outside = "which lies outside of"
	tests := []struct {
		name  string
		build func(w *world)
		argv  []string
		want  []string
		note  string
	}{
		{
			name: "node_modules of the workspace is a link",
			build: func(w *world) {
				workspace(w)
				w.link("ROOT/home/me/private", repo+"/node_modules")
			},
			argv: []string{"node", "ROOT/" + repo + "/packages/server/index.js"},
			want: []string{repo + "/packages/server"},
			note: `"ROOT/home/me/repo/node_modules" is a link to "ROOT/home/me/private", ` + outside + ` "ROOT/home/me/repo"`,
		},
		{
			name: "node_modules of the workspace is a link inside of it",
			build: func(w *world) {
				workspace(w)
				w.file(repo+"/modules/myapp/package.json", `{"name":"myapp"}`)
				w.link("modules", repo+"/node_modules")
			},
			argv: []string{"node", "ROOT/" + repo + "/packages/server/index.js"},
			want: []string{repo + "/modules", repo + "/packages/server"},
		},
		{
			name: "dependency is a link to another package of that name",
			build: func(w *world) {
				w.file(repo+"/package.json", `{"name":"s","dependencies":{"myapp":"1"}}`)
				w.file(repo+"/index.js", "")
				w.file("home/me/myapp/package.json", `{"name":"myapp"}`)
				w.link("ROOT/home/me/myapp", repo+"/node_modules/myapp")
			},
			argv: []string{"node", "ROOT/" + repo + "/index.js"},
			want: []string{repo},
			note: `the dependency "myapp" lies at "ROOT/home/me/myapp", outside of the package and its workspace, and is not readable; add read: ["ROOT/home/me/myapp"]`,
		},
		{
			name: "dependency of an installed package",
			build: func(w *world) {
				w.file(repo+"/node_modules/s/package.json", `{"name":"s","dependencies":{"myapp":"1"}}`)
				w.file(repo+"/node_modules/s/index.js", "")
				w.file("home/me/myapp/package.json", `{"name":"myapp"}`)
				w.link("ROOT/home/me/myapp", repo+"/node_modules/myapp")
			},
			argv: []string{"node", "ROOT/" + repo + "/node_modules/s/index.js"},
			want: []string{repo + "/node_modules"},
			note: `the dependency "myapp" lies at "ROOT/home/me/myapp"`,
		},
		{
			name: "dependency is the whole workspace",
			build: func(w *world) {
				workspace(w)
				w.file(repo+"/package.json", `{"name":"myapp","workspaces":["packages/*"]}`)
				w.link("..", repo+"/node_modules/myapp")
			},
			argv: []string{"node", "ROOT/" + repo + "/packages/server/index.js"},
			want: []string{repo + "/node_modules", repo + "/packages/server"},
			note: `the dependency "myapp" lies at "ROOT/home/me/repo", outside`,
		},
		{
			name: "dependency is a package of the workspace",
			build: func(w *world) {
				workspace(w)
				w.file(repo+"/packages/myapp/package.json", `{"name":"myapp"}`)
				w.link("../packages/myapp", repo+"/node_modules/myapp")
			},
			argv: []string{"node", "ROOT/" + repo + "/packages/server/index.js"},
			want: []string{repo + "/node_modules", repo + "/packages/myapp", repo + "/packages/server"},
		},
		{
			name: "a workspace at the home folder is none",
			build: func(w *world) {
				workspace(w)
				w.file(repo+"/package.json", `{"name":"repo"}`)
				w.file("home/me/package.json", `{"name":"home","workspaces":["*"]}`)
				w.link("ROOT/home/me/private/myapp", repo+"/packages/server/node_modules/myapp")
			},
			argv: []string{"node", "ROOT/" + repo + "/packages/server/index.js"},
			want: []string{repo + "/packages/server"},
			note: `the dependency "myapp" lies at "ROOT/home/me/private/myapp"`,
		},
		{
			name: "module of an option is a link",
			build: func(w *world) {
				w.file("home/me/private/hook/package.json", `{"name":"hook"}`)
				w.link("ROOT/home/me/private/hook", "home/me/code/node_modules/hook")
			},
			argv: []string{"node", "--import", "hook", "-e", "0"},
			note: `the module "hook" is a link to "ROOT/home/me/private/hook", ` + outside,
		},
		{
			name: "site-packages is a link",
			build: func(w *world) {
				venv(w)
				w.link("ROOT/home/me/private", "venv/lib/python3.12/site-packages")
				w.file("home/me/private/diary", "")
			},
			argv: []string{"ROOT/venv/bin/python"},
			want: []string{"opt/py/lib/python3.12", "venv/pyvenv.cfg"},
			note: `"ROOT/venv/lib/python3.12/site-packages" is a link to "ROOT/home/me/private", ` + outside + ` "ROOT/venv"`,
		},
		{
			name: "lib64 of an environment is a link inside of it",
			build: func(w *world) {
				venv(w)
				w.folder("venv/lib/python3.12/site-packages")
				w.link("lib", "venv/lib64")
			},
			argv: []string{"ROOT/venv/bin/python"},
			want: []string{"opt/py/lib/python3.12", "venv/lib/python3.12/site-packages", "venv/pyvenv.cfg"},
		},
		{
			name: "pyvenv.cfg is a link",
			build: func(w *world) {
				venv(w)
				w.file("home/me/secret", "home = ROOT/opt/py/bin\n")
				if err := os.Remove(w.at("venv/pyvenv.cfg")); err != nil {
					w.Fatal(err)
				}
				w.link("ROOT/home/me/secret", "venv/pyvenv.cfg")
			},
			argv: []string{"ROOT/venv/bin/python"},
			want: []string{"opt/py/lib/python3.12"},
			note: `"ROOT/venv/pyvenv.cfg" is a link to "ROOT/home/me/secret", ` + outside,
		},
		{
			name: "base without the interpreter",
			build: func(w *world) {
				venv(w)
				w.file("home/me/private/lib/python3.12/os.py", "")
				w.folder("home/me/private/bin")
				w.file("venv/pyvenv.cfg", "home = ROOT/home/me/private/bin\n")
			},
			argv: []string{"ROOT/venv/bin/python"},
			want: []string{"opt/py/lib/python3.12", "venv/pyvenv.cfg"},
			note: `the base "ROOT/home/me/private" of the virtual environment "ROOT/venv" does not hold its interpreter`,
		},
		{
			name: "standard library is a link",
			build: func(w *world) {
				w.program("copy/bin/python3.12")
				w.file("home/me/private/os.py", "")
				w.link("ROOT/home/me/private", "copy/lib/python3.12")
			},
			argv: []string{"ROOT/copy/bin/python3.12"},
			note: `"ROOT/copy/lib/python3.12" is a link to "ROOT/home/me/private", ` + outside + ` "ROOT/copy"`,
		},
		{
			name: "module of the working folder is a link",
			build: func(w *world) {
				w.file("home/me/private/__init__.py", "")
				w.link("ROOT/home/me/private", "home/me/code/mod")
			},
			argv: []string{"python3", "-m", "mod"},
			want: []string{"usr/lib/python3.11"},
			note: `the module "mod" is a link to "ROOT/home/me/private", ` + outside,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := pythonWorld(t)
			w.program("usr/bin/node")
			tt.build(w)
			p := w.mustResolve(tt.argv...)
			if diff := cmp.Diff(tt.want, append([]string(nil), beyond(w.reads(p.Read))...)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			notes := w.notes(p)
			if !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			if tt.note != "" && !strings.Contains(notes, "add read: [") {
				t.Errorf("notes %q do not say how to grant it", notes)
			}
		})
	}
}

// TestLoneScriptsOfOthers: the folder of a script without a package may be anybody's.
func TestLoneScriptsOfOthers(t *testing.T) {
	w := pythonWorld(t)
	w.program("usr/bin/node")
	w.file("home/other/s.js", "")
	w.file("home/other/s.py", "")
	w.file("home/other/.ssh/id_rsa", "")
	for _, argv := range [][]string{{"node", "ROOT/home/other/s.js"}, {"python3", "ROOT/home/other/s.py"}, {"python3", "ROOT/home/other"}} {
		p := w.mustResolve(argv...)
		for _, n := range p.Read {
			if n.Path != p.Entry && strings.HasPrefix(n.Path, w.at("home/other")) || n.Path == w.at("home/other") {
				t.Errorf("%q: %q is readable", argv, n.Path)
			}
		}
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "add read:") {
			t.Errorf("%q: notes %q", argv, p.Notes)
		}
	}
}

// TestNeedsHoldNoLinks: what opens them for the jail refuses every link.
func TestNeedsHoldNoLinks(t *testing.T) {
	dir := jailtest.Dir(t, jailtest.User{})
	env := dir + "/env"
	if text, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
		t.Fatalf("making a virtual environment: %v: %s", err, text)
	}
	if err := os.WriteFile(dir+"/s.js", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.elf("static", elfFile{})
	for _, argv := range [][]string{
		{"node", dir + "/link/s.js"}, {"npm"}, {"/usr/bin/python3"}, {dir + "/link/env/bin/python3"}, {w.at("static")}, {"sh"}, {"git"},
	} {
		p, err := program.Resolve(argv, realFacts(t))
		if err != nil {
			t.Fatal(err)
		}
		execute, read, err := program.Closure(argv[0], realFacts(t))
		if err != nil {
			t.Fatal(err)
		}
		paths := append(append([]string{p.File}, p.Execute...), execute...)
		for _, n := range append(p.Read, read...) {
			paths = append(paths, n.Path)
		}
		for _, path := range paths {
			if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
				t.Errorf("%q: %q is %q, %v", argv, path, real, err)
			}
		}
	}
}
