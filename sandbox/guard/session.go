package guard

import (
	"sync"
	"time"
)

// batchVersion is the one revision in which several messages may stand in one list.
const batchVersion = "2025-03-26"

// modernVersion is the first revision without initialize, in which a result names its type.
const modernVersion = "2026-07-28"

// session is what the guard knows of one conversation. Both directions use it.
type session struct {
	policy Policy
	now    func() time.Time
	// expired is told of a call that took too long, on a goroutine of its own.
	expired func(toHost, toServer []byte)

	mu         sync.Mutex
	version    string   // that initialize agreed on
	fromHost   inFlight // requests that the server has to answer
	fromServer inFlight // requests that the host has to answer
	calls      int      // of fromHost: tool calls
	recent     []time.Time
	// owed counts, for each tool, the calls that the server answered with a question: the
	// host's next call of it goes on with that one.
	owed    map[string]int
	owedSum int
	quiet   chan struct{} // closed when nobody waits for the server, once somebody asked
}

func newSession(p Policy, now func() time.Time) *session {
	return &session{policy: p, now: now, fromHost: newInFlight(), fromServer: newInFlight(), owed: map[string]int{}}
}

// verdict is what becomes of a line.
type verdict struct {
	pass             bool
	edits            []edit
	toHost, toServer [][]byte // answers of the guard's own
	notes            []string
}

func (v *verdict) note(text string) { v.notes = append(v.notes, text) }

// ruling is what becomes of one message in a line.
type ruling struct {
	pass  bool
	edits []edit
}

// drop is the ruling on a message that does not pass.
var drop = ruling{}

// unchanged is the ruling on a message that no rule changes.
var unchanged = ruling{pass: true}

// judge rules on each message of a line and puts the rulings together.
func judge(all []message, how form, v *verdict, rule func(m *message) ruling) {
	if how == single {
		r := rule(&all[0])
		v.pass, v.edits = r.pass, r.edits
		return
	}
	whole := make([]span, len(all))
	gone := make([]bool, len(all))
	var within []edit
	for i := range all {
		r := rule(&all[i])
		whole[i], gone[i] = all[i].whole, !r.pass
		v.pass = v.pass || r.pass
		within = append(within, r.edits...)
	}
	if !v.pass {
		return
	}
	// Both lists are in order; what is cut out has no edits of its own.
	for _, cut := range without(whole, func(i int) bool { return gone[i] }) {
		for len(within) > 0 && within[0].at.from < cut.at.from {
			v.edits, within = append(v.edits, within[0]), within[1:]
		}
		v.edits = append(v.edits, cut)
	}
	v.edits = append(v.edits, within...)
}

// batches tells whether lists of messages are part of the revision in use.
func (s *session) batches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == batchVersion
}

// answered takes a request of the host's that got its answer. The lock is held.
func (s *session) answered(key string) *waiting {
	w := s.fromHost.take(key)
	s.left(w)
	return w
}

// left is the end of a request of the host's. The lock is held.
func (s *session) left(w *waiting) {
	if w != nil && w.method == methodCall {
		s.calls--
	}
	s.maybeQuiet()
}

func (s *session) maybeQuiet() {
	if s.quiet != nil && len(s.fromHost.open) == 0 {
		select {
		case <-s.quiet:
		default:
			close(s.quiet)
		}
	}
}

// whenQuiet returns a channel that is closed when the host waits for no answer.
func (s *session) whenQuiet() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	s.maybeQuiet()
	return s.quiet
}

// begin starts a call's clock. The lock is held.
func (s *session) begin(key string, w *waiting) {
	if s.policy.CallTimeout <= 0 {
		return
	}
	w.timer = time.AfterFunc(s.policy.CallTimeout, func() {
		s.mu.Lock()
		current := s.fromHost.open[key] == w
		if current {
			s.fromHost.giveUp(key, dropLate)
			s.left(w)
		}
		s.mu.Unlock()
		if current {
			text := "the tool " + quoted(w.tool) + " took longer than " + s.policy.CallTimeout.String()
			s.expired(
				failure{CodeRefused, text, "call-timeout"}.answer(w.id),
				cancellation(w.id, "it took longer than "+s.policy.CallTimeout.String()),
			)
		}
	})
}

// stop ends all clocks.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.fromHost.open {
		if w.timer != nil {
			w.timer.Stop()
		}
	}
}
