package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// TestFiles: each operation is refused where nothing is granted, works where something is,
// and works everywhere without the jail. Names beginning with @ lie in the ground.
func TestFiles(t *testing.T) {
	tests := []struct {
		name    string
		denied  string
		errno   unix.Errno
		allowed string // the twin in the jail; "" when no grant ever allows it
	}{
		{"read", "read @outside/secret.txt", unix.EACCES, "read @read/in.txt"},
		{"read through a folder link", "read @write/link/secret.txt", unix.EACCES, "read @write/in.txt"},
		{"read through a file link", "read @write/filelink", unix.EACCES, "read @write/sub/in.txt"},
		{"read by climbing", "read @write/../outside/secret.txt", unix.EACCES, "read @write/../read/in.txt"},
		{"list", "list @outside", unix.EACCES, "list @read"},
		{"list through a link", "list @write/link", unix.EACCES, "list @write"},
		{"list the parent of a grant", "list @", unix.EACCES, "list @write/sub"},
		{"create", "create @outside/new", unix.EACCES, "create @write/new"},
		{"create in a read grant", "create @read/new", unix.EACCES, "create @write/sub/new"},
		{"create through a link", "create @write/link/new", unix.EACCES, "create @write/new2"},
		{"write", "write @outside/secret.txt", unix.EACCES, "write @write/in.txt"},
		{"write in a read grant", "write @read/in.txt", unix.EACCES, "append @write/in.txt"},
		{"truncate", "truncate @outside/secret.txt", unix.EACCES, "truncate @write/in.txt"},
		{"truncate in a read grant", "truncate @read/in.txt", unix.EACCES, "truncate @write/sub/in.txt"},
		{"cut by opening", "cut @read/in.txt", unix.EACCES, "cut @write/in.txt"},
		{"make a folder", "mkdir @outside/d", unix.EACCES, "mkdir @write/d"},
		{"remove a folder", "rmdir @outside/empty", unix.EACCES, "rmdir @write/empty"},
		{"unlink", "unlink @outside/sub/in.txt", unix.EACCES, "unlink @write/sub/in.txt"},
		{"unlink in a read grant", "unlink @read/prog", unix.EACCES, "unlink @write/prog"},
		{"move out", "rename @write/in.txt @outside/moved", unix.EACCES, "rename @write/in.txt @write/sub/moved"},
		{"move in", "rename @outside/secret.txt @write/moved", unix.EACCES, "rename @write/sub/in.txt @write/moved"},
		{"move out of a read grant", "rename @read/in.txt @write/moved", unix.EACCES, "rename @write/in.txt @write/renamed"},
		{"link in", "link @outside/secret.txt @write/linked", unix.EXDEV, "link @write/in.txt @write/sub/linked"},
		{"link from a read grant", "link @read/in.txt @write/linked", unix.EXDEV, "link @write/in.txt @write/linked2"},
		{"link into a private folder", "link @write/in.txt @data/stockade/homes/test/linked", unix.EXDEV, "link @write/in.txt @write/linked3"},
		{"move into a private folder", "rename @write/in.txt @cache/stockade/runs/test/moved", unix.EXDEV, "rename @write/in.txt @write/moved3"},
		{"symlink", "symlink x @outside/s", unix.EACCES, "symlink x @write/s"},
		{"fifo in a root", "mkfifo @write/fifo", unix.EACCES, "mkfifo @cache/stockade/runs/test/fifo"},
		{"fifo in a read grant", "mkfifo @read/fifo", unix.EACCES, "mkfifo @data/stockade/homes/test/fifo"},
		{"device", "read /dev/kmsg", unix.EACCES, "write /dev/null"},
		{"the root folder", "list /", unix.EACCES, "list @write"},
		{"the list of users", "read /etc/passwd", unix.EACCES, "read @read/in.txt"},
		{"another run's temporary folder", "list @cache/stockade/runs", unix.EACCES, "list @cache/stockade/runs/test"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachLauncher(t, func(t *testing.T, user launcher) {
				t.Helper()
				g := newGround(t, user)
				for _, d := range []string{"outside/empty", "write/empty"} {
					g.must(t, os.Mkdir(g.at(d), 0o755), d)
				}
				denied := g.jailed(t, g.words(tt.denied)...)
				jailtest.WantErrno(t, denied, tt.errno)
				jailtest.WantOK(t, g.jailed(t, g.words(tt.allowed)...))
				if tt.denied == "read /dev/kmsg" {
					return // only root may outside, and only where the kernel lets it
				}
				fresh := newGround(t, user)
				for _, d := range []string{"outside/empty", "cache/stockade", "cache/stockade/runs", "cache/stockade/runs/test", "data/stockade", "data/stockade/homes", "data/stockade/homes/test"} {
					fresh.must(t, os.Mkdir(fresh.at(d), 0o700), d)
				}
				jailtest.WantOK(t, fresh.outside(t, fresh.words(tt.denied)...))
			})
		})
	}
}

// words splits an operation and puts the ground's paths in.
func (g *ground) words(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if rest, ok := strings.CutPrefix(w, "@"); ok {
			words[i] = g.dir + "/" + rest
		}
	}
	return words
}

// TestNothingOutsideChanged: the refused operations above must not have had an effect
// before they were refused.
func TestNothingOutsideChanged(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		before := readFile(t, g.at("outside/secret.txt"))
		for _, line := range []string{"truncate @outside/secret.txt", "cut @outside/secret.txt", "write @outside/secret.txt", "unlink @outside/secret.txt"} {
			jailtest.WantErrno(t, g.jailed(t, g.words(line)...), unix.EACCES)
		}
		if after := readFile(t, g.at("outside/secret.txt")); string(after) != string(before) {
			t.Errorf("an outside file changed from %q to %q", before, after)
		}
	})
}

// TestNoAccessMode: an open that asks for no access needs no right of Landlock, and its
// descriptor is good for changing the mode of any file of the user. It is refused
// everywhere, since nobody needs it.
func TestNoAccessMode(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		jailtest.WantErrno(t, g.jailed(t, "open3", g.at("outside/secret.txt")), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "open3", g.at("write/in.txt")), unix.EACCES)
		jailtest.WantOK(t, g.jailed(t, "fchmod", g.at("write/in.txt"), "416"))
		jailtest.WantOK(t, g.outside(t, "open3", g.at("outside/secret.txt")))
	})
}

// TestWorkingFolderKeepsItsMetadata: a server may go into any folder, which must not make it
// a descriptor to change.
func TestWorkingFolderKeepsItsMetadata(t *testing.T) {
	jailtest.Need(t, jailtest.Probe{Name: "setxattrat(2)", Since: "6.13", Check: func() error {
		if _, _, errno := unix.Syscall6(unix.SYS_SETXATTRAT, 0, 0, 0, 0, 0, 0); errno == unix.ENOSYS {
			return errno
		}
		return nil
	}})
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		jailtest.WantErrno(t, g.jailed(t, "setxattr-here", g.at("outside")), unix.ENOSYS)
		jailtest.WantErrno(t, g.jailed(t, "setxattr-here", g.at("write")), unix.ENOSYS)
		jailtest.WantOK(t, g.outside(t, "setxattr-here", g.at("outside")))
	})
}

// TestNoSetIDFiles: a server does not leave a program behind that runs with its user's
// rights. 2541 is 04755, 493 is 0755.
func TestNoSetIDFiles(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		jailtest.WantErrno(t, g.jailed(t, "fchmod", g.at("write/prog"), "2541"), unix.EPERM)
		jailtest.WantErrno(t, g.jailed(t, "make", g.at("write/new"), "2541"), unix.EPERM)
		jailtest.WantOK(t, g.jailed(t, "fchmod", g.at("write/prog"), "493"))
		jailtest.WantOK(t, g.jailed(t, "make", g.at("write/new"), "493"))
		jailtest.WantOK(t, g.outside(t, "fchmod", g.at("write/prog"), "2541"))
		jailtest.WantOK(t, g.outside(t, "make", g.at("write/new2"), "2541"))
		for _, name := range []string{"write/prog", "write/new2"} {
			info, err := os.Stat(g.at(name))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode()&os.ModeSetuid == 0 {
				t.Errorf("%s is not set-id outside either: the test proves nothing", name)
			}
		}
	})
}

// TestThreadsAndDescendants: Landlock holds for each thread and for the children's
// children of the server.
func TestThreadsAndDescendants(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		denied := g.jailed(t, "threads", g.at("outside/secret.txt"))
		jailtest.WantErrno(t, denied, unix.EACCES)
		if denied.Outcome.Value != 0 {
			t.Errorf("%d threads got through", denied.Outcome.Value)
		}
		jailtest.WantValue(t, g.jailed(t, "threads", g.at("read/in.txt")), 16)
		jailtest.WantValue(t, g.outside(t, "threads", g.at("outside/secret.txt")), 16)

		jailtest.WantErrno(t, g.jailed(t, "grandchild", "2", "read", g.at("outside/secret.txt")), unix.EACCES)
		jailtest.WantOK(t, g.jailed(t, "grandchild", "2", "read", g.at("read/in.txt")))
		jailtest.WantOK(t, g.outside(t, "grandchild", "2", "read", g.at("outside/secret.txt")))
	})
}

// TestPrograms: only the granted program runs. Nothing else can be executed or read, by
// name, through the loader, by a script's interpreter line, or as a copy.
func TestPrograms(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		shell := realPath(t, "/bin/sh")
		jailtest.WantErrno(t, g.jailed(t, "exec", shell, "-c", "exit 0"), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "exec", "/bin/sh", "-c", "exit 0"), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "read", shell), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "exec", g.at("write/script")), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "exec", g.at("write/prog")), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "exec", g.at("read/prog")), unix.EACCES)
		jailtest.WantErrno(t, g.jailed(t, "exec", g.at("outside/prog")), unix.EACCES)

		jailtest.WantValue(t, g.outside(t, "exec", shell, "-c", "exit 0"), 0)
		jailtest.WantValue(t, g.outside(t, "exec", g.at("write/script")), 0)
		jailtest.WantValue(t, g.outside(t, "exec", g.at("write/prog")), 0)

		loaders := runtimeFiles(t, g.plan.File)
		if len(loaders) == 0 {
			t.Fatal("the test binary is static: the loader cannot be tested")
		}
		// The loader itself may run (a dynamic program needs it); what it is told to load
		// it cannot read: it ends with status 127.
		jailtest.WantValue(t, g.jailed(t, "exec", loaders[0], shell, "-c", "exit 0"), 127)
		jailtest.WantValue(t, g.jailed(t, "exec", loaders[0], g.at("outside/prog")), 127)
		jailtest.WantValue(t, g.outside(t, "exec", loaders[0], shell, "-c", "exit 0"), 0)
		// The residue that explain names: what the jail can read, the loader can start.
		jailtest.WantValue(t, g.jailed(t, "exec", loaders[0], g.at("read/prog")), 0)

		g.plan = grantProgram(g.plan, shell)
		jailtest.WantValue(t, g.jailed(t, "exec", shell, "-c", "exit 0"), 0)
	})
}

// TestProc: the processes outside are out of reach, for the server and its descendants.
func TestProc(t *testing.T) {
	eachLauncher(t, func(t *testing.T, user launcher) {
		t.Helper()
		g := newGround(t, user)
		other := startSleeper(t, user.User)
		for _, file := range []string{"cmdline", "environ", "maps", "status"} {
			path := "/proc/" + other + "/" + file
			jailtest.WantErrno(t, g.jailed(t, "read", path), unix.EACCES)
			jailtest.WantErrno(t, g.jailed(t, "grandchild", "2", "read", path), unix.EACCES)
			jailtest.WantOK(t, g.outside(t, "read", path))
		}
		jailtest.WantErrno(t, g.jailed(t, "list", "/proc"), unix.EACCES)
	})
}

// startSleeper starts a process of the user that ends with the test.
func startSleeper(t *testing.T, user jailtest.User) string {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "600")
	cmd.SysProcAttr = credentialOf(user)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return decimal(cmd.Process.Pid)
}
