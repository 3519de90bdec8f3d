// Package examples_test runs every example, and the reports of other people that are about
// whole servers, against the stockade binary: through the official MCP client, the way a
// host starts a server.
//
// Each denial has two twins: the same server allowed to do the permitted thing in the
// jail, and doing the forbidden thing outside it.
package examples_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/examples/stock"
)

func TestMain(m *testing.M) {
	// Orphans of a jail become this process's children, so that none can hide.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "becoming the subreaper:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stock.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// place is the folders of one test: a home, a project and private things beside it, and
// the host's temporary folder.
type place struct {
	base, home, project, tmp string
	// secret is a file outside the project, readable by the test's user.
	secret string
}

const (
	insideText = "text of the project"
	secretText = "text that is nobody's business"
)

func newPlace(t *testing.T) place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{
		base: base, home: filepath.Join(base, "home"), project: filepath.Join(base, "project"),
		tmp: filepath.Join(base, "tmp"), secret: filepath.Join(base, "secret.txt"),
	}
	for _, dir := range []string{p.home, p.project, p.tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, p.secret, secretText)
	write(t, filepath.Join(p.project, "inside.txt"), insideText)
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// example returns the real path of a file in the folder of examples. A profile is copied out of
// the checkout: in a repository it would be the repository's, and nobody approved it.
func example(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(name) != "profile.yaml" {
		return path
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "profile.yaml")
	write(t, own, string(text))
	return own
}

// launch makes a server's command line into what a host starts.
type launch func(t *testing.T, words ...string) []string

// free starts a server as it is.
func free(_ *testing.T, words ...string) []string { return words }

// in starts a server in the jail of a profile file, or of the profile that matches when
// file is "".
func in(file string) launch {
	return func(t *testing.T, words ...string) []string {
		t.Helper()
		binary, err := stock.Binary()
		if err != nil {
			t.Fatal(err)
		}
		line := []string{binary, "run"}
		if file != "" {
			line = append(line, "--profile", file)
		}
		return append(append(line, "--"), words...)
	}
}

// profile writes a profile file beside the project and returns its path.
func (p place) profile(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(p.base, "profile.yaml")
	write(t, path, "version: 1\nname: case\n"+strings.ReplaceAll(body, "PROJECT", p.project))
	return path
}

// command is the command as a host would start it, with the project as working folder.
func (p place) command(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = p.project
	cmd.Env = []string{"HOME=" + p.home, "TMPDIR=" + p.tmp, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	return cmd
}

// output runs a command to its end and returns what it printed. It must exit with status.
func output(t *testing.T, cmd *exec.Cmd, status int) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("%q ended with %v, want status %d; stderr:\n%s", cmd.Args, cmd.ProcessState, status, errs.String())
	}
	noChildren(t)
	return out.String(), errs.String()
}

// noChildren fails when a process of a jail outlived its server.
func noChildren(t *testing.T) {
	t.Helper()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		case pid == 0:
			if !onlyKept(t) {
				t.Error("a process of the jail is left behind")
			}
			return
		}
	}
}

// awaitFollowers waits for what a server started to end by itself, and with status 0.
func awaitFollowers(t *testing.T) {
	t.Helper()
	for give := time.Now().Add(time.Minute); time.Now().Before(give); {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil); {
		case err != nil, pid == 0 && onlyKept(t):
			return // noChildren judges what is left
		case pid == 0:
			time.Sleep(10 * time.Millisecond)
		case status != 0:
			t.Errorf("what followed the server ended with %#x", status)
		}
	}
}

// awaitEnd waits for what a host started to end, however it does.
func awaitEnd(t *testing.T) {
	t.Helper()
	for give := time.Now().Add(30 * time.Second); time.Now().Before(give); {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); {
		case err != nil, pid == 0 && onlyKept(t):
			return
		case pid == 0:
			time.Sleep(10 * time.Millisecond)
		}
	}
	noChildren(t)
}

// onlyOwn fails when the jail wrote anywhere but to the project and stockade's own
// folders below the home.
func (p place) onlyOwn(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(p.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%q is left in the host's temporary folder", e.Name())
	}
	err = filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/stockade/") {
			t.Errorf("%q is left in the home folder", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// buffer collects a stream that another goroutine writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
