package supervise

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// connectUnix connects a Unix socket to a socket file of the plan.
func (s *supervisor) connectUnix(c *call, raw []byte) outcome {
	if named, ok := family(raw); ok && named == unix.AF_UNSPEC && c.socket.kind == unix.SOCK_DGRAM {
		return result(c.socket.connect(unspecified()))
	}
	name, errno := parseUnix(raw)
	if errno != 0 {
		return result(errno)
	}
	return s.reach(c, name, func(address []byte) outcome { return s.connectFile(c, address) })
}

// queueWait is how long a goroutine stands in a connect to a socket file whose queue is
// full, until somebody looks whether the caller has a signal to take.
const queueWait = lookInterval

// connectFile connects to a socket file. Only a full queue makes that wait, and only a
// stream or a sequence of packets has one.
func (s *supervisor) connectFile(c *call, address []byte) outcome {
	if c.socket.kind == unix.SOCK_DGRAM || !c.socket.blocks(0) {
		return result(c.socket.connect(address))
	}
	limit := c.socket.limit()
	stop := func(why stopped) answer {
		if why == stoppedByLimit {
			return answer{errno: unix.EAGAIN}
		}
		return interruption(why, limit)
	}
	var try func() outcome
	tried := func(errno unix.Errno) outcome {
		if errno != unix.EAGAIN && errno != unix.EINTR {
			return result(errno)
		}
		return parked(wake{after: time.Nanosecond, limit: limit}, stop, try)
	}
	// The socket does not tell when the queue has room: waiting is done in the call.
	try = func() outcome {
		var errno unix.Errno
		return elsewhere(
			func() { errno = c.socket.connectWithin(address, queueWait) },
			func() outcome { return tried(errno) })
	}
	if s.slow() {
		return try()
	}
	return tried(s.connectNear(c.socket, address))
}

// sendUnix sends a datagram to a socket file of the plan.
func (s *supervisor) sendUnix(c *call, m *message) outcome {
	name, errno := parseUnix(m.name)
	if errno != 0 {
		return result(errno)
	}
	return s.reach(c, name, func(address []byte) outcome {
		return s.sendContent(c, m, func(content, control []byte) outcome {
			return s.sent(c, m, address, content, control)
		})
	})
}

// reach resolves a socket file and goes on with an address that leads to that very file,
// whatever its path has become. Names that the kernel does not have in memory may take time,
// on a network file system for ever, so they are looked up elsewhere.
func (s *supervisor) reach(c *call, name unixName, onward func(address []byte) outcome) outcome {
	if name.abstract {
		return refused("unix", "unix "+name.String(), egress.Decision{
			Rule: "abstract names have no file, so nothing tells whose they are",
		})
	}
	errno := s.aim(c, name.path, resolveCached)
	if errno != unix.EAGAIN {
		return s.reached(c, name, errno, onward)
	}
	return elsewhere(
		func() { errno = s.aim(c, name.path, 0) },
		func() outcome { return s.reached(c, name, errno, onward) })
}

// resolveCached is RESOLVE_CACHED (linux/openat2.h, Linux 5.12): EAGAIN instead of waiting
// for a file system.
const resolveCached = 0x20

// aim opens a socket file and leaves it with the call.
func (s *supervisor) aim(c *call, path string, resolve uint64) unix.Errno {
	fd, errno := s.resolve(c.task, path, resolve)
	if errno != 0 {
		return errno
	}
	if c.target >= 0 {
		unix.Close(c.target)
	}
	c.target = fd
	return 0
}

// reached decides on a resolved file.
func (s *supervisor) reached(c *call, name unixName, errno unix.Errno, onward func([]byte) outcome) outcome {
	if !s.listener.valid(c.id) {
		return gone()
	}
	switch {
	case errno == unix.ELOOP, errno == unix.EXDEV:
		return refused("unix", "unix "+name.String(), egress.Decision{
			Rule: "the path leads through a link of /proc, or through too many links",
		})
	case errno != 0:
		return result(errno)
	}
	address := unixAddress("/proc/self/fd/" + strconv.Itoa(c.target))
	real, isSocket, errno := realPath(c.target)
	switch {
	case errno != 0:
		return result(errno)
	case !isSocket:
		return onward(address) // leads nowhere; the kernel says so, or that it may not be written
	case !s.Unix.holds(real):
		return refused("unix", "unix "+real, egress.Decision{
			Rule: "no entry of network.unix names it", Hint: "add " + strconv.Quote(real) + " to network.unix",
		})
	}
	return onward(address)
}

// realPath returns the path of an opened file, and whether it is a socket, which a file
// stays or never becomes.
func realPath(fd int) (path string, isSocket bool, errno unix.Errno) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", false, errnoOf(err)
	}
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buffer)
	if err != nil {
		return "", false, errnoOf(err)
	}
	return string(buffer[:n]), st.Mode&unix.S_IFMT == unix.S_IFSOCK, 0
}

// holds tells whether a socket file is granted, by its real path. The path of a file that
// is gone ends in " (deleted)" and stays below its folder; one out of this process's reach
// does not begin with a slash.
func (u Unix) holds(real string) bool {
	return slices.Contains(u.Sockets, real) || u.own(real)
}

// own tells whether a path lies in one of the jail's own folders.
func (u Unix) own(real string) bool {
	return slices.ContainsFunc(u.Own, func(folder string) bool {
		rest, below := strings.CutPrefix(real, folder)
		return below && folder != "" && len(rest) > 1 && rest[0] == filepath.Separator
	})
}

// identity tells a folder from others.
type identity struct {
	major, minor uint32
	inode        uint64
	mount        uint64
}

// identify needs the number of the mount too (STATX_MNT_ID, Linux 5.8): one folder can be
// mounted twice.
func identify(dir int, path string) (identity, error) {
	var st unix.Statx_t
	flags := unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC
	if err := unix.Statx(dir, path, flags, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return identity{}, err
	}
	return identity{major: st.Dev_major, minor: st.Dev_minor, inode: st.Ino, mount: st.Mnt_id}, nil
}

// resolve opens the file that a path names for the task, as a path only. Links of /proc
// (/proc/self/root and the like) are not followed: they would be this process's.
//
// An absolute path begins at the task's root. A relative one begins at its working folder,
// and a link in it may be absolute, which then means this process's root; so it is only
// resolved for a task that has the same.
func (s *supervisor) resolve(t task, path string, resolve uint64) (int, unix.Errno) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS | resolve}
	root, err := unix.Open(t.path("root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(root)
	theirs, err := identify(root, "")
	if err != nil {
		return -1, unix.EACCES
	}
	from := root
	switch {
	case strings.HasPrefix(path, "/"):
		if theirs != s.root {
			how.Resolve |= unix.RESOLVE_IN_ROOT
		}
	case theirs != s.root:
		return -1, unix.EACCES
	default:
		if from, err = unix.Open(t.path("cwd"), unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return -1, unix.EACCES
		}
		defer unix.Close(from)
	}
	for {
		fd, err := unix.Openat2(from, path, &how)
		errno := errnoOf(err)
		// Below another root, a rename elsewhere can make the kernel unsure (openat2(2)).
		again := errno == unix.EAGAIN && resolve&resolveCached == 0
		if errno == unix.EINTR || again {
			continue
		}
		return fd, errno
	}
}
