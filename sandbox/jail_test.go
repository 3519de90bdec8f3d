package sandbox_test

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
)

// ground is a small world on disk for one user: folders inside and outside of grants.
type ground struct {
	user   jailtest.User
	victim string
	dir    string
	plan   sandbox.Plan
}

// newGround lays out:
//
//	write/in.txt, write/sub/     granted for writing
//	read/in.txt, read/prog       granted for reading
//	outside/secret.txt, .../prog not granted; all of the user's own
//	write/link -> ../outside     and write/filelink -> ../outside/secret.txt
func newGround(t *testing.T, l launcher) *ground {
	t.Helper()
	g := &ground{user: l.User, victim: l.victim, dir: jailtest.Dir(t, l.User)}
	for _, d := range []string{"write", "write/sub", "read", "outside", "outside/sub", "data", "cache"} {
		g.must(t, os.Mkdir(g.at(d), 0o755), d)
	}
	for _, f := range []string{"write/in.txt", "write/sub/in.txt", "read/in.txt", "outside/secret.txt", "outside/sub/in.txt"} {
		g.must(t, os.WriteFile(g.at(f), []byte("content"), 0o644), f)
	}
	for _, f := range []string{"read/prog", "outside/prog", "write/prog"} {
		g.must(t, os.WriteFile(g.at(f), readFile(t, "/bin/true"), 0o755), f)
	}
	g.must(t, os.WriteFile(g.at("write/script"), []byte("#!/bin/sh\nexit 0\n"), 0o755), "write/script")
	g.must(t, os.Symlink("../outside", g.at("write/link")), "write/link")
	g.must(t, os.Symlink("../outside/secret.txt", g.at("write/filelink")), "write/filelink")
	g.plan = g.newPlan(t)
	return g
}

func (g *ground) at(name string) string { return filepath.Join(g.dir, name) }

func (g *ground) must(t *testing.T, err error, name string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	jailtest.Own(t, g.user, g.at(name))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newPlan grants this test binary, its loader and its libraries, and the folders above.
func (g *ground) newPlan(t *testing.T) sandbox.Plan {
	t.Helper()
	binary := realPath(t, jailtest.Binary(t))
	p := sandbox.Plan{
		Name: "test", File: binary, Dir: g.dir,
		Home: sandbox.Folder{Path: g.at("data/stockade/homes/test")},
		Tmp:  sandbox.Folder{Path: g.at("cache/stockade/runs/test")},
		Runs: g.at("cache/stockade/runs"),
		Env:  []string{"PATH=/usr/bin:/bin", "TMPDIR=" + g.at("cache/stockade/runs/test")},
	}
	grant := func(path string, a sandbox.Access, why string) {
		p.Grants = append(p.Grants, sandbox.Grant{Path: path, Access: a, Why: why, Origin: sandbox.Origin{Source: "test"}})
	}
	grant(binary, sandbox.Execute, "the program")
	for _, file := range runtimeFiles(t, binary) {
		grant(file, sandbox.Execute, "loader")
		grant(filepath.Dir(file), sandbox.Read, "libraries")
	}
	grant("/dev/null", sandbox.Device, "")
	grant(p.Home.Path, sandbox.Scratch, "private home")
	grant(p.Tmp.Path, sandbox.Scratch, "temporary folder")
	grant(g.at("write"), sandbox.Write, "")
	grant(g.at("read"), sandbox.Read, "")
	return p
}

// runtimeFiles returns the loader of a dynamic test binary; a static one has none.
func runtimeFiles(t *testing.T, binary string) []string {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return nil
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	return []string{realPath(t, strings.TrimRight(string(data), "\x00"))}
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// launcher is a user and a way to start a server: the launcher becomes the server, or stays
// as its parent. Both have to make the same jail.
type launcher struct {
	jailtest.User
	victim string
}

func eachLauncher(t *testing.T, f func(t *testing.T, l launcher)) {
	t.Helper()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		for name, victim := range map[string]string{"enter": "jail", "start": "start"} {
			t.Run(name, func(t *testing.T) { f(t, launcher{user, victim}) })
		}
	})
}

// jailed does an operation in the jail of the plan, outside does the operation without one.
func (g *ground) jailed(t *testing.T, op ...string) jailtest.Result {
	t.Helper()
	plan, err := json.Marshal(g.plan)
	if err != nil {
		t.Fatal(err)
	}
	return jailtest.RunAs(t, g.user, g.victim, append([]string{string(plan)}, op...)...)
}

func (g *ground) outside(t *testing.T, op ...string) jailtest.Result {
	t.Helper()
	return jailtest.RunAs(t, g.user, "op", op...)
}

// setupFailed is the exit status of a victim that ends before its operation.
const setupFailed = 70

func contains(text, part string) bool { return strings.Contains(text, part) }
