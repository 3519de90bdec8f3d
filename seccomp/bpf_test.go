package seccomp_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// call is struct seccomp_data: what a filter sees of a system call.
type call struct {
	number uint32
	arch   uint32
	args   [6]uint64
}

func (c call) load(offset uint32) (uint32, error) {
	switch {
	case offset == 0:
		return c.number, nil
	case offset == 4:
		return c.arch, nil
	case offset >= 16 && offset < 64 && offset%4 == 0:
		return uint32(c.args[(offset-16)/8] >> (8 * (offset % 8))), nil
	default:
		return 0, fmt.Errorf("load at offset %d", offset)
	}
}

// interpret runs a filter the way the kernel does and returns its answer and the number of
// instructions that it took. It is written against the kernel's documentation and knows
// nothing of how the filters are made, so that it can also run those of another machine.
func interpret(program seccomp.Program, c call) (answer uint32, steps int, err error) {
	var acc uint32
	for at := 0; at < len(program); at++ {
		in := program[at]
		steps++
		jump := func(holds bool) {
			if holds {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			if acc, err = c.load(in.K); err != nil {
				return 0, steps, err
			}
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K, steps, nil
		default:
			return 0, steps, fmt.Errorf("instruction %d has code %#x", at, in.Code)
		}
	}
	return 0, steps, fmt.Errorf("the program ends without an answer")
}
