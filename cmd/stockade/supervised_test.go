package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// supervised is a shell script as a server whose plan needs a supervisor.
type supervised struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

// startSupervised runs a script with a profile that lets out one address, which nothing
// here connects to.
func startSupervised(t *testing.T, script string) *supervised {
	t.Helper()
	return startSupervisedCommand(t, "/bin/sh", "-c", script)
}

func startSupervisedCommand(t *testing.T, server ...string) *supervised {
	t.Helper()
	s := prepareSupervised(t, server...)
	s.start()
	return s
}

func prepareSupervised(t *testing.T, server ...string) *supervised {
	t.Helper()
	return prepareWith(t, "filesystem: {execute: [sleep, setsid]}\nnetwork: {egress: [\"192.0.2.1:9\"]}\n", server...)
}

// prepareWith makes the command of a server with a profile.
func prepareWith(t *testing.T, body string, server ...string) *supervised {
	t.Helper()
	home := t.TempDir()
	profile := filepath.Join(home, "p.yaml")
	if err := os.WriteFile(profile, []byte("version: 1\nname: p\n"+body), 0o600); err != nil {
		t.Fatal(err)
	}
	words := append([]string{"-c", `ulimit -Sn 300; profile=$1; shift; exec stockade run --profile "$profile" -- "$@"`, "sh", profile}, server...)
	s := &supervised{t: t, cmd: exec.Command("/bin/sh", words...)}
	s.cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	s.cmd.Dir = home
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	return s
}

func (s *supervised) start() {
	s.t.Helper()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
}

// line reads one line of the server's output.
func (s *supervised) line() string {
	s.t.Helper()
	text, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("reading a line: %v; stderr: %s", err, s.stderr.String())
	}
	return strings.TrimSuffix(text, "\n")
}

// pid reads a process number from the server.
func (s *supervised) pid() int {
	s.t.Helper()
	n, err := strconv.Atoi(s.line())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// end waits and wants an exit status.
func (s *supervised) end(want int) {
	s.t.Helper()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		s.t.Errorf("exit status %d, want %d; stderr: %s", got, want, s.stderr.String())
	}
	if text := s.stderr.String(); text != "" {
		s.t.Errorf("stderr: %s", text)
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestSupervisedStatus(t *testing.T) {
	tests := []struct {
		name, script string
		want         int
	}{
		{"success", "exit 0", 0},
		{"its own status", "exit 7", 7},
		{"a status that is ours elsewhere", "exit 125", 125},
		{"ended by a signal", "kill -TERM $$", 128 + 15},
		{"ended by a signal that cannot be caught", "kill -KILL $$", 128 + 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { startSupervised(t, tt.script).end(tt.want) })
	}
}

// TestSupervisedStreams: what goes through is the server's, byte for byte, and the host sees
// each end when it comes.
func TestSupervisedStreams(t *testing.T) {
	s := startSupervised(t, "while read -r l; do echo \"got $l\"; done; echo end")
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(s.in, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, want := s.line(), "got "+word; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.line(); got != "end" {
		t.Errorf("after the end of input: %q", got)
	}
	s.end(0)
}

// TestSupervisedOutputEnds: a server that closes its output is seen to, while it lives.
func TestSupervisedOutputEnds(t *testing.T) {
	s := startSupervised(t, "exec >&-; read -r l; exit 4")
	if data, err := io.ReadAll(s.out); err != nil || len(data) > 0 {
		t.Errorf("output %q, %v", data, err)
	}
	if _, err := io.WriteString(s.in, "go\n"); err != nil {
		t.Fatal(err)
	}
	s.end(4)
}

// TestSupervisedOpenFiles: the server has the limit that its host set, not the one that the
// supervisor's runtime gives itself.
func TestSupervisedOpenFiles(t *testing.T) {
	s := startSupervised(t, "ulimit -Sn")
	if got := s.line(); got != "300" {
		t.Errorf("soft limit %s", got)
	}
	s.end(0)
}

// TestSupervisorHasNoCapabilities: what root's supervisor does for the server is held to what
// the server could do.
func TestSupervisorHasNoCapabilities(t *testing.T) {
	s := startSupervised(t, "echo ready; read -r l")
	if got := s.line(); got != "ready" {
		t.Fatalf("got %q", got)
	}
	// The shell that set the limit became the supervisor. It withdraws at once, but not before
	// its server runs.
	deadline := time.Now().Add(10 * time.Second)
	for {
		held := effective(t, s.cmd.Process.Pid)
		if held == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("capabilities: %s", held)
		}
	}
	if _, err := io.WriteString(s.in, "go\n"); err != nil {
		t.Fatal(err)
	}
	s.end(0)
}

// effective lists the threads of a process that hold capabilities; "" for none.
func effective(t *testing.T, pid int) string {
	t.Helper()
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %q, %v", threads, err)
	}
	var held []string
	for _, path := range threads {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		_, value, found := strings.Cut(string(data), "\nCapPrm:\t")
		if value, _, _ = strings.Cut(value, "\n"); !found || strings.Trim(value, "0") != "" {
			held = append(held, path+" "+value)
		}
	}
	return strings.Join(held, ", ")
}

// TestSupervisedSignals: what the host sends arrives, each signal as itself.
func TestSupervisedSignals(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} {
		name := strings.TrimPrefix(unix.SignalName(signal), "SIG")
		t.Run(name, func(t *testing.T) {
			s := startSupervised(t, "trap 'echo "+name+"; exit 9' "+name+"; echo ready; while :; do sleep 0.02; done")
			if got := s.line(); got != "ready" {
				t.Fatalf("got %q", got)
			}
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := s.line(); got != name {
				t.Errorf("the server got %q", got)
			}
			s.end(9)
		})
	}
}

// TestSupervisedOrphans: nothing that the server started outlives it.
func TestSupervisedOrphans(t *testing.T) {
	tests := []struct{ name, script string }{
		{"child", "sleep 600 </dev/null >/dev/null 2>&1 & echo $!; exit 3"},
		{"grandchild", "(sleep 600 </dev/null >/dev/null 2>&1 & echo $!); exit 3"},
		{"daemon in a session of its own", "(setsid sh -c 'echo $$; exec sleep 600 </dev/null >/dev/null 2>&1' &); sleep 0.3; exit 3"},
		{"one that does not heed SIGTERM", "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 600 </dev/null >/dev/null 2>&1; done' & sleep 0.3; exit 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSupervised(t, tt.script)
			pid := s.pid()
			s.end(3)
			gone(t, pid)
		})
	}
}

// TestSupervisorKeepsItsTie: the server cannot undo what ends it with its supervisor.
func TestSupervisorKeepsItsTie(t *testing.T) {
	const script = "import ctypes, os, sys, time\n" +
		"c = ctypes.CDLL(None, use_errno=True)\n" +
		"print(os.getpid(), c.prctl(1, 0, 0, 0, 0), ctypes.get_errno(), flush=True)\n" +
		"time.sleep(600)"
	s := startSupervisedCommand(t, "/usr/bin/python3", "-c", script)
	var pid, answer, errno int
	if _, err := fmt.Sscan(s.line(), &pid, &answer, &errno); err != nil {
		t.Fatal(err)
	}
	if answer != -1 || unix.Errno(errno) != unix.EPERM {
		t.Errorf("prctl(PR_SET_PDEATHSIG) answered %d, errno %d", answer, errno)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
	gone(t, pid)
}

// TestUnreadStandardError: a host that does not read it holds nothing up, not even the end.
func TestUnreadStandardError(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	const script = "import fcntl, os, socket, sys\n" +
		"fcntl.fcntl(2, fcntl.F_SETFL, os.O_NONBLOCK)\n" +
		"try:\n    while True: os.write(2, b'x' * 4096)\nexcept BlockingIOError: pass\n" +
		"fcntl.fcntl(2, fcntl.F_SETFL, 0)\n" +
		"for port in range(100):\n    e = socket.socket().connect_ex(('127.0.0.1', 20000 + port))\n    assert e == 13, e\n" +
		"print('done', flush=True)\nos._exit(7)"
	s := prepareSupervised(t, "/usr/bin/python3", "-c", script)
	s.cmd.Stderr = write
	s.start()
	if got := s.line(); got != "done" {
		t.Errorf("got %q", got)
	}
	s.end(7)
}

// TestSupervisorKilled: without its supervisor the server ends.
func TestSupervisorKilled(t *testing.T) {
	s := startSupervised(t, "echo $$; exec sleep 600")
	pid := s.pid()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
	gone(t, pid)
}

// TestHostGone: a server that does not notice that its host went away is ended.
func TestHostGone(t *testing.T) {
	home := t.TempDir()
	profile := filepath.Join(home, "p.yaml")
	if err := os.WriteFile(profile, []byte("version: 1\nname: p\nfilesystem: {execute: [sleep]}\nnetwork: {egress: [\"192.0.2.1:9\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The shell is the host; standard input is a pipe that this test holds open.
	host := exec.Command("/bin/sh", "-c", `stockade run --profile "$0" -- /bin/sh -c 'echo $$; exec sleep 600' <&3 & exec sleep 600 >/dev/null`, profile)
	host.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	host.Dir = home
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	host.ExtraFiles = []*os.File{read}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	s := &supervised{t: t, cmd: host, out: bufio.NewReader(out)}
	pid := s.pid()
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	gone(t, pid)
}
