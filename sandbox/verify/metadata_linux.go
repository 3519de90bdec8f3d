package verify

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onFile runs f on a new file of mode 0600 and removes it.
func onFile(dir string, f func(path string, fd int) error) error {
	path := filepath.Join(dir, "verify-mode")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer file.Close()
	return f(path, int(file.Fd()))
}

func chmod(c Check) error {
	return onFile(c.Path, func(path string, _ int) error { return unix.Chmod(path, 0o644) })
}

// chmodIgnored wants success and an unchanged ctime: a mode that was set and set back
// would show there.
func chmodIgnored(c Check) error {
	return onFile(c.Path, func(path string, fd int) error {
		var before, after unix.Stat_t
		if err := unix.Fstat(fd, &before); err != nil {
			return err
		}
		if err := unix.Chmod(path, 0o644); err != nil {
			return err
		}
		if err := unix.Fstat(fd, &after); err != nil {
			return err
		}
		if before.Ctim != after.Ctim || before.Mode != after.Mode {
			return errors.New("the file changed")
		}
		return nil
	})
}

func fchmod(c Check) error {
	return onFile(c.Path, func(_ string, fd int) error {
		if err := unix.Fchmod(fd, 0o640); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&0o777 != 0o640 {
			return errors.New("the mode did not change")
		}
		return nil
	})
}

// noAccess opens with access mode 3, for which Landlock asks no right (open(2)).
func noAccess(c Check) error {
	fd, err := unix.Open(c.Path, unix.O_ACCMODE|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func setID(c Check) error {
	return onFile(c.Path, func(_ string, fd int) error { return unix.Fchmod(fd, unix.S_ISUID|0o755) })
}

// attribute lists the names of attributes; a file without any answers an empty list.
func attribute(c Check) error {
	_, err := unix.Listxattr(c.Path, nil)
	return err
}

// attributeHere removes an attribute that does not exist from the working folder, which a
// null path with AT_FDCWD names (removexattrat(2), Linux 6.13; ENOSYS before). A filter
// that lets the call through gives ENODATA or EPERM.
func attributeHere(Check) error {
	here := unix.AT_FDCWD
	name := append([]byte("user.stockade-verify"), 0)
	_, _, errno := unix.Syscall6(unix.SYS_REMOVEXATTRAT, uintptr(here), 0, unix.AT_EMPTY_PATH,
		uintptr(unsafe.Pointer(&name[0])), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
