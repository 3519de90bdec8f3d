package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Held is the right to install a request, which one process has at a time.
type Held struct {
	store   Store
	request Request
	lock    *os.File
}

// Lock waits until this process alone installs the request. waiting is called once when it
// has to wait.
func (s Store) Lock(ctx context.Context, r Request, waiting func()) (*Held, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Root, locksFolder, keyOf(r))
	lock, err := lockFile(ctx, path, waiting)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &StoreError{Doing: "locking", Path: path, Err: err}
	}
	return &Held{store: s, request: r, lock: lock}, nil
}

// make makes the store's own folders.
func (s Store) make() error {
	for _, folder := range []string{"", requestsFolder, locksFolder, partialFolder, string(NPM), string(PyPI)} {
		path := filepath.Join(s.Root, folder)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return &StoreError{Doing: "making the store's folder", Path: path, Err: err}
		}
	}
	return s.ownFolders(s.Root)
}

// Release gives the right back. What is left of a stage is removed.
func (h *Held) Release() error {
	err := h.clear()
	if closeErr := h.lock.Close(); err == nil {
		err = closeErr
	}
	return err
}

// clear removes what an install has left.
func (h *Held) clear() error {
	path := filepath.Join(h.store.Root, partialFolder)
	fd, err := openFolder(unix.AT_FDCWD, path)
	if err != nil {
		return &StoreError{Doing: "opening", Path: path, Err: err}
	}
	err = removeTree(fd, keyOf(h.request))
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	if err != nil {
		return &StoreError{Doing: "removing what an earlier install left in", Path: path, Err: err}
	}
	return nil
}

// Stage makes an empty stage.
func (h *Held) Stage() (Stage, error) {
	if err := h.clear(); err != nil {
		return Stage{}, err
	}
	top := filepath.Join(h.store.Root, partialFolder, keyOf(h.request))
	st := Stage{Home: filepath.Join(top, "home"), Tree: filepath.Join(top, "tree"), Temp: filepath.Join(top, "tmp")}
	for _, path := range []string{top, st.Home, st.Tree, st.Temp} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return Stage{}, &StoreError{Doing: "making", Path: path, Err: err}
		}
	}
	return st, nil
}

// Commit takes what is in the stage's tree into the store: checked, read-only, and renamed
// into its place. No process of the install may be left.
//
// runtime is what it was installed for, for people: "node v20.20.2".
func (h *Held) Commit(in Installed, runtime string) (Entry, error) {
	tree := filepath.Join(h.store.Root, partialFolder, keyOf(h.request), "tree")
	nodes, err := walk(tree)
	if err != nil {
		return Entry{}, &StoreError{Doing: "looking at what was installed in", Path: tree, Err: err}
	}
	if err := settle(tree, nodes, h.request.Kind); err != nil {
		return Entry{}, err
	}
	if nodes, err = walk(tree); err != nil { // the modes are others now
		return Entry{}, &StoreError{Doing: "looking at what was installed in", Path: tree, Err: err}
	}
	lines, err := describe(tree, nodes)
	if err != nil {
		return Entry{}, &StoreError{Doing: "reading what was installed in", Path: tree, Err: err}
	}
	manifest := writeManifest(lines)
	rec := record{Request: h.request, Manifest: sum(manifest), Entry: Entry{
		Kind: h.request.Kind, Name: in.Name, Version: in.Version, Registered: h.request.Registered(), Digest: sum(manifest)[:entryDigits],
		Locked: in.Locked, Runtime: runtime, Scripts: h.request.Scripts, Installed: time.Now().UTC().Truncate(time.Second),
	}}
	for i := range nodes {
		if nodes[i].kind() == unix.S_IFREG {
			rec.Entry.Files++
			rec.Entry.Size += nodes[i].stat.Size
		}
	}
	rec.Entry.Folder = h.store.folder(&rec.Entry)
	if err := checkPlace(&rec.Entry); err != nil {
		return Entry{}, err
	}
	if err := writeNotes(tree, &rec, manifest, writeStamps(nodes)); err != nil {
		return Entry{}, &StoreError{Doing: "writing the notes of", Path: tree, Err: err}
	}
	if err := h.store.place(tree, &rec); err != nil {
		return Entry{}, err
	}
	return rec.Entry, nil
}

// checkPlace refuses a name or version that would lead out of the store. They come from what
// a registry said.
func checkPlace(e *Entry) error {
	name := e.Name
	if scope, rest, scoped := strings.Cut(name, "/"); scoped && strings.HasPrefix(scope, "@") && len(scope) > 1 {
		name = scope[1:] + rest
	}
	for _, word := range []string{name, e.Version} {
		if word == "" || word[0] == '.' || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f || r == '\\' }) || len(word) > 200 {
			return fmt.Errorf("the registry's name %q or version %q cannot be stored", e.Name, e.Version)
		}
	}
	return nil
}

func writeNotes(tree string, rec *record, manifest, stamps []byte) error {
	notes := filepath.Join(tree, notesFolder)
	if err := os.Mkdir(notes, 0o700); err != nil {
		return err
	}
	described, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{manifestFile: manifest, stampsFile: stamps, entryFile: described} {
		if err := os.WriteFile(filepath.Join(notes, name), data, 0o400); err != nil {
			return err
		}
	}
	fd, err := openFolder(unix.AT_FDCWD, tree)
	if err != nil {
		return err
	}
	// The stamps must not outlive the files that they speak of, when power fails.
	err = unix.Syncfs(fd)
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	return err
}

// place renames a finished tree into the store and records it.
func (s Store) place(tree string, rec *record) error {
	folder := rec.Entry.Folder
	lock, err := s.lockAll(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock goes with it
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return &StoreError{Doing: "making", Path: filepath.Dir(folder), Err: err}
	}
	err = unix.Renameat2(unix.AT_FDCWD, tree, unix.AT_FDCWD, folder, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		// The same content is there. It is used if it still is what it was.
		if s.check(rec) == nil {
			return s.write(rec)
		}
		if err := removeFolder(folder); err != nil {
			return &StoreError{Doing: "removing a changed tree at", Path: folder, Err: err}
		}
		err = unix.Renameat2(unix.AT_FDCWD, tree, unix.AT_FDCWD, folder, unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return &StoreError{Doing: "renaming what was installed to", Path: folder, Err: err}
	}
	// Only now: moving a folder elsewhere writes its "..".
	if err := os.Chmod(folder, 0o555); err != nil { //nolint:gosec // a tree that nobody writes
		return &StoreError{Doing: "making read-only", Path: folder, Err: err}
	}
	return s.write(rec)
}

func (s Store) write(rec *record) error {
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.Root, requestsFolder, keyOf(rec.Request)+".json")
	if err := renameio.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return &StoreError{Doing: "recording what was installed in", Path: path, Err: err}
	}
	return nil
}

// lockAll keeps entries from being removed while one is put in place.
func (s Store) lockAll(ctx context.Context) (*os.File, error) {
	path := filepath.Join(s.Root, locksFolder, "store")
	lock, err := lockFile(ctx, path, nil)
	if err != nil {
		return nil, &StoreError{Doing: "locking", Path: path, Err: err}
	}
	return lock, nil
}

func removeFolder(path string) error {
	fd, err := openFolder(unix.AT_FDCWD, filepath.Dir(path))
	if err != nil {
		return err
	}
	err = removeTree(fd, filepath.Base(path))
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	return err
}

// settle refuses what has no place in a package's tree, and takes all rights to write away.
func settle(tree string, nodes []node, kind Kind) error {
	type object struct{ dev, ino uint64 }
	names := map[object]uint64{}
	for i := range nodes {
		n := &nodes[i]
		bad := func(what string) error {
			return fmt.Errorf("the installed package holds %q, which %s", n.path, what)
		}
		if strings.ContainsFunc(n.path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return bad("has a control character in its name")
		}
		switch n.kind() {
		case unix.S_IFDIR:
		case unix.S_IFREG:
			names[object{n.stat.Dev, n.stat.Ino}]++
		case unix.S_IFLNK:
			if !inTree(n.path, n.link) && !ofVenv(kind, n) {
				return bad("is a link out of the package")
			}
		default:
			return bad("is a device, a socket or a fifo")
		}
	}
	for i := range slices.Backward(nodes) {
		n := &nodes[i]
		if n.kind() == unix.S_IFLNK {
			continue
		}
		// A second name elsewhere would be a second way to write the file.
		if n.kind() == unix.S_IFREG && uint64(n.stat.Nlink) != names[object{n.stat.Dev, n.stat.Ino}] { //nolint:unconvert // 32 bits on arm64
			return fmt.Errorf("the installed package holds %q, which has another name outside of it", n.path)
		}
		mode := n.stat.Mode & 0o555
		if n.kind() == unix.S_IFDIR {
			mode |= 0o500
		}
		if err := chmod(tree, n, mode|0o400); err != nil {
			return &StoreError{Doing: "making read-only", Path: filepath.Join(tree, n.path), Err: err}
		}
	}
	return nil
}

// chmod changes the mode of a file or folder that the walk saw, and of no other.
func chmod(tree string, n *node, mode uint32) error {
	fd, err := unix.Open(filepath.Join(tree, n.path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Ino != n.stat.Ino {
		err = errors.New("it changed while it was looked at")
	}
	if err == nil {
		err = unix.Fchmod(fd, mode)
	}
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	return err
}

// inTree tells whether a link at path leads nowhere out of the tree, by its text.
func inTree(path, target string) bool {
	return target != "" && target[0] != '/' && filepath.IsLocal(filepath.Join(filepath.Dir(path), target)) &&
		!bytes.ContainsRune([]byte(target), 0)
}

// ofVenv knows the links to the interpreter that the module venv makes.
func ofVenv(kind Kind, n *node) bool {
	return kind == PyPI && filepath.Dir(n.path) == "venv/bin" && strings.HasPrefix(filepath.Base(n.path), "python") && filepath.IsAbs(n.link)
}
