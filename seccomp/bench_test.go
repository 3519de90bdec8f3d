package seccomp_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// BenchmarkPresetProgram is what a start pays to have its filter ready.
func BenchmarkPresetProgram(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		program, err := strict.Program()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(program)), "instructions")
	}
}

// BenchmarkBuiltProgram is the same for a policy that has no preset.
func BenchmarkBuiltProgram(b *testing.B) {
	b.ReportAllocs()
	policy := seccomp.Policy{Allow: []string{"inotify_add_watch"}}
	for b.Loop() {
		if _, err := policy.Program(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPaths counts instructions on the way to an answer, for the calls whose answer
// the kernel cannot remember because it depends on arguments.
func BenchmarkPaths(b *testing.B) {
	program := build(b, strict, "amd64")
	calls := numbers(b, "amd64")
	for name, args := range map[string][6]uint64{
		"clone": {17}, "ioctl": {0, 0x5401}, "sendto": {3, 1, 1, 0x4000}, "prlimit64": {0, 7}, "memfd_create": {1, 9}, "socketpair": {1, 1},
	} {
		b.Run(name, func(b *testing.B) {
			steps := 0
			for b.Loop() {
				_, n, err := interpret(program, call{calls[name], auditArch["amd64"], args})
				if err != nil {
					b.Fatal(err)
				}
				steps = n
			}
			b.ReportMetric(float64(steps), "instructions")
		})
	}
}

// BenchmarkCalls compares a call whose answer the kernel remembers, one that the filter
// works out each time, and one on the longest way, outside a jail and in it.
func BenchmarkCalls(b *testing.B) {
	calls := []struct {
		name string
		args []uintptr
	}{
		{"getppid", []uintptr{unix.SYS_GETPPID}},
		{"prlimit64", []uintptr{unix.SYS_PRLIMIT64, 0, 7}},
		{"ioctl", []uintptr{unix.SYS_IOCTL, noDescriptor, unix.TCGETS}},
	}
	for _, where := range []string{"outside", "jail"} {
		for _, c := range calls {
			b.Run(where+"/"+c.name, func(b *testing.B) {
				// Never unlocked: the thread ends with the benchmark, and its filter too.
				runtime.LockOSThread()
				if where == "jail" {
					if _, err := installHere(); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					do(c.args[0], c.args[1:]...)
				}
			})
		}
	}
}

// installHere puts the strictest preset on the calling thread and returns how long the
// kernel took for it.
func installHere() (time.Duration, error) {
	program, err := strict.Program()
	if err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	start := time.Now()
	err = seccomp.Install(program)
	return time.Since(start), err
}

// BenchmarkInstall times seccomp(2) alone, on a new thread each time.
func BenchmarkInstall(b *testing.B) {
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		var spent time.Duration
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			spent, err = installHere()
		}()
		if <-done; err != nil {
			b.Fatal(err)
		}
		times = append(times, spent)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/install")
}
