package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write what the scripts' commands print into the scripts")

// The test binary is the command, and the launchers that stand for other machines.
func TestMain(m *testing.M) {
	// A fuzz worker runs no script, and is killed before it could remove the commands.
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") }) {
		os.Exit(m.Run())
	}
	testscript.Main(m, map[string]func(){
		"stockade": func() {
			machineOfTests()
			main()
		},
		// kernel-without CALL ERRNO COMMAND...: a kernel that answers ERRNO to CALL.
		"kernel-without": kernelWithout,
		// ordinary COMMAND...: without root's power to read everybody's files.
		"ordinary": ordinary,
	})
}

// machineOfTests puts a folder of the script's in the place of /etc, and this user in that of
// its owner. The command itself takes no word for either.
func machineOfTests() {
	if folder := os.Getenv("TEST_SYSTEM"); folder != "" {
		systemFolder, systemOwner = folder, os.Getuid()
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup:               setUpMachine,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "log":
				return systemLogThere(), nil
			}
			return false, fmt.Errorf("no condition is called %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   never(status),
			"told":     never(told),
			"nothing":  never(nothingLeft),
			"bigfile":  never(bigFile),
			"nulfile":  never(nulFile),
			"bombfile": never(bombFile),
			"listen":   never(listenOn),
			"expand":   never(expand),
		},
	})
}

// setUpMachine gives each script an empty home, and a PATH that finds the test's commands
// first and then the machine's.
func setUpMachine(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("LANG", "C")
	e.Setenv("LINEFEED", "\n")
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		e.Setenv(name, "")
	}
	return nil
}

// never makes a script command of one that means nothing with "!" before it.
func never(do func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("the command takes no !")
		}
		do(ts, args)
	}
}

// expand writes the value of $WORK into files.
func expand(ts *testscript.TestScript, args []string) {
	for _, name := range args {
		file := ts.MkAbs(name)
		text, err := os.ReadFile(file)
		ts.Check(err)
		ts.Check(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "$WORK", ts.Getenv("WORK"))), 0o600))
	}
}

// status runs a command and asserts its exit status exactly.
func status(ts *testscript.TestScript, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: status NUMBER COMMAND [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		got = exit.ExitCode() // -1 after a signal
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// told asserts what every failure before the start has to look like: nothing on stdout,
// exactly one error line that holds the text, and one hint.
func told(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: told TEXT")
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout is not empty: %q", out)
	}
	checkTold(ts.Fatalf, ts.ReadFile("stderr"), args[0])
}

// nothingLeft asserts that a failed start left no file of ours in the home.
func nothingLeft(ts *testscript.TestScript, args []string) {
	if len(args) != 1 || args[0] != "left" {
		ts.Fatalf("usage: nothing left")
	}
	for _, below := range []string{".local", ".cache", ".config/stockade/state"} {
		path := filepath.Join(ts.Getenv("HOME"), below)
		if _, err := os.Lstat(path); err == nil {
			ts.Fatalf("%s was left behind", path)
		}
	}
}

func bigFile(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: bigfile FILE")
	}
	line := []byte("# a profile that never ends\n")
	data := []byte("version: 1\nname: big\n")
	for len(data) < 10<<20 {
		data = append(data, line...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

func nulFile(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: nulfile FILE")
	}
	text := "version: 1\nname: nul\nfilesystem:\n  read: [\"/srv/a\\0b\"]\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// listenOn makes a Unix socket that lasts as long as the script. Who connects gets one line.
func listenOn(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: listen FILE")
	}
	socket, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { _ = socket.Close() })
	go func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("from the socket\n"))
			_ = c.Close()
		}
	}()
}

// bombFile writes nine lists, each of nine times the one before.
func bombFile(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: bombfile FILE")
	}
	text := "version: 1\nname: bomb\nfilesystem:\n  read: &a0 [/srv/x]\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("x%d: &a%d [", i, i)
		for j := range 9 {
			if j > 0 {
				text += ", "
			}
			text += fmt.Sprintf("*a%d", i-1)
		}
		text += "]\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// kernelWithout starts a command under a filter that answers an errno to one call, which
// is what an older or differently built kernel does.
func kernelWithout() {
	calls := map[string]uint32{
		"landlock_create_ruleset": unix.SYS_LANDLOCK_CREATE_RULESET,
		"landlock_restrict_self":  unix.SYS_LANDLOCK_RESTRICT_SELF,
		"close_range":             unix.SYS_CLOSE_RANGE,
		"seccomp":                 unix.SYS_SECCOMP,
		"openat2":                 unix.SYS_OPENAT2,
		"pidfd_getfd":             unix.SYS_PIDFD_GETFD,
		"process_vm_readv":        unix.SYS_PROCESS_VM_READV,
		"recvfrom":                unix.SYS_RECVFROM,
	}
	errnos := map[string]unix.Errno{"ENOSYS": unix.ENOSYS, "EOPNOTSUPP": unix.EOPNOTSUPP, "EPERM": unix.EPERM, "EINVAL": unix.EINVAL}
	nr, known := calls[os.Args[1]]
	errno, named := errnos[os.Args[2]]
	if !known || !named {
		die("unknown call or errno", unix.EINVAL)
	}
	// Offset 0 of struct seccomp_data is the call's number. The commands under test are of
	// the machine's own architecture, so its word is not looked at.
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		die("no_new_privs", err)
	}
	if err := installFilter(&prog); err != nil {
		die("filter", err)
	}
	replace(os.Args[3:])
}

// ordinary takes from root what makes it read files that their modes close: the two
// capabilities leave the bounding set, so the next program does not get them.
func ordinary() {
	if os.Getuid() == 0 {
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				die("dropping a capability "+strconv.Itoa(int(c)), err)
			}
		}
	}
	replace(os.Args[1:])
}

func replace(argv []string) {
	path, err := lookPath(argv[0])
	if err != nil {
		die(argv[0], err)
	}
	die(path, syscall.Exec(path, argv, os.Environ()))
}

func lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if err := unix.Access(path, unix.X_OK); err == nil {
			return path, nil
		}
	}
	return "", os.ErrNotExist
}

func die(what string, err error) {
	fmt.Fprintf(os.Stderr, "test launcher: %s: %v\n", what, err)
	os.Exit(99)
}
