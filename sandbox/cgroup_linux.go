package sandbox

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the name of every control group that this package makes.
const cgroupPrefix = "stockade-"

// newCgroup makes a control group for the jail, with the plan's memory and process limits,
// and returns its folder; "" when the plan has no such limit. It needs a cgroup v2 folder that is delegated to this user with the
// two controllers on (systemd: Delegate=yes, as user@.service has); without one it is an
// *[UnsupportedError], since the other mechanisms do not hold: RLIMIT_AS kills node at
// start, and RLIMIT_NPROC counts the user's other processes.
//
// The group stays behind as an empty folder when the server ends; the next start that makes
// one removes it.
func newCgroup(l Limits) (string, error) {
	files := cgroupFiles(l)
	if len(files) == 0 {
		return "", nil
	}
	own, err := ownCgroup("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil {
		return "", unsupportedCgroup(err.Error())
	}
	parent, ok := delegated(own, l)
	if !ok {
		return "", unsupportedCgroup("none near " + own + " that this user may write")
	}
	group, err := makeCgroup(parent, files)
	if err != nil {
		return "", unsupportedCgroup(err.Error())
	}
	return group, nil
}

// delegated finds the folder to make a group in. A group that holds processes cannot pass
// controllers to children, so ours is made beside the one that we are in, or below it
// when it is the delegated top.
func delegated(own string, l Limits) (string, bool) {
	for _, parent := range [...]string{filepath.Dir(own), own} {
		if missingControllers(parent, l) == "" && unix.Access(parent, unix.W_OK) == nil {
			return parent, true
		}
	}
	return "", false
}

func unsupportedCgroup(have string) error {
	return &UnsupportedError{
		Layer: LayerCgroup, Need: "a delegated cgroup v2 folder with the memory and pids controllers",
		Have: have, Since: "Linux 4.5", Waivable: NeverWaived,
	}
}

// cgroupFiles lists the interface files to write, in order (cgroup-v2.rst).
func cgroupFiles(l Limits) [][2]string {
	var out [][2]string
	if l.Memory > 0 {
		out = append(out, [2]string{"memory.max", strconv.FormatUint(l.Memory, 10)},
			// Else what does not fit goes to swap space, as far as there is any.
			[2]string{"memory.swap.max", "0"})
	}
	if l.Processes > 0 {
		out = append(out, [2]string{"pids.max", strconv.FormatUint(l.Processes, 10)})
	}
	return out
}

func missingControllers(parent string, l Limits) string {
	data, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil {
		return "memory or pids"
	}
	on := strings.Fields(string(data))
	if l.Memory > 0 && !slices.Contains(on, "memory") {
		return "memory"
	}
	if l.Processes > 0 && !slices.Contains(on, "pids") {
		return "pids"
	}
	return ""
}

// makeCgroup makes the group, limits it and reads the limits back.
func makeCgroup(parent string, files [][2]string) (string, error) {
	sweepCgroups(parent)
	group := filepath.Join(parent, cgroupPrefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	for _, f := range files {
		path := filepath.Join(group, f[0])
		if err := os.WriteFile(path, []byte(f[1]), 0); err != nil {
			_ = os.Remove(group)
			return "", err
		}
		got, err := os.ReadFile(path)
		if err != nil || !sameLimit(strings.TrimSpace(string(got)), f[1]) {
			_ = os.Remove(group)
			return "", &WeakerError{LayerCgroup, f[0] + " " + f[1], strings.TrimSpace(string(got))}
		}
	}
	return group, nil
}

// pageSize is the largest page of the supported machines, in bytes (arm64 with 64 KiB pages).
const pageSize = 64 << 10

// sameLimit allows the kernel to round memory down to whole pages.
func sameLimit(got, want string) bool {
	g, err1 := strconv.ParseUint(got, 10, 64)
	w, err2 := strconv.ParseUint(want, 10, 64)
	return err1 == nil && err2 == nil && g <= w && w-g < pageSize
}

// sweepCgroups removes groups of runs that ended. rmdir of a populated group is EBUSY, so
// nothing alive is touched.
func sweepCgroups(parent string) {
	old, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, g := range old {
		_ = os.Remove(g)
	}
}

// ownCgroup finds the folder of this process's cgroup v2 group: the line "0::/path" of
// cgroup(7), below the mount of type cgroup2.
func ownCgroup(cgroupFile, mountinfoFile string) (string, error) {
	data, err := os.ReadFile(cgroupFile)
	if err != nil {
		return "", err
	}
	group, found := "", false
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			group, found = rest, true
		}
	}
	if !found {
		return "", errors.New("no cgroup v2 hierarchy")
	}
	mount, err := cgroupMount(mountinfoFile)
	if err != nil {
		return "", err
	}
	return filepath.Join(mount, group), nil
}

// cgroupMount reads proc_pid_mountinfo(5): the mount point is field 5, the type is the
// field after the separator "-".
func cgroupMount(mountinfoFile string) (string, error) {
	f, err := os.Open(mountinfoFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		dash := slices.Index(fields, "-")
		if dash >= 6 && len(fields) > dash+1 && fields[dash+1] == "cgroup2" {
			return fields[4], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", errors.New("no mount of cgroup v2")
}
