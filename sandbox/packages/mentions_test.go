package packages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
)

// said is "NAME file:line" for each mention, in the lists' order.
func said(list []packages.Mention) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Name+" "+m.Place())
	}
	return out
}

func folderOf(files map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

func readMentions(t *testing.T, files map[string]string) packages.Mentions {
	t.Helper()
	m, err := packages.ReadMentions(folderOf(files))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMentionsOfVariables: each spelling by itself. Names are plain ones, so that all come
// in one list.
func TestMentionsOfVariables(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"member", "a.js", "x = process.env.API_URL;", []string{"API_URL a.js:1"}},
		{"member in a later line", "a.js", "\n\n  process.env\n    .API_URL", []string{"API_URL a.js:4"}},
		{"optional member", "a.mjs", "globalThis.process.env?.API_URL", []string{"API_URL a.mjs:1"}},
		{"in brackets", "a.cjs", `process.env["API_URL"] + process.env['B_URL']`, []string{"API_URL a.cjs:1", "B_URL a.cjs:1"}},
		{"optional brackets", "a.ts", "process.env?.[`API_URL`]", []string{"API_URL a.ts:1"}},
		{"unpacked", "a.js", "const {\n  API_URL,\n  B_URL: b,\n  C_URL = f({X_URL: 1}, 2), 'D': e, ...rest } = process.env;", []string{"API_URL a.js:2", "B_URL a.js:3", "C_URL a.js:4"}},
		{"unpacked from elsewhere", "a.js", "const {API_URL} = config; f(process.env)", nil},
		{"compared", "a.js", "if ({API_URL} == process.env) {}", nil},
		{"under another name", "a.js", "f(process.env); (env) => env.API_URL + env.length + myenv.B_URL + env.Mode_X", []string{"API_URL a.js:1"}},
		{"bun and deno", "a.ts", "Bun.env.API_URL; Deno.env.get(\"B_URL\")", []string{"API_URL a.ts:1", "B_URL a.ts:1"}},
		{"computed", "a.js", "process.env[name]; process.env[`A_${b}`]; process.env['A' + b]", nil},
		{"methods", "a.js", "process.env.hasOwnProperty(x); process.env.toString()", nil},
		{"other objects", "a.js", "myprocess.env.API_URLS; process.environment.B_URL; process.envs.C_URL", []string{"API_URLS a.js:1"}},
		{"ordinary", "a.js", "process.env.NODE_ENV; process.env.CI; process.env.PATH; process.env.HOME; process.env.npm_config_x; process.env.LC_ALL; process.env.XDG_DATA_HOME", nil},
		{"python", "a.py", "os.environ[\"A_URL\"]; os.environ.get('B_URL', 1)\nos.getenv(\n  \"C_URL\")\nenviron.pop('D_URL'); @option(envvar='E_URL')", []string{"A_URL a.py:1", "B_URL a.py:1", "C_URL a.py:3", "D_URL a.py:4", "E_URL a.py:4"}},
		{"python computed", "a.py", "os.environ[f\"A_{x}\"]; os.environ[name]; os.environ.copy()", nil},
		{"javascript in python", "a.py", "# process.env.A_URL", nil},
		{"readme", "README.md", "export A_URL=x\n    B_URL=y npx z\n`C_URL=1`\nSet `D_URL` to\n docker run -e E_URL -e F=1 --env G_URL=2", []string{"A_URL README.md:1", "B_URL README.md:2", "C_URL README.md:3", "D_URL README.md:4", "E_URL README.md:5", "G_URL README.md:5"}},
		{"readme, no variables", "README.md", "get /x?API_KEY=1&B_KEY=2 where A_B == C_D, x.A_C=1, so A = B and A_B => 1; `NOT A_NAME` and `GET`, error `ERR_NOT_FOUND`", nil},
		{"configuration", "docs/setup.md", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\n\"A_URL\": \"a, B_URL: {\",\n\"C_URL\" : \"${X_URL}\", \"n\": {\"D_URL\": 1} }, \"E_URL\": 2}}}", []string{"A_URL docs/setup.md:2", "C_URL docs/setup.md:3"}},
		{"configuration in TOML", "README", "env = { \"A_URL\" = \"x\", B_URL = 'y' }\n[x.env]\nC_URL = \"z\"", []string{"A_URL README:1", "B_URL README:1", "C_URL README:3"}},
		{"configuration of docker", "README.md", `"args": ["run", "-e", "A_URL", "-e", "B_URL=x", "image"]`, []string{"A_URL README.md:1", "B_URL README.md:1"}},
		{"not the environment", "README.md", "\"environments\": {\"A_URL\": 1}, \"myenv\": {\"B_URL\": 1}", nil},
		{"example of settings", ".env.example", "# comment with A_B\nA_URL=\n#B_URL=1\nexport C=2\nD_URL=a=E_URL=b", []string{"A_URL .env.example:2", "B_URL .env.example:3", "D_URL .env.example:5"}},
		{"a person's settings", ".env", "A_URL=x", nil},
		{"manifest", "server.json", "{\"packages\": [{\"environmentVariables\": [\n{\"name\": \"A_URL\"}, {\"value\": 1}, 3]}]}", []string{"A_URL server.json:2"}},
		{"broken manifest", "server.json", "{\"environmentVariables\": [", nil},
		{"types", "a.d.ts", "process.env.A_URL", nil},
		{"other kinds of files", "a.map", "process.env.A_URL", nil},
		{"tests", "test/a.js", "process.env.A_URL", nil},
		{"a test beside the code", "src/a.test.ts", "process.env.A_URL", nil},
		{"dependencies", "node_modules/b/a.js", "process.env.A_URL", nil},
		{"hidden folders", ".git/a.js", "process.env.A_URL", nil},
		{"endless names", "a.js", "process.env.A_" + strings.Repeat("B", 300), nil},
		{"at the end", "a.js", "process.env", nil},
		{"cut", "a.js", "process.env[", nil},
		{"cut in quotes", "a.js", "process.env[\"A_URL", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := readMentions(t, map[string]string{tt.file: tt.text})
			if diff := cmp.Diff(tt.want, said(m.Variables)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			if len(m.Secrets) > 0 {
				t.Errorf("secrets %v", said(m.Secrets))
			}
		})
	}
}

func TestMentionsTellSecrets(t *testing.T) {
	tests := map[string]bool{
		"GITHUB_PERSONAL_ACCESS_TOKEN": true, "BRAVE_API_KEY": true, "DB_PASSWORD": true, "SENTRY_DSN": true, "CLIENT_SECRET": true, "AWS_ACCESS_KEY_ID": true,
		"MY_CREDENTIALS": true, "BASIC_AUTH": true, "DATABASE_URL": true, "REDIS_URI": true, "DB_CONNECTION_STRING": true, "X_APIKEY": true, "A_PAT": true, "SLACK_WEBHOOK_URL": true,
		"API_URL": false, "MAX_TOKENS": false, "MEMORY_FILE_PATH": false, "API_KEY_FILE": false, "TOKEN_LIMIT": false, "AUTHOR_MAIL": false, "KEYWORD_LIST": false, "OAUTH_TOKEN_URL": false,
		"SLACK_TEAM_ID": false, "PATTERN_X": false, "DB_NAME": false,
	}
	for name, secret := range tests {
		m := readMentions(t, map[string]string{"a.js": "process.env." + name})
		if got := len(m.Secrets) == 1 && len(m.Variables) == 0; got != secret || len(m.Secrets)+len(m.Variables) != 1 {
			t.Errorf("%s: secrets %v, others %v", name, said(m.Secrets), said(m.Variables))
		}
	}
	m := readMentions(t, map[string]string{
		"a.js":        "process.env.PLAIN_NAME",
		"server.json": `{"environment_variables": [{"name": "PLAIN_NAME", "is_secret": true}, {"name": "OTHER_NAME", "isSecret": false}]}`,
	})
	if diff := cmp.Diff([][]string{{"PLAIN_NAME server.json:1"}, {"OTHER_NAME server.json:1"}}, [][]string{said(m.Secrets), said(m.Variables)}); diff != "" {
		t.Errorf("a manifest says what is secret (-want +got):\n%s", diff)
	}
}

func TestMentionsOfHosts(t *testing.T) {
	code := "f(\"https://api.github.com/x\");\nf('https://API.Example-Site.COM:8443'); f(`https://one.io?x`);\n" +
		"// see https://commented.io\nthrow Error(\"see https://sentence.io\");\n" +
		"f(`https://${host}/`, `https://a.${x}.io`, \"https://\" + h, \"https://half\" + h, 'https://u:p@with.io/', \"https://user@with.io/\", \"http://plain.io/\");\n" +
		"f('https://127.0.0.1/', 'https://localhost/', 'https://a.example/', 'https://x.example.com/', 'https://json-schema.org/x', 'https://docs.site.io/', 'https://-a.io/', 'https://a..io/', 'https://a.io:0/', 'https://a.io:99999/');"
	want := []string{"api.example-site.com:8443 a.js:2", "api.github.com:443 a.js:1", "one.io:443 a.js:2"}
	m := readMentions(t, map[string]string{"a.js": code, "README.md": "\"https://readme.io/\"", "node_modules/x/index.js": "'https://dependency.io/'"})
	if diff := cmp.Diff(want, said(m.Hosts)); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	m = readMentions(t, map[string]string{"a.py": "URL = 'https://api.site.io/v1'"})
	if diff := cmp.Diff([]string{"api.site.io:443 a.py:1"}, said(m.Hosts)); diff != "" {
		t.Errorf("hosts of Python (-want +got):\n%s", diff)
	}
}

// TestMentionsPlaces: documentation is named before code, whatever is read first, and what
// is documented is listed first.
func TestMentionsPlaces(t *testing.T) {
	m := readMentions(t, map[string]string{
		"a.js": "process.env.B_URL\nprocess.env.A_URL\nprocess.env.Z_URL", "b.js": "process.env.A_URL", "docs/README.md": "\nZ_URL=1",
	})
	if diff := cmp.Diff([]string{"Z_URL docs/README.md:2", "A_URL a.js:2", "B_URL a.js:1"}, said(m.Variables)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestMentionsAreBounded(t *testing.T) {
	many := fstest.MapFS{"README.md": {Data: []byte("A_URL=1")}}
	for i := range 3100 {
		many["src/"+strings.Repeat("x", i%50+1)+string(rune('a'+i/50%26))+strings.Repeat("y", i/1300+1)+".js"] = &fstest.MapFile{Data: []byte("0")}
	}
	deep := strings.Repeat("d/", 13)
	tests := []struct {
		name   string
		folder fstest.MapFS
		cut    bool
	}{
		{"many files", many, true},
		{"a deep file", folderOf(map[string]string{"README.md": "A_URL=1", deep + "a.js": "process.env.B_URL"}), true},
		{"a large file", folderOf(map[string]string{"README.md": "A_URL=1", "a.js": strings.Repeat(" ", 4<<20) + "process.env.B_URL"}), true},
		{"a file that just fits", folderOf(map[string]string{"README.md": "A_URL=1", "a.js": strings.Repeat(" ", 4<<20)}), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := packages.ReadMentions(tt.folder)
			if err != nil {
				t.Fatal(err)
			}
			if m.Cut != tt.cut {
				t.Errorf("cut: %v, want %v", m.Cut, tt.cut)
			}
			if diff := cmp.Diff([]string{"A_URL README.md:1"}, said(m.Variables)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMentionsStayInside: links are not followed, and what is no file does not hold up.
func TestMentionsStayInside(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	folder := filepath.Join(dir, "pkg")
	for _, d := range []string{outside, filepath.Join(folder, "src")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"outside/secret.js": "process.env.OUTSIDE_URL", "pkg/src/a.js": "process.env.INSIDE_URL"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"pkg/file.js": outside + "/secret.js", "pkg/up": "../outside", "pkg/loop": "."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "README.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan packages.Mentions, 1)
	go func() {
		m, err := packages.MentionsOf(folder)
		if err != nil {
			t.Error(err)
		}
		// The same by name, where a listing does not tell the kind.
		if m, err := packages.MentionsOfFile(filepath.Join(folder, "README.md")); err != nil || len(m.Variables) > 0 {
			t.Errorf("a fifo gives %v, %v", m, err)
		}
		done <- m
	}()
	select {
	case m := <-done:
		if diff := cmp.Diff([]string{"INSIDE_URL src/a.js:1"}, said(m.Variables)); diff != "" {
			t.Errorf("variables (-want +got):\n%s", diff)
		}
	case <-time.After(time.Minute):
		t.Fatal("a fifo holds it up")
	}
	if _, err := packages.MentionsOf(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a folder that is not there: %v", err)
	}
	m, err := packages.MentionsOfFile(filepath.Join(folder, "src/a.js"))
	if err != nil || cmp.Diff([]string{"INSIDE_URL a.js:1"}, said(m.Variables)) != "" {
		t.Errorf("one file gives %v, %v", said(m.Variables), err)
	}
}

// TestMentionsOfFiles: a file that is named by itself, with and without an ending.
func TestMentionsOfFiles(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"server.py", "os.getenv('A_URL')", []string{"A_URL server.py:1"}},
		{"server", "#!/usr/bin/env python3\nos.getenv('A_URL')", []string{"A_URL server:2"}},
		{"run", "#!/usr/bin/env node\nprocess.env.A_URL", []string{"A_URL run:2"}},
		{"test.js", "process.env.A_URL", []string{"A_URL test.js:1"}},
		{"shell", "#!/bin/sh\nexport A_URL=process.env.B_URL", nil},
		{"text", "process.env.A_URL", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), tt.name)
			if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			m, err := packages.MentionsOfFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, said(m.Variables)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// unreadable is a folder that holds a folder that cannot be listed.
type unreadable struct{ fstest.MapFS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "closed" {
		return nil, fs.ErrPermission
	}
	return u.MapFS.Open(name)
}

func TestMentionsPassOverWhatIsClosed(t *testing.T) {
	m, err := packages.ReadMentions(unreadable{folderOf(map[string]string{"closed/a.js": "process.env.A_URL", "b.js": "process.env.B_URL"})})
	if err != nil || cmp.Diff([]string{"B_URL b.js:1"}, said(m.Variables)) != "" {
		t.Errorf("%v, %v", said(m.Variables), err)
	}
}

func TestMentionsOfWheels(t *testing.T) {
	site := folderOf(map[string]string{
		"my_server/__init__.py":                  "import os\nos.environ['MY_URL']",
		"my_server/tests/test_a.py":              "os.environ['TEST_URL']",
		"my_server_extra.py":                     "os.environ['EXTRA_URL']",
		"my_server-1.0.dist-info/METADATA":       "Name: my-server\n\n    MY_TOKEN=x",
		"my_server-1.0.dist-info/RECORD":         "my_server/__init__.py,sha256=x,1\r\n\"my_server/tests/test_a.py\",,\r\n../../../bin/my-server,,\r\n../../../../etc/x.py,,\r\n/etc/y.py,,\r\n",
		"my_server_extra-2.0.dist-info/METADATA": "",
		"my_server_extra-2.0.dist-info/RECORD":   "my_server_extra.py,,\n../../../bin/extra,,\n",
		"broken-1.dist-info/RECORD":              "\"unclosed\n",
	})
	for _, name := range []string{"my-server", "My.Server", "my_server"} {
		m, err := packages.ReadWheelMentions(site, name)
		if err != nil {
			t.Fatal(err)
		}
		got := [][]string{said(m.Secrets), said(m.Variables)}
		if diff := cmp.Diff([][]string{{"MY_TOKEN my_server-1.0.dist-info/METADATA:3"}, {"MY_URL my_server/__init__.py:2"}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := packages.ReadWheelMentions(site, "none"); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("a package that is not there: %v", err)
	}
	if _, err := packages.ReadWheelMentions(site, "broken"); err == nil || !strings.Contains(err.Error(), "broken-1.dist-info") {
		t.Errorf("a broken list: %v", err)
	}
	for _, tt := range []struct{ program, module, want string }{
		{"my-server", "", "my_server"},
		{"extra", "", "my_server_extra"},
		{"", "my_server", "my_server"},
		{"", "my_server.cli", "my_server"},
		{"", "my_server_extra", "my_server_extra"},
		{"none", "", ""},
		{"", "none", ""},
		{"x.py", "", ""},
		{"", "", ""},
	} {
		if got, err := packages.WheelOf(site, tt.program, tt.module); err != nil || got != tt.want {
			t.Errorf("program %q, module %q: %q, %v; want %q", tt.program, tt.module, got, err, tt.want)
		}
	}
}

// FuzzMentions: no text makes the reader panic or run on, and every place is in the text.
func FuzzMentions(f *testing.F) {
	for _, text := range []string{
		"const {A_B, C = {}} = process.env", "process.env?.['A_B']", "\"env\": {\"A_B\": \"x\"}", "export A_B=1\n`C_D`", "'https://a.io:1/'", "os.environ.get(\"A_B\")",
		`{"environmentVariables": [{"name": "A_B", "isSecret": true}]}`, "env = {", "-e A", "}=process.env", "`", "\"-e\",\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.js", "a.py", "README.md", ".env.example", "server.json"} {
			m := readMentions(t, map[string]string{name: text})
			for _, list := range [][]packages.Mention{m.Secrets, m.Variables, m.Hosts} {
				for _, found := range list {
					if found.File != name || found.Line < 1 || found.Line > strings.Count(text, "\n")+1 || found.Name == "" {
						t.Errorf("%+v", found)
					}
				}
			}
		}
	})
}
