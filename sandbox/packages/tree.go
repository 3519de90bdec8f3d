package packages

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// node is one file, folder or link of a tree, as lstat(2) tells.
type node struct {
	path string // relative to the tree, with slashes
	stat unix.Stat_t
	link string // target, for links
}

func (n *node) kind() uint32 { return n.stat.Mode & unix.S_IFMT }

// maxNodes bounds a tree: the largest of known servers has 40,000 files.
const maxNodes = 400_000

// openFolder opens a folder itself, never through a link.
func openFolder(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// walk lists a tree, sorted by path, without following a link: by descriptor, one folder at
// a time. The folder of stockade's own notes is left out.
func walk(root string) ([]node, error) {
	fd, err := openFolder(unix.AT_FDCWD, root)
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: root, Err: err}
	}
	var out []node
	if err := walkFolder(fd, "", &out); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b node) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// walkFolder takes over the descriptor.
func walkFolder(fd int, at string, out *[]node) error {
	names, err := namesIn(fd, at)
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	for _, name := range names {
		if at == "" && name == notesFolder {
			continue
		}
		n := node{path: path.Join(at, name)}
		if err := walkOne(fd, name, &n, out); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
	}
	return unix.Close(fd)
}

func walkOne(fd int, name string, n *node, out *[]node) error {
	if len(*out) >= maxNodes {
		return fmt.Errorf("the tree has more than %d files", maxNodes)
	}
	if err := unix.Fstatat(fd, name, &n.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "looking at", Path: n.path, Err: err}
	}
	if n.kind() == unix.S_IFLNK {
		var buf [unix.PathMax]byte
		size, err := unix.Readlinkat(fd, name, buf[:])
		if err != nil {
			return &os.PathError{Op: "reading the link", Path: n.path, Err: err}
		}
		n.link = string(buf[:size])
	}
	*out = append(*out, *n)
	if n.kind() != unix.S_IFDIR {
		return nil
	}
	below, err := openFolder(fd, name)
	if err != nil {
		return &os.PathError{Op: "opening", Path: n.path, Err: err}
	}
	return walkFolder(below, n.path, out)
}

// namesIn lists a folder without closing its descriptor.
func namesIn(fd int, shown string) ([]string, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) //nolint:gosec // a descriptor
	if err != nil {
		return nil, &os.PathError{Op: "listing", Path: shown, Err: err}
	}
	f := os.NewFile(uintptr(again), shown)
	names, err := f.Readdirnames(-1)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return names, nil
}

// removeTree removes a tree that an install, or a script of a package, has left in any
// state: read-only folders are opened to their owner first, and no link is followed. What is
// not there is removed already.
func removeTree(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return &os.PathError{Op: "removing", Path: name, Err: err}
	}
	fd, err := openFolder(parent, name)
	if errors.Is(err, unix.EACCES) {
		if err = unix.Fchmodat(parent, name, 0o700, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			fd, err = openFolder(parent, name)
		}
	}
	if err != nil {
		return &os.PathError{Op: "removing", Path: name, Err: err}
	}
	if err := emptyFolder(fd, name); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "removing", Path: name, Err: err}
	}
	return nil
}

func emptyFolder(fd int, shown string) error {
	if err := unix.Fchmod(fd, 0o700); err != nil {
		return &os.PathError{Op: "opening to its owner", Path: shown, Err: err}
	}
	names, err := namesIn(fd, shown)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeTree(fd, name); err != nil {
			return err
		}
	}
	return nil
}
