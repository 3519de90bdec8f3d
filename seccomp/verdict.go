package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Call is struct seccomp_data (linux/seccomp.h) less the instruction pointer, on which no
// filter here looks: what a filter sees of a system call. The kernel copies it before the
// filter runs, so nothing that the caller does changes it.
type Call struct {
	Number int32
	Arch   uint32 // AUDIT_ARCH_*
	Args   [6]uint64
}

// Verdict is what a filter answers to a call.
type Verdict struct{ value uint32 }

// Allows says whether the call goes on in the kernel.
func (v Verdict) Allows() bool { return v.value == unix.SECCOMP_RET_ALLOW }

// Waits says whether a supervisor has to answer.
func (v Verdict) Waits() bool { return v.value == unix.SECCOMP_RET_USER_NOTIF }

// Refusal returns the errno that the filter answers, 0 for success without effect. It is
// EPERM for every verdict that is none of the three: such a call must not go on.
func (v Verdict) Refusal() unix.Errno {
	if v.value&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO {
		return unix.Errno(v.value & unix.SECCOMP_RET_DATA)
	}
	return unix.EPERM
}

// Verdict runs the program on a call as the kernel does (Documentation/networking/filter.rst,
// the classic instructions). A program that does what none of this package does ends in a
// refusal.
func (p Program) Verdict(c Call) Verdict {
	var word uint32
	for at := 0; at < len(p); at++ {
		in := p[at]
		holds := false
		switch in.Code {
		case loadWord:
			var known bool
			if word, known = c.word(in.K); !known {
				return Verdict{unix.SECCOMP_RET_KILL_PROCESS}
			}
			continue
		case andWord:
			word &= in.K
			continue
		case jumpFar:
			if uint64(in.K) >= uint64(len(p)) {
				return Verdict{unix.SECCOMP_RET_KILL_PROCESS}
			}
			at += int(in.K)
			continue
		case answer:
			return Verdict{in.K}
		case jumpEqual:
			holds = word == in.K
		case jumpAny:
			holds = word&in.K != 0
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			holds = word > in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = word >= in.K
		default:
			return Verdict{unix.SECCOMP_RET_KILL_PROCESS}
		}
		if holds {
			at += int(in.Jt)
		} else {
			at += int(in.Jf)
		}
	}
	return Verdict{unix.SECCOMP_RET_KILL_PROCESS}
}

// word is one 32-bit word of the structure; both supported architectures are little-endian.
func (c Call) word(offset uint32) (uint32, bool) {
	switch {
	case offset == offsetNumber:
		return uint32(c.Number), true //nolint:gosec // the same bits
	case offset == offsetArch:
		return c.Arch, true
	case offset < offsetArgs || offset >= offsetArgs+8*(maxArgument+1) || offset%4 != 0:
		return 0, false
	}
	register := c.Args[(offset-offsetArgs)/8]
	if offset%8 != 0 {
		register >>= 32
	}
	return uint32(register), true //nolint:gosec // the half that is asked for
}

// Unobserved returns the program of the policy without observation, which says what an
// observer has to answer.
func (p Policy) Unobserved() (Program, error) {
	p.Observation = Unobserved
	program, err := p.Program()
	if err != nil {
		return nil, fmt.Errorf("making the filter that an observer answers by: %w", err)
	}
	return program, nil
}
