package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stockade/examples/stock"
)

func TestGrafana(t *testing.T) {
	const token = "token-of-nobody"
	var requests atomic.Int64
	grafana := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			http.Error(w, "{}", http.StatusUnauthorized)
		case r.URL.Path == "/api/search":
			_, _ = fmt.Fprint(w, `[{"uid": "u1", "title": "The harbour", "type": "dash-db", "url": "/d/u1"}]`) // the client may be gone
		default:
			_, _ = fmt.Fprint(w, "{}")
		}
	}))
	defer grafana.Close()
	address := grafana.Listener.Addr().String()
	server, err := stock.GoServer("mcp-grafana")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	start := func(launch launch) *session {
		cmd := p.command(launch(t, server)...)
		cmd.Env = append(cmd.Env, "GRAFANA_URL="+grafana.URL, "GRAFANA_SERVICE_ACCOUNT_TOKEN="+token, "GRAFANA_USAGE_STATS=off")
		return connect(t, cmd)
	}
	query := map[string]any{"query": "harbour"}

	s := start(jailWith("--egress", address))
	if got := s.tools(t); !slices.Contains(got, "search_dashboards") {
		t.Errorf("the server lists %q", got)
	}
	s.served(t, "search_dashboards", query, "The harbour")
	s.end(t)
	if strings.Contains(s.stderr.String(), token) {
		t.Error("the token is on standard error")
	}
	p.onlyOwn(t)

	before := requests.Load()
	alone := start(in(""))
	alone.denied(t, "search_dashboards", query, "address family not supported by protocol")
	alone.end(t)
	other := start(jailWith("--egress", "127.0.0.1:1"))
	other.denied(t, "search_dashboards", query, "connect: permission denied")
	other.end(t)
	if want := fmt.Sprintf("to allow it, add %q to network.egress", address); !strings.Contains(other.stderr.String(), want) {
		t.Errorf("standard error holds %q, want %q", other.stderr, want)
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests came out of the jail", n)
	}

	outside := start(free)
	outside.served(t, "search_dashboards", query, "The harbour")
	outside.end(t)
}

// goFiles are a module, and one beside it that it needs and that is not granted.
var goFiles = map[string]string{
	"project/go.mod":   "module example.com/harbour\n\ngo 1.24\n\nrequire example.com/quay v0.0.0\n\nreplace example.com/quay => ../quay\n",
	"project/main.go":  "package main\n\nimport (\n\t\"example.com/quay\"\n\t\"fmt\"\n)\n\nfunc main() { fmt.Println(quay.Length, depth()) }\n",
	"project/depth.go": "package main\n\nfunc depth() string { return 5 }\n",
	"quay/go.mod":      "module example.com/quay\n\ngo 1.24\n",
	"quay/quay.go":     "package quay\n\nconst Length = 5\n",
}

func TestGopls(t *testing.T) {
	server, err := stock.GoServer("gopls")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command("go", "env", "GOROOT", "GOTOOLDIR").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(said))
	if len(words) != 2 {
		t.Fatalf("go env says %q", said)
	}
	root, tools := words[0], words[1]
	p := newPlace(t)
	for name, text := range goFiles {
		path := filepath.Join(p.base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	start := func(launch launch) *session {
		cmd := p.command(launch(t, server, "mcp")...)
		cmd.Env = append(cmd.Env, "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "PATH="+root+"/bin:/usr/bin:/bin")
		s := connect(t, cmd)
		s.ending = followed // by the monitor of its crashes
		return s
	}
	problems := map[string]any{"files": []string{filepath.Join(p.project, "main.go"), filepath.Join(p.project, "depth.go")}}
	const own, foreign = "cannot use 5 (untyped int constant) as string value", "example.com/quay"

	s := start(jailWith("--read", root, "--exec", root+"/bin/go", "--exec", tools+"/compile"))
	if got := s.tools(t); !slices.Contains(got, "go_diagnostics") {
		t.Errorf("the server lists %q", got)
	}
	s.served(t, "go_workspace", map[string]any{}, "module example.com/harbour")
	s.served(t, "go_diagnostics", problems, own)
	s.served(t, "go_diagnostics", problems, foreign)
	s.end(t)
	p.onlyOwn(t)

	outside := start(free)
	text, failed := outside.call(t, "go_diagnostics", problems)
	if failed || !strings.Contains(text, own) || strings.Contains(text, foreign) {
		t.Errorf("outside the jail: got %q (failed: %v)", text, failed)
	}
	outside.end(t)
}
