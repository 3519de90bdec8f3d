package supervise

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxCalls is how many calls are under way at once, each with a descriptor, and
	// callShare which part of this process's descriptors they may take: the resolver and the
	// relay need theirs. Other calls wait in the kernel, where each costs its own thread.
	maxCalls  = 1024
	callShare = 4
	// maxElsewhere is how many goroutines, and so threads, stand in a blocking call.
	maxElsewhere = 32
	// maxQueries is how many name queries of the server are being answered.
	maxQueries = 64
)

// supervisor is one loop that owns everything here but what mu guards. No call ever blocks
// it: what would is parked in epoll, or handed to a bounded number of goroutines.
type supervisor struct {
	Config
	listener *listener
	epoll    int
	wake     int      // eventfd: a goroutine is done
	root     identity // of this process's own root folder
	routes   *routes  // with Egress, unless it is told otherwise

	parked    map[int]*call // by the descriptor that epoll reports
	due       time.Time     // when the first parked call is to be visited, or earlier
	away      int           // calls on other goroutines
	slowSince time.Time     // when something on this machine did not answer at once
	most      int           // calls under way at once
	receiving bool
	slots     chan struct{}       // of goroutines that may block
	queries   chan struct{}       // of name queries
	elsewhere sync.WaitGroup      // for goroutines of both kinds
	busy      map[uint64]struct{} // cookies of sockets that a goroutine connects
	content   []byte              // of the message that is being sent

	mu     sync.Mutex
	done   []*call // back from their goroutines
	closed bool
}

// Serve answers calls until nobody is left whom the filter holds. It then still waits for what
// it began: a name query that it was asked to send may take as long as a name takes to
// resolve, and a path on a network file system as long as that likes. An error means that
// calls can no longer be answered: they fail with ENOSYS from then on, and the server should
// end.
func Serve(c Config) error {
	defer unix.Close(c.Listener)
	s, err := newSupervisor(c)
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	if s.routes != nil {
		defer s.routes.close() // the relay may go on asking
	}
	defer s.elsewhere.Wait()
	defer s.close()
	return s.run()
}

func newSupervisor(c Config) (*supervisor, error) {
	if c.Deny == nil || c.Egress != nil && (c.Stub == nil || c.Relay == nil) || c.Observation != nil && !c.Observation.complete() {
		return nil, errors.New("its configuration is not complete")
	}
	s := &supervisor{
		Config: c, epoll: -1, wake: -1, parked: map[int]*call{}, busy: map[uint64]struct{}{},
		slots: make(chan struct{}, maxElsewhere), queries: make(chan struct{}, maxQueries),
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	s.most = int(max(1, min(files.Cur/callShare, maxCalls))) //nolint:gosec // at most maxCalls
	if err := inspectServer(c.PID); err != nil {
		return nil, err
	}
	if c.Egress != nil {
		if err := s.tellOwn(); err != nil {
			return nil, err
		}
	}
	unix.Umask(socketMask)
	if err := s.open(); err != nil {
		s.close()
		if s.routes != nil {
			s.routes.close()
		}
		return nil, err
	}
	return s, nil
}

// tellOwn has the decider know which addresses are this machine's.
func (s *supervisor) tellOwn() (err error) {
	if s.Own != nil {
		s.Egress.SetOwn(s.Own)
		return nil
	}
	if s.routes, err = openRoutes(); err != nil {
		return fmt.Errorf("opening a socket to ask for routes: %w", err)
	}
	s.Egress.SetOwn(s.routes.own)
	return nil // where it cannot ask, it refuses; [ReachRoutes] says so before the start
}

func (s *supervisor) open() (err error) {
	if s.listener, err = newListener(s.Listener); err != nil {
		return err
	}
	if s.root, err = identify(unix.AT_FDCWD, "/"); err != nil {
		return fmt.Errorf("looking at the root folder: %w", err)
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("making an epoll descriptor: %w", err)
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("making an event descriptor: %w", err)
	}
	if err := s.watch(unix.EPOLL_CTL_ADD, s.wake, unix.EPOLLIN); err != nil {
		return err
	}
	s.receiving = true
	return s.watch(unix.EPOLL_CTL_ADD, s.Listener, unix.EPOLLIN)
}

// watch changes what epoll reports of a descriptor.
func (s *supervisor) watch(how, fd int, events uint32) error {
	err := unix.EpollCtl(s.epoll, how, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}) //nolint:gosec // a descriptor
	if err != nil {
		return fmt.Errorf("watching a descriptor: %w", err)
	}
	return nil
}

// close gives everything back. Goroutines that still stand in a blocking call find it
// closed and give back what is theirs.
func (s *supervisor) close() {
	for _, c := range s.parked {
		s.release(c)
	}
	s.mu.Lock()
	s.closed = true
	for _, c := range s.done {
		s.release(c)
	}
	s.done = nil
	for _, fd := range []int{s.epoll, s.wake} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	s.mu.Unlock()
}

func (s *supervisor) run() error {
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(s.epoll, events[:], s.timeout())
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for calls: %w", err)
		}
		for i := range max(n, 0) {
			over, err := s.event(int(events[i].Fd), events[i].Events)
			if over || err != nil {
				return err
			}
		}
		if len(s.parked) > 0 {
			if err := s.look(time.Now()); err != nil {
				return err
			}
		}
		if err := s.pace(); err != nil {
			return err
		}
	}
}

// event handles what epoll reports. It reports true when nobody is left: EPOLLHUP. An
// EPOLLERR only says that a signal came while the kernel looked.
func (s *supervisor) event(fd int, events uint32) (over bool, err error) {
	switch {
	case fd == s.Listener && events&unix.EPOLLIN != 0:
		return false, s.receive()
	case fd == s.Listener:
		return events&unix.EPOLLHUP != 0, nil
	case fd == s.wake:
		return false, s.takeBack()
	}
	// A call whose descriptor was closed and given to another one meanwhile looks once too
	// often, which does no harm.
	if c := s.parked[fd]; c != nil {
		return false, s.resume(c)
	}
	return false, nil
}

// pace stops receiving while there are too many calls under way.
func (s *supervisor) pace() error {
	want := len(s.parked)+s.away < s.most
	if want == s.receiving {
		return nil
	}
	s.receiving = want
	var events uint32
	if want {
		events = unix.EPOLLIN
	}
	return s.watch(unix.EPOLL_CTL_MOD, s.Listener, events)
}

func (s *supervisor) receive() error {
	var n notification
	ok, err := s.listener.receive(&n)
	if err != nil || !ok {
		return err
	}
	c := newCall(n)
	return s.settle(c, s.dispatch(c))
}

// dispatch starts a call. The filter sends no others, and none of another architecture or
// from where this process cannot see it; such a call is refused.
func (s *supervisor) dispatch(c *call) outcome {
	if c.arch != nativeArch() || c.pid == 0 {
		return result(unix.EPERM)
	}
	if o, observed := s.observe(c); observed {
		return o
	}
	switch c.nr {
	case unix.SYS_BIND:
		return s.bind(c)
	case unix.SYS_CONNECT:
		return s.connect(c)
	case unix.SYS_SENDTO:
		return s.sendto(c)
	case unix.SYS_SENDMSG:
		return s.sendmsg(c)
	case unix.SYS_SENDMMSG:
		return s.sendmmsg(c)
	case unix.SYS_LISTEN:
		return s.listen(c)
	}
	return result(unix.EPERM)
}

// settle does what a stage of a call asks for.
func (s *supervisor) settle(c *call, o outcome) error {
	switch o.step {
	case stepPark:
		s.park(c, o)
		return nil
	case stepElsewhere:
		s.sendAway(c, o)
		return nil
	case stepGone:
		s.release(c)
		return nil
	default:
		return s.finish(c, o)
	}
}

// finish answers and reports. Who asked is read while the call still waits, and told after
// it has gone on.
func (s *supervisor) finish(c *call, o outcome) error {
	if o.denial != nil {
		s.complete(c, o.denial)
	}
	if o.refusal != nil {
		o.refusal.name(c)
	}
	if o.answer.errno == unix.EPIPE && c.signalsPipe && s.listener.valid(c.id) {
		c.task.signal(unix.SIGPIPE)
	}
	err := s.listener.answer(c.id, o.answer)
	s.release(c)
	if o.denial != nil {
		s.Deny(*o.denial)
	}
	if o.refusal != nil {
		s.Observation.Tell(*o.refusal)
	}
	return err
}

// release gives back what a call holds.
func (s *supervisor) release(c *call) {
	if c.watched {
		// Closing alone would leave it watched, since the server holds the same socket.
		_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, c.socket.fd, nil)
	}
	delete(s.parked, c.key())
	s.letGo(c)
	c.close()
}

// letGo lets other calls connect the socket that the call was connecting elsewhere.
func (s *supervisor) letGo(c *call) {
	if c.holds != 0 {
		delete(s.busy, c.holds)
		c.holds = 0
	}
}
