package nettest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/nettest"
	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// webServer is testdata/server.py, listening.
type webServer struct {
	cmd    *exec.Cmd
	in     io.Closer
	stderr *stream
	port   uint16
}

// Ports that the server is given or not. They lie below those that clients get.
const (
	servedPort  = 18080
	refusedPort = 18081
)

func serverProgram(t *testing.T, n *nettest.Network) program {
	t.Helper()
	return program{
		words: []string{"/usr/bin/python3", testFile(t, "server.py")},
		env:   map[string]string{"SSL_CERT_FILE": n.CAFile()}, read: []string{n.CAFile()}, exec: []string{"/usr/bin/curl"},
	}
}

// serve starts the server and waits until it listens. It ends with the test.
func serve(t *testing.T, n *nettest.Network, l launcher, network string) *webServer {
	t.Helper()
	cmd := l.Command(t, serverProgram(t, n), network, fmt.Sprint(servedPort))
	s := &webServer{cmd: cmd, stderr: &stream{}, port: servedPort}
	cmd.Stderr = s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.in = in
	t.Cleanup(func() { s.end(t) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" || err != nil {
		t.Fatalf("the server says %q, %v; stderr:\n%s", line, err, s.stderr)
	}
	return s
}

// end ends the server, as a host does.
func (s *webServer) end(t *testing.T) {
	t.Helper()
	if s.in == nil {
		return
	}
	_ = s.in.Close()
	s.in = nil
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v; stderr:\n%s", err, s.stderr)
	}
	noChildren(t)
}

// ask sends a request with a header and returns the status with the answer.
func (s *webServer) ask(t *testing.T, header, value string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", s.port), nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		request.Header.Set(header, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 60 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatalf("asking the server: %v; stderr:\n%s", err, s.stderr)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// asked is one request to the server: outside a jail it brings text, inside the same, or the
// failure that is named.
type asked struct {
	header, value, text, failure string
}

// both asks the same outside a jail and inside, where nothing of the places may be reached and
// none of the names be asked for.
func both(t *testing.T, network string, rows []asked, places []nettest.Place, names ...string) {
	t.Helper()
	n := nettest.Get(t)
	outside := serve(t, n, plain{}, "")
	for _, r := range rows {
		if status, text := outside.ask(t, r.header, r.value); status != http.StatusOK || !strings.Contains(text, r.text) {
			t.Errorf("outside, %s %s: got %d %q, want %q", r.header, r.value, status, text, r.text)
		}
	}
	outside.end(t)
	mark := n.Mark(t)
	inside := serve(t, n, jailed{}, network)
	for _, r := range rows {
		status, text := inside.ask(t, r.header, r.value)
		if r.failure == "" && (status != http.StatusOK || !strings.Contains(text, r.text)) {
			t.Errorf("inside, %s %s: got %d %q, want %q; stderr:\n%s", r.header, r.value, status, text, r.text, inside.stderr)
		}
		if r.failure != "" && (status != http.StatusBadGateway || text != r.failure) {
			t.Errorf("inside, %s %s: got %d %q, want the failure %q", r.header, r.value, status, text, r.failure)
		}
	}
	inside.end(t)
	n.Untouched(t, mark, places...)
	n.Unasked(t, mark, names...)
}

func greeting(place nettest.Place) string { return "greetings from " + string(place) + " as " }

// TestV48 is CVE-2025-59155: a header of a request chooses where the server's own calls go.
func TestV48(t *testing.T) {
	const header = "X-Api-Base"
	both(t, fmt.Sprintf("egress: [api.corp-demo.org]\nlisten: [%d]", servedPort), []asked{
		{header, "https://" + nettest.APIName + "/", "greetings from public", ""},
		{header, "https://" + nettest.AttackerName + "/", greeting(nettest.Attacker), "gaierror [Errno -2] Name or service not known"},
		{header, "http://185.199.108.153/", greeting(nettest.Attacker), "PermissionError EACCES"},
		{header, "http://169.254.169.254/latest/meta-data/", greeting(nettest.Metadata), "PermissionError EACCES"},
		{header, "http://127.0.0.1:8000/", greeting(nettest.Loopback), "PermissionError EACCES"},
		{header, "http://10.0.0.5/", greeting(nettest.Private), "PermissionError EACCES"},
		{header, "https://" + nettest.APIName + "/to?url=http://10.0.0.5/", greeting(nettest.Private), "PermissionError EACCES"},
	}, beyond(), nettest.AttackerName)
}

// TestV49 is CVE-2025-5276: a program that the server starts fetches what the server is told to.
func TestV49(t *testing.T) {
	const header = "X-Child"
	both(t, fmt.Sprintf("egress: public\nlisten: [%d]", servedPort), []asked{
		{header, "https://" + nettest.DataName + "/", greeting(nettest.Public), ""},
		{header, "http://169.254.169.254/latest/meta-data/", greeting(nettest.Metadata), "OSError curl 7"},
		{header, "http://[fd00:ec2::254]/", greeting(nettest.Metadata6), "OSError curl 7"},
		{header, "http://127.0.0.1:8000/", greeting(nettest.Loopback), "OSError curl 7"},
		{header, "http://0x7f.1:8000/", greeting(nettest.Loopback), "OSError curl 7"},
		{header, "http://10.0.0.5/", greeting(nettest.Private), "OSError curl 7"},
		{header, "http://93.184.216.30/", greeting(nettest.Own), "OSError curl 7"},
		{header, "https://" + nettest.DataName + "/to?url=http://169.254.169.254/", greeting(nettest.Metadata), "OSError curl 7"},
	}, nettest.Inside)
}

// TestV50 is about an inner sandbox that leaves loopback open: services of the machine are
// reached by nothing but a rule for loopback, and on its ports.
func TestV50(t *testing.T) {
	const header = "X-Api-Base"
	closed := []asked{
		{header, "http://127.0.0.1/", greeting(nettest.Loopback), "PermissionError EACCES"},
		{header, "http://127.0.0.1:8000/", greeting(nettest.Loopback), "PermissionError EACCES"},
		{header, "http://[::1]:8000/", greeting(nettest.Loopback6), "PermissionError EACCES"},
		{header, "http://127.0.0.2:8000/", greeting(nettest.Loopback2), "PermissionError EACCES"},
		{header, "http://93.184.216.30:8000/", greeting(nettest.Own), "PermissionError EACCES"},
	}
	listens := fmt.Sprintf("\nlisten: [%d]", servedPort)
	t.Run("public", func(t *testing.T) { both(t, "egress: public"+listens, closed, nettest.Inside) })
	t.Run("a list", func(t *testing.T) { both(t, "egress: [api.corp-demo.org]"+listens, closed, beyond()) })
	t.Run("ports that are listed", func(t *testing.T) {
		open := append([]asked(nil), closed...)
		for _, i := range []int{1, 2} {
			open[i].failure = ""
		}
		both(t, "egress: [\"localhost:8000\"]"+listens, open, beyond(nettest.Loopback, nettest.Loopback6))
	})
}

// TestS67: a port to listen on opens that port, and nothing else: no names, no datagrams, no
// connections, no other port. It does so with a supervisor and without.
func TestS67(t *testing.T) {
	n := nettest.Get(t)
	for _, tt := range []struct{ name, network, refusal, family, lookup string }{
		{"alone", "egress: none", "PermissionError EACCES", "PermissionError EPERM", "gaierror [Errno -3] Temporary failure in name resolution"},
		{"beside a rule", "egress: [api.corp-demo.org]", "PermissionError EACCES", "PermissionError EACCES", "gaierror [Errno -2] Name or service not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark := n.Mark(t)
			s := serve(t, n, jailed{}, fmt.Sprintf("%s\nlisten: [%d]", tt.network, servedPort))
			if status, text := s.ask(t, "", ""); status != http.StatusOK || text != "hello" {
				t.Errorf("from outside the jail: got %d %q", status, text)
			}
			// Every address of the machine leads to the port.
			for _, host := range []string{"127.0.0.2", "93.184.216.30"} {
				conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(servedPort)), 10*time.Second)
				if err != nil {
					t.Errorf("at %s: %v", host, err)
					continue
				}
				_ = conn.Close()
			}
			for _, r := range []asked{
				{"X-Resolve", nettest.AttackerName, "", tt.lookup},
				{"X-Resolve", "c2VjcmV0." + nettest.AttackerName, "", tt.lookup},
				{"X-Datagram", "10.0.0.5:7000", "", tt.family},
				{"X-Datagram", "185.199.108.153:53", "", tt.family},
				{"X-Api-Base", "http://10.0.0.5/", "", tt.refusal},
				{"X-Api-Base", "http://127.0.0.1:8000/", "", tt.refusal},
				{"X-Listen", fmt.Sprint(refusedPort), "", "PermissionError EACCES"},
			} {
				if status, text := s.ask(t, r.header, r.value); status != http.StatusBadGateway || text != r.failure {
					t.Errorf("%s %s: got %d %q, want the failure %q", r.header, r.value, status, text, r.failure)
				}
			}
			if conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", refusedPort), 10*time.Second); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("the port that is not granted: got %v, %v; want nobody there", conn, err)
			}
			s.end(t)
			n.Untouched(t, mark, beyond()...)
			n.Unasked(t, mark, nettest.AttackerName, "c2vjcmv0."+nettest.AttackerName)
		})
	}
	// What is refused inside works outside.
	outside := serve(t, n, plain{}, "")
	for _, r := range []asked{
		{"X-Resolve", nettest.AttackerName, "185.199.108.153", ""}, {"X-Datagram", "10.0.0.5:7000", "ping", ""}, {"X-Listen", fmt.Sprint(refusedPort), "listening", ""},
	} {
		if status, text := outside.ask(t, r.header, r.value); status != http.StatusOK || text != r.text {
			t.Errorf("outside, %s %s: got %d %q, want %q", r.header, r.value, status, text, r.text)
		}
	}
}

// waitAll takes the status of every child, until there is none. Orphans are this process's.
func waitAll(t *testing.T, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case pid > 0 || errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		case ctx.Err() != nil:
			t.Fatal("a process is left behind")
		default:
			<-time.After(time.Millisecond) // nothing tells of the end of any child but asking
		}
	}
}

// TestSupervisorKilledUnderLoad: with its supervisor killed amid relayed and direct connections
// and lookups, a server ends, nothing of it is left, and its connections are closed.
func TestSupervisorKilledUnderLoad(t *testing.T) {
	n := nettest.Get(t)
	p := program{
		words: []string{"/usr/bin/python3", testFile(t, "load.py")},
		env:   map[string]string{"SSL_CERT_FILE": n.CAFile()}, read: []string{n.CAFile()},
	}
	const network = `egress: ["data.corp-demo.org:443", "93.184.216.34:5432"]`
	for range 3 {
		cmd := jailed{}.Command(t, p, network, nettest.DataName, nettest.Address(nettest.Public).String(), "5432")
		stderr := &stream{}
		cmd.Stderr = stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "loaded\n" || err != nil {
			t.Fatalf("the server says %q, %v; stderr:\n%s", line, err, stderr)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// The server holds the pipe, so its end is the end of the output.
		if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
			t.Errorf("after the supervisor's end the server says %q, %v", rest, err)
		}
		if _, err := cmd.Process.Wait(); err != nil {
			t.Fatal(err)
		}
		waitAll(t, 20*time.Second)
		// Every connection of it is closed: the network comes to rest.
		mark := n.Mark(t)
		if hits := n.Hits(t, mark); len(hits) > 0 {
			t.Errorf("reached after its end: %v", hits)
		}
	}
}

// TestS30: the resolver's file is a link into another folder, as on most machines. Names
// resolve, for the supervisor and for the server, by what it leads to alone.
func TestS30(t *testing.T) {
	n := nettest.Get(t)
	base := home(t)
	cmd := jailed{}.Command(t, pythonClient(t, n), `egress: ["data.corp-demo.org:443"]`, "get https://"+nettest.DataName+"/", "lookup "+nettest.AttackerName)
	// A copy of /etc, since a mount cannot put a link in the place of a file.
	const script = `set -e; cd "$1"; shift; mkdir etc run; cp -a /etc/. etc/ 2>/dev/null || :
mv etc/resolv.conf run/; ln -s "$PWD/run/resolv.conf" etc/resolv.conf; chmod 755 . run
mount --bind etc /etc; test -L /etc/resolv.conf; cd "$OLDPWD"; exec "$@"`
	words := append([]string{"-c", script, "sh", base}, cmd.Args...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"/bin/sh"}, words...)
	ownMounts(t, cmd)
	end := run(t, cmd)
	if end.status != 0 || !strings.Contains(end.stdout, nettest.Greeting(nettest.Public, nettest.DataName)) || !strings.Contains(end.stdout, "EAI -2") {
		t.Errorf("got status %d, %s; stderr:\n%s", end.status, end.stdout, end.stderr)
	}
}

// ownMounts gives a command a mount namespace of its own, and who runs it the right to mount.
func ownMounts(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		return
	}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

var caseVictims = jailtest.Victims{
	// inside another supervisor: a command line. It executes that with a filter whose listener
	// somebody holds, as in a container whose engine answers calls.
	"inside another supervisor": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			s.Failf("setting no_new_privs: %v", err)
		}
		listener, err := seccomp.Listen(seccomp.Program{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}})
		if err != nil {
			s.Failf("%v", err)
		}
		if _, err := unix.FcntlInt(uintptr(listener), unix.F_SETFD, 0); err != nil {
			s.Failf("keeping the listener: %v", err)
		}
		err = unix.Exec(args[0], args, os.Environ())
		s.Failf("executing %q: %v", args[0], err)
		return jailtest.Outcome{}
	},
}

// TestNestedSupervisor: the kernel takes one listener for a process, so a start within what
// another supervisor answers is refused before the server runs, and says so.
func TestNestedSupervisor(t *testing.T) {
	n := nettest.Get(t)
	p := program{words: []string{"/usr/bin/echo"}}
	for network, want := range map[string]int{"egress: [data.corp-demo.org]": 125, "unix: [" + n.Folder() + "/absent.sock]": 125, "egress: none": 0} {
		cmd := jailed{}.Command(t, p, network, "started")
		if strings.HasPrefix(network, "unix") {
			listenUnix(t, n.Folder()+"/absent.sock")
		}
		cmd.Args, cmd.Path = append([]string{"nested"}, cmd.Args...), "/proc/self/exe"
		cmd.Env = append(cmd.Env, jailtest.Environment("inside another supervisor")...)
		end := run(t, cmd)
		told := strings.Contains(end.stderr, "a supervisor answers calls of this process already, and the kernel takes one only")
		if end.status != want || told != (want != 0) || (end.stdout == "started\n") != (want == 0) {
			t.Errorf("%s: got status %d, %q; stderr:\n%s", network, end.status, end.stdout, end.stderr)
		}
	}
}

// listenUnix makes a socket file.
func listenUnix(t *testing.T, path string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}
