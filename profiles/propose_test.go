package profiles_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			text := profiles.Propose(profiles.Proposal{Name: "mine", Program: tt.prog, Module: profiles.FindModule(tt.prog, dir)})
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
			p, err := profiles.Parse("p", profiles.Propose(profiles.Proposal{Name: "p", Program: prog, Module: "/home/me/project/my_server"}))
			if err != nil || len(p.Match.Commands) > 0 || len(p.Match.Packages) > 0 {
				t.Errorf("%v, %+v", err, p.Match)
			}
		})
	}
}

func TestProposeTakesFolderArguments(t *testing.T) {
	with, err := profiles.Parse("p", profiles.Propose(profiles.Proposal{Name: "p", Program: program.Program{Named: "/bin/x", Args: []string{"~/x"}}}))
	if err != nil || !with.Roots.FromArgs.Value || len(with.Filesystem.Write) != 1 {
		t.Errorf("%+v, %v", with, err)
	}
	without, err := profiles.Parse("p", profiles.Propose(profiles.Proposal{Name: "p", Program: program.Program{Named: "/bin/x", Args: []string{"--fast"}}}))
	if err != nil || without.Roots.FromArgs.Value || len(without.Filesystem.Write) != 0 {
		t.Errorf("%+v, %v", without, err)
	}
	mustCompile(t, with, func(f *profiles.Facts) { f.Env["TZ"] = "UTC" })
}

// TestProposeMentions: what a server's files name is written down as comments, with its
// place, and is a profile when the signs of comment are taken away.
func TestProposeMentions(t *testing.T) {
	m := &profiles.Mentions{
		Secrets: []profiles.Mention{
			{"GITHUB_TOKEN", "README.md:12"},
			{"GITHUB_TOKEN", "again.md:1"},
			{"NO_PLACE_KEY", ""},
			{"NODE_OPTIONS", "x"},
			{"A B", "x"},
			{"Y", "bad\nversion: 2"},
			{"A\nB", "x"},
			{"LONG_PLACE_KEY", strings.Repeat("x", 300)},
			{strings.Repeat("X", 300), "x"},
		},
		Variables: []profiles.Mention{{"GITHUB_TOKEN", "other list"}, {"API_URL", "dist/index.js:3"}, {"PATH", "x"}, {"LD_PRELOAD", "x"}},
		Hosts:     []profiles.Mention{{"api.github.com:443", "dist/x.js:9"}, {"bad host:443", "x"}, {"all", "x"}, {"a.example:99999", "x"}},
		Cut:       true,
	}
	text := profiles.Propose(profiles.Proposal{Name: "p", Program: program.Program{Named: "/bin/x"}, Mentions: m})
	p, err := profiles.Parse("p.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(p.Environment.Secrets) > 0 || len(p.Environment.Pass) > 0 || len(p.Network.Hosts) > 0 || p.Network.Egress.Value != profiles.EgressNone {
		t.Errorf("mentions are granted: %+v %+v", p.Environment, p.Network)
	}
	for _, want := range []string{"  #   - GITHUB_TOKEN            # README.md:12\n", "  #   - NO_PLACE_KEY\n", "  #   - LONG_PLACE_KEY\n", "  #   - \"api.github.com:443\"    # dist/x.js:9\n", "more files than were read"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	open := uncommented(t, text)
	var secrets, pass, hosts []string
	for _, s := range open.Environment.Secrets {
		secrets = append(secrets, s.Name)
	}
	for _, s := range open.Environment.Pass {
		pass = append(pass, s.Value)
	}
	for _, r := range open.Network.Hosts {
		hosts = append(hosts, r.To)
	}
	if diff := cmp.Diff([][]string{{"GITHUB_TOKEN", "NO_PLACE_KEY", "Y", "LONG_PLACE_KEY"}, {"API_URL"}, {"api.github.com:443"}}, [][]string{secrets, pass, hosts}); diff != "" {
		t.Errorf("without the signs of comment (-want +got):\n%s", diff)
	}
}

func TestProposeFewMentions(t *testing.T) {
	var many profiles.Mentions
	for i := range 200 {
		many.Variables = append(many.Variables, profiles.Mention{Name: fmt.Sprintf("V_%d", i)})
	}
	text := profiles.Propose(profiles.Proposal{Name: "p", Program: program.Program{Named: "/bin/x"}, Mentions: &many})
	if !strings.Contains(string(text), "# And 140 more.") {
		t.Errorf("the rest is not counted:\n%s", text)
	}
	if got := len(uncommented(t, text).Environment.Pass); got != 60 {
		t.Errorf("%d variables", got)
	}
}

// uncommented parses a proposal as a person leaves it who wants all of it.
func uncommented(t *testing.T, text []byte) *profiles.Profile {
	t.Helper()
	open := string(text)
	if strings.Contains(open, "  # egress:\n") {
		open = strings.Replace(open, "  egress: none", "  # nothing but", 1)
	}
	lines := strings.Split(open, "\n")
	for i, line := range lines {
		for _, start := range []string{"  # egress:", "  # pass:", "  # secrets:", "  #   - "} {
			if strings.HasPrefix(line, start) {
				lines[i] = "  " + strings.TrimPrefix(line, "  # ")
			}
		}
	}
	open = strings.Join(lines, "\n")
	p, err := profiles.Parse("p.yaml", []byte(open))
	if err != nil {
		t.Fatalf("without the signs of comment: %v\n%s", err, open)
	}
	return p
}

func FuzzPropose(f *testing.F) {
	f.Add("@a/b", "/x/y.js", "/bin/node", "name", uint8(1), "TOKEN", "README.md:1", "a.example:443")
	f.Add("a\nb", "/x/\x00", "/bin/\u202e", "na/me", uint8(0), "A\nB", "x\ny", "none")
	f.Add("\xff", "/é*", "", "", uint8(2), "null", "#", "*:1-2")
	f.Add("", "", "", "", uint8(3), "pass", "'\"", "ß.example")
	f.Fuzz(func(t *testing.T, pkg, entry, named, name string, runtime uint8, variable, from, host string) {
		text := profiles.Propose(profiles.Proposal{
			Name: name, Module: entry, Program: program.Program{Runtime: program.Runtime(runtime % 4), Package: pkg, Entry: entry, Named: named},
			Mentions: &profiles.Mentions{
				Secrets: []profiles.Mention{{variable, from}, {variable + "_KEY", from}}, Variables: []profiles.Mention{{variable, from}, {from, variable}},
				Hosts: []profiles.Mention{{host, from}, {host + ":443", ""}},
			},
		})
		if _, err := profiles.Parse("p.yaml", text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		uncommented(t, text)
	})
}
