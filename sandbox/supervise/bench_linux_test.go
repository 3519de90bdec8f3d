package supervise_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
)

var benchVictims = jailtest.Victims{
	// measure: what, how often, a destination. The note is the median and the 99th
	// percentile in nanoseconds, the value the median.
	"measure": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		times, err := strconv.Atoi(args[1])
		if err != nil {
			s.Failf("reading how often: %v", err)
		}
		do, clean := measured(s, args[0], args[2])
		took := make([]time.Duration, times)
		s.Begin()
		for i := range took {
			began := time.Now()
			errno := do()
			took[i] = time.Since(began)
			if errno != 0 {
				return jailtest.Outcome{Errno: errno}
			}
			clean()
		}
		slices.Sort(took)
		median := took[len(took)/2]
		return jailtest.Outcome{Value: int64(median), Note: fmt.Sprint(int64(median), " ", int64(took[len(took)*99/100]))}
	},
}

// measured returns one call and what has to be done after it, which does not count.
func measured(s *jailtest.Stage, what, to string) (do func() unix.Errno, clean func()) {
	fd := -1
	again := func() { unix.Close(fd) }
	switch what {
	case "blocking", "nonblocking":
		raw, kind := wire(unix.AF_INET, netip.MustParseAddrPort(to)), unix.SOCK_STREAM
		if what == "nonblocking" {
			kind |= unix.SOCK_NONBLOCK
		}
		open := func() { fd = makeSocket(s, unix.AF_INET, kind) }
		open()
		return func() unix.Errno {
				if errno := connect(fd, raw); errno != unix.EINPROGRESS {
					return errno
				}
				return 0
			}, func() {
				again()
				open()
			}
	case "unix":
		raw := unixWire(to)
		fd = makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM)
		return func() unix.Errno { return connect(fd, raw) }, func() {
			again()
			fd = makeSocket(s, unix.AF_UNIX, unix.SOCK_STREAM)
		}
	case "udp":
		raw := wire(unix.AF_INET, netip.MustParseAddrPort(to))
		fd = makeSocket(s, unix.AF_INET, unix.SOCK_DGRAM)
		return func() unix.Errno { _, errno := sendto(fd, raw, make([]byte, 64)); return errno }, func() {}
	default:
		p, content := pair(s, unix.SOCK_STREAM), make([]byte, 64)
		return func() unix.Errno { _, errno := sendmsg(p[0], nil, content, nil, 0); return errno },
			func() { _, _ = unix.Read(p[1], content) }
	}
}

// BenchmarkCalls compares calls with and without a supervisor in turns, so that what else
// the machine does falls on both.
func BenchmarkCalls(b *testing.B) {
	open := benchListener(b, "tcp", "127.0.0.2:0")
	file := benchListener(b, "unix", b.TempDir()+"/socket")
	sink, err := net.ListenPacket("udp", "127.0.0.2:0") //nolint:noctx // it ends with the test
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sink.Close() })
	for _, test := range []struct {
		what, to string
		w        world
	}{
		{"blocking", open, internet(open)},
		{"nonblocking", open, internet(open)},
		{"unix", file, world{Supervision: 1, Sockets: []string{file}}},
		{"udp", sink.LocalAddr().String(), internet(sink.LocalAddr().String())},
		{"sendmsg", "", internet()},
	} {
		b.Run(test.what, func(b *testing.B) {
			times := strconv.Itoa(max(b.N, 200))
			outside := jailtest.Run(b, "measure", test.what, times, test.to)
			inside := test.w.run(b, jailtest.User{}, "measure", test.what, times, test.to)
			for name, r := range map[string]jailtest.Result{"direct": outside, "supervised": inside} {
				jailtest.WantOK(b, r)
				median, p99, _ := strings.Cut(r.Outcome.Note, " ")
				report(b, name+"-median-ns", median)
				report(b, name+"-p99-ns", p99)
			}
		})
	}
}

func report(b *testing.B, unit, value string) {
	b.Helper()
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(number, unit)
}

// BenchmarkProbe is what probing adds to a start.
func BenchmarkProbe(b *testing.B) {
	for b.Loop() {
		if err := supervise.Probe(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchListener(b *testing.B, network, address string) string {
	b.Helper()
	l, err := net.Listen(network, address) //nolint:noctx // it ends with the test
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}
