package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress tells a person who waits what is being done: on a terminal one line that is
// rewritten, elsewhere a line at the beginning alone, so that a host's log stays short.
type progress struct {
	std   stdio
	title string
	begun time.Time

	mu    sync.Mutex
	doing string
	stop  chan struct{} // nil: no terminal
	ended chan struct{}
}

// progressPace is the time between two looks of a terminal's line.
const progressPace = 200 * time.Millisecond

// beginProgress tells that something begins that takes seconds. [progress.end] is to be
// called.
func beginProgress(std stdio, title string) *progress {
	p := &progress{std: std, title: title, begun: time.Now()}
	if f, ok := std.err.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor
		std.say(sayNote, title+"; this happens once")
		return p
	}
	p.stop, p.ended = make(chan struct{}), make(chan struct{})
	go p.draw()
	return p
}

// step says what is being done now.
func (p *progress) step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

func (p *progress) draw() {
	defer close(p.ended)
	tick := time.NewTicker(progressPace)
	defer tick.Stop()
	for {
		p.mu.Lock()
		line := fmt.Sprintf("stockade: %s: %s … %d s", p.title, p.doing, int(time.Since(p.begun).Seconds()))
		p.mu.Unlock()
		// Back to the first column, and nothing left of the line before (ECMA-48, EL).
		_, _ = io.WriteString(p.std.err, "\r\x1b[K"+escape(line))
		select {
		case <-p.stop:
			_, _ = io.WriteString(p.std.err, "\r\x1b[K")
			return
		case <-tick.C:
		}
	}
}

// end takes the line away.
func (p *progress) end() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.stop = nil
}
