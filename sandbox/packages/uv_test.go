package packages_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
)

// uvFlags are the flags of uv 0.7 and later that its command line reference lists for each
// command in use, with the one letter that tells whether a value follows.
var uvFlags = map[string][]string{
	"venv": {"--cache-dir=", "--color=", "--config-file=", "--no-config", "--no-progress", "--no-python-downloads", "--offline", "--python=", "--relocatable"},
	"pip compile": {
		"--cache-dir=", "--color=", "--config-file=", "--generate-hashes", "--no-annotate", "--no-config", "--no-header", "--no-progress",
		"--no-python-downloads", "--only-binary=", "--output-file=", "--python=",
	},
	"pip sync": {
		"--cache-dir=", "--color=", "--config-file=", "--link-mode=", "--no-config", "--no-progress", "--no-python-downloads", "--only-binary=",
		"--python=", "--require-hashes",
	},
}

// TestUvSteps compares the commands with uv's reference. No uv runs here.
func TestUvSteps(t *testing.T) {
	p := person(t)
	r := pipRequest(packages.Spec{Name: "example-server", Version: ">=1", Extras: []string{"cli"}})
	for _, conf := range []string{"", "index-url = \"https://i.example/simple\"\n"} {
		if conf != "" {
			write(t, filepath.Join(p.Home, ".config", "uv", "uv.toml"), conf)
		}
		c, err := packages.FindUvConfig(p, r, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s := newStage(t)
		steps, err := packages.UvSteps(r, s, "/bin/uv", systemPython, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Prepare(r, s); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, filepath.Join(s.Home, "requirements.in")); got != "example-server[cli]>=1\n" {
			t.Errorf("the requirements are %q", got)
		}
		access := []packages.Access{packages.Offline, packages.Online, packages.Online, packages.Offline}
		for i, step := range steps {
			if step.Access != access[i] {
				t.Errorf("step %d has the access %d", i, step.Access)
			}
			if step.Argv[0] != "/bin/uv" {
				continue
			}
			command := step.Argv[1]
			rest := step.Argv[2:]
			if command == "pip" {
				command, rest = command+" "+rest[0], rest[1:]
			}
			for _, word := range rest {
				flag, _, valued := strings.Cut(word, "=")
				if valued {
					flag += "="
				}
				if strings.HasPrefix(word, "-") && !slices.Contains(uvFlags[command], flag) {
					t.Errorf("uv %s has no %q", command, word)
				}
			}
			if slices.Contains(step.Argv, "--no-config") != (conf == "") {
				t.Errorf("uv %s looks for configuration by itself: %q", command, step.Argv)
			}
		}
	}
}

func TestUvTakes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		spec    packages.Spec
		scripts []string
		want    bool
	}{
		{"registry", packages.Spec{Name: "x"}, nil, true},
		{"wheel", packages.Spec{Source: packages.Archive, Place: "/x-1-py3-none-any.whl"}, nil, true},
		{"source archive", packages.Spec{Source: packages.Archive, Place: "/x-1.tar.gz"}, nil, false},
		{"folder", packages.Spec{Source: packages.Folder, Place: "/x"}, nil, false},
		{"repository", packages.Spec{Source: packages.Git, Place: "git+https://g.example/x"}, nil, false},
		{"built", packages.Spec{Name: "x"}, []string{"x"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := pipRequest(tt.spec)
			r.Scripts = tt.scripts
			if got := packages.UvTakes(r); got != tt.want {
				t.Errorf("got %v", got)
			}
			if _, err := packages.UvSteps(r, newStage(t), "/bin/uv", systemPython, packages.UvConfig{}); (err == nil) != tt.want {
				t.Errorf("steps: %v", err)
			}
		})
	}
}

func TestUvConfigReach(t *testing.T) {
	tests := []struct {
		name, toml       string
		environ          []string
		rules, variables []string
		own              bool // uv's own index is meant
	}{
		{name: "default", own: true},
		{name: "index-url", toml: "index-url = \"https://me:t0psecret@i.example/simple\" # one\n", rules: []string{"i.example:443"}},
		{name: "tables", toml: "[[index]]\nname = \"a\"\nurl = \"https://a.example/simple\"\n[[index]]\nurl = 'http://b.example:8080/'\ndefault = true\n", rules: []string{"a.example:443", "b.example:8080"}},
		{name: "inline", toml: "index = [{ url = \"https://a.example/\", default = true }]\nextra-index-url = [\n  \"https://b.example/\",\n]\n", rules: []string{"a.example:443", "b.example:443"}},
		{name: "not for installs", toml: "publish-url = \"https://publish.example\"\npython-install-mirror = \"https://mirror.example\"\n", own: true},
		{name: "variables", environ: []string{"UV_DEFAULT_INDEX=https://d.example/", "UV_INDEX=mine=https://m.example/?a=b https://n.example/", "UV_INDEX_MINE_PASSWORD=t0psecret", "UV_CACHE_DIR=/x", "UV_PROJECT=/y"}, rules: []string{"d.example:443", "m.example:443", "n.example:443"}, variables: []string{"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_MINE_PASSWORD"}},
		{name: "proxy", environ: []string{"ALL_PROXY=http://p.example:3128", "UV_DEFAULT_INDEX=https://d.example/"}, rules: []string{"p.example:3128"}, variables: []string{"ALL_PROXY", "UV_DEFAULT_INDEX"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t, tt.environ...)
			if tt.toml != "" {
				write(t, filepath.Join(p.Home, ".config", "uv", "uv.toml"), tt.toml)
			}
			c, err := packages.FindUvConfig(p, pipRequest(packages.Spec{Name: "x"}), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if c.OwnIndex != tt.own {
				t.Errorf("uv's own index: got %v, want %v", c.OwnIndex, tt.own)
			}
			if diff := cmp.Diff(tt.rules, c.Reach.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.variables, c.Reach.Variables); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUvInstalled reads a lock as uv writes it, beside an environment that pip made.
func TestUvInstalled(t *testing.T) {
	s := newStage(t)
	site := filepath.Join(s.Tree, "venv", "lib", "python3.11", "site-packages")
	write(t, filepath.Join(site, "example_server-1.2.0.dist-info", "METADATA"), "")
	write(t, filepath.Join(site, "dep-1.0.dist-info", "METADATA"), "")
	lock := "dep==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nexample-server==1.2.0 \\\n    --hash=sha256:cc\n"
	write(t, filepath.Join(s.Tree, "requirements.txt"), lock)
	r := pipRequest(packages.Spec{Name: "example-server"})
	got, err := packages.UvInstalled(r, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []packages.Locked{{Name: "dep", Version: "1.0", Integrity: "sha256=aa sha256=bb"}, {Name: "example-server", Version: "1.2.0", Integrity: "sha256=cc"}}
	if diff := cmp.Diff(want, got.Locked); diff != "" || got.Version != "1.2.0" {
		t.Errorf("installed %q (-want +got):\n%s", got.Version, diff)
	}
	write(t, filepath.Join(site, "planted-1.0.dist-info", "METADATA"), "")
	if _, err := packages.UvInstalled(r, s); err == nil || !strings.Contains(err.Error(), `"planted" is there, and nothing asked for it`) {
		t.Errorf("a package that nobody asked for: %v", err)
	}
	write(t, filepath.Join(s.Tree, "requirements.txt"), "dep==1.0\n")
	if _, err := packages.UvInstalled(r, s); err == nil || !strings.Contains(err.Error(), "no hash") {
		t.Errorf("a lock without hashes: %v", err)
	}
}

func TestUvFailureWords(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"no package", "  × No solution found when resolving dependencies:\n  ╰─▶ Because nothing was not found in the package registry and you require\n      nothing, we can conclude that your requirements are unsatisfiable.\n", "the index has no such package"},
		{"no version", "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of dep==9 and you require dep==9, …\n", "no version of the package matches"},
		{"hash", "  × Failed to download `dep==1.0`\n  ╰─▶ Hash mismatch for `dep==1.0`\n\n      Expected:\n", `the archive of "dep==1.0" is not what the index's hash says`},
		{"down", "error: Failed to fetch: `https://i.example/simple/dep/`\n  Caused by: tcp connect error: Connection refused (os error 111)\n", "the registry i.example does not answer (ECONNREFUSED)"},
		{"no wheel", "  ╰─▶ Because source==1.0 has no usable wheels and building from source is disabled, …\n", "there is no wheel of a package for this machine"},
		{"no interpreter", "error: No interpreter found for Python 3.99 in managed installations or search path\n", "uv finds no interpreter for Python 3.99"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fails(t, packages.PipFailure(newStage(t), []byte(tt.output), 1), tt.want)
		})
	}
}
