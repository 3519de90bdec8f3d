package jailtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// noSkipVariable turns every skip into a failure when it is "1", so that continuous
// integration cannot lose a proof without anyone noticing.
const noSkipVariable = "STOCKADE_NO_SKIP"

// Probe asks the machine for one thing that a test needs.
type Probe struct {
	// Name is what is needed, in a few words.
	Name string
	// Since is the first Linux release that has it, as "5.13"; "" when no release number
	// promises it (a program, a permission). From that release on a missing feature is a
	// failure and not a skip: the probe, or the machine, is wrong.
	Since string
	// Check returns nil when the machine has it, else the reason why not.
	Check func() error
}

// Need skips the test when the machine lacks what the probe asks for. It is the only way
// to skip. With STOCKADE_NO_SKIP=1 it fails the test instead.
func Need(t testing.TB, probe Probe) {
	t.Helper()
	reason := probe.Check()
	if reason == nil {
		return
	}
	if probe.Since != "" {
		newer, err := kernelIsAtLeast(probe.Since)
		if err != nil {
			t.Fatalf("needs %s, which is missing: %v; and the kernel's release cannot be read: %v", probe.Name, reason, err)
			return
		}
		if newer {
			t.Fatalf("needs %s, which Linux has since %s, but the probe says no: %v", probe.Name, probe.Since, reason)
			return
		}
	}
	if os.Getenv(noSkipVariable) == "1" {
		t.Fatalf("needs %s, and %s=1 allows no skip: %v", probe.Name, noSkipVariable, reason)
		return
	}
	t.Skipf("needs %s: %v", probe.Name, reason)
}

func kernelIsAtLeast(release string) (bool, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false, fmt.Errorf("asking for the kernel's release: %w", err)
	}
	have, err := parseRelease(unix.ByteSliceToString(name.Release[:]))
	if err != nil {
		return false, err
	}
	want, err := parseRelease(release)
	if err != nil {
		return false, err
	}
	return have[0] > want[0] || have[0] == want[0] && have[1] >= want[1], nil
}

// parseRelease reads the first two numbers of a release such as "6.18.44-arch1".
func parseRelease(release string) ([2]int, error) {
	major, rest, _ := strings.Cut(release, ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(rest[:end])
	if errA != nil || errB != nil {
		return [2]int{}, fmt.Errorf("reading kernel release %q: not two numbers", release)
	}
	return [2]int{a, b}, nil
}
