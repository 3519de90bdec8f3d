package packages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Store is a folder of installed packages:
//
//	KIND/NAME@VERSION-DIGEST/            an entry; a scope is a folder of its own
//	KIND/+/NAME@VERSION-DIGEST/          one whose name says nothing
//	KIND/NAME@VERSION-DIGEST/.stockade/  its manifest, stamps and description
//	.requests/KEY.json                   what a request was resolved to
//	.locks/KEY                           held while a request is installed
//	.partial/KEY/                        what is being installed
//
// KEY is a digest of the request's key. An entry is made under .partial and renamed, and its
// request is recorded afterwards, so that what is recorded is whole. Whoever has the lock
// empties .partial first: an install that was killed leaves nothing that counts.
type Store struct {
	Root string // absolute
}

const (
	notesFolder    = ".stockade"
	requestsFolder = ".requests"
	locksFolder    = ".locks"
	partialFolder  = ".partial"
	apart          = "+"
	manifestFile   = "manifest"
	stampsFile     = "stamps"
	entryFile      = "entry.json"
)

// maxNote bounds a file of stockade's own that is read: the manifest of a large tree.
const maxNote = 128 << 20

// record is what a request was resolved to.
type record struct {
	Request  Request `json:"request"`
	Entry    Entry   `json:"entry"`
	Manifest string  `json:"manifest"` // SHA-256 of the manifest, hexadecimal
}

// keyOf names the files of a request. 128 bits of a digest do not collide.
func keyOf(r Request) string { return sum([]byte(r.Key()))[:32] }

// TamperedError is an entry that is not what was installed.
type TamperedError struct {
	Entry Entry
	Path  string // what differs, below the entry's folder
	What  string // how it differs
}

func (e *TamperedError) Error() string {
	return fmt.Sprintf("the stored package %s:%s %s is not what was installed: %q %s", e.Entry.Kind, e.Entry.Name, e.Entry.Version, e.Path, e.What)
}

// Hint is the cure, for a person.
func (e *TamperedError) Hint() string {
	return fmt.Sprintf(`find out who changed it; "stockade package remove %s:%s" and the next start installs it anew`, e.Entry.Kind, e.Entry.Name)
}

// StoreError is a store that cannot be used.
type StoreError struct {
	Doing string
	Path  string
	Err   error
	Cure  string
}

func (e *StoreError) Error() string { return fmt.Sprintf("%s %q: %v", e.Doing, e.Path, plain(e.Err)) }

func (e *StoreError) Unwrap() error { return e.Err }

// Hint is the cure, for a person.
func (e *StoreError) Hint() string {
	switch {
	case e.Cure != "":
		return e.Cure
	case errors.Is(e.Err, unix.ENOSPC), errors.Is(e.Err, unix.EDQUOT):
		return `make room there ("stockade package remove --unused" removes old trees), or set XDG_DATA_HOME to a folder with more`
	case errors.Is(e.Err, unix.EROFS), errors.Is(e.Err, unix.EACCES), errors.Is(e.Err, unix.EPERM):
		return "the store of packages has to be writable while one is installed: set XDG_DATA_HOME to a folder that is"
	}
	return "look at the folder, or set XDG_DATA_HOME to another one"
}

// plain drops the operation and path that package os adds.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Find returns the entry that a request was resolved to, after a look at all of its files:
// those that nobody touched since, by their stamps, others by their content. Nothing of a
// tree that is not what was installed is ever returned: that is a [TamperedError].
func (s Store) Find(r Request) (Entry, bool, error) {
	rec, found, err := s.record(r)
	if err != nil || !found {
		return Entry{}, false, err
	}
	if err := s.check(&rec); err != nil {
		return Entry{}, false, err
	}
	return rec.Entry, true, nil
}

func (s Store) record(r Request) (rec record, found bool, err error) {
	path := filepath.Join(s.Root, requestsFolder, keyOf(r)+".json")
	data, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, &StoreError{Doing: "reading what was installed from", Path: path, Err: err}
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, false, &StoreError{Doing: "reading what was installed from", Path: path, Err: err, Cure: "remove the file; the next start installs the package anew"}
	}
	if rec.Request.Key() != r.Key() {
		return rec, false, &StoreError{Doing: "reading what was installed from", Path: path, Err: errors.New("it is about another request"), Cure: "remove the file"}
	}
	return rec, true, nil
}

// readOwn reads a regular file that belongs to this user and that nobody else can write.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil { //nolint:gosec // a descriptor
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is no regular file")
	}
	if err := ownedAlone(&st); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxNote+1))
	if err == nil && len(data) > maxNote {
		err = fmt.Errorf("it has more than %d bytes", maxNote)
	}
	return data, err
}

func ownedAlone(st *unix.Stat_t) error {
	switch {
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d", st.Uid)
	case st.Mode&0o022 != 0:
		return errors.New("others can write it")
	}
	return nil
}

// ownFolders checks the folders from the store down to an entry: whoever can write one of
// them can put another tree there.
func (s Store) ownFolders(folder string) error {
	at := s.Root
	rest := strings.Trim(strings.TrimPrefix(folder, s.Root), "/")
	for {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &StoreError{Doing: "looking at", Path: at, Err: err}
		}
		err := ownedAlone(&st)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = errors.New("it is no folder")
		}
		if err != nil {
			return &StoreError{Doing: "trusting", Path: at, Err: err, Cure: "the store has to be yours alone: chmod go-w, or remove it"}
		}
		if rest == "" {
			return nil
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at = filepath.Join(at, name)
	}
}

// check compares an entry with its record.
func (s Store) check(rec *record) error {
	e := &rec.Entry
	if e.Folder != s.folder(e) {
		return &StoreError{Doing: "finding the package in", Path: e.Folder, Err: errors.New("the record names another folder"), Cure: "remove the store's folder .requests; what is started next is installed anew"}
	}
	if err := s.ownFolders(e.Folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &TamperedError{Entry: *e, Path: ".", What: "is missing"}
		}
		return err
	}
	notes := filepath.Join(e.Folder, notesFolder)
	text, err := readOwn(filepath.Join(notes, manifestFile))
	if err != nil {
		return &TamperedError{Entry: *e, Path: notesFolder + "/" + manifestFile, What: "cannot be read: " + plain(err).Error()}
	}
	if sum(text) != rec.Manifest {
		return &TamperedError{Entry: *e, Path: notesFolder + "/" + manifestFile, What: "was changed"}
	}
	nodes, err := walk(e.Folder)
	if err != nil {
		return &TamperedError{Entry: *e, Path: ".", What: "cannot be looked at: " + err.Error()}
	}
	stamps, _ := readOwn(filepath.Join(notes, stampsFile)) // without them every file is read
	return e.compare(nodes, text, readStamps(stamps), notes)
}

// compare looks at each file of a walked tree.
func (e *Entry) compare(nodes []node, manifest []byte, stamps map[string]stamp, notes string) error {
	var doubted []node
	for i := range nodes {
		if was, ok := stamps[nodes[i].path]; !ok || was != stampOf(&nodes[i]) {
			doubted = append(doubted, nodes[i])
		}
	}
	if len(doubted) == 0 && len(nodes) == len(stamps) {
		return nil
	}
	lines, err := readManifest(manifest)
	if err != nil {
		return &TamperedError{Entry: *e, Path: notesFolder + "/" + manifestFile, What: "cannot be read: " + err.Error()}
	}
	have := make(map[string]bool, len(nodes))
	for i := range nodes {
		have[nodes[i].path] = true
	}
	for path := range lines {
		if !have[path] {
			return &TamperedError{Entry: *e, Path: path, What: "is missing"}
		}
	}
	now, err := describe(e.Folder, doubted)
	if err != nil {
		return &TamperedError{Entry: *e, Path: ".", What: "cannot be read: " + err.Error()}
	}
	for _, c := range now {
		was, ok := lines[c.path]
		switch {
		case !ok:
			return &TamperedError{Entry: *e, Path: c.path, What: "was added"}
		case was != c:
			return &TamperedError{Entry: *e, Path: c.path, What: "was changed"}
		}
	}
	// Restored from a copy, say: the same content with other stamps. A store that cannot be
	// written is read each time.
	_ = renameio.WriteFile(filepath.Join(notes, stampsFile), writeStamps(nodes), 0o400)
	return nil
}

// folder is where an entry belongs.
func (s Store) folder(e *Entry) string {
	top := filepath.Join(s.Root, string(e.Kind))
	if !e.Registered {
		top = filepath.Join(top, apart)
	}
	return filepath.Join(top, e.Name+"@"+e.Version+"-"+e.Digest)
}
