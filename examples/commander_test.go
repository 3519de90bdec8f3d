package examples_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/examples/stock"
)

// TestDesktopCommander: a shell with the run of one folder.
func TestDesktopCommander(t *testing.T) {
	p := newPlace(t)
	command, err := stock.DesktopCommander.Command()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := stock.Folder()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	inside, made := filepath.Join(p.project, "inside.txt"), filepath.Join(p.project, "made.txt")
	start := func(launch launch, flags ...string) *session {
		cmd := p.command(launch(t, append(command, flags...)...)...)
		// It is not to report this test to its makers.
		cmd.Env = append(cmd.Env, "DESKTOP_COMMANDER_DISABLE_TELEMETRY=1", "DC_FLAG_URL=http://127.0.0.1:1/", "SHELL=/bin/bash")
		return connect(t, cmd)
	}

	// Which folder it is about is for a person to say.
	_, alone := output(t, p.command(in("")(t, command...)...), 125)
	if !strings.Contains(alone, "there are no roots") || !strings.Contains(alone, "--root DIR") {
		t.Errorf("standard error holds %q", alone)
	}

	search, err := filepath.Glob(filepath.Join(folder, "node_modules", "@vscode", "ripgrep-linux-*", "bin", "rg"))
	if err != nil || len(search) != 1 {
		t.Fatalf("finding ripgrep: %q, %v", search, err)
	}
	s := start(jailWith("--root", p.project, "--exec", search[0]))
	if got := s.tools(t); !slices.Contains(got, "start_process") || !slices.Contains(got, "write_file") {
		t.Errorf("the server lists %q", got)
	}
	if text := s.shell(t, fmt.Sprintf("grep -c text %s && echo made >%s && ls %s", inside, made, p.project)); !holdsInOrder(text, "1\n", "inside.txt\n", "made.txt\n") {
		t.Errorf("the shell said %q", text)
	}
	s.served(t, "read_file", map[string]any{"path": made}, "made")
	s.served(t, "write_file", map[string]any{"path": made, "content": "made anew", "mode": "rewrite"}, "")
	s.searches(t, p.project, "anew", "made.txt")
	for line, want := range map[string]string{
		"cat " + p.secret:          "cat: " + p.secret + ": Permission denied",
		"echo owned >>" + p.secret: p.secret + ": Permission denied",
		"/usr/bin/id":              "/usr/bin/id: Permission denied",
		fmt.Sprintf("echo >/dev/tcp/127.0.0.1/%d", port):              "Address family not supported by protocol",
		"cp /bin/true " + p.project + "/own && " + p.project + "/own": p.project + "/own: Permission denied",
	} {
		if text := s.shell(t, line); !strings.Contains(text, want) || strings.Contains(text, secretText) {
			t.Errorf("%s: got %q, want %q", line, text, want)
		}
	}
	if text, _ := s.outcome(t, "read_file", map[string]any{"path": p.secret}); !strings.Contains(text, "EACCES") || strings.Contains(text, secretText) {
		t.Errorf("read_file: got %q", text)
	}
	s.stop(t)
	if got, err := os.ReadFile(made); err != nil || string(got) != "made anew" {
		t.Errorf("the project's file holds %q (%v)", got, err)
	}
	p.onlyOwn(t)

	outside := start(free)
	for line, want := range map[string]string{
		"cat " + p.secret: secretText,
		"/usr/bin/id -u":  fmt.Sprint(os.Getuid()),
		fmt.Sprintf("echo >/dev/tcp/127.0.0.1/%d && echo reached", port): "reached",
		p.project + "/own && echo ran":                                   "ran",
	} {
		if text := outside.shell(t, line); !strings.Contains(text, want) {
			t.Errorf("outside the jail %s: got %q, want %q", line, text, want)
		}
	}
	outside.served(t, "read_file", map[string]any{"path": p.secret}, secretText)
	outside.stop(t)
}

// searches has the server look for a text in a folder, and reads on until it has an answer.
func (s *session) searches(t *testing.T, folder, text, want string) {
	t.Helper()
	answer, failed := s.call(t, "start_search", map[string]any{"path": folder, "pattern": text, "searchType": "content"})
	_, id, found := strings.Cut(answer, "search session: ")
	if failed || !found {
		t.Fatalf("start_search: got %q", answer)
	}
	id, _, _ = strings.Cut(id, "\n")
	for !failed && !strings.Contains(answer, want) && !strings.Contains(answer, "COMPLETED") {
		answer, failed = s.call(t, "get_more_search_results", map[string]any{"sessionId": id})
	}
	if failed || !strings.Contains(answer, want) {
		t.Errorf("the search found %q (failed: %v), want %q", answer, failed, want)
	}
}

// shell runs a command line and returns what it printed. The server loses that now and then
// when the command ends at once (it listens for the end and not for the end of the output),
// so a line without an answer is run again; each line here prints something.
func (s *session) shell(t *testing.T, line string) string {
	t.Helper()
	for range 20 {
		text, failed := s.call(t, "start_process", map[string]any{"command": line, "timeout_ms": 30000})
		_, output, found := strings.Cut(text, "Initial output:")
		if failed || !found {
			t.Fatalf("start_process: got %q", text)
		}
		if strings.TrimSpace(output) != "" {
			return output
		}
	}
	t.Fatalf("%s printed nothing", line)
	return ""
}

// holdsInOrder tells whether a text holds all parts, one after the other. What a login shell
// says of its start-up files stands anywhere between them.
func holdsInOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}
