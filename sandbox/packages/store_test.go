package packages_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/packages"
)

// installChild names the store and the marks of a child that installs.
const installChild = "STOCKADE_TEST_INSTALL"

func TestMain(m *testing.M) {
	if named := os.Getenv(installChild); named != "" {
		os.Exit(installAsChild(named))
	}
	os.Exit(m.Run())
}

var asked = packages.Request{Kind: packages.NPM, Specs: []packages.Spec{{Name: "@a/server"}}}

func newStore(t *testing.T) packages.Store {
	t.Helper()
	top := t.TempDir()
	// What is installed is read-only, and t.TempDir removes with the ordinary rights.
	t.Cleanup(func() { openUp(t, top) })
	return packages.Store{Root: filepath.Join(top, "stockade", "packages")}
}

// openUp gives the rights back that removing a tree needs.
func openUp(t *testing.T, top string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// fill makes what an install would make.
func fill(stage packages.Stage) error {
	files := map[string]string{
		"package.json": "{}", "node_modules/@a/server/package.json": `{"name":"@a/server","bin":"index.js"}`,
		"node_modules/@a/server/index.js": "#!/usr/bin/env node\n", "node_modules/b/data.txt": "data",
	}
	for path, text := range files {
		path = filepath.Join(stage.Tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(os.Mkdir(filepath.Join(stage.Tree, "node_modules/.bin"), 0o755),
		os.Symlink("../@a/server/index.js", filepath.Join(stage.Tree, "node_modules/.bin/server")))
}

// ensure installs unless it is installed, and tells whether it was this call that did.
func ensure(store packages.Store, r packages.Request, make func(packages.Stage) error) (packages.Entry, bool, error) {
	held, err := store.Lock(context.Background(), r, nil)
	if err != nil {
		return packages.Entry{}, false, err
	}
	e, found, err := store.Find(r)
	if err == nil && !found {
		var stage packages.Stage
		if stage, err = held.Stage(); err == nil {
			if err = make(stage); err == nil {
				e, err = held.Commit(packages.Installed{Name: r.Specs[0].Name, Version: "1.0.0"}, "a test")
			}
		}
	}
	return e, !found && err == nil, errors.Join(err, held.Release())
}

func installed(t *testing.T, store packages.Store) packages.Entry {
	t.Helper()
	e, _, err := ensure(store, asked, fill)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStore(t *testing.T) {
	store := newStore(t)
	if _, found, err := store.Find(asked); found || err != nil {
		t.Fatalf("an empty store: got %v, %v", found, err)
	}
	e := installed(t, store)
	if want := filepath.Join(store.Root, "npm/@a/server@1.0.0-"+e.Digest); e.Folder != want || len(e.Digest) != 16 {
		t.Errorf("got the folder %q, want %q", e.Folder, want)
	}
	got, found, err := store.Find(asked)
	if diff := cmp.Diff(e, got); !found || err != nil || diff != "" {
		t.Errorf("found %v, %v; (-installed +found):\n%s", found, err, diff)
	}
	if _, found, err := store.Find(packages.Request{Kind: packages.NPM, Specs: []packages.Spec{{Name: "@a/server", Version: "latest"}}}); !found || err != nil {
		t.Errorf("the tag latest: found %v, %v; it is the same as no version", found, err)
	}
	if _, found, _ := store.Find(packages.Request{Kind: packages.NPM, Specs: []packages.Spec{{Name: "@a/server", Version: "1.0.0"}}}); found {
		t.Error("another version is found under this one's request")
	}
	err = filepath.WalkDir(e.Folder, func(path string, d os.DirEntry, err error) error {
		info, infoErr := d.Info()
		if err == nil && infoErr == nil && info.Mode().Type() != os.ModeSymlink && info.Mode()&0o222 != 0 && !strings.Contains(path, ".stockade") {
			t.Errorf("%s can be written: %s", path, info.Mode())
		}
		return errors.Join(err, infoErr)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRestoredStore: a store that was copied, as a backup does, has other inodes and times, and is
// compared by content, links by what they say.
func TestRestoredStore(t *testing.T) {
	store := newStore(t)
	e := installed(t, store)
	kept := filepath.Join(t.TempDir(), "kept")
	for _, words := range [][]string{{"cp", "-a", store.Root, kept}, {"chmod", "-R", "u+w", store.Root}, {"rm", "-r", store.Root}, {"cp", "-a", kept, store.Root}, {"chmod", "-R", "u+w", kept}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", words, err, out)
		}
	}
	got, found, err := store.Find(asked)
	if !found || err != nil || got.Digest != e.Digest {
		t.Fatalf("found %v, %v, %q", found, err, got.Digest)
	}
	link := filepath.Join(got.Folder, "node_modules/.bin/server")
	if err := errors.Join(os.Chmod(filepath.Dir(link), 0o755), os.Remove(link), os.Symlink("../b/data.txt", link), os.Chmod(filepath.Dir(link), 0o555)); err != nil {
		t.Fatal(err)
	}
	if _, found, err := store.Find(asked); err == nil {
		t.Errorf("a link that leads elsewhere: found %v", found)
	}
}

// TestTampered changes an entry in every way that there is. Each is found, and the entry is
// never handed out.
func TestTampered(t *testing.T) {
	in := func(e packages.Entry, path string) string { return filepath.Join(e.Folder, path) }
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, e packages.Entry)
		path   string
	}{
		{"appended", func(t *testing.T, e packages.Entry) {
			must(t, os.Chmod(in(e, "node_modules/b/data.txt"), 0o644), os.WriteFile(in(e, "node_modules/b/data.txt"), []byte("data and more"), 0o644))
		}, "node_modules/b/data.txt"},
		{"same length, old times, old mode", func(t *testing.T, e packages.Entry) {
			path := in(e, "node_modules/b/data.txt")
			st, err := os.Stat(path)
			must(t, err, os.Chmod(path, 0o644), os.WriteFile(path, []byte("DATA"), 0o644), os.Chtimes(path, st.ModTime(), st.ModTime()), os.Chmod(path, st.Mode()))
		}, "node_modules/b/data.txt"},
		{"added", func(t *testing.T, e packages.Entry) {
			must(t, os.Chmod(in(e, "node_modules/b"), 0o755), os.WriteFile(in(e, "node_modules/b/index.js"), nil, 0o444), os.Chmod(in(e, "node_modules/b"), 0o555))
		}, "node_modules/b/index.js"},
		{"removed", func(t *testing.T, e packages.Entry) {
			must(t, os.Chmod(in(e, "node_modules/b"), 0o755), os.Remove(in(e, "node_modules/b/data.txt")), os.Chmod(in(e, "node_modules/b"), 0o555))
		}, "node_modules/b/data.txt"},
		{"replaced by a link", func(t *testing.T, e packages.Entry) {
			must(t, os.Chmod(in(e, "node_modules/b"), 0o755), os.Remove(in(e, "node_modules/b/data.txt")),
				os.Symlink("/etc/passwd", in(e, "node_modules/b/data.txt")), os.Chmod(in(e, "node_modules/b"), 0o555))
		}, "node_modules/b/data.txt"},
		{"a link elsewhere", func(t *testing.T, e packages.Entry) {
			must(t, os.Chmod(in(e, "node_modules/.bin"), 0o755), os.Remove(in(e, "node_modules/.bin/server")),
				os.Symlink("../b/data.txt", in(e, "node_modules/.bin/server")), os.Chmod(in(e, "node_modules/.bin"), 0o555))
		}, "node_modules/.bin/server"},
		{"another mode", func(t *testing.T, e packages.Entry) { must(t, os.Chmod(in(e, "node_modules/b/data.txt"), 0o555)) }, "node_modules/b/data.txt"},
		{"another manifest", func(t *testing.T, e packages.Entry) {
			path := in(e, ".stockade/manifest")
			text, err := os.ReadFile(path)
			must(t, err, os.Chmod(path, 0o600), os.WriteFile(path, append(text, "d 0555 \"x\"\n"...), 0o400), os.Chmod(path, 0o400))
		}, ".stockade/manifest"},
		{"gone", func(t *testing.T, e packages.Entry) { must(t, os.Rename(e.Folder, e.Folder+"x")) }, "."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := newStore(t)
			e := installed(t, store)
			tt.change(t, e)
			got, found, err := store.Find(asked)
			tampered, ok := errors.AsType[*packages.TamperedError](err)
			if found || got.Folder != "" || !ok || tampered.Path != tt.path {
				t.Fatalf("got %v, %v; want a TamperedError about %q", found, err, tt.path)
			}
			if !strings.Contains(tampered.Hint(), "stockade package remove npm:@a/server") {
				t.Errorf("the hint is %q", tampered.Hint())
			}
		})
	}
}

// TestRestored has the content of before with stamps of its own, as after a restore.
func TestRestored(t *testing.T) {
	store := newStore(t)
	e := installed(t, store)
	path := filepath.Join(e.Folder, "node_modules/b/data.txt")
	folder := filepath.Dir(path)
	if err := errors.Join(os.Chmod(folder, 0o755), os.Remove(path), os.WriteFile(path, []byte("data"), 0o444), os.Chmod(folder, 0o555)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, found, err := store.Find(asked); !found || err != nil {
			t.Errorf("got %v, %v", found, err)
		}
	}
}

func TestStoreOfOthers(t *testing.T) {
	store := newStore(t)
	e := installed(t, store)
	for _, folder := range []string{store.Root, filepath.Dir(e.Folder)} {
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		var refused *packages.StoreError
		if _, found, err := store.Find(asked); found || !errors.As(err, &refused) || refused.Path != folder {
			t.Errorf("a folder that others write: got %v, %v; want an error about %q", found, err, folder)
		}
		if err := os.Chmod(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusedTrees are trees that an install script may leave.
func TestRefusedTrees(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		make func(tree string) error
		want string
	}{
		{"an absolute link", func(tree string) error { return os.Symlink("/etc/passwd", tree+"/x") }, "link out of the package"},
		{"a link upwards", func(tree string) error { return os.Symlink("../../x", tree+"/x") }, "link out of the package"},
		{"a hidden link upwards", func(tree string) error { return os.Symlink("node_modules/../../x", tree+"/x") }, "link out of the package"},
		{"a fifo", func(tree string) error { return unix.Mkfifo(tree+"/x", 0o600) }, "a device, a socket or a fifo"},
		{"a file with another name outside", func(tree string) error { return os.Link(outside, tree+"/x") }, "another name outside"},
		{"a line end in a name", func(tree string) error { return os.WriteFile(tree+"/a\nb", nil, 0o600) }, "control character"},
		{"an interpreter of an npm package", func(tree string) error {
			return errors.Join(os.MkdirAll(tree+"/venv/bin", 0o755), os.Symlink("/usr/bin/env", tree+"/venv/bin/python"))
		}, "link out of the package"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := newStore(t)
			_, _, err := ensure(store, asked, func(s packages.Stage) error { return errors.Join(fill(s), tt.make(s.Tree)) })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if _, found, err := store.Find(asked); found || err != nil {
				t.Errorf("afterwards: got %v, %v", found, err)
			}
			if left, err := os.ReadDir(filepath.Join(store.Root, ".partial")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if _, did, err := ensure(store, asked, fill); !did || err != nil {
				t.Errorf("the next install: got %v, %v", did, err)
			}
		})
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "x" {
		t.Errorf("the file outside reads %q, %v", text, err)
	}
}

// TestHostileStage removes what a script made so that it cannot be removed.
func TestHostileStage(t *testing.T) {
	store := newStore(t)
	_, _, err := ensure(store, asked, func(s packages.Stage) error {
		deep := s.Tree
		for range 300 {
			deep += "/d"
		}
		err := errors.Join(os.MkdirAll(deep, 0o755), os.WriteFile(deep+"/f", nil, 0), os.Symlink("/", s.Home+"/root"),
			os.Mkdir(s.Temp+"/closed", 0o700), os.WriteFile(s.Temp+"/closed/f", nil, 0), os.Chmod(s.Temp+"/closed", 0))
		for at := deep; at != s.Tree; at = filepath.Dir(at) {
			err = errors.Join(err, os.Chmod(at, 0o500))
		}
		return errors.Join(err, errors.New("the install fails"))
	})
	if err == nil || err.Error() != "the install fails" {
		t.Fatalf("got %v, want the failure of the install alone", err)
	}
	if left, err := os.ReadDir(filepath.Join(store.Root, ".partial")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSameContent: two requests that resolve to one tree share it.
func TestSameContent(t *testing.T) {
	store := newStore(t)
	e := installed(t, store)
	pinned := packages.Request{Kind: packages.NPM, Specs: []packages.Spec{{Name: "@a/server", Version: "1.0.0"}}}
	other, did, err := ensure(store, pinned, fill)
	if err != nil || !did || other.Folder != e.Folder {
		t.Fatalf("got %q (%v, %v), want %q", other.Folder, did, err, e.Folder)
	}
	listed, err := store.List()
	if err != nil || len(listed) != 1 || len(listed[0].Requests) != 2 || len(listed[0].InUse) != 0 {
		t.Fatalf("got %+v, %v; want one entry with two requests", listed, err)
	}
	if err := store.Remove(t.Context(), listed[0]); err != nil {
		t.Fatal(err)
	}
	for _, r := range []packages.Request{asked, pinned} {
		if _, found, err := store.Find(r); found || err != nil {
			t.Errorf("after removing: got %v, %v", found, err)
		}
	}
	if listed, err := store.List(); err != nil || len(listed) != 0 {
		t.Errorf("after removing: %+v, %v", listed, err)
	}
}

func TestInUse(t *testing.T) {
	store := newStore(t)
	e := installed(t, store)
	// A process whose command line names a file of the entry, as a runtime's does.
	cmd := exec.Command("sleep", "1000")
	cmd.Args = []string{"sleep", "1000", filepath.Join(e.Folder, "node_modules/@a/server/index.js")}
	cmd.Args[0] = filepath.Join(e.Folder, "x")
	cmd.Args = []string{filepath.Join(e.Folder, "x"), "1000"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	listed, err := store.List()
	if err != nil || len(listed) != 1 || !cmp.Equal(listed[0].InUse, []int{cmd.Process.Pid}) {
		t.Errorf("got %+v, %v; want process %d", listed, err, cmd.Process.Pid)
	}
}

// installAsChild installs once and writes a mark when it was this process that did.
func installAsChild(root string) int {
	_, did, err := ensure(packages.Store{Root: root}, asked, func(s packages.Stage) error {
		time.Sleep(2 * time.Millisecond) // an install takes a while; nothing waits for this
		return fill(s)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if did {
		fmt.Println("installed")
	}
	return 0
}

func child(t *testing.T, store packages.Store) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{installChild + "=" + store.Root}
	return cmd
}

// TestTogether starts twenty processes at once that need the same package.
func TestTogether(t *testing.T) {
	store := newStore(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	did := 0
	for range 20 {
		cmd := child(t, store)
		all.Go(func() {
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			did += strings.Count(string(out), "installed")
		})
	}
	all.Wait()
	if did != 1 {
		t.Errorf("%d processes installed it, want one", did)
	}
	if _, found, err := store.Find(asked); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

// TestKilled kills installs at any point. What is found afterwards is whole, or nothing, and
// the next install works.
func TestKilled(t *testing.T) {
	store := newStore(t)
	outcomes := map[string]int{}
	for i := range 60 {
		cmd := child(t, store)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_, found, err := store.Find(asked)
		if err != nil {
			t.Fatalf("after kill %d: %v", i, err)
		}
		outcomes[strconv.FormatBool(found)]++
		if !found {
			continue
		}
		listed, err := store.List()
		if err != nil || len(listed) != 1 {
			t.Fatalf("after kill %d: %+v, %v", i, listed, err)
		}
		if err := store.Remove(t.Context(), listed[0]); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("found afterwards: %v", outcomes)
	if _, _, err := ensure(store, asked, fill); err != nil {
		t.Error(err)
	}
	if _, found, err := store.Find(asked); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestReadOnlyStore(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root writes where the mode forbids it; a file in the folder's place stops it as well.
		top := t.TempDir()
		if err := os.WriteFile(top+"/stockade", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := packages.Store{Root: top + "/stockade/packages"}.Lock(t.Context(), asked, nil)
		var refused *packages.StoreError
		if !errors.As(err, &refused) || !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("got %v, want ENOTDIR", err)
		}
		return
	}
	top := t.TempDir()
	if err := os.Chmod(top, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := packages.Store{Root: top + "/stockade/packages"}.Lock(t.Context(), asked, nil)
	var refused *packages.StoreError
	if !errors.As(err, &refused) || !errors.Is(err, unix.EACCES) || !strings.Contains(refused.Hint(), "XDG_DATA_HOME") {
		t.Errorf("got %v, want EACCES and a hint", err)
	}
}

func TestWaiting(t *testing.T) {
	store := newStore(t)
	held, err := store.Lock(t.Context(), asked, func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = store.Lock(ctx, asked, cancel)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the wait to end", err)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}

func BenchmarkFind(b *testing.B) {
	top := b.TempDir()
	store := packages.Store{Root: filepath.Join(top, "stockade", "packages")}
	_, _, err := ensure(store, asked, func(s packages.Stage) error {
		for i := range 3000 {
			path := filepath.Join(s.Tree, "node_modules", strconv.Itoa(i%300), strconv.Itoa(i)+".js")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, found, err := store.Find(asked); !found || err != nil {
			b.Fatal(found, err)
		}
	}
	listed, err := store.List()
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Remove(context.Background(), listed[0]); err != nil {
		b.Fatal(err)
	}
}
