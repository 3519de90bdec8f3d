package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/profiles/hostconfig"
)

// hostsOf writes one file for each of 18 hosts whose servers are a table in JSON, with servers
// of the kinds that people have, and returns how many servers there are.
func hostsOf(tb testing.TB, home string, servers int) int {
	tb.Helper()
	lines := []string{
		`"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/project"]`,
		`"command": "uvx", "args": ["mcp-server-time"]`,
		`"command": "node", "args": ["/srv/own/index.js"], "env": {"API_TOKEN": "x"}`,
		`"url": "https://mcp.example/mcp"`,
		`"command": "docker", "args": ["run", "-i", "x"]`,
	}
	in := hostconfig.Folders{Home: home, Config: filepath.Join(home, ".config")}
	files, written := 0, 0
	for _, h := range hostconfig.Hosts {
		for i := range h.Files {
			p := &h.Files[i]
			path := p.File(&in)
			if files == 18 || p.Scope != hostconfig.User || p.Format != hostconfig.JSON || len(p.Shapes) == 0 || strings.Contains(path, "*") ||
				len(p.Shapes[0].Path) != 1 || p.Shapes[0].List || p.Shapes[0].Keys.Args == "" {
				continue
			}
			var b strings.Builder
			fmt.Fprintf(&b, "{%q: {", p.Shapes[0].Path[0])
			for n := 0; written < servers && (n < servers/18+1); n++ {
				if n > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "\"s%d\": {%s}", n, lines[written%len(lines)])
				written++
			}
			b.WriteString("}}\n")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				tb.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				tb.Fatal(err)
			}
			files++
			break
		}
	}
	if files == 0 || written != servers {
		tb.Fatalf("%d files with %d servers", files, written)
	}
	return files
}

// BenchmarkStatus: every file of the hosts of one machine, before and after wrapping.
func BenchmarkStatus(b *testing.B) {
	home := b.TempDir()
	b.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		b.Setenv(name, "")
	}
	files := hostsOf(b, home, 60)
	std := stdio{in: bytes.NewReader(nil), out: io.Discard, err: io.Discard}
	b.Run(fmt.Sprintf("open-%d-files", files), func(b *testing.B) {
		for b.Loop() {
			if err := runStatus(&statusOptions{}, nil, std); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := runWrap(&hostOptions{yes: true}, nil, std); err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("jailed-%d-files", files), func(b *testing.B) {
		for b.Loop() {
			if err := runStatus(&statusOptions{}, nil, std); err != nil {
				b.Fatal(err)
			}
		}
	})
}
