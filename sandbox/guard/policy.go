package guard

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// Word is what a policy says of requests that a server makes of its host.
type Word uint8

const (
	// Deny answers the server with an error. The host is not asked.
	Deny Word = iota
	// Allow lets the request pass.
	Allow
)

// String returns the word that profiles use.
func (w Word) String() string {
	if w == Allow {
		return "allow"
	}
	return "deny"
}

// DefaultMessageSize is the largest message where nobody says otherwise, in bytes. Stock
// servers send results of some megabytes (pictures, pages); their lists have at most 82 KB.
const DefaultMessageSize = 32 << 20

// Bounds of the guard itself, whatever a policy says.
const (
	// MaxDepth is how deeply objects and lists may nest. Tool schemas of stock servers nest
	// 14 levels at most.
	MaxDepth = 64
	// MaxMembers is how many keys one object may have: telling them apart takes memory.
	MaxMembers = 1 << 16
	// MaxInFlight is how many requests of one side may wait for an answer.
	MaxInFlight = 1024
	// maxID is the longest id, in bytes.
	maxID = 1 << 10
)

// Policy says what passes. It is plain data: equal policies decide alike.
type Policy struct {
	// Listed says that Tools is the list of tools; otherwise every tool passes.
	Listed bool
	// Tools are patterns of names ([Match]). Others are neither listed nor called.
	Tools []string

	CallsPerMinute  int           // 0: no limit
	ConcurrentCalls int           // 0: no limit
	CallTimeout     time.Duration // 0: no limit
	MessageSize     int           // bytes, without the newline
	ResultSize      int           // bytes of a tool's result as it is sent; 0: no limit

	Sampling, Elicitation, Roots Word
}

// Check returns an error for a policy that cannot be kept.
func (p *Policy) Check() error {
	switch {
	case p.MessageSize < 1<<10 || p.MessageSize > 1<<40:
		return fmt.Errorf("a message size of %d bytes", p.MessageSize)
	case p.CallsPerMinute < 0, p.ConcurrentCalls < 0, p.ResultSize < 0, p.CallTimeout < 0:
		return errors.New("a negative limit")
	case p.Sampling > Allow, p.Elicitation > Allow, p.Roots > Allow:
		return errors.New("an unknown word for a server's requests")
	case !p.Listed && len(p.Tools) > 0:
		return errors.New("tools, and no word that they are the only ones")
	}
	return nil
}

// Admits tells whether the policy lets a tool be seen and called.
func (p *Policy) Admits(tool string) bool {
	if !p.Listed {
		return true
	}
	for _, pattern := range p.Tools {
		if Match(pattern, tool) {
			return true
		}
	}
	return false
}

// Match tells whether a name fits a pattern of path.Match (*, ? and [...]). Unlike in
// paths, a * stands for a slash, too: a tool's name has no folders.
func Match(pattern, name string) bool {
	const slash = "\x1f" // in no pattern of a profile
	if strings.Contains(name, slash) {
		return false
	}
	fits, err := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(name, "/", slash))
	return err == nil && fits
}

// word is what the policy says of a request by which a server asks its host, with the
// capability that a host declares for it.
func (p *Policy) word(method string) (word Word, capability string) {
	switch method {
	case "sampling/createMessage":
		return p.Sampling, "sampling"
	case "elicitation/create":
		return p.Elicitation, "elicitation"
	case "roots/list":
		return p.Roots, "roots"
	}
	return Allow, ""
}

// denies tells whether a host's capability is not to be shown to the server.
func (p *Policy) denies(capability string) bool {
	switch capability {
	case "sampling":
		return p.Sampling == Deny
	case "elicitation":
		return p.Elicitation == Deny
	case "roots":
		return p.Roots == Deny
	}
	return false
}
