package seccomp_test

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// bad is an address that no process has.
const bad = 1

// noDescriptor is a descriptor number that is never open.
const noDescriptor = 1 << 20

// refusal is a call with harmless arguments: the kernel's own answer to them is an error,
// or changes nothing.
type refusal struct {
	call string
	args []uintptr
	want unix.Errno // in the jail
	free freedom
}

// freedom says what a call gives outside the jail.
type freedom uint8

const (
	// anybody gets an answer of the kernel that differs from the filter's.
	anybody freedom = iota
	// privileged calls give everyone but root EPERM, on some kernels at least.
	privileged
	// harmful calls are not made outside the jail.
	harmful
)

// noProcess is a process number beyond the largest that Linux has (PID_MAX_LIMIT).
const noProcess = 1 << 22

const eperm = unix.EPERM

// refusalRows has a row for every call that is refused whatever its arguments.
var refusalRows = []refusal{
	{"clone3", []uintptr{bad, 0}, unix.ENOSYS, anybody},
	{"io_uring_setup", []uintptr{1, bad}, unix.ENOSYS, anybody},
	{"io_uring_enter", []uintptr{noDescriptor}, unix.ENOSYS, anybody},
	{"io_uring_register", []uintptr{noDescriptor}, unix.ENOSYS, anybody},
	{"memfd_secret", []uintptr{0xff}, unix.ENOSYS, anybody},

	{"unshare", []uintptr{1}, eperm, anybody},
	{"setns", []uintptr{noDescriptor, 0}, eperm, anybody},
	{"mount", []uintptr{bad, bad, bad, 0, 0}, eperm, anybody},
	{"umount2", []uintptr{bad, 0xff00}, eperm, anybody},
	{"mount_setattr", []uintptr{noDescriptor, bad, 0xffffffff, bad, 32}, eperm, anybody},
	{"open_tree", []uintptr{noDescriptor, bad, 0}, eperm, anybody},
	{"open_tree_attr", []uintptr{noDescriptor, bad, 0, 0, 8}, eperm, anybody},
	{"move_mount", []uintptr{noDescriptor, bad, noDescriptor, bad, 0xffffffff}, eperm, privileged},
	{"fsopen", []uintptr{bad, 0xffffffff}, eperm, privileged},
	{"fsmount", []uintptr{noDescriptor, 0xffffffff, 0}, eperm, privileged},
	{"fsconfig", []uintptr{noDescriptor, 6, 0, 0, 0}, eperm, anybody},
	{"fspick", []uintptr{noDescriptor, bad, 0xffffffff}, eperm, privileged},
	{"pivot_root", []uintptr{bad, bad}, eperm, privileged},
	{"statmount", []uintptr{bad, bad, 0, 1}, eperm, anybody},
	{"listmount", []uintptr{bad, bad, 0, 0xffffffff}, eperm, anybody},
	{"chroot", []uintptr{bad}, eperm, anybody},

	{"ptrace", []uintptr{16, noProcess, 0, 0}, eperm, anybody},
	{"process_vm_readv", []uintptr{noProcess, 0, 0, 0, 0, 1}, eperm, anybody},
	{"process_vm_writev", []uintptr{noProcess, 0, 0, 0, 0, 1}, eperm, anybody},
	{"process_madvise", []uintptr{noDescriptor, 0, 0, 0, 1}, eperm, anybody},
	{"process_mrelease", []uintptr{noDescriptor, 1}, eperm, anybody},
	{"pidfd_getfd", []uintptr{noDescriptor, 0, 0}, eperm, anybody},
	{"kcmp", []uintptr{noProcess, noProcess, 0, 0, 0}, eperm, anybody},
	{"migrate_pages", []uintptr{noProcess, 8, bad, bad}, eperm, anybody},
	{"move_pages", []uintptr{0, 0, 0, 0, 0, 0xff}, eperm, anybody},

	{"bpf", []uintptr{0xffff, bad, 8}, eperm, privileged},
	{"perf_event_open", []uintptr{bad, 0, 0, 0, 0xffffffff}, eperm, anybody},
	{"userfaultfd", []uintptr{0xff00}, eperm, privileged},
	{"lookup_dcookie", []uintptr{0, bad, 1}, eperm, anybody},
	{"add_key", []uintptr{bad, bad, bad, 1, 0}, eperm, anybody},
	{"keyctl", []uintptr{9999}, eperm, anybody},
	{"request_key", []uintptr{bad, bad, 0, 0}, eperm, anybody},
	{"name_to_handle_at", []uintptr{noDescriptor, bad, bad, bad, 0xffff0000}, eperm, anybody},
	{"open_by_handle_at", []uintptr{noDescriptor, bad, 0}, eperm, anybody},
	{"fanotify_init", []uintptr{0xffffffff, 0}, eperm, privileged},
	{"fanotify_mark", []uintptr{noDescriptor, 0xffffffff, 0, 0, 0}, eperm, anybody},
	{"inotify_add_watch", []uintptr{noDescriptor, bad, 1}, unix.EACCES, anybody},
	{"getxattr", []uintptr{bad, bad, 0, 0}, unix.EOPNOTSUPP, anybody},
	{"lgetxattr", []uintptr{bad, bad, 0, 0}, unix.EOPNOTSUPP, anybody},
	{"getxattrat", []uintptr{noDescriptor, bad, 0, bad, bad, 16}, unix.EOPNOTSUPP, anybody},
	{"listxattr", []uintptr{bad, 0, 0}, unix.EOPNOTSUPP, anybody},
	{"llistxattr", []uintptr{bad, 0, 0}, unix.EOPNOTSUPP, anybody},
	{"listxattrat", []uintptr{noDescriptor, bad, 0, 0, 0}, unix.EOPNOTSUPP, anybody},

	{"shmget", []uintptr{0, 0, 0}, unix.ENOSYS, anybody},
	{"shmat", []uintptr{0x7fffffff, 0, 0}, unix.ENOSYS, anybody},
	{"shmctl", []uintptr{0x7fffffff, 2, bad}, unix.ENOSYS, anybody},
	{"shmdt", []uintptr{bad}, unix.ENOSYS, anybody},
	{"msgget", []uintptr{0x53746f63, 0}, unix.ENOSYS, anybody},
	{"msgsnd", []uintptr{0x7fffffff, bad, 1, 0}, unix.ENOSYS, anybody},
	{"msgrcv", []uintptr{0x7fffffff, bad, 1, 0, 0}, unix.ENOSYS, anybody},
	{"msgctl", []uintptr{0x7fffffff, 2, bad}, unix.ENOSYS, anybody},
	{"semget", []uintptr{0, 0xffffffff, 0}, unix.ENOSYS, anybody},
	{"semop", []uintptr{0x7fffffff, bad, 0}, unix.ENOSYS, anybody},
	{"semtimedop", []uintptr{0x7fffffff, bad, 0, 0}, unix.ENOSYS, anybody},
	{"semctl", []uintptr{0x7fffffff, 0, 12}, unix.ENOSYS, anybody},
	{"mq_open", []uintptr{bad, 0}, unix.ENOSYS, anybody},
	{"mq_unlink", []uintptr{bad}, unix.ENOSYS, anybody},
	{"mq_timedsend", []uintptr{noDescriptor}, unix.ENOSYS, anybody},
	{"mq_timedreceive", []uintptr{noDescriptor}, unix.ENOSYS, anybody},
	{"mq_notify", []uintptr{noDescriptor}, unix.ENOSYS, anybody},
	{"mq_getsetattr", []uintptr{noDescriptor}, unix.ENOSYS, anybody},

	{"acct", []uintptr{bad}, eperm, privileged},
	{"quotactl", []uintptr{0xff00, bad, 0, 0}, eperm, anybody},
	{"quotactl_fd", []uintptr{noDescriptor, 0xff00, 0, 0}, eperm, anybody},
	{"swapon", []uintptr{bad, 0xffffffff}, eperm, anybody},
	{"swapoff", []uintptr{bad}, eperm, privileged},
	{"reboot", []uintptr{bad, bad, bad, 0}, eperm, privileged},
	{"kexec_load", []uintptr{0, 0, 0, 0xff}, eperm, privileged},
	{"kexec_file_load", []uintptr{noDescriptor, noDescriptor, 0, 0, 0xffff}, eperm, privileged},
	{"init_module", []uintptr{bad, 0, bad}, eperm, privileged},
	{"finit_module", []uintptr{noDescriptor, bad, 0xffff}, eperm, privileged},
	{"delete_module", []uintptr{bad, 0}, eperm, privileged},
	{"create_module", nil, eperm, anybody},
	{"query_module", nil, eperm, anybody},
	{"get_kernel_syms", nil, eperm, anybody},
	{"settimeofday", []uintptr{bad, 0}, eperm, anybody},
	{"clock_settime", []uintptr{0, bad}, eperm, anybody},
	{"sethostname", []uintptr{bad, 0xffff}, eperm, privileged},
	{"setdomainname", []uintptr{bad, 0xffff}, eperm, privileged},
	{"syslog", []uintptr{2, 0, 0xffffffff}, eperm, privileged},
	{"lsm_set_self_attr", []uintptr{0, 0, 0, 1}, eperm, anybody},
	{"nfsservctl", nil, eperm, anybody},
	{"listns", []uintptr{bad, bad, 0, 0xffffffff}, eperm, anybody},
	{"iopl", []uintptr{9}, eperm, anybody},
	{"ioperm", []uintptr{1 << 20, 1, 1}, eperm, anybody},
	{"modify_ldt", []uintptr{99, 0, 0}, eperm, anybody},
	{"sysfs", []uintptr{99, 0, 0}, eperm, anybody},
	{"_sysctl", nil, eperm, anybody},
	{"uselib", []uintptr{bad}, eperm, anybody},
	// Outside the jail it would hang up the terminal that the tests run in.
	{"vhangup", nil, eperm, harmful},
}

// everyRefusal makes the call of every row and returns the errnos as JSON, by name.
func everyRefusal(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	calls, err := seccomp.Numbers(runtime.GOARCH)
	if err != nil {
		s.Failf("reading the call table: %v", err)
	}
	return func() jailtest.Outcome {
		errnos := map[string]int{}
		for _, row := range refusalRows {
			number, exists := calls[row.call]
			if exists && (args[0] == "all" || row.free != harmful) {
				errnos[row.call] = int(do(uintptr(number), row.args...).Errno)
			}
		}
		note, err := json.Marshal(errnos)
		if err != nil {
			s.Failf("encoding errnos: %v", err)
		}
		return jailtest.Outcome{Note: string(note), Value: int64(len(errnos))}
	}
}

// TestKernelRefusals makes every refused call three times: in the jail, in a jail whose
// profile opens them, and outside.
func TestKernelRefusals(t *testing.T) {
	calls := numbers(t, runtime.GOARCH)
	rows := map[string]bool{}
	var open []string
	for _, row := range refusalRows {
		rows[row.call] = true
		if _, exists := calls[row.call]; exists {
			open = append(open, row.call)
		}
	}
	for name := range seccomp.RefusedNames() {
		if !rows[name] {
			t.Errorf("%s is refused and has no row here", name)
		}
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		read := func(policy, which string) map[string]int {
			t.Helper()
			result := operate(t, user, policy, "every refusal", which)
			jailtest.WantOK(t, result)
			errnos := map[string]int{}
			if err := json.Unmarshal([]byte(result.Outcome.Note), &errnos); err != nil {
				t.Fatalf("reading errnos: %v\n%s", err, result)
			}
			return errnos
		}
		jail := read(inside(t, seccomp.Policy{}), "all")
		opened := read(inside(t, seccomp.Policy{Allow: open}), "harmless")
		free := read(outside, "harmless")
		isRoot := user.Switch == jailtest.KeepIdentity && os.Getuid() == 0
		for _, row := range refusalRows {
			if _, exists := calls[row.call]; !exists {
				continue
			}
			if got, made := jail[row.call]; !made || unix.Errno(got) != row.want {
				t.Errorf("%s in the jail: %s (made: %t), want %s", row.call, name(got), made, name(int(row.want)))
			}
			if row.free == harmful {
				continue
			}
			// Opened, the jail must not change the kernel's answer. Outside, that answer must not
			// be the filter's, or the row above proves nothing; a kernel may lack the call.
			own := unix.Errno(free[row.call])
			if got := unix.Errno(opened[row.call]); got != own {
				t.Errorf("%s in a jail that opens it: %s, outside %s", row.call, name(int(got)), name(int(own)))
			}
			if own == row.want && own != unix.ENOSYS && (isRoot || row.free == anybody) {
				t.Errorf("%s outside the jail: %s, which is the filter's answer too", row.call, name(int(own)))
			}
		}
	})
}

func name(errno int) string {
	if errno == 0 {
		return "success"
	}
	return unix.ErrnoName(unix.Errno(errno))
}
