package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	got := environment([]string{"A=1", "B=x=y", "A=2", "=C:", "EMPTY=", "no-equals"})
	want := map[string]string{"A": "1", "B": "x=y", "EMPTY": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHomeFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, home, want, problem string
	}{
		{"a folder", dir, dir, ""},
		{"not clean", dir + "/./", dir, ""},
		{"unset", "", "", "HOME is not set, so your home folder cannot be protected"},
		{"relative", "home/me", "", `HOME is "home/me", which is not absolute`},
		{"missing", dir + "/nobody", "", `looking for the home folder "` + dir + `/nobody": no such file or directory`},
		{"a file", file, "", `HOME is "` + file + `", which is not a folder`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := homeFolder(map[string]string{"HOME": tt.home})
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if got != tt.want || problem != tt.problem {
				t.Errorf("got %q, %q; want %q, %q", got, problem, tt.want, tt.problem)
			}
			if err != nil && hintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestWorkingFolderIsTheKernels(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PWD", "/elsewhere")
	if got, err := workingFolder(); err != nil || got != dir {
		t.Errorf("got %q, %v; want %q", got, err, dir)
	}
}

func TestWorkingFolderRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := workingFolder(); err == nil {
		t.Errorf("got %q for a removed folder", got)
	}
}

func TestRepository(t *testing.T) {
	base := t.TempDir()
	mkdir := func(parts ...string) string {
		t.Helper()
		dir := filepath.Join(append([]string{base}, parts...)...)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	home := mkdir("home")
	inside := mkdir("home", "code", "repo", "deep", "er")
	mkdir("home", "code", "repo", ".git")
	worktree := mkdir("home", "tree")
	if err := os.WriteFile(filepath.Join(worktree, ".git"), []byte("gitdir: elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := mkdir("home", "plain")
	mkdir(".git") // above home
	outside := mkdir("srv", "data")
	linked := mkdir("linked")
	if err := os.Symlink(home, filepath.Join(linked, ".git")); err != nil {
		t.Fatal(err)
	}
	uid := os.Getuid()
	tests := []struct {
		name, dir string
		uid       int
		want      string
	}{
		{"below a repository", inside, uid, filepath.Join(home, "code", "repo")},
		{"a worktree's file", worktree, uid, worktree},
		{"none below home, one above", plain, uid, ""},
		{"outside home", outside, uid, base},
		{"a link is none, and ends the search", linked, uid, ""},
	}
	if uid != 0 {
		tests = append(tests, struct {
			name, dir string
			uid       int
			want      string
		}{"of another user", inside, uid + 1, ""})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := repository(tt.dir, home, tt.uid); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A repository of an ordinary user is none to another one. As root the test gives the
// folder away; otherwise it asks as another user.
func TestRepositoryOfSomebodyElse(t *testing.T) {
	base := t.TempDir()
	git := filepath.Join(base, ".git")
	if err := os.Mkdir(git, 0o700); err != nil {
		t.Fatal(err)
	}
	asking := os.Getuid() + 1
	if os.Getuid() == 0 {
		if err := os.Chown(git, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		asking = 0
	}
	if got := repository(base, "/nowhere", asking); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestXDGFolder(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"unset", "", "/home/me/.config"},
		{"absolute", "/etc/mine/", "/etc/mine"},
		{"relative is ignored", "config", "/home/me/.config"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"XDG_CONFIG_HOME": tt.value}
			if got := xdgFolder(env, "XDG_CONFIG_HOME", "/home/me", ".config"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
