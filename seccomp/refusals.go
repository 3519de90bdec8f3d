package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// refusal is a group of calls that no server gets unless a person names them.
type refusal struct {
	errno unix.Errno
	names []string
	// weakens completes "syscalls.allow: NAME ..." for a person who opens a call.
	weakens string
}

// refusals are the calls that are refused whatever their arguments. Most are also missing
// from the built-in list; they are named so that neither a newer list nor a person's own
// file opens them unnoticed.
//
// The errno is the one that programs handle. ENOSYS makes them use an older way (threads
// by clone, event loops by epoll, files by openat); EPERM makes them go without.
var refusals = [...]refusal{
	{
		unix.ENOSYS,
		[]string{"clone3"},
		"takes its flags by pointer, so the filter no longer keeps the server from making namespaces",
	},
	{
		unix.ENOSYS,
		[]string{"io_uring_enter", "io_uring_register", "io_uring_setup"},
		"runs requests that no filter sees: sockets, connections and metadata are open again",
	},
	{
		unix.ENOSYS,
		[]string{"memfd_secret"},
		"hides memory from every inspection",
	},
	{
		unix.EPERM,
		[]string{"listns", "setns", "unshare"},
		"lets the server make and enter namespaces, where it has capabilities again and much more of the kernel to attack",
	},
	{unix.EPERM, []string{
		"chroot", "fsconfig", "fsmount", "fsopen", "fspick", "listmount", "mount", "mount_setattr", "move_mount",
		"open_tree", "open_tree_attr", "pivot_root", "statmount", "umount2",
	}, "lets the server see and, with namespaces, change what is mounted"},
	{unix.EPERM, []string{
		"kcmp", "migrate_pages", "move_pages", "pidfd_getfd", "process_madvise", "process_mrelease",
		"process_vm_readv", "process_vm_writev", "ptrace",
	}, "reaches into other processes: their memory, descriptors or system calls"},
	{
		unix.EPERM,
		[]string{"bpf", "lookup_dcookie", "perf_event_open"},
		"opens kernel programs and performance events, a common way to attack the kernel",
	},
	{
		unix.EPERM,
		[]string{"userfaultfd"},
		"lets the server halt the kernel in the middle of a copy, which makes kernel races exploitable",
	},
	{
		unix.EPERM,
		[]string{"add_key", "keyctl", "request_key"},
		"reaches the kernel's keyrings, which hold keys of the whole session",
	},
	{
		unix.EPERM,
		[]string{"name_to_handle_at", "open_by_handle_at"},
		"names files by handle and not by path",
	},
	{
		// EOPNOTSUPP is what a file system without attributes answers.
		unix.EOPNOTSUPP,
		[]string{"getxattr", "getxattrat", "lgetxattr", "listxattr", "listxattrat", "llistxattr"},
		"reads extended attributes of files outside the grants: Landlock does not cover them",
	},
	{
		unix.EPERM,
		[]string{"fanotify_init", "fanotify_mark"},
		"watches files outside the grants",
	},
	{
		unix.EACCES,
		[]string{"inotify_add_watch"},
		"tells the names and changes of files outside the grants: Landlock does not cover watches",
	},
	{unix.ENOSYS, []string{
		"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
		"msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop",
		"shmat", "shmctl", "shmdt", "shmget",
	}, "reaches queues and memory that programs outside the jail share: Landlock does not cover System V and POSIX IPC"},
	{unix.EPERM, []string{
		"acct", "clock_settime", "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module",
		"ioperm", "iopl", "kexec_file_load", "kexec_load", "lsm_set_self_attr", "nfsservctl", "query_module", "quotactl",
		"quotactl_fd", "reboot", "setdomainname", "sethostname", "settimeofday", "swapoff", "swapon",
		"syslog", "vhangup",
	}, "administers the machine"},
	{
		unix.EPERM,
		[]string{"_sysctl", "modify_ldt", "sysfs", "uselib"},
		"is an obsolete call that kernel attacks have used",
	},
}

func refusalRules() ruleSet {
	rules := make(ruleSet, 128)
	for _, group := range refusals {
		for _, name := range group.names {
			rules[name] = []rule{refuse(group.errno)}
		}
	}
	return rules
}

// weakening says what opening a call costs; "" for a call that is not refused here.
func weakening(name string) string {
	for _, group := range refusals {
		if slices.Contains(group.names, name) {
			return group.weakens
		}
	}
	for _, group := range restrictions {
		if slices.Contains(group.names, name) {
			return group.weakens
		}
	}
	return ""
}
