package sandbox

// #include "steps.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// step is one system call of Enter as data: what it is for, and what it has to answer. The
// list is worked out in Go and carried out by steps.c, on this thread or in the child of
// [Start], so that there is one order of enforcement for both.
type step struct {
	// doing completes "... : errno" when the call fails.
	doing string
	// which completes doing with a number; 0 adds none.
	which uint64
	// layer and wanted are set for a step that reads back; what it finds otherwise is a
	// [WeakerError].
	layer  Layer
	wanted string
	// refused explains an errno better than its name does; may be nil.
	refused func(unix.Errno) error
	call    C.struct_step
}

// steps is a list under construction, with the memory that its calls point to.
type steps struct {
	list []step
	pin  runtime.Pinner
}

// release ends the life of what the calls point to.
func (s *steps) release() { s.pin.Unpin() }

// do adds a call that changes something and answers 0.
func (s *steps) do(doing string, number uintptr, args ...uintptr) *step {
	return s.add(step{doing: doing}, number, args)
}

// see adds a call that reads back: it has to answer want.
func (s *steps) see(layer Layer, wanted string, want int64, number uintptr, args ...uintptr) *step {
	added := s.add(step{doing: "reading back " + string(layer), layer: layer, wanted: wanted}, number, args)
	added.call.want = C.int64_t(want)
	return added
}

func (s *steps) add(one step, number uintptr, args []uintptr) *step {
	one.call.number, one.call.mask = C.int64_t(number), -1
	for i, a := range args {
		one.call.args[i] = C.uint64_t(a)
	}
	s.list = append(s.list, one)
	return &s.list[len(s.list)-1]
}

// compare makes the step read the buffer at found and hold it against expected.
func compare[T any](s *steps, one *step, found, expected *T) {
	s.pin.Pin(found)
	s.pin.Pin(expected)
	one.call.found, one.call.expected = unsafe.Pointer(found), unsafe.Pointer(expected)
	one.call.length = C.uint64_t(unsafe.Sizeof(*found))
}

// at pins what a call points to and returns it as an argument.
func at[T any](s *steps, p *T) uintptr {
	s.pin.Pin(p)
	return uintptr(unsafe.Pointer(p)) //nolint:gosec // pinned until release
}

// calls returns the list in the form that steps.c runs.
func (s *steps) calls() []C.struct_step {
	out := make([]C.struct_step, len(s.list))
	for i := range s.list {
		out[i] = s.list[i].call
	}
	for i := range out {
		if out[i].found != nil {
			s.pin.Pin(&out[0])
			break
		}
	}
	return out
}

// run carries the list out on the calling thread.
func (s *steps) run() error {
	calls := s.calls()
	n := int(C.run_steps(&calls[0], C.int64_t(len(calls))))
	runtime.KeepAlive(s)
	return s.failure(calls, n)
}

// failure is the error of the step at which the list ended; nil at its end.
func (s *steps) failure(calls []C.struct_step, n int) error {
	if n >= len(s.list) {
		return nil
	}
	one, result := &s.list[n], int64(calls[n].result)
	if one.which != 0 {
		one.doing = fmt.Sprintf("%s %d", one.doing, one.which)
		one.wanted = fmt.Sprintf("%s %d", one.wanted, one.which)
	}
	errno := unix.Errno(0)
	if result < 0 && result > -4096 { // MAX_ERRNO
		errno = unix.Errno(-result)
	}
	switch {
	case one.layer == "" && one.refused != nil && errno != 0:
		return one.refused(errno)
	case one.layer == "" && errno != 0:
		return fmt.Errorf("%s: %w", one.doing, errno)
	case one.layer == "":
		return fmt.Errorf("%s: the kernel answered %d", one.doing, result)
	case errno != 0:
		return &WeakerError{one.layer, one.wanted, errno.Error()}
	case calls[n].found != nil:
		return &WeakerError{one.layer, one.wanted, fmt.Sprintf("%x", unsafe.Slice((*byte)(calls[n].found), calls[n].length))}
	}
	return &WeakerError{one.layer, one.wanted, fmt.Sprint(result)}
}

// refusal is the answer of a call that fails with errno.
func refusal(errno unix.Errno) int64 { return -int64(errno) }

// limit adds the resource limits, soft and hard alike, and the umask.
func (s *steps) limit(l Limits) error {
	core, err := coreLimitHere()
	if err != nil {
		return err
	}
	for _, r := range limitsOf(l, core) {
		value := &unix.Rlimit{Cur: r.value, Max: r.value}
		s.do("limiting "+r.name+" to", unix.SYS_PRLIMIT64, 0, uintptr(r.resource), at(s, value), 0).which = r.value
	}
	// umask(2) cannot fail and answers the mask that was in force before.
	s.do("setting the umask", unix.SYS_UMASK, jailUmask).call.outcome = C.NOT_NEGATIVE
	return nil
}

// seeLimits reads the limits back.
func (s *steps) seeLimits(l Limits) error {
	core, err := coreLimitHere()
	if err != nil {
		return err
	}
	for _, r := range limitsOf(l, core) {
		want, got := &unix.Rlimit{Cur: r.value, Max: r.value}, new(unix.Rlimit)
		one := s.see(LayerLimits, r.name, 0, unix.SYS_PRLIMIT64, 0, uintptr(r.resource), 0, at(s, got))
		one.which = r.value
		compare(s, one, got, want)
	}
	s.see(LayerLimits, "umask 077", jailUmask, unix.SYS_UMASK, jailUmask)
	return nil
}

// drop adds the end of every capability set and of privileges by execve(2).
//
// Order: the bounding set and the secure bits need CAP_SETPCAP, so they go first.
func (s *steps) drop(bounding boundingState, last uintptr) {
	if bounding == boundingEmpty {
		for c := uintptr(0); c <= last; c++ {
			s.do("dropping bounding capability", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0).which = uint64(c)
		}
		s.do("locking secure bits", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	}
	s.do("clearing ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	s.do("dropping capabilities", unix.SYS_CAPSET, at(s, capabilityHeader()), at(s, new(capabilitySets)))
	s.do("setting no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// seeDropped reads the sets and no_new_privs back.
func (s *steps) seeDropped(bounding boundingState, last uintptr) {
	got := new(capabilitySets)
	one := s.see(LayerCapabilities, "none", 0, unix.SYS_CAPGET, at(s, capabilityHeader()), at(s, got))
	compare(s, one, got, new(capabilitySets))
	if bounding == boundingEmpty {
		bits := s.see(LayerCapabilities, "locked secure bits", secureBits, unix.SYS_PRCTL, unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
		bits.call.mask = secureBits
		for c := uintptr(0); c <= last; c++ {
			s.see(LayerCapabilities, "an empty bounding set without capability", 0, unix.SYS_PRCTL, unix.PR_CAPBSET_READ, c, 0, 0, 0).which = uint64(c)
		}
	}
	s.see(LayerNoNewPrivs, "1", 1, unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
}

// filter adds the installing of the filter.
func (s *steps) filter(program seccomp.Program, listener seccomp.Listener) {
	call := seccomp.InstallCall(program, listener)
	s.pin.Pin(call.Program)
	s.pin.Pin(call.Program.Filter)
	one := s.do("installing the system call filter", unix.SYS_SECCOMP, call.Operation, call.Flags, uintptr(unsafe.Pointer(call.Program))) //nolint:gosec // pinned until release
	one.refused = func(errno unix.Errno) error { return seccomp.InstallError(errno, listener) }
	if listener == seccomp.WithListener {
		one.call.outcome = C.NOT_NEGATIVE
	}
}

// seeFilter reads back that a filter is on, and makes a call that the kernel grants
// everybody and ours refuses: the mode alone would also be 2 under a filter of somebody
// else's. unshare(2) with no flags does nothing and succeeds; memfd_create(2) without a
// name is EFAULT in the kernel and ENOSYS in the filter. A profile that opens both calls
// has the mode as its only proof.
func (s *steps) seeFilter(p seccomp.Policy) {
	s.see(LayerSeccomp, "mode 2", int64(seccomp.ModeFilter), unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	switch {
	case !slices.Contains(p.Allow, "unshare"):
		s.see(LayerSeccomp, "EPERM for unshare", refusal(unix.EPERM), unix.SYS_UNSHARE, 0)
	case !slices.Contains(p.Allow, "memfd_create"):
		s.see(LayerSeccomp, "ENOSYS for memfd_create", refusal(unix.ENOSYS), unix.SYS_MEMFD_CREATE, 0, 0)
	}
}

// seeLandlock opens a folder that no grant holds and that could be listed before.
func (s *steps) seeLandlock(canary string) error {
	path, err := unix.BytePtrFromString(canary)
	if err != nil {
		return err
	}
	s.see(LayerFiles, fmt.Sprintf("EACCES for %q, which no grant holds", canary), refusal(unix.EACCES),
		unix.SYS_OPENAT, atWorkingFolder, at(s, path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return nil
}

// atWorkingFolder is AT_FDCWD as a register holds it.
const atWorkingFolder = ^uintptr(99)
