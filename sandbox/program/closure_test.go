package program_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/program"
)

func (w *world) closure(name string) (execute, read []string, err error) {
	w.Helper()
	files, needs, err := program.Closure(strings.ReplaceAll(name, "ROOT", w.root), w.facts())
	return w.rel(files...), w.reads(needs), err
}

func TestClosureHoldsTheWholeChain(t *testing.T) {
	w := newWorld(t)
	w.elf("lib/libenv.so", elfFile{})
	w.elf("usr/bin/env", elfFile{loader: w.at("lib/ld.so"), needed: []string{"libenv.so", "libc.so.6"}})
	w.program("usr/bin/node")
	w.program("usr/bin/plain")
	w.elf("usr/bin/static", elfFile{})
	w.link("plain", "usr/bin/linked")
	w.script("usr/lib/node_modules/npm/bin/npm-cli.js", "#!ROOT/usr/bin/env node\n")
	w.file("usr/lib/node_modules/npm/package.json", `{"name":"npm"}`)
	w.link("../lib/node_modules/npm/bin/npm-cli.js", "usr/bin/npm")
	w.script("usr/bin/inner", "#!ROOT/usr/bin/plain\n")
	w.script("usr/bin/outer", "#!ROOT/usr/bin/inner\n")

	tests := []struct {
		name          string
		execute, read []string
	}{
		{"static", []string{"ROOT/usr/bin/static"}, nil},
		{"plain", []string{"ROOT/usr/bin/plain", "ROOT/lib/ld.so"}, []string{"lib/libc.so.6"}},
		{"linked", []string{"ROOT/usr/bin/plain", "ROOT/lib/ld.so"}, []string{"lib/libc.so.6"}},
		{"ROOT/usr/bin/plain", []string{"ROOT/usr/bin/plain", "ROOT/lib/ld.so"}, []string{"lib/libc.so.6"}},
		{
			"npm",
			[]string{"ROOT/usr/lib/node_modules/npm/bin/npm-cli.js", "ROOT/usr/bin/env", "ROOT/usr/bin/node", "ROOT/lib/ld.so"},
			[]string{"lib/libc.so.6", "lib/libenv.so", "usr/lib/node_modules/npm", "usr/lib/node_modules/npm/bin/npm-cli.js"},
		},
		{
			"outer",
			[]string{"ROOT/usr/bin/outer", "ROOT/usr/bin/inner", "ROOT/usr/bin/plain", "ROOT/lib/ld.so"},
			[]string{"lib/libc.so.6", "usr/bin/inner", "usr/bin/outer"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			execute, read, err := w.closure(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.execute, execute); diff != "" {
				t.Errorf("execute (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.read, read); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClosureRefuses(t *testing.T) {
	w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.pyenv/shims:ROOT/usr/bin", "PYENV_VERSION": "3.8.18"})
	w.script("home/me/.pyenv/shims/tool", envShim("pyenv", ""))
	w.program("home/me/.pyenv/versions/3.8.18/bin/tool")
	w.file("usr/bin/data", "x")

	_, _, err := w.closure("tool")
	notExecutable(t, w, err, "ROOT/home/me/.pyenv/shims/tool", "it is a shim, which cannot start its program in the jail", nil)
	if refused := wantRefused(t, err); !strings.Contains(refused.Hint, w.at("home/me/.pyenv/versions/3.8.18/bin/tool")) {
		t.Errorf("hint %q does not name the program", refused.Hint)
	}
	if _, _, err := w.closure("ROOT/usr/bin/data"); err == nil {
		t.Error("a file without an x bit is accepted")
	}
	if _, _, err := w.closure("none"); err == nil {
		t.Error("a name that is nowhere is accepted")
	}
	if _, _, err := w.closure(""); err == nil {
		t.Error("an empty name is accepted")
	}
}

func TestClosureOfGit(t *testing.T) {
	w := newWorld(t)
	w.elf("lib/libcurl.so", elfFile{})
	w.program("usr/bin/git")
	core := "usr/lib/git-core/"
	w.program(core + "git")
	w.link("git", core+"git-add")
	w.link("ROOT/usr/bin/git", core+"git-commit")
	w.elf(core+"git-remote-http", elfFile{loader: w.at("lib/ld.so"), needed: []string{"libcurl.so", "libc.so.6"}})
	w.link("git-remote-http", core+"git-remote-https")
	w.program(core + "git-daemon")
	w.program(core + "git-shell")
	w.script(core+"git-submodule", "#!/bin/sh\n")
	w.file(core+"git-sh-setup", "data")
	w.folder(core + "mergetools")
	w.file("usr/share/git-core/templates/description", "")

	execute, read, err := w.closure("git")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(execute)
	want := []string{"ROOT/lib/ld.so", "ROOT/usr/bin/git", "ROOT/usr/lib/git-core/git", "ROOT/usr/lib/git-core/git-remote-http"}
	if diff := cmp.Diff(want, execute); diff != "" {
		t.Errorf("execute (-want +got):\n%s", diff)
	}
	want = []string{"lib/libc.so.6", "lib/libcurl.so", "usr/share/git-core/templates"}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	// The command line `git` is the program alone: a profile grants what it starts.
	if p := w.mustResolve("git", "status"); len(p.Execute) != 2 {
		t.Errorf("execute of a command line: %q", w.rel(p.Execute...))
	}
}

// TestClosureOfThisMachine checks the chain of a real script and of git.
func TestClosureOfThisMachine(t *testing.T) {
	execute, _, err := program.Closure("npm", realFacts(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"env", "node"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(execute, real) {
			t.Errorf("npm needs %q: %q", real, execute)
		}
	}
	execute, read, err := program.Closure("git", realFacts(t))
	if err != nil {
		t.Fatal(err)
	}
	helper := slices.IndexFunc(execute, func(path string) bool { return strings.HasSuffix(path, "/git-remote-http") })
	if helper < 0 {
		t.Fatalf("git has no helper for HTTP: %q", execute)
	}
	for path := range ldd(t, execute[helper]) {
		if !slices.ContainsFunc(read, func(n program.Need) bool { return n.Path == path }) {
			t.Errorf("%q is a library of %q and not readable", path, execute[helper])
		}
	}
}
