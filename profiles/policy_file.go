package profiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ReadSystemPolicy reads the machine's policy; nil, nil when there is none. The opened file,
// and every folder on the way to it, has to be owner's (root's, 0) and writable by nobody
// else: otherwise it is no policy but what somebody put there, and an error like every other
// reason not to know what it says. The error is an [Errors].
func ReadSystemPolicy(path string, owner int) (*Policy, error) {
	fail := func(hint, format string, args ...any) (*Policy, error) {
		return nil, Errors{wrong(hint, format, args...).at(Position{File: path})}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// Nothing there, and not a link to nothing.
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // a machine without a policy
		}
	}
	if err != nil {
		return fail("servers start when it can be read; ask who keeps it", "opening the machine's policy: %s", reason(err))
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return fail("", "opening the machine's policy: %s", reason(err))
	}
	real, err := realPath(f)
	if err != nil {
		return fail("mount /proc", "opening the machine's policy: %s", reason(err))
	}
	if bad := checkKept(info, real, owner); bad != nil {
		return fail(bad.hint, "the machine's policy does not count: %s", bad.message)
	}
	if hasACL(f) && info.Mode().Perm()&0o020 != 0 {
		return fail("setfacl -b "+real, "the machine's policy does not count: its access list may let others write it")
	}
	for _, way := range [...]string{path, real} {
		if bad := checkWay(way, owner); bad != nil {
			return fail(bad.hint, "the machine's policy does not count: %s", bad.message)
		}
	}
	return readPolicy(f, path)
}

// ReadPolicy reads a policy that a person adds. It narrows alone: it has no defaults.
func ReadPolicy(path string) (*Policy, error) {
	read, err := readBounded(machine{}, path, path)
	if err != nil {
		return nil, err
	}
	p, err := ParsePolicy(path, read.data)
	if err != nil {
		return nil, err
	}
	if at, has := p.at["defaults"]; has {
		return nil, Errors{wrong("write them into a profile", "a policy of --policy only narrows, and defaults add").at(at)}
	}
	return p, nil
}

func readPolicy(f *os.File, path string) (*Policy, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, Errors{wrong("", "reading the machine's policy: %s", reason(err)).at(Position{File: path})}
	}
	return ParsePolicy(path, data)
}

// checkKept judges one file or folder on the way to the policy.
func checkKept(info fs.FileInfo, path string, owner int) *problem {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return wrong("", "the owner of %s is not known", path)
	}
	// Root can change everything, whoever the owner is to be.
	if int(st.Uid) != owner && st.Uid != 0 {
		return wrong(fmt.Sprintf("chown %d %s", owner, path), "%s belongs to user %d", path, st.Uid)
	}
	// A sticky folder lets others add names, and not take away those of others.
	if open := info.Mode().Perm() & 0o022; open != 0 && (!info.IsDir() || info.Mode()&fs.ModeSticky == 0) {
		return wrong("chmod go-w "+path, "others may write %s", path)
	}
	return nil
}

// checkWay judges every folder above a file, from the top: where those above cannot be
// changed by others, the next name is what it was.
func checkWay(file string, owner int) *problem {
	whole, err := filepath.Abs(file)
	if err != nil {
		return wrong("", "finding %s: %s", file, reason(err))
	}
	var way []string
	for at := filepath.Dir(whole); ; at = filepath.Dir(at) {
		way = append(way, at)
		if at == "/" {
			break
		}
	}
	for _, folder := range slices.Backward(way) {
		info, err := os.Stat(folder)
		if err != nil {
			return wrong("", "looking at %s: %s", folder, reason(err))
		}
		if bad := checkKept(info, folder, owner); bad != nil {
			return bad
		}
	}
	return nil
}
