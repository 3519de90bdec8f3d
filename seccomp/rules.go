package seccomp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// rule answers one call when all its conditions hold; without conditions, always.
//
// Invariants of the rules of one call, which make their order meaningless in every
// implementation of the runtime-spec form: two rules with different answers never match the
// same arguments, all rules begin with a condition on the same argument, and no rule has
// two conditions on one argument (libseccomp refuses that, runc reads it as "or"). What no
// rule matches gets the default, EPERM.
type rule struct {
	action specs.LinuxSeccompAction
	errno  uint // with ActErrno; 0 answers success and does nothing
	args   []specs.LinuxSeccompArg
}

// ruleSet maps names of calls to their rules.
type ruleSet map[string][]rule

func allow(args ...specs.LinuxSeccompArg) rule {
	return rule{action: specs.ActAllow, args: args}
}

// notify lets a call wait for the supervisor's answer.
func notify(args ...specs.LinuxSeccompArg) rule {
	return rule{action: specs.ActNotify, args: args}
}

func refuse(errno unix.Errno, args ...specs.LinuxSeccompArg) rule {
	return rule{action: specs.ActErrno, errno: uint(errno), args: args}
}

// argumentSet is a set of argument indexes, one bit for each.
type argumentSet uint8

// arguments returns which arguments the rule compares.
func (r rule) arguments() argumentSet {
	var compared argumentSet
	for _, arg := range r.args {
		compared |= 1 << arg.Index
	}
	return compared
}

// always says whether the rules are one answer without conditions.
func always(rules []rule) bool {
	return len(rules) == 1 && len(rules[0].args) == 0
}

// refusesAlways says whether the rules refuse every use of a call.
func refusesAlways(rules []rule) bool {
	return always(rules) && rules[0].refuses()
}

// refuses says whether the rule is a refusal. Errno 0 is none: the program goes on. Nor is
// waiting for a supervisor, which may say yes.
func (r rule) refuses() bool { return r.action == specs.ActErrno && r.errno != 0 }

// maskedEqual holds when the argument and mask are value. The kernel's int and pid
// arguments are the low 32 bits of a register; comparing all 64 would let a call through,
// or refuse it, for bits that the kernel never looks at.
func maskedEqual(index uint, mask, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: index, Value: mask, ValueTwo: value, Op: specs.OpMaskedEqual}
}

const low32 = 0xffffffff

// word holds when the low 32 bits of an argument are value.
func word(index uint, value uint32) specs.LinuxSeccompArg {
	return maskedEqual(index, low32, uint64(value))
}

// unset and set hold when all bits of an int argument are clear, or all are set.
func unset(index uint, flags uint32) specs.LinuxSeccompArg {
	return maskedEqual(index, uint64(flags), 0)
}

func set(index uint, flags uint32) specs.LinuxSeccompArg {
	return maskedEqual(index, uint64(flags), uint64(flags))
}

// null and pointer compare all 64 bits: these arguments are pointers.
func null(index uint) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: index, Value: 0, Op: specs.OpEqualTo}
}

func pointer(index uint) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: index, Value: 0, Op: specs.OpNotEqual}
}

// others returns conditions that hold, one at a time, exactly for the values below
// 1<<width that are not listed, compared as 32-bit words. "Not equal" is no help: it
// compares 64 bits, so a refused value with a stray high bit would pass.
//
// Each condition fixes a prefix of the bits. A branch of the tree of prefixes without a
// listed value is one condition.
func others(index uint, width int, values ...uint32) []specs.LinuxSeccompArg {
	var conditions []specs.LinuxSeccompArg
	var walk func(prefix uint32, free int)
	walk = func(prefix uint32, free int) {
		mask := uint32(low32) << free // a shift by 32 gives 0: no bit is fixed
		inside := slices.ContainsFunc(values, func(v uint32) bool { return v&mask == prefix })
		switch {
		case !inside:
			conditions = append(conditions, maskedEqual(index, uint64(mask), uint64(prefix)))
		case free > 0:
			walk(prefix, free-1)
			walk(prefix|1<<(free-1), free-1)
		}
	}
	walk(0, width)
	return conditions
}

// String returns the answer in the words of libseccomp's listing; conditions are left out.
func (r rule) String() string {
	if r.action == specs.ActErrno {
		return fmt.Sprintf("ERRNO(%d)", r.errno)
	}
	return strings.TrimPrefix(string(r.action), "SCMP_ACT_")
}

// intersect returns rules that hold where both a rule of ours and one of theirs hold,
// with our answers. It reports false when conditions cannot be joined.
func intersect(ours, theirs []rule) (joined []rule, ok bool) {
	for _, our := range ours {
		for _, their := range theirs {
			args, possible, ok := joinArgs(our.args, their.args)
			if !ok {
				return nil, false
			}
			r := rule{action: our.action, errno: our.errno, args: args}
			if possible && !slices.ContainsFunc(joined, r.equal) {
				joined = append(joined, r)
			}
		}
	}
	return joined, true
}

func (r rule) equal(other rule) bool {
	return r.action == other.action && r.errno == other.errno && slices.Equal(r.args, other.args)
}

// joinArgs returns conditions that hold only where both lists hold. possible is false when
// nothing can satisfy both; ok is false when one condition cannot say it.
func joinArgs(ours, theirs []specs.LinuxSeccompArg) (joined []specs.LinuxSeccompArg, possible, ok bool) {
	joined = slices.Clone(ours)
	for _, their := range theirs {
		at := slices.IndexFunc(joined, func(a specs.LinuxSeccompArg) bool { return a.Index == their.Index })
		if at < 0 {
			joined = append(joined, their)
			continue
		}
		if joined[at], possible, ok = joinArg(joined[at], their); !ok || !possible {
			return nil, possible, ok
		}
	}
	return joined, true, true
}

// joinArg joins two conditions on one argument. A list's "not equal" and its comparisons
// of order are understood where ours fixes a whole word, as list entries for address
// families need. There the result is that one value in all 64 bits: what a list says about
// stray high bits is not what its author meant.
func joinArg(our, their specs.LinuxSeccompArg) (joined specs.LinuxSeccompArg, possible, ok bool) {
	ourMask, ourValue, ok := asMask(our)
	if !ok {
		return specs.LinuxSeccompArg{}, false, false
	}
	if theirMask, theirValue, isMask := asMask(their); isMask {
		possible = (ourValue^theirValue)&ourMask&theirMask == 0
		return maskedEqual(our.Index, ourMask|theirMask, ourValue|theirValue), possible, true
	}
	if ourMask&low32 != low32 {
		return specs.LinuxSeccompArg{}, false, false
	}
	switch their.Op {
	case specs.OpNotEqual:
		possible = ourValue != their.Value
	case specs.OpLessThan:
		possible = ourValue < their.Value
	case specs.OpLessEqual:
		possible = ourValue <= their.Value
	case specs.OpGreaterThan:
		possible = ourValue > their.Value
	case specs.OpGreaterEqual:
		possible = ourValue >= their.Value
	default:
		return specs.LinuxSeccompArg{}, false, false
	}
	return maskedEqual(our.Index, ^uint64(0), ourValue), possible, true
}

func asMask(arg specs.LinuxSeccompArg) (mask, value uint64, ok bool) {
	switch arg.Op {
	case specs.OpEqualTo:
		return ^uint64(0), arg.Value, true
	case specs.OpMaskedEqual:
		return arg.Value, arg.ValueTwo, true
	default:
		return 0, 0, false
	}
}
