package supervise

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// contentMost is what is sent at once: all of a datagram, one piece of a stream.
	contentMost = 1 << 20
	// vectorsMost is UIO_MAXIOV (linux/uio.h).
	vectorsMost = 1024
	// controlMost bounds control data; the kernel's own bound, net.core.optmem_max, is
	// 128 KiB by default (Linux 6.18).
	controlMost = 128 << 10
	// lengthMost is MAX_RW_COUNT (linux/fs.h): what one call sends at most.
	lengthMost = 0x7ffff000
)

// header is struct msghdr with the server's addresses in place of pointers.
type header struct {
	name       uint64
	nameLen    uint32
	_          uint32
	vectors    uint64
	count      uint64
	control    uint64
	controlLen uint64
	_          uint64 // flags that the kernel reports
}

// many is struct mmsghdr.
type many struct {
	header
	sent uint32
	_    uint32
}

// message is what a call sends: addresses of the server's memory, but for the name and the
// control data, which decide something and are this process's copies.
type message struct {
	named   bool // it has an address, if only an empty one
	name    []byte
	vectors []unix.RemoteIovec
	length  int // of the content
	control []byte
	flags   int
	sent    int // of a stream's content, so far

	began time.Time // when it had to wait first
	limit time.Time // when waiting ends; zero for never
	tries int
}

// allowedFlags are passed on. MSG_DONTWAIT and MSG_NOSIGNAL are heeded here, and MSG_ZEROCOPY;
// the kernel ignores others.
const allowedFlags = unix.MSG_OOB | unix.MSG_DONTROUTE | unix.MSG_EOR | unix.MSG_CONFIRM | unix.MSG_MORE

// readMessage copies what a msghdr points to, with the kernel's checks in its order
// (__copy_msghdr, net/socket.c, Linux 6.18).
func (c *call) readMessage(h *header, flags int) (*message, unix.Errno) {
	m := &message{flags: flags}
	nameLen := int(int32(h.nameLen)) //nolint:gosec // as the kernel does
	if h.name == 0 {
		nameLen = 0
	}
	if nameLen < 0 {
		return nil, unix.EINVAL
	}
	if nameLen > 0 {
		m.named, m.name = true, make([]byte, min(nameLen, addressMost))
		if errno := c.task.read(h.name, m.name); errno != 0 {
			return nil, errno
		}
	}
	if h.count > vectorsMost {
		return nil, unix.EMSGSIZE
	}
	if errno := c.readVectors(m, h); errno != 0 {
		return nil, errno
	}
	if h.controlLen > controlMost {
		return nil, unix.ENOBUFS
	}
	if h.controlLen > 0 {
		m.control = make([]byte, h.controlLen)
		if errno := c.task.read(h.control, m.control); errno != 0 {
			return nil, errno
		}
	}
	return m, 0
}

// readVectors copies the list of places of the content (import_iovec, lib/iov_iter.c).
func (c *call) readVectors(m *message, h *header) unix.Errno {
	if h.count == 0 {
		return 0
	}
	raw := make([][2]uint64, h.count)
	if errno := c.task.read(h.vectors, unsafe.Slice((*byte)(unsafe.Pointer(&raw[0])), 16*len(raw))); errno != 0 {
		return errno
	}
	m.vectors = make([]unix.RemoteIovec, 0, len(raw))
	for _, v := range raw {
		if int64(v[1]) < 0 { //nolint:gosec // as the kernel does
			return unix.EINVAL
		}
		length := min(v[1], uint64(lengthMost-m.length)) //nolint:gosec // never negative
		m.add(v[0], int(length))                         //nolint:gosec // at most lengthMost
	}
	return 0
}

// add appends a place of the content.
func (m *message) add(at uint64, length int) {
	if length > 0 {
		m.vectors = append(m.vectors, unix.RemoteIovec{Base: uintptr(at), Len: length})
		m.length += length
	}
}

// rest returns the places of the content that is not sent yet, at most so many bytes.
func (m *message) rest(most int) (places []unix.RemoteIovec, length int) {
	skip := m.sent
	for _, v := range m.vectors {
		if skip >= v.Len {
			skip -= v.Len
			continue
		}
		v.Base += uintptr(skip) //nolint:gosec // positive
		v.Len = min(v.Len-skip, most-length)
		skip = 0
		if v.Len == 0 {
			break
		}
		places = append(places, v)
		length += v.Len
	}
	return places, length
}

// gather copies content that is not sent yet into s.content: all of a datagram, a piece of a
// stream. It returns what was readable, and EFAULT if that is not all of it.
func (s *supervisor) gather(c *call, m *message) ([]byte, unix.Errno) {
	places, length := m.rest(contentMost)
	if length > len(s.content) {
		s.content = make([]byte, max(length, 64<<10))
	}
	n, errno := c.task.gather(places, s.content[:length])
	if errno == 0 && n < length {
		errno = unix.EFAULT
	}
	return s.content[:n], errno
}
