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

// resourceLimit is one limit of the jail.
type resourceLimit struct {
	name     string
	resource int
	value    uint64
}

// limitsOf lists what the jail limits; core is the size of a core dump.
func limitsOf(l Limits, core uint64) []resourceLimit {
	out := []resourceLimit{{"core dumps", unix.RLIMIT_CORE, core}}
	if l.OpenFiles > 0 {
		out = append(out, resourceLimit{"open files", unix.RLIMIT_NOFILE, l.OpenFiles})
	}
	if l.FileSize > 0 {
		out = append(out, resourceLimit{"file size", unix.RLIMIT_FSIZE, l.FileSize})
	}
	return out
}
