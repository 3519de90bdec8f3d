package supervise

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif (linux/seccomp.h): a call that waits for an answer.
type notification struct {
	id    uint64
	pid   uint32 // of the thread, in this process's PID namespace; 0 when it is not visible
	flags uint32
	nr    int32 // struct seccomp_data from here
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp. SECCOMP_USER_NOTIF_FLAG_CONTINUE lets the call go on
// with whatever its arguments point to by then: it is for calls that are observed and not
// decided upon, and for nothing else.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// sizes is struct seccomp_notif_sizes.
type sizes struct{ notification, response, data uint16 }

// listener is the descriptor on which calls arrive.
type listener struct {
	fd     int
	buffer []uint64 // a notification of this kernel, which may be longer than ours
}

// newListener asks how much this kernel says about a call. Later kernels may append fields
// (seccomp_unotify(2)), so receiving into our own struct could overrun it.
func newListener(fd int) (*listener, error) {
	var s sizes
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&s))); errno != 0 {
		return nil, fmt.Errorf("asking for the size of notifications: %w", errno)
	}
	if int(s.notification) < int(unsafe.Sizeof(notification{})) || int(s.response) != int(unsafe.Sizeof(response{})) {
		return nil, fmt.Errorf("asking for the size of notifications: this kernel has %d and %d bytes, unlike Linux 5.19", s.notification, s.response)
	}
	// The caller sleeps until it is answered, and this process until the next call: with
	// this flag of Linux 6.6 the one is woken where the other ran. Older kernels say EINVAL,
	// and wake it somewhere.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), setFlags, syncWakeUp)
	return &listener{fd: fd, buffer: make([]uint64, (int(s.notification)+7)/8)}, nil
}

// From linux/seccomp.h: SECCOMP_IOCTL_NOTIF_SET_FLAGS, which is _IOW('!', 4, __u64), and
// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
const (
	setFlags   = 0x40082104
	syncWakeUp = 1
)

// receive takes the next call. It reports false when there is none after all: the caller
// was killed meanwhile (ENOENT), or a signal of this process's own runtime came in between.
func (l *listener) receive(n *notification) (bool, error) {
	clear(l.buffer) // the kernel refuses a buffer that is not zero (EINVAL)
	err := ioctl(l.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&l.buffer[0]))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("receiving a call: %w", err)
	}
	*n = *(*notification)(unsafe.Pointer(&l.buffer[0]))
	return true, nil
}

// valid tells whether the call still waits: its thread is then the one that the number
// named all along, and what was read by that number is its.
func (l *listener) valid(id uint64) bool {
	return ioctl(l.fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

// answer ends a call. A caller that is gone needs none.
func (l *listener) answer(id uint64, a answer) error {
	r := response{id: id, value: a.value, errno: -int32(a.errno)} //nolint:gosec // errnos are small
	if a.goesOn {
		r = response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	}
	err := ioctl(l.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("answering a call: %w", err)
	}
	return nil
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		if errno == 0 {
			return nil
		}
		// Taking the filter's lock can be interrupted; receiving says so itself.
		if errno != unix.EINTR || request == unix.SECCOMP_IOCTL_NOTIF_RECV {
			return errno
		}
	}
}
