package examples_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a conversation of the official client with one server.
type session struct {
	*mcp.ClientSession
	cmd    *exec.Cmd
	stderr *buffer
	ending ending
}

// ending says how a server is to end once its input has.
type ending uint8

const (
	// byItself: it exits with status 0.
	byItself ending = iota
	// bySignal: it ignores the end of its input, and SIGTERM ends it; a supervisor makes that
	// its status.
	bySignal
	// followed: it exits with status 0, and so does, on its own and soon, what it started to
	// watch it.
	followed
)

// connect starts a server through the official client's own transport; the client offers
// roots, if any. When the test ends, the server's input closes, and it must end as its
// ending says and leave no process behind.
func connect(t *testing.T, cmd *exec.Cmd, roots ...string) *session {
	t.Helper()
	s := &session{cmd: cmd, stderr: &buffer{}}
	cmd.Stderr = s.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "stockade-examples", Version: "1"}, nil)
	for _, root := range roots {
		client.AddRoots(&mcp.Root{URI: "file://" + root, Name: root}) //nolint:staticcheck // deprecated in the protocol, and still what servers obey
	}
	conversation, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connecting to %q: %v; stderr:\n%s", cmd.Args, err, s.stderr)
	}
	s.ClientSession = conversation
	t.Cleanup(func() { s.end(t) })
	return s
}

// end closes the server's input and checks how it went.
func (s *session) end(t *testing.T) {
	t.Helper()
	if s.ClientSession == nil {
		return
	}
	err := s.Close()
	s.ClientSession = nil
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case s.ending != bySignal && (err != nil || !s.cmd.ProcessState.Success()):
		t.Errorf("the server ended with %v (%v), want status 0; stderr:\n%s", s.cmd.ProcessState, err, s.stderr)
	case s.ending == bySignal && (!ok || status.Signal() != syscall.SIGTERM && status.ExitStatus() != 128+int(syscall.SIGTERM)):
		t.Errorf("the server ended with %v (%v), want SIGTERM; stderr:\n%s", s.cmd.ProcessState, err, s.stderr)
	case s.ending == followed:
		awaitFollowers(t)
	}
	noChildren(t)
}

// call calls a tool and returns its text, and whether the server called it an error.
func (s *session) call(t *testing.T, tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v; stderr:\n%s", tool, err, s.stderr)
	}
	return textOf(result), result.IsError
}

// outcome is call for servers that answer a failed call with an error of the protocol.
func (s *session) outcome(t *testing.T, tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if told, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return told.Message, true
	}
	if err != nil {
		t.Fatalf("calling %s: %v; stderr:\n%s", tool, err, s.stderr)
	}
	return textOf(result), result.IsError
}

func textOf(result *mcp.CallToolResult) string {
	var all strings.Builder
	for _, content := range result.Content {
		if part, ok := content.(*mcp.TextContent); ok {
			all.WriteString(part.Text)
		}
	}
	return all.String()
}

// served calls a tool that must answer with a text that holds want.
func (s *session) served(t *testing.T, tool string, args map[string]any, want string) {
	t.Helper()
	text, failed := s.call(t, tool, args)
	if failed || !strings.Contains(text, want) {
		t.Errorf("%s: got %q (failed: %v), want %q", tool, text, failed, want)
	}
}

// refused calls a tool that must fail with a text that holds want, which names the errno.
func (s *session) refused(t *testing.T, tool string, args map[string]any, want string) {
	t.Helper()
	text, failed := s.call(t, tool, args)
	if !failed || !strings.Contains(text, want) {
		t.Errorf("%s: got %q (failed: %v), want an error with %q", tool, text, failed, want)
	}
	if strings.Contains(text, secretText) {
		t.Errorf("%s: the error shows the secret", tool)
	}
}

// tools lists the names of the server's tools.
func (s *session) tools(t *testing.T) []string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// handshake is what a client writes first, and a ping.
const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
`

// pure speaks to a server by hand, until it has answered, then ends its input: its output
// must be the protocol's messages and nothing else to the last byte, and stockade's own
// lines on stderr must say whose they are.
func pure(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr buffer
	cmd.Stderr = &stderr
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
	if _, err := io.WriteString(in, handshake); err != nil {
		t.Fatal(err)
	}
	answers := 0
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var message struct {
				Version string `json:"jsonrpc"`
			}
			if err := json.Unmarshal(line, &message); err != nil || message.Version != "2.0" {
				t.Errorf("stdout holds %q, which is no message", line)
			}
			answers++
		}
		if answers == 2 && in != nil {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			in = nil
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v; stderr:\n%s", err, &stderr)
	}
	if answers != 2 {
		t.Errorf("got %d messages for two requests; stderr:\n%s", answers, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "stockade") && !strings.HasPrefix(line, "stockade: ") {
			t.Errorf("stderr holds %q", line)
		}
	}
	noChildren(t)
}
