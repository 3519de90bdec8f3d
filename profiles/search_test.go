package profiles_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox/program"
)

// write makes a file with its folders.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// one returns the only problem of an error as "where: message | hint".
func one(t *testing.T, err error) string {
	t.Helper()
	var many profiles.Errors
	if !errors.As(err, &many) || len(many) != 1 {
		t.Fatalf("got %v (%T), want one problem", err, err)
	}
	return strings.TrimSuffix(many[0].Error()+" | "+many[0].Hint, " | ")
}

// asNobody runs a step without the rights of root on files, so that tests of permissions
// mean the same to every user. fsuid belongs to the thread.
func asNobody(t *testing.T, step func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		step()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	step()
}

func TestParseFile(t *testing.T) {
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "good.yaml"), "version: 1\n")
	odd := write(t, filepath.Join(dir, "my profile.yaml"), "version: 1\n")
	secret := write(t, filepath.Join(dir, "secret.yaml"), "version: 1\n")
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, append([]byte("version: 1\n#"), make([]byte, 10<<20)...), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	dangling := filepath.Join(dir, "dangling.yaml")
	fifo := filepath.Join(dir, "fifo.yaml")
	for _, err := range []error{
		os.Symlink(good, link), os.Symlink(filepath.Join(dir, "none"), dangling), syscall.Mkfifo(fifo, 0o644),
		os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o755), os.Chmod(secret, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, file, want string }{
		{"missing", filepath.Join(dir, "none.yaml"), ": opening the profile: no such file or directory | correct the path; if it is a link, see where it leads"},
		{"dangling link", dangling, ": opening the profile: no such file or directory | correct the path; if it is a link, see where it leads"},
		{"folder", filepath.Join(dir, "folder.yaml"), ": opening the profile: it is a folder, not a file | name the profile in it, a file that ends in .yaml"},
		{"fifo without writer", fifo, ": opening the profile: it is not a regular file"},
		{"device", "/dev/zero", ": opening the profile: it is not a regular file"},
		{"10 MB", big, ": the file is larger than 1048576 bytes | a profile has a few dozen lines"},
		{"unreadable", secret, ": opening the profile: permission denied | the person who starts the server has to be able to read it"},
		{"name that is none", odd, `: the file's name cannot be the profile's: "my profile" is not a profile's name | write "name: ..." in the profile, or rename the file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			if tt.name == "unreadable" {
				if chmod := os.Chmod(dir, 0o755); chmod != nil {
					t.Fatal(chmod)
				}
				openWay(t, dir)
				asNobody(t, func() { _, err = profiles.ParseFile(tt.file) })
			} else {
				_, err = profiles.ParseFile(tt.file)
			}
			if got := one(t, err); got != tt.file+tt.want {
				t.Errorf("problem:\n got %s\nwant %s", got, tt.file+tt.want)
			}
		})
	}
	for _, file := range []string{good, link} {
		p, err := profiles.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); p.Name.Value != want || p.File != file {
			t.Errorf("profile %q of %q, want %q of %q", p.Name.Value, p.File, want, file)
		}
	}
}

// openWay lets everyone pass the folders above a test's own; they are private to the user
// who runs the tests.
func openWay(t *testing.T, dir string) {
	t.Helper()
	for at := filepath.Dir(dir); at != "/"; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(at, st.Mode().Perm()|0o011); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(at, st.Mode().Perm()) })
		}
	}
}

// places makes the three folders of a search, with files by place.
func places(t *testing.T, files map[string]string) profiles.Search {
	t.Helper()
	dir := t.TempDir()
	s := profiles.Search{Repo: filepath.Join(dir, "repo"), Config: filepath.Join(dir, "config"), System: filepath.Join(dir, "etc")}
	folders := map[string]string{
		"repo": filepath.Join(s.Repo, ".stockade/profiles"), "user": filepath.Join(s.Config, "stockade/profiles"), "system": filepath.Join(s.System, "stockade/profiles"),
	}
	if err := os.MkdirAll(s.Repo, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		place, file, _ := strings.Cut(name, "/")
		write(t, filepath.Join(folders[place], file), text)
	}
	return s
}

func TestFind(t *testing.T) {
	s := places(t, map[string]string{
		"repo/a.yaml": "version: 1\ndescription: repo\n", "user/a.yaml": "version: 1\ndescription: user\n", "system/a.yaml": "version: 1\ndescription: system\n",
		"user/b.yaml": "version: 1\ndescription: user\n", "system/b.yaml": "version: 1\ndescription: system\n",
		"system/node.yaml": "version: 1\ndescription: mine\n",
		"user/broken.yaml": "version: 9\n", "system/broken.yaml": "version: 1\n",
		"user/other.yaml": "version: 1\nname: another\n", "user/c.yml": "version: 1\n", "user/wide.yaml": "version: 1\n",
	})
	user := filepath.Join(s.Config, "stockade/profiles")
	if err := os.Chmod(filepath.Join(user, "wide.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/none", filepath.Join(user, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"a": "repo", "b": "user", "node": "mine", "filesystem": "The reference file server, for the folders on its command line", user + "/b.yaml": "user"} {
		p, err := s.Find(word)
		if err != nil {
			t.Fatal(err)
		}
		if p.Description != want || p.FromRepo != (want == "repo") {
			t.Errorf("Find(%q) is %q (from the repository: %v), want %q", word, p.Description, p.FromRepo, want)
		}
	}
	if p, err := s.WithoutRepo().Find("a"); err != nil || p.Description != "user" {
		t.Errorf("without the repository, a is %v (%v)", p, err)
	}
	if p, err := (profiles.Search{}).Find("node"); err != nil || p.File != "built-in node" {
		t.Errorf("with no places, node is %v (%v)", p, err)
	}
	for word, want := range map[string]string{
		"none":        `--profile: no profile is named "none" | did you mean "node"?`,
		"zzzz":        `--profile: no profile is named "zzzz" | see: stockade profile list`,
		"bb":          `--profile: no profile is named "bb" | see: stockade profile list`,
		"filesytem":   `--profile: no profile is named "filesytem" | did you mean "filesystem"?`,
		"c":           `--profile: no profile is named "c" | rename "` + user + `/c.yml": profiles end in .yaml`,
		"..":          `--profile: ".." is not a profile's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`,
		"":            `--profile: a profile's name cannot be empty | letters, digits, dot, dash and underscore, beginning with a letter or digit`,
		"broken":      user + `/broken.yaml:1:10: version 9 is not known | write "version: 1"`,
		"other":       user + `/other.yaml:2:7: the profile is named "another" in a file named "other" | rename the file, or remove the key`,
		"wide":        user + `/wide.yaml: opening the profile: everyone may write the file | chmod go-w ` + user + `/wide.yaml`,
		"dangling":    user + `/dangling.yaml: opening the profile: no such file or directory | correct the path; if it is a link, see where it leads`,
		"./none.yaml": `./none.yaml: opening the profile: no such file or directory | correct the path; if it is a link, see where it leads`,
	} {
		t.Run(word, func(t *testing.T) {
			_, err := s.Find(word)
			if got := one(t, err); got != want {
				t.Errorf("problem:\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestRepositoryLinksStayInside: a repository's profiles are opened below its top folder,
// whatever its links say.
func TestRepositoryLinksStayInside(t *testing.T) {
	outside := write(t, filepath.Join(t.TempDir(), "x.yaml"), "version: 1\n")
	s := places(t, map[string]string{"repo/inside.yaml": "version: 1\n"})
	folder := filepath.Join(s.Repo, ".stockade/profiles")
	for name, target := range map[string]string{"abs": outside, "up": "../../../../" + filepath.Base(filepath.Dir(outside)) + "/x.yaml", "ok": "inside.yaml"} {
		if err := os.Symlink(target, filepath.Join(folder, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.Find("ok"); err != nil || !p.FromRepo {
		t.Errorf("a link inside the repository: %v, %v", p, err)
	}
	for _, name := range []string{"abs", "up"} {
		if _, err := s.Find(name); err == nil || !strings.Contains(err.Error(), "path escapes") {
			t.Errorf("a link out of the repository: %v", err)
		}
	}
	// The same files in the person's own folder are followed.
	user := filepath.Join(s.Config, "stockade/profiles")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(user, "abs.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WithoutRepo().Find("abs"); err != nil {
		t.Errorf("a link in the person's folder: %v", err)
	}
	moved := profiles.Search{Repo: t.TempDir()}
	if err := os.Symlink(filepath.Join(s.Repo, ".stockade"), filepath.Join(moved.Repo, ".stockade")); err != nil {
		t.Fatal(err)
	}
	if _, err := moved.Match(program.Program{}); err == nil {
		t.Error("the folder itself may lie outside the repository")
	}
}

func TestMatch(t *testing.T) {
	s := places(t, map[string]string{
		"repo/r.yaml":   "version: 1\nmatch: {packages: [\"npm:@r/*\"]}\n",
		"user/u.yaml":   "version: 1\nmatch: {commands: [\"tool-*\"], packages: [\"npm:both\"]}\n",
		"user/v.yaml":   "version: 1\n\"m\\x61tch\": {commands: [escaped], packages: [\"npm:both\"]}\n",
		"user/w.yaml":   "version: 1\ndescription: names no command line\n",
		"system/s.yaml": "version: 1\nmatch: {packages: [\"npm:@r/*\", \"pypi:my-server\"]}\n",
	})
	s.Dir = t.TempDir()
	site := filepath.Join(t.TempDir(), "site-packages")
	write(t, filepath.Join(site, "My_Server", "__main__.py"), "")
	npm := func(name string) program.Program {
		return program.Program{Runtime: program.Node, Package: name, Named: "/usr/bin/node", Entry: "/srv/node_modules/" + name + "/index.js"}
	}
	tests := []struct {
		name string
		prog program.Program
		want string
	}{
		{"package in the repository first", npm("@r/x"), "r"},
		{"a star stays inside one part", program.Program{Runtime: program.Node, Package: "@r/x/y", Entry: "/srv/node_modules/@r/x/y/index.js"}, ""},
		{"command", program.Program{Named: "/usr/bin/tool-a"}, "u"},
		{"entry", program.Program{Runtime: program.Node, Entry: "/srv/tool-b"}, "u"},
		{"key with an escape", program.Program{Named: "/bin/escaped"}, "v"},
		{"PyPI names in any spelling", program.Program{Runtime: program.Python, Package: "My_Server", Read: []program.Need{{Path: site}}, Sites: []string{site}}, "s"},
		{"kinds are told apart", npm("my-server"), ""},
		{"built-in", npm("@modelcontextprotocol/server-filesystem"), "filesystem"},
		{"built-in by command", program.Program{Named: "/usr/local/bin/mcp-server-filesystem"}, "filesystem"},
		{"none", program.Program{Runtime: program.Node, Package: "x", Named: "/usr/bin/node", Entry: "/x.js"}, ""},
		{"nothing known", program.Program{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := s.Match(tt.prog)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p != nil {
				got = p.Name.Value
			}
			if got != tt.want {
				t.Errorf("matches %q, want %q", got, tt.want)
			}
		})
	}
	user := filepath.Join(s.Config, "stockade/profiles")
	_, err := s.Match(npm("both"))
	want := user + `/v.yaml: "u" and "v" both match this command line | name one with --profile, or narrow a match section`
	if got := one(t, err); got != want {
		t.Errorf("problem:\n got %s\nwant %s", got, want)
	}
	t.Run("a broken file could be the narrower one", func(t *testing.T) {
		write(t, filepath.Join(user, "z.yaml"), "version: 1\nmatch: {command: [x]}\n")
		_, err := s.Match(program.Program{Named: "/bin/other"})
		want := user + `/z.yaml:2:9: unknown key "command" in "match" | did you mean "commands"?`
		if got := one(t, err); got != want {
			t.Errorf("problem:\n got %s\nwant %s", got, want)
		}
	})
	t.Run("a file whose match section is misspelled could be, too", func(t *testing.T) {
		write(t, filepath.Join(user, "z.yaml"), "version: 1\nmach: {commands: [x]}\n")
		_, err := s.Match(program.Program{Named: "/bin/other"})
		want := user + `/z.yaml:2:1: unknown key "mach" | did you mean "match"?`
		if got := one(t, err); got != want {
			t.Errorf("problem:\n got %s\nwant %s", got, want)
		}
	})
	t.Run("a file with the other suffix counts to its author", func(t *testing.T) {
		if err := os.Rename(filepath.Join(user, "z.yaml"), filepath.Join(user, "z.yml")); err != nil {
			t.Fatal(err)
		}
		_, err := s.Match(program.Program{Named: "/bin/other"})
		if got, want := one(t, err), user+"/z.yml: profiles end in .yaml | rename it"; got != want {
			t.Errorf("problem:\n got %s\nwant %s", got, want)
		}
	})
}

func TestList(t *testing.T) {
	s := places(t, map[string]string{
		"repo/a.yaml": "version: 1\n", "user/a.yaml": "version: 1\ndescription: d\nmatch: {commands: [x], packages: [\"npm:y\"]}\n", "user/bad.yaml": "version: 2\n",
		"user/.hidden.yaml": "nonsense", "user/notes.txt": "nonsense",
	})
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range list {
		got = append(got, fmt.Sprintf("%s %s %v %v %v", l.Place, l.Name, l.Hidden, l.Err != nil, l.Matches))
	}
	want := []string{
		"repository a false false []", "user a true false [npm:y x]", "user bad false true []",
	}
	for _, name := range profiles.BuiltinNames() {
		p, _ := profiles.Builtin(name)
		var matches []string
		for _, m := range slices.Concat(p.Match.Packages, p.Match.Commands) {
			matches = append(matches, m.Value)
		}
		want = append(want, fmt.Sprintf("built-in %s false false %v", name, matches))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if _, err := (profiles.Search{Repo: filepath.Join(s.Repo, "none")}).List(); err == nil {
		t.Error("a repository that is not there lists nothing")
	}
	write(t, filepath.Join(s.System, "stockade"), "a file in the folder's place")
	if _, err := s.List(); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in the place of a folder: %v", err)
	}
}
