package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Use is what a call does with a file or folder: a set of what Landlock has a right for.
type Use uint16

const (
	// UseRead reads a file.
	UseRead Use = 1 << iota
	// UseList lists a folder.
	UseList
	// UseWrite changes the content of a file.
	UseWrite
	// UseTruncate cuts a file short.
	UseTruncate
	// UseExecute executes a file.
	UseExecute
	// UseMakeFile, and so on to UseMakeDevice, make something in a folder.
	UseMakeFile
	UseMakeFolder
	UseMakeLink
	UseMakeFifo
	UseMakeSocket
	UseMakeDevice
	// UseRemoveFile and UseRemoveFolder take something out of a folder.
	UseRemoveFile
	UseRemoveFolder
	// UseRefer moves or links between two folders.
	UseRefer
)

// useRights is the Landlock right of each use, in their order. Devices have one for each of
// their two kinds, and a plan never grants one without the other.
var useRights = [...]rights{
	ll.AccessFSReadFile, ll.AccessFSReadDir, ll.AccessFSWriteFile, ll.AccessFSTruncate, ll.AccessFSExecute,
	ll.AccessFSMakeReg, ll.AccessFSMakeDir, ll.AccessFSMakeSym, ll.AccessFSMakeFifo, ll.AccessFSMakeSock, ll.AccessFSMakeChar,
	ll.AccessFSRemoveFile, ll.AccessFSRemoveDir, ll.AccessFSRefer,
}

func (u Use) rights() (r rights) {
	for i, right := range useRights {
		if u&(1<<i) != 0 {
			r |= right
		}
	}
	return r
}

// useOf is the inverse of [Use.rights].
func useOf(r rights) (u Use) {
	for i, right := range useRights {
		if r&right != 0 {
			u |= 1 << i
		}
	}
	return u
}

// object is a file or folder, whatever its path.
type object struct{ dev, ino uint64 }

// Domain foresees what the Landlock domain of a jail refuses. It is told of what Landlock is
// told of, and decides by the same rule: a use is allowed when the rules on the object and
// on all folders above it grant it together (Documentation/userspace-api/landlock.rst,
// "Layers of file path access rights"). It enforces nothing, and what changes between its
// look and the kernel's makes it wrong.
type Domain struct {
	handled rights
	objects map[object]rights
	// folders are the same rules by the real paths of folders. It finds most of what is
	// granted with no look at the folders above.
	folders map[string]rights
	files   map[string]struct{} // real paths of what is granted and no folder
}

// Domain makes the foresight of a jail whose grants are open, private folders among them. It
// may be used by several goroutines.
func (o *Opened) Domain() (*Domain, error) {
	abi, err := LandlockABI()
	if err != nil {
		return nil, err
	}
	h := handled(o.Plan.Network, abi)
	d := &Domain{handled: h.files, objects: map[object]rights{}, folders: map[string]rights{}, files: map[string]struct{}{}}
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.State != Granted {
			continue
		}
		at, err := identify(g.fd)
		if err != nil {
			return nil, fmt.Errorf("looking at the grant of %q: %w", g.Path, err)
		}
		real, err := targetOf(g.fd)
		if err != nil {
			return nil, fmt.Errorf("looking at the grant of %q: %w", g.Path, err)
		}
		allowed := g.Access.rights().on(g.Kind) & h.files
		d.objects[at] |= allowed
		if g.Kind == KindFolder {
			d.folders[real] |= allowed
		} else {
			d.files[real] = struct{}{}
		}
	}
	return d, nil
}

func identify(fd int) (object, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return object{}, err
	}
	return object{dev: st.Dev, ino: st.Ino}, nil //nolint:unconvert // another type elsewhere
}

// mostFolders bounds a walk up: PATH_MAX bytes hold no deeper path.
const mostFolders = unix.PathMax / 2

// Refuses returns the part of a use that the domain does not grant on an object, which is
// opened as a path only, at its real path. An error means that it cannot be told.
func (d *Domain) Refuses(fd int, real string, u Use) (Use, error) {
	asked := u.rights() & d.handled
	missing := asked &^ d.byName(real)
	if missing == 0 {
		return 0, nil
	}
	at, err := identify(fd)
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
	return useOf(missing &^ granted), nil
}

// Grants returns all that the domain grants on an object, of what it could refuse.
func (d *Domain) Grants(fd int, real string) (Use, error) {
	const all = Use(1)<<len(useRights) - 1
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
func (d *Domain) byName(real string) (granted rights) {
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
func (d *Domain) above(real string) (granted rights, err error) {
	fd, err := unix.Open(filepath.Dir(real), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { unix.Close(fd) }()
	at, err := identify(fd)
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
		up, err := identify(fd)
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
