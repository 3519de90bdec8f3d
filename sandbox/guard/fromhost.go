package guard

import (
	"slices"
	"strconv"
	"time"
)

// Methods that the guard acts on.
const (
	methodInitialize = "initialize"
	methodList       = "tools/list"
	methodCall       = "tools/call"
	methodTaskResult = "tasks/result"
	methodTaskGet    = "tasks/get"
	methodCancelled  = "notifications/cancelled"
	methodRoots      = "notifications/roots/list_changed"
)

// fromHostMethods and fromServerMethods are what no other method may look like.
var (
	fromHostMethods   = []string{methodInitialize, methodList, methodCall, methodTaskResult, methodTaskGet, methodCancelled, methodRoots}
	fromServerMethods = []string{"sampling/createMessage", "elicitation/create", "roots/list", methodCancelled}
)

// Keys of the _meta of each request since 2026-07-28.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// hostLine judges a line from the host.
func (s *session) hostLine(r *reader, line []byte) verdict {
	var v verdict
	if blank(line) {
		return v
	}
	all, how, err := r.line(line)
	if err != nil {
		return s.badHostLine(line, how, err)
	}
	if how == batch && !s.batches() {
		v.toHost = [][]byte{failure{codeInvalid, "several messages in one list are not part of this revision of the protocol", ""}.answer(nil)}
		return v
	}
	judge(all, how, &v, func(m *message) ruling { return s.hostMessage(line, m, &v) })
	return v
}

// badHostLine answers what cannot be read.
func (s *session) badHostLine(line []byte, how form, why error) verdict {
	var v verdict
	f := failure{codeInvalid, "the message is refused: " + why.Error(), ""}
	if why.Error() == badJSON.Error() {
		f.code = codeParse
	}
	var id []byte
	if how == single {
		var asks bool
		var key string
		if id, key, asks = glimpseOf(line).found(); !asks || s.inUse(key) {
			id = nil
		}
	}
	v.toHost = [][]byte{f.answer(id)}
	return v
}

// hostTooLarge answers a message of the host's that was not kept.
func (s *session) hostTooLarge(g *glimpse) verdict {
	var v verdict
	id, key, asks := g.found()
	if !asks || s.inUse(key) {
		id = nil
	}
	f := failure{CodeRefused, "the message is larger than " + strconv.Itoa(s.policy.MessageSize) + " bytes", "message-size"}
	if id == nil {
		f.code = codeInvalid
	}
	v.toHost = [][]byte{f.answer(id)}
	return v
}

func (s *session) inUse(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fromHost.known(key)
}

func (s *session) hostMessage(line []byte, m *message, v *verdict) ruling {
	if m.role == response {
		s.mu.Lock()
		asked := s.fromServer.take(m.key)
		how, past := late(0), false
		if asked == nil {
			how, past = s.fromServer.lateAnswer(m.key)
		}
		s.mu.Unlock()
		if asked == nil && (!past || how == dropLate) {
			v.note("withheld an answer of the host's to a request that the server did not make")
			return drop
		}
		return unchanged
	}
	fail := func(f failure) ruling {
		if m.role == request {
			v.toHost = append(v.toHost, f.answer(slices.Clone(m.id.of(line))))
		} else {
			v.note("withheld a notification of the host's: " + f.message)
		}
		return drop
	}
	if k := lookAlike(m.method, fromHostMethods); k != "" && k != m.method {
		return fail(failure{codeUnknownMethod, "the method " + quoted(m.method) + " looks like \"" + k + "\"", ""})
	}
	if m.role == notification {
		return s.hostNotification(line, m, fail)
	}
	return s.hostRequest(line, m, v, fail)
}

func (s *session) hostNotification(line []byte, m *message, fail func(failure) ruling) ruling {
	switch m.method {
	case methodCancelled:
		k, err := pick(line, m.params, "requestId")
		if err != nil {
			return fail(failure{codeInvalidParams, err.Error(), ""})
		}
		if at := k["requestId"]; !at.absent() {
			if key, err := idKey(at.of(line)); err == nil {
				s.mu.Lock()
				w := s.fromHost.open[key]
				s.fromHost.giveUp(key, passLate)
				s.left(w)
				s.mu.Unlock()
			}
		}
	case methodInitialize, methodList, methodCall, methodTaskResult, methodTaskGet:
		return fail(failure{codeInvalid, "a request without an id", ""}) // a server could still act on it
	case methodRoots:
		if s.policy.Roots == Deny {
			return drop // the server was told of no roots
		}
	}
	return unchanged
}

// callKeys are the parameters that a call of a tool is read by.
var callKeys = []string{"name", "arguments", "_meta", "inputResponses", "requestState", "task"}

func (s *session) hostRequest(line []byte, m *message, v *verdict, fail func(failure) ruling) ruling {
	known := []string{"_meta"}
	switch m.method {
	case methodCancelled, methodRoots:
		return fail(failure{codeInvalid, "a notification with an id", ""})
	case methodInitialize:
		known = []string{"capabilities", "protocolVersion", "clientInfo", "_meta"}
	case methodCall:
		known = callKeys
	}
	k, err := pick(line, m.params, known...)
	if err != nil {
		return fail(failure{codeInvalidParams, err.Error(), ""})
	}
	w := &waiting{id: slices.Clone(m.id.of(line)), method: m.method}
	out := unchanged
	if m.method == methodInitialize {
		out.edits, err = s.hidden(line, k["capabilities"])
	} else if meta := k["_meta"]; !meta.absent() {
		var in keys
		if in, err = pick(line, meta, metaVersion, metaCapabilities); err == nil {
			version, _ := in.text(line, metaVersion)
			if version >= modernVersion {
				w.era = modern
			}
			out.edits, err = s.hidden(line, in[metaCapabilities])
		}
	}
	if err != nil {
		return fail(failure{codeInvalidParams, err.Error(), ""})
	}
	if m.method == methodCall {
		w.tool, _ = k.text(line, "name")
		if !s.policy.Admits(w.tool) {
			return fail(failure{codeInvalidParams, "Unknown tool: " + short(w.tool), ""})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fromHost.known(m.key):
		// With its id the answer would be taken for the other request's.
		v.toHost = append(v.toHost, failure{codeInvalid, "the id of a request is in use already", ""}.answer(nil))
		v.note("withheld a request of the host's whose id is in use already")
		return drop
	case len(s.fromHost.open) >= MaxInFlight:
		return fail(failure{CodeRefused, "too many requests wait for the server", "message"})
	}
	if m.method == methodCall {
		goesOn := !k["inputResponses"].absent() || !k["requestState"].absent()
		if f, refused := s.call(w, goesOn); refused {
			return fail(f)
		}
		s.begin(m.key, w)
	}
	s.fromHost.open[m.key] = w
	return out
}

// call counts a call, unless a limit refuses it. The lock is held.
func (s *session) call(w *waiting, goesOn bool) (failure, bool) {
	if most := s.policy.ConcurrentCalls; most > 0 && s.calls >= most {
		return failure{CodeRefused, "more than " + strconv.Itoa(most) + " tool calls at the same time", "concurrent-calls"}, true
	}
	switch {
	case goesOn && s.owed[w.tool] > 0: // the same call as before, for its person
		s.pay(w.tool)
	case s.policy.CallsPerMinute > 0:
		now := s.now()
		for len(s.recent) > 0 && now.Sub(s.recent[0]) >= time.Minute {
			s.recent = s.recent[1:]
		}
		if len(s.recent) >= s.policy.CallsPerMinute {
			return failure{CodeRefused, "more than " + strconv.Itoa(s.policy.CallsPerMinute) + " tool calls in a minute", "calls-per-minute"}, true
		}
		s.recent = append(s.recent, now)
	}
	s.calls++
	return failure{}, false
}

func (s *session) pay(tool string) {
	s.owedSum--
	if s.owed[tool]--; s.owed[tool] == 0 {
		delete(s.owed, tool)
	}
}

// owe notes that the server answered a call with a question.
func (s *session) owe(tool string) {
	if s.owedSum < MaxInFlight && len(tool) <= maxID {
		s.owedSum++
		s.owed[tool]++
	}
}

// hidden takes what the policy denies out of the capabilities that a host declares.
func (s *session) hidden(line []byte, capabilities span) ([]edit, error) {
	all := members(line, capabilities)
	whole := make([]span, len(all))
	denied := false
	for i := range all {
		whole[i] = all[i].whole
		denied = denied || s.policy.denies(all[i].name)
	}
	if _, err := pick(line, capabilities, "sampling", "elicitation", "roots"); err != nil || !denied {
		return nil, err
	}
	return without(whole, func(i int) bool { return s.policy.denies(all[i].name) }), nil
}

// short bounds a name that goes back to the one who sent it.
func short(name string) string {
	const most = 128
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
