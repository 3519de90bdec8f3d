package nettest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stockade/examples/stock"
	"stockade/nettest"
)

// browserFetcher is a server that looks at an address's scheme only, and then has a browser
// of its own library's choice load it: here Debian's, in the place where the library looks.
func browserFetcher(t *testing.T) program {
	t.Helper()
	words, err := stock.Server{Alias: "fetcher", Entry: "build/index.js"}.Command()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := stock.Folder()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "node_modules", "playwright-core", "browsers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Browsers []struct{ Name, Revision string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	base, script := t.TempDir(), ""
	inner := map[string]string{"amd64": "chrome-headless-shell-linux64", "arm64": "chrome-headless-shell-linux-arm64"}[runtime.GOARCH]
	for _, b := range list.Browsers {
		if b.Name != "chromium-headless-shell" {
			continue
		}
		dir := filepath.Join(base, "chromium_headless_shell-"+b.Revision, inner)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		script = filepath.Join(dir, "chrome-headless-shell")
		text := "#!/bin/sh\nexec " + chromium + " " + noZygote + " \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return program{
		words: words,
		env:   map[string]string{"PLAYWRIGHT_BROWSERS_PATH": base, "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS": "1"},
		read:  append([]string{base}, browserFiles(t)...), exec: append([]string{script}, browserPrograms...), broad: []string{"/proc"},
	}
}

// TestBrowserFetchServer holds the report about fetcher-mcp: one address or a list of them,
// each opened without a look at where it leads; and what a page loads by itself.
func TestBrowserFetchServer(t *testing.T) {
	n := nettest.Get(t)
	needChromium(t)
	one := func(t *testing.T, s *session, address string) string {
		t.Helper()
		return s.call(t, "fetch_url", map[string]any{"url": address, "extractContent": false, "timeout": 20000})
	}
	const page = "http://" + nettest.DataName
	inner := []struct {
		address string
		place   nettest.Place
	}{
		{"http://127.0.0.1:8000/", nettest.Loopback},
		{"http://169.254.169.254/latest/", nettest.Metadata},
		{"http://[::ffff:10.0.0.5]/", nettest.Private},
		{page + "/to?url=http://10.0.0.5/", nettest.Private},
	}

	mark := n.Mark(t)
	s := connect(t, plain{}.Command(t, browserFetcher(t), ""))
	for _, in := range inner {
		if got := one(t, s, in.address); !strings.Contains(got, "greetings from "+string(in.place)) {
			t.Errorf("%s, outside: got %q, want the page of %s", in.address, got, in.place)
		}
	}
	if got := one(t, s, page+"/page?url=http://10.0.0.5/inner"); !strings.Contains(got, nettest.Greeting(nettest.Public, nettest.DataName)) {
		t.Errorf("a page with a picture from inside, outside: got %q", got)
	}
	s.end(t)
	if !n.Reached(t, mark, nettest.Private) {
		t.Error("outside: nothing was reached")
	}

	mark = n.Mark(t)
	s = connect(t, jailed{}.Command(t, browserFetcher(t), "egress: public"))
	for _, in := range inner {
		if got := one(t, s, in.address); !strings.Contains(got, browserDenied) || strings.Contains(got, "greetings") {
			t.Errorf("%s, inside: got %q, want %s", in.address, got, browserDenied)
		}
	}
	batch := s.call(t, "fetch_urls", map[string]any{
		"urls": []string{page + "/", "http://127.0.0.1:8000/"}, "extractContent": false, "timeout": 20000,
	})
	if !strings.Contains(batch, nettest.Greeting(nettest.Public, nettest.DataName)) || !strings.Contains(batch, browserDenied) {
		t.Errorf("a list, inside: got %q, want one page and %s", batch, browserDenied)
	}
	if got := one(t, s, page+"/page?url=http://10.0.0.5/inner"); !strings.Contains(got, nettest.Greeting(nettest.Public, nettest.DataName)) {
		t.Errorf("a page with a picture from inside: got %q", got)
	}
	s.end(t)
	n.Untouched(t, mark, nettest.Inside...)
}
