package sandbox

// #include "steps.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// Started is a server in its jail, with the descriptor on which its supervisor answers.
type Started struct {
	PID      int
	Listener int // seccomp_unotify(2); the caller closes it; -1 for a plan whose calls never wait
	Report   Report
}

// Parent is what the parent of a server can do, for [Start].
type Parent struct {
	// Reach says whether the parent can work on a process; nil is not asked.
	Reach func(pid int) error
	// Answer takes one call that waits on a listener and gives it its answer. A plan under
	// observation needs it.
	Answer func(listener int) error
}

// Start is [Enter] and [Exec] for a plan that needs a supervisor: the calling process stays
// as it is and becomes the server's parent. The caller has locked the goroutine to a thread
// that lives as long as the process, since the server ends with that thread
// (PR_SET_PDEATHSIG, prctl(2)).
//
// The child shares memory and descriptors with this process until it executes the server.
// So it is there before its own entries in /proc are granted, the filter's listener that
// it makes is this process's too, and nothing has to be handed over through a filter that
// stops the handing over. It runs no Go: steps.c carries out the list that [Enter] would.
//
// While the child waits, it is asked of the parent whether it will be able to do its work.
// Under observation the child's last steps wait for answers already: they are the parent's.
//
// On an error no child is left, and folders that were made are removed.
func Start(o *Opened, by Parent) (Started, error) {
	s, err := start(o, by)
	if err != nil {
		o.discard()
		return Started{}, err
	}
	return s, nil
}

// Discard removes what the jail leaves behind that is empty; it is called when the server
// has ended, by its parent, which is in no jail.
func (o *Opened) Discard() { o.removeMade() }

func start(o *Opened, by Parent) (Started, error) {
	if o.Plan.Observed() && by.Answer == nil {
		return Started{}, errors.New("starting the server: the plan is under observation, and nobody answers")
	}
	c, err := newChild()
	if err != nil {
		return Started{}, err
	}
	defer c.close()
	if by.Reach != nil {
		if err := by.Reach(c.pid); err != nil {
			return Started{}, errors.Join(err, c.leave())
		}
	}
	if err := o.seenBy(c.pid); err != nil {
		return Started{}, errors.Join(err, c.leave())
	}
	listener := seccomp.WithListener
	if !o.Plan.asks() {
		listener = seccomp.WithoutListener
	}
	p, err := o.prepare(newSession, listener)
	if err != nil {
		return Started{}, errors.Join(err, c.leave())
	}
	defer p.close()
	if o.Plan.Limits.OpenFiles == 0 {
		p.hostLimit()
	}
	return c.execute(o, p, by)
}

// hostLimit gives the server the soft limit of open files that the host set: the Go runtime
// raised it for this process.
func (p *prepared) hostLimit() {
	var l [2]C.uint64_t
	C.open_files_limit(&l[0])
	if l[1] == 0 {
		return // not known: the limit stays as it is
	}
	value := &unix.Rlimit{Cur: uint64(l[0]), Max: uint64(l[1])}
	p.do("putting back the limit of open files", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, at(&p.steps, value), 0)
}

// child is a process that waits for its steps.
type child struct {
	pid    int
	memory []byte // its stack, with the shared words at the low end
	shared *C.struct_child
}

// childStack is the size of a child's stack, in bytes; steps.c needs less than a page of it.
const childStack = 64 << 10

func newChild() (*child, error) {
	memory, err := unix.Mmap(-1, 0, childStack, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("making a stack for the server's process: %w", err)
	}
	c := &child{memory: memory, shared: (*C.struct_child)(unsafe.Pointer(&memory[0]))} //nolint:gosec // page-aligned
	top := unsafe.Add(unsafe.Pointer(&memory[0]), childStack)                          //nolint:gosec // the end of the mapping, 16-aligned
	pid := int(C.make_child(c.shared, top))
	if pid < 0 {
		_ = unix.Munmap(memory)
		return nil, fmt.Errorf("making the server's process: %w", unix.Errno(-pid))
	}
	c.pid = pid
	return c, nil
}

// leave ends a child that is still waiting.
func (c *child) leave() error {
	C.let_go(c.shared, 2)
	C.wait_alive(c.shared)
	return c.reap()
}

// reap takes the status of a child that has ended.
func (c *child) reap() error {
	for {
		_, err := unix.Wait4(c.pid, nil, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// close gives the memory back: nobody uses it any more when the child is not alive.
func (c *child) close() { _ = unix.Munmap(c.memory) }

// execute lets the child run its steps and execute the server.
func (c *child) execute(o *Opened, p *prepared, by Parent) (Started, error) {
	argv, err := syscall.SlicePtrFromStrings(o.Plan.Argv)
	if err != nil {
		return Started{}, errors.Join(fmt.Errorf("executing %q: an argument holds a NUL byte: %w", o.Plan.File, err), c.leave())
	}
	envp, err := syscall.SlicePtrFromStrings(o.Plan.Env)
	if err != nil {
		return Started{}, errors.Join(fmt.Errorf("executing %q: a variable holds a NUL byte: %w", o.Plan.File, err), c.leave())
	}
	file, err := unix.BytePtrFromString(o.Plan.File)
	if err != nil {
		return Started{}, errors.Join(fmt.Errorf("executing %q: %w", o.Plan.File, err), c.leave())
	}
	calls := p.calls()
	for _, list := range [][]*byte{argv, envp} {
		for _, word := range list {
			if word != nil {
				p.pin.Pin(word)
			}
		}
		p.pin.Pin(&list[0])
	}
	p.pin.Pin(file)
	p.pin.Pin(&calls[0])
	c.shared.steps, c.shared.n = &calls[0], C.int64_t(len(calls))
	c.shared.file = (*C.char)(unsafe.Pointer(file))
	c.shared.argv = (**C.char)(unsafe.Pointer(&argv[0]))
	c.shared.envp = (**C.char)(unsafe.Pointer(&envp[0]))
	c.shared.failed, c.shared.installs = -1, C.int64_t(p.installs)
	C.let_go(c.shared, 1)
	var failed error
	if o.Plan.Observed() {
		failed = c.answered(calls, p.installs, by.Answer)
	}
	C.wait_alive(c.shared)
	runtime.KeepAlive(p)
	started, err := c.outcome(o, p, calls)
	if failed != nil && err == nil {
		unix.Close(started.Listener)
		err = c.reap() // it was killed
	}
	return started, errors.Join(failed, err)
}

// outcome says what became of a child that no longer shares memory.
func (c *child) outcome(o *Opened, p *prepared, calls []C.struct_step) (Started, error) {
	listener := -1
	if o.Plan.asks() && p.installs < int(c.shared.failed) {
		listener = int(calls[p.installs].result)
	}
	fail := func(err error) (Started, error) {
		if listener >= 0 {
			unix.Close(listener)
		}
		return Started{}, errors.Join(err, c.reap())
	}
	if c.shared.failed < 0 {
		return fail(errors.New("starting the server: its process ended before it began"))
	}
	if err := p.failure(calls, int(c.shared.failed)); err != nil {
		return fail(err)
	}
	if errno := unix.Errno(-c.shared.errno_exec); errno != 0 {
		return fail(&ExecError{File: o.Plan.File, Errno: errno})
	}
	if listener < 0 && o.Plan.asks() {
		return fail(errors.New("starting the server: the kernel gave no listener"))
	}
	return Started{PID: c.pid, Listener: listener, Report: p.report}, nil
}

// seenBy opens the grants on this process's own entries in /proc as the entries of the
// server's process. A plan that was made for no process in particular says /proc/self.
func (o *Opened) seenBy(pid int) error {
	own := [...]string{"/proc/self/", "/proc/" + strconv.Itoa(os.Getpid()) + "/"}
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.Origin.Source != OriginAlways {
			continue
		}
		for _, prefix := range own {
			rest, found := strings.CutPrefix(g.Path, prefix)
			if !found {
				continue
			}
			if err := o.reopen(g, "/proc/"+strconv.Itoa(pid)+"/"+rest); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// reopen turns an opened grant into the same one on another path.
func (o *Opened) reopen(g *OpenedGrant, path string) error {
	if g.fd >= 0 {
		unix.Close(g.fd)
		g.fd = -1
	}
	moved := g.Grant
	moved.Path = path
	opened, err := openGrant(o.Plan, moved)
	if err != nil {
		if opened.fd >= 0 {
			unix.Close(opened.fd)
		}
		return err
	}
	*g = opened
	return nil
}
