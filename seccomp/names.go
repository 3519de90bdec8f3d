package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CallError is a name in Allow or Deny that cannot take effect.
type CallError struct {
	// List is the key of the profile that holds the name: "syscalls.allow" or
	// "syscalls.deny".
	List string
	// Name is the system call as it was written.
	Name string
	// Key is the profile key that decides the call in place of syscalls.allow; "" when that
	// is not the reason.
	Key string
	// Suggestion is a name that may have been meant; "" when there is none.
	Suggestion string
	// Reason says what is wrong, in a few words.
	Reason string
}

// Error returns the list, the name and the reason; the suggestion is left to the caller.
func (e *CallError) Error() string {
	return fmt.Sprintf("checking %s: %s %s", e.List, e.Name, e.Reason)
}

const (
	allowList = "syscalls.allow"
	denyList  = "syscalls.deny"
)

// keyOf returns the profile key that decides a call; "" for the calls that
// syscalls.allow may open.
func keyOf(name string) string {
	switch name {
	case "socket", "connect", "sendto", "sendmsg", "sendmmsg", "setsockopt":
		return "network.egress"
	case "bind", "listen", "accept", "accept4":
		return "network.listen"
	case "socketpair":
		return "network.unix"
	case "open", "openat", "openat2", "creat", "truncate":
		return "filesystem.write"
	case "execve":
		return "filesystem.execute"
	case "clone":
		return "view"
	case "file_setattr":
		return "filesystem.metadata"
	}
	if slices.Contains(metadataByPath, name) || slices.Contains(metadataByPathOrNull, name) || slices.Contains(attributesAt, name) {
		return "filesystem.metadata"
	}
	return ""
}

// needed are the calls without which no program starts: the launcher's own last steps, the
// loader's, and those of every C library at start and end.
var needed = [...]string{
	"arch_prctl", "brk", "close", "execve", "exit", "exit_group", "fstat", "futex", "getpid", "gettid", "madvise", "mmap",
	"mprotect", "munmap", "nanosleep", "newfstatat", "openat", "read", "restart_syscall", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "sched_yield", "set_tid_address", "sigaltstack", "tgkill", "write",
}

// checkNames returns every name in Allow and Deny that cannot take effect, as joined
// [*CallError] values.
func (p Policy) checkNames(calls map[string]uint32) error {
	var found []error
	add := func(e CallError) { found = append(found, &e) }
	for _, name := range p.Allow {
		if key := keyOf(name); key != "" {
			add(CallError{List: allowList, Name: name, Key: key, Reason: fmt.Sprintf("is decided by %q", key)})
			continue
		}
		if reason := aroundSupervisor(name); reason != "" && p.Supervision != Unsupervised {
			add(CallError{List: allowList, Name: name, Reason: reason})
			continue
		}
		if slices.Contains(p.Deny, name) {
			add(CallError{List: allowList, Name: name, Reason: "is in syscalls.deny too"})
			continue
		}
		if e := unknown(allowList, name, calls); e != nil {
			add(*e)
		}
	}
	for _, name := range p.Deny {
		if slices.Contains(needed[:], name) {
			add(CallError{List: denyList, Name: name, Reason: "is needed by every program to start"})
			continue
		}
		if e := unknown(denyList, name, calls); e != nil {
			add(*e)
		}
	}
	return errors.Join(found...)
}

// aroundSupervisor says how a call would lead past a supervisor; "" when it does not.
func aroundSupervisor(name string) string {
	switch name {
	case "seccomp":
		return "would let the server answer in the supervisor's place"
	case "prctl":
		return "would let the server outlive its supervisor"
	case "io_uring_setup", "io_uring_enter", "io_uring_register":
		return "connects and sends without a system call that the supervisor could see"
	}
	return ""
}

func unknown(list, name string, calls map[string]uint32) *CallError {
	if _, exists := calls[name]; exists {
		return nil
	}
	if knownSomewhere(name) {
		return &CallError{List: list, Name: name, Reason: "does not exist on this architecture"}
	}
	return &CallError{List: list, Name: name, Suggestion: nearest(name), Reason: "is no system call"}
}

// Warnings returns one sentence for each way in which the person's words make the filter
// weaker, or do nothing. It is empty for a policy with neither Base nor Allow nor Deny.
//
// A policy that [Policy.Filter] refuses has the warnings that can be told without it.
func (p Policy) Warnings() []string {
	if p.Base == nil && len(p.Allow) == 0 && len(p.Deny) == 0 {
		return nil
	}
	arch, err := architectureOf(nativeArch)
	if err != nil {
		return nil
	}
	calls, err := arch.calls()
	if err != nil {
		return nil
	}
	// What the policy would be without the person's words.
	plain := p
	plain.Base, plain.Allow, plain.Deny = nil, nil, nil
	before, err := plain.rulesFor(arch)
	if err != nil {
		return nil
	}
	warnings := p.baseWarnings(arch, calls)
	for _, name := range sortedSet(p.Allow) {
		switch why := weakening(name); {
		case why != "":
			warnings = append(warnings, fmt.Sprintf("%s: %s %s", allowList, name, why))
		case always(before[name]) && !before[name][0].refuses():
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: it is allowed anyway", allowList, name))
		default:
			warnings = append(warnings, fmt.Sprintf("%s: %s is a call that container engines refuse by default", allowList, name))
		}
	}
	for _, name := range sortedSet(p.Deny) {
		if refusesAlways(before[name]) {
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: it is refused anyway", denyList, name))
		}
	}
	return warnings
}

// baseWarnings compares a person's list with the built-in one.
func (p Policy) baseWarnings(arch architecture, calls map[string]uint32) []string {
	if p.Base == nil {
		return nil
	}
	theirs, err := personsList(p.Base, arch, calls)
	if err != nil {
		return nil
	}
	builtIn, err := builtInList(arch, calls)
	if err != nil {
		return nil
	}
	refused := refusalRules()
	var wider []string
	var vain []string
	for name, rules := range theirs.rules {
		if rules[0].refuses() {
			continue
		}
		if _, kept := refused[name]; kept {
			if !slices.Contains(p.Allow, name) {
				vain = append(vain, name)
			}
			continue
		}
		if have, listed := builtIn.rules[name]; !listed || have[0].refuses() {
			wider = append(wider, name)
		}
	}
	var warnings []string
	add := func(names []string, format string) {
		if len(names) > 0 {
			slices.Sort(names)
			warnings = append(warnings, fmt.Sprintf(format, strings.Join(names, ", ")))
		}
	}
	add(wider, "syscalls.profile: allows what container engines refuse by default: %s")
	add(vain, "syscalls.profile: these stay refused, syscalls.allow opens them: %s")
	add(theirs.strange, "syscalls.profile: no such calls on this architecture: %s")
	return warnings
}

// sortedSet returns the names sorted and without repetitions.
func sortedSet(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
