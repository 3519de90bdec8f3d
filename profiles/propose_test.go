package profiles_test

import (
	"path/filepath"
	"testing"

	"stockade/profiles"
	"stockade/sandbox/program"
)

func TestProposeParsesAndMatches(t *testing.T) {
	site, dir := filepath.Join(t.TempDir(), "site-packages"), t.TempDir()
	write(t, filepath.Join(site, "my_server.py"), "")
	tests := []struct {
		name string
		prog program.Program
		base string
	}{
		{"package", program.Program{Runtime: program.Node, Package: "@a/b", Entry: "/x/node_modules/@a/b/index.js", Named: "/usr/bin/node", Args: []string{"/data"}}, "node"},
		{"package that is not installed", program.Program{Runtime: program.Node, Package: "@a/b", Entry: "/x/index.js", Named: "/usr/bin/node"}, "node"},
		{"entry", program.Program{Runtime: program.Node, Entry: "/x/my server.js", Named: "/usr/bin/node"}, "node"},
		{"pattern signs", program.Program{Named: "/bin/a*b[c]?d\\e"}, "static"},
		{"quotes", program.Program{Named: `/bin/"it's": #x`}, "static"},
		{"number", program.Program{Named: "/bin/123"}, "static"},
		{"word of YAML", program.Program{Named: "/bin/null"}, "static"},
		{"dynamic", program.Program{Named: "/bin/x", Execute: []string{"/bin/x", "/lib/ld.so"}}, "base"},
		{"python", program.Program{Runtime: program.Python, Package: "my_server", Named: "/usr/bin/python3", Read: []program.Need{{Path: site}}, Sites: []string{site}}, "python"},
		{"shell", program.Program{Runtime: program.Shell, Entry: "/x/run.sh", Named: "/x/run.sh"}, "base"},
		{"letters beyond ASCII", program.Program{Named: "/bin/dänger-ß"}, "static"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := profiles.Propose(tt.prog, profiles.FindModule(tt.prog, dir), "mine")
			p, err := profiles.Parse("mine.yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if p.Name.Value != "mine" || len(p.Extends) != 1 || p.Extends[0].Value != tt.base {
				t.Errorf("name %q extends %v", p.Name.Value, p.Extends)
			}
			s := places(t, map[string]string{"user/mine.yaml": string(text)})
			s.Dir = dir
			if found, err := s.Match(tt.prog); err != nil || found == nil || found.Name.Value != "mine" {
				t.Errorf("the proposal matches %v (%v)\n%s", found, err, text)
			}
			if _, err := s.Complete(p); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProposeNamesNoInterpreter: a proposal for code on a command line, or for a module that
// is not installed, matches nothing, since it would match every server of the language.
func TestProposeNamesNoInterpreter(t *testing.T) {
	for name, prog := range map[string]program.Program{
		"code":                         {Runtime: program.Node, Named: "/usr/bin/node"},
		"module of the working folder": {Runtime: program.Python, Package: "my_server", Named: "/usr/bin/python3"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := profiles.Parse("p", profiles.Propose(prog, "/home/me/project/my_server", "p"))
			if err != nil || len(p.Match.Commands) > 0 || len(p.Match.Packages) > 0 {
				t.Errorf("%v, %+v", err, p.Match)
			}
		})
	}
}

func TestProposeTakesFolderArguments(t *testing.T) {
	with, err := profiles.Parse("p", profiles.Propose(program.Program{Named: "/bin/x", Args: []string{"~/x"}}, "", "p"))
	if err != nil || !with.Roots.FromArgs.Value || len(with.Filesystem.Write) != 1 {
		t.Errorf("%+v, %v", with, err)
	}
	without, err := profiles.Parse("p", profiles.Propose(program.Program{Named: "/bin/x", Args: []string{"--fast"}}, "", "p"))
	if err != nil || without.Roots.FromArgs.Value || len(without.Filesystem.Write) != 0 {
		t.Errorf("%+v, %v", without, err)
	}
	mustCompile(t, with, func(f *profiles.Facts) { f.Env["TZ"] = "UTC" })
}

func FuzzPropose(f *testing.F) {
	f.Add("@a/b", "/x/y.js", "/bin/node", "name", uint8(1))
	f.Add("a\nb", "/x/\x00", "/bin/\u202e", "na/me", uint8(0))
	f.Add("\xff", "/é*", "", "", uint8(2))
	f.Fuzz(func(t *testing.T, pkg, entry, named, name string, runtime uint8) {
		text := profiles.Propose(program.Program{Runtime: program.Runtime(runtime % 4), Package: pkg, Entry: entry, Named: named}, entry, name)
		if _, err := profiles.Parse("p.yaml", text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	})
}
