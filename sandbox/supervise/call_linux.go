package supervise

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// nativeArch is the architecture of calls with this process's own layouts (AUDIT_ARCH_*,
// linux/audit.h); 0, which no call has, where this package was never built for.
func nativeArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// call is one call of the server while the supervisor makes it.
type call struct {
	notification
	task   task
	socket socket // copy of the server's, or noSocket
	target int    // socket file that is connected or sent to, opened as a path; -1 for none
	memory int    // the caller's memory for writing; -1 for none

	holds uint64 // cookie of the socket that is connected elsewhere; 0 for none

	signalsPipe bool // EPIPE comes with SIGPIPE

	// While it is parked or elsewhere.
	waiting outcome
	watched bool // the socket is in epoll
	lookAt  time.Time
	tryAt   time.Time
	looks   int // in a row that found a signal for the whole process
}

// key is what parked calls are found by.
func (c *call) key() int { return c.socket.fd }

func newCall(n notification) *call {
	return &call{notification: n, task: task{id: int(n.pid)}, socket: socket{fd: -1}, target: -1, memory: -1}
}

// close gives back the descriptors.
func (c *call) close() {
	for _, fd := range []*int{&c.socket.fd, &c.target, &c.memory} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

// number is an argument that the kernel declares as an int: its upper half means nothing.
func (c *call) number(i int) int { return int(int32(c.args[i])) } //nolint:gosec // as the kernel does
