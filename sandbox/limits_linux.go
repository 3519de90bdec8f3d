package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// coreLimit is the RLIMIT_CORE of the jail, in bytes. 1 and not 0: a limit of 0 does not
// keep a crash from being piped to the program that kernel.core_pattern names, 1 does
// (fs/coredump.c refuses to pipe for it), and no file is written either, since a core of
// one byte is below the smallest one. A core holds the server's secrets.
const coreLimit = 1

// coreLimitHere is coreLimit, or 0 where the host's hard limit is 0 already and only root
// could raise it. Then no core file is written; a crash may still be piped.
func coreLimitHere() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return 0, fmt.Errorf("reading the limit of core dumps: %w", err)
	}
	return min(coreLimit, l.Max), nil
}

// jailUmask keeps what the server makes to its own user.
const jailUmask = 0o077

// applyLimits sets resource limits, soft and hard alike, and the umask.
func applyLimits(l Limits) error {
	set := func(name string, resource int, value uint64) error {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limiting %s to %d: %w", name, value, err)
		}
		return nil
	}
	core, err := coreLimitHere()
	if err != nil {
		return err
	}
	if err := set("core dumps", unix.RLIMIT_CORE, core); err != nil {
		return err
	}
	if l.OpenFiles > 0 {
		if err := set("open files", unix.RLIMIT_NOFILE, l.OpenFiles); err != nil {
			return err
		}
	}
	if l.FileSize > 0 {
		if err := set("file size", unix.RLIMIT_FSIZE, l.FileSize); err != nil {
			return err
		}
	}
	unix.Umask(jailUmask)
	return nil
}

// checkLimits reads the limits back.
func checkLimits(l Limits) error {
	want := []struct {
		name     string
		resource int
		value    uint64
	}{
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize},
	}
	for _, w := range want {
		if w.value == 0 {
			continue
		}
		var got unix.Rlimit
		if err := unix.Getrlimit(w.resource, &got); err != nil {
			return fmt.Errorf("reading the limit of %s: %w", w.name, err)
		}
		if got.Cur != w.value || got.Max != w.value {
			return &WeakerError{LayerLimits, fmt.Sprintf("%s %d", w.name, w.value), fmt.Sprintf("%d to %d", got.Cur, got.Max)}
		}
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("reading the limit of core dumps: %w", err)
	}
	if core.Cur > coreLimit || core.Max > coreLimit {
		return &WeakerError{LayerLimits, "no core dumps", fmt.Sprintf("%d to %d bytes", core.Cur, core.Max)}
	}
	// umask(2) answers the mask that was in force, and cannot fail.
	if mask := unix.Umask(jailUmask); mask != jailUmask {
		return &WeakerError{LayerLimits, fmt.Sprintf("umask %#o", jailUmask), fmt.Sprintf("%#o", mask)}
	}
	return nil
}
