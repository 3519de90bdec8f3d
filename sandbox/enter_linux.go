package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// Enter puts the calling thread into the jail that the opened plan describes, and reads
// back from the kernel what is on. The caller has locked the goroutine to the thread
// (runtime.LockOSThread) and calls [Exec] from it next; there is no way back.
//
// The order is the contract:
//
//  1. everything is opened already ([Open]): after step 6 nothing can be looked up;
//  2. private folders and umask, while folders can still be made;
//  3. control group, resource limits, core dumps, terminal: raising or moving needs rights
//     that step 5 drops;
//  4. descriptors above 2 are marked for closing, and the standard streams are checked;
//  5. capabilities go, then no_new_privs: without it the kernel takes neither a ruleset nor
//     a filter from an ordinary user;
//  6. Landlock: it needs landlock_restrict_self(2), which a filter may not know;
//  7. seccomp last: everything before needs calls that it refuses.
//
// On an error the thread may be half in the jail: the caller ends the process. Folders
// that Enter made are removed.
func Enter(o *Opened) (Report, error) {
	r, err := enter(o)
	if err != nil {
		o.discard()
		return Report{}, err
	}
	return r, nil
}

func enter(o *Opened) (Report, error) {
	var r Report
	abi, err := LandlockABI()
	if err != nil {
		return r, err
	}
	landlock, err := supportOf(o.Plan, abi)
	if err != nil {
		return r, err
	}
	filter, err := o.Plan.Filter.Program()
	if err != nil {
		return r, fmt.Errorf("making the system call filter: %w", err)
	}

	if err := o.makeFolders(); err != nil {
		return r, err
	}
	removeStale(o.Plan.Runs, filepath.Base(o.Plan.Tmp.Path))
	r.enforced(LayerEnvironment, fmt.Sprintf("%d variables, built from nothing", len(o.Plan.Env)))
	if err := applyProcess(o.Plan, &r); err != nil {
		return r, err
	}
	if err := checkStdio(); err != nil {
		return r, err
	}
	if err := closeInherited(); err != nil {
		return r, err
	}
	r.enforced(LayerDescriptors, "0 to 2 only")

	// The ruleset is made while the grants' descriptors can still be used and before
	// privileges go; making it restricts nothing.
	rules, err := ruleset(o, abi)
	if err != nil {
		return r, err
	}
	outside, err := canary(o)
	if err != nil {
		return r, err
	}
	bounding, err := dropPrivileges(&r)
	if err != nil {
		return r, err
	}
	if err := restrict(rules); err != nil {
		return r, err
	}
	r.Layers = append(r.Layers, landlock...)
	if err := seccomp.Install(filter); err != nil {
		return r, err
	}
	r.enforced(LayerSeccomp, "")
	return r, readBack(o, bounding, outside)
}

// applyProcess is step 3.
func applyProcess(p Plan, r *Report) error {
	group, err := enterCgroup(p.Limits)
	if err != nil {
		return err
	}
	if group != "" {
		r.enforced(LayerCgroup, group)
	}
	terminal, err := leaveTerminal()
	if err != nil {
		return err
	}
	if err := applyLimits(p.Limits); err != nil {
		return err
	}
	r.enforced(LayerLimits, "core dumps off, umask 077")
	r.Layers = append(r.Layers, terminal)
	return nil
}

// dropPrivileges is step 5.
func dropPrivileges(r *Report) (boundingState, error) {
	bounding, err := dropCapabilities()
	if err != nil {
		return bounding, err
	}
	detail := "all sets empty"
	if bounding == boundingKept {
		detail = "all sets empty but the bounding one, which no_new_privs keeps out of reach"
	}
	r.enforced(LayerCapabilities, detail)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return bounding, fmt.Errorf("setting no_new_privs: %w", err)
	}
	r.enforced(LayerNoNewPrivs, "")
	return bounding, nil
}

// readBack asks the kernel, on the very thread that executes the server, whether what was
// asked for is on. A layer that cannot be confirmed is as good as absent.
func readBack(o *Opened, bounding boundingState, outside string) error {
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("reading no_new_privs: %w", err)
	}
	if nnp != 1 {
		return &WeakerError{LayerNoNewPrivs, "1", fmt.Sprint(nnp)}
	}
	// SECCOMP_MODE_FILTER is 2 (prctl(2), PR_GET_SECCOMP).
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("reading the seccomp mode: %w", err)
	}
	if mode != 2 {
		return &WeakerError{LayerSeccomp, "mode 2", fmt.Sprintf("mode %d", mode)}
	}
	if err := checkFilter(o.Plan.Filter); err != nil {
		return err
	}
	if err := checkCapabilities(bounding); err != nil {
		return err
	}
	if err := checkLimits(o.Plan.Limits); err != nil {
		return err
	}
	return checkLandlock(outside)
}

// checkFilter makes a call that the kernel grants everybody and the filter refuses: the
// mode alone would also be 2 under a filter of somebody else's. unshare(2) with no flags
// does nothing and succeeds; memfd_create(2) without a name is EFAULT in the kernel and
// ENOSYS in the filter. A profile that opens both calls has the mode as its only proof.
func checkFilter(p seccomp.Policy) error {
	if !slices.Contains(p.Allow, "unshare") {
		if err := unix.Unshare(0); !errors.Is(err, unix.EPERM) {
			return &WeakerError{LayerSeccomp, "EPERM for unshare", fmt.Sprint(err)}
		}
		return nil
	}
	if !slices.Contains(p.Allow, "memfd_create") {
		_, _, errno := unix.RawSyscall(unix.SYS_MEMFD_CREATE, 0, 0, 0)
		if errno != unix.ENOSYS {
			return &WeakerError{LayerSeccomp, "ENOSYS for memfd_create", errno.Error()}
		}
	}
	return nil
}

// canary finds a folder that this user can list and no grant of the plan holds. The kernel
// has no way to list the rules of a Landlock domain, so the one proof is a refusal where
// there was none before. First choice is the folder that holds the temporary folders of
// all runs, which no ordinary plan can grant.
func canary(o *Opened) (string, error) {
	candidates := []string{"/", "/proc", "/etc", "/usr", "/dev"}
	if o.Plan.Tmp.Path != "" {
		candidates = slices.Insert(candidates, 0, filepath.Dir(o.Plan.Tmp.Path))
	}
	for _, path := range candidates {
		if !o.holds(path) && list(path) == nil {
			return path, nil
		}
	}
	return "", errors.New("the plan grants so much that no folder is left to see Landlock refuse")
}

// holds tells whether a grant covers a folder, by the real paths of both.
func (o *Opened) holds(path string) bool {
	return slices.ContainsFunc(o.Grants, func(g OpenedGrant) bool {
		return g.State == Granted && below(path, g.Target)
	})
}

func list(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func checkLandlock(canary string) error {
	err := list(canary)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	found := "that it opened"
	if err != nil {
		found = err.Error()
	}
	return &WeakerError{LayerFiles, fmt.Sprintf("EACCES for %q, which no grant holds", canary), found}
}
