package main

import (
	"bytes"
	"io"
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
	lines chan []byte // an empty one ends it
	ended chan struct{}
}

func newSpool(to io.Writer) *spool {
	s := &spool{lines: make(chan []byte, spoolLines), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for line := range s.lines {
			if len(line) == 0 {
				return
			}
			_, _ = to.Write(line) // there is nobody else to tell
		}
	}()
	return s
}

// Write takes a line, or drops it.
func (s *spool) Write(line []byte) (int, error) {
	if len(line) > 0 {
		select {
		case s.lines <- bytes.Clone(line):
		default:
		}
	}
	return len(line), nil
}

// close lets the lines go out that wait, if their reader takes them soon.
func (s *spool) close() {
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
