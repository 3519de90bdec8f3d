package supervise

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
)

// pathOf reads a path of the caller's.
func (t task) pathOf(address uint64) (string, error) {
	var text []byte
	page := uint64(unix.Getpagesize()) //nolint:gosec // a size
	for len(text) < unix.PathMax {
		// What lies on one page is readable as a whole.
		part := make([]byte, min(page-address%page, uint64(unix.PathMax-len(text)))) //nolint:gosec // positive
		if errno := t.read(address, part); errno != 0 {
			return "", errno
		}
		if last, _, ended := bytes.Cut(part, []byte{0}); ended {
			return string(append(text, last...)), nil
		}
		text, address = append(text, part...), address+uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}

// where is a path with the folder at which it begins, as a call names both.
type where struct {
	dir  int // of the caller; AT_FDCWD
	path string
}

// viewer opens what paths of a task name, as paths only, with this process's own rights,
// which are the server's.
type viewer struct {
	task    task
	domain  *forecast.Domain
	resolve uint64 // resolveCached, or 0
	opened  []int
}

func (v *viewer) close() { closeAll(v.opened) }

func (v *viewer) keep(fd int) int {
	v.opened = append(v.opened, fd)
	return fd
}

// follow says what becomes of a link at the end of a path.
type follow uint64

const (
	followLast follow = 0
	keepLast   follow = unix.O_NOFOLLOW
)

// thing is an opened file or folder.
type thing struct {
	fd   int
	real string
	mode uint32 // kind
	dev  uint64
	ino  uint64
}

func (t *thing) is(kind uint32) bool        { return t.mode&unix.S_IFMT == kind }
func (t *thing) same(other *thing) bool     { return t.dev == other.dev && t.ino == other.ino }
func (t *thing) holding(name string) string { return filepath.Join(t.real, name) }

// begin opens where a path begins; AT_FDCWD is this process's, for absolute ones.
func (v *viewer) begin(w where) (int, error) {
	if strings.HasPrefix(w.path, "/") {
		return unix.AT_FDCWD, nil
	}
	name := "cwd"
	if w.dir != unix.AT_FDCWD {
		name = "fd/" + strconv.Itoa(w.dir)
	}
	fd, err := unix.Open(v.task.path(name), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if w.dir != unix.AT_FDCWD {
			return -1, unix.EBADF
		}
		return -1, errUnseen
	}
	return v.keep(fd), nil
}

// open opens what a path names. Links of /proc would be this process's own and are not
// followed, which makes what they lead to something that cannot be told (ELOOP); the folder
// that /proc/self names is exchanged for the caller's.
func (v *viewer) open(w where, last follow) (*thing, error) {
	if w.path == "" {
		return nil, unix.ENOENT
	}
	from, err := v.begin(w)
	if err != nil {
		return nil, err
	}
	t, err := v.openFrom(from, w.path, last)
	if err != nil {
		return nil, err
	}
	if moved := v.theirs(t.real); moved != t.real {
		return v.openFrom(unix.AT_FDCWD, moved, last)
	}
	return t, nil
}

func (v *viewer) openFrom(from int, path string, last follow) (*thing, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | uint64(last), Resolve: unix.RESOLVE_NO_MAGICLINKS | v.resolve}
	fd, err := unix.Openat2(from, path, &how)
	for err == unix.EINTR { //nolint:errorlint // of a system call
		fd, err = unix.Openat2(from, path, &how)
	}
	if err != nil {
		return nil, err
	}
	return inspectThing(v.keep(fd))
}

func inspectThing(fd int) (*thing, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	var buffer [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buffer[:])
	if err != nil {
		return nil, err
	}
	return &thing{fd: fd, real: string(buffer[:n]), mode: st.Mode, dev: st.Dev, ino: st.Ino}, nil //nolint:unconvert // another type elsewhere
}

// theirs exchanges this process's folder in /proc for the caller's.
func (v *viewer) theirs(real string) string {
	own := "/proc/" + strconv.Itoa(unix.Getpid())
	rest, found := strings.CutPrefix(real, own)
	if !found || rest != "" && rest[0] != '/' {
		return real
	}
	return "/proc/" + strconv.Itoa(v.task.process()) + rest
}

// folder opens the folder that holds the last name of a path.
func (v *viewer) folder(w where) (parent *thing, name string, err error) {
	path := strings.TrimRight(w.path, "/")
	cut := strings.LastIndexByte(path, '/')
	name = path[cut+1:]
	if name == "" || name == "." || name == ".." {
		return nil, "", unix.EINVAL
	}
	up := path[:cut+1]
	if up == "" {
		up = "."
	}
	parent, err = v.open(where{w.dir, up}, followLast)
	if err == nil && !parent.is(unix.S_IFDIR) {
		err = unix.ENOTDIR
	}
	return parent, name, err
}

// mostLinks is how many links are followed to a file that is made where they end.
const mostLinks = 8

// made finds the folder and the name under which an open makes a file that is not there: a
// link to nothing makes what it names.
func (v *viewer) made(w where) (parent *thing, name string, err error) {
	for range mostLinks {
		if strings.HasSuffix(w.path, "/") {
			return nil, "", unix.EISDIR
		}
		if parent, name, err = v.folder(w); err != nil {
			return nil, "", err
		}
		link, err := v.openFrom(parent.fd, name, keepLast)
		switch {
		case err == unix.ENOENT: //nolint:errorlint // of a system call
			return parent, name, nil
		case err != nil:
			return nil, "", err
		case !link.is(unix.S_IFLNK):
			return nil, "", unix.ENOENT // it is there by now
		}
		var buffer [unix.PathMax]byte
		n, err := unix.Readlinkat(link.fd, "", buffer[:])
		if err != nil {
			return nil, "", err
		}
		next := string(buffer[:n])
		if !strings.HasPrefix(next, "/") {
			next = parent.holding(next)
		}
		w = where{unix.AT_FDCWD, next}
	}
	return nil, "", unix.ELOOP
}

// may asks the kernel whether the user may do something at all, with no jail: a file that is
// closed to the user needs no line about a profile.
func (t *thing) may(mode uint32) error {
	if t.is(unix.S_IFLNK) {
		return nil
	}
	return unix.Faccessat2(t.fd, "", mode, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
}

// parentOf is the path of the folder that holds a real path.
func parentOf(real string) string { return filepath.Dir(real) }
