package program_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/program"
)

// nodeWorld has a node without openings of its own beyond the loader's.
func nodeWorld(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb)
	w.program("usr/bin/node")
	return w
}

// beyond drops what every program of the world reads.
func beyond(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasPrefix(path, "lib/") })
}

func TestNodeEntries(t *testing.T) {
	w := nodeWorld(t)
	w.link("node", "usr/bin/nodejs")
	w.program("opt/node-v22/bin/node-22")
	for _, path := range []string{
		"code/a.js", "code/b.cjs", "code/-dash.js", "code/noext", "code/data.json", "code/both", "code/both.js",
		"code/main/lib/start.js", "code/index/index.js", "code/lib/index.js", "elsewhere/x/cli.mjs",
	} {
		w.file("home/me/"+path, "")
	}
	w.file("home/me/code/main/package.json", `{"main":"./lib/start"}`)
	w.file("home/me/code/folder/package.json", `{"main":"sub"}`)
	w.file("home/me/code/folder/sub/index.js", "")
	w.file("home/me/code/badmain/package.json", `{"main":"none.js"}`)
	w.file("home/me/code/badmain/index.js", "")
	w.link("ROOT/home/me/elsewhere/x/cli.mjs", "home/me/code/link")

	lone := func(path string) string {
		return `no package.json near the script "ROOT/home/me/` + path + `": only this file is readable; add read: for more`
	}
	tests := []struct {
		name  string
		argv  []string
		entry string // relative to home/me; "" for none
		args  []string
		note  string
	}{
		{"file", []string{"node", "a.js", "-x", "y"}, "code/a.js", []string{"-x", "y"}, lone("code/a.js")},
		{"other name of node", []string{"nodejs", "a.js"}, "code/a.js", []string{}, lone("code/a.js")},
		{"versioned node", []string{"ROOT/opt/node-v22/bin/node-22", "a.js"}, "code/a.js", []string{}, lone("code/a.js")},
		{"absolute", []string{"node", "ROOT/home/me/code/a.js"}, "code/a.js", []string{}, lone("code/a.js")},
		{"suffix left out", []string{"node", "./a"}, "code/a.js", []string{}, lone("code/a.js")},
		{"exact name first", []string{"node", "both"}, "code/both", []string{}, lone("code/both")},
		{"json", []string{"node", "data"}, "code/data.json", []string{}, lone("code/data.json")},
		{"folder with a main", []string{"node", "main"}, "code/main/lib/start.js", []string{}, ""},
		{"folder whose main is a folder", []string{"node", "folder"}, "code/folder/sub/index.js", []string{}, ""},
		{"folder whose main is gone", []string{"node", "badmain"}, "code/badmain/index.js", []string{}, ""},
		{"folder with an index", []string{"node", "index/"}, "code/index/index.js", []string{}, lone("code/index/index.js")},
		{"link", []string{"node", "link"}, "elsewhere/x/cli.mjs", []string{}, lone("elsewhere/x/cli.mjs")},
		{"options", []string{"node", "--no-warnings", "--title", "t", "-C", "dev", "a.js"}, "code/a.js", []string{}, lone("code/a.js")},
		{"dash", []string{"node", "--", "-dash.js", "-x"}, "code/-dash.js", []string{"-x"}, lone("code/-dash.js")},
		{"eval", []string{"node", "-e", "0", "a.js"}, "", []string{"a.js"}, ""},
		{"nothing", []string{"node"}, "", []string{}, ""},
		{"gone", []string{"node", "gone.js", "x"}, "", []string{"x"}, `the script "gone.js" was not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := w.mustResolve(tt.argv...)
			if p.Runtime != program.Node {
				t.Errorf("runtime %d", p.Runtime)
			}
			want := ""
			if tt.entry != "" {
				want = w.home + "/" + tt.entry
			}
			if p.Entry != want {
				t.Errorf("entry %q, want %q", p.Entry, want)
			}
			if diff := cmp.Diff(tt.args, p.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if got := w.notes(p); got != tt.note {
				t.Errorf("notes %q, want %q", got, tt.note)
			}
		})
	}
}

func manyDependencies(n int) string {
	var text strings.Builder
	text.WriteString(`{"name":"s","dependencies":{"d":"1"`)
	for i := range n {
		fmt.Fprintf(&text, `,"d%d":"1"`, i)
	}
	return text.String() + "}}"
}

func TestNodePackages(t *testing.T) {
	const work = "home/me/code"
	tests := []struct {
		name     string
		files    map[string]string
		links    map[string]string // path to target
		dir      string            // working folder; work when ""
		entry    string
		wantRead []string
		pkg      string
		note     string // has to be in the notes; "" for none
	}{
		{
			name:     "project",
			files:    map[string]string{work + "/package.json": `{"name":"mine"}`, work + "/build/index.js": ""},
			entry:    work + "/build/index.js",
			wantRead: []string{work}, pkg: "mine",
		},
		{
			name:     "build output with a type only",
			files:    map[string]string{work + "/package.json": `{"name":"mine"}`, work + "/build/package.json": `{"type":"module"}`, work + "/build/index.js": ""},
			entry:    work + "/build/index.js",
			wantRead: []string{work}, pkg: "mine",
		},
		{
			name:     "project without a name",
			files:    map[string]string{work + "/package.json": `{"type":"module"}`, work + "/build/index.js": ""},
			entry:    work + "/build/index.js",
			wantRead: []string{work},
		},
		{
			name:     "no package",
			files:    map[string]string{work + "/tools/a.js": "", work + "/tools/b.js": ""},
			entry:    work + "/tools/a.js",
			wantRead: []string{work + "/tools/a.js"},
			note:     `no package.json near the script "ROOT/home/me/code/tools/a.js": only this file is readable`,
		},
		{
			name:     "package.json of the home folder is not taken",
			files:    map[string]string{"home/me/package.json": `{"name":"home"}`, work + "/a.js": ""},
			entry:    work + "/a.js",
			wantRead: []string{work + "/a.js"},
			note:     `no package.json near the script "ROOT/home/me/code/a.js"`,
		},
		{
			name:     "script in the home folder",
			files:    map[string]string{"home/me/package.json": `{"name":"home"}`, "home/me/a.js": ""},
			entry:    "home/me/a.js",
			wantRead: []string{"home/me/a.js"},
			note:     `no package.json near the script "ROOT/home/me/a.js"`,
		},
		{
			name:     "script above the home folder",
			files:    map[string]string{"home/a.js": ""},
			entry:    "home/a.js",
			wantRead: []string{"home/a.js"},
			note:     `no package.json near the script "ROOT/home/a.js"`,
		},
		{
			name:     "script among downloads",
			files:    map[string]string{"home/me/Downloads/a.js": ""},
			entry:    "home/me/Downloads/a.js",
			wantRead: []string{"home/me/Downloads/a.js"},
			note:     "no package.json near the script",
		},
		{
			name:     "script among programs",
			files:    map[string]string{"usr/local/bin/tool": ""},
			entry:    "usr/local/bin/tool",
			wantRead: []string{"usr/local/bin/tool"},
			note:     `no package.json near the script "ROOT/usr/local/bin/tool"`,
		},
		{
			name: "global package with its dependencies inside",
			files: map[string]string{
				"usr/lib/node_modules/s/package.json":                   `{"name":"s","dependencies":{"d":"1","@x/e":"1"},"optionalDependencies":{"o":"1"}}`,
				"usr/lib/node_modules/s/cli.js":                         "",
				"usr/lib/node_modules/s/node_modules/d/package.json":    `{"name":"d"}`,
				"usr/lib/node_modules/s/node_modules/@x/e/package.json": `{"name":"@x/e"}`,
				"usr/lib/node_modules/other/package.json":               `{"name":"other"}`,
			},
			entry:    "usr/lib/node_modules/s/cli.js",
			wantRead: []string{"usr/lib/node_modules/s"}, pkg: "s",
		},
		{
			name: "global package with a dependency beside it",
			files: map[string]string{
				"usr/lib/node_modules/@a/s/package.json": `{"name":"@a/s","dependencies":{"d":"1"}}`,
				"usr/lib/node_modules/@a/s/dist/cli.js":  "",
				"usr/lib/node_modules/d/package.json":    `{"name":"d"}`,
			},
			entry:    "usr/lib/node_modules/@a/s/dist/cli.js",
			wantRead: []string{"usr/lib/node_modules"}, pkg: "@a/s",
		},
		{
			name: "global package with a required peer beside it",
			files: map[string]string{
				"usr/lib/node_modules/s/package.json": `{"name":"s","peerDependencies":{"p":"1","q":"1"},"peerDependenciesMeta":{"q":{"optional":true}}}`,
				"usr/lib/node_modules/s/cli.js":       "",
				"usr/lib/node_modules/p/package.json": `{"name":"p"}`,
			},
			entry:    "usr/lib/node_modules/s/cli.js",
			wantRead: []string{"usr/lib/node_modules"}, pkg: "s",
		},
		{
			name: "package without dependencies in a project",
			files: map[string]string{
				work + "/package.json":                `{"dependencies":{"s":"1"}}`,
				work + "/node_modules/s/package.json": `{"name":"s"}`,
				work + "/node_modules/s/cli.js":       "",
			},
			entry:    work + "/node_modules/s/cli.js",
			wantRead: []string{work + "/node_modules/s"}, pkg: "s",
		},
		{
			name: "package in a project, dependencies lifted",
			files: map[string]string{
				work + "/package.json":                               `{"dependencies":{"s":"1"}}`,
				work + "/node_modules/s/package.json":                `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/node_modules/s/cli.js":                      "",
				work + "/node_modules/s/node_modules/d/package.json": `{"name":"d"}`,
			},
			entry:    work + "/node_modules/s/cli.js",
			wantRead: []string{work + "/node_modules"}, pkg: "s",
		},
		{
			name: "nested package",
			files: map[string]string{
				work + "/package.json":                               `{}`,
				work + "/node_modules/a/node_modules/s/package.json": `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/node_modules/a/node_modules/s/cli.js":       "",
			},
			entry:    work + "/node_modules/a/node_modules/s/cli.js",
			wantRead: []string{work + "/node_modules"}, pkg: "s",
		},
		{
			name: "pnpm project",
			files: map[string]string{
				work + "/package.json": `{}`,
				work + "/node_modules/.pnpm/s@1/node_modules/s/package.json": `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/node_modules/.pnpm/s@1/node_modules/s/cli.js":       "",
				work + "/node_modules/.pnpm/d@1/node_modules/d/package.json": `{"name":"d"}`,
			},
			links:    map[string]string{work + "/node_modules/s": ".pnpm/s@1/node_modules/s", work + "/node_modules/.pnpm/s@1/node_modules/d": "../../d@1/node_modules/d"},
			entry:    work + "/node_modules/s/cli.js",
			wantRead: []string{work + "/node_modules"}, pkg: "s",
		},
		{
			name: "pnpm global store",
			files: map[string]string{
				"home/me/pnpm/5/package.json":                                 `{}`,
				"home/me/pnpm/5/.pnpm/s@1/node_modules/s/package.json":        `{"name":"s","dependencies":{"d":"1"}}`,
				"home/me/pnpm/5/.pnpm/s@1/node_modules/s/cli.js":              "",
				"home/me/pnpm/5/.pnpm/d@1/node_modules/d/package.json":        `{"name":"d"}`,
				"home/me/pnpm/5/.pnpm/unrelated/node_modules/x/package.json":  `{"name":"x"}`,
				"home/me/pnpm/5/elsewhere/keep/this/apart/from/the/store.txt": "",
			},
			links:    map[string]string{"home/me/pnpm/5/.pnpm/s@1/node_modules/d": "../../d@1/node_modules/d"},
			entry:    "home/me/pnpm/5/.pnpm/s@1/node_modules/s/cli.js",
			wantRead: []string{"home/me/pnpm/5/.pnpm"}, pkg: "s",
		},
		{
			name: "workspace",
			files: map[string]string{
				work + "/package.json":                     `{"workspaces":["packages/*"]}`,
				work + "/node_modules/d/package.json":      `{"name":"d"}`,
				work + "/packages/s/package.json":          `{"name":"s","dependencies":{"d":"1","sibling":"1"}}`,
				work + "/packages/s/index.js":              "",
				work + "/packages/sibling/package.json":    `{"name":"sibling","dependencies":{"grand":"1"}}`,
				work + "/packages/grand/package.json":      `{"name":"grand"}`,
				work + "/packages/unrelated/package.json":  `{"name":"unrelated"}`,
				work + "/packages/unrelated/secrets/token": "",
			},
			links:    map[string]string{work + "/node_modules/sibling": "../packages/sibling", work + "/node_modules/grand": "../packages/grand", work + "/node_modules/unrelated": "../packages/unrelated"},
			entry:    work + "/packages/s/index.js",
			wantRead: []string{work + "/node_modules", work + "/packages/grand", work + "/packages/s", work + "/packages/sibling"}, pkg: "s",
		},
		{
			name: "workspace of pnpm",
			files: map[string]string{
				work + "/package.json":                               `{}`,
				work + "/pnpm-workspace.yaml":                        "",
				work + "/packages/s/package.json":                    `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/packages/s/index.js":                        "",
				work + "/node_modules/.pnpm/d@1/node_modules/d/x.js": "",
			},
			links:    map[string]string{work + "/packages/s/node_modules/d": "../../../node_modules/.pnpm/d@1/node_modules/d"},
			entry:    work + "/packages/s/index.js",
			wantRead: []string{work + "/node_modules", work + "/packages/s"}, pkg: "s",
		},
		{
			name: "complete project below another",
			files: map[string]string{
				work + "/package.json":                     `{}`,
				work + "/node_modules/x/package.json":      `{"name":"x"}`,
				work + "/sub/package.json":                 `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/sub/node_modules/d/package.json":  `{"name":"d"}`,
				work + "/sub/index.js":                     "",
				work + "/sub/node_modules/d/lib/index.cjs": "",
			},
			entry:    work + "/sub/index.js",
			wantRead: []string{work + "/sub"}, pkg: "s",
		},
		{
			name: "a link that is not the dependency opens nothing",
			files: map[string]string{
				work + "/package.json":           `{"name":"s","dependencies":{"d":"1"}}`,
				work + "/index.js":               "",
				"home/me/private/diary":          "",
				"home/me/private/d/package.json": `{"name":"other"}`,
			},
			links:    map[string]string{work + "/node_modules/d": "ROOT/home/me/private"},
			entry:    work + "/index.js",
			wantRead: []string{work}, pkg: "s",
			note: `the dependency "d" lies at "ROOT/home/me/private", outside of the package and its workspace, and is not readable`,
		},
		{
			name:     "a link to the home folder opens nothing",
			files:    map[string]string{work + "/package.json": `{"name":"s","dependencies":{"d":"1"}}`, work + "/index.js": "", "home/me/package.json": `{"name":"d"}`},
			links:    map[string]string{work + "/node_modules/d": "ROOT/home/me"},
			entry:    work + "/index.js",
			wantRead: []string{work}, pkg: "s", note: `the dependency "d" lies at "ROOT/home/me", outside`,
		},
		{
			name:     "a name that leads upwards is none",
			files:    map[string]string{work + "/package.json": `{"name":"s","dependencies":{"../../private":"1"}}`, work + "/index.js": "", "home/me/private/package.json": `{"name":"../../private"}`},
			entry:    work + "/index.js",
			wantRead: []string{work}, pkg: "s",
		},
		{
			name:     "broken package.json",
			files:    map[string]string{work + "/package.json": `{"name":`, work + "/sub/index.js": ""},
			entry:    work + "/sub/index.js",
			wantRead: []string{work + "/sub/index.js"}, note: `"ROOT/home/me/code/package.json" is not used: not valid JSON`,
		},
		{
			name:     "huge package.json",
			files:    map[string]string{work + "/package.json": `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, work + "/index.js": ""},
			entry:    work + "/index.js",
			wantRead: []string{work + "/index.js"}, note: `"ROOT/home/me/code/package.json" cannot be read: larger than`,
		},
		{
			name:     "endless dependencies",
			files:    map[string]string{work + "/package.json": manyDependencies(5000), work + "/index.js": ""},
			entry:    work + "/index.js",
			wantRead: []string{work + "/index.js"}, note: "more than 4096 names in a list",
		},
		{
			name:     "script in .bin",
			files:    map[string]string{work + "/node_modules/.bin/s": ""},
			entry:    work + "/node_modules/.bin/s",
			wantRead: []string{work + "/node_modules/.bin/s"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := nodeWorld(t)
			for path, content := range tt.files {
				w.file(path, content)
			}
			for path, target := range tt.links {
				w.link(target, path)
			}
			p := w.mustResolve("node", "ROOT/"+tt.entry)
			if diff := cmp.Diff(tt.wantRead, beyond(w.reads(p.Read))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if p.Package != tt.pkg {
				t.Errorf("package %q, want %q", p.Package, tt.pkg)
			}
			notes := w.notes(p)
			if !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			for _, n := range p.Read {
				if n.Why == "" {
					t.Errorf("%q has no reason", n.Path)
				}
			}
		})
	}
}

func TestPackageFilesCannotHang(t *testing.T) {
	w := nodeWorld(t)
	w.file("home/me/code/a.js", "")
	if err := unix.Mkfifo(w.at("home/me/code/package.json"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := w.mustResolve("node", "a.js")
	if p.Entry != w.at("home/me/code/a.js") {
		t.Errorf("entry %q", p.Entry)
	}
}

func TestNodePreloads(t *testing.T) {
	w := nodeWorld(t)
	w.file("home/me/code/index.js", "")
	w.file("home/me/code/package.json", `{"name":"s"}`)
	w.file("home/me/hooks/token", "")
	w.file("home/me/node_modules/tsx/package.json", `{"name":"tsx"}`)
	w.file("home/me/node_modules/tsx/dist/loader.mjs", "")
	w.file("home/me/hooks/trace.js", "")
	w.file("home/me/env/server.env", "")
	p := w.mustResolve("node", "--import", "tsx/esm", "-r", "../hooks/trace", "-r", "fs", "--import=data:text/javascript,0",
		"--env-file=../env/server.env", "--env-file-if-exists", "../env/none.env", "index.js")
	want := []string{"home/me/code", "home/me/env/server.env", "home/me/hooks/trace.js", "home/me/node_modules/tsx"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if notes := w.notes(p); notes != `no package.json near the script "ROOT/home/me/hooks/trace.js": only this file is readable; add read: for more` {
		t.Errorf("notes %q", notes)
	}
	p = w.mustResolve("node", "-r", "./gone.js", "index.js")
	if w.notes(p) != `the module "./gone.js" was not found` {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestNodeReadsItsOpenSSLConfiguration(t *testing.T) {
	w := nodeWorld(t).with(map[string]string{"OPENSSL_CONF": "ROOT/etc/custom.cnf"})
	w.file("usr/ssl/real.cnf", "# .include /nonexistent\nname = x .include ROOT/usr/no\n.include ROOT/usr/policy/crypto.config\n.include = ROOT/usr/more.d\n")
	w.link("real.cnf", "usr/ssl/openssl.cnf")
	w.file("usr/policy/crypto.config", ".include ROOT/usr/ssl/real.cnf\n.include ROOT/home/me/key\n")
	w.file("usr/no", "")
	w.file("usr/more.d/a.cnf", "")
	w.link("ROOT/home/me/key", "usr/etc/ssl/openssl.cnf")
	w.file("home/me/key", "")
	w.file("etc/custom.cnf", ".include ROOT/etc/part.cnf\n.include ROOT/home/me/other\n")
	w.file("etc/part.cnf", "")
	w.file("home/me/other", "")
	p := w.mustResolve("node", "-e", "0")
	want := []string{"etc/custom.cnf", "etc/part.cnf", "usr/more.d", "usr/policy/crypto.config", "usr/ssl/real.cnf"}
	if diff := cmp.Diff(want, beyond(w.reads(p.Read))); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	for _, note := range []string{
		`the OpenSSL configuration of "ROOT/usr" leads to "ROOT/home/me/key"`,
		`the OpenSSL configuration of "ROOT/etc" leads to "ROOT/home/me/other"`,
	} {
		if !strings.Contains(w.notes(p), note) {
			t.Errorf("notes %q lack %q", w.notes(p), note)
		}
	}
	for _, n := range p.Read {
		if strings.HasPrefix(n.Path, w.root+"/etc") && !n.Optional {
			t.Errorf("%q is not optional", n.Path)
		}
	}
}

func TestBunAndDeno(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/bun")
	w.program("usr/bin/deno")
	w.file("home/me/code/package.json", `{"name":"mine"}`)
	w.file("home/me/code/src/main.ts", "")
	for _, argv := range [][]string{{"bun", "run", "src/main.ts", "-x"}, {"deno", "run", "-A", "src/main.ts", "-x"}} {
		p := w.mustResolve(argv...)
		if p.Runtime != program.Native || p.Entry != w.at("home/me/code/src/main.ts") {
			t.Errorf("%q: runtime %d, entry %q", argv, p.Runtime, p.Entry)
		}
		if diff := cmp.Diff([]string{"home/me/code"}, beyond(w.reads(p.Read))); diff != "" {
			t.Errorf("%q: read (-want +got):\n%s", argv, diff)
		}
		if diff := cmp.Diff([]string{"-x"}, p.Args); diff != "" {
			t.Errorf("%q: args (-want +got):\n%s", argv, diff)
		}
		if !strings.Contains(w.notes(p), argv[0]+" is run as a native program") {
			t.Errorf("%q: notes %q", argv, p.Notes)
		}
	}
}
