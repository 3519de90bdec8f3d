package egress

import (
	"strconv"
	"strings"
	"time"
)

// Denial is one refusal, for stderr and for the log.
type Denial struct {
	Time    time.Time `json:"time"`
	Profile string    `json:"profile"`
	Program string    `json:"program"` // of the process that asked, as it calls itself: not to be trusted
	PID     int       `json:"pid"`     // of that process, outside
	Call    string    `json:"call"`    // "connect", "dns", "relay", "send", "unix", "listen"
	// Asked is what was asked for: "tcp 203.0.113.9:443", "name evil.example", "server name
	// evil.example on 203.0.113.9:443", "unix /run/docker.sock". It may hold the jail's own words.
	Asked string `json:"asked"`
	Rule  string `json:"rule"`           // as in [Decision]
	Hint  string `json:"hint,omitempty"` // as in [Decision]
}

// String returns one printable line without the time, the profile and the hint. Whatever a
// server puts into names and paths, the line neither ends early nor moves a terminal's cursor.
func (d Denial) String() string {
	var b strings.Builder
	b.WriteString("refused ")
	b.WriteString(printable(d.Asked))
	if d.Program != "" {
		b.WriteString(" from ")
		b.WriteString(printable(d.Program))
		b.WriteString(" (")
		b.WriteString(strconv.Itoa(d.PID))
		b.WriteString(")")
	}
	if d.Rule != "" {
		b.WriteString(": ")
		b.WriteString(printable(d.Rule))
	}
	return b.String()
}

// printable returns text as it is when it is short and printable ASCII, else quoted.
func printable(text string) string {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(text) > 300 || strings.ContainsFunc(text, odd) {
		return quoted(text)
	}
	return text
}
