package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// What external tests need to see from inside.

// Numbers returns the call table of an architecture.
func Numbers(arch string) (map[string]uint32, error) {
	a, err := architectureOf(arch)
	if err != nil {
		return nil, err
	}
	return a.calls()
}

// RefusedNames returns the errno of every call that is refused whatever its arguments.
func RefusedNames() map[string]uint {
	names := map[string]uint{}
	for name, rules := range refusalRules() {
		names[name] = rules[0].errno
	}
	return names
}

// KeyOf returns the profile key that decides a call.
func KeyOf(name string) string { return keyOf(name) }

// Weakening returns what opening a call costs.
func Weakening(name string) string { return weakening(name) }

// Others returns the conditions of [others].
func Others(index uint, width int, values ...uint32) []specs.LinuxSeccompArg {
	return others(index, width, values...)
}

// Preset returns the embedded instructions of a policy.
func Preset(p Policy) string { return p.preset() }

// LastCommon is the last number that is left to libseccomp.
const LastCommon = lastCommon

// PlainProgram returns what libseccomp alone makes of a filter, without the calls that its
// version 2.5.4 does not know.
func PlainProgram(filter *specs.LinuxSeccomp, arch string) (Program, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range b.rules {
		if !ownNumber(name, b.calls[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return b.libProgram(names)
}

// LeftToLibrary returns the calls of a filter that libseccomp decides.
func LeftToLibrary(filter *specs.LinuxSeccomp, arch string) ([]string, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return nil, err
	}
	numbers, err := b.number()
	if err != nil {
		return nil, err
	}
	return numbers.left, nil
}

// Search returns a program that finds the call's number among ranges, each from its start
// to the next one's, and answers with the outcome of its range.
func Search(starts, outcomes []uint32) (Program, error) {
	g := newGraph()
	spans := make([]span, len(starts))
	for i := range starts {
		spans[i] = span{first: starts[i], weight: 1, target: g.answer(outcomes[i])}
	}
	return assemble(g.load(offsetNumber, g.search(spans)), nil)
}

// OwnDecision returns our own program for the rules of one call, "ERRNO(1)" where none
// holds; nil when they are left to libseccomp.
func OwnDecision(entries []specs.LinuxSyscall) (Program, error) {
	rules := make([]rule, len(entries))
	for i, e := range entries {
		rules[i] = rule{action: e.Action, args: e.Args}
		if e.ErrnoRet != nil {
			rules[i].errno = *e.ErrnoRet
		}
	}
	g := newGraph()
	decided, ok := g.decide(rules, g.answer(returnValue(refuse(unix.EPERM))))
	if !ok {
		return nil, nil
	}
	return assemble(decided, nil)
}
