package profiles_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
)

const (
	store  = "/home/me/.local/share/stockade/packages"
	digest = "0123456789abcdef"
)

func inStore(f *profiles.Facts) { f.Packages = store }

// TestStoreIdentity: in the store the folder's name is the package, and what only looks
// alike is not.
func TestStoreIdentity(t *testing.T) {
	const npm = "/npm/@acme/github-mcp@1.2.3-" + digest
	const script = "/node_modules/@acme/github-mcp/dist/index.js"
	tests := []struct {
		name  string
		store string
		prog  program.Program
		want  string // the profile that matches
	}{
		{"npm", store, nodeServer("@acme/github-mcp", store+npm+script), "npm"},
		{"whatever its package.json says", store, nodeServer("evil", store+npm+script), "npm"},
		{"bin of a package that it needs", store, nodeServer("other", store+npm+"/node_modules/other/cli.js"), "npm"},
		{"native program in npm", store, program.Program{File: store + npm + "/node_modules/@acme/github-mcp-linux/bin/server", Named: "/x"}, "npm"},
		{"prerelease", store, nodeServer("", store+"/npm/@acme/github-mcp@1.2.3-beta.1+b-"+digest+script), "npm"},
		{"pypi script", store, program.Program{File: "/usr/bin/python3.11", Runtime: program.Python, Entry: store + "/pypi/my-server@1.0-" + digest + "/venv/bin/my-server", Named: "/x"}, "pypi"},
		{"pypi native", store, program.Program{File: store + "/pypi/my-server@1!2.0-" + digest + "/venv/bin/my-server", Named: "/x"}, "pypi"},
		{"a name that nobody vouches for", store, nodeServer("@acme/github-mcp", store+"/npm/+/@acme/github-mcp@1.2.3-"+digest+script), ""},
		{"the same of pypi", store, program.Program{File: "/usr/bin/python3.11", Runtime: program.Python, Entry: store + "/pypi/+/my-server@1.0-" + digest + "/venv/bin/my-server", Named: "/x"}, ""},
		{"another package", store, nodeServer("@acme/github-mcp", store+"/npm/evil@1.2.3-"+digest+"/node_modules/@acme/github-mcp/index.js"), ""},
		{"another kind", store, nodeServer("", store+"/pypi/@acme/github-mcp@1-"+digest+"/index.js"), ""},
		{"no store", "", nodeServer("", store+npm+script), ""},
		{"a copy of the store", store, nodeServer("", "/elsewhere/stockade/packages"+npm+"/bin/index.js"), ""},
		{"a store whose name goes on", store, nodeServer("", store+"-2"+npm+"/bin/index.js"), ""},
		{"a project of that shape", store, nodeServer("", "/repo"+store+npm+"/bin/index.js"), ""},
		{"a stage", store, nodeServer("", store+"/.partial/k/tree"+npm+"/bin/index.js"), ""},
		{"no digest", store, nodeServer("", store+"/npm/@acme/github-mcp@1.2.3/bin/index.js"), ""},
		{"short digest", store, nodeServer("", store+"/npm/@acme/github-mcp@1.2.3-"+digest[1:]+"/bin/index.js"), ""},
		{"no digest, but letters", store, nodeServer("", store+"/npm/@acme/github-mcp@1.2.3-ABCDEF0123456789/bin/index.js"), ""},
		{"no version", store, nodeServer("", store+"/npm/@acme/github-mcp@-"+digest+"/bin/index.js"), ""},
		{"no name", store, nodeServer("", store+"/npm/@acme/@1-"+digest+"/bin/index.js"), ""},
		{"no scope", store, nodeServer("", store+"/npm/@/github-mcp@1-"+digest+"/bin/index.js"), ""},
		{"hidden", store, nodeServer("", store+"/npm/@acme/.github-mcp@1-"+digest+"/bin/index.js"), ""},
		{"the entry itself", store, nodeServer("", store+npm), ""},
		{"interpreter of the store with code on its command line", store, program.Program{File: store + npm + "/node_modules/node/bin/node", Runtime: program.Node, Named: "/x"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := places(t, map[string]string{
				"user/npm.yaml":  "version: 1\nmatch: {packages: [\"npm:@acme/github-mcp\"]}\n",
				"user/pypi.yaml": "version: 1\nmatch: {packages: [\"pypi:my-server\"]}\n",
			})
			s.Packages = tt.store
			p, err := s.Match(tt.prog)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p != nil {
				got = p.Name.Value
			}
			if got != tt.want {
				t.Errorf("matches %q, want %q", got, tt.want)
			}
			where := home(t, "p", tt.prog, func(f *profiles.Facts) { f.Packages = tt.store })
			if stable := where == "p+npm+@acme+github-mcp" || where == "p+pypi+my-server"; stable != (tt.want != "") {
				t.Errorf("its home is %s", where)
			}
		})
	}
}

// TestStoreHomes: a home is kept over versions and contents, and is no other's.
func TestStoreHomes(t *testing.T) {
	at := func(entry string) string { return home(t, "p", nodeServer("", store+entry), inStore) }
	first := at("/npm/a@1.0.0-" + digest + "/node_modules/a/index.js")
	for _, same := range []string{"/npm/a@2.0.0-fedcba9876543210/node_modules/a/index.js", "/npm/a@1.0.0-" + digest + "/node_modules/a/other.js", "/npm/a@1.0.0-" + digest + "/node_modules/b/index.js"} {
		if got := at(same); got != first {
			t.Errorf("%s has the home %s, want %s", same, got, first)
		}
	}
	seen := map[string]string{}
	for what, name := range map[string]string{
		"npm": first, "pypi": home(t, "p", program.Program{Runtime: program.Python, File: "/usr/bin/python3", Entry: store + "/pypi/a@1-" + digest + "/venv/bin/a"}, inStore),
		"scoped": at("/npm/@a/b@1-" + digest + "/x.js"), "another": at("/npm/a.b@1-" + digest + "/x.js"), "another profile": home(t, "q", nodeServer("", store+"/npm/a@1-"+digest+"/x.js"), inStore),
		"a path": home(t, "p", nodeServer("", "/npm/a"), nil), "code": home(t, "p", program.Program{File: "/npm/a", Runtime: program.Node}, nil),
		"without a store": home(t, "p", nodeServer("", store+"/npm/a@1.0.0-"+digest+"/index.js"), nil),
	} {
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s share the home %s", what, other, name)
		}
		seen[name] = what
		for other := range seen {
			if strings.HasPrefix(name, other+"/") || strings.HasPrefix(other, name+"/") {
				t.Errorf("the homes %s and %s lie in each other", name, other)
			}
		}
	}
	if first != "p+npm+a" {
		t.Errorf("the home is %s", first)
	}
}

// TestStorePath: the real path counts, also of a data folder that is a link, and of a store
// that is one itself.
func TestStorePath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := profiles.StorePath(dir + "/none"); got != "" {
		t.Errorf("no store lies at %q", got)
	}
	for _, d := range []string{"disk/stockade/packages", "moved", "data/stockade"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "disk", "data/stockade/packages": "../../moved"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for data, want := range map[string]string{"disk": "/disk/stockade/packages", "link": "/disk/stockade/packages", "data": "/moved"} {
		if got := profiles.StorePath(filepath.Join(dir, data)); got != dir+want {
			t.Errorf("%s: the store lies at %q, want %q", data, got, dir+want)
		}
	}
}

// TestStoreIsGuarded: stockade's own files are open to a program of the store as far as its
// own entry, and a store that lies elsewhere is guarded there.
func TestStoreIsGuarded(t *testing.T) {
	entry := "/npm/a@1-" + digest
	server := func(f *profiles.Facts, where string) {
		f.Packages, f.Program = where, nodeServer("a", where+entry+"/node_modules/a/index.js")
	}
	always := func(change func(*profiles.Facts)) map[string]string {
		out := map[string]string{}
		for _, g := range mustCompile(t, parse(t, ""), change).Plan.Guarded {
			if g.Rule == sandbox.GuardAlways {
				out[g.Path] = g.Own
			} else if g.Own != "" {
				t.Errorf("%s is open to %s", g.Path, g.Own)
			}
		}
		return out
	}
	own := func(own string, more ...string) map[string]string {
		out := map[string]string{}
		for _, p := range append(more, "/home/me/.config/stockade", "/home/me/.local/state/stockade", "/home/me/.local/share/stockade", "/home/me/.cache/stockade") {
			out[p] = own
		}
		return out
	}
	if diff := cmp.Diff(own(""), always(inStore)); diff != "" {
		t.Errorf("a server of elsewhere (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(own(store+entry), always(func(f *profiles.Facts) { server(f, store) })); diff != "" {
		t.Errorf("a server of the store (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(own("/disk/packages"+entry, "/disk/packages"), always(func(f *profiles.Facts) { server(f, "/disk/packages") })); diff != "" {
		t.Errorf("a server of a store behind a link (-want +got):\n%s", diff)
	}
}

// TestStoreOpens goes through compile and the opening of a real folder: what a server of
// the store reads of it, and what no profile can grant. The data folder is a link.
func TestStoreOpens(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entry, other := "stockade/packages/npm/a@1.0.0-"+digest, "stockade/packages/npm/b@1.0.0-"+digest
	for _, e := range []string{entry, other} {
		write(t, filepath.Join(dir, "disk", e, "node_modules/a/index.js"), "")
	}
	if err := os.Symlink("disk", filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	tree := filepath.Join(dir, "disk", entry)
	binTrue, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	open := func(profile string, need string) error {
		r, err := profiles.Compile(parse(t, profile), func() profiles.Facts {
			f := profiles.FactsForTests()
			f.Home, f.Dir, f.Data, f.Packages = dir, dir, data, profiles.StorePath(data)
			f.Program = nodeServer("a", tree+"/node_modules/a/index.js")
			f.Program.File, f.Program.Argv, f.Program.Execute = binTrue, []string{"node", "x"}, []string{binTrue}
			f.Program.Read = []program.Need{{Path: need, Why: "package and its dependencies"}}
			return f
		}())
		if err != nil {
			t.Fatal(err)
		}
		// Only what is asked about: the folders of every jail are made by a start.
		r.Plan.Grants = slices.DeleteFunc(r.Plan.Grants, func(g sandbox.Grant) bool { return g.Origin.Source == sandbox.OriginAlways })
		o, err := sandbox.Open(r.Plan)
		if err == nil {
			o.Close()
		}
		return err
	}
	modules := tree + "/node_modules"
	if err := open("", modules); err != nil {
		t.Errorf("its own entry: %v", err)
	}
	for _, need := range []string{filepath.Join(dir, "disk", other), filepath.Join(dir, "disk/stockade/packages"), filepath.Join(dir, "disk/stockade/packages/npm")} {
		if err := open("", need); err == nil || !strings.Contains(err.Error(), "stockade's own files") {
			t.Errorf("%s, needed by a program of the store: %v", need, err)
		}
	}
	for _, list := range []string{"read", "write"} {
		for _, path := range []string{tree, filepath.Join(data, entry), filepath.Join(data, other), filepath.Join(data, "stockade/packages")} {
			profile := "filesystem: {" + list + ": [{path: \"" + path + "\", broad: true, reason: r}]}\n"
			if err := open(profile, modules); err == nil || !strings.Contains(err.Error(), "stockade's own files") {
				t.Errorf("%s of %s by a profile: %v", list, path, err)
			}
		}
	}
}

// TestProposeForTheStore: a first profile names the package that the folder says.
func TestProposeForTheStore(t *testing.T) {
	text := profiles.Propose(profiles.Proposal{Name: "p", Store: store, Program: nodeServer("evil", store+"/npm/@acme/x@1-"+digest+"/node_modules/@acme/x/index.js")})
	p, err := profiles.Parse("p.yaml", text)
	if err != nil || len(p.Match.Packages) != 1 || p.Match.Packages[0].Value != "npm:@acme/x" || len(p.Match.Commands) != 0 {
		t.Errorf("%+v, %v", p.Match, err)
	}
}
