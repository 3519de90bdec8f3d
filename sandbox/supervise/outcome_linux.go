package supervise

import (
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// answer is what a call returns to the server: a value, or an errno.
type answer struct {
	value int64
	errno unix.Errno
	// goesOn lets the kernel make the call, as if nobody had been asked. Only [answerBy] says
	// it: for a call that the server's filter allows without observation.
	goesOn bool
}

// restart is ERESTARTSYS (include/linux/errno.h), which never reaches a program: on its way
// out with a signal the kernel starts the call again, or makes it EINTR, as the signal's
// handler was installed. It may only be given to a thread that has a signal to take.
const restart = unix.Errno(512)

// step says what becomes of a call.
type step uint8

const (
	// stepAnswer gives the answer.
	stepAnswer step = iota
	// stepPark waits for the socket or for a time, then goes on with then.
	stepPark
	// stepElsewhere runs what may block on another goroutine, then goes on with then.
	stepElsewhere
	// stepGone drops the call: its thread has been killed.
	stepGone
)

// outcome is the result of one stage of a call.
type outcome struct {
	step   step
	answer answer
	denial *egress.Denial // of a refusal; nil otherwise
	// refusal is what the kernel will refuse of an observed call; nil for nothing.
	refusal *Refusal

	wake  wake                 // with stepPark
	stop  func(stopped) answer // with stepPark: what to answer when the wait ends early
	block func()               // with stepElsewhere
	then  func() outcome       // with stepPark and stepElsewhere, on the loop's goroutine
}

// wake says what a parked call waits for.
type wake struct {
	writable bool          // the socket can take more, or is connected, or failed
	after    time.Duration // a time; with writable, none when 0
	limit    time.Time     // when the call itself times out (SO_SNDTIMEO); zero for never
}

// stopped says why a wait ended early.
type stopped uint8

const (
	// stoppedByLimit: the socket's own time-out has passed.
	stoppedByLimit stopped = iota
	// stoppedBySignal: the thread has a signal to take, so the kernel can restart the call.
	stoppedBySignal
	// stoppedPerhaps: a signal waits for this thread or for another one of its process.
	stoppedPerhaps
)

func returned(value int64) outcome { return outcome{answer: answer{value: value}} }

// result is success when errno is 0.
func result(errno unix.Errno) outcome { return outcome{answer: answer{errno: errno}} }

func gone() outcome { return outcome{step: stepGone} }

func elsewhere(block func(), then func() outcome) outcome {
	return outcome{step: stepElsewhere, block: block, then: then}
}

func parked(w wake, stop func(stopped) answer, then func() outcome) outcome {
	return outcome{step: stepPark, wake: w, stop: stop, then: then}
}

// interruption is what a blocking call returns for a signal (sock_intr_errno, net/sock.h):
// one with a time-out is never restarted.
func interruption(why stopped, limit time.Time) answer {
	if why == stoppedBySignal && limit.IsZero() {
		return answer{errno: restart}
	}
	return answer{errno: unix.EINTR}
}
