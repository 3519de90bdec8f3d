package race

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Identity is who a party runs as; nil is whoever runs the harness.
type Identity = *syscall.Credential

// Numeric users and the group that server and swapper share. They need no entry in
// /etc/passwd; they are far from the ranges that distributions hand out.
const (
	serverUID = 3147001
	swapUID   = 3147002
	sharedGID = 3147003
)

// files is how many files lie in the folder inside, and in the one outside under the same
// names: one for each call of a burst.
const files = 16

// Outside files have their own size, so that an attribute from outside shows.
const (
	outsideSize     = 4321
	outsideSizeText = "4.22 KB" // as list_directory_with_sizes prints it
)

// insideText and editText are what every inside file holds, and what an edit makes of it.
const (
	sharedLine = "a line that both files share"
	editedLine = "a line that an edit left"
	insideText = "an inside file\n" + sharedLine + "\n"
)

// Stage is the folders of one run.
//
//	base/root        the allowed root: server and swapper may write
//	base/root/sub    the name that is swapped
//	base/root/src    files to move in
//	base/root/out    where moved files go
//	base/secret      the folder outside: the server's user alone
//	base/home        the server's home
type Stage struct {
	base     string
	token    string // in every outside file, and in the name of one
	method   Method
	server   Identity
	attacker Identity
	inside   *os.Root // the folder inside, wherever its name leads
	root     *os.Root
}

// NewStage builds the folders in a new temporary folder that any user can pass through.
// Close removes it.
func NewStage(method Method) (stage *Stage, err error) {
	base, err := os.MkdirTemp("", "stockade-race-")
	if err != nil {
		return nil, fmt.Errorf("making the stage: %w", err)
	}
	s := &Stage{base: base, method: method}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if os.Geteuid() == 0 {
		s.server = &syscall.Credential{Uid: serverUID, Gid: serverUID, Groups: []uint32{sharedGID}}
		s.attacker = &syscall.Credential{Uid: swapUID, Gid: sharedGID}
	}
	var word [12]byte
	_, _ = rand.Read(word[:]) // never fails (crypto/rand, Go 1.24)
	s.token = hex.EncodeToString(word[:])
	if err := s.build(); err != nil {
		return nil, err
	}
	if s.root, err = os.OpenRoot(s.Root()); err != nil {
		return nil, fmt.Errorf("opening the allowed root: %w", err)
	}
	if s.inside, err = os.OpenRoot(s.insidePath()); err != nil {
		return nil, fmt.Errorf("opening the folder inside: %w", err)
	}
	return s, s.Reset()
}

// Root is the allowed root, as the server is told.
func (s *Stage) Root() string { return filepath.Join(s.base, "root") }

// Home is the server's home folder.
func (s *Stage) Home() string { return filepath.Join(s.base, "home") }

// Outside is the folder that nothing may reach.
func (s *Stage) Outside() string { return filepath.Join(s.base, "secret") }

// Used is the path, below the swapped name, that calls ask for.
func (s *Stage) Used(name string) string { return filepath.Join(s.Root(), nameUsed, name) }

// insidePath is where the folder inside lies while nothing is swapped.
func (s *Stage) insidePath() string {
	if s.method == Retarget {
		return filepath.Join(s.Root(), nameReal)
	}
	return filepath.Join(s.Root(), nameUsed)
}

// Close removes the stage.
func (s *Stage) Close() error {
	var errs []error
	for _, r := range []*os.Root{s.inside, s.root} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.base))...)
}

// build makes the folders and links; Reset fills them.
func (s *Stage) build() error {
	if err := os.Chmod(s.base, 0o755); err != nil {
		return fmt.Errorf("opening the stage: %w", err)
	}
	shared := []string{s.Root(), s.insidePath(), filepath.Join(s.Root(), "src"), filepath.Join(s.Root(), "out")}
	for _, dir := range shared {
		// Setgid: what one of the two makes stays in the shared group.
		if err := makeFolder(dir, 0o2770, s.attacker); err != nil {
			return err
		}
	}
	for _, dir := range []string{s.Outside(), s.Home()} {
		if err := makeFolder(dir, 0o700, s.server); err != nil {
			return err
		}
	}
	link, target := nameSpare, s.Outside()
	if s.method == Retarget {
		link, target = nameUsed, nameReal
	}
	if err := os.Symlink(target, filepath.Join(s.Root(), link)); err != nil {
		return fmt.Errorf("making the link: %w", err)
	}
	return nil
}

func makeFolder(dir string, mode uint32, owner Identity) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder of the stage: %w", err)
	}
	if owner != nil {
		gid := owner.Gid
		if mode&0o2000 != 0 {
			gid = sharedGID
		}
		if err := os.Chown(dir, int(owner.Uid), int(gid)); err != nil {
			return fmt.Errorf("giving away %q: %w", dir, err)
		}
	}
	// chmod(2) itself: os.Chmod keeps setgid in its own bit.
	if err := syscall.Chmod(dir, mode); err != nil {
		return fmt.Errorf("setting the mode of %q: %w", dir, err)
	}
	return nil
}

// fileName is the name of the i-th file, inside and outside. Servers look at the ending
// only in read_media_file, which knows this one as an image.
func fileName(i int) string { return fmt.Sprintf("file-%02d.png", i%files) }

// outsideText is what an outside file holds: the token first, where head, tail, a diff's
// context and base64 all show it, then filling up to its size.
func (s *Stage) outsideText() []byte {
	text := []byte(s.token + "\n" + sharedLine + "\n")
	for len(text) < outsideSize-len(s.token)-1 {
		text = append(text, '.')
	}
	text[len(text)-1] = '\n'
	return append(append(text, s.token...), '\n')
}

// outsideFiles is the whole content of the folder outside. The extra file's name is
// itself the secret that listings must not show.
func (s *Stage) outsideFiles() map[string][]byte {
	want := map[string][]byte{s.token + "-name": nil}
	for i := range files {
		want[fileName(i)] = s.outsideText()
	}
	return want
}

// Reset makes both folders what they were. The swapper must be at rest.
func (s *Stage) Reset() error {
	if err := s.resetOutside(); err != nil {
		return err
	}
	if err := s.clearStrays(); err != nil {
		return err
	}
	for _, part := range []struct {
		folder *os.Root
		below  string
		prefix string
	}{{s.inside, ".", ""}, {s.root, "src", "src-"}} {
		if err := clear(part.folder, part.below); err != nil {
			return err
		}
		for i := range files {
			name := filepath.Join(part.below, part.prefix+fileName(i))
			if err := s.write(part.folder, name, []byte(insideText), 0o666, s.attacker); err != nil {
				return err
			}
		}
	}
	if err := s.write(s.inside, "inside-name", nil, 0o666, s.attacker); err != nil {
		return err
	}
	return clear(s.root, "out")
}

// clearStrays removes what the run left directly in the allowed root: leftovers of writes,
// and folders that the swapper moved out of its way.
func (s *Stage) clearStrays() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing the allowed root: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case nameUsed, nameSpare, nameAside, nameReal, "src", "out":
		default:
			if err := s.root.RemoveAll(e.Name()); err != nil {
				return fmt.Errorf("clearing the allowed root: %w", err)
			}
		}
	}
	return nil
}

// clear removes everything in folder/below, but not below itself.
func clear(folder *os.Root, below string) error {
	entries, err := fs.ReadDir(folder.FS(), below)
	if err != nil {
		return fmt.Errorf("listing %q: %w", below, err)
	}
	for _, e := range entries {
		if err := folder.RemoveAll(filepath.Join(below, e.Name())); err != nil {
			return fmt.Errorf("clearing %q: %w", below, err)
		}
	}
	return nil
}

// write makes a new file; its mode is exact, whatever the umask.
func (s *Stage) write(folder *os.Root, name string, text []byte, mode os.FileMode, owner Identity) (err error) {
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if owner != nil {
		if err := f.Chown(int(owner.Uid), -1); err != nil {
			return fmt.Errorf("giving away %q: %w", name, err)
		}
	}
	if err := f.Chmod(mode); err != nil {
		return fmt.Errorf("setting the mode of %q: %w", name, err)
	}
	if _, err := f.Write(text); err != nil {
		return fmt.Errorf("filling %q: %w", name, err)
	}
	return nil
}

func (s *Stage) resetOutside() (err error) {
	outside, err := os.OpenRoot(s.Outside())
	if err != nil {
		return fmt.Errorf("opening the folder outside: %w", err)
	}
	defer func() { err = errors.Join(err, outside.Close()) }()
	if err := clear(outside, "."); err != nil {
		return err
	}
	for name, text := range s.outsideFiles() {
		if err := s.write(outside, name, text, 0o600, s.server); err != nil {
			return err
		}
	}
	return nil
}
