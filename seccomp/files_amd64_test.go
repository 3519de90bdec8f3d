package seccomp_test

import (
	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// oldChanges are the calls that only older machines have.
func oldChanges(own uintptr) []change {
	times := struct{ access, change int64 }{1000, 2000} // struct utimbuf
	return []change{
		{"chmod", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_CHMOD, pointerTo(p), 0o777) }},
		{"chown", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_CHOWN, pointerTo(p), own, ^uintptr(0)) }},
		{"lchown", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_LCHOWN, pointerTo(p), own, ^uintptr(0)) }},
		{"utime", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_UTIME, pointerTo(p), pointerTo(&times)) }},
		{"utimes", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_UTIMES, pointerTo(p), pointerTo(&aVal)) }},
		{"futimesat", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_FUTIMESAT, atHere, pointerTo(p), pointerTo(&aVal))
		}},
		{"futimesat", byDescriptor, func(_ *byte, fd int) jailtest.Outcome {
			return do(unix.SYS_FUTIMESAT, uintptr(fd), 0, pointerTo(&aVal))
		}},
	}
}
