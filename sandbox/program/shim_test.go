package program_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/program"
)

// shimCase is one way to set versions, and the program that they lead to.
type shimCase struct {
	name   string
	argv   []string          // the shim's name and arguments
	dir    string            // working folder; "" for the world's
	env    map[string]string // added
	files  map[string]string // written before
	file   string            // the program's file, relative to the world
	reason string            // of the refusal, when there is one
	cause  error
}

func (tt shimCase) run(t *testing.T, manager string, build func(t *testing.T) *world) {
	t.Helper()
	t.Run(tt.name, func(t *testing.T) {
		w := build(t).with(tt.env)
		if tt.dir != "" {
			w = w.in(tt.dir)
		}
		for path, content := range tt.files {
			w.file(path, content)
		}
		p, err := w.resolve(tt.argv...)
		if tt.reason != "" {
			refused := wantRefused(t, err)
			if got := strings.ReplaceAll(refused.Reason, w.root, "ROOT"); got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
			if !strings.Contains(refused.Hint, "name the real program") && refused.Err == nil {
				t.Errorf("hint %q", refused.Hint)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(p.File, w.root+"/"); got != tt.file {
			t.Errorf("file %q, want %q", got, tt.file)
		}
		if !strings.Contains(w.notes(p), " is a "+manager+" shim for ") {
			t.Errorf("notes %q do not tell of the shim", w.notes(p))
		}
		if len(p.Path) == 0 || !strings.HasPrefix(p.File, p.Path[0]+"/") && !strings.HasPrefix(p.Argv[0], p.Path[0]+"/") {
			t.Errorf("path %q does not begin with the program's folder", w.rel(p.Path...))
		}
		for _, folder := range p.Path {
			if strings.HasSuffix(folder, "/shims") || strings.HasSuffix(folder, "/.volta/bin") {
				t.Errorf("the folder of shims is on the jail's path: %q", w.rel(p.Path...))
			}
		}
	})
}

func wantRefused(t *testing.T, err error) *program.NotExecutableError {
	t.Helper()
	refused, ok := asRefused(err)
	if !ok {
		t.Fatalf("error %v is no NotExecutableError", err)
	}
	return refused
}

// envShim is the text that pyenv and its relatives write for every program.
func envShim(manager, extra string) string {
	upper := strings.ToUpper(manager)
	return "#!/usr/bin/env bash\nset -e\n[ -n \"$" + upper + "_DEBUG\" ] && set -x\n\nprogram=\"${0##*/}\"\n" + extra +
		"\nexport " + upper + "_ROOT=\"ROOT/home/me/." + manager + "\"\nexec \"ROOT/home/me/." + manager +
		"/libexec/" + manager + "\" exec \"$program\" \"$@\"\n"
}

func TestPyenvShims(t *testing.T) {
	build := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.pyenv/shims:ROOT/usr/bin"})
		for _, name := range []string{"tool", "only38", "systemonly", "nowhere"} {
			w.script("home/me/.pyenv/shims/"+name, envShim("pyenv", ""))
		}
		for _, version := range []string{"3.8.18", "3.11.2", "3.11.7", "3.12.0rc1"} {
			w.program("home/me/.pyenv/versions/" + version + "/bin/tool")
		}
		w.program("home/me/.pyenv/versions/3.8.18/bin/only38")
		w.folder("home/me/.pyenv/versions/3.11.7/envs/app/bin")
		w.program("home/me/.pyenv/versions/3.11.7/envs/app/bin/tool")
		w.link("3.11.7/envs/app", "home/me/.pyenv/versions/app")
		w.program("usr/bin/tool")
		w.program("usr/bin/systemonly")
		return w
	}
	const versions = "home/me/.pyenv/versions/"
	tests := []shimCase{
		{name: "variable", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "3.8.18"}, file: versions + "3.8.18/bin/tool"},
		{name: "variable beats file", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "3.8.18"}, files: map[string]string{"home/me/code/.python-version": "3.11.7\n"}, file: versions + "3.8.18/bin/tool"},
		{name: "file", argv: []string{"tool"}, files: map[string]string{"home/me/code/.python-version": "# mine\n3.11.2\r\n"}, file: versions + "3.11.2/bin/tool"},
		{name: "file above", argv: []string{"tool"}, dir: "home/me/code/a/b", files: map[string]string{"home/me/code/.python-version": "3.11.2"}, file: versions + "3.11.2/bin/tool"},
		{name: "nearest file", argv: []string{"tool"}, dir: "home/me/code/a", files: map[string]string{"home/me/code/.python-version": "3.11.2", "home/me/code/a/.python-version": "3.8.18"}, file: versions + "3.8.18/bin/tool"},
		{name: "global file", argv: []string{"tool"}, files: map[string]string{"home/me/.pyenv/version": "3.11.7\n"}, file: versions + "3.11.7/bin/tool"},
		{name: "local beats global", argv: []string{"tool"}, files: map[string]string{"home/me/.pyenv/version": "3.11.7\n", "home/me/code/.python-version": "3.8.18"}, file: versions + "3.8.18/bin/tool"},
		{name: "beginning of a version", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "3.11"}, file: versions + "3.11.7/bin/tool"},
		{name: "with the name in front", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "python-3.11"}, file: versions + "3.11.7/bin/tool"},
		{name: "no release candidate for a beginning", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "3.12"}, reason: `this pyenv shim cannot be followed: version "3.12" is not installed in "ROOT/home/me/.pyenv"`},
		{name: "release candidate by name", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "3.12.0rc1"}, file: versions + "3.12.0rc1/bin/tool"},
		{name: "several", argv: []string{"only38"}, env: map[string]string{"PYENV_VERSION": "3.11.7:3.8.18"}, file: versions + "3.8.18/bin/only38"},
		{name: "several lines", argv: []string{"only38"}, files: map[string]string{"home/me/code/.python-version": "3.11.7\n3.8.18\n"}, file: versions + "3.8.18/bin/only38"},
		{name: "virtual environment", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "app"}, file: versions + "3.11.7/envs/app/bin/tool"},
		{name: "system", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "system"}, file: "usr/bin/tool"},
		{name: "nothing set is the system", argv: []string{"tool"}, file: "usr/bin/tool"},
		{name: "system after all versions", argv: []string{"systemonly"}, env: map[string]string{"PYENV_VERSION": "3.11.7"}, file: "usr/bin/systemonly"},
		{name: "by path", argv: []string{"ROOT/home/me/.pyenv/shims/tool"}, env: map[string]string{"PYENV_VERSION": "3.8.18"}, file: versions + "3.8.18/bin/tool"},
		{name: "nowhere", argv: []string{"nowhere"}, env: map[string]string{"PYENV_VERSION": "3.8.18"}, reason: `this pyenv shim cannot be followed: version 3.8.18 has no "nowhere"`},
		{name: "not installed", argv: []string{"tool"}, env: map[string]string{"PYENV_VERSION": "2.7"}, reason: `this pyenv shim cannot be followed: version "2.7" is not installed in "ROOT/home/me/.pyenv"`},
		{name: "leading outside", argv: []string{"tool"}, files: map[string]string{"home/me/code/.python-version": "../../code\n"}, reason: `this pyenv shim cannot be followed: the version "../../code" is not a plain name`},
		{name: "no system program", argv: []string{"nowhere"}, env: map[string]string{"PYENV_VERSION": "system"}, reason: `this pyenv shim cannot be followed: version system has no "nowhere"`},
	}
	for _, tt := range tests {
		tt.run(t, "pyenv", build)
	}
}

func TestNodenvShims(t *testing.T) {
	loop := "if [ \"$program\" = \"node\" ]; then\n  for arg; do\n    export NODENV_DIR=\"${arg%/*}\"\n  done\nfi\n"
	build := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.nodenv/shims:ROOT/usr/bin"})
		w.script("home/me/.nodenv/shims/node", envShim("nodenv", loop))
		w.program("home/me/.nodenv/versions/20.1.0/bin/node")
		w.program("home/me/.nodenv/versions/18.0.0/bin/node")
		w.file("home/me/other/server.js", "")
		return w
	}
	const versions = "home/me/.nodenv/versions/"
	tests := []shimCase{
		{name: "file", argv: []string{"node"}, files: map[string]string{"home/me/code/.node-version": "v20.1.0\n"}, file: versions + "20.1.0/bin/node"},
		{name: "one version only", argv: []string{"node"}, files: map[string]string{"home/me/code/.node-version": "20.1.0\n18.0.0\n"}, file: versions + "20.1.0/bin/node"},
		{
			name: "the script's folder comes first", argv: []string{"node", "-x", "ROOT/home/me/other/server.js"},
			files: map[string]string{"home/me/code/.node-version": "20.1.0", "home/me/other/.node-version": "18.0.0"},
			file:  versions + "18.0.0/bin/node",
		},
		{name: "no beginnings", argv: []string{"node"}, env: map[string]string{"NODENV_VERSION": "20"}, reason: `this nodenv shim cannot be followed: version "20" is not installed in "ROOT/home/me/.nodenv"`},
		{name: "no system program", argv: []string{"node"}, reason: "this nodenv shim stands for the system's program, and there is none", cause: unix.ENOENT},
	}
	for _, tt := range tests {
		tt.run(t, "nodenv", build)
	}
}

func TestUnknownRelativesOfPyenvAreRefused(t *testing.T) {
	w := newWorld(t)
	w.script("x/shims/tool", envShim("fooenv", ""))
	_, err := w.resolve("ROOT/x/shims/tool")
	notExecutable(t, w, err, "ROOT/x/shims/tool", "this fooenv shim cannot be followed: the manager is not known here", nil)
}

func TestVersionFilesCannotHang(t *testing.T) {
	w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.pyenv/shims:ROOT/usr/bin"})
	w.script("home/me/.pyenv/shims/tool", envShim("pyenv", ""))
	w.program("usr/bin/tool")
	w.program("home/me/.pyenv/versions/3.8.18/bin/tool")
	if err := unix.Mkfifo(w.at("home/me/code/.python-version"), 0o666); err != nil {
		t.Fatal(err)
	}
	w.file("home/me/.pyenv/version", "3.8.18")
	if p := w.mustResolve("tool"); p.File != w.at("home/me/.pyenv/versions/3.8.18/bin/tool") {
		t.Errorf("file %q", w.rel(p.File))
	}
	w.file("home/me/.pyenv/version", strings.Repeat("3.8.18\n", 1000))
	if p := w.mustResolve("tool"); p.File != w.at("usr/bin/tool") || !strings.Contains(w.notes(p), `"ROOT/home/me/.pyenv/version" cannot be read: larger than`) {
		t.Errorf("file %q, notes %q", w.rel(p.File), w.notes(p))
	}
}

func TestAsdfShims(t *testing.T) {
	build := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.asdf/shims:ROOT/usr/bin"})
		shim := func(name string, lines ...string) {
			w.script("home/me/.asdf/shims/"+name, "#!/usr/bin/env bash\n# asdf-plugin: "+strings.Join(lines, "\n# asdf-plugin: ")+
				"\nexec asdf exec \""+name+"\" \"$@\"")
		}
		shim("node", "nodejs 20.5.0", "nodejs 18.0.0")
		shim("server", "nodejs 20.5.0", "python 3.11.0")
		shim("odd", "custom 1")
		for _, path := range []string{"nodejs/20.5.0/bin/node", "nodejs/18.0.0/bin/node", "nodejs/20.5.0/.npm/bin/server", "python/3.11.0/bin/server", "custom/1/bin/odd"} {
			w.program("home/me/.asdf/installs/" + path)
		}
		w.script("home/me/.asdf/plugins/custom/bin/exec-path", "#!/bin/sh\n")
		w.program("usr/bin/node")
		return w
	}
	const installs = "home/me/.asdf/installs/"
	refused := "this asdf shim cannot be followed: "
	tests := []shimCase{
		{name: "file", argv: []string{"node"}, files: map[string]string{"home/me/code/.tool-versions": "# x\npython 3.11.0\nnodejs 20.5.0 # y\n"}, file: installs + "nodejs/20.5.0/bin/node"},
		{name: "file above", argv: []string{"node"}, dir: "home/me/code/a/b", files: map[string]string{"home/me/code/.tool-versions": "nodejs 18.0.0\n", "home/me/code/a/.tool-versions": "python 3.11.0\n"}, file: installs + "nodejs/18.0.0/bin/node"},
		{name: "home", argv: []string{"node"}, dir: "elsewhere", files: map[string]string{"home/me/.tool-versions": "nodejs 18.0.0"}, file: installs + "nodejs/18.0.0/bin/node"},
		{name: "variable", argv: []string{"node"}, env: map[string]string{"ASDF_NODEJS_VERSION": "18.0.0"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs 20.5.0"}, file: installs + "nodejs/18.0.0/bin/node"},
		{name: "first installed", argv: []string{"node"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs 19.0.0 18.0.0"}, file: installs + "nodejs/18.0.0/bin/node"},
		{name: "system", argv: []string{"node"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs system"}, file: "usr/bin/node"},
		{name: "program of a package", argv: []string{"server"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs 20.5.0"}, file: installs + "nodejs/20.5.0/.npm/bin/server"},
		{name: "second plugin", argv: []string{"server"}, files: map[string]string{"home/me/code/.tool-versions": "python 3.11.0"}, file: installs + "python/3.11.0/bin/server"},
		{name: "nothing set", argv: []string{"node"}, reason: refused + "no version that has it is set (nodejs)"},
		{name: "not installed", argv: []string{"node"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs 19.0.0"}, reason: refused + "no version that has it is set (nodejs)"},
		{name: "plugin decides", argv: []string{"odd"}, files: map[string]string{"home/me/code/.tool-versions": "custom 1"}, reason: refused + `the plugin "custom" decides by a program of its own`},
		{name: "legacy file asked for", argv: []string{"node"}, files: map[string]string{"home/me/.asdfrc": "legacy_version_file = yes\n", "home/me/code/.nvmrc": "20"}, reason: refused + `the version may come from "ROOT/home/me/code/.nvmrc"`},
		{name: "legacy file ignored", argv: []string{"node"}, files: map[string]string{"home/me/code/.nvmrc": "20", "home/me/code/.tool-versions": "nodejs 20.5.0"}, file: installs + "nodejs/20.5.0/bin/node"},
	}
	for _, tt := range tests {
		tt.run(t, "asdf", build)
	}
}

func TestMiseShims(t *testing.T) {
	build := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.local/share/mise/shims:ROOT/usr/bin"})
		w.program("home/me/.local/bin/mise")
		for _, name := range []string{"node", "npm", "python", "server", "tool", "gone"} {
			w.link("ROOT/home/me/.local/bin/mise", "home/me/.local/share/mise/shims/"+name)
		}
		installs := "home/me/.local/share/mise/installs/"
		for _, path := range []string{
			"node/20.1.0/bin/node", "node/20.11.1/bin/node", "node/22.3.0/bin/node", "node/20.11.1/bin/npm",
			"npm/10.0.0/bin/npm", "python/3.11.7/bin/python", "npm-scope-server/1.0.0/bin/server", "tool/1.0.0/tool",
		} {
			w.program(installs + path)
		}
		w.link("./22.3.0", installs+"node/latest")
		w.link("./20.11.1", installs+"node/lts")
		w.program("usr/bin/node")
		w.program("usr/bin/gone")
		return w
	}
	const installs = "home/me/.local/share/mise/installs/"
	refused := "this mise shim cannot be followed: "
	project := func(text string) map[string]string { return map[string]string{"home/me/code/mise.toml": text} }
	tests := []shimCase{
		{name: "exact", argv: []string{"node"}, files: project("[tools]\nnode = \"20.1.0\"\n"), file: installs + "node/20.1.0/bin/node"},
		{name: "beginning", argv: []string{"node"}, files: project("[tools]\nnode = '20'\n"), file: installs + "node/20.11.1/bin/node"},
		{name: "latest", argv: []string{"node"}, files: project("[tools]\nnode = 'latest'\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "latest without a link", argv: []string{"python"}, files: project("[tools]\npython = 'latest'\n"), file: installs + "python/3.11.7/bin/python"},
		{name: "lts", argv: []string{"node"}, files: project("[tools]\nnode = 'lts'\n"), file: installs + "node/20.11.1/bin/node"},
		{name: "table", argv: []string{"node"}, files: project("[tools]\nnode = { version = '22' }\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "list", argv: []string{"node"}, files: project("[tools]\nnode = ['22', '20']\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "other name of the tool", argv: []string{"node"}, files: map[string]string{"home/me/code/.tool-versions": "nodejs 20.1.0\n"}, file: installs + "node/20.1.0/bin/node"},
		{name: "hidden file", argv: []string{"node"}, files: map[string]string{"home/me/code/.mise.toml": "[tools]\nnode = '22'\n"}, file: installs + "node/22.3.0/bin/node"},
		{name: "local beats shared", argv: []string{"node"}, files: map[string]string{"home/me/code/mise.toml": "[tools]\nnode = '20'\n", "home/me/code/mise.local.toml": "[tools]\nnode = '22'\n"}, file: installs + "node/22.3.0/bin/node"},
		{name: "toml beats tool-versions", argv: []string{"node"}, files: map[string]string{"home/me/code/mise.toml": "[tools]\nnode = '20.1.0'\n", "home/me/code/.tool-versions": "node 22"}, file: installs + "node/20.1.0/bin/node"},
		{name: "file above", argv: []string{"node"}, dir: "home/me/code/a/b", files: project("[tools]\nnode = '22'\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "global file", argv: []string{"node"}, files: map[string]string{"home/me/.config/mise/config.toml": "[settings]\nx = 1\n[tools]\nnode = '20.1.0'\n"}, file: installs + "node/20.1.0/bin/node"},
		{name: "global drop-in", argv: []string{"node"}, files: map[string]string{"home/me/.config/mise/conf.d/a.toml": "[tools]\nnode = '20.1.0'\n"}, file: installs + "node/20.1.0/bin/node"},
		{name: "environment", argv: []string{"node"}, env: map[string]string{"MISE_ENV": "ci"}, files: map[string]string{"home/me/code/mise.toml": "[tools]\nnode = '20'\n", "home/me/code/mise.ci.toml": "[tools]\nnode = '22'\n"}, file: installs + "node/22.3.0/bin/node"},
		{name: "variable", argv: []string{"node"}, env: map[string]string{"MISE_NODE_VERSION": "22"}, files: project("[tools]\nnode = '20'\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "installs elsewhere", argv: []string{"node"}, env: map[string]string{"MISE_INSTALLS_DIR": "ROOT/home/me/.local/share/mise/installs"}, files: project("[tools]\nnode = '22'\n"), file: installs + "node/22.3.0/bin/node"},
		{name: "data elsewhere", argv: []string{"node"}, env: map[string]string{"MISE_DATA_DIR": "ROOT/elsewhere"}, files: project("[tools]\nnode = '22'\n"), reason: refused + `version "22" of node is not found among the installed ones`},
		{name: "npm of node", argv: []string{"npm"}, files: project("[tools]\nnode = '20.11.1'\n"), file: installs + "node/20.11.1/bin/npm"},
		{name: "npm of its own", argv: []string{"npm"}, files: project("[tools]\nnode = '20.11.1'\nnpm = '10'\n"), file: installs + "npm/10.0.0/bin/npm"},
		{name: "package", argv: []string{"server"}, files: project("[tools]\nnode = '20'\n\"npm:@scope/server\" = '1'\n"), file: installs + "npm-scope-server/1.0.0/bin/server"},
		{name: "program without bin", argv: []string{"tool"}, files: project("[tools]\ntool = '1.0.0'\n"), file: installs + "tool/1.0.0/tool"},
		{name: "system", argv: []string{"node"}, files: project("[tools]\nnode = 'system'\n"), file: "usr/bin/node"},
		{name: "nothing set is the system", argv: []string{"gone"}, file: "usr/bin/gone"},
		{name: "not installed", argv: []string{"node"}, files: project("[tools]\nnode = '19'\n"), reason: refused + `version "19" of node is not found among the installed ones`},
		{name: "own path", argv: []string{"node"}, files: project("[tools]\nnode = 'path:/opt/x'\n"), reason: refused + `version "path:/opt/x" of node is not found among the installed ones`},
		{name: "leading outside", argv: []string{"node"}, files: project("[tools]\nnode = '../../..'\n"), reason: refused + `version "../../.." of node is not found among the installed ones`},
		{name: "not understood", argv: []string{"node"}, files: project("[tools]\nnode = [\n"), reason: refused + `reading "ROOT/home/me/code/mise.toml": line 2: the version of "node" is not understood`},
		{name: "other tools set", argv: []string{"gone"}, files: project("[tools]\nnode = '20'\n"), reason: refused + "none of the tools that are set has it where most keep programs"},
		{name: "other manager's file", argv: []string{"node"}, files: map[string]string{"home/me/code/.nvmrc": "20"}, reason: refused + `the version may come from "ROOT/home/me/code/.nvmrc"`},
		{name: "files changed by a variable", argv: []string{"node"}, env: map[string]string{"MISE_NO_CONFIG": "1"}, reason: refused + "MISE_NO_CONFIG changes which files it reads"},
	}
	for _, tt := range tests {
		tt.run(t, "mise", build)
	}

	t.Run("copied shim", func(t *testing.T) {
		w := build(t)
		w.program("home/me/.local/share/mise/shims/copied")
		w.program(installs + "tool/1.0.0/bin/copied")
		w.file("home/me/code/mise.toml", "[tools]\ntool = '1.0.0'\n")
		if p := w.mustResolve("copied"); p.File != w.at(installs+"tool/1.0.0/bin/copied") {
			t.Errorf("file %q", w.rel(p.File))
		}
	})
	t.Run("mise itself", func(t *testing.T) {
		w := build(t)
		if p := w.mustResolve("ROOT/home/me/.local/bin/mise", "x"); p.File != w.at("home/me/.local/bin/mise") || len(p.Notes) != 0 {
			t.Errorf("file %q, notes %q", w.rel(p.File), p.Notes)
		}
	})
}

func TestVoltaShims(t *testing.T) {
	build := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/.volta/bin:ROOT/usr/bin"})
		w.program("home/me/.volta/bin/volta-shim")
		for _, name := range []string{"node", "npm", "npx", "yarn", "pnpm", "tsc"} {
			w.link("volta-shim", "home/me/.volta/bin/"+name)
		}
		w.program("home/me/.volta/bin/volta")
		image := "home/me/.volta/tools/image/"
		for _, path := range []string{"node/18.0.0/bin/node", "node/20.1.0/bin/node", "node/20.1.0/bin/npm", "npm/10.2.0/bin/npm"} {
			w.program(image + path)
		}
		w.script(image+"yarn/1.22.0/bin/yarn", "#!/usr/bin/env node\n")
		w.script(image+"packages/typescript/lib/node_modules/typescript/bin/tsc", "#!/usr/bin/env node\n")
		w.link("../lib/node_modules/typescript/bin/tsc", image+"packages/typescript/bin/tsc")
		w.file("home/me/.volta/tools/user/platform.json", `{"node":{"runtime":"20.1.0","npm":null},"pnpm":null,"yarn":"1.22.0"}`)
		w.file("home/me/.volta/tools/user/bins/tsc.json", `{"name":"tsc","package":"typescript","version":"5.0.0","platform":{"node":"18.0.0","npm":null,"yarn":null},"loader":null}`)
		return w
	}
	const image = "home/me/.volta/tools/image/"
	refused := "this volta shim cannot be followed: "
	project := func(text string) map[string]string { return map[string]string{"home/me/code/package.json": text} }
	tests := []shimCase{
		{name: "default", argv: []string{"node"}, file: image + "node/20.1.0/bin/node"},
		{name: "pin", argv: []string{"node"}, files: project(`{"volta":{"node":"18.0.0"}}`), file: image + "node/18.0.0/bin/node"},
		{name: "pin above", argv: []string{"node"}, dir: "home/me/code/a/b", files: project(`{"volta":{"node":"18.0.0"}}`), file: image + "node/18.0.0/bin/node"},
		{name: "nearest project without a pin", argv: []string{"node"}, dir: "home/me/code/a", files: map[string]string{"home/me/code/package.json": `{"volta":{"node":"18.0.0"}}`, "home/me/code/a/package.json": "{}"}, file: image + "node/20.1.0/bin/node"},
		{name: "a dependency's folder is no project", argv: []string{"node"}, dir: "home/me/code/node_modules/a", files: map[string]string{"home/me/code/package.json": `{"volta":{"node":"18.0.0"}}`, "home/me/code/node_modules/a/package.json": "{}"}, file: image + "node/18.0.0/bin/node"},
		{name: "extended pin", argv: []string{"node"}, dir: "home/me/code/a", files: map[string]string{"home/me/code/package.json": `{"volta":{"node":"18.0.0"}}`, "home/me/code/a/package.json": `{"volta":{"extends":"../package.json"}}`}, file: image + "node/18.0.0/bin/node"},
		{name: "npm of node", argv: []string{"npm"}, file: image + "node/20.1.0/bin/npm"},
		{name: "npm of its own", argv: []string{"npm"}, files: project(`{"volta":{"node":"20.1.0","npm":"10.2.0"}}`), file: image + "npm/10.2.0/bin/npm"},
		{name: "script of the default's node", argv: []string{"yarn"}, file: image + "node/20.1.0/bin/node"},
		{name: "package with its own node", argv: []string{"tsc"}, file: image + "node/18.0.0/bin/node"},
		{name: "package of the project", argv: []string{"tsc"}, files: project(`{"devDependencies":{"typescript":"5"}}`), reason: refused + `in this project volta runs the project's own "typescript"`},
		{name: "not set", argv: []string{"pnpm"}, reason: refused + "no version is set for it"},
		{name: "not installed", argv: []string{"node"}, files: project(`{"volta":{"node":"16.0.0"}}`), reason: refused + `"ROOT/` + image + `node/16.0.0/bin/node" is not installed`},
		{name: "leading outside", argv: []string{"node"}, files: project(`{"volta":{"node":"../../x"}}`), reason: refused + `the version "../../x" is not a plain name`},
		{name: "extends itself", argv: []string{"node"}, files: project(`{"volta":{"extends":"package.json"}}`), reason: refused + "its package.json extends too many others"},
		{name: "no JSON", argv: []string{"node"}, files: project(`{`), reason: refused + `the package.json in "ROOT/home/me/code" cannot be used`},
	}
	for _, tt := range tests {
		tt.run(t, "volta", build)
	}

	p := build(t).mustResolve("tsc")
	var short []string
	for _, folder := range p.Path {
		_, path, _ := strings.Cut(folder, "/.volta/tools/image/")
		short = append(short, path)
	}
	if diff := cmp.Diff([]string{"node/18.0.0/bin", "packages/typescript/bin"}, short); diff != "" {
		t.Errorf("path of a package's script (-want +got):\n%s", diff)
	}
}

func TestWrappersOfPackageManagers(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/node")
	w.program("usr/bin/sh")
	w.file("home/me/pkg/node_modules/.pnpm/s@1/node_modules/s/cli.js", "")
	pnpm := "#!/bin/sh\nbasedir=$(dirname \"$(echo \"$0\" | sed -e 's,\\\\,/,g')\")\n\nif [ -x \"$basedir/node\" ]; then\n" +
		"  exec \"$basedir/node\"  \"$basedir/../.pnpm/s@1/node_modules/s/cli.js\" \"$@\"\nelse\n" +
		"  exec node  \"$basedir/../.pnpm/s@1/node_modules/s/cli.js\" \"$@\"\nfi\n"
	w.script("home/me/pkg/node_modules/.bin/s", pnpm)
	entry := "ROOT/home/me/pkg/node_modules/.pnpm/s@1/node_modules/s/cli.js"

	p := w.mustResolve("ROOT/home/me/pkg/node_modules/.bin/s", "-a")
	if diff := cmp.Diff([]string{"ROOT/usr/bin/node", entry, "-a"}, w.rel(p.Argv...)); diff != "" {
		t.Errorf("pnpm: argv (-want +got):\n%s", diff)
	}
	w.program("home/me/pkg/node_modules/.bin/node")
	p = w.mustResolve("ROOT/home/me/pkg/node_modules/.bin/s")
	if diff := cmp.Diff([]string{"ROOT/home/me/pkg/node_modules/.bin/node", entry}, w.rel(p.Argv...)); diff != "" {
		t.Errorf("pnpm with a node beside it: argv (-want +got):\n%s", diff)
	}
	w.script("home/me/pkg/node_modules/.bin/gone", strings.ReplaceAll(pnpm, "cli.js", "none.js"))
	_, err := w.resolve("ROOT/home/me/pkg/node_modules/.bin/gone")
	notExecutable(t, w, err, "ROOT/home/me/pkg/node_modules/.bin/gone",
		`it wraps "ROOT/home/me/pkg/node_modules/.bin/../.pnpm/s@1/node_modules/s/none.js", which is not there`, nil)

	// pip, for an interpreter whose path holds a blank; uv, for environments that move.
	w.program("home/me/my env/bin/python")
	for name, line := range map[string]string{
		"quoted":      `"ROOT/home/me/my env/bin/python"`,
		"relocatable": `"$(dirname -- "$(realpath -- "$0")")"/'python'`,
	} {
		path := "home/me/my env/bin/" + name
		w.script(path, "#!/bin/sh\n'''exec' "+line+" \"$0\" \"$@\"\n' '''\nimport x\n")
		p := w.mustResolve("ROOT/"+path, "-a")
		if diff := cmp.Diff([]string{"ROOT/home/me/my env/bin/python", "ROOT/" + path, "-a"}, w.rel(p.Argv...)); diff != "" {
			t.Errorf("%s: argv (-want +got):\n%s", name, diff)
		}
	}
}
