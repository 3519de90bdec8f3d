package examples_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stockade/examples/stock"
)

// jailWith starts a server in the jail of the built-in profile that matches, with flags.
func jailWith(flags ...string) launch {
	return func(t *testing.T, words ...string) []string {
		t.Helper()
		line := in("")(t, words...)
		at := slices.Index(line, "--")
		return slices.Concat(line[:at], flags, line[at:])
	}
}

// stop ends a server that does not end with its input.
func (s *session) stop(t *testing.T) {
	t.Helper()
	s.ending = bySignal
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	s.end(t)
}

// said waits for a line on the server's standard error, speaking to the server meanwhile, and
// returns what follows its beginning.
func (s *session) said(t *testing.T, begin string) string {
	t.Helper()
	for range 10000 {
		for line := range strings.Lines(s.stderr.String()) {
			if rest, found := strings.CutPrefix(line, begin); found && strings.HasSuffix(line, "\n") {
				return rest
			}
		}
		if err := s.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("standard error has no line %q:\n%s", begin, s.stderr)
	return ""
}

// offline are the servers that need no network and no secret.
var offline = []struct {
	profile string
	server  stock.Server
	words   []string
	tools   []string
	tool    string
	args    map[string]any
	want    string
	ending  ending
}{
	{
		"memory", stock.Memory, nil,
		[]string{"create_entities", "read_graph", "delete_entities"},
		"create_entities",
		map[string]any{"entities": []map[string]any{{"name": "harbour", "entityType": "place", "observations": []string{}}}},
		"harbour", byItself,
	},
	{
		"sequential-thinking", stock.SequentialThinking, nil,
		[]string{"sequentialthinking"},
		"sequentialthinking",
		map[string]any{"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1},
		"thoughtHistoryLength", byItself,
	},
	{
		"everything", stock.Everything,
		[]string{"stdio"},
		[]string{"echo", "get-env", "gzip-file-as-resource"},
		"echo",
		map[string]any{"message": "hello"},
		"hello", bySignal,
	},
}

// TestOfflineServers runs each in the jail of its built-in profile with a package in it whose
// author has turned: the server works, and what the package tries is refused. Outside, the
// same package has all of it.
func TestOfflineServers(t *testing.T) {
	for _, tt := range offline {
		t.Run(tt.profile, func(t *testing.T) {
			p := newPlace(t)
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			turned := filepath.Join(p.base, "turned.js")
			code, err := os.ReadFile(filepath.Join("testdata", "turned.js"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, turned, string(code))
			targets, err := json.Marshal(map[string]any{
				"secret": p.secret, "home": p.home, "project": p.project, "port": listener.Addr().(*net.TCPAddr).Port,
			})
			if err != nil {
				t.Fatal(err)
			}
			command, err := tt.server.Command(tt.words...)
			if err != nil {
				t.Fatal(err)
			}
			load := []string{"NODE_OPTIONS=--require=" + turned, "TURNED=" + string(targets)}
			start := func(launch launch, env ...string) *session {
				cmd := p.command(launch(t, command...)...)
				cmd.Env = append(append(cmd.Env, "AWS_SECRET_ACCESS_KEY="+secretText), env...)
				return connect(t, cmd)
			}
			try := func(s *session, want map[string]string) {
				t.Helper()
				listed := s.tools(t)
				for _, tool := range tt.tools {
					if !slices.Contains(listed, tool) {
						t.Errorf("the server lists no %s, but %q", tool, listed)
					}
				}
				s.served(t, tt.tool, tt.args, tt.want)
				var got map[string]string
				if err := json.Unmarshal([]byte(s.said(t, "turned: ")), &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("what became of its attempts (-want +got):\n%s", diff)
				}
				if tt.ending == bySignal {
					s.stop(t)
				} else {
					s.end(t)
				}
			}
			try(start(jailWith("--read", turned, "--env", load[0], "--env", load[1])), map[string]string{
				"read": "EACCES", "list": "EACCES", "write": "EACCES", "replace": "EACCES", "start": "EACCES",
				"connect": "EAFNOSUPPORT", "inherit": "absent",
			})
			p.onlyOwn(t)
			if _, err := os.Lstat(filepath.Join(p.project, "turned.txt")); err == nil {
				t.Error("the project holds a new file")
			}
			if tt.server.Alias == stock.Memory.Alias {
				// It would write into its own package, which is everybody's here.
				load = append(load, "MEMORY_FILE_PATH="+filepath.Join(p.home, "memory.jsonl"))
			}
			writable := "done"
			if script, err := tt.server.Script(); err != nil || syscall.Access(script, 2) != nil { // W_OK
				writable = "EACCES" // the servers are somebody else's
			}
			try(start(free, load...), map[string]string{
				"read": "done", "list": "done", "write": "done", "replace": writable, "start": "done", "connect": "done", "inherit": "done",
			})
		})
	}
}

// TestMemoryProfile: what the built-in profile keeps, and that neither the host's environment
// nor a flag leads the server to another file without a grant.
func TestMemoryProfile(t *testing.T) {
	p := newPlace(t)
	startup := filepath.Join(p.home, ".bashrc")
	write(t, startup, "")
	command, err := stock.Memory.Command()
	if err != nil {
		t.Fatal(err)
	}
	start := func(launch launch) *session {
		cmd := p.command(launch(t, command...)...)
		cmd.Env = append(cmd.Env, "MEMORY_FILE_PATH="+startup)
		return connect(t, cmd)
	}
	entity := func(name string) map[string]any {
		return map[string]any{"entities": []map[string]any{{"name": name, "entityType": "place", "observations": []string{"lies in the north"}}}}
	}
	untouched := func() {
		t.Helper()
		if got, err := os.ReadFile(startup); err != nil || len(got) != 0 {
			t.Errorf("the start-up file became %q (%v)", got, err)
		}
	}

	s := start(in(""))
	s.served(t, "create_entities", entity("harbour"), "harbour")
	s.end(t)
	untouched()
	kept, err := filepath.Glob(p.home + "/.local/share/stockade/homes/memory+*/memory.jsonl")
	if err != nil || len(kept) != 1 {
		t.Errorf("the private home keeps %q (%v), want one memory.jsonl", kept, err)
	}
	again := start(in(""))
	again.served(t, "search_nodes", map[string]any{"query": "north"}, "harbour")
	again.end(t)

	led := start(jailWith("--env", "MEMORY_FILE_PATH="+startup))
	led.refused(t, "create_entities", entity("owned"), "EACCES")
	led.end(t)
	untouched()

	granted := filepath.Join(p.base, "granted")
	if err := os.Mkdir(granted, 0o700); err != nil {
		t.Fatal(err)
	}
	own := start(jailWith("--write", granted, "--env", "MEMORY_FILE_PATH="+filepath.Join(granted, "graph.jsonl")))
	own.served(t, "create_entities", entity("quay"), "quay")
	own.end(t)
	if got, err := os.ReadFile(filepath.Join(granted, "graph.jsonl")); err != nil || !strings.Contains(string(got), "quay") {
		t.Errorf("the granted file holds %q (%v)", got, err)
	}

	outside := start(free)
	outside.served(t, "create_entities", entity("owned"), "owned")
	outside.end(t)
	if got, err := os.ReadFile(startup); err != nil || !strings.Contains(string(got), "owned") {
		t.Errorf("outside the jail the start-up file became %q (%v)", got, err)
	}
}

// TestEverythingProfile: the tool that prints the environment has no secret to print, and the
// one that fetches whatever it is told fetches nothing.
func TestEverythingProfile(t *testing.T) {
	p := newPlace(t)
	var fetched atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = fmt.Fprint(w, insideText) // the client may be gone
	}))
	defer web.Close()
	command, err := stock.Everything.Command("stdio")
	if err != nil {
		t.Fatal(err)
	}
	start := func(launch launch) *session {
		cmd := p.command(launch(t, command...)...)
		cmd.Env = append(cmd.Env, "AWS_SECRET_ACCESS_KEY="+secretText)
		return connect(t, cmd)
	}
	zip := func(address string) map[string]any {
		return map[string]any{"name": "a.gz", "data": address, "outputType": "resource"}
	}

	s := start(in(""))
	env, failed := s.call(t, "get-env", map[string]any{})
	if failed || !strings.Contains(env, `"LANG": "C.UTF-8"`) || strings.Contains(env, "AWS_SECRET") || strings.Contains(env, secretText) {
		t.Errorf("the jailed environment is %s (failed: %v)", env, failed)
	}
	s.holds(t, "gzip-file-as-resource", zip("data:text/plain,hello"))
	s.refused(t, "gzip-file-as-resource", zip(web.URL), "fetch failed")
	s.stop(t)
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d requests came out of the jail", n)
	}
	p.onlyOwn(t)

	outside := start(free)
	outside.served(t, "get-env", map[string]any{}, secretText)
	outside.holds(t, "gzip-file-as-resource", zip(web.URL))
	outside.stop(t)
	if n := fetched.Load(); n != 1 {
		t.Errorf("%d requests came from outside the jail, want 1", n)
	}
}

// holds calls a tool that must answer with a resource.
func (s *session) holds(t *testing.T, tool string, args map[string]any) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v; stderr:\n%s", tool, err, s.stderr)
	}
	for _, content := range result.Content {
		if resource, ok := content.(*mcp.EmbeddedResource); ok && !result.IsError && len(resource.Resource.Blob) > 0 {
			return
		}
	}
	t.Errorf("%s: no resource came (failed: %v)", tool, result.IsError)
}
