package profiles_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/profiles"
	"stockade/sandbox/program"
)

func nodeServer(pkg, entry string) program.Program {
	return program.Program{File: "/usr/bin/node", Named: "/usr/bin/node", Runtime: program.Node, Package: pkg, Entry: entry}
}

// TestImpostorsDoNotMatch: a profile for a package, which may hold secrets, goes to what is
// installed under that name, and not to what calls itself so.
func TestImpostorsDoNotMatch(t *testing.T) {
	const name = "@acme/github-mcp"
	s := places(t, map[string]string{"user/github.yaml": "version: 1\nmatch: {packages: [\"npm:@acme/github-mcp\"]}\nenvironment: {secrets: [TOKEN]}\n"})
	tests := []struct {
		name  string
		prog  program.Program
		match bool
	}{
		{"installed", nodeServer(name, "/srv/node_modules/@acme/github-mcp/dist/index.js"), true},
		{"installed for everyone", nodeServer(name, "/usr/lib/node_modules/@acme/github-mcp/index.js"), true},
		{"installed by pnpm", nodeServer(name, "/srv/node_modules/.pnpm/@acme+github-mcp@1.2.3/node_modules/@acme/github-mcp/index.js"), true},
		{"pnpm with peers", nodeServer(name, "/srv/node_modules/.pnpm/@acme+github-mcp@1.2.3_zod@3.0.0/node_modules/@acme/github-mcp/index.js"), true},
		{"a folder of that name", nodeServer(name, "/repo/@acme/github-mcp/index.js"), false},
		{"any folder", nodeServer(name, "/repo/dist/index.js"), false},
		{"another package's folder", nodeServer(name, "/srv/node_modules/evil/index.js"), false},
		{"another scope", nodeServer(name, "/srv/node_modules/@evil/github-mcp/index.js"), false},
		{"only the scope", nodeServer(name, "/srv/node_modules/@acme/index.js"), false},
		{"a longer name", nodeServer(name, "/srv/node_modules/@acme/github-mcp2/index.js"), false},
		{"a folder that only ends alike", nodeServer(name, "/srv/my-node_modules/@acme/github-mcp/index.js"), false},
		{"brought along by a package", nodeServer(name, "/srv/node_modules/evil/node_modules/@acme/github-mcp/index.js"), false},
		{"brought along by a package in pnpm's store", nodeServer(name, "/srv/node_modules/.pnpm/evil@1.0.0/node_modules/@acme/github-mcp/index.js"), false},
		{"deep in pnpm's store", nodeServer(name, "/srv/node_modules/.pnpm/@acme+github-mcp@1/x/node_modules/@acme/github-mcp/index.js"), false},
		{"pnpm's store without a version", nodeServer(name, "/srv/node_modules/.pnpm/@acme+github-mcp/node_modules/@acme/github-mcp/index.js"), false},
		{"a dependency that calls itself so", nodeServer(name, "/srv/node_modules/@acme/github-mcp/node_modules/evil/index.js"), false},
		{"another name in its package.json", nodeServer("evil", "/srv/node_modules/@acme/github-mcp/index.js"), false},
		{"a file in the place of a package", nodeServer(name, "/srv/node_modules/@acme/github-mcp"), false},
		{"no script", nodeServer(name, ""), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := s.Match(tt.prog)
			if err != nil {
				t.Fatal(err)
			}
			if got := p != nil && p.Name.Value == "github"; got != tt.match {
				t.Errorf("matches: %v, want %v (%v)", got, tt.match, p)
			}
		})
	}
}

// TestAliases: a package under another name is what the person's package.json says it is.
func TestAliases(t *testing.T) {
	s := places(t, map[string]string{"user/github.yaml": "version: 1\nmatch: {packages: [\"npm:@acme/github-mcp\"]}\n"})
	tests := []struct {
		name, project, entry string
		match                bool
	}{
		{"declared", `{"dependencies": {"gh-1": "npm:@acme/github-mcp@1.2.3"}}`, "node_modules/gh-1/index.js", true},
		{"without a version", `{"devDependencies": {"gh-1": "npm:@acme/github-mcp"}}`, "node_modules/gh-1/index.js", true},
		{"scoped", `{"optionalDependencies": {"@my/gh": "npm:@acme/github-mcp@^1"}}`, "node_modules/@my/gh/index.js", true},
		{"not declared", `{"dependencies": {}}`, "node_modules/gh-1/index.js", false},
		{"another folder", `{"dependencies": {"gh-1": "npm:@acme/github-mcp@1.2.3"}}`, "node_modules/evil/index.js", false},
		{"a longer name", `{"dependencies": {"gh-1": "npm:@acme/github-mcp2@1.2.3"}}`, "node_modules/gh-1/index.js", false},
		{"no alias", `{"dependencies": {"evil": "1.2.3"}}`, "node_modules/evil/index.js", false},
		{"below a package", `{"dependencies": {"gh-1": "npm:@acme/github-mcp@1.2.3"}}`, "node_modules/evil/node_modules/gh-1/index.js", false},
		{"no package.json that can be read", `{"dependencies": [`, "node_modules/gh-1/index.js", false},
		{"no package.json", "", "node_modules/gh-1/index.js", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.project != "" {
				write(t, filepath.Join(dir, "package.json"), tt.project)
			}
			// What the package itself declares does not count.
			write(t, filepath.Join(dir, "node_modules/evil/package.json"), `{"dependencies": {"gh-1": "npm:@acme/github-mcp@1.2.3", "evil": "npm:@acme/github-mcp@1"}}`)
			p, err := s.Match(nodeServer("@acme/github-mcp", filepath.Join(dir, tt.entry)))
			if err != nil || (p != nil) != tt.match {
				t.Errorf("matches: %v, want %v (%v)", p != nil, tt.match, err)
			}
		})
	}
}

// TestModulesOfPython: what `python -m` runs is the installed package only when the working
// folder holds nothing of its name.
func TestModulesOfPython(t *testing.T) {
	base := t.TempDir()
	site, library := filepath.Join(base, "lib/site-packages"), filepath.Join(base, "lib/python3.11")
	for _, file := range []string{site + "/my_server/__main__.py", site + "/single.py", library + "/os.py", site + "/built.cpython-311-x86_64-linux-gnu.so", site + "/my_server_extra.py", base + "/elsewhere/linked/__main__.py"} {
		write(t, file, "")
	}
	if err := os.Symlink(base+"/elsewhere/linked", site+"/linked"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, module string
		here         string // a file in the working folder
		pattern      string
		found        string
		match        bool
	}{
		{"installed folder", "my_server", "", "my-server", site + "/my_server", true},
		{"installed file", "single", "", "single", site + "/single.py", true},
		{"compiled", "built", "", "built", site + "/built.cpython-311-x86_64-linux-gnu.so", true},
		{"module in a package", "my_server.cli", "", "my-server-cli", site + "/my_server", true},
		{"standard library", "os", "", "os", library + "/os.py", false},
		{"link out of the installation", "linked", "", "linked", base + "/elsewhere/linked", false},
		{"not there", "nothing", "", "nothing", "", false},
		{"folder in the working folder", "my_server", "my_server/__main__.py", "my-server", "HERE/my_server", false},
		{"file in the working folder", "my_server", "my_server.py", "my-server", "HERE/my_server.py", false},
		{"bytecode in the working folder", "my_server", "my_server.pyc", "my-server", "HERE/my_server.pyc", false},
		{"extension in the working folder", "my_server", "my_server.abi3.so", "my-server", "HERE/my_server.abi3.so", false},
		{"other files in the working folder", "my_server", "my_server.txt", "my-server", site + "/my_server", true},
		{"other module in the working folder", "my_server", "my_server_extra.py", "my-server", site + "/my_server", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := places(t, map[string]string{"user/p.yaml": "version: 1\nmatch: {packages: [\"pypi:" + tt.pattern + "\"]}\n"})
			s.Dir = filepath.Join(t.TempDir(), "site-packages") // the name alone makes nothing installed
			write(t, filepath.Join(s.Dir, "unrelated.txt"), "")
			if tt.here != "" {
				write(t, filepath.Join(s.Dir, tt.here), "")
			}
			prog := program.Program{File: "/usr/bin/python3", Named: "/usr/bin/python3", Runtime: program.Python, Package: tt.module, Read: []program.Need{{Path: library}, {Path: base + "/none"}, {Path: site}}, Sites: []string{site}}
			if got, want := profiles.FindModule(prog, s.Dir), strings.Replace(tt.found, "HERE", s.Dir, 1); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
			p, err := s.Match(prog)
			if err != nil {
				t.Fatal(err)
			}
			if (p != nil) != tt.match {
				t.Errorf("matches: %v, want %v", p != nil, tt.match)
			}
			s.Dir += "/gone"
			if p, err := s.Match(prog); p != nil || err != nil {
				t.Errorf("matches in a working folder that cannot be listed: %v, %v", p, err)
			}
		})
	}
}

// home is the name of a server's private home.
func home(t *testing.T, profile string, prog program.Program, change func(*profiles.Facts)) string {
	t.Helper()
	p := parse(t, "")
	p.Name.Value = profile
	path := mustCompile(t, p, func(f *profiles.Facts) {
		f.Program = prog
		if change != nil {
			change(f)
		}
	}).Plan.Home.Path
	name, found := strings.CutPrefix(path, "/home/me/.local/share/stockade/homes/")
	if !found {
		t.Errorf("the home is %q", path)
	}
	return name
}

// TestPrivateHomes: one installation under one profile has one home, and no other has it.
func TestPrivateHomes(t *testing.T) {
	long := "/" + strings.Repeat("x", 199)
	deep := strings.Repeat("/a.long.name", 100)
	servers := []program.Program{
		nodeServer("a", "/srv/node_modules/a/x.js"), nodeServer("a", "/repo/node_modules/a/x.js"), nodeServer("a", "/srv/node_modules/b/x.js"),
		nodeServer("a", "/x/a.js"), nodeServer("", "/x+a.js"), nodeServer("", "/x%2Ba.js"), nodeServer("", "/x a.js"), nodeServer("", "/y/a.js"), nodeServer("", "/x~/a.js"),
		{File: "/bin/a"},
		{File: "/bin/b"},
		{File: "/bin%2Fb"},
		{File: "/code/usr/bin/node"},
		{File: "/usr/bin/python3", Runtime: program.Python, Package: "a"},
		{File: "/usr/bin/node", Runtime: program.Node},
		{File: "/bin/dash", Runtime: program.Shell},
		nodeServer("", long+"/1"), nodeServer("", long+"/2"), nodeServer("", deep), nodeServer("", deep+"/1"), nodeServer("", deep+"/."), nodeServer("", deep[:200]), nodeServer("", deep[:197]),
	}
	for n := range 12 {
		servers = append(servers, nodeServer("", long[:190]+strings.Repeat(".", n+1)))
	}
	seen := map[string]int{}
	for i, s := range servers {
		for _, profile := range []string{"p", "q", "p-npm"} {
			name := home(t, profile, s, nil)
			again := home(t, profile, s, func(f *profiles.Facts) { f.Run, f.PID, f.Program.Args = "other", 1, []string{"--other"} })
			if name != again {
				t.Errorf("the home changes between runs: %s, %s", name, again)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("servers %d and %d share the home %s", other, i, name)
			}
			seen[name] = i
			parts := strings.Split(name, "/")
			for _, part := range parts {
				if len(part) > 255 || part == "" || part == "." || part == ".." || strings.ContainsAny(part, ": \x00") {
					t.Errorf("the home is %q", name)
				}
			}
			for above := range parts {
				if above > 0 && seen[strings.Join(parts[:above], "/")] != 0 {
					t.Errorf("the home %s lies in another", name)
				}
			}
		}
	}
	for other := range seen {
		for name := range seen {
			if strings.HasPrefix(name, other+"/") {
				t.Errorf("the home %s lies in the home %s", name, other)
			}
		}
	}
}

// TestHomesOfInstallations: what stays the same installation, and what an impostor gets.
func TestHomesOfInstallations(t *testing.T) {
	const name = "@acme/github-mcp"
	real := home(t, "github", nodeServer(name, "/srv/node_modules/@acme/github-mcp/dist/index.js"), nil)
	for what, entry := range map[string]string{
		"another script of it": "/srv/node_modules/@acme/github-mcp/cli.js",
		"pnpm":                 "/srv/node_modules/.pnpm/@acme+github-mcp@1.0.0/node_modules/@acme/github-mcp/dist/index.js",
		"pnpm after an update": "/srv/node_modules/.pnpm/@acme+github-mcp@2.0.0/node_modules/@acme/github-mcp/dist/index.js",
	} {
		if got := home(t, "github", nodeServer(name, entry), nil); got != real {
			t.Errorf("%s has the home %s, want %s", what, got, real)
		}
	}
	for _, entry := range []string{
		"/repo/index.js", "/repo/node_modules/@acme/github-mcp/dist/index.js", "/srv/node_modules/evil/index.js",
		"/srv/node_modules/evil/node_modules/@acme/github-mcp/dist/index.js", "/srv/node_modules/.pnpm/evil@1/node_modules/@acme/github-mcp/dist/index.js",
	} {
		if got := home(t, "github", nodeServer(name, entry), nil); got == real {
			t.Errorf("%s gets the home of %s", entry, name)
		}
	}
	module := program.Program{File: "/usr/bin/python3", Runtime: program.Python, Package: "my_server"}
	at := func(path string) func(*profiles.Facts) { return func(f *profiles.Facts) { f.Module = path } }
	installed := home(t, "p", module, at("/venv/lib/python3.11/site-packages/my_server"))
	if got := home(t, "p", module, at("/repo/my_server.py")); got == installed {
		t.Errorf("a module of the working folder gets the home %s", got)
	}
	// The folder decides what such code is, as far as it can be told.
	code := program.Program{File: "/usr/bin/node", Runtime: program.Node}
	if here, there := home(t, "p", code, nil), home(t, "p", code, func(f *profiles.Facts) { f.Dir = "/repo" }); here == there {
		t.Errorf("code of another folder gets the home %s", here)
	}
}
