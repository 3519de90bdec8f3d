package seccomp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// listing describes what our own part of a program decides: a line for each call, with its
// number, and for each range of numbers that no call has.
func (b *building) listing(left []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# system call filter for %s\n", b.arch.name)
	text.WriteString("# other architectures: KILL_PROCESS\n")
	absent := refuse(unix.ENOSYS)
	next := uint32(0)
	for _, name := range b.byNumber() {
		number := b.calls[name]
		if number > next {
			fmt.Fprintf(&text, "%s: %s\n", numberRange(next, number-1), absent)
		}
		next = number + 1
		decided := " see libseccomp's part below"
		if !slices.Contains(left, name) {
			decided = rulesText(b.rules[name], refuse(b.otherwise))
		}
		fmt.Fprintf(&text, "%d %s:%s\n", number, name, decided)
	}
	if b.arch.foreign == 0 {
		fmt.Fprintf(&text, "%s: %s\n", numberRange(next, noCall), absent)
		return text.String()
	}
	fmt.Fprintf(&text, "%s: %s\n", numberRange(next, b.arch.foreign-1), absent)
	fmt.Fprintf(&text, "%s (x32): KILL_PROCESS\n", numberRange(b.arch.foreign, noCall-1))
	fmt.Fprintf(&text, "%d (taken away by a tracer): %s\n", uint32(noCall), refuse(b.otherwise))
	return text.String()
}

func numberRange(first, last uint32) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// rulesText lists the rules of one call, each with conditions on a line of its own, "$a0"
// for the first argument, as in libseccomp's own listing.
func rulesText(rules []rule, otherwise rule) string {
	if len(rules) == 0 {
		return " " + otherwise.String()
	}
	if always(rules) {
		return " " + rules[0].String()
	}
	var text strings.Builder
	for _, r := range rules {
		conditions := make([]string, 0, len(r.args))
		for _, arg := range r.args {
			conditions = append(conditions, conditionText(arg))
		}
		fmt.Fprintf(&text, "\n    if %s: %s", strings.Join(conditions, " and "), r)
	}
	return text.String() + "\n    else: " + otherwise.String()
}

func conditionText(arg specs.LinuxSeccompArg) string {
	if arg.Op == specs.OpMaskedEqual {
		return fmt.Sprintf("$a%d & %#x == %#x", arg.Index, arg.Value, arg.ValueTwo)
	}
	signs := map[specs.LinuxSeccompOperator]string{
		specs.OpEqualTo: "==", specs.OpNotEqual: "!=", specs.OpLessThan: "<",
		specs.OpLessEqual: "<=", specs.OpGreaterThan: ">", specs.OpGreaterEqual: ">=",
	}
	return fmt.Sprintf("$a%d %s %#x", arg.Index, signs[arg.Op], arg.Value)
}
