package forecast

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Identify tells which object a descriptor is.
func Identify(fd int) (Object, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Object{}, err
	}
	return Object{Dev: uint64(st.Dev), Ino: st.Ino}, nil //nolint:unconvert // another type elsewhere
}

// mostFolders bounds a walk up: PATH_MAX bytes hold no deeper path.
const mostFolders = unix.PathMax / 2

// Refuses returns the part of a use that the domain does not grant on an object, which is
// opened as a path only, at its real path. An error means that it cannot be told.
func (d *Domain) Refuses(fd int, real string, u Use) (Use, error) {
	asked := u & d.handled
	missing := asked &^ d.byName(real)
	if missing == 0 {
		return 0, nil
	}
	at, err := Identify(fd)
	if err != nil {
		return 0, err
	}
	if missing &^= d.objects[at]; missing == 0 {
		return 0, nil
	}
	granted, err := d.above(real)
	if err != nil {
		return 0, err
	}
	return missing &^ granted, nil
}

// Grants returns all that the domain grants on an object, of what it could refuse.
func (d *Domain) Grants(fd int, real string) (Use, error) {
	const all = UseRefer<<1 - 1
	refused, err := d.Refuses(fd, real, all)
	return all &^ refused, err
}

// Replaced tells whether a path was granted as a file, and another file is there now: rules
// hold objects, and a file that was put in the place of a granted one has none.
func (d *Domain) Replaced(real string) bool {
	_, granted := d.files[real]
	return granted
}

// byName joins the rights of the folder at a path and of all folders above it.
func (d *Domain) byName(real string) (granted Use) {
	if !strings.HasPrefix(real, "/") {
		return 0
	}
	for path := real; ; path = filepath.Dir(path) {
		granted |= d.folders[path]
		if path == "/" {
			return granted
		}
	}
}

// above joins the rights of the folders above an object by what they are and not by their
// names: a granted folder may have been moved, or be mounted in another place too.
func (d *Domain) above(real string) (granted Use, err error) {
	fd, err := unix.Open(filepath.Dir(real), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { unix.Close(fd) }()
	at, err := Identify(fd)
	if err != nil {
		return 0, err
	}
	for range mostFolders {
		granted |= d.objects[at]
		next, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		unix.Close(fd)
		fd = next
		up, err := Identify(fd)
		if err != nil {
			return 0, err
		}
		if up == at {
			return granted, nil // the root is its own parent
		}
		at = up
	}
	return 0, unix.ELOOP
}
