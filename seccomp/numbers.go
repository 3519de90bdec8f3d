package seccomp

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// ownNumber says whether libseccomp 2.5.4 does not know a call, so that it has to be
// decided here. The answer does not depend on the library at hand, so that a newer one
// builds the same program, and one machine can build for the other: the library takes
// numbers of its own machine only.
func ownNumber(name string, number uint32) bool {
	return number > lastCommon || name == "uretprobe" || name == "uprobe"
}

// noCall is the number -1, with which a tracer takes a call away before it is made
// (ptrace(2)). x32 sets bit 30 of a number, but this one is none of its calls.
const noCall = math.MaxUint32

// numbering is a program in the making: what each number leads to.
type numbering struct {
	graph *graph
	arch  architecture
	// left are the calls that libseccomp decides, sorted.
	left  []string
	spans []span
}

// number decides all calls, and all numbers that are none.
//
// Numbers that no supported kernel has are answered with ENOSYS, and those of another ABI
// under the same audit architecture end the process.
func (b *building) number() (*numbering, error) {
	n := &numbering{graph: newGraph(), arch: b.arch}
	otherwise := n.graph.answer(returnValue(refuse(b.otherwise)))
	absent := n.graph.answer(returnValue(refuse(unix.ENOSYS)))
	next := uint32(0)
	for _, name := range b.byNumber() {
		number := b.calls[name]
		if number > next {
			n.add(next, number-next, absent)
		}
		next = number + 1
		target, ok := n.graph.decide(b.rules[name], otherwise)
		switch {
		case ok:
		case ownNumber(name, number):
			return nil, fmt.Errorf("deciding %s: comparisons of order, and this many ways to compare bits, are not supported for calls newer than Linux 5.17", name)
		default:
			target = n.graph.rest()
			n.left = append(n.left, name)
		}
		n.add(number, 1, target)
	}
	slices.Sort(n.left)
	n.add(next, 1, absent)
	if b.arch.foreign != 0 {
		n.add(b.arch.foreign, 0, n.graph.answer(unix.SECCOMP_RET_KILL_PROCESS))
		n.add(noCall, 0, otherwise)
	}
	return n, nil
}

// add begins a span. The kernel tries every number up to the last call once.
func (n *numbering) add(first, weight uint32, target *node) {
	n.spans = append(n.spans, span{first: first, weight: int(weight), target: target})
}

// program is the whole program; rest decides the calls that are left to libseccomp.
func (n *numbering) program(rest Program) (Program, error) {
	g := n.graph
	here := g.load(offsetNumber, g.search(n.spans))
	start := g.load(offsetArch, g.jump(jumpEqual, n.arch.audit, here, g.answer(unix.SECCOMP_RET_KILL_PROCESS)))
	return assemble(start, rest)
}

// byNumber returns the names of all calls of the architecture, sorted by number.
func (b *building) byNumber() []string {
	return slices.SortedFunc(maps.Keys(b.calls), func(x, y string) int { return cmp.Compare(b.calls[x], b.calls[y]) })
}
