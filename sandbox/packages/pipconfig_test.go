package packages_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
)

// TestPipConfigFiles compares what is taken over with what pip itself reads from the same
// files and variables.
func TestPipConfigFiles(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string // below the home
		environ []string          // HOME stands for the home
	}{
		{name: "user's file", files: map[string]string{".config/pip/pip.conf": "[global]\nindex-url = https://a.example/simple\n"}},
		{name: "both of the user's files", files: map[string]string{
			".pip/pip.conf":        "[global]\nindex-url = https://old.example/simple\nextra-index-url = https://more.example/\n",
			".config/pip/pip.conf": "[global]\nindex_url: https://new.example/simple\n",
		}},
		{name: "lists and comments", files: map[string]string{".config/pip/pip.conf": "# one\n[global]\n; two\nextra-index-url =\n    https://a.example/\n    # not this\n    https://b.example/\nproxy = http://p.example:3128\n[download]\nindex-url = https://no.example\n"}},
		{name: "named file", files: map[string]string{".config/pip/pip.conf": "[global]\nindex-url = https://user.example/\n", "my.conf": "[global]\nindex-url = https://mine.example/\n"}, environ: []string{"PIP_CONFIG_FILE=HOME/my.conf"}},
		{name: "named file missing", files: map[string]string{".config/pip/pip.conf": "[global]\nindex-url = https://user.example/\n"}, environ: []string{"PIP_CONFIG_FILE=HOME/none"}},
		{name: "variable", files: map[string]string{".config/pip/pip.conf": "[global]\nindex-url = https://user.example/\n"}, environ: []string{"PIP_INDEX_URL=https://env.example/", "PIP_NO_INDEX=0"}},
		{name: "XDG_CONFIG_HOME", files: map[string]string{"x/pip/pip.conf": "[global]\nindex-url = https://xdg.example/\n", ".config/pip/pip.conf": "[global]\nindex-url = https://no.example/\n"}, environ: []string{"XDG_CONFIG_HOME=HOME/x"}},
		{name: "XDG_CONFIG_DIRS", files: map[string]string{"d/pip/pip.conf": "[global]\nindex-url = https://dirs.example/\nextra-index-url = https://too.example/\n", ".config/pip/pip.conf": "[global]\nindex-url = https://user.example/\n"}, environ: []string{"XDG_CONFIG_DIRS=HOME/d"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t)
			writeAll(t, p.Home, tt.files)
			all := packages.Registries{}
			for _, entry := range tt.environ {
				p.Environ = append(p.Environ, strings.ReplaceAll(entry, "HOME/", p.Home+"/"))
				name, _, _ := strings.Cut(entry, "=")
				all.Variables = append(all.Variables, name)
			}
			r := pipRequest(packages.Spec{Name: "x"})
			c, err := packages.FindPipConfig(p, r, "/")
			if err != nil {
				t.Fatal(err)
			}
			s := newStage(t)
			if err := c.Prepare(r, s); err != nil {
				t.Fatal(err)
			}
			person, install := s, s
			person.Home = p.Home
			list := packages.Step{Argv: []string{systemPython, "-m", "pip", "config", "list"}}
			want, _ := carryOut(t, list, person, p, all)
			list.Env = []string{"PIP_CONFIG_FILE=" + filepath.Join(s.Home, "pip.conf")}
			got, _ := carryOut(t, list, install, p, packages.Registries{})
			if diff := cmp.Diff(effective(string(want)), effective(string(got))); diff != "" {
				t.Errorf("the index's settings (-pip's +taken over):\n%s\n%s", diff, want)
			}
		})
	}
}

// effective returns the settings of "pip config list" that are about the index, variables
// before files.
func effective(list string) map[string]string {
	found := map[string]string{}
	for _, prefix := range []string{"global.", ":env:."} {
		for line := range strings.Lines(list) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			key, ok := strings.CutPrefix(key, prefix)
			if ok && slices.Contains([]string{"index-url", "extra-index-url", "proxy", "no-index", "cert"}, key) {
				found[key] = strings.Join(strings.Fields(strings.ReplaceAll(strings.Trim(value, `'"`), `\n`, " ")), " ")
			}
		}
	}
	return found
}

func TestPipConfigReach(t *testing.T) {
	wheels, authority := t.TempDir(), filepath.Join(t.TempDir(), "ca.pem")
	write(t, authority, "")
	git := packages.Spec{Source: packages.Git, Name: "x", Place: "git+https://git.example/x"}
	tests := []struct {
		name, conf   string
		environ      []string
		spec         packages.Spec
		rules, files []string
		variables    []string
		own          bool // pip's own index is meant
	}{
		{name: "default", own: true},
		{name: "index", conf: "[global]\nindex-url=https://me:t0psecret@i.example/simple\n", rules: []string{"i.example:443"}},
		{name: "install before global", conf: "[install]\nindex-url=https://i.example/simple\n[global]\nindex-url=https://g.example/simple\n", rules: []string{"i.example:443"}},
		{name: "more indexes", conf: "[global]\nextra-index-url=https://a.example http://b.example:8080\n", own: true, rules: []string{"a.example:443", "b.example:8080"}},
		{name: "local folder only", conf: "[global]\nno-index=true\nfind-links=" + wheels + "\n", files: []string{wheels}},
		{name: "folder as URL", conf: "[global]\nno-index=1\nfind-links=file://" + wheels + " https://l.example/x\n", files: []string{wheels}, rules: []string{"l.example:443"}},
		{name: "proxy", conf: "[global]\nindex-url=https://i.example\nproxy=me:t0psecret@p.example:3128\n", rules: []string{"p.example:3128"}},
		{name: "proxy of the environment", conf: "[global]\nindex-url=https://i.example\n", environ: []string{"HTTPS_PROXY=http://p.example:3128"}, rules: []string{"p.example:3128"}, variables: []string{"HTTPS_PROXY"}},
		{name: "no proxy for the index", conf: "[global]\nindex-url=https://i.example\n", environ: []string{"HTTPS_PROXY=http://p.example:3128", "no_proxy=.example"}, rules: []string{"i.example:443"}, variables: []string{"HTTPS_PROXY", "no_proxy"}},
		{name: "authority", conf: "[global]\nindex-url=https://i.example\ncert=" + authority + "\n", files: []string{authority}, rules: []string{"i.example:443"}},
		{name: "repository", conf: "[global]\nindex-url=https://i.example\n", spec: git, rules: []string{"git.example:443", "i.example:443"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t, tt.environ...)
			write(t, filepath.Join(p.Home, ".config", "pip", "pip.conf"), tt.conf)
			c, err := packages.FindPipConfig(p, pipRequest(tt.spec), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if c.OwnIndex != tt.own {
				t.Errorf("pip's own index: got %v, want %v", c.OwnIndex, tt.own)
			}
			if diff := cmp.Diff(tt.rules, c.Reach.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.files, c.Reach.Files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.variables, c.Reach.Variables); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPipHostileConfiguration has settings that would put the tree elsewhere or leave half of
// it out: they are not taken over, and the person's variables do not reach pip.
func TestPipHostileConfiguration(t *testing.T) {
	reg := pythonShelves(t, registryOptions)
	p := person(t, "PIP_TARGET=/nowhere", "PIP_NO_DEPS=1", "PIP_DRY_RUN=1", "PYTHONPATH=/nowhere")
	write(t, filepath.Join(p.Home, ".config", "pip", "pip.conf"), "[global]\nindex-url="+reg.Index()+
		"\nuser = true\nno-deps = true\nno-binary = :all:\nrequire-virtualenv = false\nrequire-hashes = true\nquiet = 3\nlog = /nowhere\n[wheel]\nwheel-dir=/nowhere\n[install]\nroot = /nowhere\nprefix = /nowhere\n")
	got, err := pipInstall(t, p, pipRequest(packages.Spec{Name: "example-server"}), newStage(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"dep@1.0", "example-server@1.2.0"}, names(got.Locked)); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestPythonNames(t *testing.T) {
	tests := []struct {
		asked string
		want  []string
	}{
		{"", []string{"python3", "python"}},
		{"3", []string{"python3"}},
		{"3.11", []string{"python3.11"}},
		{"3.11.4", []string{"python3.11"}},
		{"312", []string{"python3.12"}},
		{"python3.12", []string{"python3.12"}},
		{"cpython@3.12", []string{"python3.12"}},
		{"pypy3.10", []string{"pypy3.10"}},
		{"python", []string{"python3", "python"}},
		{"/opt/py/bin/python", []string{"/opt/py/bin/python"}},
		{"./venv/bin/python", []string{"/my dir/venv/bin/python"}},
		{">=3.10", nil},
		{"3.x", nil},
		{"3.1.2.3", nil},
		{"graalpy3.10", nil},
		{"3.13t", nil},
	}
	for _, tt := range tests {
		t.Run(tt.asked, func(t *testing.T) {
			got, err := packages.PythonNames(tt.asked, "/my dir")
			if tt.want == nil {
				fails(t, err, "is no version, name or path")
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("(-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// TestPipOtherPython asks for a version that the interpreter is not.
func TestPipOtherPython(t *testing.T) {
	reg := pythonShelves(t, registryOptions)
	r := pipRequest(packages.Spec{Name: "dep"})
	r.Python = "3.11.999"
	_, err := pipInstall(t, indexPerson(t, reg.Index()), r, newStage(t))
	fails(t, err, "--python 3.11.999 asks for another interpreter")
}

// TestPipIndex asks the real pip for its own index, which is two hosts.
func TestPipIndex(t *testing.T) {
	s, p := newStage(t), person(t)
	c, err := packages.FindPipConfig(p, pipRequest(packages.Spec{Name: "x"}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := packages.PipSteps(pipRequest(packages.Spec{Name: "x"}), s, systemPython, c)
	if err != nil {
		t.Fatal(err)
	}
	if out, status := carryOut(t, steps[0], s, p, c.Reach); status != 0 {
		t.Fatalf("%s", out)
	}
	out, status := carryOut(t, packages.PipIndex(s), s, p, c.Reach)
	if status != 0 {
		t.Fatalf("%s", out)
	}
	found, err := c.WithIndex(p, out)
	if err != nil || len(found.Reach.Rules) != 2 || !strings.HasSuffix(found.Reach.Rules[0], ":443") || !strings.HasSuffix(found.Reach.Rules[1], ":443") {
		t.Errorf("got %q, %v from %q", found.Reach.Rules, err, out)
	}
	proxied, err := c.WithIndex(packages.Person{Home: p.Home, Environ: []string{"HTTPS_PROXY=http://p.example:3128"}}, []byte("https://i.example/simple\nfiles.example\n"))
	if diff := cmp.Diff([]string{"p.example:3128"}, proxied.Reach.Rules); err != nil || diff != "" {
		t.Errorf("%v, behind a proxy (-want +got):\n%s", err, diff)
	}
	if _, err := c.WithIndex(p, []byte("what\n")); err == nil {
		t.Error("an answer of another form is taken")
	}
}
