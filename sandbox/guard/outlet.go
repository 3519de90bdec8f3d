package guard

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// maxAnswers is how many of the guard's own messages wait for a side that does not read,
// before the one that causes them is not read either.
const maxAnswers = 256

// scratchSize is up to which size an edited message is put together before it is written.
const scratchSize = 1 << 20

var errClosed = errors.New("the stream is closed")

// outlet writes to one side: messages that pass, and between them the guard's own.
type outlet struct {
	to      io.WriteCloser
	written atomic.Int64

	mu      sync.Mutex // held while a message is written
	open    bool       // the last message had no newline
	scratch []byte

	queue  sync.Mutex
	more   sync.Cond // of queue: something waits, or it is over
	room   sync.Cond // of queue
	own    [][]byte
	failed error
	idle   chan struct{} // closed when the goroutine has ended
}

// newOutlet begins a goroutine, which ends with close.
func newOutlet(to io.WriteCloser) *outlet {
	o := &outlet{to: to, idle: make(chan struct{})}
	o.more.L, o.room.L = &o.queue, &o.queue
	go o.answer()
	return o
}

// pass writes a message with its edits, and waits until it is written.
func (o *outlet) pass(line []byte, edits []edit) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.broken(); err != nil {
		return err
	}
	if len(edits) == 0 {
		return o.write(line)
	}
	if len(line) <= scratchSize {
		o.scratch = spliced(o.scratch[:0], line, edits)
		return o.write(o.scratch)
	}
	at := 0
	for _, e := range edits {
		if err := errors.Join(o.write(line[at:e.at.from]), o.write(e.with)); err != nil {
			return err
		}
		at = e.at.to
	}
	return o.write(line[at:])
}

// write writes bytes. The lock is held.
func (o *outlet) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	n, err := o.to.Write(text)
	o.written.Add(int64(n))
	o.open = text[len(text)-1] != '\n'
	if err != nil {
		o.fail(err)
	}
	return err
}

func (o *outlet) broken() error {
	o.queue.Lock()
	defer o.queue.Unlock()
	return o.failed
}

func (o *outlet) fail(err error) {
	o.queue.Lock()
	if o.failed == nil {
		o.failed = err
	}
	o.more.Broadcast()
	o.room.Broadcast()
	o.queue.Unlock()
}

// post queues messages of the guard's own, and waits while too many are queued.
func (o *outlet) post(messages ...[]byte) {
	o.queue.Lock()
	defer o.queue.Unlock()
	for len(o.own) >= maxAnswers && o.failed == nil {
		o.room.Wait()
	}
	o.put(messages)
}

// postNow queues without waiting; there are no more of these than calls that wait.
func (o *outlet) postNow(messages ...[]byte) {
	o.queue.Lock()
	defer o.queue.Unlock()
	o.put(messages)
}

func (o *outlet) put(messages [][]byte) {
	if o.failed == nil {
		o.own = append(o.own, messages...)
		o.more.Signal()
	}
}

// answer writes the guard's own messages as they come.
func (o *outlet) answer() {
	defer close(o.idle)
	for {
		o.queue.Lock()
		for len(o.own) == 0 && o.failed == nil {
			o.more.Wait()
		}
		over := o.failed != nil
		o.queue.Unlock()
		if over {
			return
		}
		o.mu.Lock()
		o.flush()
		o.mu.Unlock()
	}
}

// flush writes what is queued. The lock of messages is held.
func (o *outlet) flush() {
	o.queue.Lock()
	own := o.own
	o.own = nil
	o.room.Broadcast()
	over := o.failed != nil
	o.queue.Unlock()
	if over || len(own) == 0 {
		return
	}
	if o.open && o.write([]byte("\n")) != nil {
		return
	}
	for _, message := range own {
		if o.write(message) != nil {
			return
		}
	}
}

// close writes what is queued, ends the goroutine and closes the stream.
func (o *outlet) close() {
	o.mu.Lock()
	o.flush()
	o.fail(errClosed)
	_ = o.to.Close() // what was written has left; there is nobody to tell
	o.mu.Unlock()
	<-o.idle
}
