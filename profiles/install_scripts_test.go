package profiles_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

func TestInstallScriptsParse(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"pattern", `scripts: ["@x/*"]`, `2:21: "@x/*": install scripts have no patterns | name each package`},
		{"kind", `scripts: ["npm:esbuild"]`, `2:21: "npm:esbuild": install scripts go by the name alone | write "esbuild"`},
		{"version", `scripts: ["@x/y@1.2"]`, `2:21: package "@x/y@1.2" names a version | write "@x/y"`},
		{"path", `scripts: [a/b]`, `2:21: "a/b" is not a package's name | a scope is "@scope/name"`},
		{"scope alone", `scripts: ["@x"]`, `2:21: "@x" is not a package's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`},
		{"flag", `scripts: ["--force"]`, `2:21: "--force" is not a package's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`},
		{"hidden", `scripts: [.x]`, `2:21: ".x" is not a package's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`},
		{"folder above", `scripts: ["@x/.."]`, `2:21: "@x/.." is not a package's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`},
		{"too long", `scripts: [` + strings.Repeat("a", 215) + `]`, `2:21: "` + strings.Repeat("a", 215) + `" is not a package's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`},
		{"text", `scripts: esbuild`, `2:20: install.scripts: expected a list of texts, found text | write [...], also for one entry`},
		{"read of a working folder", `{scripts: [a], read: ["${cwd}/x"]}`, "2:32: an install is the same for every folder, and ${cwd} is not | write an absolute path, or one below ${home}"},
		{"read of the roots", `{scripts: [a], read: ["${roots}"]}`, "2:32: an install is the same for every folder, and ${roots} is not | write an absolute path, or one below ${home}"},
		{"program of a repository", `{scripts: [a], execute: ["${repo}/x"]}`, "2:35: an install is the same for every folder, and ${repo} is not | write an absolute path, or one below ${home}"},
		{"folder as a program", `{scripts: [a], execute: [/usr/bin/]}`, `2:35: "/usr/bin/" is a folder | name the program itself: folders cannot be executed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.HasPrefix(tt.text, "{") {
				tt.text = "{" + tt.text + "}"
			}
			_, err := profiles.Parse("p.yaml", []byte("version: 1\ninstall: "+tt.text+"\n"))
			var many profiles.Errors
			if !errors.As(err, &many) || len(many) != 1 {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(many[0].Error(), "p.yaml:") + " | " + many[0].Hint; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestInstallScripts: what a profile says reaches the install jail, and nothing of it the
// server's.
func TestInstallScripts(t *testing.T) {
	p := parse(t, "install:\n  scripts: [esbuild, \"@x/y\", My_Wheel]\n  execute: [git]\n  read: [/usr/include]\n")
	for _, tt := range []struct {
		kind, name string
		want       bool
	}{
		{"npm", "esbuild", true},
		{"npm", "@x/y", true},
		{"npm", "y", false},
		{"npm", "Esbuild", false},
		{"npm", "my-wheel", false},
		{"pypi", "my-wheel", true},
		{"pypi", "MY.wheel", true},
		{"pypi", "esbuild", true},
		{"pypi", "wheel", false},
		{"npm", "", false},
	} {
		if got := p.Install.Runs(tt.kind, tt.name); got != tt.want {
			t.Errorf("%s:%s: %v", tt.kind, tt.name, got)
		}
	}
	plain := mustCompile(t, parse(t, ""), nil)
	with := mustCompile(t, p, nil)
	if diff := cmp.Diff(plain.Plan, with.Plan); diff != "" {
		t.Errorf("the server's own plan differs (-without +with):\n%s", diff)
	}
	jail := mustCompile(t, profiles.Install(profiles.InstallGrants{Execute: p.Install.Execute, Read: p.Install.Read}), nil)
	var got []string
	for _, g := range jail.Plan.Grants {
		if g.Origin.Source == "p.yaml" {
			got = append(got, g.Access.String()+" "+g.Path)
		}
	}
	if diff := cmp.Diff([]string{"execute /usr/bin/git", "read /usr/lib/git-core", "read /usr/include"}, got); diff != "" {
		t.Errorf("the install jail (-want +got):\n%s", diff)
	}
}

// TestInstallWithoutScripts: programs and paths for scripts that may not run are refused,
// and what another file names counts.
func TestInstallWithoutScripts(t *testing.T) {
	tests := []struct {
		name, child, parent, want string
	}{
		{"alone", "install: {execute: [make], read: [/usr/include]}\n", "", "child.yaml:2:21: install.execute: no install script may run, so nothing starts \"make\"\n" + "child.yaml:2:35: install.read: no install script may run, so nothing reads \"/usr/include\""},
		{"empty list", "install: {scripts: [], execute: [make]}\n", "", "child.yaml:2:34: install.execute: no install script may run, so nothing starts \"make\""},
		{"in one file", "install: {scripts: [a], execute: [make]}\n", "", ""},
		{"scripts of the extended one", "extends: [parent]\ninstall: {execute: [make]}\n", "install: {scripts: [a]}\n", ""},
		{"programs of the extended one", "extends: [parent]\ninstall: {scripts: [a]}\n", "install: {execute: [make]}\n", ""},
		{"in neither", "extends: [parent]\n", "install: {execute: [make]}\n", "parent.yaml:2:21: install.execute: no install script may run, so nothing starts \"make\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"user/child.yaml": "version: 1\n" + tt.child}
			if tt.parent != "" {
				files["user/parent.yaml"] = "version: 1\n" + tt.parent
			}
			s := places(t, files)
			p, err := s.Find("child")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Complete(p)
			var many profiles.Errors
			errors.As(err, &many)
			var got []string
			for _, e := range many {
				e.File = filepath.Base(e.File)
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" || (err == nil) != (tt.want == "") {
				t.Errorf("problems (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// TestDiffInstall: more for install scripts is a widening, which a repository's profile
// may not do by itself, before an install or after.
func TestDiffInstall(t *testing.T) {
	tests := []struct {
		name, a, b string
		want       []string
	}{
		{"scripts", "", "scripts: [a]", []string{"install: scripts of a added (widening)"}},
		{"other scripts", "scripts: [a]", "scripts: [b]", []string{"install: scripts of b added (widening)", "install: scripts of a removed (narrowing)"}},
		{"fewer", "scripts: [a, b]", "scripts: [a]", []string{"install: scripts of b removed (narrowing)"}},
		{"programs", "scripts: [a], execute: [git]", "scripts: [a], execute: [git, make]", []string{"install: execute make added (widening)"}},
		{"paths", "scripts: [a]", "scripts: [a], read: [/x]", []string{"install: read /x added (widening)"}},
		{"a reason", "scripts: [a], read: [/x]", "scripts: [a], read: [{path: /x, broad: true, reason: r}]", []string{"install: read /x (broad) added (widening)", "install: read /x removed (narrowing)"}},
		{"the same", "scripts: [a, b], execute: [git]", "scripts: [b, a], execute: [git]", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := parse(t, "install: {"+tt.a+"}\n"), parse(t, "install: {"+tt.b+"}\n")
			texts := func(changes []profiles.Change) []string {
				var out []string
				for _, c := range changes {
					out = append(out, c.String())
				}
				return out
			}
			var wider []string
			for _, w := range tt.want {
				if strings.Contains(w, "(widening)") {
					wider = append(wider, w)
				}
			}
			before, after := mustCompile(t, a, nil), mustCompile(t, b, nil)
			for what, got := range map[string][2][]string{
				"DiffInstall":     {tt.want, texts(profiles.DiffInstall(a, b))},
				"Diff":            {tt.want, texts(profiles.Diff(before, after))},
				"NarrowerInstall": {wider, texts(profiles.NarrowerInstall(b, a))},
				"Narrower":        {wider, texts(profiles.Narrower(after, before))},
			} {
				if diff := cmp.Diff(got[0], got[1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}
