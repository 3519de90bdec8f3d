package egress

import (
	"bytes"
	"errors"
	"strings"
)

// firstBytes is the most that a client may send before it has said which server it wants:
// a whole ClientHello, or the head of a request.
const firstBytes = 64 << 10

// speech is what a client speaks on a relayed connection. It is told from the bytes alone:
// a port proves nothing.
type speech uint8

const (
	untold      speech = iota // too few bytes to say
	speaksTLS                 // a handshake record
	speaksHTTP1               // a request line begins
	speaksHTTP2               // HTTP/2 without TLS, by prior knowledge
	unknown                   // nothing that names a server
)

// http2Preface begins HTTP/2 connections (RFC 9113, 3.4).
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// sniff tells what begins with these bytes. Methods begin with a capital letter: all that
// are registered do, and what follows is checked when the request line is there.
func sniff(first []byte) speech {
	switch {
	case len(first) == 0:
		return untold
	case first[0] == recordHandshake:
		return speaksTLS
	case bytes.HasPrefix(first, []byte(http2Preface)):
		return speaksHTTP2
	case strings.HasPrefix(http2Preface, string(first)):
		return untold
	case 'A' <= first[0] && first[0] <= 'Z':
		return speaksHTTP1
	}
	return unknown
}

// errMore says that what was read so far is the beginning of something whole.
var errMore = errors.New("more bytes are needed")

// refusal is why a client may not have the connection. It is told to the client where the
// protocol has words for it, and reported.
type refusal struct {
	name string // of the server, when the client sent a readable one
	rule string
	hint string // "" when the address that was connected to can be named instead
}

func (r *refusal) Error() string { return r.rule }

func refuse(rule string) *refusal { return &refusal{rule: rule} }

// serverName brings a name that a client sent to the form that rules hold, or refuses it:
// an address, in any spelling, and what is no host name say nothing about who is meant.
func serverName(text string) (string, error) {
	name, problem := canonicalName(text)
	if problem != "" {
		return "", refuse("the server name " + quoted(text) + " " + problem)
	}
	return name, nil
}
