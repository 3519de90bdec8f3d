package packages_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/sandbox/packages"
	"stockade/sandbox/packages/registrytest"
)

// fails checks an error's line and hint, and that neither is anything but a line.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got the error %v, want one with %q", err, want)
	}
	if hint := hintOf(err); hint == "" || strings.Contains(hint+err.Error(), "\n") {
		t.Errorf("error and hint are no two lines: %q, %q", err, hint)
	}
}

func TestNPMFailures(t *testing.T) {
	reg := shelves(t, registrytest.Options{})
	for _, name := range []string{"bad", "gone", "forbidden", "failing", "hanging", "locked"} {
		reg.AddNPM(registrytest.NPM{Name: name, Version: "1.0.0"})
	}
	reg.AddNPM(
		registrytest.NPM{Name: "windows", Version: "1.0.0", Manifest: map[string]any{"os": []string{"win32"}}},
		registrytest.NPM{Name: "newer-node", Version: "1.0.0", Manifest: map[string]any{"engines": map[string]any{"node": ">=999"}}},
	)
	reg.Break("/npm/bad/-/bad-1.0.0.tgz", registrytest.Tampered)
	reg.Break("/npm/gone/-/gone-1.0.0.tgz", registrytest.Missing)
	reg.Break("/npm/forbidden", registrytest.Forbidden)
	reg.Break("/npm/failing", registrytest.Failing)
	reg.Break("/npm/hanging", registrytest.Hang)
	locked := shelves(t, registrytest.Options{Token: "t0psecret"})
	down := registrytest.Start(t)
	down.Stop()

	tests := []struct {
		name     string
		spec     packages.Spec
		registry string
		more     string // of .npmrc
		scripts  []string
		want     string
	}{
		{name: "no package", spec: packages.Spec{Name: "nothing"}, want: `the registry has no package "nothing"`},
		{name: "no package of a scope", spec: packages.Spec{Name: "@example/nothing"}, want: `the registry has no package "@example/nothing"`},
		{name: "no version", spec: packages.Spec{Name: "dep", Version: "9.0.0"}, want: `no version of the package matches "dep@9.0.0"`},
		{name: "no tag", spec: packages.Spec{Name: "dep", Version: "nightly"}, want: `no version of the package matches "dep@nightly"`},
		{name: "no version that old", spec: packages.Spec{Name: "dep"}, more: "before=2020-01-01", want: "the package has no version to install: No versions available for dep"},
		{name: "tampered", spec: packages.Spec{Name: "bad"}, want: `the archive of "bad" is not what the registry's hash says`},
		{name: "archive missing", spec: packages.Spec{Name: "gone"}, want: `the registry lists "gone" and does not have its archive`},
		{name: "forbidden", spec: packages.Spec{Name: "forbidden"}, want: "the registry " + reg.Host() + " does not let you have the package (403)"},
		{name: "broken", spec: packages.Spec{Name: "failing"}, want: "the registry " + reg.Host() + " is broken: it answered 500"},
		{name: "hanging", spec: packages.Spec{Name: "hanging"}, want: "the registry " + reg.Host() + " does not answer"},
		{name: "no credentials", spec: packages.Spec{Name: "dep"}, registry: locked.NPM(), want: "the registry wants credentials"},
		{name: "down", spec: packages.Spec{Name: "dep"}, registry: down.NPM(), want: "the registry " + down.Host() + " does not answer (ECONNREFUSED)"},
		{name: "password in the URL", spec: packages.Spec{Name: "dep"}, registry: strings.Replace(down.NPM(), "://", "://me:t0psecret@", 1), want: "does not answer (ECONNREFUSED)"},
		{name: "other system", spec: packages.Spec{Name: "windows"}, want: "the package is not for this machine"},
		{name: "other node", spec: packages.Spec{Name: "newer-node"}, more: "engine-strict=true", want: "the package needs another version of node or npm"},
		{name: "script fails", spec: packages.Spec{Name: "bad-script"}, scripts: []string{"bad-script"}, want: `the install script of "bad-script" failed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := person(t)
			registry := tt.registry
			if registry == "" {
				registry = reg.NPM()
			}
			write(t, filepath.Join(p.Home, ".npmrc"), "registry="+registry+"\n"+tt.more+"\n")
			r := npmRequest(tt.spec)
			r.Scripts = tt.scripts
			s := newStage(t)
			c := npmConfig(t, p, r, s)
			steps, err := packages.NPMSteps(r, s, c)
			if err != nil {
				t.Fatal(err)
			}
			err = nil
			for _, step := range steps {
				if tt.name == "hanging" { // not to wait for long
					step.Argv = slices.Clone(step.Argv)
					i := slices.Index(step.Argv, "--fetch-timeout=10000")
					step.Argv[i] = "--fetch-timeout=300"
				}
				out, status := carryOut(t, step, s, p, c.Reach)
				if status != 0 {
					err = packages.NPMFailure(out, status)
					if strings.Contains(err.Error()+hintOf(err), "t0psecret") {
						t.Errorf("the error shows a password: %v", err)
					}
					break
				}
			}
			fails(t, err, tt.want)
			if tt.scripts == nil && exists(filepath.Join(s.Tree, "package-lock.json")) {
				t.Error("a half-made tree has a lock")
			}
		})
	}
}

// TestNPMFailureWords has what cannot be had here on purpose: words of npm 9 to 12.
func TestNPMFailureWords(t *testing.T) {
	tests := []struct {
		name, output, want string
	}{
		{"npm 9", "npm ERR! code E404\nnpm ERR! 404 Not Found - GET http://r.example/x - Not found\nnpm ERR! 404 \nnpm ERR! 404  'x@*' is not in this registry.\n", `the registry has no package "x"`},
		{"name server", "npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN\nnpm error request to https://r.example/x failed, reason: getaddrinfo EAI_AGAIN r.example\n", "the registry r.example does not answer (EAI_AGAIN)"},
		{"full disk", "npm error code ENOSPC\nnpm error syscall write\nnpm error errno -28\n", "the disk is full"},
		{"read-only", "npm error code EROFS\n", "cannot be written (EROFS)"},
		{"certificate", "npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error request to https://r.example/x failed\n", "the certificate of the registry r.example is not trusted"},
		{"peers", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\n", "do not go together"},
		{"compiler", "npm error code 1\nnpm error path /s/tree/node_modules/@a/native\nnpm error command failed\nnpm error command sh -c node-gyp rebuild\nnpm error gyp ERR! find Python\n", `compiling "@a/native" failed (node-gyp)`},
		{"repository", "npm error code 128\nnpm error An unknown git error occurred\nnpm error command git ls-remote\nnpm error fatal: repository 'https://me:t0psecret@g.example/' not found\n", "git could not fetch the repository: repository 'https://g.example/' not found"},
		{"something else", "npm error code EWHATEVER\nnpm error \x1b[31mhttps://me:t0psecret@r.example/x?token=t0psecret\x07 is odd\n", "npm failed (EWHATEVER): https://r.example/x is odd"},
		{"nothing", "", "npm failed (exit status 7): it said nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := packages.NPMFailure([]byte(tt.output), 7)
			fails(t, err, tt.want)
			if strings.Contains(err.Error(), "t0psecret") {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
}

func TestNPMNotes(t *testing.T) {
	out := "npm warn EBADENGINE Unsupported engine {\nnpm warn EBADENGINE   package: 'x@1.0.0',\nnpm warn EBADENGINE   required: { node: '>=99' },\nnpm warn EBADENGINE }\n"
	got := packages.NPMNotes([]byte(out))
	if len(got) != 1 || got[0] != `"x@1.0.0" asks for another node or npm: { node: '>=99' }` {
		t.Errorf("got %q", got)
	}
}
