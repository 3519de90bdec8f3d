package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// saying begins a script that says words as notifications, which the guard lets pass.
const saying = `say() { printf '{"jsonrpc":"2.0","method":"%s"}\n' "$1"; }; `

// startGuarded runs a script behind a guard, with nothing to reach on the network.
func startGuarded(t *testing.T, keys, script string) *supervised {
	t.Helper()
	s := prepareWith(t, "filesystem: {execute: [sleep]}\nguard: {pins: off"+keys+"}\n", "/bin/sh", "-c", saying+script)
	s.start()
	return s
}

// word reads what the script says.
func (s *supervised) word() string {
	s.t.Helper()
	line := s.line()
	word, is := strings.CutPrefix(line, `{"jsonrpc":"2.0","method":"`)
	if !is {
		s.t.Fatalf("got %s", line)
	}
	return strings.TrimSuffix(word, `"}`)
}

func (s *supervised) tell(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// startBoth runs a test behind a guard alone, and with a network that is mediated too.
func startBoth(t *testing.T, script string, test func(t *testing.T, s *supervised)) {
	t.Helper()
	for name, network := range map[string]string{"guard alone": "", "with a network": "network: {egress: [\"192.0.2.1:9\"]}\n"} {
		t.Run(name, func(t *testing.T) {
			s := prepareWith(t, "filesystem: {execute: [sleep]}\nguard: {pins: off}\n"+network, "/bin/sh", "-c", saying+script)
			s.start()
			test(t, s)
		})
	}
}

func TestGuardedStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15, "kill -KILL $$": 128 + 9} {
		startBoth(t, script, func(_ *testing.T, s *supervised) { s.end(want) })
	}
}

// TestGuardedEnds: the end of the host's input is the server's, and what it says after that
// arrives, also when it has ended before anybody reads.
func TestGuardedEnds(t *testing.T) {
	startBoth(t, `while read -r l; do say got; done; i=0; while [ $i -lt 500 ]; do say $i; i=$((i+1)); done; exit 3`, func(t *testing.T, s *supervised) {
		s.tell(`{"jsonrpc":"2.0","method":"x"}`)
		if got := s.word(); got != "got" {
			t.Errorf("got %q", got)
		}
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		for i := range 500 {
			if got := s.word(); got != fmt.Sprint(i) {
				t.Fatalf("got %q, want %d", got, i)
			}
		}
		if rest, err := io.ReadAll(s.out); len(rest) > 0 || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
		s.end(3)
	})
}

// TestGuardedOutputEnds: a server that closes its output is seen to, while it lives.
func TestGuardedOutputEnds(t *testing.T) {
	startBoth(t, "exec >&-; read -r l; exit 4", func(t *testing.T, s *supervised) {
		if data, err := io.ReadAll(s.out); err != nil || len(data) > 0 {
			t.Errorf("output %q, %v", data, err)
		}
		s.tell(`{"jsonrpc":"2.0","method":"x"}`)
		s.end(4)
	})
}

// TestGuardedStays: a server that ignores the end of its input is asked to end, and one that
// ignores this too is killed, with what it started.
func TestGuardedStays(t *testing.T) {
	t.Run("ends on SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startGuarded(t, "", `trap 'say term; exit 5' TERM; say ready; while :; do sleep 0.1; done`)
		s.word()
		begin := time.Now()
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		if got := s.word(); got != "term" {
			t.Errorf("got %q", got)
		}
		if took := time.Since(begin); took < 4*time.Second {
			t.Errorf("asked after %v, which is no time to leave by itself", took)
		}
		s.end(5)
	})
	t.Run("ignores SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startGuarded(t, "", `trap '' TERM; sleep 1000 & say $!; say $$; while :; do sleep 0.1; done`)
		child, server := s.word(), s.word()
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		s.end(128 + 9)
		for _, word := range []string{child, server} {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err != nil {
				t.Fatal(err)
			}
			gone(t, pid)
		}
	})
}

func TestGuardedSignals(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		startBoth(t, `trap 'say caught; exit 6' TERM INT HUP; say ready; while :; do sleep 0.05; done`, func(t *testing.T, s *supervised) {
			s.word()
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := s.word(); got != "caught" {
				t.Errorf("got %q", got)
			}
			s.end(6)
		})
	}
}

// TestGuardKilled: without its guard a server ends.
func TestGuardKilled(t *testing.T) {
	startBoth(t, `say $$; exec sleep 1000`, func(t *testing.T, s *supervised) {
		var pid int
		if _, err := fmt.Sscan(s.word(), &pid); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait()
		gone(t, pid)
	})
}

// TestGuardedHostStopsReading: what an ended server left does not keep this process for ever,
// and a signal ends the wait.
func TestGuardedHostStopsReading(t *testing.T) {
	// Two pipes hold all of it, one does not.
	const script = `i=0; while [ $i -lt 1200 ]; do say 0123456789012345678901234567890123456789; i=$((i+1)); done`
	t.Run("for long", func(t *testing.T) {
		t.Parallel()
		startGuarded(t, "", script).end(0)
	})
	t.Run("and asks to end", func(t *testing.T) {
		t.Parallel()
		s := startGuarded(t, "", script)
		begin := time.Now()
		time.Sleep(time.Second) // the server has ended, and this process waits
		if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		s.end(0)
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestGuardRules: the keys of a profile reach the guard.
func TestGuardRules(t *testing.T) {
	s := startGuarded(t, ", tools: [read_*]", `
while read -r line; do
  case $line in
  *tools/list*) echo "$line" >&2; printf '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read_a"},{"name":"rm"}]}}\n';;
  *) say heard;;
  esac
done; echo banner`)
	s.tell(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got, want := s.line(), `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read_a"}]}}`; got != want {
		t.Errorf("got %s", got)
	}
	s.tell(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm"}}`)
	if got := s.line(); !strings.Contains(got, "Unknown tool: rm") {
		t.Errorf("got %s", got)
	}
	s.tell(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_a"}}`)
	if got := s.word(); got != "heard" {
		t.Errorf("got %s", got)
	}
	_ = s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	const want = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\nstockade: note: server wrote no message: \"banner\"\n"
	if got := s.stderr.String(); got != want {
		t.Errorf("stderr %q", got)
	}
}

// TestGuardedNetwork: a guard alone opens no network.
func TestGuardedNetwork(t *testing.T) {
	for _, keys := range []string{"guard: {pins: off}\n", ""} {
		s := prepareWith(t, keys, "/bin/bash", "-c", saying+`for to in tcp/127.0.0.1/9 udp/127.0.0.1/9; do (: >/dev/$to) 2>&1 | { read -r l; say "${l##*: }"; }; done`)
		s.start()
		for range 2 {
			if got := s.word(); got != "Address family not supported by protocol" && got != "Permission denied" {
				t.Errorf("with %q: %q", keys, got)
			}
		}
		s.end(0)
	}
}
