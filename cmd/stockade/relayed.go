package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/guard"
)

// drainPatience is how long a host may take nothing of what an ended server has left.
const drainPatience = 5 * time.Second

// wire puts the guard between the host and the server: descriptors 0 and 1, which the server
// is about to inherit, become pipes, and this process keeps the host's streams. It is called
// after the host was looked at and before the server starts.
//
// Pipes and not sockets: the filter need not know them, a server can open them again by
// /dev/stdin, and programs write to them at once.
func (s *supervision) wire(policy *guard.Policy, note func(string)) error {
	if policy == nil {
		return nil
	}
	fail := func(err error) error { return fmt.Errorf("putting the guard between host and server: %w", err) }
	fromHost, err := kept(0)
	if err != nil {
		return fail(err)
	}
	toHost, err := kept(1)
	if err != nil {
		return fail(err)
	}
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return fail(err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return fail(err)
	}
	for fd, end := range [...]int{in[0], out[1]} {
		// Without O_CLOEXEC, and blocking: programs expect that.
		if err := unix.Dup3(end, fd, 0); err != nil {
			return fail(err)
		}
		unix.Close(end)
	}
	for _, end := range [...]int{in[1], out[0]} {
		if err := unix.SetNonblock(end, true); err != nil {
			return fail(err)
		}
	}
	streams := guard.Streams{
		FromHost: fromHost, ToHost: toHost,
		FromServer: os.NewFile(uintptr(out[0]), "the server's output"), //nolint:gosec // a descriptor
		ToServer:   os.NewFile(uintptr(in[1]), "the server's input"),   //nolint:gosec // a descriptor
	}
	if s.relay, err = guard.New(*policy, streams, note); err != nil {
		return err
	}
	s.life.HostLeft = s.relay.HostLeft()
	return nil
}

// noteTo says the guard's notes without the values of secrets: they may quote what the server
// wrote, as the host's log would.
func noteTo(to stdio, hide *strings.Replacer) func(string) {
	return func(text string) {
		if hide != nil {
			text = hide.Replace(text)
		}
		to.say(sayNote, text)
	}
}

// kept keeps a stream of the host's under another number. Whether it blocks is left as it is:
// the host, or others that it gave the stream to, would notice.
func kept(fd int) (*os.File, error) {
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) //nolint:gosec // 0 or 1
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(other), "the host's stream"), nil //nolint:gosec // a descriptor
}

// drain lets the host have what the server wrote before it ended. Nobody is left who could
// write more. It gives up when the host takes nothing, or somebody asks this process to end.
func (s *supervision) drain() {
	if s.relay == nil {
		return
	}
	const look = drainPatience / 10
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	before, since := s.relay.Delivered(), time.Duration(0)
	for {
		select {
		case <-s.relay.Drained():
			return
		case <-s.life.Dismissed():
			return
		case <-ticker.C:
		}
		since += look
		if now := s.relay.Delivered(); now != before {
			before, since = now, 0
		}
		if since >= drainPatience {
			return
		}
	}
}
