package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ProbeError says that this kernel, or this process, lacks what a supervisor needs.
type ProbeError struct {
	Need  string // "pidfd_getfd(2) on a child"
	Have  string // what was found instead
	Since string // "Linux 5.6"; "" when no version promises it
	Err   error  // the kernel's answer; nil when there was none
}

// Error names the need and what is there.
func (e *ProbeError) Error() string {
	since := ""
	if e.Since != "" {
		since = " (" + e.Since + ")"
	}
	return fmt.Sprintf("supervising needs %s%s: %s", e.Need, since, e.Have)
}

// Unwrap returns the kernel's answer.
func (e *ProbeError) Unwrap() error { return e.Err }

// Probe asks for everything that a supervisor needs, and returns the first thing that is
// missing as a [*ProbeError]. It restricts nothing, and makes one short-lived child.
//
// Whether a supervisor answers for this process already, the kernel tells when a filter is
// installed, and not before; the filters of this module's own supervised jails do.
func Probe() error {
	if err := probeListener(); err != nil {
		return err
	}
	if err := ReachRoutes(); err != nil {
		return err
	}
	return probeChild()
}

// probeListener asks for the flags with a null pointer for a program. The kernel looks at
// the flags first (EINVAL), then reads the program (EFAULT); nothing can be installed.
func probeListener() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return &ProbeError{Need: "seccomp notifications", Since: "Linux 5.0", Have: "the kernel does not know them", Err: errno}
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	_, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
	switch errno {
	case unix.EFAULT:
		return nil
	case unix.EBUSY: // a process has one supervisor at most, and its filter says that it is there
		return &ProbeError{Need: "a process without one", Have: "an outer supervisor answers already, and there is one at most", Err: errno}
	case unix.EINVAL:
		return &ProbeError{
			Need: "notified calls that only a fatal signal interrupts", Since: "Linux 5.19",
			Have: "the kernel does not know SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", Err: errno,
		}
	}
	return &ProbeError{Need: "seccomp(2) with a listener", Since: "Linux 5.19", Have: notAllowed(errno), Err: errno}
}

// probeWord is what a child's memory is read for.
var probeWord = [...]byte{'s', 't', 'o', 'c', 'k', 'a', 'd', 'e'}

// probeChild tries on a child what a supervisor does to its server. The child is this
// process once more; making it is most of what probing costs, half a millisecond.
func probeChild() error {
	var ready [2]int
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("probing with a child: %w", err)
	}
	defer closeAll(ready[:1])
	pid, errno := fork(ready[1])
	unix.Close(ready[1])
	if errno != 0 {
		return fmt.Errorf("probing with a child: %w", errno)
	}
	defer end(pid)
	// A process that forbids inspection waits until its child allows it.
	if inspectable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || inspectable != 1 {
		if err := hear(ready[0]); err != nil {
			return fmt.Errorf("probing with a child: %w", err)
		}
	}
	return inspect(pid)
}

// end kills the child and takes its status while others go on. Only a wait for clones sees
// it, so nobody else's wait does.
func end(pid int) {
	_ = unix.Kill(pid, unix.SIGKILL) // not waited for, so the number is still its own
	go func() {
		for {
			if _, err := unix.Wait4(pid, nil, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
}

// hear waits for the child's word.
func hear(fd int) error {
	for word := make([]byte, 1); ; {
		n, err := unix.Read(fd, word)
		switch {
		case n == 1:
			return nil
		case err == nil:
			return errors.New("it ended early")
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// inspect does to a child what the supervisor does for each call.
func inspect(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return &ProbeError{Need: "pidfd_open(2)", Since: "Linux 5.3", Have: notAllowed(err), Err: err}
	}
	defer unix.Close(fd)
	copied, err := unix.PidfdGetfd(fd, 0, 0)
	switch {
	case err == nil:
		unix.Close(copied)
	case !errors.Is(err, unix.EBADF): // a child without that descriptor
		return &ProbeError{Need: "pidfd_getfd(2) on a child", Since: "Linux 5.6", Have: notAllowed(err), Err: err}
	}
	var found [len(probeWord)]byte
	at := uint64(uintptr(unsafe.Pointer(&probeWord[0])))
	if errno := (task{id: pid}).read(at, found[:]); errno != 0 || !bytes.Equal(found[:], probeWord[:]) {
		return &ProbeError{Need: "process_vm_readv(2) on a child", Since: "Linux 3.2", Have: notAllowed(errno), Err: errno}
	}
	memory, errno := task{id: pid}.openMemory()
	if errno != 0 {
		return &ProbeError{Need: "writing to /proc/PID/mem of a child", Have: notAllowed(errno), Err: errno}
	}
	return unix.Close(memory)
}

// inspectServer makes sure that a server's calls can be read at all: else each of them would
// be refused, for a reason that has nothing to do with what it asks for. A server that has
// ended already is none to complain about.
func inspectServer(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the server's process: %w", err)
	}
	defer unix.Close(fd)
	copied, err := unix.PidfdGetfd(fd, 0, 0)
	switch {
	case err == nil:
		unix.Close(copied)
	case errors.Is(err, unix.EPERM):
		return &ProbeError{
			Need: "a server that it can inspect", Err: err,
			Have: "its program file may be executed but not read, or it forbids inspection, or " + notAllowed(err),
		}
	case !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.ESRCH):
		return fmt.Errorf("copying a descriptor of the server: %w", err)
	}
	return nil
}

// yamaScope holds Yama's rule of ptrace access, where the kernel has Yama.
const yamaScope = "/proc/sys/kernel/yama/ptrace_scope"

// notAllowed explains why a child cannot be inspected.
func notAllowed(err error) string { return notAllowedBy(err, yamaScope) }

func notAllowedBy(err error, yama string) string {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return "the kernel does not know it, or an outer jail refuses it"
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return err.Error()
	}
	// Linux says with 2 that only CAP_SYS_PTRACE may, with 3 that nobody may (Yama,
	// Documentation/admin-guide/LSM/Yama.rst). With 1 a parent may.
	scope, failed := os.ReadFile(yama)
	if scope = bytes.TrimSpace(scope); failed == nil && len(scope) == 1 && scope[0] >= '2' {
		return "kernel.yama.ptrace_scope is " + string(scope) + ", which forbids inspecting one's own children"
	}
	return "an outer jail, such as a container's seccomp profile, forbids it"
}

// fork makes a child that says so on a descriptor and then waits for its end. It runs
// nothing but the system calls below: the rest of Go has only this one thread there.
//
//go:norace
//go:nosplit
func fork(ready int) (int, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	// The server is inspectable, whatever this process has made itself.
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(ready), uintptr(unsafe.Pointer(&probeWord[0])), 1)
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
