package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownName is the folder below an XDG base folder that holds what is stockade's.
const ownName = "/stockade/"

// makeFolders makes the private home and the temporary folder of this run and opens them
// for their grants. What it makes is remembered, so that a start that fails later leaves
// nothing behind.
func (o *Opened) makeFolders() error {
	for _, f := range [...]Folder{o.Plan.Home, o.Plan.Tmp} {
		if f.Path == "" {
			continue
		}
		fd, err := o.makePrivate(f.Path)
		if err != nil {
			return fmt.Errorf("making private folder %q: %w", f.Path, err)
		}
		o.settle(f.Path, fd)
	}
	return nil
}

// settle turns the pending grants of a private folder into opened ones; the first takes
// the descriptor.
func (o *Opened) settle(path string, fd int) {
	for i := range o.Grants {
		if g := &o.Grants[i]; g.State == Pending && g.Path == path {
			g.fd, g.State = fd, Granted
			return
		}
	}
	unix.Close(fd)
}

// makePrivate makes a folder below an XDG base folder and returns it opened with O_PATH.
// Every component from stockade's own folder down has to be a real folder of this user
// that nobody else can write: a link or a foreign folder on the way is an error, so that
// another user of the machine cannot lead the jail elsewhere.
func (o *Opened) makePrivate(path string) (int, error) {
	cut := strings.LastIndex(path, ownName)
	if cut <= 0 {
		return -1, errors.New("it does not lie in a folder of stockade")
	}
	base := path[:cut]
	fd, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		if err := o.makeBase(base); err != nil {
			return -1, err
		}
		fd, err = unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("opening %q: %w", base, err)
	}
	at := base
	for name := range strings.SplitSeq(path[cut+1:], "/") {
		at = filepath.Join(at, name)
		next, err := o.enterOwn(fd, name, at)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// makeBase makes missing folders of the XDG base itself, with the mode that the base
// directory specification asks for (0700). They stay after a failed start only when they
// were there before.
func (o *Opened) makeBase(base string) error {
	var missing []string
	for at := base; at != "/"; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		missing = append(missing, at)
	}
	for _, dir := range slices.Backward(missing) {
		err := unix.Mkdir(dir, 0o700)
		if err == nil {
			o.made = append(o.made, dir)
		} else if !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("making %q: %w", dir, err)
		}
	}
	return nil
}

// enterOwn opens one component, or makes it, and checks that it is ours alone.
func (o *Opened) enterOwn(dir int, name, path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Mkdirat(dir, name, 0o700)
		if err == nil {
			o.made = append(o.made, path)
		} else if !errors.Is(err, unix.EEXIST) {
			return -1, fmt.Errorf("making %q: %w", path, err)
		}
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("opening %q without following links: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("checking %q: %w", path, err)
	}
	if int(st.Uid) != unix.Geteuid() {
		unix.Close(fd)
		return -1, fmt.Errorf("%q belongs to user %d", path, st.Uid)
	}
	if st.Mode&0o777 != 0o700 {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("closing %q to other users: %w", path, err)
		}
	}
	return fd, nil
}

// discard removes what a failed start made: only folders that are empty, deepest first.
// It runs on a thread of its own, because the calling one may be in the jail already.
func (o *Opened) discard() {
	if len(o.made) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.removeMade()
	}()
	<-done
}

func (o *Opened) removeMade() {
	for _, dir := range slices.Backward(o.made) {
		// A folder that is not empty is somebody's: the error is the answer.
		_ = unix.Rmdir(dir)
	}
	o.made = nil
}

// RunName is the name of a temporary folder of one run: the PID namespace, the process,
// and the time since boot in clock ticks. The process started before that time, and
// execve(2) keeps both its number and its start time, so that a later start can tell the
// server from a process that got its number afterwards (see ended).
func RunName() (string, error) {
	ns, err := pidNamespace()
	if err != nil {
		return "", err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return "", fmt.Errorf("asking for the time since boot: %w", err)
	}
	ticks := now.Sec*ticksPerSecond + now.Nsec/(1e9/ticksPerSecond)
	return fmt.Sprintf("%d-%d-%d", ns, os.Getpid(), ticks), nil
}

// ticksPerSecond is USER_HZ, the unit of /proc/PID/stat; 100 on both architectures.
const ticksPerSecond = 100

func pidNamespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("asking for the PID namespace: %w", err)
	}
	return st.Ino, nil
}

// startTime reads field 22 of /proc/PID/stat. The command in field 2 may hold spaces and
// parentheses, so fields are counted after the last one. It reads by plain calls: this is
// on the way of every start, and the runtime's poller has no business here.
func startTime(pid int) (uint64, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	// The longest line there can be: 64 bytes of command and 51 numbers of 20 digits.
	var buf [2048]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return 0, err
	}
	_, rest, found := cutLast(string(buf[:n]), ")")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return 0, fmt.Errorf("reading the start time of process %d: unexpected form", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
