package supervise

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	controlHeader = int(unsafe.Sizeof(uint64(0))) + 8 // struct cmsghdr
	// rightsMost is SCM_MAX_FD (net/scm.h).
	rightsMost = 253

	// Numbers that x/sys has no name for.
	soTimestamping    = 37 // SCM_TIMESTAMPING (asm-generic/socket.h)
	soTimestampingNew = 65
	scmTxtime         = 61 // SCM_TXTIME
	tlsRecordType     = 1  // TLS_SET_RECORD_TYPE (linux/tls.h)
)

// kept are the control messages that say how a message is sent, but neither where to nor by
// whom: IP_RETOPTS and IPV6_RTHDR would send it by way of somebody else, IPV6_FLOWINFO could
// name a flow whose options do, and SO_MARK and SO_PRIORITY are held to this process's
// capabilities instead of the server's.
//
// IP_PKTINFO and IPV6_PKTINFO choose the source address and the interface.
func kept(level, kind int32) bool {
	switch level {
	case unix.SOL_SOCKET:
		return kind == soTimestamping || kind == soTimestampingNew || kind == scmTxtime
	case unix.SOL_IP:
		return kind == unix.IP_TTL || kind == unix.IP_TOS || kind == unix.IP_PKTINFO
	case unix.SOL_IPV6:
		return kind == unix.IPV6_PKTINFO || kind == unix.IPV6_HOPLIMIT || kind == unix.IPV6_TCLASS || kind == unix.IPV6_DONTFRAG
	case unix.SOL_UDP:
		return kind == unix.UDP_SEGMENT
	case unix.SOL_TLS:
		return kind == tlsRecordType
	}
	return false
}

// rights says whether descriptors are sent along.
type rights uint8

const (
	// withRights sends them.
	withRights rights = iota
	// withoutRights leaves them out: they went with an earlier piece of the stream.
	withoutRights
)

// control is the message's control data for this process: descriptors of the server become
// copies, which are closed when the message is sent.
type control struct {
	data  []byte
	files []int
}

func (c control) close() { closeAll(c.files) }

// makeControl translates control data. EPERM refuses what could re-aim the message, or
// speaks for somebody else; EINVAL is the kernel's word for broken data (CMSG_OK).
func (c *call) makeControl(m *message, how rights) (out control, errno unix.Errno) {
	defer func() {
		if errno != 0 {
			out.close()
			out = control{}
		}
	}()
	rest := m.control
	for len(rest) >= controlHeader {
		length := binary.NativeEndian.Uint64(rest)
		level := int32(binary.NativeEndian.Uint32(rest[8:])) //nolint:gosec // an int to the kernel
		kind := int32(binary.NativeEndian.Uint32(rest[12:])) //nolint:gosec // an int to the kernel
		if length < uint64(controlHeader) || length > uint64(len(rest)) {
			return out, unix.EINVAL
		}
		body := rest[controlHeader:length]
		rest = rest[min(alignControl(int(length)), len(rest)):] //nolint:gosec // at most controlMost
		switch {
		case level == unix.SOL_SOCKET && kind == unix.SCM_RIGHTS:
			if how == withRights {
				errno = c.addRights(&out, body)
			}
		case level == unix.SOL_SOCKET && kind == unix.SCM_CREDENTIALS:
			errno = c.addCredentials(&out, body)
		case kept(level, kind):
			out.add(level, kind, body)
		default:
			errno = unix.EPERM
		}
		if errno != 0 {
			return out, errno
		}
	}
	return out, 0
}

func alignControl(n int) int { return (n + 7) &^ 7 }

// add appends a control message.
func (c *control) add(level, kind int32, body []byte) {
	at := len(c.data)
	c.data = append(c.data, make([]byte, alignControl(controlHeader+len(body)))...)
	binary.NativeEndian.PutUint64(c.data[at:], uint64(controlHeader+len(body))) //nolint:gosec // positive
	binary.NativeEndian.PutUint32(c.data[at+8:], uint32(level))                 //nolint:gosec // an int to the kernel
	binary.NativeEndian.PutUint32(c.data[at+12:], uint32(kind))                 //nolint:gosec // an int to the kernel
	copy(c.data[at+controlHeader:], body)
}

// addRights copies descriptors out of the server and names the copies.
func (c *call) addRights(out *control, body []byte) unix.Errno {
	count := len(body) / 4
	if count+len(out.files) > rightsMost {
		return unix.EINVAL
	}
	fds := make([]int, count)
	for i := range fds {
		fds[i] = int(int32(binary.NativeEndian.Uint32(body[4*i:]))) //nolint:gosec // an int to the kernel
	}
	copies, errno := c.task.copies(fds...)
	if errno != 0 {
		return errno
	}
	out.files = append(out.files, copies...)
	named := make([]byte, 4*count)
	for i, fd := range copies {
		binary.NativeEndian.PutUint32(named[4*i:], uint32(fd)) //nolint:gosec // a descriptor
	}
	out.add(unix.SOL_SOCKET, unix.SCM_RIGHTS, named)
	return 0
}

// addCredentials lets the server say who it is, and nobody else. The kernel holds the
// message to its sender, which is this process, so the number in it becomes this one's.
func (c *call) addCredentials(out *control, body []byte) unix.Errno {
	var who unix.Ucred
	if len(body) != int(unsafe.Sizeof(who)) {
		return unix.EINVAL
	}
	copy(bytesOf(&who), body)
	if int(who.Pid) != c.task.process() || int(who.Uid) != os.Geteuid() || int(who.Gid) != os.Getegid() {
		return unix.EPERM
	}
	who.Pid = int32(os.Getpid()) //nolint:gosec // process numbers are small
	out.add(unix.SOL_SOCKET, unix.SCM_CREDENTIALS, bytesOf(&who))
	return 0
}
