package sandbox

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// LandlockABI returns the Landlock ABI of the running kernel: 0 and no error when Landlock
// is not built in (ENOSYS) or not enabled at boot (EOPNOTSUPP); an error when the kernel
// does not say. Source: landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION.
func LandlockABI() (int, error) {
	v, err := ll.LandlockGetABIVersion()
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		return 0, nil
	}
	return 0, fmt.Errorf("asking for the Landlock ABI: %w", err)
}

// ruleset makes the Landlock ruleset of opened grants. The descriptor is close-on-exec by
// the kernel's own choice.
func ruleset(o *Opened, abi int) (int, error) {
	h := handled(o.Plan.Network, abi)
	attr := ll.RulesetAttr{HandledAccessFS: uint64(h.files), HandledAccessNet: h.net, Scoped: h.scopes}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return -1, fmt.Errorf("creating Landlock ruleset: %w", err)
	}
	if err := addRules(fd, o, h); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func addRules(fd int, o *Opened, h abiRights) error {
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.State != Granted {
			continue
		}
		allowed := g.Access.rights().on(g.Kind) & h.files
		if allowed == 0 {
			return &GrantError{Grant: g.Grant, Err: fmt.Errorf("no right of access %s fits a %s", g.Access, g.Kind)}
		}
		rule := ll.PathBeneathAttr{AllowedAccess: uint64(allowed), ParentFd: g.fd}
		if err := ll.LandlockAddPathBeneathRule(fd, &rule, 0); err != nil {
			return &GrantError{Grant: g.Grant, Err: fmt.Errorf("adding Landlock rule: %w", err)}
		}
	}
	if h.net&ll.AccessNetBindTCP == 0 {
		return nil
	}
	for _, port := range o.Plan.Network.Listen {
		rule := ll.NetPortAttr{AllowedAccess: ll.AccessNetBindTCP, Port: uint64(port)}
		if err := ll.LandlockAddNetPortRule(fd, &rule, 0); err != nil {
			return fmt.Errorf("adding Landlock rule for port %d: %w", port, err)
		}
	}
	return nil
}
