package sandbox

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// staleBudget bounds how many entries one start removes of what ended runs left, so that a
// server cannot make later starts wait by filling its folder. The next start goes on.
const staleBudget = 4000

// removeStale removes temporary folders whose run has ended. The server that had one is
// gone, and nothing of ours stayed to do it. Folders of other PID namespaces are left: a
// process there cannot be seen from here. Failures are left to the next start.
//
// A stale folder was a server's to fill, and a process of it may still be there. So
// everything goes by descriptor, one name at a time, and no link is ever followed.
func removeStale(runs, current string) {
	dir, err := openFolder(unix.AT_FDCWD, runs)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	names, err := folderNames(dir)
	if err != nil || len(names) == 0 || len(names) == 1 && names[0] == current {
		return
	}
	ns, err := pidNamespace()
	if err != nil {
		return
	}
	budget := staleBudget
	for _, name := range names {
		if name == current || !ended(name, ns) {
			continue
		}
		// Most servers leave an empty folder.
		if unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) == nil {
			budget--
		} else {
			budget = clearFolder(dir, name, budget)
		}
		if budget <= 0 {
			return
		}
	}
}

// ended tells whether the run that a folder is named after is over for certain: there is
// no such process, or the one with its number started after the folder was named.
func ended(name string, ns uint64) bool {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return false
	}
	folderNS, err1 := strconv.ParseUint(parts[0], 10, 64)
	pid, err2 := strconv.ParseUint(parts[1], 10, 31)
	named, err3 := strconv.ParseUint(parts[2], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || folderNS != ns || pid == 0 {
		return false
	}
	started, err := startTime(int(pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return true
	}
	return err == nil && started > named
}

// clearFolder empties and removes a folder and returns what is left of the budget. It does
// not descend: a folder in it is emptied by moving the folders that it holds up beside it,
// so that no nest is too deep, and then removed.
func clearFolder(parent int, name string, budget int) int {
	top, err := openFolder(parent, name)
	if err != nil {
		return budget - 1
	}
	defer unix.Close(top)
	for budget > 0 {
		names, err := folderNames(top)
		if err != nil || len(names) == 0 {
			break
		}
		before := budget
		for _, n := range names {
			if budget--; budget <= 0 {
				break
			}
			if unix.Unlinkat(top, n, 0) == nil || unix.Unlinkat(top, n, unix.AT_REMOVEDIR) == nil {
				continue
			}
			budget = liftFolder(top, n, budget)
		}
		if budget == before {
			break
		}
	}
	_ = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	return budget - 1
}

// liftFolder empties one folder of top: files are removed, folders are moved up into top
// under new names.
func liftFolder(top int, name string, budget int) int {
	fd, err := openFolder(top, name)
	if err != nil {
		return budget
	}
	defer unix.Close(fd)
	names, err := folderNames(fd)
	if err != nil {
		return budget
	}
	for _, n := range names {
		if budget--; budget <= 0 {
			return budget
		}
		if unix.Unlinkat(fd, n, 0) == nil || unix.Unlinkat(fd, n, unix.AT_REMOVEDIR) == nil {
			continue
		}
		// Moving a folder changes its "..", which needs write permission on it (rename(2)).
		sub, err := openFolder(fd, n)
		if err != nil {
			continue
		}
		unix.Close(sub)
		if up, err := unforeseen(); err == nil {
			_ = unix.Renameat2(fd, n, top, up, unix.RENAME_NOREPLACE)
		}
	}
	_ = unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
	return budget
}

// unforeseen is a name that a server cannot have put in the way.
func unforeseen() (string, error) {
	var random [16]byte
	if _, err := unix.Getrandom(random[:], 0); err != nil {
		return "", err
	}
	return hex.EncodeToString(random[:]), nil
}

// openFolder opens a folder for listing and gives its owner back the rights that the
// server may have taken away. The mode is set through the descriptor of a folder that was
// opened without following a link and belongs to this user.
func openFolder(parent int, name string) (int, error) {
	path, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return -1, err
	}
	if int(st.Uid) != unix.Geteuid() {
		return -1, fmt.Errorf("%q belongs to user %d", name, st.Uid)
	}
	if st.Mode&0o700 != 0o700 {
		if err := unix.Chmod(fdPath(path), 0o700); err != nil {
			return -1, err
		}
	}
	return unix.Openat(path, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// maxNames bounds one listing; what is beyond waits for the next one.
const maxNames = 4096

// folderNames lists a folder from the start, without "." and "..".
func folderNames(fd int) ([]string, error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	var buf [4 << 10]byte
	var names []string
	for len(names) < maxNames {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	return names, nil
}
