package seccomp

import (
	"fmt"
	"math"
	"slices"

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
	andWord   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpFrom  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpAny   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K // any bit of k is set
	jumpFar   = unix.BPF_JMP | unix.BPF_JA
	answer    = unix.BPF_RET | unix.BPF_K
)

// node is an instruction whose successors are nodes in place of distances. Nodes are made
// by a [graph] only, which makes equal ones once, so that pointers can be compared.
type node struct {
	code uint16 // 0: the program that follows ours
	k    uint32
	// then is what follows; of a jump, when the comparison holds. otherwise is the jump's
	// other way.
	then, otherwise *node
}

// graph makes nodes.
type graph struct{ made map[node]*node }

func newGraph() *graph { return &graph{made: map[node]*node{}} }

func (g *graph) node(n node) *node {
	if have, known := g.made[n]; known {
		return have
	}
	g.made[n] = &n
	return &n
}

// answer ends the program with a value for the kernel.
func (g *graph) answer(value uint32) *node { return g.node(node{code: answer, k: value}) }

// rest goes on in the program that follows.
func (g *graph) rest() *node { return g.node(node{}) }

// load puts a word of struct seccomp_data into the accumulator, if what follows looks at it.
func (g *graph) load(offset uint32, then *node) *node {
	if then.code == 0 || then.code == answer || then.code == loadWord {
		return then
	}
	return g.node(node{code: loadWord, k: offset, then: then})
}

// and keeps the bits of the mask in the accumulator.
func (g *graph) and(mask uint32, then *node) *node {
	if mask == math.MaxUint32 {
		return then
	}
	return g.node(node{code: andWord, k: mask, then: then})
}

// jump compares the accumulator with k.
func (g *graph) jump(code uint16, k uint32, then, otherwise *node) *node {
	if then == otherwise {
		return then
	}
	return g.node(node{code: code, k: k, then: then, otherwise: otherwise})
}

// assembly writes a program from its end to its beginning: jumps go forward only, so all
// that an instruction leads to has its place before the instruction itself.
type assembly struct {
	code   []unix.SockFilter // last instruction first
	places map[*node]int     // in code; the nearest one of several
	rest   int               // where the program that follows begins
}

// assemble writes the program that begins at start. rest is what [graph.rest] leads to.
func assemble(start *node, rest Program) (Program, error) {
	a := &assembly{code: slices.Clone(rest), places: map[*node]int{}, rest: len(rest) - 1}
	slices.Reverse(a.code)
	a.place(start) // last, so it comes first
	if len(a.code) > maxInstructions {
		return nil, fmt.Errorf("%d instructions are more than the kernel's %d", len(a.code), maxInstructions)
	}
	slices.Reverse(a.code)
	return a.code, nil
}

// place returns where a node is, and writes it if it is not there yet.
func (a *assembly) place(n *node) int {
	if at, placed := a.places[n]; placed {
		return at
	}
	in := unix.SockFilter{Code: n.code, K: n.k}
	switch n.code {
	case 0:
		a.places[n] = a.rest
		return a.rest
	case answer:
	case loadWord, andWord:
		if next := a.place(n.then); next != len(a.code)-1 {
			a.far(next)
		}
	default:
		a.place(n.otherwise)
		a.place(n.then)
		// Bringing one within reach puts the other one instruction further away.
		a.bring(n.otherwise)
		a.bring(n.then)
		in.Jt, in.Jf = a.distance(n.then), a.distance(n.otherwise)
	}
	a.code = append(a.code, in)
	a.places[n] = len(a.code) - 1
	return a.places[n]
}

// reach is how far a conditional jump goes: 255 instructions, less the one that bringing
// the other way within reach may add.
const reach = math.MaxUint8 - 1

// bring makes sure that the next instruction can jump to a placed node: with a nearer copy
// of an answer, with a long jump to anything else.
func (a *assembly) bring(n *node) {
	if len(a.code)-a.places[n]-1 <= reach {
		return
	}
	if n.code == answer {
		a.code = append(a.code, unix.SockFilter{Code: answer, K: n.k})
	} else {
		a.far(a.places[n])
	}
	a.places[n] = len(a.code) - 1
}

// far writes a jump of any length.
func (a *assembly) far(at int) {
	a.code = append(a.code, unix.SockFilter{Code: jumpFar, K: uint32(len(a.code) - at - 1)}) //nolint:gosec // a few thousand
}

func (a *assembly) distance(n *node) uint8 {
	return uint8(len(a.code) - a.places[n] - 1) //nolint:gosec // brought within reach
}
