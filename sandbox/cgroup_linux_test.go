package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestOwnCgroup(t *testing.T) {
	dir := t.TempDir()
	mountinfo := filepath.Join(dir, "mountinfo")
	mustDo(t, os.WriteFile(mountinfo, []byte("24 30 0:22 / /proc rw - proc proc rw\n"+
		"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"), 0o600))
	tests := []struct {
		name, cgroup, want string
	}{
		{"a user's scope", "0::/user.slice/app.scope\n", "/sys/fs/cgroup/user.slice/app.scope"},
		{"both hierarchies", "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/y"},
		{"the old hierarchy alone", "4:memory:/x\n", ""},
		{"none", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(dir, "cgroup")
			mustDo(t, os.WriteFile(file, []byte(tt.cgroup), 0o600))
			got, err := ownCgroup(file, mountinfo)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestDelegated(t *testing.T) {
	top := t.TempDir()
	own := filepath.Join(top, "own")
	mustDo(t, os.Mkdir(own, 0o700))
	set := func(dir, controllers string) {
		mustDo(t, os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers+"\n"), 0o600))
	}
	both := Limits{Memory: 1 << 20, Processes: 10}
	if dir, ok := delegated(own, both); ok {
		t.Errorf("found %q where nothing is delegated", dir)
	}
	set(top, "cpu memory")
	if dir, ok := delegated(own, both); ok {
		t.Errorf("found %q without the pids controller", dir)
	}
	if dir, ok := delegated(own, Limits{Memory: 1}); !ok || dir != top {
		t.Errorf("got %q, %t for memory alone", dir, ok)
	}
	set(top, "memory pids")
	if dir, ok := delegated(own, both); !ok || dir != top {
		t.Errorf("got %q, %t", dir, ok)
	}
}

// TestLimitsWithoutCgroupAreRefused: asked for and not to be had is an error, not a limit
// that holds nothing. (Where a folder is delegated, enforcement is what the kernel says.)
func TestLimitsWithoutCgroupAreRefused(t *testing.T) {
	if err := errorOf(newCgroup(Limits{})); err != nil {
		t.Errorf("no limits asked for: %v", err)
	}
	own, err := ownCgroup("/proc/self/cgroup", "/proc/self/mountinfo")
	if err == nil {
		if _, ok := delegated(own, Limits{Memory: 1 << 30, Processes: 1}); ok {
			return
		}
	}
	err = errorOf(newCgroup(Limits{Memory: 1 << 30}))
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want an unsupported layer", err)
	}
}

func errorOf(_ string, err error) error { return err }

func TestSameLimit(t *testing.T) {
	tests := []struct {
		got, want string
		same      bool
	}{
		{"4096", "4096", true},
		{"65536", "70000", true},
		{"max", "4096", false},
		{"8192", "4096", false},
		{"0", "1048576", false},
		{"65536", "140000", false},
	}
	for _, tt := range tests {
		if got := sameLimit(tt.got, tt.want); got != tt.same {
			t.Errorf("sameLimit(%s, %s) = %t", tt.got, tt.want, got)
		}
	}
}

// TestMakeCgroup: the limits are written before the process moves in, and one that does not
// read back ends it. The folder is an ordinary one; what the kernel does with the limits
// is not seen here.
func TestMakeCgroup(t *testing.T) {
	parent := t.TempDir()
	group := filepath.Join(parent, cgroupPrefix+strconv.Itoa(os.Getpid()))
	mustDo(t, os.Mkdir(group, 0o700))
	for _, name := range []string{"memory.max", "memory.swap.max", "pids.max"} {
		mustDo(t, os.WriteFile(filepath.Join(group, name), nil, 0o600))
	}
	got, err := makeCgroup(parent, cgroupFiles(Limits{Memory: 1 << 20, Processes: 10}))
	mustDo(t, err)
	if got != group {
		t.Errorf("made %q, want %q", got, group)
	}
	for name, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "10"} {
		data, err := os.ReadFile(filepath.Join(group, name))
		mustDo(t, err)
		if string(data) != want {
			t.Errorf("%s holds %q, want %q", name, data, want)
		}
	}
	// A device that takes every write and answers nothing.
	mustDo(t, os.Remove(filepath.Join(group, "memory.max")))
	mustDo(t, os.Symlink(os.DevNull, filepath.Join(group, "memory.max")))
	var weaker *WeakerError
	if err := errorOf(makeCgroup(parent, cgroupFiles(Limits{Memory: 1 << 20}))); !errors.As(err, &weaker) {
		t.Errorf("a limit that does not read back: %v", err)
	}
}
