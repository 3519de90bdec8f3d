package nettest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// typeHTTPS is the type of service bindings (RFC 9460), which browsers ask for.
const typeHTTPS dnsmessage.Type = 65

// largestDatagram is what every client takes without EDNS (RFC 1035, 4.2.1).
const largestDatagram = 512

// nameServer answers with authority for [zones] and the hosts of tests, and refuses the rest.
type nameServer struct {
	records map[string]record
	journal *journal
	turns   *turns
	hosts   *hosts
}

func (s *nameServer) serveUDP(conn *net.UDPConn, door doorway) {
	buffer := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		s.journal.hit(door, Hit{Event: Received, From: from})
		answer, err := s.answer(buffer[:size], "udp")
		if err != nil {
			continue
		}
		// A client that is gone needs no answer.
		_, _ = conn.WriteToUDPAddrPort(answer, from)
	}
}

func (s *nameServer) serveTCP(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.converse(conn)
	}
}

// converse answers the messages of one connection, each behind its length in two bytes
// (RFC 1035, 4.2.2).
func (s *nameServer) converse(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the client is done with it
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer, err := s.answer(query, "tcp")
		if err != nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer))) //nolint:gosec // a hundred addresses fit
		if _, err := conn.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

func typeName(t dnsmessage.Type) string {
	switch t {
	case dnsmessage.TypeA:
		return "A"
	case dnsmessage.TypeAAAA:
		return "AAAA"
	case typeHTTPS:
		return "HTTPS"
	default:
		return "TYPE" + strconv.Itoa(int(t))
	}
}

// answer reads a query, writes it down and answers it.
func (s *nameServer) answer(query []byte, transport string) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	if header.Response {
		return nil, errors.New("an answer is no question")
	}
	exact := strings.TrimSuffix(question.Name.String(), ".")
	name := strings.ToLower(exact)
	s.journal.query(Query{Name: name, Type: typeName(question.Type), Transport: transport, Exact: exact})

	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	s.fill(&reply, name, transport)
	answer, err := reply.Pack()
	if err == nil && transport == "udp" && len(answer) > largestDatagram {
		reply.Truncated, reply.Answers = true, nil
		return reply.Pack()
	}
	return answer, err
}

// fill adds the records for a name, following its aliases.
func (s *nameServer) fill(reply *dnsmessage.Message, name, transport string) {
	question := reply.Questions[0]
	if _, added := s.hosts.find(name); !added && !hasAuthority(name) {
		reply.RCode = dnsmessage.RCodeNameError
		return
	}
	owner := question.Name
	r, known := s.find(name, question.Type)
	for known && r.alias != "" {
		target := dnsmessage.MustNewName(r.alias + ".")
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, TTL: 60},
			Body:   &dnsmessage.CNAMEResource{CNAME: target},
		})
		owner = target
		r, known = s.find(r.alias, question.Type)
	}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if r.tcpOnly && transport == "udp" {
		reply.Truncated = true
		return
	}
	for _, address := range r.addresses {
		header := dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, TTL: 60}
		if name == RebindName {
			header.TTL = 0
		}
		switch {
		case question.Type == dnsmessage.TypeA && address.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case question.Type == dnsmessage.TypeAAAA && !address.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	if len(reply.Answers) == 0 {
		reply.Authorities = append(reply.Authorities, authority(name))
	}
}

func (s *nameServer) find(name string, kind dnsmessage.Type) (record, bool) {
	if name == RebindName {
		return s.turns.next(kind), true
	}
	if added, known := s.hosts.find(name); known {
		return added.record, true
	}
	return findRecord(s.records, name)
}

// authority is the start of the zone, which says how long "no" holds (RFC 2308).
func authority(name string) dnsmessage.Resource {
	zone := name
	for _, z := range zones {
		if strings.HasSuffix(name, z) {
			zone = z
		}
	}
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(zone + "."), Class: dnsmessage.ClassINET, TTL: 60},
		Body: &dnsmessage.SOAResource{
			NS: dnsmessage.MustNewName("ns." + zone + "."), MBox: dnsmessage.MustNewName("host." + zone + "."),
			Serial: 1, Refresh: 60, Retry: 60, Expire: 60, MinTTL: 60,
		},
	}
}
