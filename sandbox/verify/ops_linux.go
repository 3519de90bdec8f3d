package verify

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// run tries the operation and returns the kernel's error, unwrapped enough for its errno.
func (op Op) run(c Check) error {
	if f, ok := operations()[op]; ok {
		return f(c)
	}
	return fmt.Errorf("unknown operation %q", op)
}

// operations is made when it is asked for: a table at package level would be filled at the
// start of every server.
func operations() map[Op]func(Check) error {
	return map[Op]func(Check) error{
		OpList: list, OpRead: read, OpWrite: write, OpMoveBetween: moveBetween,
		OpTruncate: func(c Check) error { return unix.Truncate(c.Path, 1<<20) },
		OpExec:     func(c Check) error { return execute(c.Path) }, OpExecCopy: executeCopy,
		OpMemfd: memfd, OpNoCapabilities: noCapabilities, OpNoNewPrivs: noNewPrivs,
		OpDescriptor: descriptor, OpEnvironment: environment, OpCoreLimit: coreLimit,
		OpUmask: umask, OpTerminal: terminal,
		OpPrlimit: prlimit, OpSetpriority: setpriority, OpPtrace: ptrace,
		OpSignal:     func(c Check) error { return unix.Kill(c.Num, 0) },
		OpSignalSelf: func(Check) error { return unix.Kill(os.Getpid(), 0) },
		OpUnshare:    func(Check) error { return unix.Unshare(unix.CLONE_NEWUTS | unix.CLONE_NEWUSER) },
		OpClone3:     func(Check) error { return raw(unix.SYS_CLONE3, 0, 0) },
		OpKeyring:    keyring, OpBPF: func(Check) error { return raw(unix.SYS_BPF, 0, 0) },
		OpTiocsti: tiocsti, OpDatagramPair: func(Check) error { return pair(unix.SOCK_DGRAM) },
		OpStreamPair: func(Check) error { return pair(unix.SOCK_STREAM) },
		OpIoUring:    func(Check) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0) },
		OpChmod:      chmod, OpChmodIgnored: chmodIgnored, OpFchmod: fchmod,
		OpNoAccess: noAccess, OpSetID: setID, OpAttribute: attribute, OpAttributeHere: attributeHere,
		OpSocket: socket, OpConnect: connect, OpListen: listen,
		OpListenAnywhere: listenAnywhere, OpBind: bind,
		OpConnectTo: connectTo, OpSendTo: sendTo, OpFastOpen: fastOpen, OpLookUp: lookUp,
		OpConnectUnix: connectUnix, OpAbstractUnix: abstractUnix, OpOwnUnix: ownUnix,
	}
}

func raw(nr, a, b uintptr) error {
	if _, _, errno := unix.Syscall(nr, a, b, 0); errno != 0 {
		return errno
	}
	return nil
}

func list(c Check) error {
	d, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); err != nil && err != io.EOF {
		return err
	}
	return nil
}

func read(c Check) error {
	f, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.Read(b[:]); err != nil && err != io.EOF {
		return err
	}
	return nil
}

func write(c Check) error {
	if err := os.WriteFile(c.Path, []byte("x"), 0o600); err != nil {
		return err
	}
	return os.Remove(c.Path)
}

// moveBetween renames a file from one new folder to another (LANDLOCK_ACCESS_FS_REFER).
func moveBetween(c Check) error {
	from, err := os.MkdirTemp(c.Path, "verify-from-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(from)
	to, err := os.MkdirTemp(c.Path, "verify-to-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(to)
	if err := os.WriteFile(filepath.Join(from, "f"), nil, 0o600); err != nil {
		return err
	}
	return os.Rename(filepath.Join(from, "f"), filepath.Join(to, "f"))
}

// execute starts a program that ends by itself: every program tried here ends at once when
// its standard streams are empty.
func execute(path string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(path, []string{filepath.Base(path), "--version"}, &os.ProcAttr{
		Env: []string{}, Files: []*os.File{null, null, null},
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

func executeCopy(c Check) error {
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	path := filepath.Join(c.Path, "verify-copy")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700) //nolint:gosec // a program, to see it not run
	if err != nil {
		return err
	}
	defer os.Remove(path)
	if _, err := f.Write(own); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return execute(path)
}

func memfd(Check) error {
	fd, err := unix.MemfdCreate("verify", 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func noCapabilities(Check) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&head, &caps[0]); err != nil {
		return err
	}
	for _, c := range caps {
		if held := c.Effective | c.Permitted | c.Inheritable; held != 0 {
			return fmt.Errorf("capabilities %#x", held)
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil && set != 0 {
			return fmt.Errorf("bounding capability %d", c)
		}
	}
	return nil
}

func noNewPrivs(Check) error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set != 1 {
		return fmt.Errorf("no_new_privs %d", set)
	}
	return err
}

func descriptor(c Check) error {
	_, err := unix.FcntlInt(uintptr(c.Num), unix.F_GETFD, 0)
	return err
}

// environment names what is there beyond the plan's variables, by name only.
func environment(c Check) error {
	var extra []string
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !slices.Contains(c.Names, name) {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		return fmt.Errorf("also there: %s", strings.Join(extra, " "))
	}
	return nil
}

func coreLimit(Check) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Cur > 1 || l.Max > 1 {
		return fmt.Errorf("RLIMIT_CORE %d to %d", l.Cur, l.Max)
	}
	return nil
}

func umask(Check) error {
	mask := unix.Umask(0o077)
	if mask != 0o077 {
		return fmt.Errorf("umask %#o", mask)
	}
	return nil
}

// terminal: without a controlling terminal /dev/tty is ENXIO; in the jail Landlock may
// refuse it earlier. TIOCGSID on the standard streams says the rest.
func terminal(Check) error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return fmt.Errorf("/dev/tty opens")
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetInt(fd, unix.TIOCGSID); err == nil {
			return fmt.Errorf("descriptor %d is the controlling terminal", fd)
		}
	}
	return nil
}

func prlimit(c Check) error {
	var old unix.Rlimit
	return unix.Prlimit(c.Num, unix.RLIMIT_NOFILE, nil, &old)
}

func setpriority(c Check) error { return unix.Setpriority(unix.PRIO_PROCESS, c.Num, 19) }

// ptrace asks to attach without stopping the target (PTRACE_SEIZE), and lets go at once.
func ptrace(c Check) error {
	err := raw2(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(c.Num))
	if err == nil {
		_ = raw2(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(c.Num))
	}
	return err
}

func raw2(nr, a, b uintptr) error {
	if _, _, errno := unix.Syscall6(nr, a, b, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func keyring(Check) error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	return err
}

// tiocsti sets bits above the low 32 of the request, which the kernel ignores and a
// careless filter compares.
func tiocsti(Check) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, 0); errno != 0 {
		return errno
	}
	return nil
}

func pair(kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return err
}
