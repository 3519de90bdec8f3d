package guard

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Streams are the four ends that a relay works on. It closes each when its part is over.
type Streams struct {
	FromHost   io.ReadCloser
	ToHost     io.WriteCloser
	FromServer io.ReadCloser
	ToServer   io.WriteCloser
}

// Relay is one conversation between a host and a server.
type Relay struct {
	streams          Streams
	session          *session
	notes            *notes
	toHost, toServer *outlet
	hostIn, serverIn *lines
	left, drained    chan struct{}
}

// patience is how long a server may go on with what it was asked when its host has ended
// standard input, before it counts as one that stays.
const patience = 30 * time.Second

// New makes a relay. say is told, on any goroutine, what was withheld: one line each, safe for
// a terminal, and at most about one in a second. It must not wait. The error is the policy's,
// or that there is no room for a message; the streams stay open then.
func New(p Policy, s Streams, say func(string)) (*Relay, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("making the guard: %w", err)
	}
	hostIn, err := newLines(s.FromHost, p.MessageSize)
	if err != nil {
		return nil, fmt.Errorf("making the guard: %w", err)
	}
	serverIn, err := newLines(s.FromServer, p.MessageSize)
	if err != nil {
		hostIn.close()
		return nil, fmt.Errorf("making the guard: %w", err)
	}
	r := &Relay{
		streams: s, session: newSession(p, time.Now), notes: &notes{say: say, now: time.Now},
		hostIn: hostIn, serverIn: serverIn, left: make(chan struct{}), drained: make(chan struct{}),
	}
	r.session.expired = func(toHost, toServer []byte) {
		r.toHost.postNow(toHost)
		r.toServer.postNow(toServer)
	}
	return r, nil
}

// Start begins to relay, on goroutines of its own.
func (r *Relay) Start() {
	r.toHost, r.toServer = newOutlet(r.streams.ToHost), newOutlet(r.streams.ToServer)
	go r.serveHost()
	go r.serveServer()
}

// HostLeft is closed when the host has ended its input and waits for no answer, or has waited
// long enough: the server's input has ended by then, and a server that stays is to be ended.
func (r *Relay) HostLeft() <-chan struct{} { return r.left }

// Drained is closed when the server's output has ended and all of it is with the host.
func (r *Relay) Drained() <-chan struct{} { return r.drained }

// Delivered is how many bytes the host has taken.
func (r *Relay) Delivered() int64 { return r.toHost.written.Load() }

// serveHost relays from the host until one of both ends it.
func (r *Relay) serveHost() {
	defer r.hostIn.close()
	var parser reader
	for {
		line, err := r.hostIn.next()
		var v verdict
		var lost *tooLarge
		switch {
		case errors.As(err, &lost):
			v = r.session.hostTooLarge(lost.seen)
		case err != nil:
			r.endHost()
			return
		default:
			v = r.session.hostLine(&parser, line)
		}
		if !r.carryOut(&v, line, r.toServer) {
			r.endHost() // the server reads no more, which the host has to see
			return
		}
	}
}

func (r *Relay) endHost() {
	// Not after the close below: a server that does not read must not hold this up.
	go func() {
		defer close(r.left)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-r.session.whenQuiet():
		case <-r.drained:
		case <-timer.C:
		}
	}()
	_ = r.streams.FromHost.Close() // read to its end, or of no use any more
	r.toServer.close()
}

// serveServer relays from the server until one of both ends it.
func (r *Relay) serveServer() {
	defer r.serverIn.close()
	defer close(r.drained)
	var parser reader
	for {
		line, err := r.serverIn.next()
		var v verdict
		var lost *tooLarge
		switch {
		case errors.As(err, &lost):
			v = r.session.serverTooLarge(lost.seen, lost.size)
		case err != nil:
			r.endServer()
			return
		default:
			v = r.session.serverLine(&parser, line)
		}
		if !r.carryOut(&v, line, r.toHost) {
			r.endServer() // the host reads no more, which the server has to see
			return
		}
	}
}

func (r *Relay) endServer() {
	r.session.stop()
	_ = r.streams.FromServer.Close()
	r.toHost.close()
}

// carryOut does what a verdict says, and tells whether the conversation can go on in that
// direction.
func (r *Relay) carryOut(v *verdict, line []byte, on *outlet) bool {
	for _, text := range v.notes {
		r.notes.tell(text)
	}
	if len(v.toHost) > 0 {
		r.toHost.post(v.toHost...)
	}
	if len(v.toServer) > 0 {
		r.toServer.post(v.toServer...)
	}
	if v.pass {
		return on.pass(line, v.edits) == nil
	}
	return on.broken() == nil
}
