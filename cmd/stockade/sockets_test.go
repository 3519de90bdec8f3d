package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"stockade/profiles"
)

func TestLookAtSockets(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "s", "folder": ".", "dangling": "nothing"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(at("s"), at("hard")); err != nil {
		t.Fatal(err)
	}
	paths := []string{at("s"), at("link"), at("hard"), at("file"), at("folder"), at("dangling"), at("absent"), at("file/x")}
	found := lookAtSockets(paths)
	for name, want := range map[string]struct {
		state profiles.SocketState
		real  string
	}{
		"s": {profiles.SocketThere, at("s")}, "link": {profiles.SocketThere, at("s")}, "hard": {profiles.SocketThere, at("hard")},
		"file": {profiles.SocketOther, at("file")}, "folder": {profiles.SocketFolder, dir}, "dangling": {}, "absent": {}, "file/x": {},
	} {
		if got := found[at(name)]; got.State != want.state || got.Real != want.real {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	if a, b := found[at("s")], found[at("hard")]; a.Inode == 0 || a.Inode != b.Inode || a.Device != b.Device {
		t.Errorf("one object is %+v and %+v", a, b)
	}
}
