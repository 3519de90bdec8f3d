package supervise_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
)

// deaf listens on an address and lets nobody in: its queue is full, so that a connect waits
// until it gives up.
func deaf(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	at := netip.MustParseAddrPort(address)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { unix.Close(fd) })
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4()})
	}
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at = netip.AddrPortFrom(at.Addr(), uint16(name.(*unix.SockaddrInet4).Port)) //nolint:gosec // a port
	filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(filler) })
	if errno := connect(filler, wire(unix.AF_INET, at)); errno != 0 {
		t.Fatal(errno)
	}
	return at
}

// sigaction is the kernel's struct sigaction (amd64, arm64 without its unused restorer).
type sigaction struct {
	_, flags, _, _ uint64 // handler, flags, restorer, mask
}

// withoutRestart makes a signal that Go handles end blocking calls.
func withoutRestart(s *jailtest.Stage, number unix.Signal) {
	var a sigaction
	for _, set := range []bool{false, true} {
		var old, new uintptr = at(&a), 0
		if set {
			old, new = 0, at(&a)
			a.flags &^= 0x10000000 // SA_RESTART
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), new, old, 8, 0, 0); errno != 0 {
			s.Failf("changing how a signal is handled: %v", errno)
		}
	}
}

// disturb sends the thread a signal again and again until it is stopped.
func disturb(thread int, number unix.Signal) (stop func()) {
	return flip(func(bool) {
		_ = unix.Tgkill(unix.Getpid(), thread, number)
		for range 100 {
			_ = unix.Getppid()
		}
	})
}

var lifeVictims = jailtest.Victims{
	// disturbed: a destination. Blocking connects while a signal interrupts and restarts them.
	"disturbed": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		came := make(chan os.Signal, 1)
		signal.Notify(came, unix.SIGUSR1)
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		stop := disturb(unix.Gettid(), unix.SIGUSR1)
		defer stop()
		s.Begin()
		var out jailtest.Outcome
		for range 800 {
			fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
			if errno := connect(fd, to); errno != 0 {
				out.Errno = errno
			} else {
				out.Value++
			}
			unix.Close(fd)
		}
		<-came
		return out
	},
	// waiting: how, a destination that lets nobody in. What ends the wait.
	"waiting": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		came := make(chan os.Signal, 1)
		signal.Notify(came, unix.SIGUSR1)
		to, thread := wire(unix.AF_INET, netip.MustParseAddrPort(args[1])), unix.Gettid()
		limit := func(t unix.Timeval) {
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &t); err != nil {
				s.Failf("setting a time-out: %v", err)
			}
		}
		switch args[0] {
		case "limit":
			limit(unix.Timeval{Usec: 200_000})
		case "interrupted":
			withoutRestart(s, unix.SIGUSR1)
		case "interrupted with a limit":
			limit(unix.Timeval{Sec: 30})
		}
		s.Begin()
		if args[0] != "limit" {
			defer disturb(thread, unix.SIGUSR1)()
		}
		if args[0] == "restarted" {
			// Signals restart it until one has come; the next ends it.
			go func() {
				<-came
				withoutRestart(s, unix.SIGUSR1)
			}()
		}
		errno := connect(fd, to)
		kept, err := timeout(fd)
		if err != 0 {
			s.Failf("reading the time-out: %v", err)
		}
		return jailtest.Outcome{Errno: errno, Value: kept}
	},
	// crowd: a destination that lets nobody in, one that does, how many. Each thread waits
	// for its time-out; the value is how many did. Then one connect has to work.
	"crowd": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		many, err := strconv.Atoi(args[2])
		if err != nil {
			s.Failf("reading how many: %v", err)
		}
		runtime.GOMAXPROCS(256) // or the runtime makes new threads too slowly
		s.Begin()
		out := together(many, 1, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1}); err != nil {
				return err
			}
			if errno := connect(fd, to); errno != unix.EINPROGRESS {
				return fmt.Errorf("connecting: %w", errno)
			}
			return nil
		})
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		if errno := connect(fd, wire(unix.AF_INET, netip.MustParseAddrPort(args[1]))); errno != 0 {
			out.Errno = errno
		}
		return out
	},
	// orphaned: a destination. It kills its supervisor and connects.
	"orphaned": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		udp := makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		supervisor := unix.Getppid()
		pidfd, err := unix.PidfdOpen(supervisor, 0)
		if err != nil {
			s.Failf("opening the supervisor: %v", err)
		}
		if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
			s.Failf("killing the supervisor: %v", err)
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 10_000); err != nil {
			s.Failf("waiting for its end: %v", err)
		}
		s.Begin()
		errno := connect(fd, to)
		if _, other := sendto(udp, to, []byte("x")); other != errno {
			s.Failf("connecting gives %v, sending %v", errno, other)
		}
		return jailtest.Outcome{Errno: errno}
	},
	// killed: a destination that lets nobody in. The process ends while it waits.
	"killed": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		to := wire(unix.AF_INET, netip.MustParseAddrPort(args[0]))
		var started atomic.Int32
		for range 10 {
			fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
			go func() {
				started.Add(1)
				_ = connect(fd, to)
			}()
		}
		for started.Load() < 10 {
			_ = unix.Getppid()
		}
		s.Begin()
		return jailtest.Outcome{}
	},
	// opaque: a destination. A process that forbids inspection gets nowhere.
	"opaque": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		fd := makeSocket(s, unix.AF_INET, unix.SOCK_STREAM)
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			s.Failf("forbidding inspection: %v", err)
		}
		s.Begin()
		return jailtest.Outcome{Errno: connect(fd, wire(unix.AF_INET, netip.MustParseAddrPort(args[0])))}
	},
	"probe": func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		s.Begin()
		if err := supervise.Probe(); err != nil {
			s.Failf("%v", err)
		}
		return jailtest.Outcome{}
	},
}

func timeout(fd int) (int64, unix.Errno) {
	var t unix.Timeval
	size := uint32(unsafe.Sizeof(t))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_SNDTIMEO, at(&t), at(&size), 0)
	return t.Nano() / 1e6, errno
}

func TestDisturbedConnects(t *testing.T) {
	open := greet(t, "127.0.0.2:0").String()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jailtest.WantValue(t, internet(open).run(t, user, "disturbed", open), 800)
		jailtest.WantValue(t, jailtest.RunAs(t, user, "disturbed", open), 800)
	})
}

// TestWaitingConnects: what ends a wait, and that the socket's own time-out is as it was.
func TestWaitingConnects(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, test := range []struct {
			how   string
			errno unix.Errno
			limit int64
		}{
			{"limit", unix.EINPROGRESS, 200},
			{"interrupted", unix.EINTR, 0},
			{"interrupted with a limit", unix.EINTR, 30_000},
			{"restarted", unix.EINTR, 0},
		} {
			t.Run(test.how, func(t *testing.T) {
				for name, run := range map[string]func(at string) jailtest.Result{
					"inside":  func(at string) jailtest.Result { return internet(at).run(t, user, "waiting", test.how, at) },
					"outside": func(at string) jailtest.Result { return jailtest.RunAs(t, user, "waiting", test.how, at) },
				} {
					r := run(deaf(t, "127.0.0.4:0").String())
					jailtest.WantErrno(t, r, test.errno)
					if r.Outcome.Value != test.limit {
						t.Errorf("%s: the time-out is %d ms, want %d", name, r.Outcome.Value, test.limit)
					}
				}
			})
		}
	})
}

// TestCrowd has more calls under way than the supervisor takes at once.
func TestCrowd(t *testing.T) {
	dead, open := deaf(t, "127.0.0.4:0").String(), greet(t, "127.0.0.2:0").String()
	r := internet(dead, open).run(t, jailtest.User{}, "crowd", dead, open, "1300")
	jailtest.WantValue(t, r, 1300)
}

func TestSupervisorKilled(t *testing.T) {
	open := greet(t, "127.0.0.2:0").String()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		w := internet(open)
		w.Orphan = true
		r := w.run(t, user, "orphaned", open)
		if r.Signal != unix.SIGKILL || r.TimedOut || !r.Finished || r.Problem != "" || r.Outcome.Errno != unix.ENOSYS {
			t.Errorf("want a killed supervisor and ENOSYS\n%s", r)
		}
	})
}

func TestKilledWhileWaiting(t *testing.T) {
	dead := deaf(t, "127.0.0.4:0").String()
	jailtest.WantOK(t, internet(dead).run(t, jailtest.User{}, "killed", dead))
}

func TestOpaque(t *testing.T) {
	open := greet(t, "127.0.0.2:0").String()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		if user.UID == 0 {
			// Root inspects what forbids it too, by its capabilities.
			jailtest.WantOK(t, internet(open).run(t, user, "opaque", open))
			return
		}
		r := internet(open).run(t, user, "opaque", open)
		jailtest.WantErrno(t, r, unix.EPERM)
		if all := denials(t, r); len(all) != 1 || all[0].Call != "inspect" {
			t.Errorf("got denials %+v", all)
		}
		jailtest.WantOK(t, jailtest.RunAs(t, user, "opaque", open))
	})
}

func TestProbe(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		jailtest.WantOK(t, jailtest.RunAs(t, user, "probe"))
	})
}
