package nettest_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/nettest"
)

// program is a client as a profile sees it.
type program struct {
	words []string          // its command line, without what it is to ask for
	env   map[string]string // variables that it needs
	read  []string          // paths that it reads beside its own files
	exec  []string          // programs that it starts
	broad []string          // the same, where it hands out more than files
}

// launcher makes a program with words added into a command; network is the profile's section
// of that name.
type launcher interface {
	Command(t testing.TB, p program, network string, words ...string) *exec.Cmd
}

// plain starts programs outside any jail.
type plain struct{}

// jailed starts them by `stockade run` in the jail of a profile made for them.
type jailed struct{}

// home makes the folders of one run: a home, a working folder and a temporary one.
func home(t testing.TB) (base string) {
	t.Helper()
	// A browser makes a socket below its temporary folder, and the path of a socket has at
	// most 107 bytes (unix(7)): the folders of testing.TB have longer names.
	base, err := os.MkdirTemp("", "net-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"home", "project", "tmp"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func command(base string, env map[string]string, words []string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = filepath.Join(base, "project")
	cmd.Env = []string{
		"HOME=" + filepath.Join(base, "home"), "TMPDIR=" + filepath.Join(base, "tmp"),
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "XDG_CACHE_HOME=" + base,
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	return cmd
}

func (plain) Command(t testing.TB, p program, _ string, words ...string) *exec.Cmd {
	t.Helper()
	return command(home(t), p.env, slices.Concat(p.words, words))
}

func (jailed) Command(t testing.TB, p program, network string, words ...string) *exec.Cmd {
	t.Helper()
	binary := launcherProgram.find(t, nettest.Get(t))
	base := home(t)
	file := filepath.Join(base, "profile.yaml")
	if err := os.WriteFile(file, []byte(p.profile(network)), 0o600); err != nil {
		t.Fatal(err)
	}
	return command(base, nil, slices.Concat([]string{binary, "run", "--profile", file, "--"}, p.words, words))
}

// profile writes down what the program needs, and the network that it gets.
func (p program) profile(network string) string {
	var b strings.Builder
	b.WriteString("version: 1\nname: case\nextends: [base]\n")
	b.WriteString("filesystem:\n")
	fmt.Fprintf(&b, "  read:\n%s", listed(p.read))
	for _, path := range p.broad {
		fmt.Fprintf(&b, "    - {path: %q, broad: true, reason: a browser counts its own processes and descriptors}\n", path)
	}
	fmt.Fprintf(&b, "  write: [\"${cwd}\"]\n  execute:\n%s", listed(p.exec))
	b.WriteString("environment:\n  set:\n    NO_COLOR: \"1\"\n")
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		fmt.Fprintf(&b, "    %s: %q\n", name, p.env[name])
	}
	b.WriteString("network:\n")
	for line := range strings.Lines(strings.TrimSpace(network)) {
		b.WriteString("  " + line)
	}
	b.WriteString("\n")
	return b.String()
}

// listed writes a list of the profile; an empty one is written too.
func listed(words []string) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "    - %q\n", w)
	}
	return b.String()
}

// ended is what a run came to.
type ended struct {
	status         int
	stdout, stderr string
}

// run runs a command to its end, which no signal may bring. No process may outlive it.
func run(t testing.TB, cmd *exec.Cmd) ended {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%q ended with %v; stderr:\n%s", cmd.Args, cmd.ProcessState, &stderr)
	}
	noChildren(t)
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// noChildren fails when a process outlived what started it.
func noChildren(t testing.TB) {
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
			t.Error("a process is left behind")
			return
		}
	}
}
