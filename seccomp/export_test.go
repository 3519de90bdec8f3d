package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

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
