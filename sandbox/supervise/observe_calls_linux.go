package supervise

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
)

// intent looks at the files of one call, and returns what the domain will refuse of it; nil
// for nothing.
type intent func(v *viewer) (*Refusal, error)

// argument says where a call has a path: the index of its folder's descriptor, noFolder
// without one, and the index of the path.
type argument struct{ dir, path int }

const noFolder = -1

// at reads a path of the call.
func (c *call) at(a argument) (where, error) {
	w := where{dir: unix.AT_FDCWD}
	if a.dir != noFolder {
		w.dir = c.number(a.dir)
	}
	var err error
	w.path, err = c.task.pathOf(c.args[a.path])
	return w, err
}

// atBoth reads the two paths of a call.
func (c *call) atBoth(from, to argument) (old, fresh where, err error) {
	if old, err = c.at(from); err == nil {
		fresh, err = c.at(to)
	}
	return old, fresh, err
}

// intend reads the arguments of a call that names files; nil for a call that is none.
func (s *supervisor) intend(c *call) (intent, error) {
	if look, known, err := intendOld(c); known {
		return look, err
	}
	switch c.nr {
	case unix.SYS_OPENAT:
		return intendOpen(c, "openat", argument{0, 1}, opening{flags: c.args[2]})
	case unix.SYS_OPENAT2:
		return intendOpenat2(c)
	case unix.SYS_EXECVE:
		return intendExec(c, argument{noFolder, 0}, 0)
	case unix.SYS_EXECVEAT:
		return intendExec(c, argument{0, 1}, c.number(4))
	case unix.SYS_MKDIRAT:
		return intendMake(c, "mkdirat", argument{0, 1}, forecast.UseMakeFolder)
	case unix.SYS_MKNODAT:
		return intendMake(c, "mknodat", argument{0, 1}, nodeUse(c.args[2]))
	case unix.SYS_SYMLINKAT:
		return intendMake(c, "symlinkat", argument{1, 2}, forecast.UseMakeLink)
	case unix.SYS_UNLINKAT:
		if c.number(2)&unix.AT_REMOVEDIR != 0 {
			return intendRemove(c, "unlinkat", argument{0, 1}, forecast.UseRemoveFolder)
		}
		return intendRemove(c, "unlinkat", argument{0, 1}, forecast.UseRemoveFile)
	case unix.SYS_RENAMEAT:
		return intendMove(c, "renameat", argument{0, 1}, argument{2, 3}, 0)
	case unix.SYS_RENAMEAT2:
		return intendMove(c, "renameat2", argument{0, 1}, argument{2, 3}, c.number(4))
	case unix.SYS_LINKAT:
		return intendLink(c, "linkat", argument{0, 1}, argument{2, 3}, c.number(4))
	case unix.SYS_TRUNCATE:
		return intendTruncate(c)
	}
	return nil, nil //nolint:nilnil // no intent: a call that names no file
}

// nodeUse is what making a node of a mode needs (mknod(2)); without a kind it is a file.
func nodeUse(mode uint64) forecast.Use {
	switch uint32(mode) & unix.S_IFMT { //nolint:gosec // as the kernel does
	case unix.S_IFIFO:
		return forecast.UseMakeFifo
	case unix.S_IFSOCK:
		return forecast.UseMakeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return forecast.UseMakeDevice
	}
	return forecast.UseMakeFile
}

// missing asks the domain about one thing, and then whether the user may at all. shown is
// the path that the call is about.
func (v *viewer) missing(t *thing, u forecast.Use, mode uint32, r Refusal) (*Refusal, error) {
	refused, err := v.domain.Refuses(t.fd, t.real, u)
	if err != nil || refused == 0 {
		return nil, err
	}
	if len(t.real) == 0 || t.real[0] != '/' {
		return nil, unix.ENOENT // a pipe or socket without a path, which Landlock passes
	}
	if err := t.may(mode); err != nil {
		return nil, err
	}
	r.Grant, r.Uses = t.real, refused
	if r.Path == "" {
		r.Path = t.real
		r.Replaced = v.domain.Replaced(t.real)
	}
	if r.Asked == r.Path {
		r.Asked = ""
	}
	return &r, nil
}

// opening is how a file is opened.
type opening struct{ flags, resolve uint64 }

func (o opening) has(flags uint64) bool { return o.flags&flags == flags }

// wants is what the descriptor is for, on a file.
func (o opening) wants() (u forecast.Use, mode uint32, op Operation) {
	switch o.flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		return forecast.UseRead, unix.R_OK, Reading
	case unix.O_WRONLY:
		return forecast.UseWrite, unix.W_OK, Writing
	}
	return forecast.UseRead | forecast.UseWrite, unix.R_OK | unix.W_OK, Writing
}

func intendOpen(c *call, name string, a argument, o opening) (intent, error) {
	if o.has(unix.O_PATH) {
		return nil, nil //nolint:nilnil // Landlock passes what only names a file
	}
	w, err := c.at(a)
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) { return o.look(v, name, w) }, nil
}

// intendOpenat2 reads struct open_how (linux/openat2.h): three words of 64 bits.
func intendOpenat2(c *call) (intent, error) {
	var how [3]uint64
	if errno := c.task.read(c.args[2], bytesOf(&how)); errno != 0 {
		return nil, errno
	}
	if how[2]&(unix.RESOLVE_IN_ROOT|unix.RESOLVE_BENEATH) != 0 {
		return nil, errUnseen // a path that means something else
	}
	return intendOpen(c, "openat2", argument{0, 1}, opening{flags: how[0], resolve: how[2]})
}

func (o opening) look(v *viewer, name string, w where) (*Refusal, error) {
	v.resolve |= o.resolve
	use, mode, op := o.wants()
	last := followLast
	if o.has(unix.O_NOFOLLOW) || o.has(unix.O_CREAT|unix.O_EXCL) {
		last = keepLast
	}
	t, err := v.open(w, last)
	if err == unix.ENOENT && o.has(unix.O_CREAT) { //nolint:errorlint // of a system call
		parent, base, err := v.made(w)
		if err != nil {
			return nil, err
		}
		return v.missing(parent, use|forecast.UseMakeFile, unix.W_OK|unix.X_OK,
			Refusal{Call: name, Operation: Creating, Path: parent.holding(base), Asked: w.path})
	}
	r := Refusal{Call: name, Operation: op, Asked: w.path}
	switch {
	case err != nil:
		return nil, err
	case t.is(unix.S_IFLNK), t.is(unix.S_IFSOCK), o.has(unix.O_CREAT | unix.O_EXCL):
		return nil, nil //nolint:nilnil // ELOOP, ENXIO, EEXIST
	case t.is(unix.S_IFDIR) && o.has(unix.O_TMPFILE):
		r.Operation = Creating
		return v.missing(t, use, unix.W_OK|unix.X_OK, r)
	case t.is(unix.S_IFDIR) && (use != forecast.UseRead || o.has(unix.O_CREAT)), !t.is(unix.S_IFDIR) && o.has(unix.O_DIRECTORY):
		return nil, nil //nolint:nilnil // EISDIR, ENOTDIR
	case t.is(unix.S_IFDIR):
		r.Operation = Listing
		return v.missing(t, forecast.UseList, mode, r)
	case t.is(unix.S_IFREG) && o.has(unix.O_TRUNC):
		use |= forecast.UseTruncate
	}
	return v.missing(t, use, mode, r)
}

func intendExec(c *call, a argument, flags int) (intent, error) {
	w, err := c.at(a)
	if err != nil {
		return nil, err
	}
	name, last := "execve", followLast
	if a.dir != noFolder {
		name = "execveat"
	}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		last = keepLast
	}
	return func(v *viewer) (*Refusal, error) {
		t, err := v.open(w, last)
		if err != nil {
			return nil, err
		}
		return v.executed(t, name, w.path)
	}, nil
}

// mostInterpreters is how many scripts may name each other (BINPRM_MAX_RECURSION, fs/exec.c,
// Linux 6.18), and hashbang how much of a file the kernel looks at (BINPRM_BUF_SIZE).
const (
	mostInterpreters = 5
	hashbang         = 256
)

// executed looks at a program, and at the interpreters that the kernel executes for it.
func (v *viewer) executed(t *thing, name, asked string) (*Refusal, error) {
	for range mostInterpreters {
		if !t.is(unix.S_IFREG) {
			return nil, unix.EACCES
		}
		r, err := v.missing(t, forecast.UseRead|forecast.UseExecute, unix.X_OK, Refusal{Call: name, Operation: Executing, Asked: asked})
		if r != nil || err != nil {
			return r, err
		}
		if asked, err = v.interpreter(t); err != nil || asked == "" {
			return nil, err
		}
		if t, err = v.open(where{unix.AT_FDCWD, asked}, followLast); err != nil {
			return nil, err
		}
	}
	return nil, unix.ELOOP
}

// interpreter returns the program that a script's first line names; "" for what is no script.
// The file can be read: the server may.
func (v *viewer) interpreter(t *thing) (string, error) {
	if v.resolve&resolveCached != 0 {
		return "", unix.EAGAIN // reading may take time
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(t.fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var head [hashbang]byte
	n, err := unix.Pread(fd, head[:], 0)
	if err != nil {
		return "", err
	}
	line, script := bytes.CutPrefix(head[:n], []byte("#!"))
	if !script {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	if len(words) == 0 {
		return "", unix.ENOEXEC
	}
	return string(words[0]), nil
}

func intendMake(c *call, name string, a argument, u forecast.Use) (intent, error) {
	w, err := c.at(a)
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) {
		parent, base, err := v.absent(w)
		if err != nil {
			return nil, err
		}
		return v.missing(parent, u, unix.W_OK|unix.X_OK, Refusal{Call: name, Operation: Creating, Path: parent.holding(base), Asked: w.path})
	}, nil
}

// absent finds the folder of a name that has to be free (EEXIST).
func (v *viewer) absent(w where) (parent *thing, base string, err error) {
	if parent, base, err = v.folder(w); err != nil {
		return nil, "", err
	}
	switch _, err := v.openFrom(parent.fd, base, keepLast); err {
	case unix.ENOENT: //nolint:errorlint // of a system call
		return parent, base, nil
	case nil:
		return nil, "", unix.EEXIST
	default:
		return nil, "", err
	}
}

// present finds something by its folder and its name, links not followed.
func (v *viewer) present(w where) (parent, t *thing, base string, err error) {
	if parent, base, err = v.folder(w); err != nil {
		return nil, nil, "", err
	}
	t, err = v.openFrom(parent.fd, base, keepLast)
	return parent, t, base, err
}

func intendRemove(c *call, name string, a argument, u forecast.Use) (intent, error) {
	w, err := c.at(a)
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) {
		parent, t, base, err := v.present(w)
		if err != nil {
			return nil, err
		}
		if t.is(unix.S_IFDIR) != (u == forecast.UseRemoveFolder) {
			return nil, unix.EISDIR // or ENOTDIR
		}
		return v.missing(parent, u, unix.W_OK|unix.X_OK, Refusal{Call: name, Operation: Removing, Path: parent.holding(base), Asked: w.path})
	}, nil
}

func intendTruncate(c *call) (intent, error) {
	w, err := c.at(argument{noFolder, 0})
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) {
		t, err := v.open(w, followLast)
		if err != nil {
			return nil, err
		}
		if !t.is(unix.S_IFREG) {
			return nil, unix.EINVAL
		}
		return v.missing(t, forecast.UseTruncate, unix.W_OK, Refusal{Call: "truncate", Operation: Truncating, Asked: w.path})
	}, nil
}
