package nettest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/nettest"
)

// meter is the program that measures, as static as a server can be.
var meter = &built{
	variable: "STOCKADE_NETTEST_METER", name: "meter",
	words: []string{"go", "build", "-trimpath", "-o", "OUT", "./testdata/meter"},
	env:   []string{"CGO_ENABLED=0"},
}

type figures struct {
	Median, P99 int64 // ns
	Rate        float64
}

// way is how a connection is let out.
type way struct {
	name    string
	l       launcher
	network string
	host    string
}

func ways() []way {
	public := nettest.Address(nettest.Public).String()
	rule := func(format string) string { return "egress: [\"" + format + "\"]" }
	return []way{
		{"direct", plain{}, "", nettest.DataName},
		{"address", jailed{}, rule(public + ":1-65535"), public},
		{"pinned", jailed{}, rule(nettest.DataName+":80") + "\nnames: pinned", nettest.DataName},
		{"strict", jailed{}, rule(nettest.DataName + ":80"), nettest.DataName},
	}
}

// rounds is how often all ways are measured, one after the other, in one run of a benchmark.
const rounds = 5

// BenchmarkConnects is the time of connect(2) and calls a second.
func BenchmarkConnects(b *testing.B) {
	compareWays(b, func(w way) []string { return []string{"connects", w.host, "80", "1000"} })
}

// BenchmarkRequests is the time of one HTTP request on a new connection: a relayed
// connection is there before the server's own.
func BenchmarkRequests(b *testing.B) {
	compareWays(b, func(w way) []string { return []string{"requests", "http://" + w.host + "/", "300"} })
}

// BenchmarkBulk is the throughput of one download of 512 MiB.
func BenchmarkBulk(b *testing.B) {
	compareWays(b, func(w way) []string { return []string{"bulk", "http://" + w.host + "/bulk?n=536870912"} })
}

// compareWays reports the median of the rounds for each way, and its ratio to direct.
func compareWays(b *testing.B, words func(way) []string) {
	b.Helper()
	n := nettest.Get(b)
	program := program{words: []string{meter.find(b, n)}}
	all := map[string][]figures{}
	for b.Loop() {
		for range rounds {
			for _, w := range ways() {
				var f figures
				e := run(b, w.l.Command(b, program, w.network, words(w)...))
				if e.status != 0 || json.Unmarshal([]byte(e.stdout), &f) != nil {
					b.Fatalf("%s: %+v", w.name, e)
				}
				all[w.name] = append(all[w.name], f)
			}
		}
	}
	direct := median(all["direct"])
	for _, w := range ways() {
		f := median(all[w.name])
		if f.Median > 0 {
			b.ReportMetric(float64(f.Median)/1e3, w.name+"-us")
			b.ReportMetric(float64(f.P99)/1e3, w.name+"-p99-us")
		}
		b.ReportMetric(f.Rate, w.name+"/s")
		b.ReportMetric(f.Rate/direct.Rate, w.name+"/direct")
	}
	b.ReportMetric(0, "ns/op") // the rounds' own time says nothing
}

func median(of []figures) figures {
	by := func(value func(figures) float64) float64 {
		values := make([]float64, len(of))
		for i, f := range of {
			values[i] = value(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		Median: int64(by(func(f figures) float64 { return float64(f.Median) })),
		P99:    int64(by(func(f figures) float64 { return float64(f.P99) })),
		Rate:   by(func(f figures) float64 { return f.Rate }),
	}
}

// BenchmarkResident is what the supervisor keeps in memory, idle and under 200 connections,
// and the processor time that it takes while nothing happens.
func BenchmarkResident(b *testing.B) {
	n := nettest.Get(b)
	program := program{words: []string{meter.find(b, n)}}
	w := ways()[3]
	for b.Loop() {
		for _, held := range []int{1, 200} {
			cmd := w.l.Command(b, program, w.network, "hold", "http://"+w.host+"/bulk?n=100000000", strconv.Itoa(held))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				b.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != fmt.Sprintln(held) {
				b.Fatalf("%q, %v; stderr: %s", line, err, &stderr)
			}
			before := ticks(b, cmd.Process.Pid)
			time.Sleep(2 * time.Second) // a measured span, not a wait for something
			b.ReportMetric(float64(ticks(b, cmd.Process.Pid)-before), fmt.Sprintf("idle-ticks-%d", held))
			b.ReportMetric(float64(resident(b, cmd.Process.Pid)), fmt.Sprintf("KiB-%d", held))
			if _, err := io.WriteString(in, "\n"); err != nil {
				b.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				b.Fatalf("%v; stderr: %s", err, &stderr)
			}
		}
	}
}

// resident is VmRSS in KiB (proc_pid_status(5)).
func resident(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\nVmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

// ticks is the processor time of a process in hundredths of a second: utime and stime, the
// fields 14 and 15 of proc_pid_stat(5).
func ticks(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	sum := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}
