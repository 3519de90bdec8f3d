package seccomp_test

import (
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// operations are what victims do. Preparation happens before the jail.
var operations = map[string]operation{
	"every refusal":  everyRefusal,
	"raw":            callRaw,
	"clone":          cloneChild,
	"child inherits": childInherits,
	"on a child":     onChild,
	"on a pipe":      onPipe,
	"on a terminal":  onTerminal,
	"memory file":    memoryFile,
	"execute memory": executeMemory,
	"i386":           callI386,
	"notify":         notifyThenCall,
	"own filter":     ownFilter,
	"on a file":      onFile,
	"open":           openFile,
	"open2":          openFile2,
	"watch":          watchFolder,
}

// number reads a number in any base, as register contents.
func number(s *jailtest.Stage, text string) uintptr {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		s.Failf("reading a number: %v", err)
	}
	return uintptr(n)
}

func rawArgs(s *jailtest.Stage, args []string) []uintptr {
	numbers := make([]uintptr, len(args))
	for i, arg := range args {
		numbers[i] = number(s, arg)
	}
	return numbers
}

// callRaw makes the call args[0] with the register contents that follow.
func callRaw(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	n := rawArgs(s, args)
	return func() jailtest.Outcome { return do(n[0], n[1:]...) }
}

// cloneChild clones with the given flags, as fork does, and takes the child's exit status.
func cloneChild(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	flags := number(s, args[0])
	return func() jailtest.Outcome {
		pid, errno := fork(flags|uintptr(unix.SIGCHLD), exitsSeven)
		if errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		return jailtest.Outcome{Value: waitFor(s, pid)}
	}
}

// What a copy of this process does. It has one thread, and a Go runtime that must not be
// entered again: it makes raw calls only.
type copied uint8

const (
	exitsSeven    copied = iota // exits with status 7
	exitsByChroot               // tries chroot and exits with the errno
	stays                       // waits, and dies with the thread that made it
)

// fork copies this process. Neither stack growth, nor the race detector, nor a signal of the
// runtime may be met in the copy, so it is one function that calls nothing of Go's.
//
//go:norace
//go:nosplit
//go:noinline
func fork(flags uintptr, does copied) (int, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	status := uintptr(7)
	switch does {
	case exitsSeven:
	case exitsByChroot:
		_, _, refused := unix.RawSyscall(unix.SYS_CHROOT, bad, 0, 0)
		status = uintptr(refused)
	case stays:
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, status, 0, 0)
	}
}

func waitFor(s *jailtest.Stage, pid int) int64 {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		s.Failf("waiting for a child: %v", err)
	}
	if status.Signaled() {
		return -int64(status.Signal())
	}
	return int64(status.ExitStatus())
}

// childInherits makes a child that tries chroot, and returns the child's errno.
func childInherits(s *jailtest.Stage, _ []string) func() jailtest.Outcome {
	return func() jailtest.Outcome {
		pid, errno := fork(uintptr(unix.SIGCHLD), exitsByChroot)
		if errno != 0 {
			return jailtest.Outcome{Errno: errno}
		}
		return jailtest.Outcome{Errno: unix.Errno(waitFor(s, pid))} //nolint:gosec // an exit status
	}
}

// onChild makes a call on another process of the same user: "PID" among the arguments is
// its number. With "SELF" in its place the number is 0.
func onChild(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	child, errno := fork(uintptr(unix.SIGCHLD), stays)
	if errno != 0 {
		s.Failf("making a child: %v", errno)
	}
	buffer := make([]byte, 256)
	values := make([]uintptr, len(args))
	for i, arg := range args {
		switch arg {
		case "PID":
			values[i] = uintptr(child)
		case "SELF":
			values[i] = 0
		case "BUFFER":
			values[i] = uintptr(unsafe.Pointer(&buffer[0]))
		default:
			values[i] = number(s, arg)
		}
	}
	return func() jailtest.Outcome {
		result := do(values[0], values[1:]...)
		if err := unix.Kill(child, unix.SIGKILL); err != nil {
			s.Failf("ending the child: %v", err)
		}
		if got := waitFor(s, child); got != -int64(unix.SIGKILL) {
			s.Failf("the child ended with %d", got)
		}
		buffer[0]++ // alive until here
		return result
	}
}

// onPipe makes an ioctl on a pipe, whose own answer to terminal requests is ENOTTY.
func onPipe(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		s.Failf("making a pipe: %v", err)
	}
	request := number(s, args[0])
	argument := new([64]byte)
	return func() jailtest.Outcome {
		return do(unix.SYS_IOCTL, uintptr(pipe[0]), request, uintptr(unsafe.Pointer(argument)))
	}
}

// onTerminal makes an ioctl on a new pseudo terminal, with a byte as its argument.
func onTerminal(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.Failf("opening a terminal: %v", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		s.Failf("unlocking the terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		s.Failf("numbering the terminal: %v", err)
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.Failf("opening the terminal's other end: %v", err)
	}
	request := number(s, args[0])
	argument := new([64]byte)
	return func() jailtest.Outcome {
		return do(unix.SYS_IOCTL, uintptr(slave), request, uintptr(unsafe.Pointer(argument)))
	}
}

// memoryFile makes a memory file with the given flags.
func memoryFile(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	flags := number(s, args[0])
	name, err := unix.BytePtrFromString("victim")
	if err != nil {
		s.Failf("making a name: %v", err)
	}
	return func() jailtest.Outcome {
		return do(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(name)), flags)
	}
}

// executeMemory makes a memory file as far as the filter lets it, and tries to execute it.
// The file holds no program, so the kernel's own answer is ENOEXEC.
func executeMemory(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	flags := int(number(s, args[0]))
	return func() jailtest.Outcome {
		fd, err := unix.MemfdCreate("victim", flags)
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		if _, err := unix.Write(fd, []byte("no program")); err != nil {
			s.Failf("writing the memory file: %v", err)
		}
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		note := "fchmod: " + fmt.Sprint(unix.Fchmod(fd, 0o700))
		outcome := jailtest.OutcomeOf(s, unix.Exec(path, []string{path}, nil))
		outcome.Note = note
		return outcome
	}
}

// watchFolder adds an inotify watch.
func watchFolder(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	return func() jailtest.Outcome {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			s.Failf("making an inotify descriptor: %v", err)
		}
		_, err = unix.InotifyAddWatch(fd, args[0], unix.IN_CREATE)
		return jailtest.OutcomeOf(s, err)
	}
}

// notifyThenCall puts a filter of the victim's own on top, which hands the call to a
// supervisor of the victim's making, and then makes the call. The stricter answer counts.
func notifyThenCall(_ *jailtest.Stage, args []string) func() jailtest.Outcome {
	return func() jailtest.Outcome {
		nr, err := strconv.ParseUint(args[0], 0, 32)
		if err != nil {
			return jailtest.Outcome{Errno: unix.EINVAL}
		}
		own := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(nr)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(own)), Filter: &own[0]}
		listener := do(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
			uintptr(unsafe.Pointer(&program)))
		if listener.Errno != 0 {
			listener.Note = "installing a filter of its own"
			return listener
		}
		return do(uintptr(nr), bad)
	}
}

// ownFilter puts a filter of the victim's own on top, which allows everything: "listener" to
// ask for one with it.
func ownFilter(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	flags := map[string]uintptr{"listener": unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, "no listener": 0}
	flag, known := flags[args[0]]
	if !known {
		s.Failf("there is no way %q", args[0])
	}
	own := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	program := &unix.SockFprog{Len: uint16(len(own)), Filter: &own[0]}
	return func() jailtest.Outcome {
		return do(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flag, uintptr(unsafe.Pointer(program)))
	}
}
