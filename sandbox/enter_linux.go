package sandbox

import (
	"errors"
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
//  3. the terminal goes, descriptors above 2 are marked for closing, and the standard streams
//     are checked;
//  4. control group, resource limits, core dumps: raising or moving needs rights that step 5
//     drops;
//  5. capabilities go, then no_new_privs: without it the kernel takes neither a ruleset nor
//     a filter from an ordinary user;
//  6. Landlock: it needs landlock_restrict_self(2), which a filter may not know;
//  7. seccomp last: everything before needs calls that it refuses.
//
// Steps 4 to 7 are written down first ([prepared]) and carried out in one go, with what is
// read back after them.
//
// On an error the thread may be half in the jail: the caller ends the process. Folders
// that Enter made are removed.
func Enter(o *Opened) (Report, error) {
	if o.Plan.Observed() {
		o.discard()
		return Report{}, errors.New("entering the jail: what is observed needs a parent that answers")
	}
	r, err := enter(o)
	if err != nil {
		o.discard()
		return Report{}, err
	}
	return r, nil
}

func enter(o *Opened) (Report, error) {
	p, err := o.prepare(sameProcess, seccomp.WithoutListener)
	if err != nil {
		return Report{}, err
	}
	defer p.close()
	return p.report, p.run()
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
