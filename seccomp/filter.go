package seccomp

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

const nativeArch = runtime.GOARCH

// lastCommon is the last number that libseccomp 2.5.4 knows (set_mempolicy_home_node,
// Linux 5.17). From 424 on, numbers are the same on every architecture.
const lastCommon = 450

// Filter returns the policy's filter for the running architecture in the OCI runtime-spec
// form, sorted, so that equal policies give equal filters. It is pure.
//
// The default action is EPERM, for calls that are known and refused and for arguments that
// no rule admits. Container engines and [Build] both answer ENOSYS to numbers beyond the
// ones that the filter names, so that programs fall back from calls of newer kernels.
//
// Names in Allow and Deny that cannot take effect are returned together, as joined
// [*CallError] values.
func (p Policy) Filter() (*specs.LinuxSeccomp, error) { return p.FilterFor(nativeArch) }

// FilterFor is [Policy.Filter] for another architecture: "amd64" or "arm64".
func (p Policy) FilterFor(arch string) (*specs.LinuxSeccomp, error) {
	a, err := architectureOf(arch)
	if err != nil {
		return nil, err
	}
	rules, err := p.rulesFor(a)
	if err != nil {
		return nil, err
	}
	return rules.spec(a), nil
}

// check refuses values that are none and combinations that mean nothing.
func (p Policy) check() error {
	switch {
	case p.Sockets > InternetSockets:
		return fmt.Errorf("checking the filter policy: no such socket policy: %d", p.Sockets)
	case p.Listening > ListenAllowed:
		return fmt.Errorf("checking the filter policy: no such listening policy: %d", p.Listening)
	case p.Supervision > SupervisedInternet:
		return fmt.Errorf("checking the filter policy: no such supervision policy: %d", p.Supervision)
	case p.Observation > Observed:
		return fmt.Errorf("checking the filter policy: no such observation policy: %d", p.Observation)
	case p.Metadata > MetadataRefuse:
		return fmt.Errorf("checking the filter policy: no such metadata policy: %d", p.Metadata)
	case p.Truncation > TruncationByFilter:
		return fmt.Errorf("checking the filter policy: no such truncation policy: %d", p.Truncation)
	case p.Supervision == SupervisedUnix && p.Sockets == InternetSockets:
		return errors.New("checking the filter policy: the supervisor is for Unix sockets only, but Internet sockets are admitted")
	case p.Supervision == Unsupervised && p.Sockets == NoSockets && p.Listening == ListenAllowed:
		return errors.New("checking the filter policy: listening is allowed, but there is no socket to listen on")
	}
	return nil
}

// rulesFor returns the rules of every call that the architecture has.
func (p Policy) rulesFor(arch architecture) (ruleSet, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	calls, err := arch.calls()
	if err != nil {
		return nil, err
	}
	if err := p.checkNames(calls); err != nil {
		return nil, err
	}
	start, err := p.list(arch, calls)
	if err != nil {
		return nil, err
	}
	decided := p.decisions()
	rules := make(ruleSet, len(calls))
	for name, number := range calls {
		switch {
		case slices.Contains(p.Allow, name):
			if rules[name] = p.aroundObserver(name); rules[name] == nil {
				rules[name] = []rule{allow()}
			}
		default:
			rules[name], err = decide(decided[name], start, name, number)
			if err != nil {
				return nil, err
			}
		}
		if slices.Contains(p.Deny, name) && !refusesAlways(rules[name]) {
			rules[name] = []rule{refuse(unix.EPERM)}
		}
	}
	p.observed(rules)
	return rules, nil
}

func (p Policy) list(arch architecture, calls map[string]uint32) (list, error) {
	if p.Base == nil {
		return builtInList(arch, calls)
	}
	return personsList(p.Base, arch, calls)
}

// decisions are this package's own answers, which win over every list.
func (p Policy) decisions() ruleSet {
	all := refusalRules()
	for _, rules := range []ruleSet{restrictedRules(), p.metadataRules(), p.fileRules(), p.socketRules()} {
		maps.Copy(all, rules)
	}
	for _, name := range [...]string{"seccomp", "prctl"} {
		if rules := p.aroundObserver(name); rules != nil {
			all[name] = rules
		}
	}
	return all
}

// decide joins our answer to one call with a list's. What either refuses is refused.
func decide(ours []rule, start list, name string, number uint32) ([]rule, error) {
	theirs, listed := start.rules[name]
	listed = listed && !theirs[0].refuses()
	switch {
	case ours == nil && theirs != nil:
		return theirs, nil // its conditions, or its own errno
	case ours == nil && number > lastCommon && start.absent == unix.EPERM:
		// A call that nobody has judged yet. Programs fall back from ENOSYS.
		return []rule{refuse(unix.ENOSYS)}, nil
	case ours == nil:
		return []rule{refuse(start.absent)}, nil
	case listed && always(theirs):
		return ours, nil
	}
	if !listed {
		closed := slices.Clone(ours)
		for i, r := range closed {
			if !r.refuses() {
				closed[i] = refuse(start.absent, r.args...)
			}
		}
		return closed, nil
	}
	kept := slices.DeleteFunc(slices.Clone(ours), func(r rule) bool { return !r.refuses() })
	open := slices.DeleteFunc(slices.Clone(ours), rule.refuses)
	joined, ok := intersect(open, theirs)
	if !ok {
		return nil, fmt.Errorf("joining the system call list with what is refused anyway: the conditions on %s are not supported", name)
	}
	if err := keepable(joined); err != nil {
		return nil, fmt.Errorf("joining the system call list with what is refused anyway: the entries of %s %w", name, err)
	}
	// Refusals with an errno of their own stay as they are, so what they stand beside must
	// go on comparing the same arguments.
	if len(kept) > 0 && len(joined) > 0 && joined[0].arguments() != open[0].arguments() {
		return nil, fmt.Errorf("joining the system call list with what is refused anyway: conditions on these arguments of %s are not supported", name)
	}
	joined = append(joined, kept...)
	if len(joined) == 0 {
		joined = []rule{refuse(unix.EPERM)}
	}
	return joined, nil
}

// spec writes the rules in the runtime-spec form: one entry for all calls with the same
// answer, one for each rule with conditions.
func (s ruleSet) spec(arch architecture) *specs.LinuxSeccomp {
	eperm := uint(unix.EPERM)
	filter := &specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &eperm,
		Architectures:   []specs.Arch{arch.spec},
	}
	var allowed, notified []string
	refused := map[uint][]string{}
	var conditional []specs.LinuxSyscall
	for _, name := range slices.Sorted(maps.Keys(s)) {
		rules := s[name]
		switch {
		case always(rules) && rules[0].action == specs.ActAllow:
			allowed = append(allowed, name)
		case always(rules) && rules[0].action == specs.ActNotify:
			notified = append(notified, name)
		case always(rules):
			refused[rules[0].errno] = append(refused[rules[0].errno], name)
		default:
			for _, r := range rules {
				conditional = append(conditional, r.entry(name))
			}
		}
	}
	if len(allowed) > 0 {
		filter.Syscalls = append(filter.Syscalls, allow().entry(allowed...))
	}
	for _, errno := range slices.Sorted(maps.Keys(refused)) {
		filter.Syscalls = append(filter.Syscalls, refuse(unix.Errno(errno)).entry(refused[errno]...))
	}
	if len(notified) > 0 {
		filter.Syscalls = append(filter.Syscalls, notify().entry(notified...))
	}
	filter.Syscalls = append(filter.Syscalls, conditional...)
	return filter
}

func (r rule) entry(names ...string) specs.LinuxSyscall {
	entry := specs.LinuxSyscall{Names: names, Action: r.action, Args: r.args}
	if r.action == specs.ActErrno {
		errno := r.errno
		entry.ErrnoRet = &errno
	}
	return entry
}
