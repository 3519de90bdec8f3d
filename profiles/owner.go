package profiles

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// oPath is O_PATH, which package syscall lacks (asm-generic/fcntl.h; the same on x86-64
// and arm64).
const oPath = 0x200000

// realPath is where an opened file lies. The kernel says it of the descriptor, so nobody
// can put another file in its place meanwhile.
func realPath(f *os.File) (string, error) {
	path, err := os.Readlink(descriptor(f))
	if err != nil {
		return "", fmt.Errorf("asking where the file lies: %w", err)
	}
	return path, nil
}

func descriptor(f *os.File) string { return "/proc/self/fd/" + itoa(int(f.Fd())) } //nolint:gosec // a descriptor fits an int

// CheckOwner refuses an opened file that decides what a server gets, unless nobody but this
// user and root can change it: both the file and the folder that holds it belong to one of
// them, the file cannot be written by its group or by others, and the folder not by others
// (in a sticky folder they could still put the file there). The error is an [Errors]
// without a place; its hint is the command that cures it.
func CheckOwner(f *os.File) error {
	real, err := realPath(f)
	if err != nil {
		return Errors{wrong("mount /proc", "%s", reason(err)).at(Position{})}
	}
	if bad := checkOwner(f, real); bad != nil {
		return Errors{bad.at(Position{})}
	}
	return nil
}

func checkOwner(f *os.File, real string) *problem {
	info, err := f.Stat()
	if err != nil {
		return wrong("", "asking who owns the file: %s", reason(err))
	}
	if bad := checkWriters(info, real, 0o022, "the file"); bad != nil {
		return bad
	}
	if info.Mode().Perm()&0o020 != 0 && hasACL(f) {
		// The group bits of such a file are the bound of its access list (acl(5)).
		return wrong("setfacl -b "+real, "its access list may let others write the file")
	}
	parent := filepath.Dir(real)
	folder, err := os.OpenFile(parent, oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return wrong("", "opening the folder that holds it: %s", reason(err))
	}
	defer func() { _ = folder.Close() }() // only looked at
	held, err := os.Lstat(descriptor(folder) + "/" + filepath.Base(real))
	if err != nil || !os.SameFile(held, info) {
		return wrong("start again", "the file was moved while it was read")
	}
	if info, err = folder.Stat(); err != nil {
		return wrong("", "asking who owns the folder that holds it: %s", reason(err))
	}
	return checkWriters(info, parent, 0o002, "the folder that holds it")
}

// checkWriters judges the owner and the mode of one file or folder.
func checkWriters(info fs.FileInfo, path string, mask fs.FileMode, what string) *problem {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return wrong("", "the owner of %s is not known", what)
	}
	self := os.Geteuid()
	if int(st.Uid) != self && st.Uid != 0 {
		return wrong(fmt.Sprintf("chown %d %s", self, path), "%s belongs to user %d, who can change it", what, st.Uid)
	}
	open := info.Mode().Perm() & mask
	switch {
	case open&0o002 != 0:
		who := "o-w"
		if open&0o020 != 0 {
			who = "go-w"
		}
		return wrong(fmt.Sprintf("chmod %s %s", who, path), "everyone may write %s", what)
	case open != 0 && !privateGroup(st.Gid):
		return wrong("chmod g-w "+path, "its group may write %s", what)
	}
	return nil
}

// hasACL tells whether a file has an access list; one that cannot be asked for counts.
func hasACL(f *os.File) bool {
	_, err := syscall.Getxattr(descriptor(f), "system.posix_acl_access", nil)
	return err != syscall.ENODATA && err != syscall.EOPNOTSUPP //nolint:errorlint // syscall.Getxattr returns a bare errno
}

// privateGroup tells whether a group is this user's alone, as distributions make one for
// each user, with the user's own number, and let files be writable by it (umask 002). Root
// has none: its group has other uses.
func privateGroup(gid uint32) bool {
	self := os.Geteuid()
	return self != 0 && self == os.Getegid() && int(gid) == self
}

// repoFolder is where a repository keeps what is stockade's.
const repoFolder = ".stockade"

// repositoryOf returns the folder above the outermost folder of that name in an absolute
// path; false when there is none. Such a file belongs to a repository, wherever the server
// is started: whoever wrote the repository wrote it.
func repositoryOf(path string) (string, bool) {
	before, _, found := strings.Cut(path+"/", "/"+repoFolder+"/")
	if before == "" {
		before = "/"
	}
	return before, found
}
