package seccomp_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/seccomp"
)

func parseBase(t testing.TB, text string) *specs.LinuxSeccomp {
	t.Helper()
	base, err := seccomp.ParseBase([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func TestParseBase(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // a part of the error; "" for none
	}{
		{name: "smallest", text: `{"defaultAction": "SCMP_ACT_ERRNO"}`},
		{name: "not JSON", text: `defaultAction: SCMP_ACT_ERRNO`, want: "invalid character"},
		{name: "empty", text: ``, want: "EOF"},
		{name: "more after it", text: `{"defaultAction": "SCMP_ACT_ERRNO"} {}`, want: "more after its end"},
		{name: "an engine's own form", text: `{"defaultAction": "SCMP_ACT_ERRNO", "archMap": []}`, want: `unknown field "archMap"`},
		{name: "an engine's conditions", text: `{"syscalls": [{"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_BPF"]}}]}`, want: `unknown field "includes"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := seccomp.ParseBase([]byte(test.text))
			checkError(t, err, test.want)
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got error %v, want %q in it", err, want)
	}
}

// list wraps syscalls entries into a complete file.
func list(entries string) string {
	return `{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], "syscalls": [` + entries + `]}`
}

func TestListsThatCannotBeKept(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"allows by default", `{"defaultAction": "SCMP_ACT_ALLOW"}`, "what is not listed must be refused"},
		{"logs by default", `{"defaultAction": "SCMP_ACT_LOG"}`, "is not supported"},
		{"no default", `{}`, "is not supported"},
		{"pretends by default", `{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 0}`, "answer success"},
		{"no errno", `{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 5000}`, "no error number"},
		{"another machine", `{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_S390X"]}`, "not for this architecture"},
		{"flags", `{"defaultAction": "SCMP_ACT_ERRNO", "flags": ["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]}`, "SPEC_ALLOW is not supported"},
		{"listener", `{"defaultAction": "SCMP_ACT_ERRNO", "listenerPath": "/run/x"}`, "listenerPath"},
		{"no names", list(`{"names": [], "action": "SCMP_ACT_ALLOW"}`), "names no system call"},
		{"notify", list(`{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}`), "not supported"},
		{"trace", list(`{"names": ["mkdir"], "action": "SCMP_ACT_TRACE"}`), "not supported"},
		{"errno of an allowance", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "errnoRet": 1}`), "means nothing"},
		{"pretends", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 0}`), "answer success"},
		{"refusal with conditions", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}`), "args is not supported"},
		{"allowed and refused", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}, {"names": ["mkdir"], "action": "SCMP_ACT_ALLOW"}`), "both allowed and refused"},
		{"seventh argument", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]}`), "beyond the last"},
		{"one argument twice", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_GE"}, {"index": 0, "value": 9, "op": "SCMP_CMP_LE"}]}`), "two conditions"},
		{"no operator", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1}]}`), "operator"},
		{"outside the mask", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}]}`), "can never hold"},
		{"second value without use", list(`{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "valueTwo": 2, "op": "SCMP_CMP_EQ"}]}`), "means nothing"},
		{"conditions that cannot be joined", list(`{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 21505, "op": "SCMP_CMP_NE"}]}`), "conditions on ioctl"},
		{"different arguments", list(`{"names": ["lseek"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}, {"names": ["lseek"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 1, "op": "SCMP_CMP_EQ"}]}`), "compare different arguments"},
		{"several arguments by order", list(`{"names": ["lseek"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_NE"}, {"index": 1, "value": 1, "op": "SCMP_CMP_NE"}]}`), "compare several arguments with SCMP_CMP_NE"},
		{"order beside our own condition", list(`{"names": ["prlimit64"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 7, "op": "SCMP_CMP_NE"}]}`), "compare several arguments with SCMP_CMP_NE"},
		{"argument beside our refusals", list(`{"names": ["sendto"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}`), "conditions on these arguments of sendto"},
		{"comparison of a newer call", list(`{"names": ["cachestat"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 9, "op": "SCMP_CMP_GT"}]}`), "newer than Linux 5.17"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			filter, err := (seccomp.Policy{Base: parseBase(t, test.text)}).FilterFor("amd64")
			if err == nil {
				_, err = seccomp.Build(filter, "amd64")
			}
			checkError(t, err, test.want)
		})
	}
}

func TestOwnList(t *testing.T) {
	policy := seccomp.Policy{Base: parseBase(t, `{
		"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
		"architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
		"syscalls": [
			{"names": ["read", "write", "exit_group", "mbind", "ptrace", "io_uring_setup", "chmod", "clone", "cachestat"], "action": "SCMP_ACT_ALLOW"},
			{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 21505, "op": "SCMP_CMP_EQ"}]},
			{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 21522, "op": "SCMP_CMP_EQ"}]},
			{"names": ["prlimit64"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 7, "op": "SCMP_CMP_EQ"}]},
			{"names": ["lseek"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 2, "value": 2, "op": "SCMP_CMP_LT"}]},
			{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}]},
			{"names": ["mseal"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 2, "value": 0, "op": "SCMP_CMP_EQ"}]},
			{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 30}
		]}`), Sockets: seccomp.InternetSockets}
	rows := []struct {
		call string
		args []uint64
		want string
	}{
		{"read", nil, allowed},
		{"mbind", nil, allowed},
		{"cachestat", nil, allowed},
		{"openat", []uint64{3, 1, 0}, "ENOSYS"}, // their default
		{"mkdir", nil, "EROFS"},
		{"mkdirat", nil, "EROFS"},
		{"ptrace", nil, "EPERM"},
		{"io_uring_setup", nil, "ENOSYS"},
		{"bpf", nil, "EPERM"},
		{"chmod", nil, ignored},
		{"fchmodat", nil, "ENOSYS"}, // not in their list, so not ignored either
		{"clone", []uint64{17}, allowed},
		{"clone", []uint64{0x10000000}, "EPERM"},
		{"ioctl", []uint64{0, 0x5401}, allowed},
		{"ioctl", []uint64{0, 0x5402}, "EPERM"},
		{"ioctl", []uint64{0, 0x5412}, "EPERM"}, // asked for, and refused
		{"prlimit64", []uint64{0, 7}, allowed},
		{"prlimit64", []uint64{0, 8}, "EPERM"},
		{"prlimit64", []uint64{1, 7}, "EPERM"},
		{"lseek", []uint64{3, 0, 1}, allowed},
		{"lseek", []uint64{3, 0, 2}, "EPERM"},
		{"socket", []uint64{2, 1, 0}, allowed},
		{"socket", []uint64{1, 1, 0}, "EACCES"},
		{"socket", []uint64{40, 1, 0}, "EAFNOSUPPORT"},
		{"mseal", []uint64{1, 1, 0}, allowed},
		{"mseal", []uint64{1, 1, 1}, "EPERM"},
		{"listen", nil, "EACCES"},
		{"memfd_create", []uint64{1, 8}, "ENOSYS"},
	}
	for _, arch := range bothArchitectures {
		j := newJail(t, policy, arch)
		for _, row := range rows {
			if got := j.ask(row.call, row.args...); got != row.want && got != "" {
				t.Errorf("%s: %s(%#x) gives %s, want %s", arch, row.call, row.args, got, row.want)
			}
		}
		filter, err := policy.FilterFor(arch)
		if err != nil {
			t.Fatal(err)
		}
		compareWithData(t, rand.New(rand.NewPCG(7, 8)), filter, arch, 30)
	}
}

// TestAllowOverOwnList opens a call that a person's list does not have.
func TestAllowOverOwnList(t *testing.T) {
	policy := seccomp.Policy{
		Base:  parseBase(t, list(`{"names": ["read"], "action": "SCMP_ACT_ALLOW"}`)),
		Allow: []string{"inotify_add_watch", "prlimit64"}, Deny: []string{"lseek"},
	}
	j := newJail(t, policy, "amd64")
	for name, want := range map[string]string{
		"inotify_add_watch": allowed, "prlimit64": allowed, "read": allowed, "lseek": "EPERM", "getpid": "EPERM",
	} {
		if got := j.ask(name, 77); got != want {
			t.Errorf("%s gives %s, want %s", name, got, want)
		}
	}
}

// enginesList is the container engines' own list in the runtime-spec form, for a container
// that was given every capability.
func enginesList(t testing.TB) *specs.LinuxSeccomp {
	t.Helper()
	base := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchAARCH64}}
	for _, entry := range moby.DefaultProfile().Syscalls {
		if entry.Action == specs.ActAllow {
			base.Syscalls = append(base.Syscalls, entry.LinuxSyscall)
		}
	}
	text, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return parseBase(t, string(text))
}

// TestEnginesListAsBase takes the widest list that people copy, and holds that what is
// refused stays refused.
func TestEnginesListAsBase(t *testing.T) {
	for _, plain := range []seccomp.Policy{strict, server, internet, refusing, older} {
		wide := plain
		wide.Base = enginesList(t)
		for _, arch := range bothArchitectures {
			j, narrow := newJail(t, wide, arch), newJail(t, plain, arch)
			for want, names := range mandatory {
				for _, name := range names {
					if got := j.ask(name); got != want && got != "" {
						t.Errorf("%s: %s gives %s, want %s", arch, name, got, want)
					}
				}
			}
			for _, name := range []string{"clone", "socket", "socketpair", "ioctl", "execveat", "memfd_create", "chmod", "utimensat", "sendto", "connect"} {
				for _, args := range append(someArguments, []uint64{2, 1, 6}, []uint64{16, 3, 0}, []uint64{0, 0x5412}, []uint64{17}) {
					if got, want := j.ask(name, args...), narrow.ask(name, args...); got == allowed && want != allowed {
						t.Errorf("%s: %s(%#x) is allowed with the wide list, without it %s", arch, name, args, want)
					}
				}
			}
			if got := j.ask("socket", 2, 1, 6); plain.Sockets != seccomp.NoSockets && got != allowed {
				t.Errorf("%s: a TCP socket gives %s, want %s", arch, got, allowed)
			}
		}
	}
}
