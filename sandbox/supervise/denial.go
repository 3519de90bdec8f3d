package supervise

import (
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// noNetwork refuses Internet addresses when the plan has no egress.
var noNetwork = egress.Decision{Rule: "the profile grants no network", Hint: "name the destination in network.egress"}

// refused is EACCES with its reason, for every kind of call: what a file would answer that
// is closed to the user.
func refused(call, asked string, d egress.Decision) outcome {
	return outcome{
		answer: answer{errno: unix.EACCES},
		denial: &egress.Denial{Call: call, Asked: asked, Rule: d.Rule, Hint: d.Hint},
	}
}

// unread is what a call gets that cannot be read: the errno, with a report when it is for a
// process that keeps others from looking at it.
func unread(errno unix.Errno) outcome {
	if errno != unix.EPERM {
		return result(errno)
	}
	o := refused("inspect", "a call of a process that forbids inspection", egress.Decision{
		Rule: "the supervisor has to read it: it made itself undumpable, or its program file may be executed but not read",
	})
	o.answer.errno = unix.EPERM
	return o
}

// complete adds who asked.
func (s *supervisor) complete(c *call, d *egress.Denial) {
	d.Time, d.Profile = time.Now(), s.Profile
	d.PID, d.Program = c.task.process(), c.task.program()
}
