package seccomp

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// Build makes BPF from a filter that [Policy.FilterFor] returned, for the same
// architecture. Nothing is loaded into the kernel, so a filter for another machine can be
// built too. The program ends a process that uses another ABI (i386, x32, 32-bit Arm).
//
// Actions other than allow and errno, flags, and names that the architecture does not have
// are errors.
func Build(filter *specs.LinuxSeccomp, arch string) (Program, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return nil, fmt.Errorf("building the filter for %s: %w", arch, err)
	}
	first, err := head(b.arch, b.calls, b.rules, b.otherwise)
	if err != nil {
		return nil, fmt.Errorf("building the filter for %s: %w", arch, err)
	}
	code, err := b.export((*libseccomp.ScmpFilter).ExportBPF)
	if err != nil {
		return nil, fmt.Errorf("building the filter for %s: %w", arch, err)
	}
	rest, err := parseProgram(code)
	if err != nil {
		return nil, fmt.Errorf("building the filter for %s: %w", arch, err)
	}
	if len(first)+len(rest) > maxInstructions {
		return nil, fmt.Errorf("building the filter for %s: %d instructions are more than the kernel's %d",
			arch, len(first)+len(rest), maxInstructions)
	}
	return append(first, rest...), nil
}

// ExportText lists the filter that [Build] makes, for people: libseccomp's pseudo filter
// code, and before it what is decided in front of that.
func ExportText(filter *specs.LinuxSeccomp, arch string) (string, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return "", fmt.Errorf("listing the filter for %s: %w", arch, err)
	}
	text, err := b.export((*libseccomp.ScmpFilter).ExportPFC)
	if err != nil {
		return "", fmt.Errorf("listing the filter for %s: %w", arch, err)
	}
	return headText(b.arch, b.calls, b.rules, b.otherwise) + string(text), nil
}

// building is a filter on its way from data to BPF.
type building struct {
	arch      architecture
	calls     map[string]uint32
	rules     ruleSet
	otherwise unix.Errno // answer to calls and arguments that no rule names
}

func prepare(filter *specs.LinuxSeccomp, arch string) (building, error) {
	a, err := architectureOf(arch)
	if err != nil {
		return building{}, err
	}
	calls, err := a.calls()
	if err != nil {
		return building{}, err
	}
	b := building{arch: a, calls: calls, rules: make(ruleSet, len(calls))}
	switch {
	case filter.DefaultAction != specs.ActErrno:
		return building{}, fmt.Errorf("default action %q is not %s", filter.DefaultAction, specs.ActErrno)
	case len(filter.Architectures) != 1 || filter.Architectures[0] != a.spec:
		return building{}, fmt.Errorf("architectures %v are not just %s", filter.Architectures, a.spec)
	case len(filter.Flags) > 0 || filter.ListenerPath != "" || filter.ListenerMetadata != "":
		return building{}, errors.New("flags and listeners are not supported")
	}
	if b.otherwise, err = errnoOf(filter.DefaultErrnoRet); err != nil {
		return building{}, fmt.Errorf("default errno: %w", err)
	}
	for _, entry := range filter.Syscalls {
		if err := b.addEntry(entry); err != nil {
			return building{}, err
		}
	}
	return b, nil
}

func (b *building) addEntry(entry specs.LinuxSyscall) error {
	r := rule{action: entry.Action, args: entry.Args}
	switch entry.Action {
	case specs.ActAllow:
	case specs.ActErrno:
		r.errno = uint(unix.EPERM)
		if entry.ErrnoRet != nil {
			r.errno = *entry.ErrnoRet
		}
		if r.errno > maxErrno {
			return fmt.Errorf("%d is no error number", r.errno)
		}
	default:
		return fmt.Errorf("action %q is not supported", entry.Action)
	}
	if err := checkArgs(entry.Args); err != nil {
		return err
	}
	for _, name := range entry.Names {
		if _, exists := b.calls[name]; !exists {
			return fmt.Errorf("there is no system call %q on %s", name, b.arch.name)
		}
		b.rules[name] = append(b.rules[name], r)
	}
	return nil
}

// export builds libseccomp's part and writes it with one of its exporters. They write to
// files only (ExportBPFMem needs libseccomp 2.6), and a pipe could be too small.
func (b *building) export(write func(*libseccomp.ScmpFilter, *os.File) error) (out []byte, err error) {
	filter, err := b.libFilter()
	if err != nil {
		return nil, err
	}
	defer filter.Release()
	fd, err := unix.MemfdCreate("stockade-filter", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "stockade-filter") //nolint:gosec // a descriptor is not negative
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := write(filter, file); err != nil {
		return nil, fmt.Errorf("exporting the filter: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewinding the memory file: %w", err)
	}
	if out, err = io.ReadAll(file); err != nil {
		return nil, fmt.Errorf("reading the exported filter: %w", err)
	}
	return out, nil
}

func (b *building) libFilter() (filter *libseccomp.ScmpFilter, err error) {
	filter, err = libseccomp.NewFilter(libErrno(uint(b.otherwise)))
	if err != nil {
		return nil, fmt.Errorf("making an empty filter: %w", err)
	}
	defer func() {
		if err != nil {
			filter.Release()
			filter = nil
		}
	}()
	target, err := b.onlyArch(filter)
	if err != nil {
		return filter, err
	}
	if err := filter.SetBadArchAction(libseccomp.ActKillProcess); err != nil {
		return filter, fmt.Errorf("ending processes that use another ABI: %w", err)
	}
	// A binary search over numbers in place of one comparison for each call.
	if err := filter.SetOptimize(2); err != nil {
		return filter, fmt.Errorf("asking for a binary search: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(b.rules)) {
		if ownNumber(name, b.calls[name]) {
			continue
		}
		if err := b.addCall(filter, target, name); err != nil {
			return filter, fmt.Errorf("adding %s: %w", name, err)
		}
	}
	return filter, nil
}

// onlyArch leaves the target architecture alone in the filter.
func (b *building) onlyArch(filter *libseccomp.ScmpFilter) (libseccomp.ScmpArch, error) {
	target, err := libseccomp.GetArchFromString(b.arch.name)
	if err != nil {
		return 0, fmt.Errorf("naming the architecture: %w", err)
	}
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		return 0, fmt.Errorf("asking for the native architecture: %w", err)
	}
	if target == native {
		return target, nil
	}
	if err := filter.AddArch(target); err != nil {
		return 0, fmt.Errorf("adding the architecture: %w", err)
	}
	if err := filter.RemoveArch(native); err != nil {
		return 0, fmt.Errorf("removing the native architecture: %w", err)
	}
	return target, nil
}

func (b *building) addCall(filter *libseccomp.ScmpFilter, target libseccomp.ScmpArch, name string) error {
	// libseccomp takes native numbers, or pseudo numbers for calls of other machines, and
	// translates them itself. Its tables must agree with ours.
	there, err := libseccomp.GetSyscallFromNameByArch(name, target)
	if err != nil {
		return fmt.Errorf("asking libseccomp for its number: %w", err)
	}
	if int64(there) != int64(b.calls[name]) {
		return fmt.Errorf("libseccomp says it has number %d, the call table says %d", there, b.calls[name])
	}
	call, err := libseccomp.GetSyscallFromName(name)
	if err != nil {
		return fmt.Errorf("asking libseccomp for its native number: %w", err)
	}
	for _, r := range b.rules[name] {
		action := libseccomp.ActAllow
		if r.action == specs.ActErrno {
			if r.errno == uint(b.otherwise) {
				continue // libseccomp refuses rules that say what the default says
			}
			action = libErrno(r.errno)
		}
		conditions := make([]libseccomp.ScmpCondition, 0, len(r.args))
		for _, arg := range r.args {
			condition, err := libCondition(arg)
			if err != nil {
				return err
			}
			conditions = append(conditions, condition)
		}
		if err := filter.AddRuleConditionalExact(call, action, conditions); err != nil {
			return fmt.Errorf("adding a rule: %w", err)
		}
	}
	return nil
}

func libErrno(errno uint) libseccomp.ScmpAction {
	return libseccomp.ActErrno.SetReturnCode(int16(errno)) //nolint:gosec // checked: at most 4095
}

func libCondition(arg specs.LinuxSeccompArg) (libseccomp.ScmpCondition, error) {
	var op libseccomp.ScmpCompareOp
	values := []uint64{arg.Value}
	switch arg.Op {
	case specs.OpNotEqual:
		op = libseccomp.CompareNotEqual
	case specs.OpLessThan:
		op = libseccomp.CompareLess
	case specs.OpLessEqual:
		op = libseccomp.CompareLessOrEqual
	case specs.OpEqualTo:
		op = libseccomp.CompareEqual
	case specs.OpGreaterEqual:
		op = libseccomp.CompareGreaterEqual
	case specs.OpGreaterThan:
		op = libseccomp.CompareGreater
	case specs.OpMaskedEqual:
		op, values = libseccomp.CompareMaskedEqual, []uint64{arg.Value, arg.ValueTwo}
	default:
		return libseccomp.ScmpCondition{}, fmt.Errorf("operator %q is not supported", arg.Op)
	}
	condition, err := libseccomp.MakeCondition(arg.Index, op, values...)
	if err != nil {
		return libseccomp.ScmpCondition{}, fmt.Errorf("comparing argument %d: %w", arg.Index, err)
	}
	return condition, nil
}
