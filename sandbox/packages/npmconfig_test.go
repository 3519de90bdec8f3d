package packages_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/packages"
	"stockade/sandbox/packages/registrytest"
)

// TestNPMConfigFiles compares the files that are found with those that npm itself reads.
func TestNPMConfigFiles(t *testing.T) {
	home := t.TempDir()
	tests := []struct {
		name, npmrc string
		environ     []string
	}{
		{name: "nothing set"},
		{name: "prefix in the file", npmrc: "prefix=" + home + "/global\n"},
		{name: "prefix below the home", npmrc: "prefix=~/global\n"},
		{name: "prefix by a variable of the file", npmrc: "prefix = ${BASE}/global ; comment\n", environ: []string{"BASE=" + home}},
		{name: "prefix in the environment", npmrc: "prefix=/elsewhere\n", environ: []string{"NPM_CONFIG_PREFIX=" + home + "/env"}},
		{name: "prefix in lower case", environ: []string{"npm_config_prefix=" + home + "/env"}},
		{name: "PREFIX", environ: []string{"PREFIX=" + home + "/p"}},
		{name: "global file", npmrc: "globalconfig=" + home + "/g\n"},
		{name: "global file in the environment", npmrc: "globalconfig=" + home + "/g\n", environ: []string{"npm_config_globalconfig=" + home + "/h"}},
		{name: "user's file", environ: []string{"NPM_CONFIG_USERCONFIG=" + home + "/other"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := packages.Person{Home: home, Environ: tt.environ}
			write(t, filepath.Join(home, ".npmrc"), tt.npmrc)
			c, err := packages.FindNPMConfig(p, realFile(t, "node"), realFile(t, "npm"))
			if err != nil {
				t.Fatal(err)
			}
			s := newStage(t)
			s.Home = home // as the person calls npm
			all := packages.Registries{}
			for _, entry := range tt.environ {
				name, _, _ := strings.Cut(entry, "=")
				all.Variables = append(all.Variables, name)
			}
			ask := packages.Step{Argv: []string{"npm", "config", "get", "userconfig", "globalconfig"}}
			out, status := carryOut(t, ask, s, p, all)
			if want := "userconfig=" + c.User + "\nglobalconfig=" + c.Global + "\n"; status != 0 || string(out) != want {
				t.Errorf("npm reads\n%swhere\n%sis found", out, want)
			}
		})
	}
}

func TestNPMConfigReach(t *testing.T) {
	home := t.TempDir()
	authority := filepath.Join(home, "ca.pem")
	write(t, authority, "")
	base := "registry=https://registry.example/npm/\n"
	tests := []struct {
		name, npmrc string
		environ     []string
		spec        packages.Spec
		rules       []string
		variables   []string
		open        []string // variables
	}{
		{name: "registry", npmrc: base, rules: []string{"registry.example:443"}},
		{name: "port", npmrc: "registry=http://registry.example:4873\n", rules: []string{"registry.example:4873"}},
		{name: "plain HTTP", npmrc: "registry=http://registry.example\n", rules: []string{"registry.example:80"}},
		{name: "scopes", npmrc: base + "@a:registry=https://a.example\n@b:registry=\"https://b.example:8443/x\"\n", rules: []string{"a.example:443", "b.example:8443", "registry.example:443"}},
		{name: "password in the URL", npmrc: "registry=https://me:t0psecret@secret.example/npm/\n", rules: []string{"secret.example:443"}},
		{name: "variable in the URL", npmrc: "registry=https://me:${PW}@${HOST_OF_REGISTRY}/npm/\n", environ: []string{"PW=t0psecret", "HOST_OF_REGISTRY=v.example", "OTHER=t0psecret"}, rules: []string{"v.example:443"}, variables: []string{"HOST_OF_REGISTRY", "PW"}},
		{name: "token by a variable", npmrc: base + "//registry.example/npm/:_authToken=${NPM_TOKEN?}\n", environ: []string{"NPM_TOKEN=t0psecret", "GITHUB_TOKEN=x"}, rules: []string{"registry.example:443"}, variables: []string{"NPM_TOKEN"}},
		{name: "variables of npm", npmrc: base, environ: []string{"npm_config_registry=https://env.example/", "NPM_CONFIG__AUTH=x", "npmx=y"}, rules: []string{"env.example:443"}, variables: []string{"NPM_CONFIG__AUTH", "npm_config_registry"}},
		{name: "proxy", npmrc: base + "https-proxy=http://proxy.example:3128\n", rules: []string{"proxy.example:3128"}},
		{name: "proxy with a password", npmrc: base + "proxy=http://me:t0psecret@proxy.example:3128\n", rules: []string{"proxy.example:3128"}},
		{name: "proxy and a direct registry", npmrc: base + "@a:registry=https://a.inside.example\nproxy=http://proxy.example:3128\nnoproxy=inside.example\n", rules: []string{"a.inside.example:443", "proxy.example:3128"}},
		{name: "proxy of the environment", npmrc: base, environ: []string{"https_proxy=http://me:t0psecret@proxy.example", "NO_PROXY=localhost"}, rules: []string{"proxy.example:80"}, variables: []string{"NO_PROXY", "https_proxy"}, open: []string{"NO_PROXY"}},
		{name: "certificates", npmrc: base, environ: []string{"NODE_EXTRA_CA_CERTS=" + authority}, rules: []string{"registry.example:443"}, variables: []string{"NODE_EXTRA_CA_CERTS"}, open: []string{"NODE_EXTRA_CA_CERTS"}},
		{name: "repository", npmrc: base, spec: packages.Spec{Source: packages.Git, Place: "git+https://github.com/a/b.git"}, rules: []string{"codeload.github.com:443", "github.com:443", "objects.githubusercontent.com:443", "registry.example:443", "release-assets.githubusercontent.com:443"}},
		{name: "archive", npmrc: base, spec: packages.Spec{Source: packages.Archive, Place: "https://files.example:8443/a.tgz"}, rules: []string{"files.example:8443", "registry.example:443"}},
		{name: "local archive", npmrc: base, spec: packages.Spec{Source: packages.Archive, Place: "/a.tgz"}, rules: []string{"registry.example:443"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := packages.Person{Home: home, Environ: tt.environ}
			write(t, filepath.Join(home, ".npmrc"), tt.npmrc)
			c := npmConfig(t, p, npmRequest(tt.spec), newStage(t))
			if diff := cmp.Diff(tt.rules, c.Reach.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.variables, c.Reach.Variables); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.open, c.Reach.OpenVariables); diff != "" {
				t.Errorf("open variables (-want +got):\n%s", diff)
			}
			r := npmRequest(packages.Spec{Name: "x"})
			r.Scripts = []string{"x"}
			steps, err := packages.NPMSteps(r, newStage(t), c)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				if text := strings.Join(append(step.Argv, step.Env...), " "); strings.Contains(text, "t0psecret") {
					t.Errorf("a command line shows a password: %s", text)
				}
			}
		})
	}
}

// TestNPMAuthority has a registry that only the person's own authority vouches for, named as
// people name it.
func TestNPMAuthority(t *testing.T) {
	reg := shelves(t, registrytest.Options{Protocol: registrytest.TLS})
	for _, tt := range []struct{ name, line, want string }{
		{"below the home", "cafile=~/ca.pem\n", ""},
		{"by HOME", "cafile=${HOME}/ca.pem\n", ""},
		{"not named", "", "is not trusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t)
			text := readFile(t, reg.Authority(t))
			write(t, filepath.Join(p.Home, "ca.pem"), text)
			write(t, filepath.Join(p.Home, ".npmrc"), "registry="+reg.NPM()+"\n"+tt.line)
			_, err := npmInstall(t, p, npmRequest(packages.Spec{Name: "dep"}), newStage(t))
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				fails(t, err, tt.want)
			}
		})
	}
}

func TestNPMClientCertificate(t *testing.T) {
	p := person(t)
	write(t, filepath.Join(p.Home, ".npmrc"), "//r.example/:certfile=/c.pem\n//r.example/:keyfile=/k.pem\n")
	c, err := packages.FindNPMConfig(p, "/n/bin/node", "/n/lib/node_modules/npm/bin/npm-cli.js")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/c.pem", "/k.pem", filepath.Join(p.Home, ".npmrc")}, c.Reach.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(c.Reach.OpenFiles) != 0 {
		t.Errorf("scripts may read %v", c.Reach.OpenFiles)
	}
	write(t, filepath.Join(p.Home, ".npmrc"), "//r.example/:keyfile=${HOME}/k.pem\n")
	_, err = packages.FindNPMConfig(p, "/n/bin/node", "/n/lib/node_modules/npm/bin/npm-cli.js")
	fails(t, err, "names a client certificate or its key by ${HOME}")
}

func TestNPMListedRefuses(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"nothing", "npm warn\n", "npm printed none"},
		{"no registry", "{}", `it has no "registry"`},
		{"odd registry", `{"registry":"ftp://me:t0psecret@x.example"}`, `scheme "ftp"`},
		{"broken", `{"registry":`, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := packages.NPMConfig{}.Listed([]byte(tt.output), npmRequest(packages.Spec{Name: "x"}))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "t0psecret") {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
