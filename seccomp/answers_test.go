package seccomp_test

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// Answers of a filter in words: "ALLOW", "NOTIFY" (a supervisor is asked), "KILL", "0"
// (success without effect), or the name of an errno.
const (
	allowed = "ALLOW"
	waits   = "NOTIFY"
	killed  = "KILL"
	ignored = "0"
)

func word(answer uint32) string {
	switch answer & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return allowed
	case unix.SECCOMP_RET_USER_NOTIF:
		return waits
	case unix.SECCOMP_RET_KILL_PROCESS:
		return killed
	case unix.SECCOMP_RET_ERRNO:
		if errno := answer & unix.SECCOMP_RET_DATA; errno != 0 {
			return unix.ErrnoName(unix.Errno(errno))
		}
		return ignored
	default:
		return fmt.Sprintf("action %#x", answer)
	}
}

// machine is what a test has to know about an architecture; it is written here again, from
// linux/audit.h, so that a wrong constant in the code is seen.
var auditArch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}

var tables = map[string]func() (map[string]uint32, error){
	"amd64": sync.OnceValues(func() (map[string]uint32, error) { return seccomp.Numbers("amd64") }),
	"arm64": sync.OnceValues(func() (map[string]uint32, error) { return seccomp.Numbers("arm64") }),
}

func numbers(t testing.TB, arch string) map[string]uint32 {
	t.Helper()
	calls, err := tables[arch]()
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func build(t testing.TB, policy seccomp.Policy, arch string) seccomp.Program {
	t.Helper()
	filter, err := policy.FilterFor(arch)
	if err != nil {
		t.Fatalf("%+v: %v", policy, err)
	}
	program, err := seccomp.Build(filter, arch)
	if err != nil {
		t.Fatalf("%+v: %v", policy, err)
	}
	return program
}

// jail is a built filter that answers calls by name.
type jail struct {
	t       testing.TB
	arch    string
	program seccomp.Program
}

// built keeps programs by policy and architecture: many cases ask the same jail.
var built sync.Map

func newJail(t testing.TB, policy seccomp.Policy, arch string) jail {
	t.Helper()
	key := fmt.Sprintf("%+v %s", policy, arch)
	program, found := built.Load(key)
	if !found {
		program = build(t, policy, arch)
		built.Store(key, program)
	}
	return jail{t, arch, program.(seccomp.Program)}
}

func (j jail) raw(number uint32, args ...uint64) string {
	j.t.Helper()
	c := call{number: number, arch: auditArch[j.arch]}
	copy(c.args[:], args)
	answer, _, err := interpret(j.program, c)
	if err != nil {
		j.t.Fatal(err)
	}
	return word(answer)
}

// ask returns the answer to a call, and "" when the architecture does not have it.
func (j jail) ask(name string, args ...uint64) string {
	j.t.Helper()
	number, exists := numbers(j.t, j.arch)[name]
	if !exists {
		return ""
	}
	return j.raw(number, args...)
}
