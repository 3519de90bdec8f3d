package seccomp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// ownNumber says whether a call is decided in the head, our own instructions in front of
// libseccomp's. These are the calls that libseccomp 2.5.4 does not know. The answer does
// not depend on the library at hand, so that a newer one builds the same program, and one
// machine can build for the other: the library takes numbers of its own machine only.
func ownNumber(name string, number uint32) bool {
	return number > lastCommon || name == "uretprobe" || name == "uprobe"
}

// gap is a range of numbers, both ends included, that no call has.
type gap struct{ first, last uint32 }

// gapsOf returns the unused ranges below the highest number.
func gapsOf(calls map[string]uint32) []gap {
	var gaps []gap
	next := uint32(0)
	for _, number := range slices.Sorted(maps.Values(calls)) {
		if number > next {
			gaps = append(gaps, gap{next, number - 1})
		}
		next = number + 1
	}
	return gaps
}

// head writes the first part of a program. It answers ENOSYS to every number that no
// supported kernel has, and decides the calls of [ownNumber]. Everything else, foreign ABIs
// included, goes on to what follows it: head itself admits nothing of theirs.
func head(arch architecture, calls map[string]uint32, rules ruleSet, otherwise unix.Errno) (Program, error) {
	a := newAssembly()
	rest, unknown := a.newLabel(), a.newLabel()
	a.add(loadWord, offsetArch)
	a.jump(jumpEqual, arch.audit, 0, rest)
	a.add(loadWord, offsetNumber)
	if arch.foreign != 0 {
		a.jump(jumpFrom, arch.foreign, rest, 0)
	}
	for _, g := range gapsOf(calls) {
		above := a.newLabel()
		a.jump(jumpAbove, g.last, above, 0)
		a.jump(jumpFrom, g.first, unknown, 0)
		a.place(above)
	}
	own := ownCalls(calls, rules)
	for _, name := range own {
		if calls[name] <= lastCommon {
			if err := a.decide(calls[name], rules[name], otherwise); err != nil {
				return nil, fmt.Errorf("deciding %s: %w", name, err)
			}
		}
	}
	newer := a.newLabel()
	a.jump(jumpAbove, lastCommon, newer, rest)
	a.place(newer)
	for _, name := range own {
		if calls[name] > lastCommon {
			if err := a.decide(calls[name], rules[name], otherwise); err != nil {
				return nil, fmt.Errorf("deciding %s: %w", name, err)
			}
		}
	}
	a.place(unknown)
	a.add(answer, returnValue(refuse(unix.ENOSYS)))
	a.place(rest)
	return a.finish()
}

// ownCalls returns the names that head decides, by number. A call without rules of its own
// is left to the default: below lastCommon libseccomp's, beyond it head must say it.
func ownCalls(calls map[string]uint32, rules ruleSet) []string {
	var own []string
	for name, number := range calls {
		if ownNumber(name, number) && (number > lastCommon || len(rules[name]) > 0) {
			own = append(own, name)
		}
	}
	slices.SortFunc(own, func(a, b string) int { return int(calls[a]) - int(calls[b]) })
	return own
}

// decide adds the rules of one call. The number is in the accumulator before and, when it
// is another call, still there after.
func (a *assembly) decide(number uint32, rules []rule, otherwise unix.Errno) error {
	next := a.newLabel()
	a.jump(jumpEqual, number, 0, next)
	for _, r := range rules {
		no := a.newLabel()
		for _, arg := range r.args {
			if err := a.condition(arg, no); err != nil {
				return err
			}
		}
		a.add(answer, returnValue(r))
		a.place(no)
	}
	if !always(rules) {
		a.add(answer, returnValue(refuse(otherwise)))
	}
	a.place(next)
	return nil
}

// returnValue is what a rule makes the filter return to the kernel. An action that is not
// known here kills: it can only be a mistake in this package.
func returnValue(r rule) uint32 {
	switch r.action {
	case specs.ActAllow:
		return unix.SECCOMP_RET_ALLOW
	case specs.ActErrno:
		return unix.SECCOMP_RET_ERRNO | uint32(r.errno) //nolint:gosec // at most 4095
	default:
		return unix.SECCOMP_RET_KILL_PROCESS
	}
}

// headText describes what head decides, in the words of libseccomp's own listing.
func headText(arch architecture, calls map[string]uint32, rules ruleSet, otherwise unix.Errno) string {
	var text strings.Builder
	text.WriteString("#\n# calls that libseccomp 2.5.4 does not know, decided first\n#\n")
	for _, g := range gapsOf(calls) {
		fmt.Fprintf(&text, "# numbers %d to %d: ERRNO(%d)\n", g.first, g.last, int(unix.ENOSYS))
	}
	for _, name := range ownCalls(calls, rules) {
		fmt.Fprintf(&text, "# %d %q:", calls[name], name)
		for _, r := range rules[name] {
			text.WriteString(" ")
			for _, arg := range r.args {
				fmt.Fprintf(&text, "if $a%d %s %#x,%#x ", arg.Index, arg.Op, arg.Value, arg.ValueTwo)
			}
			text.WriteString(r.String() + ";")
		}
		if !always(rules[name]) {
			text.WriteString(" else " + refuse(otherwise).String() + ";")
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "# numbers from %d on: ERRNO(%d)\n", slices.Max(slices.Collect(maps.Values(calls)))+1, int(unix.ENOSYS))
	if arch.foreign != 0 {
		fmt.Fprintf(&text, "# numbers from %#x on are left to the rest\n", arch.foreign)
	}
	return text.String()
}
