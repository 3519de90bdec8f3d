//go:build vm

package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// These tests need a control group that is delegated to whoever runs them, which few
// machines have; .ci/vm makes one in a virtual machine and runs them there, as root and as
// an ordinary user. What the limits hold is seen in the victim's end and in the kernel's
// own count of what it refused.

const (
	memoryLimit  = 64 << 20 // bytes
	memoryWithin = 16 << 20
	memoryBeyond = 256 << 20
	// taskLimit counts threads, as the kernel does: a Go program has up to a dozen.
	taskLimit   = 64
	tasksWithin = 8
	tasksBeyond = 80
)

func init() { //nolint:gochecknoinits // the table belongs to a file that is built without this one, too
	operations["allocate"] = allocate
	operations["spawn"] = spawn
}

// limitCases is every limit with what breaks it and what keeps to it.
var limitCases = []struct {
	name           string
	limits         sandbox.Limits
	beyond, within []string
	refused        func(t testing.TB, r jailtest.Result)
	file, event    string // where the kernel counts that it refused
}{
	{
		name: "memory", limits: sandbox.Limits{Memory: memoryLimit},
		beyond:  []string{"allocate", decimal(memoryBeyond)},
		within:  []string{"allocate", decimal(memoryWithin)},
		refused: func(t testing.TB, r jailtest.Result) { t.Helper(); jailtest.WantSignal(t, r, unix.SIGKILL) },
		file:    "memory.events", event: "oom_kill",
	},
	{
		// Each process stays below the limit, all of them together do not.
		name: "memory of all processes", limits: sandbox.Limits{Memory: memoryLimit},
		beyond: []string{"spawn", "4", decimal(24 << 20)},
		within: []string{"spawn", "2", decimal(8 << 20)},
		refused: func(t testing.TB, r jailtest.Result) {
			t.Helper()
			jailtest.WantOK(t, r)
			if r.Outcome.Value >= 4 {
				t.Errorf("all 4 processes live with 24 MiB each\n%s", r)
			}
		},
		file: "memory.events", event: "oom_kill",
	},
	{
		name: "processes", limits: sandbox.Limits{Processes: taskLimit},
		beyond:  []string{"spawn", decimal(tasksBeyond), "0"},
		within:  []string{"spawn", decimal(tasksWithin), "0"},
		refused: func(t testing.TB, r jailtest.Result) { t.Helper(); jailtest.WantErrno(t, r, unix.EAGAIN) },
		file:    "pids.events", event: "max",
	},
	{
		name: "processes of a descendant", limits: sandbox.Limits{Processes: taskLimit, Memory: memoryLimit},
		beyond:  []string{"grandchild", "1", "spawn", decimal(tasksBeyond), "0"},
		within:  []string{"grandchild", "1", "spawn", decimal(tasksWithin), "0"},
		refused: func(t testing.TB, r jailtest.Result) { t.Helper(); jailtest.WantErrno(t, r, unix.EAGAIN) },
		file:    "pids.events", event: "max",
	},
}

func TestGroupLimitsInKernel(t *testing.T) {
	own := ownGroup(t)
	for _, tt := range limitCases {
		for _, l := range launchers(t) {
			t.Run(tt.name+"/"+l.victim, func(t *testing.T) {
				g := newGround(t, l)
				fitKernel(t, &g.plan)
				g.plan.Limits = tt.limits

				tt.refused(t, g.jailed(t, tt.beyond...))
				group := lastGroup(t, own)
				wantLimits(t, group, tt.limits)
				if n := eventCount(t, group, tt.file, tt.event); n == 0 {
					t.Errorf("%s of %s counts no %s: something else refused", tt.file, group, tt.event)
				}

				jailtest.WantOK(t, g.jailed(t, tt.within...))
				group = lastGroup(t, own)
				wantLimits(t, group, tt.limits)
				if n := eventCount(t, group, tt.file, tt.event); n != 0 {
					t.Errorf("%s counts %d times %s for what is allowed", tt.file, n, tt.event)
				}

				jailtest.WantOK(t, g.outside(t, tt.beyond...))
			})
		}
	}
}

// launchers are the ways to start a server as this process's own user, who is the one that
// the group is delegated to.
func launchers(t *testing.T) []launcher {
	t.Helper()
	user := jailtest.Users(t)[0]
	return []launcher{{user, "jail"}, {user, "start"}}
}

// TestGroupCannotBeLeft: the files that move a process to another group, or make one, are
// the user's own outside the jail.
func TestGroupCannotBeLeft(t *testing.T) {
	own := ownGroup(t)
	made := filepath.Join(filepath.Dir(own), "made")
	t.Cleanup(func() {
		if err := os.Remove(made); err != nil {
			t.Errorf("removing the group that was made outside: %v", err)
		}
	})
	g := newGround(t, launchers(t)[0])
	fitKernel(t, &g.plan)
	g.plan.Limits = sandbox.Limits{Memory: memoryLimit, Processes: taskLimit}
	for _, op := range [][]string{
		{"write", filepath.Join(own, "cgroup.procs")},
		{"write", filepath.Join(filepath.Dir(own), "cgroup.procs")},
		{"write", filepath.Join(filepath.Dir(own), "cgroup.subtree_control")},
		{"mkdir", made},
	} {
		jailtest.WantErrno(t, g.jailed(t, op...), unix.EACCES)
		lastGroup(t, own)
		jailtest.WantOK(t, g.outside(t, op...))
	}
	jailtest.WantOK(t, g.jailed(t, "write", g.at("write/in.txt")))
	lastGroup(t, own)
}

// TestGroupOfSomebodyElse: where the folder is not this user's, the limits are an error,
// not a start without them.
func TestGroupOfSomebodyElse(t *testing.T) {
	users := jailtest.Users(t)
	if len(users) == 1 {
		return // only root can be two users
	}
	g := newGround(t, launcher{users[1], "jail"})
	fitKernel(t, &g.plan)
	g.plan.Limits = sandbox.Limits{Memory: memoryLimit}
	r := g.jailed(t, "allocate", decimal(memoryWithin))
	jailtest.WantStatus(t, r, setupFailed)
	if !contains(r.Stderr, "that this user may write") {
		t.Errorf("another reason: %s", r)
	}
	g.plan.Limits = sandbox.Limits{}
	jailtest.WantOK(t, g.jailed(t, "allocate", decimal(memoryWithin)))
}

// launchFailed is the exit status of stockade when it stops before the server starts.
const launchFailed = 125

// TestRunKeepsGroupLimits is the same through the command, with a profile file: the host
// sees the server's own end, with a supervisor as a status.
func TestRunKeepsGroupLimits(t *testing.T) {
	tests := []struct {
		name, network string
		killed        ending
	}{
		{"in place", "none", ending{status: -1, signal: unix.SIGKILL, began: true}},
		{"supervised", `["192.0.2.1:443"]`, ending{status: 128 + int(unix.SIGKILL), began: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			own := ownGroup(t)
			l := newCommand(t, tt.network)

			killed := l.run(t, waived(t), "allocate", decimal(memoryBeyond))
			if killed.status != tt.killed.status || killed.signal != tt.killed.signal || !killed.began || killed.finish != "" {
				t.Errorf("memory beyond the limit: %+v", killed)
			}
			group := lastGroup(t, own)
			wantLimits(t, group, sandbox.Limits{Memory: memoryLimit, Processes: taskLimit})
			if eventCount(t, group, "memory.events", "oom_kill") == 0 {
				t.Error("the group's limit killed nothing")
			}
			refused := l.run(t, waived(t), "spawn", decimal(tasksBeyond), "0")
			if refused.status != 0 || !contains(refused.finish, `"name":"EAGAIN"`) {
				t.Errorf("processes beyond the limit: %+v", refused)
			}
			if eventCount(t, lastGroup(t, own), "pids.events", "max") == 0 {
				t.Error("the group's limit refused no process")
			}
			for _, op := range [][]string{{"allocate", decimal(memoryWithin)}, {"spawn", decimal(tasksWithin), "0"}} {
				if r := l.run(t, waived(t), op...); r.status != 0 || !contains(r.finish, `"errno":0`) {
					t.Errorf("%v is within the limits: %+v", op, r)
				}
				lastGroup(t, own)
			}
		})
	}
}

// TestRunNeedsTheWaiver: a kernel that lacks a layer starts nothing before the profile
// agrees to it, and says what would have to be written.
func TestRunNeedsTheWaiver(t *testing.T) {
	l := newCommand(t, "none")
	r := l.run(t, nil, "allocate", decimal(memoryWithin))
	if len(waived(t)) == 0 {
		if r.status != 0 || r.stderr != "" || !contains(r.finish, `"errno":0`) {
			t.Errorf("this kernel lacks nothing: %+v", r)
		}
		return
	}
	if r.status != launchFailed || r.began || !contains(r.stderr, "missing: {allow: [scope-signals]}") {
		t.Errorf("without the waiver: %+v", r)
	}
	r = l.run(t, waived(t), "allocate", decimal(memoryWithin))
	if r.status != 0 || !contains(r.finish, `"errno":0`) || !contains(r.stderr, "stockade: warning: ") || !contains(r.stderr, "scope-signals") {
		t.Errorf("with the waiver: %+v", r)
	}
}

// command is a stockade command line with a profile, and this test binary as the server.
type command struct {
	stockade, server, dir string
	profile               string // without its section missing
}

// ending is how a started server came to its end.
type ending struct {
	status int // -1 when a signal ended it
	signal syscall.Signal
	began  bool
	finish string // the report behind the finish marker; "" without one
	stderr string
}

func newCommand(t *testing.T, egress string) command {
	t.Helper()
	stockade := os.Getenv("STOCKADE_BIN")
	if stockade == "" {
		t.Fatal("STOCKADE_BIN names no binary")
	}
	name, value, _ := strings.Cut(jailtest.Environment("op")[0], "=")
	return command{
		stockade: stockade, server: jailtest.Binary(t), dir: jailtest.Dir(t, jailtest.Users(t)[0]),
		profile: fmt.Sprintf("version: 1\nname: limited\nnetwork: {egress: %s}\nenvironment: {set: {%s: %s}}\nlimits: {memory: %d, processes: %d}\n",
			egress, name, value, memoryLimit, taskLimit),
	}
}

func (c command) run(t *testing.T, missing []sandbox.Layer, op ...string) ending {
	t.Helper()
	profile := c.profile
	for _, layer := range missing {
		profile += fmt.Sprintf("missing: {allow: [%s]}\n", layer)
	}
	file := filepath.Join(c.dir, "limited.yaml")
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), c.stockade, append([]string{"run", "--profile", file, "--", c.server}, op...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + c.dir}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("starting %s: %v", c.stockade, err)
	}
	e := ending{status: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	e.began = contains(stdout.String(), "jailtest: start\n")
	_, e.finish, _ = strings.Cut(stdout.String(), "jailtest: finish ")
	return e
}

// waived lists what the running kernel lacks and every plan needs.
func waived(t *testing.T) []sandbox.Layer {
	t.Helper()
	abi, err := sandbox.LandlockABI()
	if err != nil {
		t.Fatal(err)
	}
	if abi < 6 {
		return []sandbox.Layer{sandbox.LayerScopeSignals}
	}
	return nil
}

// fitKernel does what profiles.Compile does to a plan for an older kernel.
func fitKernel(t *testing.T, p *sandbox.Plan) {
	t.Helper()
	p.Missing = waived(t)
	abi, err := sandbox.LandlockABI()
	if err != nil {
		t.Fatal(err)
	}
	if abi < 3 {
		p.Filter.Truncation = seccomp.TruncationByFilter
	}
}

// ownGroup is the folder of this process's group; its parent is the delegated one.
func ownGroup(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, "/proc/self/cgroup"))) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			return filepath.Join("/sys/fs/cgroup", path)
		}
	}
	t.Fatal("no cgroup v2 hierarchy")
	return ""
}

// lastGroup is the group of the newest jail, which has ended: each start removes the empty
// ones before it.
func lastGroup(t *testing.T, own string) string {
	t.Helper()
	groups, err := filepath.Glob(filepath.Join(filepath.Dir(own), "stockade-*"))
	if err != nil || len(groups) != 1 {
		t.Fatalf("want the last jail's group alone, found %q: %v", groups, err)
	}
	awaitEmpty(t, groups[0])
	t.Cleanup(func() {
		if err := os.Remove(groups[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("removing the group of a jail that ended: %v", err)
		}
	})
	return groups[0]
}

// emptyTimeout bounds a broken test, in milliseconds.
const emptyTimeout = 30_000

// awaitEmpty waits until nothing of a jail is left: a process that was waited for can be in
// its group for a moment longer, and one that was killed with its parent, too. The kernel
// tells of a change by POLLPRI (cgroup-v2.rst, cgroup.events).
func awaitEmpty(t *testing.T, group string) {
	t.Helper()
	f, err := os.Open(filepath.Join(group, "cgroup.events"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, 256)
	for {
		n, err := f.ReadAt(text, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if contains(string(text[:n]), "populated 0\n") {
			return
		}
		changed, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, emptyTimeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		if err == nil && changed == 0 {
			t.Fatalf("processes are left in %s", group)
		}
	}
}

func wantLimits(t *testing.T, group string, l sandbox.Limits) {
	t.Helper()
	for name, value := range map[string]uint64{"memory.max": l.Memory, "pids.max": l.Processes} {
		want := "max"
		if value > 0 {
			want = strconv.FormatUint(value, 10)
		}
		if got := strings.TrimSpace(string(readFile(t, filepath.Join(group, name)))); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// eventCount reads one count of a file of lines "name count" (cgroup-v2.rst, flat keyed).
func eventCount(t *testing.T, group, file, event string) int {
	t.Helper()
	words := strings.Fields(string(readFile(t, filepath.Join(group, file))))
	at := slices.Index(words, event)
	if at < 0 || at+1 == len(words) {
		t.Fatalf("%s has no %s", file, event)
	}
	n, err := strconv.Atoi(words[at+1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// allocate takes a number of bytes and touches every page.
func allocate(s *jailtest.Stage, a []string) jailtest.Outcome {
	memory, err := unix.Mmap(-1, 0, number(s, a[0]), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return jailtest.OutcomeOf(s, err)
	}
	touch(memory)
	return jailtest.Outcome{Value: int64(len(memory))}
}

// spawn makes a number of processes one after the other that touch a number of bytes each
// and stay. Value counts those that live in the end, the errno is that of the first that
// could not be made.
func spawn(s *jailtest.Stage, a []string) jailtest.Outcome {
	memory := make([]byte, 0)
	if size := number(s, a[1]); size > 0 {
		mapped, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			s.Failf("mapping memory: %v", err)
		}
		memory = mapped
	}
	keepSpareThreads()
	var o jailtest.Outcome
	pids := make([]int, 0, number(s, a[0]))
	for range number(s, a[0]) {
		var ready [2]int
		if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
			s.Failf("making a pipe: %v", err)
		}
		pid, errno := forkAndStay(memory, ready[1])
		unix.Close(ready[1])
		if errno != 0 {
			o.Errno = errno
			break
		}
		pids = append(pids, pid)
		// A byte when it has touched all of it, the end of the pipe when it died before.
		if _, err := readByte(ready[0]); err != nil {
			s.Failf("waiting for a process: %v", err)
		}
		unix.Close(ready[0])
	}
	for _, pid := range pids {
		if dead, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && dead == 0 {
			o.Value++
			end(s, pid)
		}
	}
	return o
}

// keepSpareThreads makes Go start threads, which it keeps: at the limit it would end the
// process when it wanted another one ("runtime/cgo: pthread_create failed").
func keepSpareThreads() {
	const spare = 8
	var all, done sync.WaitGroup
	all.Add(spare)
	for range spare {
		done.Go(func() {
			runtime.LockOSThread() // one each, until all have theirs
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}

func readByte(fd int) (int, error) {
	for {
		n, err := unix.Read(fd, make([]byte, 1))
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func end(s *jailtest.Stage, pid int) {
	err := unix.Kill(pid, unix.SIGKILL)
	for errors.Is(err, nil) || errors.Is(err, unix.EINTR) {
		var dead int
		if dead, err = unix.Wait4(pid, nil, 0, nil); dead == pid {
			return
		}
	}
	s.Failf("ending a process: %v", err)
}

// readyByte is what a copy writes.
var readyByte byte

// forkAndStay copies this process. The copy has one thread and a Go runtime that must not
// be entered again: it makes raw calls only, and dies with the thread that made it.
//
//go:norace
//go:nosplit
//go:noinline
func forkAndStay(memory []byte, ready int) (int, syscall.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	touch(memory)
	unix.RawSyscall(unix.SYS_WRITE, uintptr(ready), uintptr(unsafe.Pointer(&readyByte)), 1)
	for {
		unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// touch writes to every page; pages are 4096 bytes or a multiple of it.
//
//go:norace
//go:nosplit
func touch(memory []byte) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}
