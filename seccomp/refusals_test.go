package seccomp_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"stockade/seccomp"
)

// mandatory is the contract: what every filter refuses whatever the arguments, and how.
// It is written out here and not taken from the code that it checks.
var mandatory = map[string][]string{
	"ENOSYS": {
		"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret",
		"shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop",
		"semctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	},
	"EACCES":  {"inotify_add_watch"},
	"ENOTSUP": {"getxattr", "lgetxattr", "getxattrat", "listxattr", "llistxattr", "listxattrat"},
	"EPERM": {
		"unshare", "setns", "listns",
		"mount", "umount2", "mount_setattr", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsmount", "fsconfig",
		"fspick", "pivot_root", "statmount", "listmount", "chroot",
		"bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "add_key", "keyctl", "request_key",
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
		"migrate_pages", "move_pages",
		"name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark",
		"quotactl", "quotactl_fd", "acct", "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load",
		"init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms",
		"settimeofday", "clock_settime", "syslog", "uselib", "vhangup", "iopl", "ioperm", "modify_ldt", "sethostname",
		"setdomainname", "lsm_set_self_attr", "nfsservctl", "_sysctl", "sysfs",
	},
}

// someArguments are register contents that a filter might take for harmless.
var someArguments = [][]uint64{
	{},
	{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)},
	{1, 1, 1, 1, 1, 1},
	{0, 0x1000, 0, 0, 0x1000},
	{0xffffffff},
	{1 << 32, 1 << 32, 1 << 32, 1 << 32, 1 << 32, 1 << 32},
}

func TestMandatoryRefusals(t *testing.T) {
	for _, arch := range bothArchitectures {
		for _, p := range presets() {
			j := newJail(t, p.policy, arch)
			for want, names := range mandatory {
				for _, name := range names {
					for _, args := range someArguments {
						if got := j.ask(name, args...); got != "" && got != want {
							t.Errorf("%s on %s: %s(%#x) gives %s, want %s", p.name, arch, name, args, got, want)
						}
					}
				}
			}
		}
	}
}

// TestRefusalsAreWrittenOut holds that the contract above and the code's table name the
// same calls, so that none is added or lost in one of them only.
func TestRefusalsAreWrittenOut(t *testing.T) {
	listed := map[string]bool{}
	exists := map[string]bool{}
	for _, arch := range bothArchitectures {
		for name := range numbers(t, arch) {
			exists[name] = true
		}
	}
	for _, names := range mandatory {
		for _, name := range names {
			if listed[name] {
				t.Errorf("%s is listed twice", name)
			}
			if !exists[name] {
				t.Errorf("%s exists on no architecture", name)
			}
			listed[name] = true
		}
	}
	for name := range seccomp.RefusedNames() {
		if !listed[name] {
			t.Errorf("%s is refused by the code, but the contract does not say so", name)
		}
		if !exists[name] {
			t.Errorf("%s is refused by the code and exists on no architecture", name)
		}
		if seccomp.Weakening(name) == "" {
			t.Errorf("%s has no sentence that says what opening it costs", name)
		}
	}
}

// TestAllowTakesOneRefusalOut opens each call that a person may open, and looks that this
// opens it and nothing else.
func TestAllowTakesOneRefusalOut(t *testing.T) {
	before := newJail(t, seccomp.Policy{}, "amd64")
	calls := numbers(t, "amd64")
	conditional := []string{
		"execveat", "ioctl", "memfd_create", "personality", "ioprio_set", "prlimit64", "sched_setaffinity",
		"sched_setattr", "sched_setparam", "sched_setscheduler", "setpriority",
	}
	names := slices.Concat(slices.Collect(maps.Keys(seccomp.RefusedNames())), conditional)
	for _, name := range names {
		if _, here := calls[name]; !here {
			continue
		}
		after := newJail(t, seccomp.Policy{Allow: []string{name}}, "amd64")
		for other, number := range calls {
			for _, args := range someArguments {
				want := before.raw(number, args...)
				if other == name {
					want = allowed
				}
				if got := after.raw(number, args...); got != want {
					t.Errorf("with %s allowed, %s(%#x) gives %s, want %s", name, other, args, got, want)
				}
			}
		}
	}
}

func TestUnknownNumbers(t *testing.T) {
	for _, arch := range bothArchitectures {
		known := map[uint32]bool{}
		var last uint32
		for _, number := range numbers(t, arch) {
			known[number] = true
			last = max(last, number)
		}
		if last < 470 {
			t.Fatalf("the call table of %s ends at %d", arch, last)
		}
		j := newJail(t, seccomp.Policy{}, arch)
		unknown := []uint32{last + 1, last + 2, 600, 1000, 0x10000, 0x3fffffff}
		for number := range last {
			if !known[number] {
				unknown = append(unknown, number)
			}
		}
		for _, number := range unknown {
			if got := j.raw(number); got != "ENOSYS" {
				t.Errorf("%s: number %d gives %s, want ENOSYS", arch, number, got)
			}
		}
	}
}

// TestNewerCallsThatNobodyJudged holds that they look absent, so that programs fall back.
func TestNewerCallsThatNobodyJudged(t *testing.T) {
	for _, arch := range bothArchitectures {
		j := newJail(t, seccomp.Policy{}, arch)
		for _, name := range []string{"file_getattr", "rseq_slice_yield", "lsm_get_self_attr", "lsm_list_modules"} {
			if got := j.ask(name); got != "ENOSYS" {
				t.Errorf("%s: %s gives %s, want ENOSYS", arch, name, got)
			}
		}
		for _, name := range []string{"cachestat", "futex_wait", "futex_wake", "futex_requeue", "mseal"} {
			if got := j.ask(name); got != allowed {
				t.Errorf("%s: %s gives %s, want %s", arch, name, got, allowed)
			}
		}
	}
}

func TestForeignABIsEndTheProcess(t *testing.T) {
	const auditI386, auditArm = 0x40000003, 0x40000028
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			program := build(t, p.policy, arch)
			for _, foreign := range []uint32{auditI386, auditArm, auditArch["amd64"], auditArch["arm64"], 0, ^uint32(0)} {
				if foreign == auditArch[arch] {
					continue
				}
				for _, number := range []uint32{0, 1, 11, 39, 59, 172, 231, 451, 470, 472, 600, 0x40000027, ^uint32(0)} {
					answer, _, err := interpret(program, call{number: number, arch: foreign})
					if err != nil {
						t.Fatal(err)
					}
					if got := word(answer); got != killed {
						t.Errorf("%s on %s: number %d of architecture %#x gives %s, want %s", p.name, arch, number, foreign, got, killed)
					}
				}
			}
		}
		// x32 has the audit architecture of amd64 and sets bit 30.
		program := build(t, p.policy, "amd64")
		for _, number := range []uint32{0, 1, 39, 59, 451, 472, 512, 547} {
			answer, _, err := interpret(program, call{number: 0x40000000 | number, arch: auditArch["amd64"]})
			if err != nil {
				t.Fatal(err)
			}
			if got := word(answer); got != killed {
				t.Errorf("%s: x32 number %d gives %s, want %s", p.name, number, got, killed)
			}
		}
	}
}

// TestWhatProgramsNeed holds that refusals never reach the calls of ordinary programs.
func TestWhatProgramsNeed(t *testing.T) {
	names := []string{
		"read", "write", "close", "openat", "newfstatat", "statx", "fstat", "mmap", "munmap", "mprotect", "madvise", "brk", "futex",
		"execve", "exit", "exit_group", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "getrandom", "epoll_create1",
		"epoll_ctl", "epoll_pwait", "eventfd2", "pipe2", "dup3", "fcntl", "getdents64", "readlinkat", "mkdirat", "unlinkat",
		"renameat2", "ftruncate", "fchmod", "fchown", "fsetxattr", "fremovexattr", "fgetxattr", "capget", "prctl", "set_robust_list",
		"set_tid_address", "rseq", "clock_nanosleep", "sched_getaffinity", "sched_getscheduler", "sched_getparam", "pkey_alloc",
		"getpid", "wait4", "waitid", "kill", "tgkill", "pidfd_open", "pidfd_send_signal", "setsid", "setpgid", "landlock_create_ruleset",
		"landlock_add_rule", "landlock_restrict_self", "seccomp", "inotify_init1", "inotify_rm_watch", "recvfrom", "recvmsg",
		"shutdown", "getsockopt", "getsockname", "faccessat2", "close_range", "copy_file_range", "membarrier", "getrlimit",
		"clone", "prlimit64", "sendto", "sendmsg", "memfd_create", "execveat",
	}
	reasonable := map[string][]uint64{"memfd_create": {0, 0x8}}
	for _, arch := range bothArchitectures {
		for _, p := range presets() {
			j := newJail(t, p.policy, arch)
			for _, name := range names {
				want := allowed
				if name == "sendmsg" && p.policy.Supervision != seccomp.Unsupervised {
					want = waits
				}
				if got := j.ask(name, reasonable[name]...); got != want && got != "" {
					t.Errorf("%s on %s: %s gives %s, want %s", p.name, arch, name, got, want)
				}
			}
		}
	}
}

func TestUnsupportedArchitecture(t *testing.T) {
	for _, arch := range []string{"", "386", "riscv64", "AMD64"} {
		if filter, err := (seccomp.Policy{}).FilterFor(arch); err == nil {
			t.Errorf("%q gave a filter with %d entries", arch, len(filter.Syscalls))
		}
	}
}

func TestPoliciesThatMeanNothing(t *testing.T) {
	for _, policy := range []seccomp.Policy{
		{Sockets: 3},
		{Listening: 2},
		{Metadata: 2},
		{Truncation: 2},
		{Supervision: 3},
		{Listening: seccomp.ListenAllowed},
		{Supervision: seccomp.SupervisedUnix, Sockets: seccomp.InternetSockets},
	} {
		t.Run(fmt.Sprintf("%+v", policy), func(t *testing.T) {
			if _, err := policy.Filter(); err == nil {
				t.Error("Filter accepted it")
			}
			if _, err := policy.Program(); err == nil {
				t.Error("Program accepted it")
			}
		})
	}
}
