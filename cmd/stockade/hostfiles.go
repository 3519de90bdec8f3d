package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"stockade/profiles/hostconfig"
)

// maxHostFile bounds a configuration file, in bytes. The largest that hosts were seen to keep
// their own state in has a few megabytes.
const maxHostFile = 64 << 20

// hostFile is a configuration file of a host that was found, and what was read from it.
type hostFile struct {
	title string // of the host; "" for a file that no host is known to read
	scope hostconfig.Scope
	path  string // as found
	real  string // with links followed: what is written
	data  []byte
	info  fs.FileInfo
	file  *hostconfig.File
	err   error // why it cannot be read; nil when it can
}

// hostFolders are the places that hosts' files are relative to.
func (m machine) hostFolders() hostconfig.Folders {
	in := hostconfig.Folders{Home: m.home, Config: m.config, Project: m.repo, Moved: map[string]string{}}
	if in.Project == "" {
		in.Project = m.dir
	}
	for _, h := range hostconfig.Hosts {
		for _, p := range h.Files {
			if value := m.env[p.Moved]; p.Moved != "" && filepath.IsAbs(value) {
				in.Moved[p.Moved] = value
			}
		}
	}
	return in
}

// hostFiles are the known files that are there, of all hosts or of those that are named.
func (m machine) hostFiles(hosts []string) ([]hostFile, error) {
	for _, name := range hosts {
		if !slices.ContainsFunc(hostconfig.Hosts, func(h hostconfig.Host) bool { return h.Name == name }) {
			return nil, &usageError{problem: fmt.Sprintf("no host is called %q", name), hint: "known are " + strings.Join(hostNames(), ", ")}
		}
	}
	in := m.hostFolders()
	var out []hostFile
	seen := map[string]bool{}
	for _, h := range hostconfig.Hosts {
		if len(hosts) > 0 && !slices.Contains(hosts, h.Name) {
			continue
		}
		for i := range h.Files {
			place := &h.Files[i]
			pattern := place.File(&in)
			if pattern == "" {
				continue
			}
			for _, path := range matchesOf(pattern, place.Path) {
				if seen[path] {
					continue // two hosts read it
				}
				seen[path] = true
				out = append(out, readHostFile(path, h.Title, *place))
			}
		}
	}
	return out, nil
}

// matchesOf are the files that are there of a place. A pattern may stand in its own part of
// the path: the folder before it, a person's home, is taken as it is.
func matchesOf(path, own string) []string {
	if !strings.ContainsRune(own, '*') || !strings.HasSuffix(path, own) {
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		return []string{path}
	}
	root := strings.TrimSuffix(path, own)
	found, err := fs.Glob(os.DirFS(root), own)
	if err != nil {
		return nil // no pattern of ours is malformed
	}
	for i := range found {
		found[i] = filepath.Join(root, found[i])
	}
	return found
}

func hostNames() []string {
	var names []string
	for _, h := range hostconfig.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// namedHostFile reads a file that a person names: as that of a known host by its path, else by
// what it holds.
func namedHostFile(path string) (hostFile, error) {
	if h, place, known := hostconfig.Recognise(path); known {
		f := readHostFile(path, h.Title, place)
		return f, f.err
	}
	data, real, info, err := readHost(path)
	if err != nil {
		return hostFile{}, err
	}
	place, found, err := hostconfig.Guess(path, data)
	switch {
	case err != nil:
		return hostFile{}, hostError(err)
	case !found:
		return hostFile{}, &usageError{problem: fmt.Sprintf("%q names no servers that stockade knows how to find", path), hint: "known hosts are " + strings.Join(hostNames(), ", ")}
	}
	place.Scope = hostconfig.Project // nothing says that it is the person's own
	f := hostFile{scope: place.Scope, path: path, real: real, data: data, info: info}
	if f.file, err = hostconfig.Parse(path, data, place); err != nil {
		return hostFile{}, hostError(err)
	}
	return f, nil
}

func readHostFile(path, title string, place hostconfig.Place) hostFile {
	f := hostFile{title: title, scope: place.Scope, path: path}
	if f.data, f.real, f.info, f.err = readHost(path); f.err != nil {
		return f
	}
	if f.file, f.err = hostconfig.Parse(path, f.data, place); f.err != nil {
		f.err = hostError(f.err)
	}
	return f
}

// hostError gives what package hostconfig says the form of other errors.
func hostError(err error) error {
	if told, ok := errors.AsType[*hostconfig.Error](err); ok {
		hint := told.Hint
		if hint == "" {
			hint = "correct the file; it is left as it is"
		}
		return &factError{problem: told.Error(), hint: hint}
	}
	return err
}

// readHost reads a regular file of bounded size without waiting, and says where it really is.
func readHost(path string) ([]byte, string, fs.FileInfo, error) {
	fail := func(err error) ([]byte, string, fs.FileInfo, error) {
		return nil, "", nil, &factError{problem: fmt.Sprintf("reading %q", path), hint: "correct the path, or what it leads to", cause: plainError(err)}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(errors.New("it is no regular file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHostFile+1))
	if err == nil && len(data) > maxHostFile {
		err = fmt.Errorf("it is larger than %d bytes", maxHostFile)
	}
	if err != nil {
		return fail(err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return fail(err)
	}
	return data, real, info, nil
}

// changedError is a file that its host wrote while it was being looked at.
type changedError struct{ path string }

func (e *changedError) Error() string {
	return fmt.Sprintf("%q was changed meanwhile, and is left as it is now", e.path)
}

// Hint is the cure, for a person.
func (e *changedError) Hint() string {
	return "end the host application, and start again: it writes this file itself"
}

// write puts a new content in the file's place, at the end of its links: in one step, with its
// mode and owner, after what was there is kept. A file that changed since it was read is left.
func (f *hostFile) write(data []byte, backups string) error {
	fail := func(doing string, err error) error {
		return &factError{problem: fmt.Sprintf("%s %q", doing, f.real), hint: "make its folder writable; nothing was changed", cause: plainError(err)}
	}
	if err := keepBackup(backups, f.real, f.data); err != nil {
		return err
	}
	fresh, err := renameio.NewPendingFile(f.real, renameio.WithPermissions(f.info.Mode().Perm()), renameio.IgnoreUmask())
	if err != nil {
		return fail("writing", err)
	}
	defer func() { _ = fresh.Cleanup() }() // nothing to do once it has taken the place
	st, known := f.info.Sys().(*syscall.Stat_t)
	if !known {
		return fail("asking who owns", errors.New("the system does not say"))
	}
	if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
		if err := fresh.Chown(int(st.Uid), int(st.Gid)); err != nil {
			return fail("keeping the owner of", err)
		}
	}
	if _, err := fresh.Write(data); err != nil {
		return fail("writing", err)
	}
	now, real, info, err := readHost(f.path)
	if err != nil || real != f.real || !os.SameFile(info, f.info) || !bytes.Equal(now, f.data) {
		return &changedError{f.path}
	}
	if err := fresh.CloseAtomicallyReplace(); err != nil {
		return fail("writing", err)
	}
	return nil
}

// backupFolder is where files of hosts are kept as they were.
func backupFolder(state string) string { return filepath.Join(state, "stockade", "backups") }

// keepBackup keeps a content, for this user alone: it may hold secrets. The name says when and
// of which file.
func keepBackup(folder, real string, data []byte) error {
	sum := sha256.Sum256([]byte(real))
	name := time.Now().UTC().Format("20060102T150405.000000000") + "-" + hex.EncodeToString(sum[:4]) + "-" + filepath.Base(real)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = renameio.WriteFile(filepath.Join(folder, name), data, 0o600, renameio.IgnoreUmask())
	}
	if err != nil {
		return &factError{problem: fmt.Sprintf("keeping a copy of %q in %q", real, folder), hint: "make the folder writable, or set XDG_STATE_HOME", cause: plainError(err)}
	}
	return nil
}
