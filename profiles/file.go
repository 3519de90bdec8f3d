package profiles

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// suffix ends the name of every profile file.
const suffix = ".yaml"

// opener opens files below one place: the machine's files, or a repository's, which links
// cannot leave.
type opener interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Stat(name string) (fs.FileInfo, error)
}

// machine opens any file.
type machine struct{}

func (machine) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// content is what a file held, and where it lies.
type content struct {
	data []byte
	real string
}

// ParseFile reads and parses the profile in a file. It reads regular files only, at most 1
// MiB, and never waits: a fifo or a device is an error. The profile's name is the file's
// name when the file says none. The error is an [Errors].
//
// A file that others can change is an error (see [CheckOwner]). One that lies in a folder
// named .stockade, or is named by way of one, is a repository's.
func ParseFile(path string) (*Profile, error) {
	read, err := readBounded(machine{}, path, path)
	if err != nil {
		return nil, err
	}
	p, err := parseNamed(path, read)
	if err != nil {
		return nil, err
	}
	named, err := filepath.Abs(path)
	if err != nil {
		return nil, Errors{wrong("", "finding the profile's folder: %s", reason(err)).at(Position{File: path})}
	}
	for _, place := range [...]string{read.real, named} {
		if _, found := repositoryOf(place); found {
			p.FromRepo = true
		}
	}
	return p, nil
}

// parseNamed parses a file's content and names the profile after the file if it says no
// other name.
func parseNamed(shown string, read content) (*Profile, error) {
	p, err := Parse(shown, read.data)
	if err != nil {
		return nil, err
	}
	p.Sources = []Source{{File: shown, Real: read.real, SHA256: sha256.Sum256(read.data)}}
	if !p.Name.written() {
		base := strings.TrimSuffix(filepath.Base(shown), suffix)
		if _, bad := checkName(base); bad != nil {
			at := Position{File: shown}
			return nil, Errors{wrong(`write "name: ..." in the profile, or rename the file`, "the file's name cannot be the profile's: %s", bad.message).at(at)}
		}
		p.Name.Value = base
	}
	return p, nil
}

// readBounded reads a file that a place calls name and people call shown.
func readBounded(from opener, name, shown string) (content, error) {
	fail := func(hint, format string, args ...any) (content, error) {
		return content{}, Errors{wrong(hint, format, args...).at(Position{File: shown})}
	}
	// Looking first keeps a device from being opened at all; the look at the opened file
	// is the one that counts.
	info, err := from.Stat(name)
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return fail(openHint(err), "opening the profile: %s", reason(err))
	}
	// O_NONBLOCK: opening a fifo that took the file's place returns at once.
	f, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fail(openHint(err), "opening the profile: %s", reason(err))
	}
	defer func() { _ = f.Close() }() // only read from
	if info, err = f.Stat(); err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return fail(openHint(err), "opening the profile: %s", reason(err))
	}
	real, err := realPath(f)
	if err != nil {
		return fail("mount /proc", "opening the profile: %s", reason(err))
	}
	if bad := checkOwner(f, real); bad != nil {
		return fail(bad.hint, "opening the profile: %s", bad.message)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return fail("", "reading the profile: %s", reason(err))
	case len(data) > maxFile:
		return fail("a profile has a few dozen lines", "the file is larger than %d bytes", maxFile)
	}
	return content{data, real}, nil
}

var (
	errFolder  = errors.New("it is a folder, not a file")
	errSpecial = errors.New("it is not a regular file")
)

func checkRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return errSpecial
	}
	return nil
}

// reason is the cause without the path, which the position names.
func reason(err error) string {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err.Error()
	}
	return err.Error()
}

func openHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "correct the path; if it is a link, see where it leads"
	case errors.Is(err, errFolder):
		return fmt.Sprintf("name the profile in it, a file that ends in %s", suffix)
	case errors.Is(err, fs.ErrPermission):
		return "the person who starts the server has to be able to read it"
	}
	return ""
}
