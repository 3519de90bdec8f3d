package supervise_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/forecast"
	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
	"stockade/seccomp"
)

func done(s *jailtest.Stage, err error) jailtest.Outcome { return jailtest.OutcomeOf(s, err) }

func opened(s *jailtest.Stage, dir int, path string, flags int) jailtest.Outcome {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Close(fd)
	}
	return done(s, err)
}

// openFlags are words for ways to open.
var openFlags = map[string]int{
	"read": unix.O_RDONLY, "write": unix.O_WRONLY, "both": unix.O_RDWR, "list": unix.O_RDONLY | unix.O_DIRECTORY,
	"make": unix.O_WRONLY | unix.O_CREAT, "make new": unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL,
	"cut": unix.O_RDONLY | unix.O_TRUNC, "over": unix.O_WRONLY | unix.O_TRUNC, "path": unix.O_PATH,
	"temporary": unix.O_TMPFILE | unix.O_RDWR, "no link": unix.O_RDONLY | unix.O_NOFOLLOW,
}

var fileOperations = map[string]func(*jailtest.Stage, []string) jailtest.Outcome{
	"open": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return opened(s, unix.AT_FDCWD, a[1], openFlags[a[0]])
	},
	// below: a folder, a path in it, by the folder's descriptor.
	"below": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		dir, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return done(s, err)
		}
		return opened(s, dir, a[1], unix.O_RDONLY)
	},
	// from: a folder to change to, a path from there.
	"from": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		if err := unix.Chdir(a[0]); err != nil {
			return done(s, err)
		}
		return opened(s, unix.AT_FDCWD, a[1], unix.O_RDONLY)
	},
	"mkdir":   func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Mkdir(a[0], 0o700)) },
	"rmdir":   func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Rmdir(a[0])) },
	"unlink":  func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Unlink(a[0])) },
	"symlink": func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Symlink("x", a[0])) },
	"fifo":    func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Mkfifo(a[0], 0o600)) },
	"rename":  func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Rename(a[0], a[1])) },
	"exchange": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return done(s, unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE))
	},
	"link":     func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Link(a[0], a[1])) },
	"truncate": func(s *jailtest.Stage, a []string) jailtest.Outcome { return done(s, unix.Truncate(a[0], 1)) },
	"execute": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		path, err := unix.BytePtrFromString(a[0])
		if err != nil {
			s.Failf("%v", err)
		}
		argv := []*byte{path, nil}
		_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), 0)
		return jailtest.Outcome{Errno: errno}
	},
	// socket: a family, a type.
	"socket": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		family, _ := strconv.Atoi(a[0])
		kind, _ := strconv.Atoi(a[1])
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return done(s, err)
	},
	// threads: a path, that sixteen threads open.
	"threads": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		const threads = 16
		results := make(chan jailtest.Outcome, threads)
		for range threads {
			go func() { results <- opened(s, unix.AT_FDCWD, a[0], unix.O_RDONLY) }()
		}
		var last jailtest.Outcome
		refused := 0
		for range threads {
			if last = <-results; last.Errno != 0 {
				refused++
			}
		}
		last.Value = int64(refused)
		return last
	},
	// many: how often, a path.
	"many": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		times, _ := strconv.Atoi(a[0])
		var last jailtest.Outcome
		for range times {
			last = opened(s, unix.AT_FDCWD, a[1], unix.O_RDONLY)
		}
		return last
	},
	// closed: a path. The process forbids inspection first.
	"closed": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			s.Failf("forbidding inspection: %v", err)
		}
		return opened(s, unix.AT_FDCWD, a[0], unix.O_RDONLY)
	},
	// bad: an open whose path is not readable.
	"bad": func(_ *jailtest.Stage, _ []string) jailtest.Outcome {
		_, _, errno := unix.Syscall6(unix.SYS_OPENAT, 0, 8, 0, 0, 0, 0)
		return jailtest.Outcome{Errno: errno}
	},
	// child: a path that another process reads.
	"child": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		self, err := os.Readlink("/proc/self/exe")
		if err != nil {
			s.Failf("finding this program: %v", err)
		}
		cmd := exec.Command(self, "open", "read", a[0])
		cmd.Env = append(os.Environ(), jailtest.Environment("files")...)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"name":"EACCES"`) {
			s.Failf("the child: %v\n%s", err, out)
		}
		return jailtest.Outcome{Errno: unix.EACCES}
	},
}

// observedCase is one operation; want is nil when nothing is to be told.
type observedCase struct {
	name string
	op   []string
	want *supervise.Refusal
	// errno is what the kernel answers: the same without observation.
	errno unix.Errno
}

const all = forecast.UseRead | forecast.UseWrite

func refusals(g *ground) []observedCase {
	says := func(call string, op supervise.Operation, path, grant string, uses forecast.Use) *supervise.Refusal {
		return &supervise.Refusal{Call: call, Operation: op, Path: g.at(path), Grant: g.at(grant), Uses: uses}
	}
	asked := func(r *supervise.Refusal, as string) *supervise.Refusal {
		r.Asked = as
		return r
	}
	outside := g.at("outside/file")
	return []observedCase{
		{"read", []string{"open", "read", outside}, says("openat", supervise.Reading, "outside/file", "outside/file", forecast.UseRead), unix.EACCES},
		{"list", []string{"open", "list", g.at("outside/folder")}, says("openat", supervise.Listing, "outside/folder", "outside/folder", forecast.UseList), unix.EACCES},
		{"write", []string{"open", "write", g.at("read/file")}, says("openat", supervise.Writing, "read/file", "read/file", forecast.UseWrite), unix.EACCES},
		{"read and write", []string{"open", "both", outside}, says("openat", supervise.Writing, "outside/file", "outside/file", all), unix.EACCES},
		{"overwrite", []string{"open", "over", g.at("read/file")}, says("openat", supervise.Writing, "read/file", "read/file", forecast.UseWrite|forecast.UseTruncate), unix.EACCES},
		{"cut while reading", []string{"open", "cut", g.at("read/file")}, says("openat", supervise.Reading, "read/file", "read/file", forecast.UseTruncate), unix.EACCES},
		{"make", []string{"open", "make", g.at("read/new")}, says("openat", supervise.Creating, "read/new", "read", forecast.UseMakeFile|forecast.UseWrite), unix.EACCES},
		{"make, new", []string{"open", "make new", g.at("outside/new")}, says("openat", supervise.Creating, "outside/new", "outside", forecast.UseMakeFile|forecast.UseWrite), unix.EACCES},
		{"make over a link", []string{"open", "make", g.at("write/dangling")}, asked(says("openat", supervise.Creating, "outside/nothing", "outside", forecast.UseMakeFile|forecast.UseWrite), g.at("write/dangling")), unix.EACCES},
		{"temporary", []string{"open", "temporary", g.at("outside")}, says("openat", supervise.Creating, "outside", "outside", all), unix.EACCES},
		{"link", []string{"open", "read", g.at("read/link")}, asked(says("openat", supervise.Reading, "outside/file", "outside/file", forecast.UseRead), g.at("read/link")), unix.EACCES},
		{"relative", []string{"open", "read", "outside/file"}, asked(says("openat", supervise.Reading, "outside/file", "outside/file", forecast.UseRead), "outside/file"), unix.EACCES},
		{"by descriptor", []string{"below", g.at("outside"), "folder/../file"}, asked(says("openat", supervise.Reading, "outside/file", "outside/file", forecast.UseRead), "folder/../file"), unix.EACCES},
		{"after chdir", []string{"from", g.at("outside/folder"), "file"}, asked(says("openat", supervise.Reading, "outside/folder/file", "outside/folder/file", forecast.UseRead), "file"), unix.EACCES},
		{"child", []string{"child", outside}, says("openat", supervise.Reading, "outside/file", "outside/file", forecast.UseRead), unix.EACCES},
		{"mkdir", []string{"mkdir", g.at("outside/new")}, says("mkdirat", supervise.Creating, "outside/new", "outside", forecast.UseMakeFolder), unix.EACCES},
		{"rmdir", []string{"rmdir", g.at("outside/folder")}, says("unlinkat", supervise.Removing, "outside/folder", "outside", forecast.UseRemoveFolder), unix.EACCES},
		{"unlink", []string{"unlink", g.at("read/file")}, says("unlinkat", supervise.Removing, "read/file", "read", forecast.UseRemoveFile), unix.EACCES},
		{"symlink", []string{"symlink", g.at("outside/new")}, says("symlinkat", supervise.Creating, "outside/new", "outside", forecast.UseMakeLink), unix.EACCES},
		{"fifo", []string{"fifo", g.at("write/new")}, says("mknodat", supervise.Creating, "write/new", "write", forecast.UseMakeFifo), unix.EACCES},
		{"rename out", []string{"rename", g.at("write/file"), g.at("outside/new")}, says("renameat", supervise.Creating, "outside/new", "outside", forecast.UseMakeFile|forecast.UseRefer), unix.EACCES},
		{"rename away", []string{"rename", g.at("read/file"), g.at("write/new")}, says("renameat", supervise.Moving, "read/file", "read", forecast.UseRemoveFile|forecast.UseRefer), unix.EACCES},
		{"rename within", []string{"rename", g.at("read/file"), g.at("read/new")}, says("renameat", supervise.Creating, "read/new", "read", forecast.UseMakeFile|forecast.UseRemoveFile), unix.EACCES},
		{"exchange", []string{"exchange", g.at("write/file"), g.at("read/file")}, says("renameat2", supervise.Creating, "read/file", "read", forecast.UseMakeFile|forecast.UseRemoveFile|forecast.UseRefer), unix.EACCES},
		{"hard link in", []string{"link", g.at("read/file"), g.at("write/new")}, says("linkat", supervise.Linking, "read/file", "read", forecast.UseRefer), unix.EXDEV},
		{"truncate", []string{"truncate", g.at("read/file")}, says("truncate", supervise.Truncating, "read/file", "read/file", forecast.UseTruncate), unix.EACCES},
		{"execute", []string{"execute", g.at("outside/prog")}, says("execve", supervise.Executing, "outside/prog", "outside/prog", forecast.UseRead|forecast.UseExecute), unix.EACCES},
		{"execute what is readable", []string{"execute", g.at("read/prog")}, says("execve", supervise.Executing, "read/prog", "read/prog", forecast.UseExecute), unix.EACCES},
	}
}

// silences are what nobody is told of: what works, what is not there, and what fails for
// other reasons than the jail.
func silences(g *ground) []observedCase {
	return []observedCase{
		{name: "read", op: []string{"open", "read", g.at("read/file")}},
		{name: "list", op: []string{"open", "list", g.at("read/folder")}},
		{name: "write", op: []string{"open", "over", g.at("write/file")}},
		{name: "make", op: []string{"open", "make new", g.at("write/new")}},
		{name: "temporary", op: []string{"open", "temporary", g.at("write")}},
		{name: "name only", op: []string{"open", "path", g.at("outside/file")}},
		{name: "missing", op: []string{"open", "read", g.at("outside/missing")}, errno: unix.ENOENT},
		{name: "missing folder", op: []string{"open", "make", g.at("outside/missing/new")}, errno: unix.ENOENT},
		{name: "a file as a folder", op: []string{"open", "read", g.at("outside/file/x")}, errno: unix.ENOTDIR},
		{name: "list a file", op: []string{"open", "list", g.at("outside/file")}, errno: unix.ENOTDIR},
		{name: "write a folder", op: []string{"open", "write", g.at("outside/folder")}, errno: unix.EISDIR},
		{name: "link, not followed", op: []string{"open", "no link", g.at("read/link")}, errno: unix.ELOOP},
		{name: "make what is there", op: []string{"open", "make new", g.at("outside/file")}, errno: unix.EEXIST},
		{name: "bad address", op: []string{"bad"}, errno: unix.EFAULT},
		{name: "mkdir", op: []string{"mkdir", g.at("write/made")}},
		{name: "mkdir of what is there", op: []string{"mkdir", g.at("outside/folder")}, errno: unix.EEXIST},
		{name: "rmdir of a file", op: []string{"rmdir", g.at("write/file")}, errno: unix.ENOTDIR},
		{name: "unlink of what is not there", op: []string{"unlink", g.at("outside/missing")}, errno: unix.ENOENT},
		{name: "unlink", op: []string{"unlink", g.at("also/link")}},
		{name: "symlink", op: []string{"symlink", g.at("write/made link")}},
		{name: "rename", op: []string{"rename", g.at("write/folder/file"), g.at("also/moved")}},
		{name: "rename of what is not there", op: []string{"rename", g.at("outside/missing"), g.at("write/x")}, errno: unix.ENOENT},
		{name: "link", op: []string{"link", g.at("write/file"), g.at("also/linked")}},
		{name: "truncate", op: []string{"truncate", g.at("also/file")}},
		{name: "execute a folder", op: []string{"execute", g.at("outside/folder")}, errno: unix.EACCES},
		{name: "own folder of proc", op: []string{"open", "read", "/proc/self/nothing"}, errno: unix.ENOENT},
	}
}

// TestObservedFiles: each call gets the same answer with and without observation, and a
// refused one is told with what, where and what is missing.
func TestObservedFiles(t *testing.T) {
	needTruncation(t)
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		for _, c := range refusals(g) {
			t.Run(c.name, func(t *testing.T) {
				jailtest.WantErrno(t, g.run(t, seccomp.Unobserved, c.op...), c.errno)
				r := g.run(t, seccomp.Observed, c.op...)
				jailtest.WantErrno(t, r, c.errno)
				g.wantTold(t, r, *c.want)
			})
		}
	})
}

func TestObservedSilence(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		plain, g := newGround(t, user), newGround(t, user)
		same := silences(plain)
		for i, c := range silences(g) {
			t.Run(c.name, func(t *testing.T) {
				for _, r := range []jailtest.Result{plain.run(t, seccomp.Unobserved, same[i].op...), g.run(t, seccomp.Observed, c.op...)} {
					if c.errno == 0 {
						jailtest.WantOK(t, r)
					} else {
						jailtest.WantErrno(t, r, c.errno)
					}
					if told := g.told(t, r); len(told) != 0 {
						t.Errorf("told %+v", told)
					}
				}
			})
		}
	})
}

// wantTold asserts that exactly one refusal was told.
func (g *ground) wantTold(t *testing.T, r jailtest.Result, want supervise.Refusal) {
	t.Helper()
	told := g.told(t, r)
	if len(told) != 1 {
		t.Fatalf("got %d refusals, want 1: %+v\n%s", len(told), told, r)
	}
	got := told[0]
	if got.Time.IsZero() || got.PID <= 1 || got.Program != "victim" {
		t.Errorf("it does not say who and when: %+v", got)
	}
	got.Time, got.PID, got.Program = want.Time, want.PID, want.Program
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestObservedSockets: the filter's own answers stay, and are told.
func TestObservedSockets(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		for _, c := range []struct {
			family, kind int
			errno        unix.Errno
		}{
			{unix.AF_INET, unix.SOCK_STREAM, unix.EAFNOSUPPORT},
			{unix.AF_INET6, unix.SOCK_DGRAM, unix.EAFNOSUPPORT},
			{unix.AF_UNIX, unix.SOCK_STREAM, unix.EACCES},
			{unix.AF_NETLINK, unix.SOCK_RAW, unix.EAFNOSUPPORT},
			{unix.AF_PACKET, unix.SOCK_RAW, unix.EAFNOSUPPORT},
		} {
			r := g.run(t, seccomp.Observed, "socket", strconv.Itoa(c.family), strconv.Itoa(c.kind))
			jailtest.WantErrno(t, r, c.errno)
			g.wantTold(t, r, supervise.Refusal{Call: "socket", Operation: supervise.MakingSocket, Family: c.family, Errno: c.errno})
		}
		g.plan.Filter.Sockets, g.plan.Network.Egress = seccomp.InternetSockets, sandbox.EgressAll
		r := g.run(t, seccomp.Observed, "socket", strconv.Itoa(unix.AF_INET), strconv.Itoa(unix.SOCK_STREAM))
		jailtest.WantOK(t, r)
		if told := g.told(t, r); len(told) != 0 {
			t.Errorf("told %+v", told)
		}
	})
}

func TestObservedThreads(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		r := g.run(t, seccomp.Observed, "threads", g.at("outside/file"))
		if r.Outcome.Value != 16 || r.Outcome.Errno != unix.EACCES || !r.Finished {
			t.Errorf("not every thread was refused: %s", r)
		}
		if told := g.told(t, r); len(told) != 16 {
			t.Errorf("told of %d, want 16", len(told))
		}
	})
}

// TestObservedFlood: a server that is refused without end goes on, and so does its observer.
func TestObservedFlood(t *testing.T) {
	const times = 5000
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		r := g.run(t, seccomp.Observed, "many", strconv.Itoa(times), g.at("outside/file"))
		jailtest.WantErrno(t, r, unix.EACCES)
		if told := g.told(t, r); len(told) != times {
			t.Errorf("told of %d, want %d", len(told), times)
		}
	})
}

// TestUninspectable: a process that forbids inspection is not told of and not held up.
func TestUninspectable(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		r := g.run(t, seccomp.Observed, "closed", g.at("outside/file"))
		jailtest.WantErrno(t, r, unix.EACCES)
		if told := g.told(t, r); len(told) != 0 {
			t.Errorf("told %+v", told)
		}
		if !strings.Contains(r.Stderr, "unseen\n") {
			t.Errorf("nobody was told that a call was not seen: %s", r)
		}
	})
}

// TestObservedInterpreter: a script that may be executed, and its interpreter not.
func TestObservedInterpreter(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		script := g.at("read/script")
		if err := os.WriteFile(script, []byte("#! "+g.at("outside/prog")+" -x\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		jailtest.Own(t, user, script)
		g.plan.Grants = append(g.plan.Grants, sandbox.Grant{Path: script, Access: sandbox.Execute, Origin: sandbox.Origin{Source: "test"}})
		r := g.run(t, seccomp.Observed, "execute", script)
		jailtest.WantErrno(t, r, unix.EACCES)
		g.wantTold(t, r, supervise.Refusal{
			Call: "execve", Operation: supervise.Executing, Path: g.at("outside/prog"), Grant: g.at("outside/prog"),
			Uses: forecast.UseRead | forecast.UseExecute,
		})
	})
}

// TestUnanswered: a plan under observation does not start where nobody would answer.
func TestUnanswered(t *testing.T) {
	g := newGround(t, jailtest.Users(t)[0])
	g.plan.Filter.Observation = seccomp.Observed
	for name, start := range map[string]func(*sandbox.Opened) error{
		"enter": func(o *sandbox.Opened) error {
			_, err := sandbox.Enter(o)
			return err
		},
		"start": func(o *sandbox.Opened) error {
			_, err := sandbox.Start(o, sandbox.Parent{})
			return err
		},
	} {
		opened, err := sandbox.Open(g.plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := start(opened); err == nil || !strings.Contains(err.Error(), "answer") {
			t.Errorf("%s: %v", name, err)
		}
		opened.Close()
	}
}

// TestObservedObjects: rules hold objects and not names, and so does the forecast.
func TestObservedObjects(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		g := newGround(t, user)
		g.plan.Grants = append(g.plan.Grants, sandbox.Grant{Path: g.at("outside/file"), Access: sandbox.Read, Origin: sandbox.Origin{Source: "test"}})
		// A granted file has its rights under every name.
		if err := os.Link(g.at("outside/file"), g.at("outside/other name")); err != nil {
			t.Fatal(err)
		}
		r := g.run(t, seccomp.Observed, "open", "read", g.at("outside/other name"))
		jailtest.WantOK(t, r)
		if told := g.told(t, r); len(told) != 0 {
			t.Errorf("told %+v", told)
		}
	})
}

// needTruncation asks for Landlock's right to truncate (ABI 3).
func needTruncation(t *testing.T) {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "LANDLOCK_ACCESS_FS_TRUNCATE", Since: "6.2", Check: func() error {
		abi, err := sandbox.LandlockABI()
		if err == nil && abi < 3 {
			return syscall.ENOSYS
		}
		return err
	}})
}
