package seccomp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// ask runs a program for one call and returns its answer in words.
func ask(t testing.TB, program seccomp.Program, c call) string {
	t.Helper()
	answer, _, err := interpret(program, c)
	if err != nil {
		t.Fatal(err)
	}
	return word(answer)
}

// TestProgramsSayWhatLibseccompSays compares each preset with the program that libseccomp
// alone makes of the same data: for every number and ABI, and arguments near the rules.
func TestProgramsSayWhatLibseccompSays(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := seccomp.PlainProgram(filter, arch)
			if err != nil {
				t.Fatal(err)
			}
			compareWithLibrary(t, random, filter, arch, build(t, p.policy, arch), plain)
		}
	}
}

func compareWithLibrary(
	t *testing.T, random *rand.Rand, filter *specs.LinuxSeccomp, arch string, program, plain seccomp.Program,
) {
	t.Helper()
	names := map[uint32]string{}
	for name, number := range numbers(t, arch) {
		names[number] = name
	}
	same := func(c call) {
		t.Helper()
		if got, want := ask(t, program, c), ask(t, plain, c); got != want {
			t.Fatalf("%s: %+v gives %s, libseccomp's own program %s", arch, c, got, want)
		}
	}
	for number := range uint32(1024) {
		name, exists := names[number]
		c := call{number: number, arch: auditArch[arch]}
		switch {
		case !exists:
			// The library's own answer is the default; ours makes programs fall back.
			if got := ask(t, program, c); got != "ENOSYS" {
				t.Fatalf("%s: number %d gives %s, want ENOSYS", arch, number, got)
			}
		case number > seccomp.LastCommon || name == "uprobe" || name == "uretprobe":
			c.args = randomArguments(random)
			if got, want := ask(t, program, c), evaluate(t, filter, name, c.args); got != want {
				t.Fatalf("%s: %s(%#x) gives %s, the data says %s", arch, name, c.args, got, want)
			}
		default:
			entries := append(entriesOf(filter, name), specs.LinuxSyscall{})
			for range 100 {
				c.args = argumentsNear(random, entries[random.IntN(len(entries))])
				same(c)
			}
		}
		// Other ABIs, with numbers that mean something here.
		foreign := call{number: number, arch: random.Uint32(), args: randomArguments(random)}
		if foreign.arch != auditArch[arch] {
			same(foreign)
		}
		foreign.arch = auditArch[arch] ^ 1<<random.IntN(32)
		same(foreign)
		if arch == "amd64" {
			same(call{number: 0x40000000 | number, arch: auditArch[arch], args: randomArguments(random)})
		}
	}
	if arch == "amd64" {
		for range 1000 {
			same(call{number: 0x40000000 | random.Uint32(), arch: auditArch[arch], args: randomArguments(random)})
		}
		same(call{number: ^uint32(0), arch: auditArch[arch]})
		same(call{number: ^uint32(0) - 1, arch: auditArch[arch]})
	}
}

func randomArguments(random *rand.Rand) (args [6]uint64) {
	for i := range args {
		args[i] = random.Uint64() >> random.IntN(64)
	}
	return args
}

// TestPresetsAreOurOwn: the library's part would make every start slower.
func TestPresetsAreOurOwn(t *testing.T) {
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			left, err := seccomp.LeftToLibrary(filter, arch)
			if err != nil || len(left) > 0 {
				t.Errorf("%s on %s: left to libseccomp: %v, %v", p.name, arch, left, err)
			}
		}
	}
}

// TestWhatIsLeftToLibseccomp gives it comparisons of order, and bits in more combinations
// than are worth a tree, beside calls that stay ours.
func TestWhatIsLeftToLibseccomp(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	var many []string
	for range 60 {
		mask := random.Uint32()
		many = append(many, fmt.Sprintf(`{"names": ["lseek"], "action": "SCMP_ACT_ALLOW",
			"args": [{"index": 1, "value": %d, "valueTwo": %d, "op": "SCMP_CMP_MASKED_EQ"}]}`, mask, mask&random.Uint32()))
	}
	policy := supervised
	policy.Base = parseBase(t, anywhere(strings.Join(append(many,
		`{"names": ["listen", "fsync"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 4294967306, "op": "SCMP_CMP_GT"}]}`,
		`{"names": ["read", "connect", "ioctl"], "action": "SCMP_ACT_ALLOW"}`), ",")))
	for _, arch := range bothArchitectures {
		filter, err := policy.FilterFor(arch)
		if err != nil {
			t.Fatal(err)
		}
		left, err := seccomp.LeftToLibrary(filter, arch)
		if want := []string{"fsync", "listen", "lseek"}; err != nil || !slices.Equal(left, want) {
			t.Fatalf("%s: left to libseccomp: %v, %v, want %v", arch, left, err, want)
		}
		compareWithData(t, random, filter, arch, 20)
		program, err := seccomp.Build(filter, arch)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := seccomp.PlainProgram(filter, arch)
		if err != nil {
			t.Fatal(err)
		}
		compareWithLibrary(t, random, filter, arch, program, plain)
		text, err := seccomp.ExportText(filter, arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"lseek: see libseccomp's part", `filter for syscall "listen"`, "connect: NOTIFY", "read: ALLOW"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the listing has no %q:\n%s", arch, want, text)
			}
		}
	}
}

// TestListingNamesEveryCall reads the listing of a preset back.
func TestListingNamesEveryCall(t *testing.T) {
	for _, arch := range bothArchitectures {
		filter, err := supervised.FilterFor(arch)
		if err != nil {
			t.Fatal(err)
		}
		text, err := seccomp.ExportText(filter, arch)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		j := newJail(t, supervised, arch)
		for name, number := range numbers(t, arch) {
			entries := entriesOf(filter, name)
			want := fmt.Sprintf("%d %s:", number, name)
			if len(entries) == 1 && len(entries[0].Args) == 0 {
				want += " " + listed(j.ask(name))
			}
			if !slices.Contains(lines, want) {
				t.Errorf("%s: the listing has no line %q", arch, want)
			}
		}
	}
}

// listed is an answer as the listing writes it.
func listed(answer string) string {
	for errno := range unix.Errno(200) {
		if answer == ignored && errno == 0 || errno > 0 && unix.ErrnoName(errno) == answer {
			return fmt.Sprintf("ERRNO(%d)", int(errno))
		}
	}
	return answer
}

// TestSearch compares the tree with a look at each range, at all their ends.
func TestSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for round := range 300 {
		starts := []uint32{0}
		for range random.IntN(1 + round*2) {
			start := random.Uint32()
			if random.IntN(3) > 0 {
				start %= 2 * uint32(round+1) // neighbours and single values
			}
			starts = append(starts, start)
		}
		if random.IntN(3) == 0 {
			starts = append(starts, ^uint32(0))
		}
		starts = slices.Compact(slices.Sorted(slices.Values(starts)))
		outcomes := make([]uint32, len(starts))
		kinds := 1 + random.IntN(1+round)
		for i := range outcomes {
			outcomes[i] = unix.SECCOMP_RET_ERRNO | uint32(random.IntN(kinds))
		}
		program, err := seccomp.Search(starts, outcomes)
		if err != nil {
			t.Fatal(err)
		}
		if len(starts) > 1 && len(program) > 3*len(starts)+1 {
			t.Errorf("round %d: %d instructions for %d ranges", round, len(program), len(starts))
		}
		for i, start := range starts {
			for _, value := range []uint32{start - 1, start, start + 1, random.Uint32()} {
				at, exact := slices.BinarySearch(starts, value)
				if !exact {
					at--
				}
				answer, _, err := interpret(program, call{number: value})
				if err != nil || answer != outcomes[at] {
					t.Fatalf("round %d, range %d: %#x gives %#x, %v, want %#x", round, i, value, answer, err, outcomes[at])
				}
			}
		}
	}
}

// TestTerminalRequestsAreRanges proves our program for ioctl equal to its forty rules: both
// change their answer at a few values only, and all values beside these are tried.
func TestTerminalRequestsAreRanges(t *testing.T) {
	for _, arch := range bothArchitectures {
		filter, err := strict.FilterFor(arch)
		if err != nil {
			t.Fatal(err)
		}
		entries := entriesOf(filter, "ioctl")
		program, err := seccomp.OwnDecision(entries)
		if err != nil || program == nil {
			t.Fatal(program, err)
		}
		if len(program) > 12 {
			t.Errorf("%s: %d instructions for four refused values", arch, len(program))
		}
		ends := map[uint32]bool{}
		for _, entry := range entries {
			for _, arg := range entry.Args {
				free := ^uint32(arg.Value)
				if arg.Index != 1 || arg.Op != specs.OpMaskedEqual || arg.Value>>32 != 0 || free&(free+1) != 0 {
					t.Fatalf("%s: a rule is no range of the request: %+v", arch, arg)
				}
				ends[uint32(arg.ValueTwo)], ends[uint32(arg.ValueTwo)|free] = true, true
			}
		}
		for _, in := range program {
			switch in.Code {
			case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
				if in.K != 16+8*1 {
					t.Fatalf("%s: the program looks at offset %d", arch, in.K)
				}
			case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
				ends[in.K] = true
			case unix.BPF_RET | unix.BPF_K:
			default:
				t.Fatalf("%s: the program does more than compare: %+v", arch, in)
			}
		}
		for end := range maps.Keys(ends) {
			for _, value := range []uint32{end - 1, end, end + 1} {
				args := [6]uint64{1: uint64(value)}
				if got, want := ask(t, program, call{args: args}), evaluate(t, filter, "ioctl", args); got != want {
					t.Errorf("%s: request %#x gives %s, the data says %s", arch, value, got, want)
				}
			}
		}
	}
}

// TestDecisions compares our own programs for random rules with the rules: the first one
// that holds answers. Such rules may overlap, which those of a policy never do.
func TestDecisions(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	taken := 0
	for range 3000 {
		entries := randomEntries(random)
		program, err := seccomp.OwnDecision(entries)
		if err != nil {
			t.Fatal(err)
		}
		if program == nil {
			continue
		}
		taken++
		for range 60 {
			args := argumentsNear(random, entries[random.IntN(len(entries))])
			want := "EPERM"
			if i := slices.IndexFunc(entries, func(e specs.LinuxSyscall) bool { return entryHolds(e, args) }); i >= 0 {
				want = entryWord(entries[i])
			}
			if got := ask(t, program, call{args: args}); got != want {
				t.Fatalf("%+v: %#x gives %s, want %s", entries, args, got, want)
			}
		}
	}
	if taken < 2500 {
		t.Errorf("only %d of 3000 were decided by ourselves", taken)
	}
}

// randomEntries makes rules for one call, of equalities on few arguments.
func randomEntries(random *rand.Rand) []specs.LinuxSyscall {
	entries := make([]specs.LinuxSyscall, 1+random.IntN(8))
	masks := []uint64{1, 2, 3, 6, 0xf, 0x80, 0xf0, 0xffffffff, 0xfffffff0, ^uint64(0), 0xffffffff00000000, 1 << 63, random.Uint64(), 0}
	for i := range entries {
		errno := uint(random.IntN(3))
		actions := []specs.LinuxSyscall{
			{Action: specs.ActAllow}, {Action: specs.ActNotify}, {Action: specs.ActErrno, ErrnoRet: &errno},
		}
		entries[i] = actions[random.IntN(len(actions))]
		for index := range uint(3) {
			value := uint64(random.IntN(8)) << (16 * random.IntN(4))
			switch random.IntN(5) {
			case 0:
				entries[i].Args = append(entries[i].Args, specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo})
			case 1:
				entries[i].Args = append(entries[i].Args, specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpNotEqual})
			case 2, 3:
				mask := masks[random.IntN(len(masks))]
				entries[i].Args = append(entries[i].Args, specs.LinuxSeccompArg{
					Index: index, Value: mask, ValueTwo: mask & (value | random.Uint64()&random.Uint64()), Op: specs.OpMaskedEqual,
				})
			}
		}
	}
	return entries
}
