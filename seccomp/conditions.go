package seccomp

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// check is a condition on one word of struct seccomp_data.
type check struct {
	offset      uint32
	mask, value uint32
	sense       sense
}

// sense says when a check holds.
type sense uint8

const (
	equal   sense = iota // the word and mask are value
	differs              // they are not
)

func (c check) holds(word uint32) bool { return (word&c.mask == c.value) == (c.sense == equal) }

// clause answers when all its checks hold.
type clause struct {
	checks []check
	answer *node
}

// decision is what a call is decided by: the first clause that holds, else the default.
type decision struct {
	clauses   []clause
	otherwise *node
}

// clausesOf splits a rule into clauses that compare words. "Not equal" needs two: either
// half differs. It reports false for comparisons of order, which are left to libseccomp.
func clausesOf(r rule, answer *node) (clauses []clause, ok bool) {
	clauses = []clause{{answer: answer}}
	for _, arg := range r.args {
		low, high := argumentChecks(arg)
		switch arg.Op {
		case specs.OpEqualTo, specs.OpMaskedEqual:
			for i := range clauses {
				clauses[i].checks = append(clauses[i].checks, low, high)
			}
		case specs.OpNotEqual:
			low.sense, high.sense = differs, differs
			both := make([]clause, 0, 2*len(clauses))
			for _, c := range clauses {
				both = append(both,
					clause{append(slices.Clip(c.checks), low), answer},
					clause{append(slices.Clip(c.checks), high), answer})
			}
			clauses = both
		default:
			return nil, false
		}
	}
	return clauses, true
}

// argumentChecks compare the two halves of an argument with the condition's value.
func argumentChecks(arg specs.LinuxSeccompArg) (low, high check) {
	mask, value := ^uint64(0), arg.Value
	if arg.Op == specs.OpMaskedEqual {
		mask, value = arg.Value, arg.ValueTwo
	}
	offset := offsetArgs + 8*uint32(arg.Index) //nolint:gosec // index is at most 5
	low = check{offset: offset, mask: uint32(mask & math.MaxUint32), value: uint32(value & math.MaxUint32)}
	high = check{offset: offset + 4, mask: uint32(mask >> 32), value: uint32(value >> 32)}
	return low, high
}

// maxDecisions bounds the work on one call. Our own rules need less than 30; a person's
// list can name bits in so many ways that every combination is another case.
const maxDecisions = 1000

// deciding turns the decisions on one call into nodes. Decisions that come up twice are one.
type deciding struct {
	graph *graph
	known map[string]*node
}

// unheld is no offset: the accumulator holds something else than a word to compare.
const unheld = math.MaxUint32

// decide returns the program for the rules of one call. ok is false when they are left to
// libseccomp.
func (g *graph) decide(rules []rule, otherwise *node) (decided *node, ok bool) {
	d := decision{otherwise: otherwise}
	for _, r := range rules {
		clauses, ok := clausesOf(r, g.answer(returnValue(r)))
		if !ok {
			return nil, false
		}
		d.clauses = append(d.clauses, clauses...)
	}
	all := &deciding{graph: g, known: map[string]*node{}}
	decided = all.node(d, unheld)
	return decided, len(all.known) <= maxDecisions
}

// node returns the program for a decision. held is the offset of the word that is in the
// accumulator.
func (all *deciding) node(d decision, held uint32) *node {
	d = d.simple()
	if len(d.clauses) == 0 || len(all.known) > maxDecisions {
		return d.otherwise
	}
	key := d.key(held)
	if have, known := all.known[key]; known {
		return have
	}
	offset := d.clauses[0].checks[0].offset
	var n *node
	switch masks, kind := d.masks(offset); kind {
	case prefixes:
		n = all.ranges(d, offset)
	case oneField:
		n = all.field(d, offset, masks[0])
	default:
		n = all.bits(d, offset, d.clauses[0].checks[0])
	}
	if held != offset {
		n = all.graph.load(offset, n)
	}
	all.known[key] = n
	return n
}

// simple leaves out what cannot change the answer: checks that always hold, clauses that
// never do, clauses after one that always does, and last ones that say what the default says.
func (d decision) simple() decision {
	kept := decision{otherwise: d.otherwise}
	for _, c := range d.clauses {
		if slices.ContainsFunc(c.checks, func(c check) bool { return c.mask == 0 && !c.holds(0) }) {
			continue
		}
		checks := make([]check, 0, len(c.checks))
		for _, c := range c.checks {
			if c.mask != 0 {
				checks = append(checks, c)
			}
		}
		if len(checks) == 0 {
			kept.otherwise = c.answer
			break
		}
		same := func(other clause) bool { return c.answer == other.answer && slices.Equal(checks, other.checks) }
		if !slices.ContainsFunc(kept.clauses, same) {
			kept.clauses = append(kept.clauses, clause{checks, c.answer})
		}
	}
	for last := len(kept.clauses) - 1; last >= 0 && kept.clauses[last].answer == kept.otherwise; last-- {
		kept.clauses = kept.clauses[:last]
	}
	return kept
}

// key is a text that equal decisions have in common.
func (d decision) key(held uint32) string {
	text := binary.NativeEndian.AppendUint32(nil, held)
	for _, c := range d.clauses {
		for _, t := range c.checks {
			for _, part := range []uint32{t.offset, t.mask, t.value, uint32(t.sense)} {
				text = binary.NativeEndian.AppendUint32(text, part)
			}
		}
		text = fmt.Appendf(text, "%p;", c.answer)
	}
	return string(fmt.Appendf(text, "%p", d.otherwise))
}

// masking is how the checks on one word look at it.
type masking uint8

const (
	mixed    masking = iota
	prefixes         // each at the highest bits, or at all: they are ranges
	oneField         // all at the same bits
)

// masks returns the masks of all checks on a word.
func (d decision) masks(offset uint32) (masks []uint32, kind masking) {
	kind = prefixes
	values := uint32(0)
	for _, c := range d.clauses {
		for _, t := range c.checks {
			if t.offset != offset {
				continue
			}
			if free := ^t.mask; free&(free+1) != 0 {
				kind = mixed
			}
			masks = append(masks, t.mask)
			values |= t.value
		}
	}
	masks = slices.Compact(slices.Sorted(slices.Values(masks)))
	// A single bit, and no bit at all, take one instruction and leave the word in place.
	if kind == mixed && len(masks) == 1 && masks[0]&(masks[0]-1) != 0 && values != 0 {
		kind = oneField
	}
	return masks, kind
}

// given returns the decision for one value of a word: each check on it either goes, or
// takes its clause with it.
func (d decision) given(offset, word uint32) decision {
	return d.with(func(t check) check {
		if t.offset != offset {
			return t
		}
		if t.holds(word) {
			return check{sense: equal} // of nothing with nothing: always
		}
		return check{sense: differs}
	})
}

// failing is what is left of a check whose bits are known to differ from its value: one that
// holds always, or never.
func failing(c check) check {
	if c.sense == differs {
		return check{sense: equal}
	}
	return check{sense: differs}
}

// with returns the decision with other checks in place of its own.
func (d decision) with(change func(check) check) decision {
	changed := decision{clauses: make([]clause, len(d.clauses)), otherwise: d.otherwise}
	for i, c := range d.clauses {
		checks := make([]check, len(c.checks))
		for j, t := range c.checks {
			checks[j] = change(t)
		}
		changed.clauses[i] = clause{checks, c.answer}
	}
	return changed
}

// ranges decides a word whose checks are ranges of it: between two of their ends, all
// values are alike.
func (all *deciding) ranges(d decision, offset uint32) *node {
	starts := []uint32{0}
	for _, c := range d.clauses {
		for _, t := range c.checks {
			if t.offset != offset {
				continue
			}
			starts = append(starts, t.value)
			if after := (t.value | ^t.mask) + 1; after != 0 {
				starts = append(starts, after)
			}
		}
	}
	starts = slices.Compact(slices.Sorted(slices.Values(starts)))
	spans := make([]span, 0, len(starts))
	for _, start := range starts {
		spans = append(spans, span{first: start, weight: 1, target: all.node(d.given(offset, start), offset)})
	}
	return all.graph.search(spans)
}

// field decides a word of which all checks look at the same bits.
func (all *deciding) field(d decision, offset, mask uint32) *node {
	var values []uint32
	for _, c := range d.clauses {
		for _, t := range c.checks {
			if t.offset == offset && !slices.Contains(values, t.value) {
				values = append(values, t.value)
			}
		}
	}
	// No check holds for a value that none names.
	n := all.node(d.with(func(t check) check {
		if t.offset != offset {
			return t
		}
		return failing(t)
	}), unheld)
	for _, value := range slices.Backward(values) {
		n = all.graph.jump(jumpEqual, value, all.node(d.given(offset, value), unheld), n)
	}
	return all.graph.and(mask, n)
}

// bits decides a word by some of its bits: by all that a check wants clear, or by one that
// it wants set. The word stays in the accumulator.
func (all *deciding) bits(d decision, offset uint32, by check) *node {
	bits := by.mask
	if by.value != 0 {
		bits = by.value & -by.value
	}
	clear := d.with(func(t check) check { return t.withBits(offset, bits, 0) })
	some := d.with(func(t check) check { return t.withSome(offset, bits) })
	return all.graph.jump(jumpAny, bits, all.node(some, offset), all.node(clear, offset))
}

// withBits returns what is left of a check when some bits of its word are known.
func (c check) withBits(offset, bits, values uint32) check {
	switch {
	case c.offset != offset || c.mask&bits == 0:
		return c
	case (c.value^values)&c.mask&bits != 0:
		return failing(c)
	default:
		c.mask, c.value = c.mask&^bits, c.value&^bits
		return c
	}
}

// withSome returns what is left of a check when at least one of some bits is set.
func (c check) withSome(offset, bits uint32) check {
	switch {
	case bits&(bits-1) == 0:
		return c.withBits(offset, bits, bits)
	case c.offset == offset && c.mask&bits == bits && c.value&bits == 0:
		return failing(c)
	default:
		return c
	}
}
