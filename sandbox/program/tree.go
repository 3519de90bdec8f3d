package program

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links one path may pass, as in the kernel (MAXSYMLINKS, fs/namei.c).
const maxLinks = 40

// listLimit bounds the names that are read from one folder.
const listLimit = 1 << 16

var errTooBig = errors.New("larger than this kind of file may be")

// entry is a file, folder or other object with no link left in its path.
type entry struct {
	path string
	mode uint32 // st_mode
	size int64
}

func (e entry) regular() bool { return e.mode&unix.S_IFMT == unix.S_IFREG }
func (e entry) folder() bool  { return e.mode&unix.S_IFMT == unix.S_IFDIR }

// tree resolves paths and reads files for one search. Answers are remembered: a closure
// asks for a dozen files of the same folder, and each costs a single lstat(2) after the
// first.
//
// Nothing it does can hang or start anything: only regular files are opened, never a
// fifo, socket or device.
type tree struct {
	seen    map[string]answer
	loaders map[string]loader
	dirents []byte // buffer of list, nil while it is in use
}

type answer struct {
	entry entry
	err   error
}

// real follows every link in an absolute path, as the kernel would.
func (t *tree) real(path string) (entry, error) {
	if path == "" || path[0] != '/' {
		return entry{}, unix.EINVAL
	}
	links := 0
	return t.walk(path, &links)
}

func (t *tree) walk(path string, links *int) (entry, error) {
	if known, ok := t.seen[path]; ok {
		return known.entry, known.err
	}
	found, err := t.last(path, links)
	// A loop is a fact of the whole path, not of this part of it.
	if !errors.Is(err, unix.ELOOP) {
		if t.seen == nil {
			t.seen = make(map[string]answer, 64)
		}
		t.seen[path] = answer{entry: found, err: err}
		if err == nil && found.path != path {
			t.seen[found.path] = answer{entry: found}
		}
	}
	return found, err
}

// last resolves a path by its last name, after the folder that this is in.
func (t *tree) last(path string, links *int) (entry, error) {
	if len(path) >= unix.PathMax {
		return entry{}, unix.ENAMETOOLONG
	}
	trimmed := strings.TrimRight(path, "/")
	wantsFolder := trimmed != path
	if trimmed == "" {
		return entry{path: "/", mode: unix.S_IFDIR}, nil
	}
	cut := strings.LastIndexByte(trimmed, '/')
	parent, err := t.folder(trimmed[:cut], links)
	if err != nil {
		return entry{}, err
	}
	name := trimmed[cut+1:]
	switch name {
	case ".":
		return entry{path: parent, mode: unix.S_IFDIR}, nil
	case "..":
		return entry{path: parentOf(parent), mode: unix.S_IFDIR}, nil
	}
	full := join(parent, name)
	var st unix.Stat_t
	if err := lstat(full, &st); err != nil {
		return entry{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		found := entry{path: full, mode: st.Mode, size: st.Size}
		if wantsFolder && !found.folder() {
			return entry{}, unix.ENOTDIR
		}
		return found, nil
	}
	if *links++; *links > maxLinks {
		return entry{}, unix.ELOOP
	}
	target, err := readlink(full)
	if err != nil {
		return entry{}, err
	}
	if target == "" {
		return entry{}, unix.ENOENT
	}
	if target[0] != '/' {
		target = join(parent, target)
	}
	if wantsFolder {
		target += "/"
	}
	return t.walk(target, links)
}

// folder is walk for a path that must be a folder; "" is the root.
func (t *tree) folder(path string, links *int) (string, error) {
	if path == "" {
		return "/", nil
	}
	found, err := t.walk(path, links)
	if err == nil && !found.folder() {
		err = unix.ENOTDIR
	}
	return found.path, err
}

// exists says whether something lies at a path, links followed.
func (t *tree) exists(path string) bool {
	_, err := t.real(path)
	return err == nil
}

// isFile says whether a regular file lies at a path, links followed.
func (t *tree) isFile(path string) bool {
	found, err := t.real(path)
	return err == nil && found.regular()
}

// isFolder says whether a folder lies at a path, links followed.
func (t *tree) isFolder(path string) bool {
	found, err := t.real(path)
	return err == nil && found.folder()
}

// file is an opened regular file. It is an [io.ReaderAt].
type file struct {
	fd   int
	size int64
}

// open opens what real found. The flags keep a file that was swapped for a link, fifo
// or device since then from being followed, waited for, or becoming our terminal.
func (t *tree) open(e entry) (file, error) {
	if !e.regular() {
		return file{}, unix.EINVAL
	}
	fd, err := open(e.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC)
	if err != nil {
		return file{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return file{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return file{}, unix.EINVAL
	}
	return file{fd: fd, size: st.Size}, nil
}

// close has nothing to report: nothing was written.
func (f file) close() { _ = unix.Close(f.fd) }

// ReadAt reads until p is full or the file ends; it returns io.EOF in the second case.
func (f file) ReadAt(p []byte, off int64) (int, error) {
	total := 0
	for total < len(p) {
		n, err := unix.Pread(f.fd, p[total:], off+int64(total))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return total, err
		case n == 0:
			return total, io.EOF
		}
		total += n
	}
	return total, nil
}

// read returns a whole file of at most limit bytes.
func (t *tree) read(path string, limit int64) ([]byte, error) {
	found, err := t.real(path)
	if err != nil {
		return nil, err
	}
	if found.folder() {
		return nil, unix.EISDIR
	}
	f, err := t.open(found)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if f.size > limit {
		return nil, errTooBig
	}
	data := make([]byte, f.size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// list calls visit with each name in a folder and its directory-entry kind (unix.DT_REG
// and so on, DT_UNKNOWN on file systems that do not say), until visit returns false or
// there were listLimit of them.
func (t *tree) list(path string, visit func(name string, kind uint8) bool) error {
	fd, err := open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	buffer := t.dirents
	if t.dirents = nil; buffer == nil {
		buffer = make([]byte, 32<<10)
	}
	defer func() { t.dirents = buffer }()
	left := listLimit
	for {
		n, err := unix.ReadDirent(fd, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 || !eachDirent(buffer[:n], func(name string, kind uint8) bool {
			left--
			return left >= 0 && visit(name, kind)
		}) {
			return nil
		}
	}
}

// eachDirent reads struct linux_dirent64 (getdents64(2)): inode and offset of 8 bytes
// each, the record's length in 2, the kind in 1, then the name up to a NUL.
func eachDirent(records []byte, visit func(name string, kind uint8) bool) bool {
	for len(records) >= 19 {
		length := int(binary.NativeEndian.Uint16(records[16:]))
		if length < 19 || length > len(records) {
			return false
		}
		name := records[19:length]
		for i, b := range name {
			if b == 0 {
				name = name[:i]
				break
			}
		}
		kind := records[18]
		records = records[length:]
		if text := string(name); text != "." && text != ".." && !visit(text, kind) {
			return false
		}
	}
	return true
}

// missing says that an error means only that nothing is there.
func missing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func lstat(path string, st *unix.Stat_t) error {
	for {
		err := unix.Lstat(path, st)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func readlink(path string) (string, error) {
	var buffer [unix.PathMax]byte
	n, err := unix.Readlink(path, buffer[:])
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// join appends a name or relative path to a folder without cleaning either.
func join(folder, name string) string {
	if folder == "/" {
		return "/" + name
	}
	return folder + "/" + name
}

// parentOf is the folder above a real path; the root is its own parent.
func parentOf(path string) string {
	cut := strings.LastIndexByte(path, '/')
	if cut <= 0 {
		return "/"
	}
	return path[:cut]
}

// baseOf is the last name of a path.
func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// inside says whether a real path is a folder or lies below it.
func inside(path, folder string) bool {
	if folder == "/" || path == folder {
		return true
	}
	return len(path) > len(folder) && path[len(folder)] == '/' && path[:len(folder)] == folder
}

// reading names the file in an error about it.
func reading(path string, err error) error {
	return fmt.Errorf("reading %q: %w", path, err)
}
