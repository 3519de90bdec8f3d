package program_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/program"
)

const ownPackage = "home/me/code/node_modules/mcp-x"

// serverWorld has a person's files and an installed package, whose script has the given
// first line.
func serverWorld(t *testing.T, line string) *world {
	t.Helper()
	w := nodeWorld(t)
	for _, name := range []string{"env", "bun", "dash", "interp"} {
		w.program("usr/bin/" + name)
	}
	w.file("home/me/.ssh/id_rsa", "key")
	w.file("home/me/.ssh/neighbour", "key")
	w.file("home/me/other/package.json", `{"name":"other"}`)
	w.file("home/me/other/index.js", "")
	w.file("home/me/code/node_modules/loose/package.json", `{"name":"loose"}`)
	w.file("home/me/code/.env", "TOKEN=x")
	w.file(ownPackage+"/package.json", `{"name":"mcp-x"}`)
	w.file(ownPackage+"/defaults.env", "")
	w.file(ownPackage+"/hook.js", "")
	w.link("ROOT/home/me/.ssh/id_rsa", ownPackage+"/link.env")
	w.script(ownPackage+"/bin/x.js", line+"\n")
	return w
}

// TestFirstLines has for each option the refused file of another
// tree, and its twins: a file of the package, and the host's own words.
func TestFirstLines(t *testing.T) {
	const split = "#!ROOT/usr/bin/env -S node "
	tests := []struct {
		name, line string
		refused    string // in the note; "" when nothing is refused
	}{
		{"env file", split + "--env-file=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"env file, apart", split + "--env-file ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"env file that may be absent", split + "--env-file-if-exists=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"underscores", split + "--env_file=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"snapshot", split + "--snapshot-blob ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"relative to the working folder", split + "--env-file=.env", "code/.env"},
		{"relative, upwards", split + "--env-file=../.ssh/id_rsa", ".ssh/id_rsa"},
		{"link in the package", split + "--env-file=node_modules/mcp-x/link.env", ".ssh/id_rsa"},
		{"loader", split + "--loader ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"loader of old", split + "--experimental-loader=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"import", split + "--import ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"import by URL", split + "--import file://ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"require", split + "--require=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"require in short", split + "-r ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"require of a package", split + "-r ROOT/home/me/other", "other/index.js"},
		{"import by name", split + "--import loose", "code/node_modules/loose"},
		{"script", split + "ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"script of a package", split + "ROOT/home/me/other/index.js", "other/index.js"},
		{"without env", "#!ROOT/usr/bin/node --env-file=ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"shell", "#!ROOT/usr/bin/dash ROOT/home/me/.ssh/id_rsa", ".ssh/id_rsa"},
		{"bun", "#!ROOT/usr/bin/env -S bun ROOT/home/me/other/index.js", ""},

		{"own env file", split + "--env-file=node_modules/mcp-x/defaults.env", ""},
		{"own hook", split + "--import ROOT/" + ownPackage + "/hook.js", ""},
		{"own package by name", split + "--import mcp-x", ""},
		{"nothing named", "#!ROOT/usr/bin/env node", ""},
	}
	for _, tt := range tests {
		// The world's folder carries the name of its test, and the kernel reads 255 bytes.
		w := serverWorld(t, tt.line)
		t.Run(tt.name, func(t *testing.T) {
			if len(strings.ReplaceAll(tt.line, "ROOT", w.root)) > 250 {
				t.Fatalf("the folder %q is too deep for this test", w.root)
			}
			p := w.mustResolve("ROOT/"+ownPackage+"/bin/x.js", "ROOT/home/me/.ssh/neighbour")
			want := []string{ownPackage + "/bin/x.js"}
			if !strings.Contains(tt.line, "dash") {
				want = append([]string{ownPackage}, want...)
			}
			if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			notes := w.notes(p)
			note := `"ROOT/` + ownPackage + `/bin/x.js" names "ROOT/home/me/` + tt.refused + `", which lies outside of its package`
			hint := `add read: ["ROOT/home/me/` + tt.refused + `"] to the profile`
			if tt.refused != "" && (!strings.Contains(notes, note) || !strings.Contains(notes, hint)) {
				t.Errorf("notes %q lack %q, %q", notes, note, hint)
			}
			if tt.refused == "" && strings.Contains(notes, "which lies outside") {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

func TestOptionsOfTheHostGrantWhatTheyName(t *testing.T) {
	w := serverWorld(t, "#!ROOT/usr/bin/node")
	for _, argv := range [][]string{{"node"}, {"env", "node"}, {"env", "-S", "node"}} {
		argv = append(argv, "--env-file=ROOT/home/me/.ssh/id_rsa", "--require", "ROOT/home/me/other/index.js",
			"--import=ROOT/home/me/.ssh/neighbour", "ROOT/"+ownPackage+"/bin/x.js")
		p := w.mustResolve(argv...)
		want := []string{"home/me/.ssh/id_rsa", "home/me/.ssh/neighbour", ownPackage, "home/me/other"}
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("%q: read (-want +got):\n%s", argv, diff)
		}
	}
}

func TestPythonFirstLines(t *testing.T) {
	build := func(line string) *world {
		w := pythonWorld(t)
		w.program("usr/bin/env")
		w.file("home/me/private/pyproject.toml", "")
		w.file("home/me/private/__main__.py", "")
		w.file("home/me/private/s.py", "")
		w.file("home/me/code/mod/__init__.py", "")
		w.file("home/me/own/pyproject.toml", "")
		w.script("home/me/own/s", line+"\n")
		return w
	}
	for _, tt := range []struct{ line, refused string }{
		{"#!ROOT/usr/bin/python3 ROOT/home/me/private/s.py", "ROOT/home/me/private/s.py"},
		{"#!ROOT/usr/bin/env -S python3 -I ROOT/home/me/private", "ROOT/home/me/private"},
		{"#!ROOT/usr/bin/env -S python3 -m mod", "ROOT/home/me/code/mod"},
		{"#!ROOT/usr/bin/python3 -I", ""},
	} {
		w := build(tt.line)
		p := w.mustResolve("ROOT/home/me/own/s")
		want := []string{"home/me/own", "home/me/own/s", "usr/lib/python3.11"}
		if strings.Contains(tt.line, "-m") {
			want = want[1:]
		}
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("%s: read (-want +got):\n%s", tt.line, diff)
		}
		if notes := w.notes(p); tt.refused == "" && notes != "" || !strings.Contains(notes, tt.refused) {
			t.Errorf("%s: notes %q", tt.line, notes)
		}
	}
	// The twins in the host's own words.
	w := build("#!ROOT/usr/bin/python3")
	for script, want := range map[string]string{"ROOT/home/me/private/s.py": "home/me/private", "ROOT/home/me/private": "home/me/private"} {
		p := w.mustResolve("python3", script)
		if diff := cmp.Diff([]string{want, "usr/lib/python3.11"}, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("%s: read (-want +got):\n%s", script, diff)
		}
	}
}

// TestFirstLinesChooseNoIdentity: a server stays the script that the host named, whatever
// its first line starts.
func TestFirstLinesChooseNoIdentity(t *testing.T) {
	const own = "ROOT/" + ownPackage
	for _, line := range []string{
		"#!ROOT/usr/bin/env -S node -r " + own + "/hook.js ROOT/home/me/other/index.js ROOT/home/me/.ssh",
		"#!ROOT/usr/bin/node ROOT/home/me/other/index.js",
		"#!ROOT/usr/bin/env -S node -e 0",
		"#!ROOT/usr/bin/env tool",
		"#!ROOT/usr/bin/env -S bun ROOT/home/me/other/index.js",
		"#!ROOT/usr/bin/interp",
		"#!ROOT/usr/bin/env node",
	} {
		w := serverWorld(t, line)
		w.link("ROOT/home/me/other/index.js", "usr/bin/tool")
		w.script("home/me/other/index.js", "#!ROOT/usr/bin/node\n")
		p := w.mustResolve(own+"/bin/x.js", "--flag", "value")
		if want := w.at(ownPackage + "/bin/x.js"); p.Entry != want {
			t.Errorf("%s: entry %q, want %q", line, p.Entry, want)
		}
		if p.Package != "mcp-x" && p.Runtime == program.Node {
			t.Errorf("%s: package %q", line, p.Package)
		}
		if diff := cmp.Diff([]string{"--flag", "value"}, p.Args); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", line, diff)
		}
	}
	// The twin: the host names the other script.
	w := serverWorld(t, "#!ROOT/usr/bin/node")
	p := w.mustResolve("node", "-r", own+"/hook.js", "ROOT/home/me/other/index.js", "--flag")
	if p.Entry != w.at("home/me/other/index.js") || p.Package != "other" {
		t.Errorf("entry %q, package %q", p.Entry, p.Package)
	}
}

// TestModulesOfFirstLinesAreNotTheServer: nor does `python -m` in a first line.
func TestModulesOfFirstLinesAreNotTheServer(t *testing.T) {
	w := pythonWorld(t)
	w.program("usr/bin/env")
	w.script("home/me/own/s", "#!ROOT/usr/bin/env -S python3 -m mod\n")
	if p := w.mustResolve("ROOT/home/me/own/s", "-x"); p.Package != "" || p.Entry != w.at("home/me/own/s") {
		t.Errorf("module %q, entry %q", p.Package, p.Entry)
	}
	if p := w.mustResolve("python3", "-m", "mod"); p.Package != "mod" || p.Entry != "" {
		t.Errorf("module %q, entry %q", p.Package, p.Entry)
	}
}

func TestInterpretersThatAreScripts(t *testing.T) {
	w := serverWorld(t, "#!ROOT/home/me/other/run")
	w.script("home/me/other/run", "#!ROOT/usr/bin/node\n")
	_, err := w.resolve("ROOT/" + ownPackage + "/bin/x.js")
	notExecutable(t, w, err, "ROOT/home/me/other/run",
		"the `#!` line of \"ROOT/"+ownPackage+"/bin/x.js\" names this script, which lies neither on PATH nor beside it", nil)
	// Its twin is on PATH, through a link, and brings its package along.
	w.file("usr/lib/node_modules/tsx/package.json", `{"name":"tsx"}`)
	w.script("usr/lib/node_modules/tsx/cli.js", "#!ROOT/usr/bin/env node\n")
	w.link("../lib/node_modules/tsx/cli.js", "usr/bin/tsx")
	w.script(ownPackage+"/bin/x.js", "#!ROOT/usr/bin/env tsx\n")
	p := w.mustResolve("ROOT/" + ownPackage + "/bin/x.js")
	want := []string{ownPackage, ownPackage + "/bin/x.js", "usr/lib/node_modules/tsx", "usr/lib/node_modules/tsx/cli.js"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if len(p.Notes) != 0 {
		t.Errorf("notes %q", p.Notes)
	}
	// A package that looks like a shim puts no folder of its own on the person's PATH.
	w = serverWorld(t, "#!/bin/sh\n# asdf-plugin: p 1\n").with(map[string]string{"ASDF_P_VERSION": "1"})
	w.script(ownPackage+"/installs/p/1/bin/x.js", "#!ROOT/usr/bin/env inner\n")
	w.script("home/me/other/run", "#!ROOT/usr/bin/node\n")
	w.link("ROOT/home/me/other/run", ownPackage+"/installs/p/1/bin/inner")
	_, err = w.resolve("ROOT/" + ownPackage + "/bin/x.js")
	notExecutable(t, w, err, "ROOT/"+ownPackage+"/installs/p/1/bin/inner",
		"the `#!` line of \"ROOT/"+ownPackage+"/installs/p/1/bin/x.js\" names this script, which lies neither on PATH nor beside it", nil)
	// Its twin is a shim on PATH.
	w.script("usr/shims/inner", "#!/bin/sh\n# asdf-plugin: q 1\n")
	w.link("ROOT/home/me/other/run", "usr/installs/q/1/bin/inner")
	w.script(ownPackage+"/bin/x.js", "#!ROOT/usr/bin/env inner\n")
	w = w.with(map[string]string{"ASDF_Q_VERSION": "1", "PATH": "ROOT/usr/shims:ROOT/usr/bin"})
	p = w.mustResolve("ROOT/" + ownPackage + "/bin/x.js")
	want = []string{ownPackage, ownPackage + "/bin/x.js", "home/me/other", "home/me/other/run"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestWrappersGrantNothingOutsideOfTheirTree(t *testing.T) {
	wrapper := func(target string) string {
		return "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexec node \"$basedir/" + target + "\" \"$@\"\n"
	}
	w := serverWorld(t, "#!ROOT/usr/bin/node")
	w.script("home/me/code/node_modules/.bin/x", wrapper("../mcp-x/bin/x.js"))
	w.script("home/me/code/node_modules/.bin/evil", wrapper("../../../other/index.js"))
	w.link("ROOT/home/me/other/index.js", "home/me/code/node_modules/linked.js")
	w.script("home/me/code/node_modules/.bin/link", wrapper("../linked.js"))
	for name, want := range map[string][]string{
		"x":    {ownPackage},
		"evil": {"home/me/code/node_modules/.bin/evil"},
		"link": {"home/me/code/node_modules/.bin/link"},
	} {
		p := w.mustResolve("ROOT/home/me/code/node_modules/.bin/" + name)
		if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("%s: read (-want +got):\n%s", name, diff)
		}
		if refused := strings.Contains(w.notes(p), `names "ROOT/home/me/other/index.js", which lies outside`); refused == (name == "x") {
			t.Errorf("%s: notes %q", name, w.notes(p))
		}
	}
}

func TestMainFileStaysInItsFolder(t *testing.T) {
	w := serverWorld(t, "#!ROOT/usr/bin/node")
	w.file("home/me/code/app/package.json", `{"name":"app","main":"../../other/index.js"}`)
	p := w.mustResolve("node", "app")
	if got := beyond(w.reads(p.Read)); len(got) != 0 {
		t.Errorf("read %q", got)
	}
	if !strings.Contains(w.notes(p), `the main file of "ROOT/home/me/code/app" is "ROOT/home/me/other/index.js"`) {
		t.Errorf("notes %q", w.notes(p))
	}
	w.file("home/me/code/app/package.json", `{"name":"app","main":"lib.js"}`)
	w.file("home/me/code/app/lib.js", "")
	p = w.mustResolve("node", "app")
	if diff := cmp.Diff([]string{"home/me/code/app"}, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// TestImitatedShim has a script that looks like a shim and names a root of its own choice.
func TestImitatedShim(t *testing.T) {
	w := newWorld(t).with(map[string]string{"PYENV_VERSION": "1"})
	w.program("home/me/private/versions/1/bin/tool")
	shim := strings.ReplaceAll(envShim("pyenv", ""), "ROOT/home/me/.pyenv", w.at("home/me/private"))
	w.write("home/me/code/tool", shim, 0o755)
	_, err := w.resolve("ROOT/home/me/code/tool")
	if refused, ok := asRefused(err); !ok || !strings.Contains(refused.Reason, "does not lie in the folder") {
		t.Errorf("error %v", err)
	}
	w.write("home/me/private/shims/tool", shim, 0o755)
	if p := w.mustResolve("ROOT/home/me/private/shims/tool"); p.Runtime != program.Native {
		t.Errorf("runtime %d", p.Runtime)
	}
}
