package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownSocketsABI has LANDLOCK_ACCESS_FS_IOCTL_DEV (see scratchRights).
const ownSocketsABI = 5

// Sockets checks the socket files that the plan grants by their real paths, and names the
// private folders, in which every socket is the jail's own: no other file can be linked or
// moved there. Before Landlock ABI 5 (Linux 6.10) one can, so there no folder is named.
func (o *Opened) Sockets() (granted, own []string, err error) {
	for _, u := range o.Plan.Network.Unix {
		fail := func(err error, cure string) ([]string, []string, error) {
			return nil, nil, &GrantError{Grant: Grant{Path: u.Path, Origin: u.Origin}, Err: err, Cure: cure}
		}
		real, err := filepath.EvalSymlinks(u.Path)
		if err != nil {
			return fail(errors.Unwrap(err), "start the service that makes the socket, or remove the entry from network.unix")
		}
		if real != u.Path {
			return fail(fmt.Errorf("a link came in between: it leads to %q now", real), "start again; somebody moved the socket just now")
		}
		var st unix.Stat_t
		if err := unix.Lstat(real, &st); err != nil {
			return fail(err, "")
		}
		if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			return fail(fmt.Errorf("%q is no socket", real), "network.unix names socket files; folders and files belong to filesystem")
		}
		granted = append(granted, real)
	}
	abi, err := LandlockABI()
	if err != nil || abi < ownSocketsABI {
		return granted, nil, err
	}
	for i := range o.Grants {
		if g := &o.Grants[i]; g.Access == Scratch {
			own = append(own, g.Target)
		}
	}
	return granted, own, nil
}
