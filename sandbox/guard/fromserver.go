package guard

import (
	"slices"
	"strconv"
	"strings"
)

// serverLine judges a line from the server.
func (s *session) serverLine(r *reader, line []byte) verdict {
	var v verdict
	all, how, err := r.line(line)
	if err != nil {
		s.badServerLine(line, how, err, &v)
		return v
	}
	if how == batch && !s.batches() {
		v.note("withheld several messages in one list: they are not part of this revision of the protocol")
		for i := range all {
			if all[i].role == response {
				s.failPending(all[i].key, "the server answered in a list of messages", "message", &v)
			}
		}
		return v
	}
	judge(all, how, &v, func(m *message) ruling { return s.serverMessage(line, m, &v) })
	return v
}

// badServerLine deals with a line that is no message, or one that cannot be trusted to mean
// the same to everybody.
func (s *session) badServerLine(line []byte, how form, why error, v *verdict) {
	g := glimpseOf(line)
	if how == single && !g.version || why.Error() == noMessage.Error() {
		v.note("server wrote no message: " + quoted(strings.TrimRight(string(line[:min(len(line), 4096)]), "\r\n")))
	} else {
		v.note("withheld a message of the server's: " + why.Error())
	}
	if _, key, asks := g.found(); key != "" && !asks && how == single {
		s.failPending(key, "the server's answer is withheld: "+why.Error(), "message", v)
	}
}

// serverTooLarge deals with a message of the server's that was not kept.
func (s *session) serverTooLarge(g *glimpse, size int64) verdict {
	var v verdict
	v.note("withheld a message of the server's: " + strconv.FormatInt(size, 10) + " bytes, and message-size allows " + strconv.Itoa(s.policy.MessageSize))
	if id, key, asks := g.found(); asks {
		v.toServer = [][]byte{failure{CodeRefused, "the message is larger than " + strconv.Itoa(s.policy.MessageSize) + " bytes", "message-size"}.answer(id)}
	} else if key != "" {
		s.failPending(key, "the server's answer is larger than "+strconv.Itoa(s.policy.MessageSize)+" bytes", "message-size", &v)
	}
	return v
}

// failPending answers a request of the host's in place of the server.
func (s *session) failPending(key, text, reason string, v *verdict) {
	s.mu.Lock()
	w := s.answered(key)
	s.mu.Unlock()
	if w != nil {
		v.toHost = append(v.toHost, failure{CodeRefused, text, reason}.answer(w.id))
	}
}

func (s *session) serverMessage(line []byte, m *message, v *verdict) ruling {
	switch m.role {
	case request:
		return s.serverRequest(line, m, v)
	case notification:
		return s.serverNotification(line, m, v)
	case response:
	}
	s.mu.Lock()
	w := s.answered(m.key)
	how, past := late(0), false
	if w == nil {
		how, past = s.fromHost.lateAnswer(m.key)
	}
	s.mu.Unlock()
	switch {
	case w != nil:
		return s.answer(line, m, w, v)
	case past && how == passLate:
		return unchanged
	case past:
		return drop
	}
	v.note("withheld an answer of the server's that nobody waits for, with the id " + quoted(string(m.id.of(line))))
	return drop
}

func (s *session) serverRequest(line []byte, m *message, v *verdict) ruling {
	id := slices.Clone(m.id.of(line))
	refuse := func(f failure) ruling {
		v.toServer = append(v.toServer, f.answer(id))
		return drop
	}
	if k := lookAlike(m.method, fromServerMethods); k != "" && k != m.method {
		v.note("withheld a request of the server's: the method " + quoted(m.method) + " looks like \"" + k + "\"")
		return refuse(failure{codeUnknownMethod, "Method not found", ""})
	}
	if m.method == methodCancelled {
		return refuse(failure{codeInvalid, "a notification with an id", ""})
	}
	if word, capability := s.policy.word(m.method); word == Deny && capability != "" {
		return refuse(failure{codeUnknownMethod, "the host does not offer " + capability, capability})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fromServer.known(m.key):
		v.note("withheld a request of the server's whose id is in use already")
		return drop
	case len(s.fromServer.open) >= MaxInFlight:
		return refuse(failure{CodeRefused, "too many requests wait for the host", "message"})
	}
	s.fromServer.open[m.key] = &waiting{id: id, method: m.method}
	return unchanged
}

func (s *session) serverNotification(line []byte, m *message, v *verdict) ruling {
	if k := lookAlike(m.method, fromServerMethods); k != "" && k != m.method {
		v.note("withheld a notification of the server's: the method " + quoted(m.method) + " looks like \"" + k + "\"")
		return drop
	}
	if _, capability := s.policy.word(m.method); capability != "" {
		v.note("withheld a request of the server's without an id: " + m.method)
		return drop
	}
	if m.method != methodCancelled {
		return unchanged
	}
	k, err := pick(line, m.params, "requestId")
	if err != nil {
		v.note("withheld a notification of the server's: " + err.Error())
		return drop
	}
	if at := k["requestId"]; !at.absent() {
		if key, err := idKey(at.of(line)); err == nil {
			s.mu.Lock()
			s.fromServer.giveUp(key, passLate)
			s.mu.Unlock()
		}
	}
	return unchanged
}

// resultKeys are what any result is read by. A server of 2026-07-28 asks its host in the
// answer to a request (InputRequiredResult).
var resultKeys = []string{"resultType", "inputRequests", "requestState", "tools", "nextCursor", "protocolVersion", "task"}

// answer rules on the answer to a request that the host made.
func (s *session) answer(line []byte, m *message, w *waiting, v *verdict) ruling {
	if m.result.absent() {
		return unchanged // an error
	}
	refuse := func(text, reason string) ruling {
		v.note("withheld the answer to " + quoted(w.method) + ": " + text)
		v.toHost = append(v.toHost, failure{CodeRefused, text, reason}.answer(w.id))
		return drop
	}
	k, err := pick(line, m.result, resultKeys...)
	if err != nil {
		return refuse(err.Error(), "message")
	}
	for _, at := range []span{m.result, k["task"]} { // a task holds its questions itself
		capability, err := s.asks(line, at)
		if err != nil {
			return refuse(err.Error(), "message")
		}
		if capability != "" {
			return refuse("the server asks for "+capability+", which is denied", capability)
		}
	}
	switch w.method {
	case methodInitialize:
		version, _ := k.text(line, "protocolVersion")
		s.mu.Lock()
		s.version = version
		s.mu.Unlock()
	case methodList:
		edits, err := s.list(line, k["tools"], v)
		if err != nil {
			return refuse(err.Error(), "message")
		}
		return ruling{true, edits}
	case methodCall, methodTaskResult, methodTaskGet:
		if kind, _ := k.text(line, "resultType"); w.method == methodCall && kind == "input_required" {
			s.mu.Lock()
			s.owe(w.tool)
			s.mu.Unlock()
		}
		if most := s.policy.ResultSize; most > 0 && m.result.size() > most {
			text := "the result has " + strconv.Itoa(m.result.size()) + " bytes, and result-size allows " + strconv.Itoa(most)
			if w.method == methodTaskGet {
				return refuse(text, "result-size")
			}
			return ruling{true, []edit{{m.result, failedResult("stockade: "+text, w.era)}}}
		}
	}
	return unchanged
}

// asks returns the capability that a result asks for and the policy denies; "" for none.
func (s *session) asks(line []byte, result span) (string, error) {
	k, err := pick(line, result, "inputRequests")
	if err != nil {
		return "", err
	}
	for _, one := range members(line, k["inputRequests"]) {
		in, err := pick(line, one.value, "method", "params")
		if err != nil {
			return "", err
		}
		method, _ := in.text(line, "method")
		if known := lookAlike(method, fromServerMethods); known != "" && known != method {
			return "", refusal("the method " + quoted(method) + " looks like \"" + known + "\"")
		}
		if word, capability := s.policy.word(method); word == Deny && capability != "" {
			return capability, nil
		}
	}
	return "", nil
}

// toolKeys are what a host reads a tool's definition by.
var toolKeys = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta"}

// list takes tools out of a list: those that the policy does not admit, those that cannot be
// told apart by their names, and those that readers could understand differently.
func (s *session) list(line []byte, tools span, v *verdict) ([]edit, error) {
	if tools.absent() || tools.kind(line) != '[' {
		return nil, refusal("the list of tools is no list")
	}
	all := elements(line, tools)
	gone := make([]bool, len(all))
	first := make(map[string]int, len(all))
	for i, at := range all {
		k, err := pick(line, at, toolKeys...)
		name, named := k.text(line, "name")
		switch {
		case err != nil:
			v.note("withheld a tool: " + err.Error())
			gone[i] = true
		case !named:
			v.note("withheld a tool that has no name")
			gone[i] = true
		case !s.policy.Admits(name):
			gone[i] = true
		default:
			before, twice := first[name]
			if twice {
				v.note("withheld the tools " + quoted(name) + ": several in one list have that name")
				gone[i], gone[before] = true, true
			} else {
				first[name] = i
			}
		}
	}
	return without(all, func(i int) bool { return gone[i] }), nil
}
