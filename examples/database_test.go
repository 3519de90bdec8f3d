package examples_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"stockade/examples/stock"
	"stockade/sandbox/jailtest"
)

// ordinary is the user that the database runs as when the test is root, whom PostgreSQL
// refuses.
const ordinary = 65534

// database is a PostgreSQL of the test's own, on a port of loopback and a socket.
type database struct {
	port   int
	socket string
}

const (
	databaseUser = "harbourmaster"
	databaseWord = "word-of-nobody"
	// rows are what the database holds, and how its password is set.
	rows = `CREATE TABLE places (name text); INSERT INTO places VALUES ('lies in the north');`
)

// url is how a server is told of the database over TCP.
func (d *database) url() string {
	return fmt.Sprintf("postgresql://%s:%s@127.0.0.1:%d/postgres", databaseUser, databaseWord, d.port)
}

// openDatabase makes and starts a database; it ends with the test.
func openDatabase(t *testing.T) *database {
	t.Helper()
	bin := programsOfPostgres(t)
	// Not below the folder of testing.TB, which nobody else may enter, and with a short path:
	// that of a socket has at most 107 bytes (unix(7)).
	folder, err := os.MkdirTemp("", "pg-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	own := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Dir, cmd.Env = folder, []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
		if os.Getuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: ordinary, Gid: ordinary}
		}
		return cmd
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // the socket in it is for the test's user
		t.Fatal(err)
	}
	word := filepath.Join(folder, "word")
	write(t, word, databaseWord+"\n")
	if os.Getuid() == 0 {
		for _, path := range []string{folder, word} {
			if err := os.Chown(path, ordinary, ordinary); err != nil {
				t.Fatal(err)
			}
		}
	}
	data := filepath.Join(folder, "data")
	made := own(exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", databaseUser, "--pwfile", word, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"))
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("making the database: %v\n%s", err, out)
	}
	filled := own(exec.Command(filepath.Join(bin, "postgres"), "--single", "-F", "-D", data, "postgres"))
	filled.Stdin = strings.NewReader(rows + "\n")
	if out, err := filled.CombinedOutput(); err != nil {
		t.Fatalf("filling the database: %v\n%s", err, out)
	}
	d := &database{port: quietPort(t)}
	d.socket = filepath.Join(folder, ".s.PGSQL."+strconv.Itoa(d.port))
	d.run(t, own(exec.Command(filepath.Join(bin, "postgres"), "-F", "-D", data, "-p", strconv.Itoa(d.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+folder)))
	return d
}

// run starts the database and waits until it says that it is ready.
func (d *database) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	keep(cmd.Process.Pid)
	var log strings.Builder
	lines := bufio.NewReader(said)
	for !strings.Contains(log.String(), "ready to accept connections") {
		line, err := lines.ReadString('\n')
		log.WriteString(line)
		if err != nil {
			break
		}
	}
	ready := strings.Contains(log.String(), "ready to accept connections")
	t.Cleanup(func() {
		defer drop(cmd.Process.Pid)
		if ready {
			// Fast shutdown: clients are sent away (postgres(1)).
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the database ended with %v:\n%s%s", err, &log, rest)
		}
	})
	if !ready {
		t.Fatal("the database did not come up")
	}
}

// programsOfPostgres is the folder of the newest PostgreSQL.
func programsOfPostgres(t *testing.T) string {
	t.Helper()
	var found []string
	jailtest.Need(t, jailtest.Probe{Name: "Debian's PostgreSQL", Check: func() error {
		var err error
		if found, err = filepath.Glob("/usr/lib/postgresql/*/bin"); err == nil && len(found) == 0 {
			err = os.ErrNotExist
		}
		return err
	}})
	slices.Sort(found)
	return found[len(found)-1]
}

// quietPort returns a port of loopback that is free, below those that the kernel gives to
// clients (ip_local_port_range, from 32768).
func quietPort(t *testing.T) int {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32768; port++ {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// kept are processes that tests run beside their servers: no jail left them behind.
var kept = struct {
	sync.Mutex
	pids []int
}{}

func keep(pid int) {
	kept.Lock()
	defer kept.Unlock()
	kept.pids = append(kept.pids, pid)
}

func drop(pid int) {
	kept.Lock()
	defer kept.Unlock()
	kept.pids = slices.DeleteFunc(kept.pids, func(p int) bool { return p == pid })
}

// onlyKept tells whether all children of this process are kept ones.
func onlyKept(t *testing.T) bool {
	t.Helper()
	kept.Lock()
	defer kept.Unlock()
	if len(kept.pids) == 0 {
		return false
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("listing children: %v, %v", tasks, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread is gone, and its children are another's
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err != nil || !slices.Contains(kept.pids, pid) {
				return false
			}
		}
	}
	return true
}

// denied calls a tool that must fail, by whatever way the server says so, with a text that
// holds want.
func (s *session) denied(t *testing.T, tool string, args map[string]any, want string) {
	t.Helper()
	if text, failed := s.outcome(t, tool, args); !failed || !strings.Contains(text, want) {
		t.Errorf("%s: got %q (failed: %v), want an error with %q; stderr:\n%s", tool, text, failed, want, s.stderr)
	}
}

func TestPostgres(t *testing.T) {
	d := openDatabase(t)
	p := newPlace(t)
	command, err := stock.Postgres.Command(d.url())
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", d.port)
	places := map[string]any{"sql": "SELECT name FROM places"}
	silent := func(s *session) {
		t.Helper()
		if strings.Contains(s.stderr.String(), databaseWord) {
			t.Error("the password is on standard error")
		}
	}

	s := connect(t, p.command(jailWith("--egress", address)(t, command...)...))
	if got := s.tools(t); !slices.Equal(got, []string{"query"}) {
		t.Errorf("the server lists %q", got)
	}
	s.served(t, "query", places, "lies in the north")
	// As the profile says: the server's own read-only transaction is none.
	s.outcome(t, "query", map[string]any{"sql": "COMMIT; INSERT INTO places VALUES ('smuggled')"})
	s.served(t, "query", places, "smuggled")
	s.stop(t) // its pool holds a connection
	if got := s.stderr.String(); got != "" {
		t.Errorf("standard error holds %q", got)
	}

	// By the profile alone nothing is reached, and the start says how it would be.
	alone := connect(t, p.command(in("")(t, command...)...))
	alone.denied(t, "query", places, "connect EAFNOSUPPORT "+address)
	alone.end(t)
	silent(alone)
	if want := fmt.Sprintf("stockade: warning: argument 1 of the server names %s, and network.egress does not let it out; to allow it, add \"--egress %[1]s\"\n", address); alone.stderr.String() != want {
		t.Errorf("standard error holds %q, want %q", alone.stderr, want)
	}

	// A flag for another one lets out that one.
	other := connect(t, p.command(jailWith("--egress", "127.0.0.1:1")(t, command...)...))
	other.denied(t, "query", places, "connect EACCES "+address)
	other.end(t)
	silent(other)
	if want := fmt.Sprintf("to allow it, add %q to network.egress", address); !strings.Contains(other.stderr.String(), want) {
		t.Errorf("standard error holds %q, want %q", other.stderr, want)
	}
	p.onlyOwn(t)

	outside := connect(t, p.command(free(t, command...)...))
	outside.served(t, "query", places, "lies in the north")
	outside.stop(t)
}

func TestPostgresSocket(t *testing.T) {
	d := openDatabase(t)
	p := newPlace(t)
	command, err := stock.Postgres.Command(fmt.Sprintf("postgresql://%s:%s@%s:%d/postgres",
		databaseUser, databaseWord, strings.ReplaceAll(filepath.Dir(d.socket), "/", "%2F"), d.port))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]any{"sql": "SELECT name FROM places"}

	s := connect(t, p.command(jailWith("--unix", d.socket)(t, command...)...))
	s.served(t, "query", places, "lies in the north")
	s.stop(t) // its pool holds a connection

	alone := connect(t, p.command(in("")(t, command...)...))
	alone.denied(t, "query", places, "EACCES")
	alone.end(t)
	p.onlyOwn(t)

	outside := connect(t, p.command(free(t, command...)...))
	outside.served(t, "query", places, "lies in the north")
	outside.stop(t)
}
