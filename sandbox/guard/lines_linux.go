package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"
)

const (
	// readSize is how much one read asks for; a pipe holds 64 KiB.
	readSize = 256 << 10
	// keptSize is how much of the buffer keeps its memory when no message is in it.
	keptSize = 1 << 20
)

// lines cuts a stream into lines of bounded size. Its buffer is mapped at its full size, and
// takes memory only as far as a message reached (mmap(2), MAP_NORESERVE): a large message is
// never copied to grow a buffer, and the memory goes back to the kernel after it.
type lines struct {
	from        io.Reader
	limit       int
	buffer      []byte
	start, end  int // of what was read and not given out
	scanned     int // no newline lies between start and here
	reached     int // the end of what took memory
	ended       error
	oversize    *glimpse
	overcounted int64
}

// newLines makes the buffer; the caller closes it.
func newLines(from io.Reader, limit int) (*lines, error) {
	buffer, err := syscall.Mmap(-1, 0, limit+2*readSize, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("making room for a message of %d bytes: %w", limit, err)
	}
	return &lines{from: from, limit: limit, buffer: buffer}, nil
}

// close gives the memory back; no line is valid after it.
func (l *lines) close() {
	_ = syscall.Munmap(l.buffer)
	l.buffer = nil
}

// tooLarge says that a line was thrown away.
type tooLarge struct {
	seen *glimpse
	size int64
}

func (*tooLarge) Error() string { return "a line larger than the limit" }

// next returns the next line with its newline, which the last line may lack. It is valid
// until the next call. The error is a [*tooLarge] where a line was thrown away, and what the
// stream ended with after the last one.
func (l *lines) next() ([]byte, error) {
	for {
		if at := bytes.IndexByte(l.buffer[l.scanned:l.end], '\n'); at >= 0 {
			line := l.buffer[l.start : l.scanned+at+1]
			l.start = l.scanned + at + 1
			l.scanned = l.start
			if lost := l.lost(line); lost != nil {
				return nil, lost
			}
			return line, nil
		}
		l.scanned = l.end
		if l.oversize != nil || l.end-l.start > l.limit {
			if l.oversize == nil {
				l.oversize = &glimpse{}
			}
			l.oversize.feed(l.buffer[l.start:l.end])
			l.overcounted += int64(l.end - l.start)
			l.start, l.scanned = l.end, l.end
		}
		if l.ended != nil {
			rest := l.buffer[l.start:l.end]
			l.start, l.scanned = l.end, l.end
			if lost := l.lost(rest); lost != nil {
				return nil, lost
			}
			if len(rest) > 0 {
				return rest, nil
			}
			return nil, l.ended
		}
		l.read()
	}
}

// lost tells whether a line that ends here is too large to be given out.
func (l *lines) lost(line []byte) error {
	content := len(line)
	if content > 0 && line[content-1] == '\n' {
		content--
	}
	if l.oversize == nil && content <= l.limit {
		return nil
	}
	if l.oversize == nil {
		l.oversize = &glimpse{}
	}
	l.oversize.feed(line)
	out := &tooLarge{l.oversize, l.overcounted + int64(content)}
	l.oversize, l.overcounted = nil, 0
	return out
}

// read reads once.
func (l *lines) read() {
	if l.start == l.end {
		l.start, l.end, l.scanned = 0, 0, 0
		if l.reached > keptSize {
			// Memory that is mapped again is zero, so nothing of a message stays either.
			_ = syscall.Madvise(l.buffer[keptSize:], syscall.MADV_DONTNEED)
			l.reached = keptSize
		}
	} else if len(l.buffer)-l.end < readSize {
		l.end = copy(l.buffer, l.buffer[l.start:l.end])
		l.scanned -= l.start
		l.start = 0
	}
	n, err := l.from.Read(l.buffer[l.end:min(len(l.buffer), l.end+readSize)])
	l.end += n
	l.reached = max(l.reached, l.end)
	if err == nil && n == 0 {
		err = io.ErrNoProgress
	}
	if err != nil && !errors.Is(err, syscall.EINTR) {
		l.ended = err
	}
}
