package sandbox

import (
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// rights is a set of Landlock file rights (LANDLOCK_ACCESS_FS_*).
type rights uint64

// Rights that make sense on an object that is not a folder. The kernel answers EINVAL to
// a rule that puts any other right on one (landlock_add_rule(2)).
const fileRights rights = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile |
	ll.AccessFSTruncate | ll.AccessFSIoctlDev

const (
	readRights  rights = ll.AccessFSReadFile | ll.AccessFSReadDir
	writeRights        = readRights | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSMakeSym |
		ll.AccessFSRemoveFile | ll.AccessFSRemoveDir | ll.AccessFSRefer
	// IOCTL_DEV means nothing here, since no device can be made. It is one right more on files
	// than a write grant has, so the kernel refuses to link or move a file in (EXDEV): what is
	// in a private folder, sockets above all, the jail made itself.
	scratchRights        = writeRights | ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSIoctlDev
	executeRights rights = ll.AccessFSReadFile | ll.AccessFSExecute
	deviceRights  rights = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSIoctlDev
)

// rights returns what an access allows on a folder tree of a kernel that knows every
// right. None of them ever holds both a write right and EXECUTE, nor MAKE_CHAR, MAKE_BLOCK.
func (a Access) rights() rights {
	switch a {
	case Read:
		return readRights
	case Write:
		return writeRights
	case Scratch:
		return scratchRights
	case Execute:
		return executeRights
	case Device:
		return deviceRights
	}
	return 0
}

// on trims rights to the kind of an object.
func (r rights) on(k Kind) rights {
	if k != KindFolder {
		return r & fileRights
	}
	return r
}

// abiRights is what one Landlock ABI can handle.
type abiRights struct {
	files  rights
	net    uint64 // LANDLOCK_ACCESS_NET_*
	scopes uint64 // LANDLOCK_SCOPE_*
}

// newestABI is the last Landlock ABI whose rights this package knows.
const newestABI = 11

// rightsOf returns what an ABI offers; a newer ABI than the newest known one offers what
// that one does, and ABI 0 nothing.
//
// Source: linux/landlock.h and Documentation/userspace-api/landlock.rst, "Kernel support":
// ABI 1 Linux 5.13, 2 5.19 (refer), 3 6.2 (truncate), 4 6.7 (TCP), 5 6.10 (ioctl on
// devices), 6 6.12 (scopes), 7 6.15 (audit flags), 8 7.0 (thread sync), 9 7.1 (Unix
// sockets by path), 10 (UDP), 11 (no_new_privs flag).
func rightsOf(abi int) abiRights {
	var r abiRights
	if abi >= 1 {
		r.files = 1<<13 - 1
	}
	if abi >= 2 {
		r.files |= ll.AccessFSRefer
	}
	if abi >= 3 {
		r.files |= ll.AccessFSTruncate
	}
	if abi >= 4 {
		r.net |= ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if abi >= 5 {
		r.files |= ll.AccessFSIoctlDev
	}
	if abi >= 6 {
		r.scopes = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	if abi >= 9 {
		r.files |= ll.AccessFSResolveUnix
	}
	if abi >= 10 {
		r.net |= ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	}
	return r
}

// handled returns what the ruleset of a plan takes away before its rules give back: every
// right of the ABI, less the network rights of what the plan leaves open.
//
// With egress open, connects are unrestricted and clients bind port 0 before they connect,
// so binding is handled only when the plan lists the ports.
func handled(n Network, abi int) abiRights {
	r := rightsOf(abi)
	if n.Egress == EgressAll {
		r.net &= ll.AccessNetBindTCP
		if len(n.Listen) == 0 {
			r.net = 0
		}
	}
	return r
}
