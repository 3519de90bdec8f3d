package seccomp_test

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/seccomp"
)

// holds evaluates one condition as the runtime-spec describes it.
func holds(arg specs.LinuxSeccompArg, args [6]uint64) bool {
	value := args[arg.Index]
	switch arg.Op {
	case specs.OpEqualTo:
		return value == arg.Value
	case specs.OpNotEqual:
		return value != arg.Value
	case specs.OpLessThan:
		return value < arg.Value
	case specs.OpLessEqual:
		return value <= arg.Value
	case specs.OpGreaterThan:
		return value > arg.Value
	case specs.OpGreaterEqual:
		return value >= arg.Value
	case specs.OpMaskedEqual:
		return value&arg.Value == arg.ValueTwo
	default:
		panic("operator " + arg.Op)
	}
}

func entryHolds(entry specs.LinuxSyscall, args [6]uint64) bool {
	return !slices.ContainsFunc(entry.Args, func(a specs.LinuxSeccompArg) bool { return !holds(a, args) })
}

// entriesOf returns a filter's entries for one call.
func entriesOf(filter *specs.LinuxSeccomp, name string) []specs.LinuxSyscall {
	var entries []specs.LinuxSyscall
	for _, entry := range filter.Syscalls {
		if slices.Contains(entry.Names, name) {
			entries = append(entries, entry)
		}
	}
	return entries
}

func entryWord(entry specs.LinuxSyscall) string {
	switch entry.Action {
	case specs.ActAllow:
		return allowed
	case specs.ActNotify:
		return waits
	default:
	}
	return word(0x50000 | uint32(*entry.ErrnoRet))
}

// evaluate answers a call from the data alone. It also holds the invariant that makes the
// data mean the same to every engine: no two entries answer the same call differently.
func evaluate(t testing.TB, filter *specs.LinuxSeccomp, name string, args [6]uint64) string {
	t.Helper()
	answer := ""
	for _, entry := range entriesOf(filter, name) {
		if !entryHolds(entry, args) {
			continue
		}
		if this := entryWord(entry); answer != "" && answer != this {
			t.Errorf("%s(%#x) has two answers: %s and %s", name, args, answer, this)
		} else {
			answer = this
		}
	}
	if answer == "" {
		return word(0x50000 | uint32(*filter.DefaultErrnoRet))
	}
	return answer
}

// argumentsNear makes register contents that satisfy an entry, or miss it by little.
func argumentsNear(random *rand.Rand, entry specs.LinuxSyscall) [6]uint64 {
	var args [6]uint64
	for i := range args {
		switch random.IntN(4) {
		case 0:
			args[i] = random.Uint64()
		case 1:
			args[i] = uint64(random.IntN(64))
		}
	}
	for _, arg := range entry.Args {
		switch arg.Op {
		case specs.OpMaskedEqual:
			args[arg.Index] = args[arg.Index]&^arg.Value | arg.ValueTwo
		default:
			args[arg.Index] = arg.Value
		}
		switch random.IntN(6) {
		case 0:
			args[arg.Index] ^= 1 << random.IntN(64)
		case 1:
			args[arg.Index] ^= 1 << 32
		case 2:
			args[arg.Index]++
		}
	}
	return args
}

// TestProgramsSayWhatTheDataSays compares libseccomp's instructions and ours with the data
// that they were made from.
func TestProgramsSayWhatTheDataSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			compareWithData(t, random, filter, arch, 40)
		}
	}
}

func compareWithData(t testing.TB, random *rand.Rand, filter *specs.LinuxSeccomp, arch string, rounds int) {
	t.Helper()
	program, err := seccomp.Build(filter, arch)
	if err != nil {
		t.Fatal(err)
	}
	j := jail{t, arch, program}
	calls := numbers(t, arch)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		number := calls[name]
		entries := entriesOf(filter, name)
		if len(entries) == 0 {
			entries = []specs.LinuxSyscall{{}}
		}
		for _, entry := range entries {
			for range rounds {
				args := argumentsNear(random, entry)
				want := evaluate(t, filter, name, args)
				if got := j.raw(number, args[:]...); got != want {
					t.Fatalf("%s: %s(%#x) gives %s, the data says %s", arch, name, args, got, want)
				}
			}
		}
	}
}

// TestEveryCallIsNamed holds that no known call is left to the default by oversight.
func TestEveryCallIsNamed(t *testing.T) {
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			for name := range numbers(t, arch) {
				if len(entriesOf(filter, name)) == 0 {
					t.Errorf("%s on %s: %s has no entry", p.name, arch, name)
				}
			}
		}
	}
}

func TestFiltersAreEqualEachTime(t *testing.T) {
	for _, p := range presets() {
		first, err := p.policy.Filter()
		if err != nil {
			t.Fatal(err)
		}
		second, err := p.policy.Filter()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s: two filters of one policy differ:\n%s", p.name, diff)
		}
		for _, entry := range first.Syscalls {
			if !slices.IsSorted(entry.Names) {
				t.Errorf("%s: names are not sorted: %v", p.name, entry.Names)
			}
		}
	}
}

// TestNothingBeyondTheKeptList holds that whatever a filter admits, the list of the
// container engines admits too, argument by argument. Where ours replaces conditions of
// theirs, this is what keeps it narrower when theirs is updated.
func TestNothingBeyondTheKeptList(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, arch := range bothArchitectures {
		theirs := keptList(arch)
		for _, p := range presets() {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			for name := range numbers(t, arch) {
				for _, entry := range entriesOf(filter, name) {
					if entry.Action != specs.ActAllow {
						continue
					}
					for range 20 {
						args := argumentsWithin(random, entry)
						if !slices.ContainsFunc(theirs[name], func(e specs.LinuxSyscall) bool { return entryHolds(e, args) }) {
							t.Fatalf("%s on %s: %s(%#x) is allowed, the kept list refuses it", p.name, arch, name, args)
						}
					}
				}
			}
		}
	}
}

// argumentsWithin satisfies an entry without bits that its 32-bit arguments do not have.
func argumentsWithin(random *rand.Rand, entry specs.LinuxSyscall) [6]uint64 {
	var args [6]uint64
	for _, arg := range entry.Args {
		switch arg.Op {
		case specs.OpMaskedEqual:
			free := ^arg.Value & 0xffffffff
			args[arg.Index] = random.Uint64()&free | arg.ValueTwo
		case specs.OpNotEqual:
			args[arg.Index] = arg.Value + 1
		default:
			args[arg.Index] = arg.Value
		}
	}
	return args
}

// keptList resolves the container engines' list for no capabilities, by name.
func keptList(arch string) map[string][]specs.LinuxSyscall {
	entries := map[string][]specs.LinuxSyscall{}
	for _, entry := range moby.DefaultProfile().Syscalls {
		if in := entry.Includes; in != nil && (len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, arch)) {
			continue
		}
		if ex := entry.Excludes; ex != nil && slices.Contains(ex.Arches, arch) {
			continue
		}
		if entry.Action != specs.ActAllow {
			continue
		}
		for _, name := range entry.Names {
			entries[name] = append(entries[name], entry.LinuxSyscall)
		}
	}
	return entries
}

func TestOthersCoversAllButTheListed(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		width := 1 + random.IntN(9)
		values := make([]uint32, random.IntN(5))
		for i := range values {
			values[i] = uint32(random.IntN(1 << width))
		}
		conditions := seccomp.Others(0, width, values...)
		for value := range uint64(1 << (width + 2)) {
			for _, stray := range []uint64{0, 1 << 32, 0xffffffff << 32} {
				n := 0
				for _, condition := range conditions {
					if holds(condition, [6]uint64{value | stray}) {
						n++
					}
				}
				want := 1
				if value >= 1<<width || slices.Contains(values, uint32(value)) {
					want = 0
				}
				if n != want {
					t.Fatalf("width %d without %v: %d conditions hold for %#x, want %d", width, values, n, value|stray, want)
				}
			}
		}
	}
	// Over a whole word, the sizes add up to all words but the listed ones.
	total := uint64(0)
	for _, condition := range seccomp.Others(1, 32, 0x5412, 0x541c, 0, ^uint32(0)) {
		total += 1 << (32 - bits.OnesCount64(condition.Value))
	}
	if want := uint64(1)<<32 - 4; total != want {
		t.Errorf("conditions cover %d words, want %d", total, want)
	}
}
