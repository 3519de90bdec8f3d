package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/program"
)

var victims = jailtest.Victims{"argv": victimArgv, "start": victimStart}

// start is what the victim of that name resolves, confines itself to, and executes.
type start struct {
	Argv      []string
	Home, Dir string
	Grant     []string // programs that it may execute too, by Closure
	// Spare leaves out the needs whose path holds this text.
	Spare string
}

// victimStart becomes the resolved program in a Landlock domain that allows nothing but
// what Resolve asked for, and what every jail has: devices and the process's own folder
// under /proc.
func victimStart(s *jailtest.Stage, args []string) jailtest.Outcome {
	var st start
	if err := json.Unmarshal([]byte(args[0]), &st); err != nil {
		s.Failf("decoding: %v", err)
	}
	env := map[string]string{"PATH": os.Getenv("PATH")}
	facts := program.Facts{Home: st.Home, Dir: st.Dir, Env: env}
	p, err := program.Resolve(st.Argv, facts)
	if err != nil {
		s.Failf("resolving: %v", err)
	}
	execute, read := p.Execute, p.Read
	for _, name := range st.Grant {
		e, r, err := program.Closure(name, facts)
		if err != nil {
			s.Failf("resolving %q: %v", name, err)
		}
		execute, read = append(execute, e...), append(read, r...)
	}
	rules := newRuleset(s)
	for _, path := range execute {
		rules.allow(path, unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_READ_FILE)
	}
	for _, n := range read {
		if st.Spare == "" || !strings.Contains(n.Path, st.Spare) {
			rules.allow(n.Path, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_READ_DIR)
		}
	}
	for _, path := range []string{"/dev/null", "/dev/urandom", "/dev/random"} {
		rules.allow(path, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	}
	rules.allow("/proc/self/", unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_READ_DIR)
	rules.enforce()
	if err := os.Chdir(st.Dir); err != nil {
		s.Failf("entering %q: %v", st.Dir, err)
	}
	environ := []string{"PATH=" + strings.Join(p.Path, ":"), "HOME=/nonexistent", "LANG=C.UTF-8"}
	s.Failf("executing %q: %v", p.File, unix.Exec(p.File, p.Argv, environ))
	return jailtest.Outcome{}
}

// ruleset is a Landlock ruleset for this thread, of the first ABI's rights.
type ruleset struct {
	stage *jailtest.Stage
	fd    int
}

const handled = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1

func newRuleset(s *jailtest.Stage) ruleset {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if errno != 0 {
		s.Failf("creating a ruleset: %v", errno)
	}
	return ruleset{stage: s, fd: int(fd)}
}

func (r ruleset) allow(path string, access uint64) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		r.stage.Failf("opening %q: %v", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		r.stage.Failf("looking at %q: %v", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &^= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		r.stage.Failf("allowing %q: %v", path, errno)
	}
}

func (r ruleset) enforce() {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		r.stage.Failf("setting no_new_privs: %v", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		r.stage.Failf("entering the domain: %v", errno)
	}
}

// run starts the victim and returns what the program printed.
func (st start) run(t *testing.T, user jailtest.User) jailtest.Result {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "Landlock", Since: "5.13", Check: func() error {
		_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		if errno != 0 {
			return errno
		}
		return nil
	}})
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return jailtest.Launch{User: user, Dir: st.Dir}.Run(t, "start", string(text))
}

// wantOutput asserts that the program ended well and printed the lines.
func wantOutput(t *testing.T, r jailtest.Result, lines ...string) {
	t.Helper()
	if r.Status != 0 || r.Signal != 0 || r.TimedOut {
		t.Fatalf("the program did not end well: %v", r)
	}
	if want := strings.Join(lines, "\n") + "\n"; r.Stdout != want {
		t.Errorf("printed %q, want %q\n%v", r.Stdout, want, r)
	}
}

// place makes a folder that the user may enter, with files in it.
func place(t *testing.T, user jailtest.User, files map[string]string) string {
	t.Helper()
	dir := jailtest.Dir(t, user)
	for path, content := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const nodeServer = `
const fs = require("fs"), { execFileSync } = require("child_process");
const attempt = (f) => { try { f(); return "works"; } catch (e) { return e.code; } };
require("https"); require("crypto").createHash("sha256").update("x").digest("hex");
console.log("dependency", require("dep"));
console.log("year", new Date(0).toLocaleDateString("de", { year: "numeric", timeZone: "Asia/Tokyo" }));
console.log("read env(1)", attempt(() => fs.readFileSync("/usr/bin/env")));
console.log("start env(1)", attempt(() => execFileSync("/usr/bin/env", ["true"])));
console.log("read neighbour", attempt(() => fs.readFileSync(process.argv[2])));
console.log("start itself", attempt(() => execFileSync("node", ["-e", "0"])));
console.log("list programs", attempt(() => fs.readdirSync("/usr/bin")));
`

func TestNodeStartsOnWhatWasResolved(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, map[string]string{
			"app/package.json":                    `{"name":"app","dependencies":{"dep":"1"}}`,
			"app/bin/server.js":                   "#!/usr/bin/env node\n" + nodeServer,
			"app/node_modules/dep/package.json":   `{"name":"dep","main":"lib"}`,
			"app/node_modules/dep/lib/index.js":   `module.exports = "found";`,
			"neighbour/file":                      "x",
			"global/node_modules/s/package.json":  `{"name":"s"}`,
			"global/node_modules/s/cli.mjs":       `#!/usr/bin/env -S node --no-warnings` + "\n" + `import "node:tls"; console.log("module", process.argv[2]);`,
			"global/node_modules/dep/secret.json": `{}`,
		})
		neighbour := dir + "/neighbour/file"
		lines := []string{
			"dependency found", "year 1970", "read env(1) EACCES", "start env(1) EACCES",
			"read neighbour EACCES", "start itself works", "list programs EACCES",
		}
		st := start{Home: dir, Dir: dir + "/neighbour"}
		st.Argv = []string{"node", "../app/bin/server.js", neighbour}
		wantOutput(t, st.run(t, user), lines...)
		st.Argv = []string{dir + "/app/bin/server.js", neighbour}
		wantOutput(t, st.run(t, user), lines...)
		st.Argv = []string{dir + "/global/node_modules/s/cli.mjs", "works"}
		wantOutput(t, st.run(t, user), "module works")

		// The twin outside: nothing of it is refused there.
		cmd := exec.Command("node", dir+"/app/bin/server.js", neighbour)
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(strings.Join(lines, "\n"), "EACCES", "works") + "\n"; string(text) != want {
			t.Errorf("outside: printed %q, want %q", text, want)
		}

		// Each library counts: without one of them nothing starts.
		st.Argv, st.Spare = []string{"node", "-e", "0"}, "/libstdc++.so.6"
		if r := st.run(t, user); r.Status != 127 {
			t.Errorf("without a library: %v", r)
		}
		st.Spare = "/libnone.so"
		wantOutput(t, start{Argv: []string{"node", "-p", "1"}, Home: dir, Dir: dir}.run(t, user), "1")
	})
}

const pythonServer = `
import sys, json, sqlite3, ssl, ctypes, zoneinfo, threading, socket, hashlib, lzma, bz2, decimal
def attempt(f):
    try:
        f()
        return "works"
    except OSError as e:
        return type(e).__name__
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
ctypes.CDLL("libc.so.6")
sqlite3.connect(":memory:").execute("select 1")
import subprocess
print("zone", zoneinfo.ZoneInfo("Asia/Tokyo").key)
print("read env(1)", attempt(lambda: open("/usr/bin/env", "rb")))
print("start env(1)", attempt(lambda: subprocess.run(["/usr/bin/env", "true"])))
print("read neighbour", attempt(lambda: open(sys.argv[1])))
print("start itself", attempt(lambda: subprocess.run([sys.executable, "-c", "import ssl"], check=True)))
`

func TestPythonStartsOnWhatWasResolved(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, map[string]string{
			"app/server.py":  pythonServer,
			"neighbour/file": "x",
		})
		neighbour := dir + "/neighbour/file"
		lines := []string{
			"zone Asia/Tokyo", "read env(1) PermissionError", "start env(1) PermissionError",
			"read neighbour PermissionError", "start itself works",
		}
		st := start{Argv: []string{"/usr/bin/python3", "../app/server.py", neighbour}, Home: dir, Dir: dir + "/neighbour"}
		wantOutput(t, st.run(t, user), lines...)

		text, err := exec.Command("/usr/bin/python3", dir+"/app/server.py", neighbour).Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(strings.Join(lines, "\n"), "PermissionError", "works") + "\n"; string(text) != want {
			t.Errorf("outside: printed %q, want %q", text, want)
		}
	})
}

func TestVirtualEnvironmentStartsOnWhatWasResolved(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, nil)
		env := dir + "/my env"
		if text, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
			t.Fatalf("making a virtual environment: %v: %s", err, text)
		}
		site, err := filepath.Glob(env + "/lib/python3*/site-packages")
		if err != nil || len(site) != 1 {
			t.Fatalf("no folder of packages: %q, %v", site, err)
		}
		write := func(path, content string, mode os.FileMode) {
			if err := os.WriteFile(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		write(site[0]+"/server.py", "import sys\ndef main(): print('prefix', sys.prefix)\n", 0o644)
		// The form that pip writes where the path holds a blank.
		write(env+"/bin/server", "#!/bin/sh\n'''exec' \""+env+"/bin/python3\" \"$0\" \"$@\"\n' '''\nfrom server import main\nmain()\n", 0o755)

		st := start{Home: dir, Dir: dir}
		for _, argv := range [][]string{
			{env + "/bin/server"},
			{env + "/bin/python", env + "/bin/server"},
			{env + "/bin/python3", "-c", "from server import main; main()"},
		} {
			st.Argv = argv
			wantOutput(t, st.run(t, user), "prefix "+env)
		}
	})
}

func TestShellStartsOnWhatWasResolved(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, map[string]string{
			"s.sh": "#!/bin/sh -e\necho \"shell $1\"\ntool 2>/dev/null || echo \"tool: $?\"\n/usr/bin/env true 2>/dev/null || echo \"env: $?\"\n",
		})
		st := start{Argv: []string{dir + "/s.sh", "a b"}, Home: dir, Dir: dir}
		wantOutput(t, st.run(t, user), "shell a b", "tool: 127", "env: 126")
	})
}

// TestClosureStartsInTheJail proves that what Closure names is enough for the kernel to
// start a script, its env(1) and its interpreter from inside.
func TestClosureStartsInTheJail(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, map[string]string{
			"run.js":   `const {spawnSync} = require("child_process"); const r = spawnSync(process.argv[2], process.argv.slice(3), {encoding: "utf8"}); console.log(r.error ? r.error.code : (r.stdout + r.stderr).trim());`,
			"bin/tool": "#!/usr/bin/env node\nconsole.log('tool', process.argv[2])\n",
		})
		st := start{Argv: []string{"node", "run.js", dir + "/bin/tool", "x"}, Home: dir, Dir: dir}
		wantOutput(t, st.run(t, user), "EACCES")
		st.Grant = []string{dir + "/bin/tool"}
		wantOutput(t, st.run(t, user), "tool x")

		git, err := exec.LookPath("git")
		if err != nil {
			t.Fatal(err)
		}
		st.Argv = []string{"node", "run.js", git, "config", "--get-regexp", "^none$"}
		st.Grant = nil
		wantOutput(t, st.run(t, user), "EACCES")
		st.Argv = []string{"node", "run.js", git, "--exec-path"}
		st.Grant = []string{"git"}
		outside, err := exec.Command(git, "--exec-path").Output()
		if err != nil {
			t.Fatal(err)
		}
		wantOutput(t, st.run(t, user), strings.TrimSpace(string(outside)))
		// A helper out of git's own folder, which needs libraries of its own. It asks for
		// arguments, where one that is missing would be "not a git command".
		st.Argv = []string{"node", "run.js", git, "remote-http"}
		outside, err = exec.Command(git, "remote-http").CombinedOutput()
		if err == nil || !strings.Contains(string(outside), "usage:") {
			t.Fatalf("outside the helper says %q, %v", outside, err)
		}
		wantOutput(t, st.run(t, user), strings.TrimSpace(string(outside)))
	})
}

// staticProgram builds a static Go program that prints a line to standard error. It needs
// nothing of the standard library but the runtime, which compiles in seconds without a cache.
func staticProgram(t *testing.T) string {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "the go command", Check: func() error {
		_, err := exec.LookPath("go")
		return err
	}})
	source, to := t.TempDir()+"/main.go", t.TempDir()+"/static"
	text := "package main\n\nfunc main() { println(\"static program started\") }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", to, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if _, err := os.UserCacheDir(); err != nil {
		cmd.Env = append(cmd.Env, "GOCACHE="+t.TempDir())
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a static program: %v: %s", err, text)
	}
	return to
}

func TestStaticProgramStartsOnWhatWasResolved(t *testing.T) {
	built := staticProgram(t)
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		dir := place(t, user, nil)
		data, err := os.ReadFile(built)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/static", data, 0o755); err != nil {
			t.Fatal(err)
		}
		p, err := program.Resolve([]string{"./static", "a"}, program.Facts{Home: dir, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Execute) != 1 || p.Runtime != program.Native {
			t.Errorf("execute %q, runtime %d", p.Execute, p.Runtime)
		}
		r := start{Argv: []string{"./static"}, Home: dir, Dir: dir}.run(t, user)
		if r.Stderr != "static program started\n" {
			t.Errorf("said %q", r.Stderr)
		}
		if r.Status != 0 || r.Signal != 0 {
			t.Errorf("the program did not end well: %v", r)
		}
	})
}
