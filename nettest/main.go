package nettest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

const (
	// stageVariable says which part of the start this process is: absent, "enter", "inside".
	stageVariable = "STOCKADE_NETTEST"
	// socketsVariable names what is listened on, for the process that serves.
	socketsVariable = "STOCKADE_NETTEST_SOCKETS"
	// folderVariable is the folder that the first process made and will remove.
	folderVariable = "STOCKADE_NETTEST_DIR"
	// setupStatus is the exit status of a process that could not set the network up; the
	// reason is in a file then. It is no status that a test binary uses.
	setupStatus = 96
	reasonFile  = "reason"
)

// state is what Main found out for Get: a network, or why there is none.
var state struct {
	network *Network
	missing error
}

// Main is the body of TestMain. It starts the test binary again in new network and mount
// namespaces, sets up the network there and runs the tests in it. Where no namespaces can
// be had it runs the tests without, and [Get] tells each one why. sets are victims, as for
// [jailtest.Main].
func Main(m *testing.M, sets ...jailtest.Victims) {
	victim, _, _ := strings.Cut(jailtest.Environment("")[0], "=")
	_, isVictim := os.LookupEnv(victim)
	switch stage := os.Getenv(stageVariable); {
	case isVictim:
		jailtest.Main(m, sets...)
	case stage == "enter":
		enter()
	case stage == "inside":
		inside(m, sets)
	default:
		status, missing := outside()
		if missing == nil {
			os.Exit(status)
		}
		state.missing = missing
		jailtest.Main(m, sets...)
	}
}

// Get returns the network. The test needs it: without one it ends with the reason.
func Get(t testing.TB) *Network {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{
		Name:  "network and mount namespaces of its own",
		Check: func() error { return state.missing },
	})
	if state.network == nil {
		t.Fatal("nettest.Main did not run: call it from TestMain")
	}
	return state.network
}

// outside starts this binary in its namespaces and waits. missing is the reason why the
// tests cannot run there; nil when they ran and ended with status.
func outside() (status int, missing error) {
	folder, err := os.MkdirTemp("", "stockade-nettest-")
	if err != nil {
		return 0, fmt.Errorf("making a folder for the network: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, "nettest: removing the network's folder:", err)
			status = max(status, 1)
		}
	}()
	if err := os.Chmod(folder, 0o755); err != nil {
		return 0, fmt.Errorf("opening the folder for the network: %w", err)
	}
	// The parent-death signal below follows the thread that forks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"=enter", folderVariable+"="+folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting in new namespaces: %w", err)
	}
	// The go command asks for goroutines with SIGQUIT when its time is up.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			// It may have ended by itself, and then nobody has to be told.
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return 0, fmt.Errorf("waiting for the tests: %w", err)
	}
	reason, err := os.ReadFile(filepath.Join(folder, reasonFile))
	if cmd.ProcessState.ExitCode() == setupStatus && err == nil {
		return 0, errors.New(string(reason))
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	fmt.Fprintln(os.Stderr, "nettest: the tests ended with", cmd.ProcessState)
	return 1, nil
}

// namespaces says how the second process is made. An ordinary user needs a user namespace
// for the others; its own ids are mapped to themselves, so that it stays an ordinary user,
// and what it needs for the set-up are ambient capabilities that enter drops again.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() == 0 && mayMakeNamespaces() {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
	return attr
}

func mayMakeNamespaces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// enter sets up the namespaces that this process was started in, and executes the test
// binary once more without the privileges for that.
func enter() {
	// Ambient capabilities are a thread's, and the thread that executes decides.
	runtime.LockOSThread()
	folder := os.Getenv(folderVariable)
	sockets, err := setUp(folder)
	var word string
	if err == nil {
		word, err = handOver(sockets)
	}
	if err == nil {
		err = os.Setenv(socketsVariable, word)
	}
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		err = os.Setenv(stageVariable, "inside")
	}
	if err == nil {
		err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	if err := os.WriteFile(filepath.Join(folder, reasonFile), []byte(err.Error()), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "nettest: writing down why there is no network:", err)
	}
	os.Exit(setupStatus)
}

// inside runs the tests in the network.
func inside(m *testing.M, sets []jailtest.Victims) {
	folder := os.Getenv(folderVariable)
	sockets, err := takeOver(os.Getenv(socketsVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "nettest: taking the sockets over:", err)
		os.Exit(1)
	}
	for _, name := range []string{stageVariable, folderVariable, socketsVariable} {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, "nettest:", err)
			os.Exit(1)
		}
	}
	// Orphans of a jail become this process's children, so that none can hide.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "nettest: becoming the subreaper:", err)
		os.Exit(1)
	}
	network, err := start(folder, sockets)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nettest: starting the servers:", err)
		os.Exit(1)
	}
	state.network = network
	jailtest.Main(m, sets...)
}
