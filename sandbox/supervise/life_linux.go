package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// forwarded are the signals that a host or a terminal may send to the server: all that can
// be caught and mean something to a program. SIGCHLD is the kernel's word to us, SIGURG is
// the Go runtime's, SIGPIPE belongs to our own writes.
var forwarded = [...]os.Signal{
	unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
	unix.SIGTSTP, unix.SIGCONT,
}

const (
	// leaveGrace is how long a server may take to leave by itself when its host is gone and
	// its standard input has ended, and again after SIGTERM.
	leaveGrace = 5 * time.Second
	// orphanGrace is how long what the server left behind may take to end on SIGTERM.
	orphanGrace = 500 * time.Millisecond
)

// Life is the life of one server's process tree.
type Life struct {
	signals chan os.Signal
	host    int // pidfd of the host; -1 when its end is not to be noticed
	// Patience is how long the server may take to end after a signal that asks it to, before
	// SIGKILL; 0: for ever, which is for its host to judge.
	Patience time.Duration
	// HostLeft, when it is not nil, is closed when the host expects nothing of the server any
	// more: one that stays is ended as if the host had gone.
	HostLeft <-chan struct{}

	dismissed chan struct{} // closed when a signal found no server any more
	once      sync.Once
}

// Dismissed is closed when this process is asked to end after its server has ended.
func (l *Life) Dismissed() <-chan struct{} { return l.dismissed }

// Begin prepares this process to be a server's parent: it catches the signals to forward,
// takes in orphans (PR_SET_CHILD_SUBREAPER, prctl(2)), which also keeps every descendant
// below it for the Yama rule of ptrace access, and notes its host.
func Begin() (*Life, error) {
	l := &Life{signals: make(chan os.Signal, 64), host: -1, dismissed: make(chan struct{})}
	signal.Notify(l.signals, forwarded[:]...)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	return l, l.watchHost()
}

// watchHost notes the parent when it is a host: something that speaks to the server over a
// pipe or a socket. A server whose input is a file or a terminal may outlive the shell that
// started it.
func (l *Life) watchHost() error {
	var st unix.Stat_t
	if err := unix.Fstat(0, &st); err != nil {
		return fmt.Errorf("looking at standard input: %w", err)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
		return nil
	}
	parent := unix.Getppid()
	fd, err := unix.PidfdOpen(parent, 0)
	switch {
	case parent <= 1, errors.Is(err, unix.ESRCH):
		return nil // gone already, or in another namespace: standard input says it
	case err != nil:
		return fmt.Errorf("watching the host: %w", err)
	case unix.Getppid() != parent:
		return unix.Close(fd)
	}
	l.host = fd
	return nil
}

// Reach tells whether a supervisor can work on a child of this process, which shares its
// memory still. Errors are *[ProbeError] values.
func Reach(pid int) error {
	if err := probeListener(); err != nil {
		return err
	}
	return inspect(pid)
}

// Withdraw is called once the server runs, before its first call is answered. It points this
// process's standard input and output away: else the host would not see that the server
// closed them. It closes this process to inspection by others of the same user
// (PR_SET_DUMPABLE, prctl(2)). And it gives up root's powers on every thread: what is done
// for the server must not reach what the server could not, as a socket file of somebody
// else's.
func Withdraw() error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("letting go of the standard streams: %w", err)
	}
	defer unix.Close(null)
	for fd := range 2 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("letting go of the standard streams: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the supervisor to inspection: %w", err)
	}
	return nil
}

// dropCapabilities empties the effective, permitted and inheritable sets of all threads.
// Threads made later have what the one that makes them has (capabilities(7)).
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held, none [2]unix.CapUserData
	if err := unix.Capget(&head, &held[0]); err != nil {
		return fmt.Errorf("reading the supervisor's capabilities: %w", err)
	}
	if held == none {
		return nil // threads of one process that nobody changed have the same
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0) //nolint:gosec // both live through the call
	runtime.KeepAlive(&head)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return fmt.Errorf("dropping the supervisor's capabilities: %w", errno)
	}
	return nil
}

// Wait forwards signals to the server until it ends, ends everything that it left behind,
// and returns how it ended. The calling thread waits itself: nobody has to wake it up.
func (l *Life) Wait(server int) (unix.WaitStatus, error) {
	w := &watch{server: server}
	go l.tend(w)
	status, err := w.reap()
	if err != nil {
		return 0, fmt.Errorf("waiting for the server: %w", err)
	}
	return status, endOrphans()
}

// watch is a server that has not been waited for yet. Its number is its own until then, so
// signals are sent under the lock.
type watch struct {
	server int
	mu     sync.Mutex
	ended  bool
}

// reap takes the status of every child that ends, orphans too, until the server's.
func (w *watch) reap() (unix.WaitStatus, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		}
		pid := endedChild(&info)
		if pid == w.server {
			w.mu.Lock()
			w.ended = true
			w.mu.Unlock()
		}
		// It has ended, so this does not wait.
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return 0, err
		}
		if pid == w.server {
			return status, nil
		}
	}
}

// endedChild reads si_pid, the first field of the part for SIGCHLD (sigaction(2)): a 32-bit
// number at the beginning of the union, which is aligned to 8 bytes.
func endedChild(info *unix.Siginfo) int {
	const union = 16
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), union))) //nolint:gosec // the structure has 128 bytes
}

// send signals the server, unless it has been waited for.
func (w *watch) send(s unix.Signal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return unix.ESRCH
	}
	return unix.Kill(w.server, s)
}

// tend hands signals on, and ends a server that stays when its host has gone.
func (l *Life) tend(w *watch) {
	hostGone, hostLeft := l.hostGone(), l.HostLeft
	var grace <-chan time.Time
	next := unix.SIGTERM
	for {
		select {
		case s := <-l.signals:
			if w.forward(s) == unix.ESRCH { //nolint:errorlint // as kill(2) gives it
				l.once.Do(func() { close(l.dismissed) })
			}
			if l.Patience > 0 && (s == unix.SIGTERM || s == unix.SIGINT || s == unix.SIGHUP) && next == unix.SIGTERM {
				next, grace = unix.SIGKILL, time.After(l.Patience)
			}
		case <-hostGone:
			hostGone = nil
			grace = time.After(leaveGrace)
		case <-hostLeft:
			hostLeft = nil
			if grace == nil && next == unix.SIGTERM {
				grace = time.After(leaveGrace)
			}
		case <-grace:
			grace = nil
			if w.send(next) == nil && next == unix.SIGTERM {
				next, grace = unix.SIGKILL, time.After(leaveGrace)
			}
		}
	}
}

// hostGone is closed when the host has ended.
func (l *Life) hostGone() <-chan struct{} {
	if l.host < 0 {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			// A pidfd is readable when its process has ended (pidfd_open(2)).
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(l.host), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return gone
}

// forward hands a signal on. A stop from the terminal stops the server and then this
// process, as it would have stopped the server alone.
func (w *watch) forward(s os.Signal) error {
	number, ok := s.(unix.Signal)
	if !ok {
		return nil
	}
	if number != unix.SIGTSTP {
		return w.send(number)
	}
	_ = w.send(unix.SIGSTOP)
	return unix.Kill(os.Getpid(), unix.SIGSTOP)
}

// endOrphans ends what is left of the tree. Children of what is killed become ours, so
// asking again finds them; it is over when the kernel knows no child any more.
func endOrphans() error {
	deadline := time.Now().Add(orphanGrace)
	asked := map[int]bool{} // to end, by SIGTERM
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return nil
		case errors.Is(err, unix.EINTR) || pid > 0:
			continue
		case err != nil:
			return fmt.Errorf("ending what the server left behind: %w", err)
		}
		children, err := childrenOf(os.Getpid())
		if err != nil {
			return fmt.Errorf("ending what the server left behind: %w", err)
		}
		for _, child := range children {
			how := unix.SIGTERM
			if asked[child] {
				how = 0 // nothing: is it still there
			}
			asked[child] = true
			if time.Now().After(deadline) {
				how = unix.SIGKILL
			}
			if err := unix.Kill(child, how); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("ending process %d that the server left behind: %w", child, err)
			}
		}
		time.Sleep(orphanPoll)
	}
}

// orphanPoll is the pause between two looks at what is left.
const orphanPoll = 5 * time.Millisecond

// childrenOf lists the processes whose parent is pid, from field 4 of /proc/PID/stat. The
// command in field 2 may hold anything, so fields are counted from its last parenthesis.
func childrenOf(pid int) ([]int, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		number, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		after := string(data[strings.LastIndexByte(string(data), ')')+1:])
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			out = append(out, number)
		}
	}
	return out, nil
}
