package supervise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
	"stockade/seccomp"
)

func TestMain(m *testing.M) {
	jailtest.Main(m, harness, tcpVictims, ownVictims, errorVictims, datagramVictims, messageVictims, unixVictims, bindVictims, raceVictims, lifeVictims, relayedVictims, observeVictims, benchVictims)
}

// world is what a supervised victim runs in.
type world struct {
	Supervision seccomp.Supervision
	Egress      []string // rules; nil for no egress at all
	Servers     []string // name servers
	Listen      []uint16
	Sockets     []string
	Own         []string
	// OwnAfter is how many questions find nothing of this machine's before all addresses are;
	// 0 asks the kernel.
	OwnAfter int
	// Orphan leaves the victim alive when its supervisor dies.
	Orphan bool
}

// internet is a world with egress rules.
func internet(rules ...string) world {
	return world{Supervision: seccomp.SupervisedInternet, Egress: append([]string{}, rules...)}
}

// run runs a victim under a supervisor.
func (w world) run(t testing.TB, user jailtest.User, victim string, args ...string) jailtest.Result {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return jailtest.RunAs(t, user, "supervisor", append([]string{string(text), victim}, args...)...)
}

// denials reads what the supervisor refused.
func denials(t *testing.T, r jailtest.Result) (out []egress.Denial) {
	t.Helper()
	for line := range strings.Lines(r.Stderr) {
		text, found := strings.CutPrefix(line, "denial: ")
		if !found {
			continue
		}
		var d egress.Denial
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// wantDenied asserts that exactly one refusal was reported, with whom and what.
func wantDenied(t *testing.T, r jailtest.Result, call, asked string) {
	t.Helper()
	all := denials(t, r)
	if len(all) != 1 {
		t.Fatalf("got %d denials, want 1\n%s", len(all), r)
	}
	d := all[0]
	if d.Call != call || d.Asked != asked || d.Rule == "" || d.Profile != "test" || d.PID <= 1 || d.Program != "victim" || d.Time.IsZero() {
		t.Errorf("got denial %+v, want call %q and asked %q", d, call, asked)
	}
}

func wantNoDenial(t *testing.T, r jailtest.Result) {
	t.Helper()
	if all := denials(t, r); len(all) != 0 {
		t.Errorf("want no denial, got %+v", all)
	}
}

var harness = jailtest.Victims{
	// supervisor: a world as JSON, the victim, its arguments. It ends as the victim ends.
	"supervisor": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		var w world
		if err := json.Unmarshal([]byte(args[0]), &w); err != nil {
			s.Failf("reading the world: %v", err)
		}
		state, err := superviseVictim(w, args[1], args[2:])
		if err != nil {
			s.Failf("%v", err)
		}
		if state.Signaled() {
			s.Failf("the victim was killed by %v", state.Signal())
		}
		os.Exit(state.ExitStatus())
		panic("unreachable")
	},
	// filtered: the supervision, the victim, its arguments. Descriptor 3 takes the
	// listener's number, descriptor 4 says when it has been taken.
	"filtered": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		unix.CloseOnExec(3)
		unix.CloseOnExec(4)
		kind, err := strconv.Atoi(args[0])
		if err != nil {
			s.Failf("reading the supervision: %v", err)
		}
		program, err := seccomp.Policy{Supervision: seccomp.Supervision(kind), Sockets: seccomp.ListenSockets}.Program()
		if err != nil {
			s.Failf("making the filter: %v", err)
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			s.Failf("setting no_new_privs: %v", err)
		}
		fd, err := seccomp.Listen(program)
		if err != nil {
			s.Failf("%v", err)
		}
		if _, err := unix.Write(3, []byte(strconv.Itoa(fd)+"\n")); err != nil {
			s.Failf("telling the listener's number: %v", err)
		}
		if n, err := unix.Read(4, make([]byte, 1)); err != nil || n != 1 {
			s.Failf("waiting for the supervisor: %d, %v", n, err)
		}
		err = unix.Exec("/proc/self/exe", append([]string{"victim"}, args[2:]...), environment(args[1]))
		s.Failf("executing the victim: %v", err)
		return jailtest.Outcome{}
	},
}

// config makes what the supervisor needs.
func (w world) config() (c supervise.Config, end func(), err error) {
	c = supervise.Config{
		Profile: "test", Listen: w.Listen, Unix: supervise.Unix{Sockets: w.Sockets, Own: w.Own},
		Deny: func(d egress.Denial) {
			text, err := json.Marshal(d)
			if err != nil {
				panic(err)
			}
			_, _ = os.Stderr.WriteString("denial: " + string(text) + "\n")
		},
	}
	if w.Egress == nil {
		return c, func() {}, nil
	}
	if w.OwnAfter > 0 {
		var asked atomic.Int64
		c.Own = func(netip.Addr) (string, error) {
			if asked.Add(1) <= int64(w.OwnAfter) {
				return "", nil
			}
			return "an address of this machine", nil
		}
	}
	var policy egress.Policy
	for _, text := range w.Egress {
		rules, err := egress.ParseRule(text)
		if err != nil {
			return c, nil, err
		}
		policy.Rules = append(policy.Rules, rules...)
	}
	hosts := egress.Hosts{}
	for _, r := range policy.Rules {
		if r.Host != "" {
			hosts[r.Host] = []netip.Addr{netip.MustParseAddr("93.184.215.14")}
		}
	}
	for _, text := range w.Servers {
		c.Servers = append(c.Servers, netip.MustParseAddrPort(text))
	}
	c.Egress = egress.NewDecider(policy, hosts)
	if c.Stub, err = egress.NewStub(c.Egress, c.Servers, c.Deny); err != nil {
		return c, nil, err
	}
	c.Stub.SetHosts(hosts)
	if c.Relay, err = egress.NewRelay(c.Egress, c.Stub, c.Deny); err != nil {
		return c, nil, err
	}
	return c, func() { _, _ = c.Stub.Close(), c.Relay.Close() }, nil
}

// superviseVictim starts a victim behind a filter and answers its calls until its end. It
// fails when a descriptor is left open.
func superviseVictim(w world, victim string, args []string) (status syscall.WaitStatus, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return status, err
	}
	before, err := descriptors()
	if err != nil {
		return status, err
	}
	if status, err = w.supervise(victim, args); err != nil {
		return status, err
	}
	after, err := descriptors()
	if err == nil && !slices.Equal(before, after) {
		err = fmt.Errorf("descriptors before and after differ: %q, %q", before, after)
	}
	return status, err
}

func (w world) supervise(victim string, args []string) (status syscall.WaitStatus, err error) {
	config, end, err := w.config()
	if err != nil {
		return status, err
	}
	defer end()
	cmd, listener, err := startFiltered(w, victim, args)
	if err != nil {
		return status, err
	}
	config.Listener, config.PID = listener, cmd.Process.Pid
	served := make(chan error, 1)
	go func() { served <- supervise.Serve(config) }()
	failed := cmd.Wait()
	if cmd.ProcessState == nil {
		return status, failed
	}
	if err := <-served; err != nil {
		return status, fmt.Errorf("serving: %w", err)
	}
	return cmd.ProcessState.Sys().(syscall.WaitStatus), nil
}

// descriptors lists what this process has open, once the network poller has its own.
func descriptors() (out []string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends at once
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		target, err := os.Readlink("/proc/self/fd/" + name.Name())
		if err != nil {
			continue // the folder that was read
		}
		out = append(out, target)
	}
	slices.Sort(out)
	return out, nil
}

func startFiltered(w world, victim string, args []string) (*exec.Cmd, int, error) {
	tellRead, tellWrite, err := os.Pipe()
	if err != nil {
		return nil, -1, err
	}
	ackRead, ackWrite, err := os.Pipe()
	if err != nil {
		return nil, -1, err
	}
	defer func() { _, _, _, _ = tellRead.Close(), tellWrite.Close(), ackRead.Close(), ackWrite.Close() }()
	cmd := exec.Command("/proc/self/exe", append([]string{strconv.Itoa(int(w.Supervision)), victim}, args...)...)
	cmd.Env = environment("filtered")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{tellWrite, ackRead}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if w.Orphan {
		cmd.SysProcAttr.Pdeathsig = 0
	}
	if err := cmd.Start(); err != nil {
		return nil, -1, err
	}
	_ = tellWrite.Close()
	listener, err := takeListener(cmd.Process.Pid, tellRead)
	if err == nil {
		_, err = ackWrite.Write([]byte{1})
	}
	if err != nil {
		return nil, -1, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return cmd, listener, nil
}

// environment is a victim's, with what the harness gave this one.
func environment(victim string) []string {
	env := jailtest.Environment(victim)
	for _, name := range []string{"PATH", "TMPDIR", "GORACE"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

func takeListener(pid int, tell *os.File) (int, error) {
	line := make([]byte, 16)
	n, err := tell.Read(line)
	if err != nil {
		return -1, fmt.Errorf("reading the listener's number: %w", err)
	}
	number, err := strconv.Atoi(string(bytes.TrimSpace(line[:n])))
	if err != nil {
		return -1, err
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, number, 0)
}

// inNetwork makes a command that runs a shell's words in a network namespace of its own, as
// somebody who may set it up.
func inNetwork(t *testing.T, script string, words ...string) *exec.Cmd {
	t.Helper()
	in := func(words ...string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", append([]string{"-c"}, words...)...)
		cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/sbin:"+os.Getenv("PATH"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
		}
		return cmd
	}
	jailtest.Need(t, jailtest.Probe{
		Name:  "a network namespace of its own, and ip of iproute2",
		Check: in("ip link show lo").Run,
	})
	return in(append([]string{script}, words...)...)
}

// greeting is what a test's server says first.
const greeting = "hello"

// greet listens on an address of this machine and greets everyone who comes.
func greet(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting))
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
