package nettest_test

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a conversation of the official client with one server.
type session struct {
	*mcp.ClientSession
	cmd    *exec.Cmd
	stderr *stream
}

// connect starts a server through the official client's own transport. When the test ends,
// so does the server, and no process of it may be left.
func connect(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	s := &session{cmd: cmd, stderr: &stream{}}
	cmd.Stderr = s.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "stockade-nettest", Version: "1"}, nil)
	conversation, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connecting to %q: %v; stderr:\n%s", cmd.Args, err, s.stderr)
	}
	s.ClientSession = conversation
	t.Cleanup(func() { s.end(t) })
	return s
}

// end closes the server's input and waits for its end. How it ends is its own business: some
// of the servers here know only signals.
func (s *session) end(t *testing.T) {
	t.Helper()
	if s.ClientSession == nil {
		return
	}
	if err := s.Close(); err != nil {
		t.Logf("the server ended with %v", err)
	}
	s.ClientSession = nil
	noChildren(t)
}

// call calls a tool and returns its text.
func (s *session) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v; stderr:\n%s", tool, err, s.stderr)
	}
	return textOf(result)
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

// stream collects what another goroutine writes.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
