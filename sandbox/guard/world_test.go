package guard_test

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/sandbox/guard"
)

// wait bounds what should come at once.
const wait = 20 * time.Second

// end is one side's end of a conversation.
type end struct {
	t    *testing.T
	in   *os.File
	out  *os.File
	read *bufio.Reader
}

// world is a relay between two ends.
type world struct {
	host, server *end
	relay        *guard.Relay

	mu    sync.Mutex
	notes []string
}

func open() guard.Policy { return guard.Policy{MessageSize: guard.DefaultMessageSize} }

// everything is a policy of which no rule fires.
func everything() guard.Policy {
	p := open()
	p.Sampling, p.Elicitation, p.Roots = guard.Allow, guard.Allow, guard.Allow
	return p
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func newWorld(t *testing.T, p guard.Policy) *world {
	t.Helper()
	hostOut, hostIn := pipe(t)
	toHost, fromGuard := pipe(t)
	serverOut, serverIn := pipe(t)
	toServer, fromGuardToServer := pipe(t)
	w := &world{
		host:   &end{t, hostIn, toHost, bufio.NewReader(toHost)},
		server: &end{t, serverIn, toServer, bufio.NewReader(toServer)},
	}
	before := runtime.NumGoroutine()
	var err error
	w.relay, err = guard.New(p, guard.Streams{FromHost: hostOut, ToHost: fromGuard, FromServer: serverOut, ToServer: fromGuardToServer}, func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notes = append(w.notes, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.relay.Start()
	t.Cleanup(func() {
		w.host.in.Close()
		w.server.in.Close()
		w.host.out.Close()
		w.server.out.Close()
		for deadline := time.Now().Add(wait); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				var all [1 << 16]byte
				t.Fatalf("goroutines are left:\n%s", all[:runtime.Stack(all[:], true)])
			}
		}
	})
	return w
}

// say writes a line.
func (e *end) say(line string) {
	e.t.Helper()
	e.raw(line + "\n")
}

func (e *end) raw(text string) {
	e.t.Helper()
	_ = e.in.SetWriteDeadline(time.Now().Add(wait))
	if _, err := e.in.WriteString(text); err != nil {
		e.t.Fatal(err)
	}
}

// line reads the next line, without its newline.
func (e *end) line() string {
	e.t.Helper()
	_ = e.out.SetReadDeadline(time.Now().Add(wait))
	line, err := e.read.ReadString('\n')
	if err != nil {
		e.t.Fatalf("reading: %v, after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

func (e *end) hears(want string) {
	e.t.Helper()
	if got := e.line(); got != want {
		e.t.Fatalf("got  %.600s\nwant %.600s", got, want)
	}
}

// hearsOf reads a line that holds each part.
func (e *end) hearsOf(parts ...string) {
	e.t.Helper()
	got := e.line()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			e.t.Fatalf("%.600s\ndoes not hold %s", got, part)
		}
	}
}

// passes sends a line that arrives as it is.
func (w *world) passes(t *testing.T, from *end, line string) {
	t.Helper()
	to := w.server
	if from == w.server {
		to = w.host
	}
	from.say(line)
	to.hears(line)
}

// silence checks that nothing came through meanwhile: the next thing that arrives is a ping.
func (w *world) silence(t *testing.T) {
	t.Helper()
	w.passes(t, w.host, `{"jsonrpc":"2.0","method":"notifications/test"}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","method":"notifications/test"}`)
}

// noted waits for a note that holds the text.
func (w *world) noted(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		found := slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, text) })
		all := strings.Join(w.notes, "\n")
		w.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no note holds %q; there are:\n%s", text, all)
		}
	}
}

func (w *world) noNotes(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.notes) > 0 {
		t.Fatalf("notes: %q", w.notes)
	}
}

// agreed begins a session in a revision before 2026-07-28.
func (w *world) agreed(t *testing.T, version string) {
	t.Helper()
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}
