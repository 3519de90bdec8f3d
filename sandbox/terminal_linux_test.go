package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

func init() { //nolint:gochecknoinits // the table of operations is split by subject
	// ENOTTY: standard input is a terminal, and not this process's controlling one.
	operations["controlling"] = func(s *jailtest.Stage, _ []string) jailtest.Outcome {
		_, err := unix.IoctlGetInt(0, unix.TIOCGSID)
		return jailtest.OutcomeOf(s, err)
	}
	operations["start"] = startChild
}

// startChild starts another victim as a child with this process's streams: args are
// "job" (a group of its own, as a shell starts jobs) or "script" (the same group), the
// victim's name, and its arguments. Its report is the one that the test reads.
func startChild(s *jailtest.Stage, a []string) jailtest.Outcome {
	p, err := os.StartProcess("/proc/self/exe", append([]string{"child"}, a[2:]...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.NewFile(3, "report"), os.Stderr},
		Env:   jailtest.Environment(a[1]),
		Sys:   &syscall.SysProcAttr{Setpgid: a[0] == "job"},
	})
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	state, err := p.Wait()
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(state.ExitCode())
	return o
}

// newTerminal makes a pseudo terminal.
func newTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return master, terminal
}

// underTerminal runs a victim as the leader of a new session with a controlling terminal
// as standard input; descriptor 3 is the same as standard output. It returns its output
// and how it ended.
func underTerminal(t *testing.T, user jailtest.User, victim string, args ...string) (string, error) {
	t.Helper()
	_, terminal := newTerminal(t)
	jailtest.Own(t, user, terminal.Name())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command(jailtest.Binary(t), args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, jailtest.Environment(victim)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, write, &stderr
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if c := credentialOf(user); c != nil {
		cmd.SysProcAttr.Credential = c.Credential
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(read); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	return out.String() + stderr.String(), err
}

// TestTerminal: the server has no controlling terminal, however the host was started, and
// survives losing it.
func TestTerminal(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		plan, err := json.Marshal(g.plan)
		if err != nil {
			t.Fatal(err)
		}
		tests := []struct {
			name   string
			victim string
			args   []string
			want   string
		}{
			{"session leader, outside", "op", []string{"controlling"}, `"name":"0"`},
			{"session leader", g.victim, []string{string(plan), "controlling"}, `"name":"ENOTTY"`},
			{"shell's job", "op", []string{"start", "job", g.victim, string(plan), "controlling"}, `"name":"ENOTTY"`},
			{"script's command", "op", []string{"start", "script", g.victim, string(plan), "controlling"}, `"name":"ENOTTY"`},
			{"session leader whose setsid lies", "lying to " + g.victim, []string{decimal(unix.SYS_SETSID), string(plan)}, "asked for no controlling terminal, the kernel reports"},
			{"script's command, outside", "op", []string{"start", "script", "op", "controlling"}, `"name":"0"`},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				out, err := underTerminal(t, user.User, tt.victim, tt.args...)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if !strings.Contains(out, "jailtest: finish") || !strings.Contains(out, tt.want) {
					t.Errorf("want a finish with %s, got\n%s", tt.want, out)
				}
			})
		}
	})
}
