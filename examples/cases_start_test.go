package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/examples/stock"
)

// node returns the node that the machine's servers run with.
func node(t *testing.T) string {
	t.Helper()
	path, err := stock.Node(0)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// script copies a script of testdata into the project, where its profile lets it be read.
func (p place) script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.project, name)
	write(t, path, string(text))
	return path
}

// said is what testdata/words.js prints.
type said struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
	PID  int               `json:"pid"`
}

func (p place) words(t *testing.T, launch launch, env []string, args ...string) (said, string) {
	t.Helper()
	cmd := p.command(launch(t, append([]string{node(t), p.script(t, "words.js")}, args...)...)...)
	cmd.Env = append(cmd.Env, env...)
	stdout, stderr := output(t, cmd, 0)
	var got said
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return got, stdout + stderr
}

// awkward are arguments that a shell, a join or a split would change.
var awkward = []string{
	"two words", `"quoted"`, "it's", "new\nline", "tab\there", "-x", "--", "--help", "", "$HOME", "`id`",
	"$(id)", "*", `back\slash`, "a,b", "ünï", "--profile", "=", ";", "&&", "%s",
}

// TestS44 hands every kind of argument through unchanged.
func TestS44(t *testing.T) {
	p := newPlace(t)
	file := p.profile(t, `filesystem: {read: ["PROJECT"]}`+"\n")
	for name, launch := range map[string]launch{"in the jail": in(file), "outside": free} {
		t.Run(name, func(t *testing.T) {
			got, _ := p.words(t, launch, nil, awkward...)
			if diff := cmp.Diff(awkward, got.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestS44Roots grants roots whose names a shell, a split or a flag parser would break.
func TestS44Roots(t *testing.T) {
	for _, name := range []string{"two words", `"quoted"`, "it's", "new\nline", "-dash", "--", "a,b", "$HOME", "ünï"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			root := filepath.Join(p.base, name)
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, "here.txt"), insideText)
			server, err := stock.StaticServer()
			if err != nil {
				t.Fatal(err)
			}
			s := connect(t, p.command(in(example(t, "static-go/profile.yaml"))(t, server, root)...))
			s.served(t, "read_note", map[string]any{"name": "here.txt"}, insideText)
			s.refused(t, "read_note", map[string]any{"name": "../secret.txt"}, "permission denied")
		})
	}
}

// TestS61 marks secrets in the host's environment and looks for them everywhere: in the
// server, in every output, and in what stockade keeps.
func TestS61(t *testing.T) {
	p := newPlace(t)
	const mark = "mark-4711"
	secrets := []string{
		"AWS_SECRET_ACCESS_KEY=" + mark, "GITHUB_TOKEN=" + mark, "OPENAI_API_KEY=" + mark,
		"DATABASE_URL=postgres://user:" + mark + "@host", "SSH_AUTH_SOCK=/tmp/" + mark,
		"NODE_OPTIONS=--title=" + mark, "LD_LIBRARY_PATH=/" + mark, "npm_config_token=" + mark,
	}
	plain := p.profile(t, `filesystem: {read: ["PROJECT"]}`+"\n")
	outside, _ := p.words(t, free, secrets)
	if outside.Env["GITHUB_TOKEN"] != mark {
		t.Fatal("the server outside the jail does not see the secret: the test proves nothing")
	}

	got, printed := p.words(t, in(plain), secrets)
	for name, value := range got.Env {
		if strings.Contains(value, mark) {
			t.Errorf("the server sees a secret in %s", name)
		}
	}
	if strings.Contains(printed, mark) {
		t.Errorf("the output shows a secret:\n%s", printed)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG"} {
		if got.Env[name] == "" {
			t.Errorf("the server lacks %s", name)
		}
	}
	if got.Env["HOME"] == p.home {
		t.Error("HOME names the person's home folder")
	}

	named := p.profile(t, `filesystem: {read: ["PROJECT"]}
environment: {secrets: [GITHUB_TOKEN]}
`)
	got, _ = p.words(t, in(named), secrets)
	if got.Env["GITHUB_TOKEN"] != mark {
		t.Error("the server lacks the secret that its profile names")
	}
	if _, there := got.Env["OPENAI_API_KEY"]; there {
		t.Error("naming one secret let another through")
	}

	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"explain", "verify"} {
		for _, flags := range [][]string{{"--profile", named}, {"--profile", plain, "--env", "EXTRA=" + mark}} {
			line := append([]string{binary, command}, flags...)
			cmd := p.command(append(line, "--", node(t), p.script(t, "words.js"))...)
			cmd.Env = append(cmd.Env, secrets...)
			stdout, stderr := output(t, cmd, 0)
			if strings.Contains(stdout+stderr, mark) {
				t.Errorf("%s shows a secret", command)
			}
		}
	}
	err = filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text)+path, mark) {
			t.Errorf("%q keeps a secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestS92 gives every run a temporary folder of its own, and not the host's.
func TestS92(t *testing.T) {
	p := newPlace(t)
	file := p.profile(t, `filesystem: {read: ["PROJECT"]}`+"\n")
	type scratch struct {
		Tmpdir, Variable, Mode string
		Empty                  any
		Made, Foreign          any
	}
	run := func(launch launch) scratch {
		t.Helper()
		cmd := p.command(launch(t, node(t), p.script(t, "scratch.js"), p.tmp)...)
		stdout, _ := output(t, cmd, 0)
		var got scratch
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%v in %q", err, stdout)
		}
		return got
	}
	var seen []string
	for range 2 {
		got := run(in(file))
		want := scratch{Tmpdir: got.Variable, Variable: got.Variable, Mode: "700", Empty: 0.0, Made: true, Foreign: "EACCES"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in the jail (-want +got):\n%s", diff)
		}
		if got.Tmpdir == p.tmp || slices.Contains(seen, got.Tmpdir) {
			t.Errorf("the temporary folder %q is not this run's own", got.Tmpdir)
		}
		for _, old := range seen {
			if _, err := os.Stat(old); err == nil {
				t.Errorf("the folder %q of an ended run is still there at the next start", old)
			}
		}
		seen = append(seen, got.Tmpdir)
	}
	p.onlyOwn(t)
	if got := run(free); got.Foreign != "written" || got.Tmpdir != p.tmp {
		t.Errorf("outside the jail: %+v", got)
	}
}
