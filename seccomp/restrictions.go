package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// restriction is a group of calls of which some uses are refused.
type restriction struct {
	names []string
	// weakens completes "syscalls.allow: NAME ..." for a person who opens a call wholly.
	weakens string
}

// restrictions are the calls of [restrictedRules] that a person may open with
// syscalls.allow. Those that a key of the profile decides are in [keyOf].
var restrictions = [...]restriction{
	{[]string{"execveat"}, "executes files that have no path"},
	{[]string{"fchmod", "mknod", "mknodat"}, "makes programs that run with your rights, whoever starts them"},
	{[]string{"ioctl"}, "types commands into the terminal that the jail was started from"},
	{[]string{"memfd_create"}, "makes memory files that can be executed, which Landlock does not see"},
	{[]string{"personality"}, "switches off address randomisation and changes how the kernel treats the process"},
	{[]string{
		"ioprio_set", "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "setpriority",
	}, "changes other processes of the same user"},
}

const (
	// namespaceFlags are the CLONE_NEW* flags that clone(2) takes. CLONE_NEWTIME is not
	// among them: its bit lies in the exit signal's byte.
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

	personalityQuery = 0xffffffff

	// noExecSeal is MFD_NOEXEC_SEAL (Linux 6.3): the memory file is not executable and
	// cannot become so. Older kernels answer EINVAL.
	noExecSeal = 0x8

	ioprioWhoProcess = 1

	// Terminal ioctls, the same on amd64 and arm64 (asm-generic/ioctls.h): insert a byte
	// into the input, select and paste on a console, load a line discipline.
	tiocSTI   = 0x5412
	tiocLinux = 0x541c
	tiocSetD  = 0x5423
	// tiocSCTTY makes a terminal the controlling one; the jail was taken from it.
	tiocSCTTY = 0x540e
)

// restrictedRules are the calls that are refused for some arguments only. What no rule
// admits gets the default, EPERM.
func restrictedRules() ruleSet {
	rules := ruleSet{
		"clone": {allow(unset(0, namespaceFlags))},
		"personality": {
			allow(word(0, 0)),
			allow(word(0, personalityQuery)),
		},
		// Executing by descriptor is for files without a path; what lies in a path, Landlock
		// checks by path.
		"execveat": {allow(unset(4, unix.AT_EMPTY_PATH))},
		"memfd_create": {
			allow(set(1, noExecSeal)),
			refuse(unix.ENOSYS, unset(1, noExecSeal)),
		},
		"setpriority": {allow(word(0, unix.PRIO_PROCESS), word(1, 0))},
		"ioprio_set":  {allow(word(0, ioprioWhoProcess), word(1, 0))},
	}
	// The process itself is 0. Its own number is refused too: a filter is made before the
	// process that it confines, and is inherited by others.
	for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"} {
		rules[name] = []rule{allow(word(0, 0))}
	}
	for _, condition := range others(1, 32, tiocSTI, tiocLinux, tiocSetD, tiocSCTTY) {
		rules["ioctl"] = append(rules["ioctl"], allow(condition))
	}
	return rules
}

// metadataByPath are the calls that change a file's mode, owner, times or attributes and
// name it by path. Landlock covers none of them (Linux 6.18), so a read grant, or none at
// all, would be enough for them.
//
// fchmodat2 and fchownat act on a descriptor with AT_EMPTY_PATH and an empty path. The
// filter cannot see that the path is empty, so they belong here with all their flags.
var metadataByPath = []string{
	"chmod", "chown", "fchmodat", "fchmodat2", "fchownat", "lchown", "lremovexattr", "lsetxattr",
	"removexattr", "setxattr", "utime", "utimes",
}

// metadataByPathOrNull are those that act on their descriptor when the path, their second
// argument, is a null pointer. Descriptor calls stay allowed; with AT_FDCWD for a
// descriptor the kernel answers EFAULT.
var metadataByPathOrNull = []string{"futimesat", "utimensat"}

// attributesAt take a null path for the folder of their descriptor too, and AT_FDCWD is
// one: the working folder, which a process chooses freely (chdir(2) needs no grant). So a
// null path is no open descriptor here (Linux 6.13). Programs fall back from ENOSYS to
// fsetxattr(2) and kin.
var attributesAt = []string{"removexattrat", "setxattrat"}

func (p Policy) metadataRules() ruleSet {
	answer := unix.Errno(0)
	if p.Metadata == MetadataRefuse {
		answer = unix.EPERM
	}
	rules := make(ruleSet, len(metadataByPath)+len(metadataByPathOrNull)+len(attributesAt)+1)
	for _, name := range metadataByPath {
		rules[name] = []rule{refuse(answer)}
	}
	for _, name := range metadataByPathOrNull {
		rules[name] = []rule{allow(null(1)), refuse(answer, pointer(1))}
	}
	// On a descriptor, programs fall back from ENOSYS to the calls that came before them.
	for _, name := range append(slices.Clone(attributesAt), "file_setattr") {
		rules[name] = []rule{refuse(unix.ENOSYS, null(1)), refuse(answer, pointer(1))}
	}
	return rules
}
