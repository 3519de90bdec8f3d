package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPace is how often a lock is asked for that another process holds.
const lockPace = 50 * time.Millisecond

// lockFile takes the lock of a file, exclusively (flock(2)). The kernel gives it back when
// the process ends, however it ends. waiting is called once when another process holds it.
func lockFile(ctx context.Context, path string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("locking %q: %w", path, err)
		}
		if !told && waiting != nil {
			waiting()
		}
		told = true
		select {
		case <-ctx.Done():
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("waiting for another install of the same package: %w", context.Cause(ctx))
		case <-time.After(lockPace):
		}
	}
}
