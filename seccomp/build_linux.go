package seccomp

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// Build makes BPF from a filter that [Policy.FilterFor] returned, for the same
// architecture. Nothing is loaded into the kernel, so a filter for another machine can be
// built too. The program ends a process that uses another ABI (i386, x32, 32-bit Arm).
//
// Most of it are our own instructions. A start waits for the kernel to translate each of
// them, and libseccomp writes four times as many: a comparison for each call, though whole
// ranges of numbers have one answer, and for each rule of a call, though rules overlap in
// most of their conditions. It decides the calls whose conditions our own code does not
// take: comparisons of order, which only a person's list has, and bits in too many ways.
//
// Actions other than allow, errno and notify, flags, and names that the architecture does
// not have are errors.
func Build(filter *specs.LinuxSeccomp, arch string) (Program, error) {
	program, err := build(filter, arch)
	if err != nil {
		return nil, fmt.Errorf("building the filter for %s: %w", arch, err)
	}
	return program, nil
}

func build(filter *specs.LinuxSeccomp, arch string) (Program, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return nil, err
	}
	numbers, err := b.number()
	if err != nil {
		return nil, err
	}
	var rest Program
	if len(numbers.left) > 0 {
		if rest, err = b.libProgram(numbers.left); err != nil {
			return nil, err
		}
	}
	return numbers.program(rest)
}

// ExportText lists the filter that [Build] makes, for people: each call with its answer,
// and libseccomp's pseudo filter code for the calls that are left to it.
func ExportText(filter *specs.LinuxSeccomp, arch string) (string, error) {
	b, err := prepare(filter, arch)
	if err != nil {
		return "", fmt.Errorf("listing the filter for %s: %w", arch, err)
	}
	numbers, err := b.number()
	if err != nil {
		return "", fmt.Errorf("listing the filter for %s: %w", arch, err)
	}
	text := b.listing(numbers.left)
	if len(numbers.left) == 0 {
		return text, nil
	}
	part, err := b.export(numbers.left, (*libseccomp.ScmpFilter).ExportPFC)
	if err != nil {
		return "", fmt.Errorf("listing the filter for %s: %w", arch, err)
	}
	return text + string(part), nil
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
	case specs.ActAllow, specs.ActNotify:
		if entry.ErrnoRet != nil {
			return fmt.Errorf("errnoRet means nothing with %s", entry.Action)
		}
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

// libProgram is libseccomp's program for some calls.
func (b *building) libProgram(names []string) (Program, error) {
	code, err := b.export(names, (*libseccomp.ScmpFilter).ExportBPF)
	if err != nil {
		return nil, err
	}
	return parseProgram(code)
}

// export builds libseccomp's part and writes it with one of its exporters. They write to
// files only (ExportBPFMem needs libseccomp 2.6), and a pipe could be too small.
func (b *building) export(names []string, write func(*libseccomp.ScmpFilter, *os.File) error) (out []byte, err error) {
	filter, err := b.libFilter(names)
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

func (b *building) libFilter(names []string) (filter *libseccomp.ScmpFilter, err error) {
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
	for _, name := range names {
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
		var action libseccomp.ScmpAction
		switch {
		case r.action == specs.ActAllow:
			action = libseccomp.ActAllow
		case r.action == specs.ActNotify:
			action = libseccomp.ActNotify
		case r.errno == uint(b.otherwise):
			continue // libseccomp refuses rules that say what the default says
		default:
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
