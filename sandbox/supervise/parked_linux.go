package supervise

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookInterval is how often a parked call is looked at: is its thread alive, and has it
	// a signal to take. A killable wait hides both from a thread that would have left a
	// blocking call by itself. There is more time between looks when many calls wait, so
	// that looking never takes more than a few per cent of a core.
	lookInterval = 50 * time.Millisecond
	lookSpread   = time.Millisecond // more for each call that waits

	// lookAgain confirms a signal that is sent to a process and not to a thread: another
	// thread that is running would have taken it by then.
	lookAgain = 2 * time.Millisecond
	// perhapsLooks is how many looks in a row must find a signal that another thread could
	// take, until the call is interrupted.
	perhapsLooks = 5

	// retryFirst and retryMost bound the pause before a call is tried again when the socket
	// cannot tell when it is worth it.
	retryFirst = time.Millisecond
	retryMost  = 50 * time.Millisecond
)

// park leaves a call until the socket or the time wakes it.
func (s *supervisor) park(c *call, o outcome) {
	now := time.Now()
	if c.lookAt.IsZero() {
		c.lookAt = now.Add(lookInterval)
	}
	c.waiting, c.tryAt = o, time.Time{}
	if o.wake.after > 0 {
		c.tryAt = now.Add(o.wake.after)
	}
	if at := c.next(); len(s.parked) == 0 || at.Before(s.due) {
		s.due = at
	}
	s.parked[c.key()] = c
	if !o.wake.writable {
		return
	}
	how := unix.EPOLL_CTL_MOD
	if !c.watched {
		how = unix.EPOLL_CTL_ADD
	}
	c.watched = s.watch(how, c.socket.fd, unix.EPOLLOUT|unix.EPOLLONESHOT) == nil
	if !c.watched {
		// No memory, or the user's limit of watches. Waiting for it by time works too.
		c.tryAt = now.Add(retryMost)
		s.due = now
	}
}

// resume goes on with a parked call.
func (s *supervisor) resume(c *call) error {
	delete(s.parked, c.key())
	return s.settle(c, c.waiting.then())
}

// timeout is how long epoll may wait, in milliseconds: for ever when no call waits.
func (s *supervisor) timeout() int {
	if len(s.parked) == 0 {
		return -1
	}
	return int(max(0, time.Until(s.due)+time.Millisecond-1) / time.Millisecond)
}

// next is when a parked call wants to be visited.
func (c *call) next() time.Time {
	at := c.lookAt
	for _, other := range [...]time.Time{c.tryAt, c.waiting.wake.limit} {
		if !other.IsZero() && other.Before(at) {
			at = other
		}
	}
	return at
}

// look visits the parked calls whose time has come, and notes when the next one's is.
func (s *supervisor) look(now time.Time) error {
	if s.due.After(now) {
		return nil
	}
	var ready []*call
	for _, c := range s.parked {
		if !c.next().After(now) {
			ready = append(ready, c)
		}
	}
	for _, c := range ready {
		if s.parked[c.key()] != c {
			continue
		}
		if err := s.visit(c, now); err != nil {
			return err
		}
	}
	s.due = now.Add(lookInterval)
	for _, c := range s.parked {
		if at := c.next(); at.Before(s.due) {
			s.due = at
		}
	}
	return nil
}

func (s *supervisor) visit(c *call, now time.Time) error {
	if !c.lookAt.After(now) {
		c.lookAt = now.Add(lookInterval + lookSpread*time.Duration(len(s.parked)))
		why, interrupted := s.interrupted(c)
		if !s.listener.valid(c.id) {
			s.release(c)
			return nil
		}
		if interrupted {
			return s.finish(c, outcome{answer: c.waiting.stop(why)})
		}
		if c.looks == 1 {
			c.lookAt = now.Add(lookAgain)
		}
	}
	if limit := c.waiting.wake.limit; !limit.IsZero() && !limit.After(now) {
		return s.finish(c, outcome{answer: c.waiting.stop(stoppedByLimit)})
	}
	if !c.tryAt.IsZero() && !c.tryAt.After(now) {
		return s.resume(c)
	}
	return nil
}

// interrupted tells whether a signal would have ended the thread's wait.
//
// The kernel gives a signal that is sent to a process to one thread that does not block it,
// the first thread if that one may (complete_signal, kernel/signal.c, Linux 6.18). Only that
// thread is marked to take it, and only a marked thread may be told to restart: any other
// would see errno 512. For a thread that may not be the marked one EINTR has to do.
func (s *supervisor) interrupted(c *call) (stopped, bool) {
	w, err := c.task.signals()
	if err != nil {
		return 0, false // it is gone, or cannot be interrupted
	}
	switch {
	case w.own:
		return stoppedBySignal, true
	case !w.shared:
		c.looks = 0
		return 0, false
	}
	c.looks++
	if w.first || w.alone {
		return stoppedBySignal, c.looks > 1
	}
	return stoppedPerhaps, c.looks >= perhapsLooks
}

// sendAway runs the blocking part of a call on another goroutine.
func (s *supervisor) sendAway(c *call, o outcome) {
	s.away++
	c.waiting = o
	s.elsewhere.Go(func() {
		s.slots <- struct{}{}
		o.block()
		<-s.slots
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			c.close()
			return
		}
		s.done = append(s.done, c)
		one := [8]byte{1}
		// It cannot fail: the counter never comes near its end.
		_, _ = unix.Write(s.wake, one[:])
	})
}

// takeBack goes on with calls that were elsewhere.
func (s *supervisor) takeBack() error {
	var count [8]byte
	if _, err := unix.Read(s.wake, count[:]); err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("reading the event descriptor: %w", err)
	}
	s.mu.Lock()
	back := s.done
	s.done = nil
	s.mu.Unlock()
	for _, c := range back {
		s.away--
		if !s.listener.valid(c.id) {
			s.release(c)
			continue
		}
		if err := s.settle(c, c.waiting.then()); err != nil {
			return err
		}
	}
	return nil
}
