package seccomp

import (
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// setID are the mode bits that make a program run with its owner's or group's rights. A
// server that sets them on a file in a write grant gives its user's rights to every other
// user of the machine, outside the jail; run by root, that is root. No mask of the process
// takes them away (umask(2) covers the permission bits only), and Landlock does not look
// at modes (Linux 6.18).
const setID = unix.S_ISUID | unix.S_ISGID

// tmpfileFlag is __O_TMPFILE without O_DIRECTORY, which O_TMPFILE also holds
// (asm-generic/fcntl.h). With it, as with O_CREAT, an open looks at its mode argument.
const tmpfileFlag = unix.O_TMPFILE &^ unix.O_DIRECTORY

// modeRules refuse the mode bits of [setID] wherever a call on a path or descriptor takes a
// mode; chmod by path is in [Policy.metadataRules], and mkdir(2) drops the bits by itself.
func modeRules() ruleSet {
	return ruleSet{
		"fchmod":  {allow(unset(1, setID))},
		"creat":   {allow(unset(1, setID))},
		"mknod":   {allow(unset(1, setID))},
		"mknodat": {allow(unset(2, setID))},
	}
}

// flagTest is a condition on the flags of an open: the bits of mask are value.
type flagTest struct{ mask, value uint64 }

func (a flagTest) and(b flagTest) flagTest { return flagTest{a.mask | b.mask, a.value | b.value} }

func (a flagTest) on(index uint) specs.LinuxSeccompArg { return maskedEqual(index, a.mask, a.value) }

// openRules decide opens. flags is the index of the flags argument; the mode follows it.
//
// An open with access mode 3 asks for neither reading nor writing (open(2)), so Landlock
// requires no right for it (Linux 6.18), and yet its descriptor is good for fchmod(2),
// fchown(2), fsetxattr(2) and ioctl(2) on any file of the user. Only some disk tools of
// old use it: it is refused.
//
// An open that can make a file must not ask for [setID]. Other opens may carry anything in
// the mode argument, which the kernel does not read.
//
// [TruncationByFilter] keeps files outside the write grants at their length on kernels
// whose Landlock cannot (before ABI 3): an open truncates with O_TRUNC whatever its access
// mode, and Landlock asks only for the rights of the mode.
func (p Policy) openRules(flags uint) []rule {
	const making = unix.O_CREAT | tmpfileFlag
	const cutting, access = unix.O_TRUNC, unix.O_ACCMODE
	// Modes 0 and 2 are those without the lowest bit.
	accesses := []flagTest{{unix.O_WRONLY, 0}, {access, unix.O_WRONLY}}
	rules := []rule{refuse(unix.EACCES, flagTest{access, access}.on(flags))}
	if p.Truncation == TruncationByFilter {
		accesses = []flagTest{
			{access | cutting, unix.O_RDONLY}, {access, unix.O_WRONLY}, {access, unix.O_RDWR},
		}
		rules = append(rules, refuse(unix.EACCES, flagTest{access | cutting, cutting | unix.O_RDONLY}.on(flags)))
	}
	for _, a := range accesses {
		rules = append(rules, allow(a.and(flagTest{making, 0}).on(flags)))
		for _, way := range []uint64{unix.O_CREAT, tmpfileFlag, making} {
			rules = append(rules, allow(a.and(flagTest{making, way}).on(flags), unset(flags+1, setID)))
		}
	}
	return rules
}

// fileRules decide the calls that open and cut files. openat2 takes flags and mode by
// pointer, where a filter cannot look; ENOSYS makes programs use openat.
func (p Policy) fileRules() ruleSet {
	rules := modeRules()
	rules["open"] = p.openRules(1)
	rules["openat"] = p.openRules(2)
	rules["openat2"] = []rule{refuse(unix.ENOSYS)}
	if p.Truncation == TruncationByFilter {
		rules["truncate"] = []rule{refuse(unix.EPERM)}
	}
	return rules
}
