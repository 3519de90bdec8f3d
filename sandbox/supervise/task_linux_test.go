package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestStatusNumbers(t *testing.T) {
	text := status("Name:\tSigPnd:\\nTgid:\t7\nUmask:\t0022\nTgid:\t4711\nThreads:\t12\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000002000\nSigBlk:\tfffffffe7ffbfeff\n")
	for key, want := range map[string]uint64{"SigPnd:": 1, "ShdPnd:": 0x2000, "SigBlk:": 0xfffffffe7ffbfeff} {
		if got := text.number(key, 16); got != want {
			t.Errorf("%s is %#x, want %#x", key, got, want)
		}
	}
	for key, want := range map[string]uint64{"Tgid:": 4711, "Threads:": 12, "Missing:": 0, "Umask:": 22} {
		if got := text.number(key, 10); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
}

func TestOwnTask(t *testing.T) {
	first := task{os.Getpid()}
	if got := first.process(); got != os.Getpid() {
		t.Errorf("the first thread's process is %d, want %d", got, os.Getpid())
	}
	other := make(chan task)
	done := make(chan struct{})
	go func() {
		other <- task{unix.Gettid()}
		<-done
	}()
	second := <-other
	defer close(done)
	if got := second.process(); got != os.Getpid() {
		t.Errorf("another thread's process is %d, want %d", got, os.Getpid())
	}
	if got := (task{1 << 30}).process(); got != 0 {
		t.Errorf("the process of no thread is %d", got)
	}
	var word [4]byte
	if errno := first.read(8, word[:]); errno != unix.EFAULT {
		t.Errorf("reading nowhere: %v", errno)
	}
	text := [4]byte{'t', 'e', 'x', 't'}
	if errno := first.read(uint64(uintptr(unsafe.Pointer(&text[0]))), word[:]); errno != 0 || word != text {
		t.Errorf("read %q, %v", word, errno)
	}
}

func TestInterruption(t *testing.T) {
	limit := time.Now()
	for _, test := range []struct {
		why   stopped
		limit time.Time
		want  unix.Errno
	}{
		{stoppedBySignal, time.Time{}, restart},
		{stoppedBySignal, limit, unix.EINTR},
		{stoppedPerhaps, time.Time{}, unix.EINTR},
		{stoppedPerhaps, limit, unix.EINTR},
	} {
		if got := interruption(test.why, test.limit); got.errno != test.want {
			t.Errorf("%d with limit %v: %v, want %v", test.why, test.limit, got.errno, test.want)
		}
	}
}

func TestServeNeedsItsParts(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	if err := Serve(Config{Listener: p[0]}); err == nil {
		t.Error("served without a way to tell refusals")
	}
	if err := unix.Close(p[0]); !errors.Is(err, unix.EBADF) {
		t.Errorf("the listener is still open: %v", err)
	}
}

func TestProbeErrors(t *testing.T) {
	err := &ProbeError{Need: "pidfd_getfd(2) on a child", Since: "Linux 5.6", Have: notAllowed(unix.ENOSYS), Err: unix.ENOSYS}
	want := "supervising needs pidfd_getfd(2) on a child (Linux 5.6): the kernel does not know it, or an outer jail refuses it"
	if err.Error() != want || !errors.Is(err, unix.ENOSYS) {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestYama: with each value that Yama's rule of ptrace access can have, a refusal has the
// reason that is the person's to change. 0 and 1 let a parent look at its child, so then it
// was somebody else.
func TestYama(t *testing.T) {
	const outer = "an outer jail, such as a container's seccomp profile, forbids it"
	folder := t.TempDir()
	for scope, want := range map[string]string{
		"0\n": outer, "1\n": outer, "": outer, "12\n": outer,
		"2\n": "kernel.yama.ptrace_scope is 2, which forbids inspecting one's own children",
		"3\n": "kernel.yama.ptrace_scope is 3, which forbids inspecting one's own children",
	} {
		file := filepath.Join(folder, "scope")
		if err := os.WriteFile(file, []byte(scope), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES} {
			if got := notAllowedBy(errno, file); got != want {
				t.Errorf("scope %q: got %q, want %q", scope, got, want)
			}
		}
		if got, want := notAllowedBy(unix.ENOSYS, file), "the kernel does not know it, or an outer jail refuses it"; got != want {
			t.Errorf("scope %q: a call that is not there: got %q, want %q", scope, got, want)
		}
	}
	if got := notAllowedBy(unix.EPERM, filepath.Join(folder, "absent")); got != outer {
		t.Errorf("a kernel without Yama: got %q", got)
	}
}
