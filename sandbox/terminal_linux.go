package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// leaveTerminal takes the controlling terminal away, so that the server can neither read
// what is typed to others nor push input into it (TIOCSTI is refused by the filter as
// well). A new session does that. A process that leads its group, as a shell's job does,
// cannot start one (setsid(2), EPERM) and gives the terminal up by TIOCNOTTY (tty_ioctl(4)).
func leaveTerminal() (LayerReport, error) {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOENT) {
		return LayerReport{LayerTerminal, Enforced, "none is attached"}, nil
	}
	if err != nil {
		return LayerReport{}, fmt.Errorf("looking for a controlling terminal: %w", err)
	}
	defer unix.Close(fd)
	_, err = unix.Setsid()
	if err == nil {
		return LayerReport{LayerTerminal, Enforced, "left by a new session"}, checkTerminal()
	}
	if !errors.Is(err, unix.EPERM) {
		return LayerReport{}, fmt.Errorf("starting a session: %w", err)
	}
	if err := giveUp(fd); err != nil {
		return LayerReport{}, fmt.Errorf("giving up the terminal: %w", err)
	}
	return LayerReport{LayerTerminal, Enforced, "given up"}, checkTerminal()
}

// hangupWait bounds the wait for a signal that the kernel has sent already.
const hangupWait = 50 * time.Millisecond

// giveUp detaches from the terminal. When the process leads the session, the kernel sends
// SIGHUP to the terminal's foreground group, this process in it: it has to be taken here,
// or it ends the start, and must not be pending at execve(2), or it ends the server.
func giveUp(fd int) error {
	sid, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	if sid != os.Getpid() {
		return unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0)
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	if err := unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0); err != nil {
		return err
	}
	select {
	case <-hangup:
	case <-time.After(hangupWait):
	}
	return nil
}

// checkTerminal asks again: opening /dev/tty without a controlling terminal is ENXIO
// (tty(4)). It has to be asked before Landlock, which refuses the name in any case.
func checkTerminal() error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	found := "one"
	if err == nil {
		unix.Close(fd)
	} else {
		found = err.Error()
	}
	return &WeakerError{LayerTerminal, "no controlling terminal", found}
}
