package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// task is the thread that made a call, by its number. A number can pass to another thread
// once its own has died, so nothing that was read by it counts before [listener.valid] has
// said that the call still waits.
type task struct{ id int }

// path is a file of the task in /proc.
func (t task) path(name string) string { return "/proc/" + strconv.Itoa(t.id) + "/" + name }

// read copies the task's memory from address on. All of it or an error: EFAULT as from the
// kernel, EPERM when the process cannot be inspected.
func (t task) read(address uint64, into []byte) unix.Errno {
	if len(into) == 0 {
		return 0
	}
	n, errno := t.gather([]unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, into)
	if errno == 0 && n < len(into) {
		return unix.EFAULT
	}
	return errno
}

// gather copies several places of the task's memory, up to the first that is not readable.
func (t task) gather(from []unix.RemoteIovec, into []byte) (int, unix.Errno) {
	if len(into) == 0 {
		return 0, 0
	}
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	n, err := unix.ProcessVMReadv(t.id, local, from, 0)
	return max(n, 0), errnoOf(err)
}

// openMemory opens the task's memory for writing. The descriptor stays with this memory,
// whatever becomes of the number.
func (t task) openMemory() (int, unix.Errno) {
	fd, err := unix.Open(t.path("mem"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	return fd, errnoOf(err)
}

// open returns a pidfd of the task.
//
// Threads may have descriptor tables of their own, so it is the thread's that counts. A
// pidfd of a first thread is that thread's; of others there are pidfds since Linux 6.9
// (PIDFD_THREAD). Before, their process has to do: with a table of its own a thread then
// gets its process's socket or EBADF, decided upon like any other.
func (t task) open() (int, unix.Errno) {
	fd, err := unix.PidfdOpen(t.id, 0)
	if err == nil {
		return fd, 0
	}
	if fd, err = unix.PidfdOpen(t.id, unix.PIDFD_THREAD); !errors.Is(err, unix.EINVAL) {
		return fd, errnoOf(err)
	}
	fd, err = unix.PidfdOpen(t.process(), 0)
	return fd, errnoOf(err)
}

// copies returns copies of descriptors of the task, in their order. It is all or none.
func (t task) copies(fds ...int) ([]int, unix.Errno) {
	pidfd, errno := t.open()
	if errno != 0 {
		return nil, unix.EPERM
	}
	defer unix.Close(pidfd)
	out := make([]int, 0, len(fds))
	for _, fd := range fds {
		duplicate, err := unix.PidfdGetfd(pidfd, fd, 0)
		if err != nil {
			closeAll(out)
			return nil, refusedCopy(err)
		}
		out = append(out, duplicate)
	}
	return out, 0
}

// refusedCopy is what the server gets when a descriptor cannot be copied: EBADF is about
// its own descriptor, ETOOMANYREFS says that there are no more for now.
func refusedCopy(err error) unix.Errno {
	switch {
	case errors.Is(err, unix.EBADF):
		return unix.EBADF
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return unix.ENOMEM
	}
	return unix.EPERM
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// process is the number of the task's process; 0 when it is gone.
func (t task) process() int {
	if fd, err := unix.PidfdOpen(t.id, 0); err == nil {
		unix.Close(fd) // only the first thread of a process has one without PIDFD_THREAD
		return t.id
	}
	status, err := t.status()
	if err != nil {
		return 0
	}
	return int(status.number("Tgid:", 10)) //nolint:gosec // process numbers are small
}

// program is the name of the file that the task executes; "" when it cannot be told.
func (t task) program() string {
	target, err := os.Readlink(t.path("exe"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// signal sends the thread a signal.
func (t task) signal(s unix.Signal) {
	// A process that is gone needs none.
	_ = unix.Tgkill(t.process(), t.id, s)
}

// signalsWaiting says what a task has to take.
type signalsWaiting struct {
	own    bool // a signal for this thread
	shared bool // a signal for its process that this thread does not block
	first  bool // it is the process's first thread
	alone  bool // it is the process's only thread
}

// signals reads what the task has to take.
func (t task) signals() (signalsWaiting, error) {
	status, err := t.status()
	if err != nil {
		return signalsWaiting{}, err
	}
	blocked := status.number("SigBlk:", 16)
	return signalsWaiting{
		own:    status.number("SigPnd:", 16)&^blocked != 0,
		shared: status.number("ShdPnd:", 16)&^blocked != 0,
		first:  status.number("Tgid:", 10) == uint64(t.id), //nolint:gosec // positive
		alone:  status.number("Threads:", 10) == 1,
	}, nil
}

// status is the text of /proc/TID/status (proc_pid_status(5)).
type status []byte

func (t task) status() (status, error) {
	fd, err := unix.Open(t.path("status"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// The kernel makes the whole text at the first read, so it shows one moment. A user in
	// many groups makes it long; what is looked for comes after them.
	text := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if err != nil {
			return nil, err
		}
		text = text[:len(text)+n]
		if n == 0 || bytes.Contains(text, []byte("\nThreads:")) && bytes.Contains(text, []byte("\nSigIgn:")) {
			return text, nil
		}
		text = slices.Grow(text, 4096)
	}
}

// number returns the number after a key at the start of a line; 0 without one. The process's
// name in the first line is the server's own, but holds no line end (it is escaped).
func (s status) number(key string, base int) uint64 {
	at := bytes.Index(s, []byte("\n"+key))
	if at < 0 {
		return 0
	}
	rest := s[at+1+len(key):]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	value, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), base, 64)
	if err != nil {
		return 0
	}
	return value
}

// errnoOf is the errno of an error of x/sys, 0 for nil.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EPERM
}

// bytesOf is the memory of a value without pointers.
func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}
