package packages

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listed is an entry of the store with what is known of it.
type Listed struct {
	Entry
	Requests []Request // that were resolved to it; none: nothing uses it any more
	InUse    []int     // processes of this user that were started from it
}

// List returns all entries, sorted by kind, name and version. It does not check their
// files.
func (s Store) List() ([]Listed, error) {
	byFolder := map[string]*Listed{}
	records, err := s.records()
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		l := byFolder[rec.Entry.Folder]
		if l == nil {
			l = &Listed{Entry: rec.Entry}
			byFolder[rec.Entry.Folder] = l
		}
		l.Requests = append(l.Requests, rec.Request)
	}
	for _, folder := range s.folders() {
		if byFolder[folder] != nil {
			continue
		}
		data, err := readOwn(filepath.Join(folder, notesFolder, entryFile))
		var rec record
		if err != nil || json.Unmarshal(data, &rec) != nil || rec.Entry.Folder != folder {
			continue // not an entry
		}
		byFolder[folder] = &Listed{Entry: rec.Entry}
	}
	out := make([]Listed, 0, len(byFolder))
	used := s.used()
	for folder, l := range byFolder {
		l.InUse = used[folder]
		slices.SortFunc(l.Requests, func(a, b Request) int { return strings.Compare(a.Key(), b.Key()) })
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.Folder, b.Folder) })
	return out, nil
}

// records reads all records; one that cannot be read is an error.
func (s Store) records() ([]record, error) {
	path := filepath.Join(s.Root, requestsFolder)
	names, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &StoreError{Doing: "listing", Path: path, Err: err}
	}
	var out []record
	for _, name := range names {
		if !strings.HasSuffix(name.Name(), ".json") {
			continue
		}
		file := filepath.Join(path, name.Name())
		var rec record
		data, err := readOwn(file)
		if err == nil {
			err = json.Unmarshal(data, &rec)
		}
		if err != nil {
			return nil, &StoreError{Doing: "reading what was installed from", Path: file, Err: err, Cure: "remove the file; the next start installs the package anew"}
		}
		out = append(out, rec)
	}
	return out, nil
}

// folders lists what looks like entries.
func (s Store) folders() []string {
	var out []string
	for _, kind := range []Kind{NPM, PyPI} {
		for _, pattern := range []string{"*@*-*", "@*/*@*-*", apart + "/*@*-*", apart + "/@*/*@*-*"} {
			found, err := filepath.Glob(filepath.Join(escapeGlob(s.Root), string(kind), pattern))
			if err == nil {
				out = append(out, found...)
			}
		}
	}
	return out
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// used finds processes that were started from an entry, by their command line and program.
// Those of other users cannot be looked at, and do not reach this store.
func (s Store) used() map[string][]int {
	out := map[string][]int{}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return out
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		words, _ := os.ReadFile("/proc/" + p.Name() + "/cmdline") // ended, or somebody else's
		program, _ := os.Readlink("/proc/" + p.Name() + "/exe")
		seen := map[string]bool{}
		for _, word := range append(strings.Split(string(words), "\x00"), program) {
			if folder := s.holding(word); folder != "" && !seen[folder] {
				seen[folder] = true
				out[folder] = append(out[folder], pid)
			}
		}
	}
	return out
}

// holding is the entry's folder that a path lies in; "" for other paths.
func (s Store) holding(path string) string {
	rest, ok := strings.CutPrefix(path, s.Root+"/")
	if !ok {
		return ""
	}
	parts := strings.Split(rest, "/")
	depth := 2
	if len(parts) > 1 && parts[1] == apart {
		depth++
	}
	if len(parts) >= depth && strings.HasPrefix(parts[depth-1], "@") {
		depth++
	}
	if len(parts) <= depth {
		return ""
	}
	return filepath.Join(s.Root, filepath.Join(parts[:depth]...))
}

// Remove takes an entry's tree away, and its requests, so that the next start resolves them
// again. The requests go first: what is recorded is whole.
func (s Store) Remove(ctx context.Context, l Listed) error {
	lock, err := s.lockAll(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock goes with it
	records, err := s.records()
	if err != nil {
		return err
	}
	for _, rec := range records {
		if rec.Entry.Folder != l.Folder {
			continue
		}
		path := filepath.Join(s.Root, requestsFolder, keyOf(rec.Request)+".json")
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &StoreError{Doing: "removing", Path: path, Err: err}
		}
	}
	if err := removeFolder(l.Folder); err != nil {
		return &StoreError{Doing: "removing", Path: l.Folder, Err: err}
	}
	return nil
}
