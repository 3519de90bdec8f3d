package seccomp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// observedPolicies are policies of every kind, those with a person's own words among them.
func observedPolicies(t *testing.T) []preset {
	t.Helper()
	all := presets()
	own := strict
	own.Base = enginesList(t)
	narrow := internet
	narrow.Base = parseBase(t, anywhere(`
		{"names": ["read", "openat", "prctl"], "action": "SCMP_ACT_ALLOW"},
		{"names": ["mkdirat"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 2, "value": 448, "op": "SCMP_CMP_LE"}]},
		{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}]},
		{"names": ["unlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}`))
	open := strict
	open.Allow = []string{"execveat", "mknodat", "seccomp", "prctl", "memfd_create", "io_uring_setup"}
	closed := supervised
	closed.Deny = []string{"renameat2", "socket", "mkdirat"}
	return append(all, preset{"own list", own}, preset{"narrow list", narrow}, preset{"opened", open}, preset{"closed", closed})
}

// final is what a caller gets when the observer answers by the plain program's verdict.
func final(v seccomp.Verdict) string {
	switch {
	case v.Allows():
		return allowed
	case v.Waits():
		return waits
	case v.Refusal() == 0:
		return ignored
	default:
		return unix.ErrnoName(v.Refusal())
	}
}

// onlyNarrower are the two uses that a filter with a listener refuses and another may not:
// a second listener, to which the kernel says the same, and leaving the supervisor's end
// without a signal.
func onlyNarrower(name string, args [6]uint64, got string) bool {
	switch name {
	case "seccomp":
		return args[1]&unix.SECCOMP_FILTER_FLAG_NEW_LISTENER != 0 && got == "EBUSY"
	case "prctl":
		return uint32(args[0]) == unix.PR_SET_PDEATHSIG && got == "EPERM"
	}
	return false
}

// TestObservationChangesNoOutcome holds, over the whole table of calls, that what a caller
// gets under observation is what it gets without: an observer that answers by the verdict of
// the plain program lets a call go on exactly when the plain filter does.
func TestObservationChangesNoOutcome(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	waited := map[string]bool{}
	for _, p := range observedPolicies(t) {
		for _, arch := range bothArchitectures {
			policy := p.policy
			policy.Observation = seccomp.Observed
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatalf("%s on %s: %v", p.name, arch, err)
			}
			plain, observed := newJail(t, p.policy, arch), newJail(t, policy, arch)
			calls := numbers(t, arch)
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				entries := append(entriesOf(filter, name), specs.LinuxSyscall{})
				for _, entry := range entries {
					for range 12 {
						args := argumentsNear(random, entry)
						compareObserved(t, fmt.Sprintf("%s on %s", p.name, arch), name, calls[name], args, plain, observed, waited)
					}
				}
			}
		}
	}
	for _, name := range []string{"openat", "open", "execve", "unlinkat", "renameat2", "mkdirat", "socket", "truncate"} {
		if !waited[name] {
			t.Errorf("%s never waited for the observer", name)
		}
	}
}

func compareObserved(t *testing.T, where, name string, number uint32, args [6]uint64, plain, observed jail, waited map[string]bool) {
	t.Helper()
	want, got := plain.raw(number, args[:]...), observed.raw(number, args[:]...)
	verdict := plain.program.Verdict(seccomp.Call{Number: int32(number), Arch: auditArch[plain.arch], Args: args})
	if said := final(verdict); said != want {
		t.Fatalf("%s: %s(%#x): the verdict is %s, the kernel's answer %s", where, name, args, said, want)
	}
	switch {
	case got == waits && want != waits:
		if !seccomp.Observes(name) {
			t.Fatalf("%s: %s(%#x) waits, and nobody observes it", where, name, args)
		}
		waited[name] = true
	case got != want && !onlyNarrower(name, args, got):
		t.Fatalf("%s: %s(%#x) is %s under observation and %s without", where, name, args, got, want)
	}
}

// TestVerdictOfForeignCalls: what no filter of ours answers, an observer must not let go on.
func TestVerdictOfForeignCalls(t *testing.T) {
	program := build(t, strict, "amd64")
	for _, c := range []seccomp.Call{
		{Number: 2, Arch: auditArch["arm64"]},
		{Number: 2, Arch: 0x40000003},
		{Number: 0x40000000 | 2, Arch: auditArch["amd64"]},
	} {
		if v := program.Verdict(c); v.Allows() || v.Waits() || v.Refusal() == 0 {
			t.Errorf("%+v has the verdict %+v", c, v)
		}
	}
	for _, broken := range []seccomp.Program{
		nil,
		{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 64}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 17}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		{{Code: unix.BPF_JMP | unix.BPF_JA, K: 0xffffffff}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		{{Code: unix.BPF_ALU | unix.BPF_XOR | unix.BPF_K}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE}},
		{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW | 1}},
	} {
		if v := broken.Verdict(seccomp.Call{Arch: auditArch["amd64"]}); v.Allows() || v.Waits() || v.Refusal() != unix.EPERM {
			t.Errorf("%v has the verdict %+v", broken, v)
		}
	}
}

// TestObservationIsChecked: a value that is none is an error, and no preset is taken for a
// policy under observation.
func TestObservationIsChecked(t *testing.T) {
	wrong := strict
	wrong.Observation = 2
	if _, err := wrong.Filter(); err == nil {
		t.Error("observation 2 makes a filter")
	}
	observed := strict
	observed.Observation = seccomp.Observed
	if seccomp.Preset(observed) != "" {
		t.Error("there is a preset for an observed policy")
	}
	plain, err := strict.Program()
	if err != nil {
		t.Fatal(err)
	}
	got, err := observed.Unobserved()
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Bytes()) != string(plain.Bytes()) {
		t.Error("the program to answer by is not the plain one")
	}
}
