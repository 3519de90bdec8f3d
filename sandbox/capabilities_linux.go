package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Secure bits (linux/securebits.h; capabilities(7), "The securebits flags"). Each has a
// lock bit above it.
const (
	noRoot             = 1 << 0
	noSetuidFixup      = 1 << 2
	keepCaps           = 1 << 4
	noCapAmbientRaise  = 1 << 6
	secureBitsWithLock = (noRoot | noSetuidFixup | noCapAmbientRaise) * 3
	// secureBits keep uid 0 from meaning capabilities, for good.
	secureBits = secureBitsWithLock | keepCaps<<1
)

// boundingState says what became of the bounding set.
type boundingState uint8

const (
	boundingEmpty boundingState = iota
	// boundingKept: an ordinary user cannot empty it (CAP_SETPCAP); no_new_privs keeps
	// execve(2) from drawing on it.
	boundingKept
)

// bounding says what can be done about the bounding set, and which capability is the
// kernel's last: it answers EINVAL for the first number beyond (prctl(2), PR_CAPBSET_READ).
func bounding() (boundingState, uintptr, error) {
	has, err := hasCapability(unix.CAP_SETPCAP)
	if err != nil || !has {
		return boundingKept, 0, err
	}
	for c := uintptr(0); ; c++ {
		_, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > unix.CAP_SETFCAP {
			return boundingEmpty, c - 1, nil
		}
		if err != nil {
			return boundingKept, 0, fmt.Errorf("reading bounding capability %d: %w", c, err)
		}
	}
}

func hasCapability(c uint) (bool, error) {
	caps, err := capabilities()
	if err != nil {
		return false, err
	}
	return caps[c/32].Effective&(1<<(c%32)) != 0, nil
}

func capabilities() ([2]unix.CapUserData, error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return data, fmt.Errorf("reading capabilities: %w", err)
	}
	return data, nil
}

// capabilitySets are the three sets that capset(2) takes, 64 bits each in two halves.
// Dropping them matters for root's reading too: a process with CAP_PERFMON or CAP_SYS_ADMIN
// passes the ptrace check of Landlock, and with it reads other processes' environments.
type capabilitySets [2]unix.CapUserData

func capabilityHeader() *unix.CapUserHeader {
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
}
