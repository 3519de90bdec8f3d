package examples_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stockade/examples/stock"
	"stockade/sandbox/guard"
)

// tap keeps what goes through an end of a relay.
type tap struct {
	*os.File
	mu   sync.Mutex
	kept bytes.Buffer
}

func (p *tap) keep(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept.Write(text)
}

func (p *tap) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept.String()
}

func (p *tap) Read(into []byte) (int, error) {
	n, err := p.File.Read(into)
	p.keep(into[:n])
	return n, err
}

func (p *tap) Write(text []byte) (int, error) {
	n, err := p.File.Write(text)
	p.keep(text[:n])
	return n, err
}

func ends(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// TestGuardIsTransparent: where no rule fires, both sides read byte for byte what the other
// one wrote, and the official client cannot tell.
func TestGuardIsTransparent(t *testing.T) {
	p := newPlace(t)
	static, err := stock.StaticServer()
	if err != nil {
		t.Fatal(err)
	}
	node := func(s stock.Server, words ...string) []string {
		command, err := s.Command(words...)
		if err != nil {
			t.Fatal(err)
		}
		return command
	}
	tests := []struct {
		name    string
		command []string
		calls   []mcp.CallToolParams
	}{
		{"everything", node(stock.Everything, "stdio"), []mcp.CallToolParams{
			{Name: "echo", Arguments: map[string]any{"message": "ünï\u2028 \U0001f600\x00"}},
			{Name: "get-sum", Arguments: map[string]any{"a": 1e300, "b": -0.5}},
			{Name: "get-tiny-image"},
			{Name: "get-structured-content", Arguments: map[string]any{"location": "Chicago"}},
			{Name: "no-such-tool"},
		}},
		{"memory", node(stock.Memory), []mcp.CallToolParams{
			{Name: "create_entities", Arguments: map[string]any{"entities": []any{map[string]any{"name": "a", "entityType": "b", "observations": []string{strings.Repeat("x", 200_000)}}}}},
			{Name: "read_graph"},
		}},
		{"filesystem", node(stock.Filesystem201, p.project), []mcp.CallToolParams{
			{Name: "list_directory", Arguments: map[string]any{"path": p.project}},
			{Name: "read_text_file", Arguments: map[string]any{"path": p.project + "/inside.txt"}},
		}},
		{"official Go server", []string{static, p.project}, []mcp.CallToolParams{
			{Name: "write_note", Arguments: map[string]any{"name": "n.txt", "text": "a note"}},
			{Name: "read_note", Arguments: map[string]any{"name": "n.txt"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := p.command(tt.command...)
			cmd.Env = append(cmd.Env, "MEMORY_FILE_PATH="+p.home+"/memory.jsonl")
			overGuard(t, cmd, tt.calls)
		})
	}
}

func overGuard(t *testing.T, cmd *exec.Cmd, calls []mcp.CallToolParams) {
	t.Helper()
	hostOut, hostIn := ends(t)
	toHost, fromGuard := ends(t)
	serverOut, serverIn := ends(t)
	toServer, guardToServer := ends(t)
	cmd.Stdin, cmd.Stdout = toServer, serverIn
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = serverIn.Close()
	taps := [...]*tap{{File: hostOut}, {File: guardToServer}, {File: serverOut}, {File: fromGuard}}
	policy := guard.Policy{MessageSize: guard.DefaultMessageSize, Sampling: guard.Allow, Elicitation: guard.Allow, Roots: guard.Allow}
	relay, err := guard.New(policy, guard.Streams{FromHost: taps[0], ToServer: taps[1], FromServer: taps[2], ToHost: taps[3]}, func(note string) {
		t.Errorf("note: %s", note)
	})
	if err != nil {
		t.Fatal(err)
	}
	relay.Start()
	client := mcp.NewClient(&mcp.Implementation{Name: "stockade-examples", Version: "1"}, nil)
	client.AddRoots(&mcp.Root{URI: "file://" + cmd.Dir, Name: "project"}) //nolint:staticcheck // deprecated in the protocol, and still what servers obey
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toHost, Writer: hostIn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for i := range calls {
		if _, err := session.CallTool(t.Context(), &calls[i]); err != nil && !errors.As(err, new(*jsonrpc.Error)) {
			t.Errorf("%s: %v", calls[i].Name, err)
		}
	}
	_ = session.Close()
	_ = hostIn.Close()
	<-relay.HostLeft()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	<-relay.Drained()
	if in, out := taps[0].all(), taps[1].all(); in != out || !strings.Contains(in, "tools/call") {
		t.Errorf("the host wrote\n%.2000s\nand the server read\n%.2000s", in, out)
	}
	if in, out := taps[2].all(), taps[3].all(); !strings.HasPrefix(in, out) || !strings.Contains(out, `"tools"`) {
		t.Errorf("the server wrote\n%.2000s\nand the host read\n%.2000s", in, out)
	}
}

// TestGuard runs stock servers behind a guard in their jails.
func TestGuard(t *testing.T) {
	p := newPlace(t)
	everything, err := stock.Everything.Command("stdio")
	if err != nil {
		t.Fatal(err)
	}
	file := p.profile(t, "extends: [everything]\nguard: {pins: off, tools: [echo, get-*], call-timeout: 60s}\n")
	s := connect(t, p.command(in(file)(t, everything...)...), p.project)
	names := s.tools(t)
	if !slices.Contains(names, "echo") || slices.ContainsFunc(names, func(n string) bool { return n != "echo" && !strings.HasPrefix(n, "get-") }) {
		t.Errorf("listed are %q", names)
	}
	s.served(t, "echo", map[string]any{"message": "hello"}, "hello")
	_, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "trigger-long-running-operation"})
	if told, is := errors.AsType[*jsonrpc.Error](err); !is || told.Code != jsonrpc.CodeInvalidParams || !strings.Contains(told.Message, "Unknown tool") {
		t.Errorf("a tool that is not listed: %v", err)
	}
	s.end(t)

	static, err := stock.StaticServer()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("static-go/profile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guarded := p.base + "/guarded.yaml"
	write(t, guarded, string(text)+"\nguard: {pins: off, tools: [read_*]}\n")
	g := connect(t, p.command(in(guarded)(t, static, p.project)...))
	if names := g.tools(t); !slices.Equal(names, []string{"read_note"}) {
		t.Errorf("listed are %q", names)
	}
	g.end(t)
	pure(t, p.command(in(guarded)(t, static, p.project)...))
}
