package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// list is what the calls of one list are answered with before this package subtracts.
type list struct {
	rules ruleSet // of calls that exist on the architecture
	// absent is the answer to calls that the list does not name.
	absent unix.Errno
	// strange are the names that no supported architecture has, sorted.
	strange []string
}

// maxErrno is the largest error number that a filter can answer (MAX_ERRNO, linux/err.h).
const maxErrno = 4095

// maxArgument is the index of the last argument of a system call.
const maxArgument = 5

// builtInList is the default list of container engines for a container without any
// capability, on a kernel that is new enough for every entry.
func builtInList(arch architecture, calls map[string]uint32) (list, error) {
	var entries []specs.LinuxSyscall
	for _, entry := range moby.DefaultProfile().Syscalls {
		if entry != nil && applies(entry, arch.name) {
			entries = append(entries, entry.LinuxSyscall)
		}
	}
	l, err := readList(entries, calls)
	if err != nil {
		return list{}, fmt.Errorf("reading the built-in list: %w", err)
	}
	// Where both have conditions, ours are narrower (a test compares them), and leaving
	// theirs out keeps 64-bit comparisons away from 32-bit arguments.
	for _, name := range []string{"clone", "personality", "socket"} {
		if rules, listed := l.rules[name]; listed && !rules[0].refuses() {
			l.rules[name] = []rule{allow()}
		}
	}
	// Linux 6.17, not judged by the list yet. Ours admits nothing of it: it is listed here so
	// that metadataRules gives the same answer by path as for its older kin.
	if _, exists := calls["file_setattr"]; exists {
		l.rules["file_setattr"] = []rule{allow()}
	}
	return l, nil
}

// applies resolves an entry's conditions: the list's own code reads the running kernel and
// asks for a container, and this must give the same answer everywhere.
func applies(entry *moby.Syscall, arch string) bool {
	if in := entry.Includes; in != nil {
		if len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, arch) {
			return false
		}
	}
	if ex := entry.Excludes; ex != nil {
		if ex.MinKernel != nil || slices.Contains(ex.Arches, arch) {
			return false
		}
	}
	return true
}

// ParseBase reads a file in the OCI runtime-spec linux.seccomp form for [Policy.Base].
// Keys that the form does not have are errors, among them the ones that only container
// engines resolve ("archMap", "includes", "excludes").
func ParseBase(data []byte) (*specs.LinuxSeccomp, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var base specs.LinuxSeccomp
	if err := decoder.Decode(&base); err != nil {
		return nil, fmt.Errorf("reading a system call list: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading a system call list: there is more after its end")
	}
	return &base, nil
}

// personsList reads a person's own list. Whatever it asks for that cannot be kept exactly
// is an error.
func personsList(base *specs.LinuxSeccomp, arch architecture, calls map[string]uint32) (list, error) {
	if base.DefaultAction != specs.ActErrno {
		return list{}, fmt.Errorf("reading the system call list: defaultAction %q is not supported, only %s is: what is not listed must be refused",
			base.DefaultAction, specs.ActErrno)
	}
	if len(base.Architectures) > 0 && !slices.Contains(base.Architectures, arch.spec) {
		return list{}, fmt.Errorf("reading the system call list: it is not for this architecture: %s is missing from its architectures", arch.spec)
	}
	if len(base.Flags) > 0 {
		return list{}, fmt.Errorf("reading the system call list: flag %s is not supported", base.Flags[0])
	}
	if base.ListenerPath != "" || base.ListenerMetadata != "" {
		return list{}, errors.New("reading the system call list: listenerPath and listenerMetadata are not supported")
	}
	absent, err := errnoOf(base.DefaultErrnoRet)
	if err != nil {
		return list{}, fmt.Errorf("reading the system call list: defaultErrnoRet: %w", err)
	}
	l, err := readList(base.Syscalls, calls)
	if err != nil {
		return list{}, fmt.Errorf("reading the system call list: %w", err)
	}
	l.absent = absent
	return l, nil
}

func errnoOf(errno *uint) (unix.Errno, error) {
	switch {
	case errno == nil:
		return unix.EPERM, nil
	case *errno == 0:
		return 0, errors.New("0 would answer success to a call that did nothing")
	case *errno > maxErrno:
		return 0, fmt.Errorf("%d is no error number", *errno)
	default:
		return unix.Errno(*errno), nil
	}
}

func readList(entries []specs.LinuxSyscall, calls map[string]uint32) (list, error) {
	l := list{rules: make(ruleSet, len(calls)), absent: unix.EPERM}
	refused := ruleSet{}
	for i, entry := range entries {
		r, err := readEntry(entry)
		if err != nil {
			return list{}, fmt.Errorf("entry %d (%s): %w", i+1, strings.Join(entry.Names, ", "), err)
		}
		for _, name := range entry.Names {
			if _, exists := calls[name]; !exists {
				if !knownSomewhere(name) {
					l.strange = append(l.strange, name)
				}
				continue
			}
			if r.refuses() {
				refused[name] = []rule{r}
				continue
			}
			l.rules[name] = append(l.rules[name], r)
		}
	}
	for name, rules := range l.rules {
		if _, both := refused[name]; both {
			return list{}, fmt.Errorf("%s is both allowed and refused", name)
		}
		// One entry without conditions makes the others say nothing.
		if slices.ContainsFunc(rules, func(r rule) bool { return len(r.args) == 0 }) {
			l.rules[name] = []rule{allow()}
			continue
		}
		if err := keepable(rules); err != nil {
			return list{}, fmt.Errorf("the entries of %s %w", name, err)
		}
	}
	maps.Copy(l.rules, refused)
	slices.Sort(l.strange)
	l.strange = slices.Compact(l.strange)
	return l, nil
}

// keepable refuses alternatives that libseccomp 2.5.4 does not keep apart. Tried with
// random lists, alternatives on one argument are exact, and so are equalities on several;
// others let through what no entry allows, or make the library loop forever.
func keepable(rules []rule) error {
	for _, r := range rules {
		if r.arguments() != rules[0].arguments() {
			return errors.New("compare different arguments, which is not supported: compare the same ones in each")
		}
		for _, arg := range r.args {
			if _, _, equality := asMask(arg); !equality && len(r.args) > 1 {
				return fmt.Errorf("compare several arguments with %s, which is not supported: only == and masked == are", arg.Op)
			}
		}
	}
	return nil
}

func readEntry(entry specs.LinuxSyscall) (rule, error) {
	if len(entry.Names) == 0 {
		return rule{}, errors.New("it names no system call")
	}
	switch entry.Action {
	case specs.ActAllow:
		if entry.ErrnoRet != nil {
			return rule{}, errors.New("errnoRet means nothing with SCMP_ACT_ALLOW")
		}
		return allow(entry.Args...), checkArgs(entry.Args)
	case specs.ActErrno:
		if len(entry.Args) > 0 {
			return rule{}, errors.New("SCMP_ACT_ERRNO with args is not supported: list what is allowed instead")
		}
		errno, err := errnoOf(entry.ErrnoRet)
		if err != nil {
			return rule{}, fmt.Errorf("errnoRet: %w", err)
		}
		return refuse(errno), nil
	default:
		return rule{}, fmt.Errorf("action %q is not supported, only %s and %s are", entry.Action, specs.ActAllow, specs.ActErrno)
	}
}

// checkArgs refuses conditions that engines read differently or that can never hold.
func checkArgs(args []specs.LinuxSeccompArg) error {
	var seen [maxArgument + 1]bool
	for _, arg := range args {
		if arg.Index > maxArgument {
			return fmt.Errorf("argument index %d is beyond the last, %d", arg.Index, maxArgument)
		}
		if seen[arg.Index] {
			return fmt.Errorf("two conditions on argument %d in one entry are not supported: engines read them as \"or\"", arg.Index)
		}
		seen[arg.Index] = true
		switch arg.Op {
		case specs.OpMaskedEqual:
			if arg.ValueTwo&^arg.Value != 0 {
				return fmt.Errorf("the masked condition on argument %d can never hold: valueTwo has bits outside the mask", arg.Index)
			}
		case specs.OpEqualTo, specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpGreaterThan, specs.OpGreaterEqual:
			if arg.ValueTwo != 0 {
				return fmt.Errorf("valueTwo of argument %d means nothing with %s", arg.Index, arg.Op)
			}
		default:
			return fmt.Errorf("operator %q is not supported", arg.Op)
		}
	}
	return nil
}
