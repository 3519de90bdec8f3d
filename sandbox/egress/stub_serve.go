package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxStreams   = 64 // TCP connections at once
	maxPipelined = 32 // questions of one connection that wait for an answer
	streamIdle   = 10 * time.Second
	streamLimit  = 1<<16 - 1
)

// handle answers a message, by calling send at most once, now or later. done is called in
// every case, when all is over.
func (s *Stub) handle(message []byte, limit int, send func([]byte), done func()) {
	asked, rcode, err := parseQuery(message)
	if err != nil {
		done()
		return
	}
	reply := func(a answer) {
		if message := asked.reply(a, limit); message != nil {
			send(message)
		}
		done()
	}
	if rcode != dnsmessage.RCodeSuccess {
		reply(answer{rcode: rcode})
		return
	}
	name, err := s.vet(wireName(asked.Name))
	switch {
	case err != nil || asked.Type == dnsmessage.TypePTR:
		reply(answer{rcode: dnsmessage.RCodeNameError})
		return
	case asked.Type != dnsmessage.TypeA && asked.Type != dnsmessage.TypeAAAA:
		reply(answer{})
		return
	}
	q := question{name, asked.Type}
	if a, known := s.atHand(q, cachedToo); known {
		reply(a)
		return
	}
	select {
	case s.inHand <- struct{}{}:
	default:
		reply(answer{rcode: dnsmessage.RCodeServerFailure})
		return
	}
	s.running.Go(func() {
		defer func() { <-s.inHand }()
		a, err := s.lookup(s.ctx, q, cachedToo)
		if err != nil {
			a = answer{rcode: dnsmessage.RCodeServerFailure}
		}
		reply(a)
	})
}

// serveDatagrams answers over UDP.
func (s *Stub) serveDatagrams(c *net.UDPConn) {
	buffer := make([]byte, 4<<10)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an error of this datagram alone
		}
		// A client that is gone, or takes nothing, has to ask again.
		send := func(message []byte) { _, _ = c.WriteToUDPAddrPort(message, from) }
		s.handle(buffer[:n], datagramSize, send, func() {})
	}
}

// acceptStreams answers over TCP.
func (s *Stub) acceptStreams(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		st := &stream{conn: c, used: time.Now()}
		if !s.streams.add(st) {
			_ = c.Close()
			continue
		}
		s.running.Go(func() {
			defer s.streams.remove(st)
			s.serveStream(st)
		})
	}
}

// stream is one TCP connection.
type stream struct {
	conn    *net.TCPConn
	writing sync.Mutex

	// Of the set's lock.
	used    time.Time
	waiting int // questions without an answer yet
}

// serveStream reads questions without waiting for the answers to earlier ones: resolvers send
// two at once, and take the answers in any order (RFC 7766 6.2.1.1).
func (s *Stub) serveStream(st *stream) {
	pending := make(chan struct{}, maxPipelined)
	var wait sync.WaitGroup
	defer wait.Wait()
	send := func(message []byte) {
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...) //nolint:gosec // reply was limited
		st.writing.Lock()
		defer st.writing.Unlock()
		// A client that reads no answers gets no further ones.
		if st.conn.SetWriteDeadline(time.Now().Add(streamIdle)) != nil {
			return
		}
		if _, err := st.conn.Write(framed); err != nil {
			_ = st.conn.Close()
		}
	}
	for {
		select {
		case pending <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		if err := st.conn.SetReadDeadline(time.Now().Add(streamIdle)); err != nil {
			return
		}
		message, err := readFramed(st.conn)
		if err != nil {
			if !errors.Is(err, io.EOF) && !s.outlasts(st, err) {
				_ = st.conn.Close()
			}
			return
		}
		wait.Add(1)
		s.streams.begin(st)
		s.handle(message, streamLimit, send, func() {
			s.streams.end(st)
			<-pending
			wait.Done()
		})
	}
}

// outlasts tells whether a connection on which nothing more can be read still gets answers:
// those that are waited for.
func (s *Stub) outlasts(st *stream, err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && s.ctx.Err() == nil && s.streams.waits(st)
}

// streamSet are the open connections, of which there are not too many: the one that has been
// idle for longest makes room.
type streamSet struct {
	mu     sync.Mutex
	all    map[*stream]struct{}
	closed bool
}

// add takes a connection in, unless none can be closed for it.
func (s *streamSet) add(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.all == nil {
		s.all = map[*stream]struct{}{}
	}
	if len(s.all) >= maxStreams {
		var oldest *stream
		for other := range s.all {
			if other.waiting == 0 && (oldest == nil || other.used.Before(oldest.used)) {
				oldest = other
			}
		}
		if oldest == nil {
			return false
		}
		_ = oldest.conn.Close()
		delete(s.all, oldest)
	}
	s.all[st] = struct{}{}
	return true
}

func (s *streamSet) remove(st *stream) {
	_ = st.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, st)
}

func (s *streamSet) begin(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.waiting++
	st.used = time.Now()
}

func (s *streamSet) end(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.waiting--
	st.used = time.Now()
}

func (s *streamSet) waits(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.waiting > 0
}

func (s *streamSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for st := range s.all {
		_ = st.conn.Close()
	}
}
