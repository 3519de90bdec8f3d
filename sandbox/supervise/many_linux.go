package supervise

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	manySize = uint64(unsafe.Sizeof(many{}))
	manySent = int64(unsafe.Offsetof(many{}.sent))
	// turn is how many messages of one call are sent before other calls have their turn.
	turn = 64
)

// sendmmsg answers sendmmsg(2): message by message, until one fails. The call returns how
// many were sent; the errno of the one that failed only when it was the first.
func (s *supervisor) sendmmsg(c *call) outcome {
	if errno := s.take(c); errno != 0 {
		return unread(errno)
	}
	// Opened before the call is known to still wait, so it is this caller's memory for good.
	memory, errno := c.task.openMemory()
	if errno != 0 {
		return unread(unix.EPERM)
	}
	c.memory = memory
	b := &batch{s: s, c: c, count: int(min(uint32(c.args[2]), vectorsMost))} //nolint:gosec // unsigned int to the kernel
	return b.next()
}

// batch is a sendmmsg under way.
type batch struct {
	s     *supervisor
	c     *call
	count int // of messages
	sent  int // of messages, so far
}

func (b *batch) next() outcome {
	for begin := b.sent; b.sent < b.count; {
		if b.sent-begin == turn {
			again := parked(wake{writable: true, after: retryFirst}, nil, b.next)
			again.stop = func(stopped) answer { return b.answer() }
			return again
		}
		m, errno := b.read()
		if errno != 0 {
			return b.after(result(errno))
		}
		o := b.s.send(b.c, m)
		if o.step != stepAnswer || o.answer.errno != 0 {
			return b.after(o)
		}
		if errno := b.note(o.answer.value); errno != 0 {
			return b.after(result(errno))
		}
	}
	return outcome{answer: b.answer()}
}

func (b *batch) answer() answer { return answer{value: int64(b.sent)} }

// read copies the next message.
func (b *batch) read() (*message, unix.Errno) {
	var h many
	if errno := b.c.task.read(b.c.args[1]+uint64(b.sent)*manySize, bytesOf(&h)); errno != 0 { //nolint:gosec // positive
		return nil, errno
	}
	return b.c.readMessage(&h.header, b.c.number(3))
}

// note writes how much of a message was sent into the server's memory.
func (b *batch) note(sent int64) unix.Errno {
	length := uint32(sent)                                              //nolint:gosec // at most lengthMost
	at := int64(b.c.args[1]) + int64(b.sent)*int64(manySize) + manySent //nolint:gosec // an address below 2^63
	if n, err := unix.Pwrite(b.c.memory, bytesOf(&length), at); err != nil || n != int(unsafe.Sizeof(length)) {
		return unix.EFAULT
	}
	b.sent++
	return 0
}

// after goes on from what a message's outcome leads to.
func (b *batch) after(o outcome) outcome {
	if o.step == stepAnswer {
		if o.answer.errno == 0 {
			if errno := b.note(o.answer.value); errno != 0 {
				return b.after(result(errno))
			}
			return b.next()
		}
		if b.sent > 0 {
			o.answer = b.answer()
		}
		return o
	}
	if then := o.then; then != nil {
		o.then = func() outcome { return b.after(then()) }
	}
	if stop := o.stop; stop != nil {
		o.stop = func(why stopped) answer {
			a := stop(why)
			if a.errno != 0 && b.sent > 0 {
				return b.answer()
			}
			if a.errno == 0 && b.note(a.value) == 0 {
				return b.answer()
			}
			return a
		}
	}
	return o
}
