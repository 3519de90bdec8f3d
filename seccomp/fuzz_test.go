package seccomp_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/seccomp"
)

// FuzzBase reads arbitrary lists. Whatever they say, nothing panics, and what this package
// refuses stays refused.
func FuzzBase(f *testing.F) {
	wide, err := json.Marshal(enginesList(f))
	if err != nil {
		f.Fatal(err)
	}
	seeds := []string{
		string(wide), `{"defaultAction": "SCMP_ACT_ERRNO"}`, list(`{"names": ["ptrace", "clone3", "bpf"], "action": "SCMP_ACT_ALLOW"}`),
		list(`{"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 268435456, "op": "SCMP_CMP_MASKED_EQ"}]}`),
		list(`{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}`),
		list(`{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 21522, "op": "SCMP_CMP_EQ"}]}`),
		list(`{"names": ["setxattrat"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 7, "op": "SCMP_CMP_NE"}]}`),
		list(`{"names": ["sendto"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 7, "op": "SCMP_CMP_GT"}]}`),
	}
	for _, seed := range seeds {
		for policy := range uint8(72) {
			f.Add([]byte(seed), policy)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, choice uint8) {
		base, err := seccomp.ParseBase(text)
		if err != nil {
			return
		}
		policy := seccomp.Policy{
			Sockets: seccomp.Sockets(choice % 3), Listening: seccomp.Listening(choice / 3 % 2),
			Metadata: seccomp.Metadata(choice / 6 % 2), Truncation: seccomp.Truncation(choice / 12 % 2),
			Supervision: seccomp.Supervision(choice / 24 % 3), Base: base,
		}
		policy.Warnings()
		for _, arch := range bothArchitectures {
			filter, err := policy.FilterFor(arch)
			if err != nil {
				continue
			}
			program, err := seccomp.Build(filter, arch)
			if err != nil {
				continue
			}
			holdUnderAnyBase(t, jail{t, arch, program}, policy)
		}
	})
}

// neverAllowed are calls with arguments that no list may open.
func neverAllowed(policy seccomp.Policy) map[string][][]uint64 {
	calls := map[string][][]uint64{
		"clone":             {{0x10000000}, {0x02000011}, {^uint64(0)}},
		"ioctl":             {{0, 0x5412}, {7, 1<<32 | 0x5412}, {0, 0x541c}, {0, 0x5423}},
		"personality":       {{8}, {0x40000}, {1<<32 | 8}},
		"execveat":          {{3, 1, 1, 1, 0x1000}, {0, 0, 0, 0, 1<<40 | 0x1000}},
		"memfd_create":      {{1, 0}, {1, 0x10}, {1, 0x8 << 32}},
		"prlimit64":         {{1}, {1<<32 | 1, 7}},
		"sched_setaffinity": {{1}},
		"setpriority":       {{0, 1}, {2, 0}},
		"ioprio_set":        {{1, 1}, {3, 0}},
		"socketpair":        {{1, 2, 0}, {1, 3, 0}, {1, 1<<32 | 2, 0}, {1, 0x80002, 0}},
		"socket":            {{1, 3, 0}, {17, 3, 0}, {38, 5, 0}, {40, 1, 0}, {2, 1, 262}, {10, 1, 262}, {2, 3, 1}},
		"chmod":             {{1, 0o777}},
		"utimensat":         {{0, 1, 0, 0}, {0, 1 << 32, 0, 0}},
	}
	if policy.Supervision != seccomp.Unsupervised {
		calls["sendto"] = [][]uint64{{3, 1, 1, 0, 1}, {3, 1, 1, 0x20000000, 0}, {7, 1, 1, 0, 1 << 32}}
		calls["sendmsg"], calls["sendmmsg"] = [][]uint64{{3, 1, 0}, {3, 1, 0x20000000}}, [][]uint64{{3, 1, 1, 0}}
		calls["connect"], calls["listen"] = [][]uint64{{3, 1, 16}}, [][]uint64{{3, 1}}
		calls["setsockopt"] = [][]uint64{{3, 6, 30}, {3, 0, 4}, {3, 41, 57}, {3, 41, 32}, {1 << 32, 1<<32 | 41, 1<<32 | 6}}
		calls["seccomp"] = [][]uint64{{1, 8, 1}, {1, 0x28, 1}}
		if policy.Supervision == seccomp.SupervisedUnix {
			calls["socket"] = append(calls["socket"], []uint64{2, 2, 0}, []uint64{16, 3, 0})
		}
		return withFiles(calls, policy)
	}
	calls["socket"] = append(calls["socket"], []uint64{1, 1, 0}, []uint64{1, 2, 0})
	if policy.Sockets == seccomp.NoSockets {
		calls["socket"] = append(calls["socket"], []uint64{2, 1, 0}, []uint64{10, 2, 0}, []uint64{16, 3, 0})
		calls["sendto"] = [][]uint64{{3, 1, 1, 0, 1}, {3, 1, 1, 0x20000000, 0}, {7, 1, 1, 0, 1 << 32}}
		calls["bind"] = [][]uint64{{3, 1, 16}}
	}
	if policy.Sockets != seccomp.InternetSockets {
		calls["connect"] = [][]uint64{{3, 1, 16}}
		calls["sendmsg"] = [][]uint64{{3, 1, 0x20000000}}
		calls["setsockopt"] = [][]uint64{{3, 6, 30}}
	}
	if policy.Listening == seccomp.ListenRefused {
		calls["listen"], calls["accept4"] = [][]uint64{{3, 1}}, [][]uint64{{3}}
	}
	return withFiles(calls, policy)
}

func withFiles(calls map[string][][]uint64, policy seccomp.Policy) map[string][][]uint64 {
	if policy.Truncation == seccomp.TruncationByFilter {
		calls["openat"] = [][]uint64{{3, 1, 0x200}, {3, 1, 0x203}}
		calls["truncate"] = [][]uint64{{1}}
		calls["openat2"] = [][]uint64{{3, 1, 1, 24}}
	}
	return calls
}

func holdUnderAnyBase(t *testing.T, j jail, policy seccomp.Policy) {
	t.Helper()
	for want, names := range mandatory {
		for _, name := range names {
			for _, args := range someArguments {
				if got := j.ask(name, args...); got != want && got != "" {
					t.Errorf("%s: %s(%#x) gives %s, want %s", j.arch, name, args, got, want)
				}
			}
		}
	}
	for name, lists := range neverAllowed(policy) {
		for _, args := range lists {
			if got := j.ask(name, args...); got == allowed {
				t.Errorf("%s: %s(%#x) is allowed", j.arch, name, args)
			}
		}
	}
	foreign, _, err := interpret(j.program, call{number: 1, arch: 0x40000003})
	if err != nil || word(foreign) != killed {
		t.Errorf("%s: a foreign ABI gives %s, %v", j.arch, word(foreign), err)
	}
}

// FuzzNames reads arbitrary names. A name is taken, or it is an error of its own.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"inotify_add_watch", "connect", "io_uring_setup", "", "read", "read 0", "\n", "écoute", "a b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, policy := range []seccomp.Policy{{Allow: []string{name}}, {Deny: []string{name}}} {
			policy.Warnings()
			filter, err := policy.FilterFor("amd64")
			if err != nil {
				var e *seccomp.CallError
				if !errors.As(err, &e) || e.Name != name {
					t.Errorf("%q gives %v", name, err)
				}
				continue
			}
			if len(entriesOf(filter, name)) == 0 {
				t.Errorf("%q was taken and has no entry", name)
			}
		}
	})
}

// TestRandomLists makes lists at random that are valid JSON and mostly valid lists, which
// the fuzzer seldom reaches, and compares their programs with their data.
func TestRandomLists(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	taken := 0
	for round := range 200 {
		policy := seccomp.Policy{
			Sockets: seccomp.Sockets(random.IntN(3)), Metadata: seccomp.Metadata(random.IntN(2)),
			Truncation: seccomp.Truncation(random.IntN(2)), Supervision: seccomp.Supervision(random.IntN(3)),
			Base: randomList(t, random),
		}
		for _, arch := range bothArchitectures {
			filter, err := policy.FilterFor(arch)
			if err != nil {
				continue
			}
			program, err := seccomp.Build(filter, arch)
			if err != nil {
				if strings.Contains(err.Error(), "newer than") {
					continue
				}
				t.Fatalf("round %d: %v", round, err)
			}
			taken++
			holdUnderAnyBase(t, jail{t, arch, program}, policy)
			compareWithData(t, random, filter, arch, 5)
		}
	}
	if taken < 100 {
		t.Errorf("only %d lists were taken", taken)
	}
}

// randomList makes a list whose entries for one call compare the same arguments.
func randomList(t *testing.T, random *rand.Rand) *specs.LinuxSeccomp {
	t.Helper()
	names := slices.Sorted(maps.Keys(numbers(t, "amd64")))
	base := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	for range random.IntN(40) {
		entry := specs.LinuxSyscall{Action: specs.ActAllow}
		for range 1 + random.IntN(8) {
			entry.Names = append(entry.Names, names[random.IntN(len(names))])
		}
		base.Syscalls = append(base.Syscalls, entry)
	}
	conditional := []string{
		"socket", "clone", "prlimit64", "lseek", "connect", "openat", "mmap", "ioctl", "mseal", "personality", "listen", "kill", "sendmsg",
	}
	for _, name := range conditional[:random.IntN(len(conditional))] {
		compared := 1 + random.IntN(7)
		for range 1 + random.IntN(4) {
			entry := specs.LinuxSyscall{Action: specs.ActAllow, Names: []string{name}}
			for index := range uint(3) {
				if compared&(1<<index) != 0 {
					entry.Args = append(entry.Args, randomCondition(random, index, bits.OnesCount(uint(compared))))
				}
			}
			base.Syscalls = append(base.Syscalls, entry)
		}
	}
	return base
}

// randomCondition makes one of several conditions; more than one may only be equalities.
func randomCondition(random *rand.Rand, index uint, several int) specs.LinuxSeccompArg {
	operators := []specs.LinuxSeccompOperator{
		specs.OpEqualTo, specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpGreaterThan, specs.OpGreaterEqual,
		specs.OpMaskedEqual, specs.OpMaskedEqual, specs.OpEqualTo,
	}
	if several > 1 {
		operators = operators[6:]
	}
	arg := specs.LinuxSeccompArg{Index: index, Value: uint64(random.IntN(20)), Op: operators[random.IntN(len(operators))]}
	if arg.Op == specs.OpMaskedEqual {
		arg.ValueTwo = arg.Value & uint64(random.IntN(20))
	}
	return arg
}
