package seccomp_test

import (
	"errors"
	"runtime"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// TestCallTable compares the table with libseccomp's, name by name, where that knows them.
func TestCallTable(t *testing.T) {
	for _, arch := range bothArchitectures {
		target, err := libseccomp.GetArchFromString(arch)
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		seen := map[uint32]string{}
		for name, number := range numbers(t, arch) {
			if other, twice := seen[number]; twice {
				t.Errorf("%s: %s and %s have the number %d", arch, name, other, number)
			}
			seen[number] = name
			theirs, err := libseccomp.GetSyscallFromNameByArch(name, target)
			switch {
			case errors.Is(err, libseccomp.ErrSyscallDoesNotExist):
				if number <= seccomp.LastCommon && name != "uretprobe" && name != "uprobe" {
					t.Errorf("%s: libseccomp does not know %s (%d)", arch, name, number)
				}
			case err != nil:
				t.Fatal(err)
			case int64(theirs) != int64(number):
				t.Errorf("%s: %s is %d in the table, libseccomp says %d", arch, name, number, theirs)
			default:
				known++
			}
		}
		// The other way: every number that libseccomp has a name for is in the table.
		for number := range libseccomp.ScmpSyscall(seccomp.LastCommon + 1) {
			name, err := number.GetNameByArch(target)
			if err == nil && seen[uint32(number)] != name {
				t.Errorf("%s: number %d is %q in the table, libseccomp says %q", arch, number, seen[uint32(number)], name)
			}
		}
		if known < 290 {
			t.Errorf("%s: only %d calls could be compared", arch, known)
		}
	}
}

// TestNewestNumbers compares what libseccomp does not know with the constants of x/sys,
// and both architectures with each other.
func TestNewestNumbers(t *testing.T) {
	want := map[string]uint32{
		"cachestat": unix.SYS_CACHESTAT, "fchmodat2": unix.SYS_FCHMODAT2, "map_shadow_stack": unix.SYS_MAP_SHADOW_STACK,
		"futex_wake": unix.SYS_FUTEX_WAKE, "futex_wait": unix.SYS_FUTEX_WAIT, "futex_requeue": unix.SYS_FUTEX_REQUEUE,
		"statmount": unix.SYS_STATMOUNT, "listmount": unix.SYS_LISTMOUNT, "lsm_get_self_attr": unix.SYS_LSM_GET_SELF_ATTR,
		"lsm_set_self_attr": unix.SYS_LSM_SET_SELF_ATTR, "lsm_list_modules": unix.SYS_LSM_LIST_MODULES, "mseal": unix.SYS_MSEAL,
		"setxattrat": unix.SYS_SETXATTRAT, "getxattrat": unix.SYS_GETXATTRAT, "listxattrat": unix.SYS_LISTXATTRAT,
		"removexattrat": unix.SYS_REMOVEXATTRAT, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "file_getattr": unix.SYS_FILE_GETATTR,
		"file_setattr": unix.SYS_FILE_SETATTR, "listns": unix.SYS_LISTNS, "rseq_slice_yield": unix.SYS_RSEQ_SLICE_YIELD,
	}
	for _, arch := range bothArchitectures {
		calls := numbers(t, arch)
		newer := 0
		for name, number := range calls {
			if number <= seccomp.LastCommon {
				continue
			}
			newer++
			if want[name] != number {
				t.Errorf("%s: %s is %d in the table, want %d", arch, name, number, want[name])
			}
		}
		if newer != len(want) {
			t.Errorf("%s: %d newer calls in the table, want %d", arch, newer, len(want))
		}
	}
	if runtime.GOARCH == "amd64" {
		if got := numbers(t, "amd64")["uretprobe"]; got != 335 {
			t.Errorf("uretprobe is %d in the table, want 335", got)
		}
	}
}
