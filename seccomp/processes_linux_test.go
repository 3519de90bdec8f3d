package seccomp_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// kernelCase is one operation in a jail, with a twin that the same jail allows.
type kernelCase struct {
	name      string
	policy    seccomp.Policy
	operation string
	args      []string
	inJail    func(*testing.T, jailtest.Result)
	free      func(*testing.T, jailtest.Result) // outside; nil: it works
	// twin are the arguments of the same operation that the jail allows; nil when the whole
	// operation is refused and opened says how.
	twin   []string
	twinIs func(*testing.T, jailtest.Result) // nil: it works
	// opened is a policy under which the operation gives what it gives outside.
	opened *seccomp.Policy
}

func (c kernelCase) run(t *testing.T, user jailtest.User) {
	free := c.free
	if free == nil {
		free = works
	}
	twinIs := c.twinIs
	if twinIs == nil {
		twinIs = works
	}
	policy := inside(t, c.policy)
	c.inJail(t, operate(t, user, policy, c.operation, c.args...))
	free(t, operate(t, user, outside, c.operation, c.args...))
	if c.twin == nil && c.opened == nil {
		t.Fatal("the case has no allowed twin")
	}
	if c.twin != nil {
		twinIs(t, operate(t, user, policy, c.operation, c.twin...))
	}
	if c.opened != nil {
		free(t, operate(t, user, inside(t, *c.opened), c.operation, c.args...))
	}
}

func runKernelCases(t *testing.T, cases []kernelCase) {
	t.Helper()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, user) })
		}
	})
}

func opens(names ...string) *seccomp.Policy { return &seccomp.Policy{Allow: names} }

func hex(n uint64) string { return fmt.Sprintf("%#x", n) }

// nr is a call's number as an argument of an operation.
func nr(t testing.TB, name string) string {
	t.Helper()
	number, exists := numbers(t, runtime.GOARCH)[name]
	if !exists {
		t.Fatalf("there is no call %q here", name)
	}
	return fmt.Sprint(number)
}

func TestKernelProcesses(t *testing.T) {
	const self = "SELF"
	cases := []kernelCase{
		{
			// The kernel refuses these pairs of flags by itself, with another errno, so no
			// namespace has to be made to see that it was asked.
			name: "clone with a user namespace", operation: "clone", args: []string{hex(unix.CLONE_NEWUSER | unix.CLONE_FS)},
			inJail: refused(unix.EPERM), free: refused(unix.EINVAL), twin: []string{"0"},
			twinIs: func(t *testing.T, r jailtest.Result) { t.Helper(); jailtest.WantValue(t, r, 7) },
		},
		{
			name: "clone with a mount namespace", operation: "clone", args: []string{hex(unix.CLONE_NEWNS | unix.CLONE_FS)},
			inJail: refused(unix.EPERM), free: refused(unix.EINVAL), twin: []string{hex(unix.CLONE_FS)},
		},
		{
			name: "personality", operation: "raw", args: []string{nr(t, "personality"), "0x40000"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "personality"), "0xffffffff"}, opened: opens("personality"),
		},
		{
			name: "limits of another process", operation: "on a child", args: []string{nr(t, "prlimit64"), "PID", "7", "0", "BUFFER"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "prlimit64"), self, "7", "0", "BUFFER"}, opened: opens("prlimit64"),
		},
		{
			name: "limits of another process with high bits", operation: "raw", args: []string{nr(t, "prlimit64"), hex(1<<32 | noProcess), "7", "0", "0"},
			inJail: refused(unix.EPERM), free: refused(unix.ESRCH),
			twin: []string{nr(t, "prlimit64"), hex(1 << 32), "7", "0", "0"}, opened: opens("prlimit64"),
		},
		{
			name: "priority of another process", operation: "on a child", args: []string{nr(t, "setpriority"), "0", "PID", "5"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "setpriority"), "0", self, "5"}, opened: opens("setpriority"),
		},
		{
			name: "priority of a group", operation: "on a child", args: []string{nr(t, "setpriority"), "1", self, "5"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "setpriority"), "0", self, "5"}, opened: opens("setpriority"),
		},
		{
			name: "disk priority of another process", operation: "on a child", args: []string{nr(t, "ioprio_set"), "1", "PID", hex(2<<13 | 7)},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "ioprio_set"), "1", self, hex(2<<13 | 7)}, opened: opens("ioprio_set"),
		},
		{
			name: "processors of another process", operation: "on a child", args: []string{nr(t, "sched_setaffinity"), "PID", "8", "BUFFER"},
			inJail: refused(unix.EPERM), free: refused(unix.EINVAL), // the buffer names no processor
			twin: []string{nr(t, "sched_setaffinity"), self, "8", "BUFFER"}, twinIs: refused(unix.EINVAL), opened: opens("sched_setaffinity"),
		},
		{
			name: "scheduler of another process", operation: "on a child", args: []string{nr(t, "sched_setscheduler"), "PID", "0", "BUFFER"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "sched_setscheduler"), self, "0", "BUFFER"}, opened: opens("sched_setscheduler"),
		},
		{
			name: "scheduling parameter of another process", operation: "on a child", args: []string{nr(t, "sched_setparam"), "PID", "BUFFER"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "sched_setparam"), self, "BUFFER"}, opened: opens("sched_setparam"),
		},
		{
			name: "scheduling attributes of another process", operation: "on a child", args: []string{nr(t, "sched_setattr"), "PID", "BUFFER", "0"},
			inJail: refused(unix.EPERM), twin: []string{nr(t, "sched_setattr"), self, "BUFFER", "0"}, opened: opens("sched_setattr"),
		},
		{
			name: "tracing another process", operation: "on a child", args: []string{nr(t, "ptrace"), "0x4206", "PID", "0", "0"},
			inJail: refused(unix.EPERM), opened: opens("ptrace"),
		},
		{
			name: "comparing processes", operation: "on a child", args: []string{nr(t, "kcmp"), "PID", "PID", "1", "0", "0"},
			inJail: refused(unix.EPERM), opened: opens("kcmp"),
		},
	}
	runKernelCases(t, cases)
}

func TestKernelTerminal(t *testing.T) {
	enotty := refused(unix.ENOTTY)
	var cases []kernelCase
	for name, request := range map[string]uint64{"TIOCSTI": unix.TIOCSTI, "TIOCLINUX": unix.TIOCLINUX, "TIOCSETD": unix.TIOCSETD} {
		for suffix, bits := range map[string]uint64{"": 0, " with a high bit": 1 << 32, " with all high bits": 0xffffffff << 32} {
			cases = append(cases, kernelCase{
				name: name + suffix, operation: "on a pipe", args: []string{hex(bits | request)},
				inJail: refused(unix.EPERM), free: enotty, twin: []string{hex(bits | unix.TCGETS)}, twinIs: enotty, opened: opens("ioctl"),
			})
		}
	}
	cases = append(cases, kernelCase{
		name: "line discipline of a terminal", operation: "on a terminal", args: []string{hex(unix.TIOCSETD)},
		inJail: refused(unix.EPERM), twin: []string{hex(unix.TCGETS)}, opened: opens("ioctl"),
	})
	runKernelCases(t, cases)
}

func TestKernelMemoryFiles(t *testing.T) {
	const plain, sealed, executable = "0x1", "0x9", "0x11"
	jailtest.Need(t, jailtest.Probe{Name: "MFD_NOEXEC_SEAL", Since: "6.3", Check: func() error {
		fd, err := unix.MemfdCreate("probe", unix.MFD_NOEXEC_SEAL|unix.MFD_CLOEXEC)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}})
	cases := []kernelCase{
		{
			name: "plain", operation: "memory file", args: []string{plain},
			inJail: refused(unix.ENOSYS), twin: []string{sealed}, opened: opens("memfd_create"),
		},
		{
			name: "executable", operation: "memory file", args: []string{executable},
			inJail: refused(unix.ENOSYS), twin: []string{sealed}, opened: opens("memfd_create"),
		},
		{
			// Outside, the kernel looks at the file's content, and finds no program.
			name: "execution", operation: "execute memory", args: []string{plain},
			inJail: refused(unix.ENOSYS), free: refused(unix.ENOEXEC),
			twin: []string{sealed}, twinIs: refused(unix.EACCES), opened: opens("memfd_create"),
		},
		{
			name: "execution by descriptor", operation: "on a child",
			args:   []string{nr(t, "execveat"), hex(noDescriptor), "BUFFER", "0", "0", hex(unix.AT_EMPTY_PATH)},
			inJail: refused(unix.EPERM), free: refused(unix.EBADF),
			twin: []string{nr(t, "execveat"), hex(noDescriptor), "BUFFER", "0", "0", "0"}, twinIs: refused(unix.ENOENT), opened: opens("execveat"),
		},
	}
	runKernelCases(t, cases)
}

func TestKernelWatches(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		dir := jailtest.Dir(t, user)
		c := kernelCase{operation: "watch", args: []string{dir}, inJail: refused(unix.EACCES), opened: opens("inotify_add_watch")}
		c.run(t, user)
	})
}

func TestKernelForeignABIs(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // the other architecture's foreign calls cannot be made from Go code
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jail := inside(t, seccomp.Policy{})
		t.Run("x32", func(t *testing.T) {
			ends(t, operate(t, user, jail, "raw", hex(0x40000000|unix.SYS_GETPID)))
			works(t, operate(t, user, jail, "raw", hex(unix.SYS_GETPID)))
			// Outside, kernels without that ABI say that there is no such call.
			free := operate(t, user, outside, "raw", hex(0x40000000|unix.SYS_GETPID))
			if free.Outcome.Errno != 0 {
				refused(unix.ENOSYS)(t, free)
			}
		})
		t.Run("i386", func(t *testing.T) {
			free := operate(t, user, outside, "i386")
			jailtest.Need(t, jailtest.Probe{Name: "calls of i386 (CONFIG_IA32_EMULATION)", Check: func() error {
				if free.Signal == unix.SIGSEGV || free.Status == 2 {
					return fmt.Errorf("the kernel does not know them")
				}
				return nil
			}})
			works(t, free)
			ends(t, operate(t, user, jail, "i386"))
		})
	})
}

func TestKernelUnknownNumbers(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, number := range []string{"472", "600", "0x10000", "0x3fffffff"} {
			refused(unix.ENOSYS)(t, operate(t, user, inside(t, seccomp.Policy{}), "raw", number))
		}
	})
}

// TestKernelInheritance holds that a child of the jail is in it.
func TestKernelInheritance(t *testing.T) {
	runKernelCases(t, []kernelCase{{
		name: "chroot by a child", operation: "child inherits",
		inJail: refused(unix.EPERM), free: refused(unix.EFAULT), opened: opens("chroot"),
	}})
}

// TestKernelOwnFilters holds that a filter which the server puts on top, with a supervisor
// of its own that could answer anything, does not soften ours.
func TestKernelOwnFilters(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jail := inside(t, seccomp.Policy{})
		for _, name := range []string{"chroot", "unshare", "ptrace"} {
			refused(unix.EPERM)(t, operate(t, user, jail, "notify", nr(t, name)))
		}
		refused(unix.EACCES)(t, operate(t, user, jail, "notify", nr(t, "inotify_add_watch")))
	})
}

// TestKernelTakesEveryPreset installs them all and does ordinary work in each.
func TestKernelTakesEveryPreset(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, p := range presets() {
			t.Run(p.name, func(t *testing.T) {
				path := filepath.Join(jailtest.Dir(t, user), "new")
				works(t, operate(t, user, inside(t, p.policy), "open", path, hex(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC)))
				refused(unix.EPERM)(t, operate(t, user, inside(t, p.policy), "raw", nr(t, "chroot"), "1"))
			})
		}
	})
}
