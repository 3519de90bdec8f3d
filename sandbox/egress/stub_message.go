package egress

import (
	"errors"

	"golang.org/x/net/dns/dnsmessage"
)

// query is what the stub needs of a client's message.
type query struct {
	dnsmessage.Question // as spelled, for the answer

	id        uint16
	opCode    dnsmessage.OpCode
	recursion bool // wished for
	whole     bool // there is one question
}

// errNoQuery is for messages that get no answer: an answer to an answer could go round for
// ever.
var errNoQuery = errors.New("the message is not a query")

// parseQuery reads a client's message. rcode is what to answer when the question may not be
// looked at further. Sections after the question are not read: options of clients (EDNS)
// ask for nothing that the stub has.
func parseQuery(message []byte) (q query, rcode dnsmessage.RCode, err error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return q, 0, err
	}
	if header.Response {
		return q, 0, errNoQuery
	}
	q.id, q.recursion, q.opCode = header.ID, header.RecursionDesired, header.OpCode
	if header.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented, nil
	}
	if q.Question, err = p.Question(); err != nil {
		return q, dnsmessage.RCodeFormatError, nil //nolint:nilerr // the client is told
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, dnsmessage.RCodeFormatError, nil
	}
	q.whole = true
	if q.Class != dnsmessage.ClassINET {
		return q, dnsmessage.RCodeRefused, nil
	}
	return q, dnsmessage.RCodeSuccess, nil
}

// reply builds the answer to a query, of at most limit bytes. Addresses that do not fit are
// left out, and the answer marked, so that the client asks over TCP.
func (q query) reply(a answer, limit int) []byte {
	for count := len(a.addrs); ; count /= 2 {
		message, err := q.pack(a, count)
		if err != nil {
			return nil
		}
		if len(message) <= limit || count == 0 {
			return message
		}
	}
}

func (q query) pack(a answer, count int) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, 0, datagramSize), dnsmessage.Header{
		ID: q.id, Response: true, OpCode: q.opCode, Truncated: count < len(a.addrs),
		RecursionDesired: q.recursion, RecursionAvailable: true, RCode: a.rcode,
	})
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if q.whole {
		if err := b.Question(q.Question); err != nil {
			return nil, err
		}
	}
	if err := b.StartAnswers(); err != nil {
		return nil, err
	}
	// Whatever aliases led to the addresses, they are those of the name that was asked for.
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: a.ttl}
	for _, addr := range a.addrs[:count] {
		var err error
		if q.Type == dnsmessage.TypeA {
			err = b.AResource(header, dnsmessage.AResource{A: addr.As4()})
		} else {
			err = b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Finish()
}
