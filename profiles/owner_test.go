package profiles_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stockade/profiles"
)

// TestOthersCannotChangeProfiles: wherever a profile lies and however it is named, it is
// read only when nobody but this user and root can change it; the allowed twin is the same
// file before.
func TestOthersCannotChangeProfiles(t *testing.T) {
	type change struct {
		name   string
		change func(t *testing.T, file string)
		want   string // HERE: the folder
	}
	changes := []change{
		{"others may write", chmod("", 0o646), "everyone may write the file | chmod o-w HERE/x.yaml"},
		{"all may write", chmod("", 0o666), "everyone may write the file | chmod go-w HERE/x.yaml"},
		{"folder of everyone", chmod("..", 0o777), "everyone may write the folder that holds it | chmod o-w HERE"},
		{"sticky folder of everyone", chmod("..", 0o777|os.ModeSticky), "everyone may write the folder that holds it | chmod o-w HERE"},
	}
	if os.Geteuid() == 0 || os.Getegid() != os.Geteuid() { // else the group is this user's alone
		changes = append(changes, change{"group may write", chmod("", 0o664), "its group may write the file | chmod g-w HERE/x.yaml"})
	}
	if os.Geteuid() == 0 { // only root gives files away; TestOwners has the rule for every user
		changes = append(changes,
			change{"another user's file", chown(""), "the file belongs to user 4711, who can change it | chown SELF HERE/x.yaml"},
			change{"another user's folder", chown(".."), "the folder that holds it belongs to user 4711, who can change it | chown SELF HERE"})
	}
	ways := map[string]func(s profiles.Search, file string) error{
		"repo": func(s profiles.Search, _ string) error { _, err := s.Find("x"); return err },
		"user": func(s profiles.Search, _ string) error { _, err := s.Find("x"); return err },
		"system": func(s profiles.Search, _ string) error {
			_, err := s.Find("x")
			return err
		},
		"elsewhere": func(s profiles.Search, file string) error { _, err := s.Find(file); return err },
		"extended": func(s profiles.Search, file string) error {
			p, err := profiles.Parse(filepath.Join(filepath.Dir(file), "over.yaml"), []byte("version: 1\nextends: [x]\n"))
			if err == nil {
				_, err = s.Complete(p)
			}
			return err
		},
	}
	for way, read := range ways {
		for _, c := range changes {
			t.Run(way+", "+c.name, func(t *testing.T) {
				place := way
				if way == "elsewhere" || way == "extended" {
					place = "user"
				}
				s := places(t, map[string]string{place + "/x.yaml": "version: 1\nenvironment: {pass: [TZ]}\n"})
				file := filepath.Join(map[string]string{"repo": s.Repo + "/.stockade/profiles", "user": s.Config + "/stockade/profiles", "system": s.System + "/stockade/profiles"}[place], "x.yaml")
				if err := read(s, file); err != nil {
					t.Fatalf("before the change: %v", err)
				}
				c.change(t, file)
				want := file + ": opening the profile: " + strings.NewReplacer("HERE", filepath.Dir(file), "SELF", strconv.Itoa(os.Geteuid())).Replace(c.want)
				if got := one(t, read(s, file)); got != want {
					t.Errorf("problem:\n got %s\nwant %s", got, want)
				}
			})
		}
	}
}

func chmod(to string, mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		path := file
		if to != "" {
			path = filepath.Dir(file)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func chown(to string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		path := file
		if to != "" {
			path = filepath.Dir(file)
		}
		if err := os.Chown(path, 4711, -1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOwnersOfLinks: a link is judged by the file that it leads to, and by that file's
// folder, since these are what is read.
func TestOwnersOfLinks(t *testing.T) {
	base := t.TempDir()
	good, open := filepath.Join(base, "good"), filepath.Join(base, "open")
	write(t, filepath.Join(good, "x.yaml"), "version: 1\n")
	write(t, filepath.Join(open, "x.yaml"), "version: 1\n")
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(good, "link.yaml")
	if err := os.Symlink(filepath.Join(open, "x.yaml"), link); err != nil {
		t.Fatal(err)
	}
	if got, want := one(t, second(profiles.ParseFile(link))), link+": opening the profile: everyone may write the folder that holds it | chmod o-w "+open; got != want {
		t.Errorf("problem:\n got %s\nwant %s", got, want)
	}
	if _, err := profiles.ParseFile(filepath.Join(good, "x.yaml")); err != nil {
		t.Error(err)
	}
	root := "/etc/passwd" // root's file, whoever reads it
	f, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := profiles.CheckOwner(f); err != nil {
		t.Errorf("a file of root's: %v", err)
	}
}

func second(_ *profiles.Profile, err error) error { return err }

// TestProfilesOfRepositories: a file belongs to a repository by where it lies, whatever the
// working folder is and whatever it is named by.
func TestProfilesOfRepositories(t *testing.T) {
	base := t.TempDir()
	folder := filepath.Join(base, "repo/.stockade/profiles")
	wide := write(t, filepath.Join(folder, "wide.yaml"), "version: 1\nextends: [beside]\n")
	write(t, filepath.Join(folder, "beside.yaml"), "version: 1\nfilesystem: {read: [/b]}\n")
	deep := write(t, filepath.Join(base, "repo/.stockade/more/deep/x.yaml"), "version: 1\n")
	mine := write(t, filepath.Join(base, "mine.yaml"), "version: 1\n")
	alike := write(t, filepath.Join(base, "my.stockade/x.yaml"), "version: 1\n")
	user := filepath.Join(base, "config/stockade/profiles")
	write(t, filepath.Join(user, "over.yaml"), "version: 1\nextends: [linked]\n")
	write(t, filepath.Join(user, "own.yaml"), "version: 1\n")
	for link, target := range map[string]string{"link.yaml": wide, "config/stockade/profiles/linked.yaml": wide, "repo/.stockade/out.yaml": mine, "folder": folder} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(base, "repo/below")
	if err := os.MkdirAll(filepath.Join(below, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	for _, tt := range []struct {
		name, word string
		repo       bool
	}{
		{"absolute", wide, true},
		{"relative from a repository below", "../.stockade/profiles/wide.yaml", true},
		{"link", filepath.Join(base, "link.yaml"), true},
		{"link to the folder", filepath.Join(base, "folder/wide.yaml"), true},
		{"deeper", deep, true},
		{"link that leads out of it", filepath.Join(base, "repo/.stockade/out.yaml"), true},
		{"the person's own", mine, false},
		{"a folder that only ends alike", alike, false},
		{"the person's folder", "own", false},
	} {
		for _, repo := range []string{"", below, filepath.Join(base, "repo")} {
			s := profiles.Search{Repo: repo, Config: filepath.Join(base, "config")}
			p, err := s.Find(tt.word)
			if err != nil {
				t.Fatal(err)
			}
			if p.FromRepo != tt.repo {
				t.Errorf("%s, started in %q: FromRepo is %v", tt.name, repo, p.FromRepo)
			}
			done, err := s.Complete(p)
			if err != nil {
				t.Fatalf("%s, started in %q: %v", tt.name, repo, err)
			}
			if done.FromRepo != tt.repo || done.File != p.File {
				t.Errorf("%s: complete, it is %q, FromRepo %v", tt.name, done.File, done.FromRepo)
			}
			if len(p.Extends) > 0 && len(done.Filesystem.Read) != 1 {
				t.Errorf("%s, started in %q: what it extends is not merged: %+v", tt.name, repo, done)
			}
		}
	}
	// What a person's profile extends makes it the repository's.
	s := profiles.Search{Config: filepath.Join(base, "config")}
	write(t, filepath.Join(user, "over.yaml"), "version: 1\nextends: [beside]\n")
	if err := os.Symlink(filepath.Join(folder, "beside.yaml"), filepath.Join(user, "beside.yaml")); err != nil {
		t.Fatal(err)
	}
	p, err := s.Find("over")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.Complete(p); err != nil || p.FromRepo || !done.FromRepo {
		t.Errorf("a profile that extends a repository's: %v, FromRepo %v", err, done != nil && done.FromRepo)
	}
}
