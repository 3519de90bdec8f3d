// Package bench_test measures what a jail costs. Its figures are ratios within one run;
// nothing here passes or fails by time.
package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stockade/examples/stock"
	"stockade/race"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stock.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// jailed returns the words that start a command in the jail.
func jailed(b *testing.B, flags ...string) []string {
	b.Helper()
	binary, err := stock.Binary()
	if err != nil {
		b.Fatal(err)
	}
	return append(append([]string{binary, "run"}, flags...), "--")
}

// BenchmarkStart starts /bin/true, plainly and in the jail. bench/compare measures the
// same with a smaller timer and beside other launchers.
func BenchmarkStart(b *testing.B) {
	b.Setenv("HOME", b.TempDir())
	for _, bb := range []struct {
		name  string
		words []string
	}{{"plain", nil}, {"stockade", jailed(b)}} {
		words := append(slices.Clone(bb.words), "/bin/true")
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if err := exec.Command(words[0], words[1:]...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const (
	reads     = 2000 // calls of one pass, on each side
	readBlock = 100  // calls in a row before the other side has its turn
	fileSize  = 16 << 10
)

// BenchmarkFileWork lets two copies of the stock file server, one of them in the jail,
// read the same files in turns, and reports the ratio of their times: of the medians of
// blocks, so that what else the machine does in a few of them does not show.
func BenchmarkFileWork(b *testing.B) {
	root, command := fileServer(b)
	out, in := inTurns(b, root, start(b, command), start(b, append(jailed(b), command...)))
	b.ReportMetric(out/readBlock, "outside-µs/read")
	b.ReportMetric(in/readBlock, "jailed-µs/read")
	b.ReportMetric(in/out, "ratio")
}

// BenchmarkObservedFileWork does the same with both servers in the jail, one of them under
// observation.
func BenchmarkObservedFileWork(b *testing.B) {
	root, command := fileServer(b)
	plain, observed := inTurns(b, root,
		start(b, append(jailed(b), command...)), start(b, append(jailed(b, "--explain-denials"), command...)))
	b.ReportMetric(plain/readBlock, "jailed-µs/read")
	b.ReportMetric(observed/readBlock, "observed-µs/read")
	b.ReportMetric(observed/plain, "ratio")
}

// BenchmarkObservedStart starts the file server until it has said who it is, in the jail
// and under observation, in turns.
func BenchmarkObservedStart(b *testing.B) {
	_, command := fileServer(b)
	var times [2][]time.Duration
	for b.Loop() {
		for range 20 {
			for i, words := range [2][]string{jailed(b), jailed(b, "--explain-denials")} {
				words = append(words, command...)
				begin := time.Now()
				client, err := race.StartClient(b.Context(), exec.Command(words[0], words[1:]...))
				times[i] = append(times[i], time.Since(begin))
				if err != nil {
					b.Fatal(err)
				}
				if err := client.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	plain, observed := float64(median(times[0]).Microseconds()), float64(median(times[1]).Microseconds())
	b.ReportMetric(plain/1000, "jailed-ms")
	b.ReportMetric(observed/1000, "observed-ms")
	b.ReportMetric(observed/plain, "ratio")
}

// fileServer makes the files of a pass and returns their folder and the server's command.
func fileServer(b *testing.B) (root string, command []string) {
	b.Helper()
	b.Setenv("HOME", b.TempDir())
	root = b.TempDir()
	for i := range readBlock {
		text := slices.Repeat([]byte("a line of thirty-two characters\n"), fileSize/32)
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	command, err := stock.Filesystem20260831.Command(root)
	if err != nil {
		b.Fatal(err)
	}
	return root, command
}

// inTurns lets two servers read in turns and returns the median times of a block, in
// microseconds.
func inTurns(b *testing.B, root string, one, other session) (first, second float64) {
	b.Helper()
	var times [2][]time.Duration
	for b.Loop() {
		for range reads / readBlock {
			times[0] = append(times[0], one.block(b, root))
			times[1] = append(times[1], other.block(b, root))
		}
	}
	return float64(median(times[0]).Microseconds()), float64(median(times[1]).Microseconds())
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

type session struct{ client *race.Client }

func start(b *testing.B, command []string) session {
	b.Helper()
	client, err := race.StartClient(b.Context(), exec.Command(command[0], command[1:]...))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Close(); err != nil {
			b.Error(err)
		}
	})
	return session{client}
}

// block makes one call after the other, as a host does, and returns the time of all.
func (s session) block(b *testing.B, root string) time.Duration {
	b.Helper()
	begin := time.Now()
	for i := range readBlock {
		call := race.Call{Tool: "read_text_file", Args: map[string]any{"path": filepath.Join(root, fmt.Sprint(i))}}
		answers, err := s.client.Burst(b.Context(), []race.Call{call}, func() error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		if answers[0].Failed || len(answers[0].Text) != fileSize {
			b.Fatalf("reading a file: %.200s", answers[0].Text)
		}
	}
	return time.Since(begin)
}
