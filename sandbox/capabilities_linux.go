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

// dropCapabilities empties every capability set of the calling thread. As root this
// matters for reading too: a process with CAP_PERFMON or CAP_SYS_ADMIN passes the ptrace
// check of Landlock, and with it reads other processes' environments.
//
// Order: the bounding set and the secure bits need CAP_SETPCAP, so they go first.
func dropCapabilities() (boundingState, error) {
	state := boundingKept
	if has, err := hasCapability(unix.CAP_SETPCAP); err != nil {
		return state, err
	} else if has {
		if err := emptyBounding(); err != nil {
			return state, err
		}
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
			return state, fmt.Errorf("locking secure bits: %w", err)
		}
		state = boundingEmpty
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return state, fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return state, fmt.Errorf("dropping capabilities: %w", err)
	}
	return state, nil
}

// emptyBounding drops each capability that the kernel knows; it answers EINVAL for the
// first number beyond its last one.
func emptyBounding() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > unix.CAP_SETFCAP {
			return nil
		}
		if err != nil {
			return fmt.Errorf("dropping bounding capability %d: %w", c, err)
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

// checkCapabilities reads the sets back.
func checkCapabilities(bounding boundingState) error {
	caps, err := capabilities()
	if err != nil {
		return err
	}
	for _, c := range caps {
		if held := c.Effective | c.Permitted | c.Inheritable; held != 0 {
			return &WeakerError{LayerCapabilities, "none", fmt.Sprintf("%#x", held)}
		}
	}
	if bounding == boundingKept {
		return nil
	}
	bits, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("reading secure bits: %w", err)
	}
	if bits&secureBits != secureBits {
		return &WeakerError{LayerCapabilities, fmt.Sprintf("secure bits %#x", secureBits), fmt.Sprintf("%#x", bits)}
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err == nil && set != 0 {
			return &WeakerError{LayerCapabilities, "an empty bounding set", fmt.Sprintf("capability %d in it", c)}
		}
	}
	return nil
}
