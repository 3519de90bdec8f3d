package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/examples/stock"
	"stockade/race"
)

// TestS81 starts a granted program from node in every way: synchronously, piped, detached,
// and node itself with its message channel. Node once reported EPERM for children that
// had run.
func TestS81(t *testing.T) {
	type result struct {
		SpawnSync    []any  `json:"spawnSync"`
		ExecFileSync string `json:"execFileSync"`
		Refused      string `json:"refused"`
		Piped        []any  `json:"piped"`
		Detached     any    `json:"detached"`
		Forked       string `json:"forked"`
	}
	p := newPlace(t)
	file := p.profile(t, `filesystem: {read: ["PROJECT"], execute: [/usr/bin/wc]}`+"\n")
	want := result{
		SpawnSync: []any{nil, 0.0, "4"}, ExecFileSync: "7", Refused: "EACCES",
		Piped: []any{0.0, "100000"}, Detached: 0.0, Forked: "heard you",
	}
	for _, major := range []int{0, 24} {
		program, err := stock.Node(major)
		if err != nil {
			t.Fatal(err)
		}
		for name, launch := range map[string]launch{"in the jail": in(file), "outside": free} {
			t.Run("node "+strconv.Itoa(major)+" "+name, func(t *testing.T) {
				want := want
				if name == "outside" {
					want.Refused = "started"
				}
				stdout, stderr := output(t, p.command(launch(t, program, p.script(t, "children.js"), "/usr/bin/wc", "/usr/bin/id")...), 0)
				var got result
				if err := json.Unmarshal([]byte(stdout), &got); err != nil {
					t.Fatalf("%v in %q; stderr:\n%s", err, stdout, stderr)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("children (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestS90 opens the standard streams by name, with pipes and with a terminal.
func TestS90(t *testing.T) {
	p := newPlace(t)
	file := p.profile(t, `filesystem: {read: ["PROJECT"]}`+"\n")
	words := in(file)(t, node(t), p.script(t, "streams.js"))
	t.Run("pipes", func(t *testing.T) {
		stdout, stderr := output(t, p.command(words...), 0)
		if stdout != "to stdout by name\n" || !strings.Contains(stderr, "to stderr by name\n") {
			t.Errorf("got %q and %q", stdout, stderr)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		master, slave := terminal(t)
		cmd := p.command(words...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		if err := slave.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(master)
		// A master without slaves ends in EIO on Linux.
		if err != nil && !errors.Is(err, unix.EIO) {
			t.Fatal(err)
		}
		for _, want := range []string{"to stdout by name\r\n", "to stderr by name\r\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the terminal got %q, want %q", text, want)
			}
		}
	})
}

// stubborn starts testdata/stubborn.js in the jail and returns it when it is ready.
func stubborn(t *testing.T, signals ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	p := newPlace(t)
	file := p.profile(t, `filesystem: {read: ["PROJECT"]}`+"\n")
	cmd = p.command(inJail(t, file, append([]string{node(t), p.script(t, "stubborn.js")}, signals...)...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		noChildren(t)
	})
	out = bufio.NewReader(pipe)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	// The server is the process that the host started: nothing of stockade stays.
	if want := "ready " + strconv.Itoa(cmd.Process.Pid) + "\n"; line != want {
		t.Fatalf("got %q, want %q", line, want)
	}
	return cmd, in, out
}

func inJail(t *testing.T, file string, words ...string) []string {
	t.Helper()
	return in(file)(t, words...)
}

// endedBy waits for a command and checks which signal ended it.
func endedBy(t *testing.T, cmd *exec.Cmd, want syscall.Signal) {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != want {
		t.Errorf("ended with %v, want signal %v", cmd.ProcessState, want)
	}
	noChildren(t)
}

// TestS95 ends a server that ignores the end of its input: by a signal, which is the
// server's own end, with nothing of it left.
func TestS95(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, in, _ := stubborn(t)
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			endedBy(t, cmd, signal)
		})
	}
}

// TestS96 sends signals to the process that the host knows; the server hears each one.
func TestS96(t *testing.T) {
	signals := map[string]syscall.Signal{
		"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP,
		"SIGQUIT": syscall.SIGQUIT, "SIGUSR2": syscall.SIGUSR2, "SIGCONT": syscall.SIGCONT,
	}
	var names []string
	for name := range signals {
		names = append(names, name)
	}
	cmd, _, out := stubborn(t, names...)
	for name, signal := range signals {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line != name+"\n" {
			t.Errorf("sent %s, the server heard %q", name, line)
		}
	}
}

// TestS99 sends the signal at a different moment of each start. Whether it meets stockade
// or the server, it must end the process: none may be lost.
func TestS99(t *testing.T) {
	p := newPlace(t)
	file := p.profile(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for moment := range 80 {
		words := in(file)(t, "/usr/bin/cat")
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		as := p.command(words...)
		cmd.Dir, cmd.Env = as.Dir, as.Env
		if _, err := cmd.StdinPipe(); err != nil { // held open: cat waits
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); time.Since(start) < time.Duration(moment)*100*time.Microsecond; {
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		endedBy(t, cmd, syscall.SIGTERM)
		if ctx.Err() != nil {
			t.Fatalf("the signal after %d00 µs was lost", moment)
		}
	}
}

// TestS100 looks at stdout in every way to start, and to fail to: it is the server's.
func TestS100(t *testing.T) {
	p := newPlace(t)
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	file := p.profile(t, "")
	broken := p.base + "/broken.yaml"
	write(t, broken, "version: 1\nname: broken\negres: none\n")
	tests := []struct {
		name   string
		words  []string
		status int
		stdout string
	}{
		{"a server's own output", []string{"run", "--profile", file, "--", "/usr/bin/printf", "a\n"}, 0, "a\n"},
		{"a server's own status", []string{"run", "--profile", file, "--", "/usr/bin/false"}, 1, ""},
		{"no such program", []string{"run", "--profile", file, "--", "no-such-program"}, 127, ""},
		{"not a program", []string{"run", "--profile", file, "--", file}, 126, ""},
		{"no such profile", []string{"run", "--profile", "no-such-profile", "--", "/usr/bin/true"}, 125, ""},
		{"a broken profile", []string{"run", "--profile", broken, "--", "/usr/bin/true"}, 125, ""},
		{"an unknown flag", []string{"run", "--no-such-flag", "--", "/usr/bin/true"}, 125, ""},
		{"no command", []string{"run", "--profile", file, "--"}, 125, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr := output(t, p.command(append([]string{binary}, tt.words...)...), tt.status)
			if stdout != tt.stdout {
				t.Errorf("stdout holds %q, want %q", stdout, tt.stdout)
			}
			for line := range strings.Lines(stderr) {
				if !strings.HasPrefix(line, "stockade: ") {
					t.Errorf("stderr holds %q", line)
				}
			}
			if tt.status > 1 && stderr == "" {
				t.Error("stderr says nothing")
			}
		})
	}
}

// TestS101 passes messages of every size and ending through the jail, byte by byte.
func TestS101(t *testing.T) {
	p := newPlace(t)
	words := in(p.profile(t, ""))(t, "/usr/bin/cat")
	line := func(size int, end string) []byte {
		text := make([]byte, size)
		_, _ = rand.Read(text)
		for i := range text {
			text[i] = 'a' + text[i]%26
		}
		return append(text, end...)
	}
	tests := []struct {
		name string
		text []byte
	}{
		{"64 KiB less one", line(1<<16-1, "\n")},
		{"64 KiB", line(1<<16, "\n")},
		{"64 KiB and one", line(1<<16+1, "\n")},
		{"1 MiB", line(1<<20, "\n")},
		{"20 MiB", line(20<<20, "\n")},
		{"carriage return", line(100, "\r\n")},
		{"no final newline", line(100, "")},
		{"nothing", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := p.command(words...)
			cmd.Stdin = bytes.NewReader(tt.text)
			stdout, _ := output(t, cmd, 0)
			if stdout != string(tt.text) {
				t.Errorf("got %d bytes, want the %d that went in", len(stdout), len(tt.text))
			}
		})
	}
}

// TestS101Message sends a call of 20 MiB to a stock server, and has it send the text back.
// The official client, and newer servers, refuse messages of that size by themselves, so
// this is the oldest server and the race's client.
func TestS101Message(t *testing.T) {
	p := newPlace(t)
	command, err := stock.Filesystem062.Command(p.project)
	if err != nil {
		t.Fatal(err)
	}
	client, err := race.StartClient(t.Context(), p.command(in("")(t, command...)...))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789abcdef", 20<<20/16)
	path := filepath.Join(p.project, "big.txt")
	for _, call := range []race.Call{
		{Tool: "write_file", Args: map[string]any{"path": path, "content": text}},
		{Tool: "read_file", Args: map[string]any{"path": path}},
	} {
		answers, err := client.Burst(t.Context(), []race.Call{call}, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if answers[0].Failed {
			t.Errorf("%s: %.200s", call.Tool, answers[0].Text)
		}
		if call.Tool == "read_file" && answers[0].Text != text {
			t.Errorf("got %d bytes back, want the %d that went in", len(answers[0].Text), len(text))
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	noChildren(t)
}
