package examples_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stockade/examples/stock"
)

// greeting is the tool of the remote server.
type greeting struct {
	Name string `json:"name"`
}

// remote is an MCP server of the official SDK on a port of loopback.
type remote struct {
	*httptest.Server
	requests atomic.Int64
}

// remoteServer serves the protocol's streamable transport.
func remoteServer(t *testing.T) *remote {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "greets"},
		func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
		})
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	r := &remote{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.requests.Add(1)
		serve.ServeHTTP(w, request)
	}))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *remote) address() string { return r.Listener.Addr().(*net.TCPAddr).String() }

func TestRemote(t *testing.T) {
	r := remoteServer(t)
	p := newPlace(t)
	command, err := stock.Remote.Command(r.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	greets := func(s *session) {
		t.Helper()
		if got := s.tools(t); !slices.Equal(got, []string{"greet"}) {
			t.Errorf("the server lists %q", got)
		}
		s.served(t, "greet", map[string]any{"name": "harbour"}, "hello harbour")
		s.end(t)
	}

	greets(connect(t, p.command(jailWith("--egress", r.address())(t, command...)...)))
	p.onlyOwn(t)
	logins, err := filepath.Glob(p.home + "/.local/share/stockade/homes/mcp-remote+*/mcp-auth")
	if err != nil || len(logins) != 1 {
		t.Errorf("the private home keeps logins in %q (%v)", logins, err)
	}

	// By the profile alone, or with a flag for another port, nothing is reached.
	before := r.requests.Load()
	_, alone := output(t, p.command(in("")(t, command...)...), 1)
	want := fmt.Sprintf("stockade: warning: argument 1 of the server names %s, and network.egress does not let it out; to allow it, add \"--egress %[1]s\"\n", r.address())
	if !strings.HasPrefix(alone, want) || !strings.Contains(alone, "EAFNOSUPPORT") {
		t.Errorf("standard error holds %q, want %q and an errno", alone, want)
	}
	_, other := output(t, p.command(jailWith("--egress", "127.0.0.1:1")(t, command...)...), 1)
	want = fmt.Sprintf("to allow it, add %q to network.egress", r.address())
	if !strings.Contains(other, want) || !strings.Contains(other, "EACCES") {
		t.Errorf("standard error holds %q, want %q and an errno", other, want)
	}
	if n := r.requests.Load() - before; n != 0 {
		t.Errorf("%d requests came out of the jail", n)
	}
	p.onlyOwn(t)

	greets(connect(t, p.command(free(t, command...)...)))
}
