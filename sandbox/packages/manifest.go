package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A manifest says what a tree holds: one line for each file, folder and link, sorted by
// path.
//
//	f MODE SIZE SHA256 PATH
//	d MODE PATH
//	l TARGET-QUOTED PATH-QUOTED
//
// Paths are quoted as Go strings, so that no name can end a line. The digest of the whole
// text is what a record trusts. Stamps stand beside it: inode, size and change time (ctime)
// of every file. No program can set the change time, so a file with the stamp that it had
// is the file that was hashed, and a start does not read the tree again.

// entryDigits is how many digits of the digest are in a folder's name.
const entryDigits = 16

// content is one line of a manifest.
type content struct {
	path, kind string // kind: f, d, l
	mode       uint32
	size       int64
	sum        string // SHA-256 of a file
	link       string
}

func (c *content) write(b *bytes.Buffer) {
	switch c.kind {
	case "f":
		fmt.Fprintf(b, "f %04o %d %s %q\n", c.mode, c.size, c.sum, c.path)
	case "d":
		fmt.Fprintf(b, "d %04o %q\n", c.mode, c.path)
	default:
		fmt.Fprintf(b, "l %q %q\n", c.link, c.path)
	}
}

// stamp is what lstat tells of a file that nobody changed.
type stamp struct {
	path  string
	ino   uint64
	size  int64
	mode  uint32
	ctime int64 // nanoseconds since the epoch
}

func stampOf(n *node) stamp {
	return stamp{path: n.path, ino: n.stat.Ino, size: n.stat.Size, mode: n.stat.Mode, ctime: n.stat.Ctim.Nano()}
}

func writeStamps(nodes []node) []byte {
	var b bytes.Buffer
	for i := range nodes {
		s := stampOf(&nodes[i])
		fmt.Fprintf(&b, "%d %d %o %d %q\n", s.ino, s.size, s.mode, s.ctime, s.path)
	}
	return b.Bytes()
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// describe makes the manifest's lines of a walked tree. Files are hashed on all processors.
func describe(root string, nodes []node) ([]content, error) {
	out := make([]content, len(nodes))
	var work sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for i := range next {
				c, err := describeOne(root, &nodes[i])
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
				out[i] = c
			}
		})
	}
	for i := range nodes {
		next <- i
	}
	close(next)
	work.Wait()
	return out, failed
}

func describeOne(root string, n *node) (content, error) {
	c := content{path: n.path, mode: n.stat.Mode & 0o7777}
	switch n.kind() {
	case unix.S_IFDIR:
		c.kind = "d"
	case unix.S_IFLNK:
		// Its mode says nothing, and differs between file systems.
		c.kind, c.link, c.mode = "l", n.link, 0
	case unix.S_IFREG:
		c.kind, c.size = "f", n.stat.Size
		var err error
		c.sum, err = hashFile(path.Join(root, n.path), n.stat.Ino)
		return c, err
	default:
		return c, fmt.Errorf("%q is no file, folder or link", n.path)
	}
	return c, nil
}

// hashFile hashes a file that has to be the one that the walk saw.
func hashFile(name string, ino uint64) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "reading", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }() // only read from
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", &os.PathError{Op: "looking at", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != ino {
		return "", fmt.Errorf("%q changed while it was looked at", name)
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func writeManifest(lines []content) []byte {
	var b bytes.Buffer
	for i := range lines {
		lines[i].write(&b)
	}
	return b.Bytes()
}

// readManifest reads the lines back. It is called only on a text whose digest is known.
func readManifest(text []byte) (map[string]content, error) {
	out := map[string]content{}
	for line := range strings.Lines(string(text)) {
		c, err := readContent(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		out[c.path] = c
	}
	return out, nil
}

func readContent(line string) (content, error) {
	var c content
	bad := fmt.Errorf("the manifest has a line that is none: %.40q", line)
	at := strings.IndexByte(line, '"')
	if len(line) < 3 || at < 0 {
		return c, bad
	}
	c.kind = line[:1]
	if c.kind == "l" {
		target, err := strconv.QuotedPrefix(line[2:])
		if err != nil {
			return c, bad
		}
		at = 2 + len(target) + 1
		if c.link, err = strconv.Unquote(target); err != nil || at >= len(line) {
			return c, bad
		}
	} else {
		var err error
		if c.kind == "f" {
			_, err = fmt.Sscanf(line[:at], "f %o %d %s ", &c.mode, &c.size, &c.sum)
		} else {
			_, err = fmt.Sscanf(line[:at], "d %o ", &c.mode)
		}
		if err != nil {
			return c, bad
		}
	}
	var err error
	if c.path, err = strconv.Unquote(line[at:]); err != nil {
		return c, bad
	}
	return c, nil
}

// readStamps reads the stamps back. A line that is none makes all of them worthless.
func readStamps(text []byte) map[string]stamp {
	out := make(map[string]stamp, bytes.Count(text, []byte{'\n'}))
	rest := string(text)
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		var s stamp
		var ok bool
		if s, ok = readStamp(line); !ok {
			return nil
		}
		out[s.path] = s
	}
	return out
}

func readStamp(line string) (s stamp, ok bool) {
	fields := strings.SplitN(line, " ", 5)
	if len(fields) != 5 {
		return s, false
	}
	var errs [5]error
	var mode uint64
	s.ino, errs[0] = strconv.ParseUint(fields[0], 10, 64)
	s.size, errs[1] = strconv.ParseInt(fields[1], 10, 64)
	mode, errs[2] = strconv.ParseUint(fields[2], 8, 32)
	s.ctime, errs[3] = strconv.ParseInt(fields[3], 10, 64)
	s.path, errs[4] = strconv.Unquote(fields[4])
	s.mode = uint32(mode)
	return s, errors.Join(errs[:]...) == nil
}
