package egress

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	totalWait   = 10 * time.Second // for a question, over all servers
	serverWait  = 5 * time.Second  // for one server, one time; the default of resolv.conf(5)
	serverTries = 2                // of each server

	maxAliases   = 16  // that an answer may lead through
	maxRecords   = 512 // of an answer that are looked at
	maxTTL       = 300 // seconds
	datagramSize = 512 // of an answer over UDP without EDNS, RFC 1035 4.2.1
)

// question is what may be asked of a name.
type question struct {
	name string // in the form that rules hold
	kind dnsmessage.Type
}

// wire is the question as a message holds it.
func (q question) wire() (dnsmessage.Question, error) {
	name, err := dnsmessage.NewName(q.name + ".")
	return dnsmessage.Question{Name: name, Type: q.kind, Class: dnsmessage.ClassINET}, err
}

// build returns a query that holds nothing but the question: no options, no flags but the
// wish for recursion, no spelling of the client's.
func (q question) build(id uint16) ([]byte, error) {
	wire, err := q.wire()
	if err != nil {
		return nil, err
	}
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{wire},
	}
	return message.Pack()
}

// answer is what is known of a question.
type answer struct {
	addrs []netip.Addr
	ttl   uint32 // seconds
	rcode dnsmessage.RCode
}

// upstream asks the name servers of the machine.
type upstream struct {
	servers []netip.AddrPort
	good    atomic.Uint32 // index of the server that answered last
}

// ask puts a question to the servers, the one that answered last first, each twice, until
// one of them says something about the name.
func (u *upstream) ask(ctx context.Context, q question) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, totalWait)
	defer cancel()
	if len(u.servers) == 0 {
		return answer{}, fmt.Errorf("asking for %q: there is no name server", q.name)
	}
	tries := serverTries * len(u.servers)
	each := min(serverWait, totalWait/time.Duration(tries))
	first := int(u.good.Load())
	var last error
	for i := range tries {
		index := (first + i) % len(u.servers)
		a, err := askServer(ctx, u.servers[index], q, each)
		if err == nil {
			u.good.Store(uint32(index)) //nolint:gosec // an index of at most a few servers
			return a, nil
		}
		last = fmt.Errorf("asking name server %s for %q: %w", u.servers[index], q.name, err)
		if ctx.Err() != nil {
			break
		}
	}
	return answer{}, last
}

// askServer asks one server over UDP, and over TCP when the answer does not fit.
func askServer(ctx context.Context, server netip.AddrPort, q question, wait time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var seed [2]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return answer{}, err
	}
	id := binary.BigEndian.Uint16(seed[:])
	query, err := q.build(id)
	if err != nil {
		return answer{}, err
	}
	a, err := askOver(ctx, "udp", server, query, func(c net.Conn) (answer, error) {
		buffer := make([]byte, 4<<10)
		for {
			n, err := c.Read(buffer)
			if err != nil {
				return answer{}, err
			}
			// Others than the server cannot send here but by forging its address; they
			// have to know the port and the id. What does not match is passed over.
			a, err := parseAnswer(buffer[:n], id, q)
			if !errors.Is(err, errForeign) {
				return a, err
			}
		}
	})
	if !errors.Is(err, errTruncated) {
		return a, err
	}
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...) //nolint:gosec // a query has at most 271 bytes
	return askOver(ctx, "tcp", server, framed, func(c net.Conn) (answer, error) {
		message, err := readFramed(c)
		if err != nil {
			return answer{}, err
		}
		return parseAnswer(message, id, q)
	})
}

// askOver sends a query on a connection of its own, so from a port of its own, and reads the
// answer.
func askOver(ctx context.Context, network string, server netip.AddrPort, query []byte, read func(net.Conn) (answer, error)) (answer, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(query); err != nil {
		return answer{}, err
	}
	return read(c)
}

// readFramed reads a message that is led by its length (RFC 1035 4.2.2).
func readFramed(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, message)
	return message, err
}

var (
	errForeign   = errors.New("not the answer to this question")
	errTruncated = errors.New("the answer is truncated")
)

// parseAnswer reads the addresses out of a server's answer, through aliases that the answer
// itself explains. An error is errForeign when the message cannot be the answer at all.
func parseAnswer(message []byte, id uint16, q question) (answer, error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.ID != id || !header.Response || header.OpCode != 0 {
		return answer{}, errForeign
	}
	asked, err := p.Question()
	if err != nil || wireName(asked.Name) != q.name || asked.Type != q.kind || asked.Class != dnsmessage.ClassINET {
		return answer{}, errForeign
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return answer{}, errForeign
	}
	switch {
	case header.Truncated:
		return answer{}, errTruncated
	case header.RCode == dnsmessage.RCodeNameError:
		return answer{rcode: header.RCode}, nil
	case header.RCode != dnsmessage.RCodeSuccess:
		return answer{}, fmt.Errorf("the server says %s", strings.TrimPrefix(header.RCode.String(), "RCode"))
	}
	records, err := readRecords(&p, q.kind)
	if err != nil {
		return answer{}, err
	}
	name, ttl := q.name, uint32(maxTTL)
	for range maxAliases {
		alias, is := records.aliases[name]
		if !is {
			break
		}
		name, ttl = alias.target, min(ttl, alias.ttl)
	}
	a := answer{ttl: ttl}
	for _, r := range records.addrs {
		if r.owner == name {
			a.addrs = append(a.addrs, r.addr)
			a.ttl = min(a.ttl, r.ttl)
		}
	}
	return a, nil
}

// aliasRecord and addressRecord are what is kept of an answer section.
type aliasRecord struct {
	target string
	ttl    uint32
}

type addressRecord struct {
	owner string
	addr  netip.Addr
	ttl   uint32
}

type answerRecords struct {
	aliases map[string]aliasRecord
	addrs   []addressRecord
}

// readRecords reads the answer section. Records of other types and classes are skipped.
func readRecords(p *dnsmessage.Parser, kind dnsmessage.Type) (answerRecords, error) {
	records := answerRecords{}
	for range maxRecords {
		header, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		owner := wireName(header.Name)
		switch {
		case header.Class != dnsmessage.ClassINET || header.Type != kind && header.Type != dnsmessage.TypeCNAME:
			err = p.SkipAnswer()
		case header.Type == dnsmessage.TypeCNAME:
			var r dnsmessage.CNAMEResource
			if r, err = p.CNAMEResource(); err == nil {
				if records.aliases == nil {
					records.aliases = map[string]aliasRecord{}
				}
				records.aliases[owner] = aliasRecord{wireName(r.CNAME), header.TTL}
			}
		case kind == dnsmessage.TypeA:
			var r dnsmessage.AResource
			if r, err = p.AResource(); err == nil {
				records.addrs = append(records.addrs, addressRecord{owner, netip.AddrFrom4(r.A), header.TTL})
			}
		default:
			var r dnsmessage.AAAAResource
			if r, err = p.AAAAResource(); err == nil {
				records.addrs = append(records.addrs, addressRecord{owner, netip.AddrFrom16(r.AAAA), header.TTL})
			}
		}
		if err != nil {
			return records, err
		}
	}
	return records, nil
}

// wireName is a name as it compares: lower case, without the final dot.
func wireName(name dnsmessage.Name) string {
	return strings.TrimSuffix(asciiLower(name.Data[:name.Length]), ".")
}

func asciiLower(b []byte) string {
	lower := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return string(lower)
}
