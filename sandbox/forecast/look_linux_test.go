package forecast_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
)

// tree makes folders with a file in each and returns where they are.
func tree(t *testing.T, folders ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range folders {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func rule(t *testing.T, path string, kind forecast.Kind, grants forecast.Use) forecast.Rule {
	t.Helper()
	object, err := forecast.Identify(open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return forecast.Rule{Object: object, Path: path, Kind: kind, Grants: grants}
}

const (
	read  = forecast.UseRead
	write = forecast.UseWrite
	list  = forecast.UseList
)

func TestRefuses(t *testing.T) {
	dir := tree(t, "a/b/c", "a/bc", "other")
	at := func(name string) string { return filepath.Join(dir, name) }
	d := forecast.New(read|write|list, []forecast.Rule{
		rule(t, at("a"), forecast.OnFolder, read),
		rule(t, at("a/b"), forecast.OnFolder, list),
		rule(t, at("a/b/c/file"), forecast.OnFile, write),
	})
	for _, tt := range []struct {
		name      string
		use, want forecast.Use
	}{
		{"a/b/c/file", read | list | write, 0},
		{"a/b/c", read | list | write, write},
		{"a/b", read | list, 0},
		{"a/bc/file", read | list | write, list | write},
		{"a", list, list},
		{"other/file", read, read},
		{".", read, read},
		{"a/bc/file", read | forecast.UseExecute, 0}, // executing is not handled here
	} {
		got, err := d.Refuses(open(t, at(tt.name)), at(tt.name), tt.use)
		if err != nil || got != tt.want {
			t.Errorf("%s: refuses %b of %b (%v), want %b", tt.name, got, tt.use, err, tt.want)
		}
	}
	granted, err := d.Grants(open(t, at("a/b")), at("a/b"))
	if err != nil || granted&(read|write|list) != read|list {
		t.Errorf("grants %b (%v)", granted, err)
	}
}

// TestMovedFolder: a rule stays with its folder, under another name too.
func TestMovedFolder(t *testing.T) {
	dir := tree(t, "granted/in", "away")
	d := forecast.New(read, []forecast.Rule{rule(t, dir+"/granted", forecast.OnFolder, read)})
	moved := dir + "/away/moved"
	if err := os.Rename(dir+"/granted", moved); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Refuses(open(t, moved+"/in/file"), moved+"/in/file", read); err != nil || got != 0 {
		t.Errorf("refuses %b (%v)", got, err)
	}
}

// TestReplacedFile: a file that takes the place of a granted one has no rule.
func TestReplacedFile(t *testing.T) {
	dir := tree(t, "a", "b")
	file := dir + "/a/file"
	d := forecast.New(read, []forecast.Rule{rule(t, file, forecast.OnFile, read)})
	if got, err := d.Refuses(open(t, file), file, read); err != nil || got != 0 {
		t.Errorf("before: refuses %b (%v)", got, err)
	}
	if err := os.Rename(dir+"/b/file", file); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Refuses(open(t, file), file, read); err != nil || got != read || !d.Replaced(file) {
		t.Errorf("after: refuses %b (%v), replaced %v", got, err, d.Replaced(file))
	}
	if d.Replaced(dir + "/b") {
		t.Error("what was never granted was not replaced")
	}
}

// TestUntold: what cannot be looked at is an error and no answer.
func TestUntold(t *testing.T) {
	dir := tree(t, "a")
	d := forecast.New(read, nil)
	fd := open(t, dir+"/a/file")
	if _, err := d.Refuses(fd, "/no/such/folder/file", read); err == nil {
		t.Error("a path whose folder is gone has an answer")
	}
	if _, err := d.Refuses(-1, dir+"/a/file", read); err == nil {
		t.Error("a descriptor that is none has an answer")
	}
}
