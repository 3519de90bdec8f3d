package seccomp

import (
	"fmt"
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bits, low half first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	loadWord  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAbove = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	jumpFrom  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	andWord   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	answer    = unix.BPF_RET | unix.BPF_K
)

// label is a place in a program that is still being written. The zero label is the next
// instruction.
type label int

// assembly is a program with labels in place of jump distances.
type assembly struct {
	code   []unix.SockFilter
	jumps  map[int][2]label // by position in code
	places []int            // by label; -1: not placed yet
}

func newAssembly() *assembly {
	return &assembly{jumps: map[int][2]label{}, places: []int{-1}}
}

func (a *assembly) newLabel() label {
	a.places = append(a.places, -1)
	return label(len(a.places) - 1)
}

func (a *assembly) place(l label) { a.places[l] = len(a.code) }

func (a *assembly) add(code uint16, k uint32) {
	a.code = append(a.code, unix.SockFilter{Code: code, K: k})
}

// jump adds a comparison with k. A zero label falls through.
func (a *assembly) jump(code uint16, k uint32, then, otherwise label) {
	a.jumps[len(a.code)] = [2]label{then, otherwise}
	a.add(code, k)
}

// finish turns labels into distances. Conditional jumps reach 255 instructions ahead.
func (a *assembly) finish() (Program, error) {
	program := append(Program(nil), a.code...)
	for at, targets := range a.jumps {
		var distances [2]uint8
		for i, target := range targets {
			if target == 0 {
				continue
			}
			distance := a.places[target] - at - 1
			if a.places[target] < 0 || distance < 0 || distance > math.MaxUint8 {
				return nil, fmt.Errorf("assembling filter instructions: jump at %d cannot reach its target", at)
			}
			distances[i] = uint8(distance)
		}
		program[at].Jt, program[at].Jf = distances[0], distances[1]
	}
	return program, nil
}

// condition adds the comparison of one argument: it falls through when the condition
// holds, else it jumps to no.
func (a *assembly) condition(arg specs.LinuxSeccompArg, no label) error {
	low, high := offsetArgs+8*uint32(arg.Index), offsetArgs+8*uint32(arg.Index)+4 //nolint:gosec // index is at most 5
	lowOf := func(v uint64) uint32 { return uint32(v & math.MaxUint32) }
	highOf := func(v uint64) uint32 { return uint32(v >> 32) }
	switch arg.Op {
	case specs.OpEqualTo:
		a.add(loadWord, high)
		a.jump(jumpEqual, highOf(arg.Value), 0, no)
		a.add(loadWord, low)
		a.jump(jumpEqual, lowOf(arg.Value), 0, no)
	case specs.OpNotEqual:
		yes := a.newLabel()
		a.add(loadWord, high)
		a.jump(jumpEqual, highOf(arg.Value), 0, yes)
		a.add(loadWord, low)
		a.jump(jumpEqual, lowOf(arg.Value), no, 0)
		a.place(yes)
	case specs.OpMaskedEqual:
		a.add(loadWord, high)
		a.add(andWord, highOf(arg.Value))
		a.jump(jumpEqual, highOf(arg.ValueTwo), 0, no)
		a.add(loadWord, low)
		a.add(andWord, lowOf(arg.Value))
		a.jump(jumpEqual, lowOf(arg.ValueTwo), 0, no)
	default:
		return fmt.Errorf("comparing argument %d: %s is not supported for calls newer than Linux 5.17", arg.Index, arg.Op)
	}
	return nil
}
