package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// spoolLines is how many lines wait for a reader who is slow.
	spoolLines = 64
	// spoolPatience is how long the end of a run waits for them.
	spoolPatience = time.Second
)

// spool passes lines on without ever waiting for their reader: a host that does not read
// standard error must not stop the supervisor, whose every call would stand behind the line.
// What finds no room is dropped.
type spool struct {
	to    io.Writer
	begin sync.Once
	begun atomic.Bool
	lines chan []byte // an empty one ends it
	ended chan struct{}
}

func newSpool(to io.Writer) *spool {
	return &spool{to: to, lines: make(chan []byte, spoolLines), ended: make(chan struct{})}
}

func (s *spool) pass() {
	defer close(s.ended)
	for line := range s.lines {
		if len(line) == 0 {
			return
		}
		_, _ = s.to.Write(line) // there is nobody else to tell
	}
}

// Write takes a line, or drops it.
func (s *spool) Write(line []byte) (int, error) {
	if len(line) > 0 {
		s.begin.Do(func() {
			s.begun.Store(true)
			go s.pass()
		})
		select {
		case s.lines <- bytes.Clone(line):
		default:
		}
	}
	return len(line), nil
}

// close lets the lines go out that wait, if their reader takes them soon.
func (s *spool) close() {
	if !s.begun.Load() {
		return // no line was written, as in most runs
	}
	patience := time.After(spoolPatience)
	select {
	case s.lines <- nil:
	case <-patience:
		return
	}
	select {
	case <-s.ended:
	case <-patience:
	}
}
