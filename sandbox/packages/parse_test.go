package packages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
)

var here = packages.Where{Home: "/home/me", Dir: "/here"}

// parsed is what a command line is taken apart to, for comparison.
type parsed struct {
	Key, Program, Runtime string
	Args                  []string
	Notes                 int
}

func TestParse(t *testing.T) {
	tests := []struct {
		line string
		want parsed
	}{
		{"npx -y @a/b@1.2 x --y", parsed{Key: "npm:@a/b@1.2", Args: []string{"x", "--y"}}},
		{"npx a", parsed{Key: "npm:a"}},
		{"npx --yes -- a@latest -x", parsed{Key: "npm:a", Args: []string{"-x"}}},
		{"npx -y a@^1.2.0", parsed{Key: "npm:a@^1.2.0"}},
		{"npx -y a@next --port 1 -p x", parsed{Key: "npm:a@next", Args: []string{"--port", "1", "-p", "x"}}},
		{"npx -p a -p b c d", parsed{Key: "npm:a + b", Program: "c", Args: []string{"d"}}},
		{"npx -p b -p a c", parsed{Key: "npm:b + a", Program: "c"}},
		{"npx --package=a b", parsed{Key: "npm:a", Program: "b"}},
		{"npx -y --package a@1 -- b c", parsed{Key: "npm:a@1", Program: "b", Args: []string{"c"}}},
		{"npx -pa b", parsed{Key: "npm:a", Program: "b"}},
		{"npx --prefer-online -y a", parsed{Key: "npm:a", Notes: 1}},
		{"/usr/local/bin/npx -y a", parsed{Key: "npm:a"}},
		{"node /usr/lib/node_modules/npm/bin/npx-cli.js -y a", parsed{Key: "npm:a"}},
		{"npx -y alias@npm:b@2", parsed{Key: "npm:b@2"}},
		{"npx -y mcp-remote https://example.com/mcp --header X:1", parsed{Key: "npm:mcp-remote", Args: []string{"https://example.com/mcp", "--header", "X:1"}}},
		{"npx user/repo", parsed{Key: `npm:" git \"git+https://github.com/user/repo.git\""`}},
		{"npx github:u/r#abc", parsed{Key: `npm:" git \"git+https://github.com/u/r.git#abc\""`}},
		{"npx git+https://example.com/x.git#v1", parsed{Key: `npm:" git \"git+https://example.com/x.git#v1\""`}},
		{"npx https://example.com/a.tgz", parsed{Key: `npm:" archive \"https://example.com/a.tgz\""`}},
		{"npx ./x y", parsed{Key: `npm:" folder \"/here/x\""`, Args: []string{"y"}}},
		{"npx ~/x", parsed{Key: `npm:" folder \"/home/me/x\""`}},
		{"npx file:../a-1.0.tgz", parsed{Key: `npm:" archive \"/a-1.0.tgz\""`}},
		{"npm exec -y -- a b", parsed{Key: "npm:a", Args: []string{"b"}}},
		{"npm exec a -y -- --flag", parsed{Key: "npm:a", Args: []string{"--flag"}}},
		{"npm x --package=a -- b", parsed{Key: "npm:a", Program: "b"}},
		{"npm --silent exec -- a", parsed{Key: "npm:a"}},
		{"bunx --bun a", parsed{Key: "npm:a", Runtime: "bun"}},
		{"bun x a@1 b", parsed{Key: "npm:a@1", Args: []string{"b"}}},
		{"bunx -p a b --bun", parsed{Key: "npm:a", Program: "b", Args: []string{"--bun"}}},
		{"pnpm dlx --package=a b c", parsed{Key: "npm:a", Program: "b", Args: []string{"c"}}},
		{"pnpx a", parsed{Key: "npm:a"}},
		{"pnpm --silent dlx a", parsed{Key: "npm:a"}},
		{"yarn dlx -q -p a b", parsed{Key: "npm:a", Program: "b"}},
		{"uvx mcp-server-git --repository x", parsed{Key: "pypi:mcp-server-git", Program: "mcp-server-git", Args: []string{"--repository", "x"}}},
		{"uvx Mcp_Server.Git", parsed{Key: "pypi:mcp-server-git", Program: "Mcp_Server.Git"}},
		{"uvx --from mcp[cli]==1.2 mcp run", parsed{Key: "pypi:mcp[cli]@==1.2", Program: "mcp", Args: []string{"run"}}},
		{"uvx --with a --with b,c x", parsed{Key: "pypi:x + a + b + c", Program: "x"}},
		{"uvx --with=a>=1,<2 x", parsed{Key: "pypi:x + a@>=1,<2", Program: "x"}},
		{"uvx -p 3.12 x@1.0", parsed{Key: `pypi:x@==1.0 with python "3.12"`, Program: "x"}},
		{"uvx x@latest", parsed{Key: "pypi:x", Program: "x"}},
		{"uvx --refresh x", parsed{Key: "pypi:x", Program: "x", Notes: 1}},
		{"uvx --from git+https://github.com/a/b c", parsed{Key: `pypi:" git \"git+https://github.com/a/b\""`, Program: "c"}},
		{"uv tool run --python 3.11 x y", parsed{Key: `pypi:x with python "3.11"`, Program: "x", Args: []string{"y"}}},
		{"pipx run --spec x==1 y z", parsed{Key: "pypi:x@==1", Program: "y", Args: []string{"z"}}},
		{"pipx run x", parsed{Key: "pypi:x", Program: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			c, ok, err := packages.Parse(strings.Fields(tt.line), here)
			if !ok || err != nil {
				t.Fatalf("got %v, %v", ok, err)
			}
			got := parsed{Key: c.Request.Key(), Program: c.Program, Runtime: c.Runtime, Args: c.Args, Notes: len(c.Notes)}
			if len(got.Args) == 0 {
				got.Args = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseLeavesOthers(t *testing.T) {
	for _, line := range []string{
		"node npx", "my-npx a", "npm start", "npm exec", "npm", "pnpm run dlx", "yarn", "bun run x", "uv tool list", "uv run x", "pipx list", "python -m x", "npx-like",
	} {
		if _, ok, err := packages.Parse(strings.Fields(line), here); ok && line != "npm exec" {
			t.Errorf("%s: got %v, %v; it is no package runner", line, ok, err)
		}
	}
	if _, ok, _ := packages.Parse(nil, here); ok {
		t.Error("no words are a package runner")
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ line, want string }{
		{"npx", "names no package"},
		{"npx -y", "names no package"},
		{"npm exec", "names no package"},
		{"npx -c x", "npx -c cannot be kept: it runs a line of shell"},
		{"npx --call=x", "npx --call cannot be kept"},
		{"npx --registry https://evil.example a", "npx --registry cannot be kept"},
		{"npx --userconfig=x a", "npx --userconfig cannot be kept"},
		{"npx --prefix /x a", "npx --prefix cannot be kept"},
		{"npx --frob a", "npx has no flag --frob that stockade knows"},
		{"npx -yq a", "write the flags"},
		{"npx -p", "needs a value"},
		{"npx ..", ""},
		{"npx ..a", "no name"},
		{"npx a/../b", "no name"},
		{"npx @a/../b", "no name"},
		{"npx @/b", "no name"},
		{"npx -y @a/b/c", "no name"},
		{"npx a@--x", "no version"},
		{"npx git+ssh://git@example.com/x", "git+ssh"},
		{"npx https://user:password@example.com/a.tgz", "user or password"},
		{"npx http://example.com/a.tgz", "http://"},
		{"npm exec a --dir x", "npm exec has no flag --dir"},
		{"npm --prefix /x exec -- a", "npm exec --prefix cannot be kept"},
		{"bunx --cwd x a", "bunx --cwd cannot be kept"},
		{"pnpm dlx -c x", "pnpm dlx -c cannot be kept"},
		{"pnpm -C /x dlx a", "pnpm dlx -C cannot be kept"},
		{"yarn dlx --frob a", "yarn dlx has no flag --frob"},
		{"uvx --index-url https://evil.example x", "uvx --index-url cannot be kept"},
		{"uvx --with-editable . x", "uvx --with-editable cannot be kept"},
		{"uvx x==", "no version"},
		{"uvx x[", "bracket"},
		{"uvx -x", "uvx has no flag -x"},
		{"uvx x;y", "condition"},
		{"uvx http://example.com/x.whl", ""},
		{"pipx run --pip-args x y", "pipx run --pip-args cannot be kept"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			c, ok, err := packages.Parse(strings.Fields(tt.line), here)
			if tt.want == "" && err == nil {
				if s := c.Request.Specs[0]; s.Source == packages.Registry {
					t.Fatalf("got %+v of a registry", s)
				}
				return
			}
			if !ok || err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "password@") {
				t.Fatalf("got %v, %v; want an error with %q", ok, err, tt.want)
			}
			hinted, isHint := err.(interface{ Hint() string })
			if !isHint || hinted.Hint() == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestAddRequest(t *testing.T) {
	for word, want := range map[string]string{
		"npm:@a/b": "npm:@a/b", "npm:a@1": "npm:a@1", "pypi:A_b[x]>=1": "pypi:a-b[x]@>=1", "npm:a@latest": "npm:a",
	} {
		if r, err := packages.AddRequest(word); err != nil || r.Key() != want {
			t.Errorf("%s: got %v, want %q", word, err, want)
		}
	}
	for _, word := range []string{"a", "npm:", "npm:./x", "gem:x", "npm:../x", "pypi:x y", "npm:https://e.example/a.tgz"} {
		if _, err := packages.AddRequest(word); err == nil {
			t.Errorf("%s: no error", word)
		}
	}
}

// FuzzParse: whatever the words are, the server's own are the last ones as they were, names
// lead nowhere, and a key says the same twice.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"npx\x00-y\x00@a/b@1\x00x", "uvx\x00--from\x00a[b]>=1\x00c", "bash\x00-c\x00A=b npx 'x y'", "npm\x00exec\x00a\x00--\x00-b", "env\x00A=b\x00npx\x00c"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x00")
		if w := packages.Wrapped(argv); w != nil && w.Why == "" {
			t.Errorf("%q is wrapped, and nothing says why", argv)
		}
		c, ok, err := packages.Parse(argv, here)
		if !ok || err != nil {
			return
		}
		if len(c.Args) > len(argv) || !slices.Equal(c.Args, argv[len(argv)-len(c.Args):]) && c.Runner != "npm exec" {
			t.Errorf("the server's words %q are not the end of %q", c.Args, argv)
		}
		key := c.Request.Key()
		if again := c.Request.Key(); again != key || strings.ContainsAny(key, "\n\x00") {
			t.Errorf("the key is %q, and then %q", key, again)
		}
		for _, s := range c.Request.Specs {
			if s.Source == packages.Registry && (s.Name == "" || strings.Contains(s.Name, "..") && strings.Contains(s.Name, "/..") || strings.HasPrefix(s.Name, "/") || strings.HasPrefix(s.Name, "-") || strings.HasPrefix(s.Name, ".")) {
				t.Errorf("the name is %q", s.Name)
			}
		}
	})
}

// TestVersionsAreVersions: what npm would take for a repository, an archive or a flag behind a
// package's name is none: it would be stored under that name, and get its profile.
func TestVersionsAreVersions(t *testing.T) {
	where := packages.Where{Home: "/home/me", Dir: "/work"}
	for _, word := range []string{
		"@scope/name@user/repo", "@scope/name@user/repo#0123456789012345678901234567890123456789", "name@x/../../tmp/e.tgz", "name@evil.tgz",
		"name@evil.tar.gz", `name@user\repo`, "name#a/b/c", "@s/n#user/repo", "name@1#x", "name@ --registry=x",
	} {
		if c, _, err := packages.Parse([]string{"npx", "-y", word}, where); err == nil {
			t.Errorf("%q is read as %q", word, c.Request.Key())
		}
		if r, err := packages.AddRequest("npm:" + word); err == nil {
			t.Errorf("npm:%s is read as %q", word, r.Key())
		}
	}
	for _, word := range []string{"name@1.2.3", "@scope/name@latest", "name@>=1 <2", "name@1 || 2", "name@^1.0.0-beta.1+build"} {
		c, _, err := packages.Parse([]string{"npx", "-y", word}, where)
		if err != nil || !c.Request.Registered() {
			t.Errorf("%q: %v", word, err)
		}
	}
}
