package supervise

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// verdict is what the filter without observation says of a call.
func (o *Observation) verdict(n *notification) seccomp.Verdict {
	return o.Filter.Verdict(seccomp.Call{Number: n.nr, Arch: n.arch, Args: n.args})
}

// answerBy is the answer to a call on which a filter decides by itself.
func answerBy(v seccomp.Verdict) answer {
	if v.Allows() {
		return answer{goesOn: true}
	}
	return answer{errno: v.Refusal()}
}

// Answer answers one call that waits on a listener before the server runs, and tells nobody:
// for [sandbox.Parent].
func (o *Observation) Answer(fd int) error {
	l, err := newListener(fd)
	if err != nil {
		return err
	}
	var n notification
	if ok, err := l.receive(&n); err != nil || !ok {
		return err
	}
	return l.answer(n.id, answerBy(o.verdict(&n)))
}

// observe handles a call on which the filter decides by itself. It reports false for the
// others, which wait with or without observation.
func (s *supervisor) observe(c *call) (outcome, bool) {
	if s.Observation == nil {
		return outcome{}, false
	}
	v := s.Observation.verdict(&c.notification)
	if v.Waits() {
		return outcome{}, false
	}
	o := outcome{answer: answerBy(v)}
	switch {
	case v.Allows():
		return s.foresee(c, o), true
	case c.nr == unix.SYS_SOCKET:
		o.refusal = &Refusal{Call: "socket", Operation: MakingSocket, Family: c.number(0), Errno: v.Refusal()}
	}
	return o, true
}

// foresee looks at what a call is about to do, and lets it go on whatever it finds. Paths
// that the kernel does not have in memory are looked up elsewhere: a file system that does
// not answer holds up its own callers and nobody else.
func (s *supervisor) foresee(c *call, o outcome) outcome {
	look, err := s.intend(c)
	if errors.Is(err, unix.EPERM) {
		err = errUnseen // it forbids inspection
	}
	if err != nil || look == nil {
		return s.foreseen(c, o, nil, err)
	}
	found, err := s.see(c.task, look, resolveCached)
	if !errors.Is(err, unix.EAGAIN) {
		return s.foreseen(c, o, found, err)
	}
	return elsewhere(
		func() { found, err = s.see(c.task, look, 0) },
		func() outcome { return s.foreseen(c, o, found, err) })
}

// see looks with what an intent needs, and gives it back.
func (s *supervisor) see(t task, look intent, resolve uint64) (*Refusal, error) {
	v := &viewer{task: t, domain: s.Observation.Domain, resolve: resolve}
	defer v.close()
	return look(v)
}

// foreseen ends a look.
func (s *supervisor) foreseen(c *call, o outcome, found *Refusal, err error) outcome {
	if !s.listener.valid(c.id) {
		return gone()
	}
	switch {
	case err == nil:
		o.refusal = found
	case !ordinary(err):
		s.Observation.Unseen()
	}
	return o
}

// errUnseen is for a call whose files cannot be found from outside.
var errUnseen = errors.New("it cannot be seen what the call is about")

// ordinary are errors that the call itself will get, for reasons that are no jail's: nothing
// is there, or the user may not.
func ordinary(err error) bool {
	for _, errno := range [...]unix.Errno{
		unix.ENOENT, unix.ENOTDIR, unix.EEXIST, unix.EISDIR, unix.EACCES, unix.ENAMETOOLONG, unix.EBADF, unix.EFAULT, unix.EINVAL,
		unix.EROFS, unix.ENXIO, unix.ENOEXEC,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// name adds who asked.
func (r *Refusal) name(c *call) {
	r.Time, r.PID, r.Program = time.Now(), c.task.process(), c.task.program()
}
