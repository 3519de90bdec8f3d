package packages_test

import (
	"path/filepath"
	"strings"
	"testing"

	"stockade/sandbox/packages"
	"stockade/sandbox/packages/registrytest"
)

// TestPipRunsNoCode: with install scripts off, no line of a package runs during its install:
// neither of a source that a wheel requires by its address, for which --only-binary does not
// hold, nor of a .pth file, which an interpreter that looks at the tree runs at its start.
func TestPipRunsNoCode(t *testing.T) {
	reg := registrytest.Start(t)
	traces := t.TempDir()
	trace := func(name string) string {
		return "import os; open(" + `"` + filepath.Join(traces, name) + `", "w").close()`
	}
	hidden := registrytest.Source{Wheel: registrytest.Wheel{Name: "hidden", Version: "1.0", Files: map[string]string{"hidden.py": ""}}, Build: trace("build")}
	reg.AddSource(hidden)
	reg.AddPython(
		registrytest.Wheel{
			Name: "outer", Version: "1.0", Files: map[string]string{"outer.py": ""},
			Requires: []string{"hidden @ http://" + reg.Host() + hidden.Path()},
		},
		registrytest.Wheel{Name: "starts", Version: "1.0", Files: map[string]string{"starts.py": "", "starts.pth": trace("pth") + "\n"}},
	)
	outer := pipRequest(packages.Spec{Name: "outer"})
	_, err := pipInstall(t, indexPerson(t, reg.Index()), outer, newStage(t))
	fails(t, err, `"hidden" has to be built, which runs code of the package during the install`)
	if !strings.Contains(hintOf(err), "install: {scripts: [hidden]}") {
		t.Errorf("the hint is %q", hintOf(err))
	}
	if _, err := pipInstall(t, indexPerson(t, reg.Index()), pipRequest(packages.Spec{Name: "starts"}), newStage(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build", "pth"} {
		if exists(filepath.Join(traces, name)) {
			t.Errorf("%s: code of the package ran", name)
		}
	}

	// Allowed, it is built: the trace is one that a build can leave.
	outer.Scripts = []string{"hidden"}
	if _, err := pipInstall(t, indexPerson(t, reg.Index()), outer, newStage(t)); err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(traces, "build")) {
		t.Error("the build that is allowed left no trace")
	}
}

// TestForget: no credential and nothing that a build began is there for the steps after it.
func TestForget(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"pip.conf", ".netrc"} {
		write(t, filepath.Join(s.Home, name), "secret")
	}
	write(t, filepath.Join(s.Tree, "venv", "lib", "zz.pth"), "import zz")
	for range 2 { // again, when nothing is there
		if err := packages.Forget(s); err != nil {
			t.Fatal(err)
		}
		if err := packages.ForgetTree(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(s.Home, "pip.conf"), filepath.Join(s.Home, ".netrc"), filepath.Join(s.Tree, "venv")} {
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
}
