package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// privatePlan is an opened plan that only has private folders.
func privatePlan(base string) *Opened {
	p := Plan{
		Home: Folder{Path: base + "/data/stockade/homes/x"},
		Tmp:  Folder{Path: base + "/cache/stockade/runs/y"},
	}
	return &Opened{Plan: p, Grants: []OpenedGrant{
		{Grant: Grant{Path: p.Home.Path, Access: Scratch}, State: Pending, fd: -1},
		{Grant: Grant{Path: p.Tmp.Path, Access: Scratch}, State: Pending, fd: -1},
	}}
}

func TestMakeFolders(t *testing.T) {
	base := t.TempDir()
	o := privatePlan(base)
	mustDo(t, o.makeFolders())
	defer o.Close()
	for _, g := range o.Grants {
		if g.State != Granted || g.fd < 0 {
			t.Errorf("%s is not opened", g.Path)
		}
		info, err := os.Stat(g.Path)
		mustDo(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o", g.Path, info.Mode().Perm())
		}
	}
	o.discard()
	left, err := os.ReadDir(base)
	mustDo(t, err)
	if len(left) != 0 {
		t.Errorf("a failed start leaves %v", left)
	}
}

// TestDiscardKeepsOthersFiles: a home that holds something was not ours to remove.
func TestDiscardKeepsOthersFiles(t *testing.T) {
	base := t.TempDir()
	first := privatePlan(base)
	mustDo(t, first.makeFolders())
	first.Close()
	mustDo(t, os.WriteFile(first.Plan.Home.Path+"/kept", nil, 0o600))
	second := privatePlan(base)
	mustDo(t, second.makeFolders())
	second.Close()
	second.discard()
	first.discard()
	if _, err := os.Stat(first.Plan.Home.Path + "/kept"); err != nil {
		t.Error(err)
	}
}

func TestMakeFoldersRefusesForeignOnes(t *testing.T) {
	tests := []struct {
		name string
		lay  func(base string) error
		want string
	}{
		{"a link in place of our folder", func(base string) error {
			return os.Symlink(base, base+"/data/stockade")
		}, "without following links"},
		{"a link in place of the home", func(base string) error {
			if err := os.MkdirAll(base+"/data/stockade/homes", 0o700); err != nil {
				return err
			}
			return os.Symlink(base, base+"/data/stockade/homes/x")
		}, "without following links"},
		{"a file in place of the home", func(base string) error {
			if err := os.MkdirAll(base+"/data/stockade/homes", 0o700); err != nil {
				return err
			}
			return os.WriteFile(base+"/data/stockade/homes/x", nil, 0o600)
		}, "without following links"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			mustDo(t, os.Mkdir(base+"/data", 0o700))
			mustDo(t, tt.lay(base))
			o := privatePlan(base)
			err := o.makeFolders()
			o.Close()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestMakeFoldersClosesThemToOthers(t *testing.T) {
	base := t.TempDir()
	o := privatePlan(base)
	mustDo(t, os.MkdirAll(o.Plan.Home.Path, 0o755))
	mustDo(t, o.makeFolders())
	defer o.Close()
	info, err := os.Stat(o.Plan.Home.Path)
	mustDo(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
}

func TestRunNameIsAlive(t *testing.T) {
	name, err := RunName()
	mustDo(t, err)
	ns, err := pidNamespace()
	mustDo(t, err)
	if ended(name, ns) {
		t.Errorf("%s is this very process and counts as ended", name)
	}
}

func TestEnded(t *testing.T) {
	ns, err := pidNamespace()
	mustDo(t, err)
	start, err := startTime(os.Getpid())
	mustDo(t, err)
	tests := []struct {
		name string
		want bool
	}{
		{fmt.Sprintf("%d-%d-%d", ns, os.Getpid(), start-1), true}, // an earlier process of that number
		{fmt.Sprintf("%d-%d-%d", ns, os.Getpid(), start), false},
		{fmt.Sprintf("%d-%d-%d", ns, os.Getpid(), start+1), false},
		{fmt.Sprintf("%d-%d-1", ns, 1<<22+1), true}, // above the largest process number
		{fmt.Sprintf("%d-%d-1", ns+1, 1<<22+1), false},
		{"something else", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := ended(tt.name, ns); got != tt.want {
			t.Errorf("ended(%q) = %t", tt.name, got)
		}
	}
}

// TestRemoveStale: a server can fill its folder and close it; links in it lead nowhere.
func TestRemoveStale(t *testing.T) {
	ns, err := pidNamespace()
	mustDo(t, err)
	runs, outside := t.TempDir(), t.TempDir()
	mustDo(t, os.WriteFile(outside+"/kept", nil, 0o600))
	current, err := RunName()
	mustDo(t, err)
	stale := filepath.Join(runs, fmt.Sprintf("%d-%d-1", ns, 1<<22+1))
	mustDo(t, os.MkdirAll(stale+"/closed/deep", 0o700))
	mustDo(t, os.WriteFile(stale+"/closed/deep/file", nil, 0o600))
	mustDo(t, os.Symlink(outside, stale+"/closed/link"))
	mustDo(t, os.Chmod(stale+"/closed/deep", 0))
	mustDo(t, os.Chmod(stale+"/closed", 0))
	mustDo(t, os.Mkdir(filepath.Join(runs, current), 0o700))
	mustDo(t, os.Mkdir(filepath.Join(runs, "foreign"), 0o700))
	removeStale(runs, current)
	for name, want := range map[string]bool{filepath.Base(stale): false, current: true, "foreign": true} {
		_, err := os.Lstat(filepath.Join(runs, name))
		if (err == nil) != want {
			t.Errorf("%s: there %t, want %t", name, err == nil, want)
		}
	}
	if _, err := os.Stat(outside + "/kept"); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestRemoveStaleIsBounded: many files and a deep nest neither stop a start nor stay for
// good.
func TestRemoveStaleIsBounded(t *testing.T) {
	ns, err := pidNamespace()
	mustDo(t, err)
	runs := t.TempDir()
	stale := filepath.Join(runs, fmt.Sprintf("%d-%d-1", ns, 1<<22+1))
	mustDo(t, os.Mkdir(stale, 0o700))
	for i := range staleBudget + 500 {
		mustDo(t, os.WriteFile(fmt.Sprintf("%s/%d", stale, i), nil, 0o600))
	}
	fd, err := unix.Open(stale, unix.O_PATH|unix.O_CLOEXEC, 0)
	mustDo(t, err)
	for range 3000 {
		mustDo(t, unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		mustDo(t, err)
		fd = next
	}
	unix.Close(fd)
	removeStale(runs, "current")
	left, err := os.ReadDir(stale)
	mustDo(t, err)
	if len(left) == 0 || len(left) > 600 {
		t.Errorf("%d entries left after one start", len(left))
	}
	for range 10 {
		removeStale(runs, "current")
	}
	if _, err := os.Lstat(stale); err == nil {
		t.Error("still there after ten more starts")
	}
}

// TestStaleModesStayInside: the folder that a link names keeps its mode.
func TestStaleModesStayInside(t *testing.T) {
	ns, err := pidNamespace()
	mustDo(t, err)
	runs, outside := t.TempDir(), t.TempDir()
	mustDo(t, os.Mkdir(outside+"/closed", 0o700))
	mustDo(t, os.Chmod(outside+"/closed", 0o500))
	stale := filepath.Join(runs, fmt.Sprintf("%d-%d-1", ns, 1<<22+1))
	mustDo(t, os.MkdirAll(stale+"/d", 0o700))
	mustDo(t, os.Symlink(outside, stale+"/l"))
	mustDo(t, os.Symlink(outside+"/closed", stale+"/d/l"))
	removeStale(runs, "current")
	info, err := os.Stat(outside + "/closed")
	mustDo(t, err)
	if info.Mode().Perm() != 0o500 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	if _, err := os.Lstat(stale); err == nil {
		t.Error("still there")
	}
}
