package sandbox

// #include "steps.h"
import "C"

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// answered has the calls answered that the child makes between the installing of the filter
// and the end of its execve: those of its steps that read back, and the execve itself. It
// returns when the child no longer shares memory; a call of the new program is left waiting
// for the supervisor.
//
// The kernel clears the child's word within execve(2), before the new program runs. So a call
// that waits while the word is still there is not the new program's, and one that comes
// later is not taken: the word is looked at when a call is known to wait.
func (c *child) answered(calls []C.struct_step, installs int, answer func(listener int) error) error {
	if C.wait_listened(c.shared) == 0 {
		return nil // it ended before; its steps say why
	}
	listener := int(calls[installs].result)
	over, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return errors.Join(fmt.Errorf("starting the server: making an event descriptor: %w", err), unix.Kill(c.pid, unix.SIGKILL))
	}
	defer unix.Close(over)
	done := make(chan error, 1)
	go func() {
		err := c.answerAll(listener, over, answer)
		if err != nil {
			err = errors.Join(fmt.Errorf("starting the server: %w", err), unix.Kill(c.pid, unix.SIGKILL))
		}
		done <- err
	}()
	C.wait_alive(c.shared)
	one := [8]byte{1}
	if _, err := unix.Write(over, one[:]); err != nil {
		return fmt.Errorf("starting the server: ending its first supervisor: %w", err)
	}
	return <-done
}

// answerAll answers until it is told that the child is over.
func (c *child) answerAll(listener, over int, answer func(int) error) error {
	waiting := []unix.PollFd{
		{Fd: int32(listener), Events: unix.POLLIN}, //nolint:gosec // a descriptor
		{Fd: int32(over), Events: unix.POLLIN},     //nolint:gosec // a descriptor
	}
	for {
		_, err := unix.Poll(waiting, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for its calls: %w", err)
		}
		switch {
		case waiting[1].Revents != 0 || waiting[0].Revents&unix.POLLHUP != 0 || C.is_alive(c.shared) == 0:
			return nil
		case waiting[0].Revents&unix.POLLIN == 0:
			continue
		}
		if err := answer(listener); err != nil {
			return err
		}
	}
}
