package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
)

func TestMain(m *testing.M) {
	jailtest.Main(m, jailtest.Victims{"jail": enterAndExec, "start": startAndWait, "op": operate, "lying to jail": lyingToEnter, "lying to start": lyingToStart})
}

// enterAndExec is the launcher's part: it enters the plan in args[0] and executes this
// binary as the victim "op" with the other arguments, in the jail.
func enterAndExec(s *jailtest.Stage, args []string) jailtest.Outcome {
	o := openedPlan(s, args)
	if _, err := sandbox.Enter(o); err != nil {
		s.Failf("entering: %v", err)
	}
	s.Failf("executing: %v", sandbox.Exec(o))
	return jailtest.Outcome{}
}

// startAndWait is the same with this process as the server's parent. It ends as the
// server did.
func startAndWait(s *jailtest.Stage, args []string) jailtest.Outcome {
	o := openedPlan(s, args)
	started, err := sandbox.Start(o, sandbox.Parent{})
	if err != nil {
		s.Failf("starting: %v", err)
	}
	var status unix.WaitStatus
	for {
		_, err = unix.Wait4(started.PID, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		s.Failf("waiting: %v", err)
	}
	if status.Signaled() {
		signal.Reset(status.Signal())
		if err := unix.Kill(os.Getpid(), status.Signal()); err != nil {
			s.Failf("ending by %v: %v", status.Signal(), err)
		}
		select {} // until it arrives
	}
	os.Exit(status.ExitStatus())
	return jailtest.Outcome{}
}

// openedPlan reads the plan in args[0] and makes this binary, as the victim "op" with the
// other arguments, its server.
func openedPlan(s *jailtest.Stage, args []string) *sandbox.Opened {
	var p sandbox.Plan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		s.Failf("reading the plan: %v", err)
	}
	p.Argv = append([]string{p.File}, args[1:]...)
	p.Env = append(p.Env, jailtest.Environment("op")...)
	// What a careless host leaves open: a file outside every grant, on a high number.
	if fd, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0); err == nil {
		if err := unix.Dup2(fd, leakedDescriptor); err != nil {
			s.Failf("leaving a descriptor open: %v", err)
		}
	}
	o, err := sandbox.Open(p)
	if err != nil {
		s.Failf("opening: %v", err)
	}
	return o
}

const leakedDescriptor = 200

// operate does one operation and reports it. In the jail it is the server.
func operate(s *jailtest.Stage, args []string) jailtest.Outcome {
	op, known := operations[args[0]]
	if !known {
		s.Failf("no operation is called %q", args[0])
	}
	s.Begin()
	return op(s, args[1:])
}

var operations = map[string]func(*jailtest.Stage, []string) jailtest.Outcome{
	"read": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		data, err := os.ReadFile(a[0])
		o := jailtest.OutcomeOf(s, err)
		o.Value = int64(len(data))
		return o
	},
	"list": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		entries, err := os.ReadDir(a[0])
		o := jailtest.OutcomeOf(s, err)
		o.Value = int64(len(entries))
		return o
	},
	"create": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		f, err := os.OpenFile(a[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err == nil {
			err = f.Close()
		}
		return jailtest.OutcomeOf(s, err)
	},
	"write":  func(s *jailtest.Stage, a []string) jailtest.Outcome { return reopen(s, a[0], os.O_WRONLY) },
	"append": func(s *jailtest.Stage, a []string) jailtest.Outcome { return reopen(s, a[0], os.O_WRONLY|os.O_APPEND) },
	"truncate": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Truncate(a[0], 0))
	},
	"cut": func(s *jailtest.Stage, a []string) jailtest.Outcome { return reopen(s, a[0], os.O_RDONLY|os.O_TRUNC) },
	"mkdir": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Mkdir(a[0], 0o700))
	},
	"rmdir":  func(s *jailtest.Stage, a []string) jailtest.Outcome { return jailtest.OutcomeOf(s, unix.Rmdir(a[0])) },
	"unlink": func(s *jailtest.Stage, a []string) jailtest.Outcome { return jailtest.OutcomeOf(s, unix.Unlink(a[0])) },
	"rename": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Rename(a[0], a[1]))
	},
	"link": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Link(a[0], a[1]))
	},
	"symlink": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Symlink(a[0], a[1]))
	},
	"mkfifo": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Mkfifo(a[0], 0o600))
	},
	"mknod": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Mknod(a[0], unix.S_IFCHR|0o600, 0))
	},
	"fchmod": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		defer unix.Close(fd)
		return jailtest.OutcomeOf(s, unix.Fchmod(fd, uint32(number(s, a[1]))))
	},
	"make": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, uint32(number(s, a[1])))
		if err == nil {
			err = unix.Close(fd)
		}
		return jailtest.OutcomeOf(s, err)
	},
	// Access mode 3 asks for neither reading nor writing (open(2), "Linux reserves").
	"open3": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		fd, err := unix.Open(a[0], unix.O_ACCMODE|unix.O_CLOEXEC, 0)
		if err != nil {
			return jailtest.OutcomeOf(s, err)
		}
		defer unix.Close(fd)
		return jailtest.OutcomeOf(s, unix.Fchmod(fd, 0o640))
	},
	// A null path with AT_FDCWD is the working folder (Linux 6.13).
	"setxattr-here": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		if err := unix.Chdir(a[0]); err != nil {
			s.Failf("changing the folder: %v", err)
		}
		name := append([]byte("user.stockade"), 0)
		value := []byte("x")
		args := struct{ value, size uint64 }{uint64(uintptr(unsafe.Pointer(&value[0]))), 1}
		here := unix.AT_FDCWD
		_, _, errno := unix.Syscall6(unix.SYS_SETXATTRAT, uintptr(here), 0, unix.AT_EMPTY_PATH,
			uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
		return jailtest.Outcome{Errno: errno}
	},
	"exec": execute,
	"stat": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		_, err := os.Stat(a[0])
		return jailtest.OutcomeOf(s, err)
	},
	"kill": func(s *jailtest.Stage, a []string) jailtest.Outcome {
		return jailtest.OutcomeOf(s, unix.Kill(number(s, a[0]), 0))
	},
	"env":        environment,
	"fds":        descriptors,
	"caps":       capabilities,
	"nnp":        func(s *jailtest.Stage, _ []string) jailtest.Outcome { return prctl(s, unix.PR_GET_NO_NEW_PRIVS) },
	"seccomp":    func(s *jailtest.Stage, _ []string) jailtest.Outcome { return prctl(s, unix.PR_GET_SECCOMP) },
	"securebits": func(s *jailtest.Stage, _ []string) jailtest.Outcome { return prctl(s, unix.PR_GET_SECUREBITS) },
	"limit":      limit,
	"umask": func(*jailtest.Stage, []string) jailtest.Outcome {
		return jailtest.Outcome{Value: int64(unix.Umask(0o077))}
	},
	"sid":     func(s *jailtest.Stage, _ []string) jailtest.Outcome { return session(s) },
	"tty":     func(s *jailtest.Stage, _ []string) jailtest.Outcome { return reopen(s, "/dev/tty", os.O_RDWR) },
	"bind":    bind,
	"threads": everyThread,
}

func init() { operations["grandchild"] = grandchild } //nolint:gochecknoinits // it looks in the table itself

func reopen(s *jailtest.Stage, path string, flags int) jailtest.Outcome {
	f, err := os.OpenFile(path, flags, 0)
	if err == nil {
		err = f.Close()
	}
	return jailtest.OutcomeOf(s, err)
}

// execute starts a program with the rest of the arguments; Value is its exit status.
func execute(s *jailtest.Stage, a []string) jailtest.Outcome {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	defer null.Close()
	p, err := os.StartProcess(a[0], a, &os.ProcAttr{Files: []*os.File{null, null, null}, Env: []string{"LC_ALL=C"}})
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	state, err := p.Wait()
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(state.ExitCode())
	return o
}

func environment(*jailtest.Stage, []string) jailtest.Outcome {
	names := make([]string, 0, 8)
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	return jailtest.Outcome{Note: strings.Join(names, " ")}
}

// descriptors answers EBADF when the number that the launcher left open is closed.
func descriptors(s *jailtest.Stage, _ []string) jailtest.Outcome {
	_, err := unix.FcntlInt(leakedDescriptor, unix.F_GETFD, 0)
	return jailtest.OutcomeOf(s, err)
}

func capabilities(s *jailtest.Stage, _ []string) jailtest.Outcome {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var c [2]unix.CapUserData
	err := unix.Capget(&head, &c[0])
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(c[0].Effective | c[0].Permitted | c[0].Inheritable | c[1].Effective | c[1].Permitted | c[1].Inheritable)
	bounding := 0
	for n := range uintptr(unix.CAP_LAST_CAP + 1) {
		if set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, n, 0, 0, 0); err == nil && set != 0 {
			bounding++
		}
	}
	o.Note = strconv.Itoa(bounding)
	return o
}

func prctl(s *jailtest.Stage, option int) jailtest.Outcome {
	v, err := unix.PrctlRetInt(option, 0, 0, 0, 0)
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(v)
	return o
}

func limit(s *jailtest.Stage, a []string) jailtest.Outcome {
	var l unix.Rlimit
	err := unix.Getrlimit(number(s, a[0]), &l)
	o := jailtest.OutcomeOf(s, err)
	o.Value = int64(l.Max)
	if l.Cur != l.Max {
		o.Note = "soft differs"
	}
	return o
}

func session(s *jailtest.Stage) jailtest.Outcome {
	sid, err := unix.Getsid(0)
	o := jailtest.OutcomeOf(s, err)
	if sid == os.Getpid() {
		o.Note = "own"
	}
	return o
}

func number(s *jailtest.Stage, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.Failf("reading a number: %v", err)
	}
	return n
}

func bind(s *jailtest.Stage, a []string) jailtest.Outcome {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	defer unix.Close(fd)
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: number(s, a[0]), Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	return jailtest.OutcomeOf(s, err)
}

// everyThread reads the file on many threads at once; Value counts those that got through.
func everyThread(_ *jailtest.Stage, a []string) jailtest.Outcome {
	const threads = 16
	results := make(chan error, threads)
	for range threads {
		go func() {
			fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			results <- err
		}()
	}
	var o jailtest.Outcome
	for range threads {
		if err := <-results; err == nil {
			o.Value++
		} else {
			o.Errno = err.(syscall.Errno) //nolint:errorlint,forcetypeassert // unix.Open returns a bare errno
		}
	}
	return o
}

// grandchild runs another operation two processes further down and passes its report on.
func grandchild(s *jailtest.Stage, a []string) jailtest.Outcome {
	if a[0] == "0" {
		return operations[a[1]](s, a[2:])
	}
	depth := number(s, a[0])
	next := append([]string{"grandchild", strconv.Itoa(depth - 1)}, a[1:]...)
	cmd := exec.Command(selfPath(), next...)
	cmd.Env = append(os.Environ(), jailtest.Environment("op")...)
	out, err := cmd.Output()
	if err != nil {
		s.Failf("starting a child: %v", err)
	}
	_, report, found := strings.Cut(string(out), "jailtest: finish ")
	if !found {
		s.Failf("a child did not finish: %s", out)
	}
	var w struct {
		Errno int   `json:"errno"`
		Value int64 `json:"value"`
	}
	if err := json.NewDecoder(strings.NewReader(report)).Decode(&w); err != nil {
		s.Failf("reading a child's report: %v", err)
	}
	return jailtest.Outcome{Errno: syscall.Errno(w.Errno), Value: w.Value}
}

// selfPath is the path that this binary was executed by: the grant names it.
func selfPath() string {
	path, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		return os.Args[0]
	}
	return path
}
