package seccomp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/seccomp"
)

// callErrors takes the joined errors of a filter apart.
func callErrors(t *testing.T, err error) []*seccomp.CallError {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		t.Fatalf("the error does not list its parts: %v", err)
	}
	var found []*seccomp.CallError
	for _, part := range joined.Unwrap() {
		var e *seccomp.CallError
		if !errors.As(part, &e) {
			t.Fatalf("a part is no CallError: %v", part)
		}
		found = append(found, e)
	}
	return found
}

func TestNamesThatCannotTakeEffect(t *testing.T) {
	tests := []struct {
		name   string
		policy seccomp.Policy
		want   []*seccomp.CallError
	}{
		{name: "nothing written"},
		{name: "what may be opened", policy: seccomp.Policy{Allow: []string{"inotify_add_watch", "io_uring_setup", "ioctl"}}},
		{name: "what may be refused", policy: seccomp.Policy{Deny: []string{"socketpair", "chmod", "clone", "ptrace"}}},
		{
			name:   "decided by another key",
			policy: seccomp.Policy{Allow: []string{"connect", "fchmodat2"}},
			want: []*seccomp.CallError{
				{List: "syscalls.allow", Name: "connect", Key: "network.egress", Reason: `is decided by "network.egress"`},
				{List: "syscalls.allow", Name: "fchmodat2", Key: "filesystem.metadata", Reason: `is decided by "filesystem.metadata"`},
			},
		},
		{
			name:   "mistyped",
			policy: seccomp.Policy{Allow: []string{"inotify_add_wach"}, Deny: []string{"soketpair", "frobnicate_entirely", ""}},
			want: []*seccomp.CallError{
				{List: "syscalls.allow", Name: "inotify_add_wach", Suggestion: "inotify_add_watch", Reason: "is no system call"},
				{List: "syscalls.deny", Name: "soketpair", Suggestion: "socketpair", Reason: "is no system call"},
				{List: "syscalls.deny", Name: "frobnicate_entirely", Reason: "is no system call"},
				{List: "syscalls.deny", Name: "", Reason: "is no system call"},
			},
		},
		{
			name:   "needed to start",
			policy: seccomp.Policy{Deny: []string{"execve", "exit_group"}},
			want: []*seccomp.CallError{
				{List: "syscalls.deny", Name: "execve", Reason: "is needed by every program to start"},
				{List: "syscalls.deny", Name: "exit_group", Reason: "is needed by every program to start"},
			},
		},
		{
			name:   "allowed and denied",
			policy: seccomp.Policy{Allow: []string{"ptrace"}, Deny: []string{"ptrace"}},
			want:   []*seccomp.CallError{{List: "syscalls.allow", Name: "ptrace", Reason: "is in syscalls.deny too"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.policy.FilterFor("amd64")
			if diff := cmp.Diff(test.want, callErrors(t, err)); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
			if _, err := test.policy.Program(); (err != nil) != (test.want != nil) {
				t.Errorf("Program gives another answer than Filter: %v", err)
			}
		})
	}
}

func TestNameOfAnotherArchitecture(t *testing.T) {
	_, err := (seccomp.Policy{Deny: []string{"utimes"}}).FilterFor("arm64")
	want := []*seccomp.CallError{{List: "syscalls.deny", Name: "utimes", Reason: "does not exist on this architecture"}}
	if diff := cmp.Diff(want, callErrors(t, err)); diff != "" {
		t.Errorf("errors differ (-want +got):\n%s", diff)
	}
}

// TestEveryDecidedCallHasAKey holds that syscalls.allow cannot undo what another key of
// the profile decides.
func TestEveryDecidedCallHasAKey(t *testing.T) {
	want := map[string]string{
		"socket": "network.egress", "connect": "network.egress", "sendto": "network.egress", "sendmsg": "network.egress",
		"sendmmsg": "network.egress", "setsockopt": "network.egress",
		"bind": "network.listen", "listen": "network.listen", "accept": "network.listen", "accept4": "network.listen",
		"socketpair": "network.unix",
		"open":       "filesystem.write", "openat": "filesystem.write", "openat2": "filesystem.write", "creat": "filesystem.write",
		"truncate": "filesystem.write", "execve": "filesystem.execute", "clone": "view",
	}
	for _, name := range []string{
		"chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr",
		"lsetxattr", "removexattr", "lremovexattr", "setxattrat", "removexattrat", "file_setattr",
	} {
		want[name] = "filesystem.metadata"
	}
	got := map[string]string{}
	for _, arch := range bothArchitectures {
		for name := range numbers(t, arch) {
			if key := seccomp.KeyOf(name); key != "" {
				got[name] = key
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
}

func TestDeny(t *testing.T) {
	policy := seccomp.Policy{Deny: []string{"socketpair", "fchmodat", "ioctl", "cachestat", "clone3"}}
	for _, arch := range bothArchitectures {
		j := newJail(t, policy, arch)
		for name, args := range map[string][]uint64{
			"socketpair": {1, 1, 0}, "fchmodat": {3, 1, 0o777}, "ioctl": {0, 0x5401}, "cachestat": {3}, "listen": {3},
		} {
			want := "EPERM"
			if name == "listen" {
				want = "EACCES" // as without the list
			}
			if got := j.ask(name, args...); got != want {
				t.Errorf("%s: %s gives %s, want %s", arch, name, got, want)
			}
		}
		// A call that is refused anyway keeps the errno that programs handle.
		if got := j.ask("clone3"); got != "ENOSYS" {
			t.Errorf("%s: clone3 gives %s, want ENOSYS", arch, got)
		}
		if got := j.ask("read"); got != allowed {
			t.Errorf("%s: read gives %s, want %s", arch, got, allowed)
		}
	}
}

func TestWarnings(t *testing.T) {
	parse := func(json string) seccomp.Policy {
		base, err := seccomp.ParseBase([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return seccomp.Policy{Base: base}
	}
	tests := []struct {
		name   string
		policy seccomp.Policy
		want   []string // a part of each warning, in order
	}{
		{name: "no words of a person", policy: internet},
		{name: "io_uring", policy: seccomp.Policy{Allow: []string{"io_uring_setup"}}, want: []string{"syscalls.allow: io_uring_setup runs requests that no filter sees"}},
		{name: "a call with conditions", policy: seccomp.Policy{Allow: []string{"memfd_create"}}, want: []string{"memfd_create makes memory files that can be executed"}},
		{
			name: "twice and sorted", policy: seccomp.Policy{Allow: []string{"ptrace", "bpf", "ptrace"}},
			want: []string{"syscalls.allow: bpf ", "syscalls.allow: ptrace reaches into other processes"},
		},
		{name: "outside both lists", policy: seccomp.Policy{Allow: []string{"mbind"}}, want: []string{"mbind is a call that container engines refuse"}},
		{name: "allowed anyway", policy: seccomp.Policy{Allow: []string{"getpid"}}, want: []string{"getpid has no effect"}},
		{name: "refused anyway", policy: seccomp.Policy{Deny: []string{"ptrace", "socketpair"}}, want: []string{"syscalls.deny: ptrace has no effect"}},
		{
			name: "a list of their own",
			policy: parse(`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
				{"names": ["read", "mbind", "adjtimex", "ptrace", "chown32", "wriet"], "action": "SCMP_ACT_ALLOW"}]}`),
			want: []string{
				"syscalls.profile: allows what container engines refuse by default: mbind",
				"syscalls.profile: these stay refused, syscalls.allow opens them: ptrace",
				"syscalls.profile: no such calls on this architecture: chown32, wriet",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.policy.Warnings()
			if len(got) != len(test.want) {
				t.Fatalf("got %d warnings, want %d:\n%s", len(got), len(test.want), strings.Join(got, "\n"))
			}
			for i, part := range test.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("warning %d is %q, want %q in it", i, got[i], part)
				}
			}
		})
	}
}

// TestEveryOpeningIsWarnedOf holds that no name in syscalls.allow weakens the filter
// without a word.
func TestEveryOpeningIsWarnedOf(t *testing.T) {
	for name := range numbers(t, "amd64") {
		policy := seccomp.Policy{Allow: []string{name}}
		if _, err := policy.FilterFor("amd64"); err != nil {
			continue
		}
		warnings := policy.Warnings()
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, "syscalls.allow: "+name+" ") }) {
			t.Errorf("allowing %s gives no warning: %v", name, warnings)
		}
	}
}
