// Package stock finds the programs that tests and measurements run: the pinned stock MCP
// servers, a node to run them, and the stockade binary under test.
//
// The servers are pinned by testdata/servers/package-lock.json and installed by
// `make servers`; nothing here installs or downloads anything. A program that is not
// there is an error that says how to get it, never a reason to skip.
//
// Three variables replace the search, for runs away from the checkout:
//
//	STOCKADE_SERVERS    folder that holds the installed node_modules
//	STOCKADE_BIN        the stockade binary
//	STOCKADE_STATIC_GO  the built server of examples/static-go
package stock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Search says what a file server's search_files takes as its pattern.
type Search uint8

const (
	// SearchPart matches a part of a name, letter case ignored.
	SearchPart Search = iota
	// SearchGlob matches the path below the start with minimatch.
	SearchGlob
)

// Server is one pinned server.
type Server struct {
	Alias   string // folder below node_modules
	Version string
	Entry   string // script below the alias
	Node    int    // the node major it is run with; 0: the machine's when it is new enough
	Search  Search // file servers only
}

// The pinned servers. The file server's versions are numbered out of order: 2.0.1 is the
// newest of them (2026-10) and 0.6.2 the oldest (2024-12).
var (
	Filesystem062      = Server{Alias: "fs-0.6.2", Version: "0.6.2", Entry: "dist/index.js"}
	Filesystem051      = Server{Alias: "fs-0.5.1", Version: "0.5.1", Entry: "dist/index.js"}
	Filesystem20250821 = Server{Alias: "fs-2025.8.21", Version: "2025.8.21", Entry: "dist/index.js"}
	Filesystem20260831 = Server{Alias: "fs-2026.8.31", Version: "2026.8.31", Entry: "dist/index.js", Search: SearchGlob}
	Filesystem201      = Server{Alias: "fs-2.0.1", Version: "2.0.1", Entry: "dist/index.js", Node: 24, Search: SearchGlob}
	Memory             = Server{Alias: "memory", Version: "2026.8.31", Entry: "dist/index.js"}
	Everything         = Server{Alias: "everything", Version: "2026.8.31", Entry: "dist/index.js"}
	SequentialThinking = Server{Alias: "sequential-thinking", Version: "2026.8.31", Entry: "dist/index.js"}
	GitHub             = Server{Alias: "github-mcp", Version: "2025.4.8", Entry: "dist/index.js"}
	GitLab             = Server{Alias: "gitlab-mcp", Version: "2025.4.25", Entry: "dist/index.js"}
	BraveReference     = Server{Alias: "brave-search", Version: "0.6.2", Entry: "dist/index.js"}
	Brave              = Server{Alias: "brave-mcp", Version: "2.1.4", Entry: "dist/index.js"}
	Slack              = Server{Alias: "slack-mcp", Version: "2025.4.25", Entry: "dist/index.js"}
	Context7           = Server{Alias: "context7", Version: "4.1.1", Entry: "dist/index.js"}
	Notion             = Server{Alias: "notion", Version: "2.5.2", Entry: "bin/cli.mjs"}
	Firecrawl          = Server{Alias: "firecrawl", Version: "3.22.2", Entry: "dist/index.js"}
	Tavily             = Server{Alias: "tavily", Version: "0.2.22", Entry: "build/index.js"}
	Exa                = Server{Alias: "exa", Version: "3.4.1", Entry: "dist/stdio.cjs"}
	Sentry             = Server{Alias: "sentry", Version: "0.36.0", Entry: "dist/index.js"}
	Supabase           = Server{Alias: "supabase", Version: "0.13.0", Entry: "dist/cli.js"}
	Postgres           = Server{Alias: "postgres-mcp", Version: "0.6.2", Entry: "dist/index.js"}
	Puppeteer          = Server{Alias: "puppeteer-mcp", Version: "2025.5.12", Entry: "dist/index.js"}
	Playwright         = Server{Alias: "playwright-mcp", Version: "0.0.83", Entry: "cli.js"}
	ChromeDevTools     = Server{Alias: "chrome-devtools", Version: "1.11.0", Entry: "build/src/bin/chrome-devtools-mcp.js"}
	DesktopCommander   = Server{Alias: "desktop-commander", Version: "0.2.52", Entry: "dist/index.js"}
	Remote             = Server{Alias: "mcp-remote", Version: "0.15.1", Entry: "dist/proxy.js"}
	Kubernetes         = Server{Alias: "kubernetes", Version: "4.1.7", Entry: "dist/index.js"}
	// Inspector is not a server: the command line client of the protocol's inspector.
	Inspector = Server{Alias: "inspector", Version: "0.15.0", Entry: "cli/build/index.js"}
)

// Filesystems are the file servers that the race runs, oldest first. Their checks differ:
// research into them found a bare prefix test, a resolved path, a component walk, and
// anchored writes.
var Filesystems = []Server{Filesystem062, Filesystem20250821, Filesystem20260831, Filesystem201}

// oldestNode is the node major below which the machine's own node is not used: the
// pinned servers were measured on 20 and 24.
const oldestNode = 20

// Command returns the command line of the server: node, its script, and args. All paths
// are absolute and free of links.
func (s Server) Command(args ...string) ([]string, error) {
	entry, err := s.Script()
	if err != nil {
		return nil, err
	}
	node, err := Node(s.Node)
	if err != nil {
		return nil, err
	}
	return append([]string{node, entry}, args...), nil
}

// Script returns the real path of the server's script.
func (s Server) Script() (string, error) {
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	entry, err := filepath.EvalSymlinks(filepath.Join(folder, "node_modules", s.Alias, s.Entry))
	if err != nil {
		return "", fmt.Errorf("finding server %s (run make servers): %w", s.Alias, err)
	}
	return entry, nil
}

// GoServer returns the real path of a server of testdata/goservers, which .ci/servers builds.
func GoServer(name string) (string, error) {
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	file, err := filepath.EvalSymlinks(filepath.Join(folder, "go", name))
	if err != nil {
		return "", fmt.Errorf("finding server %s (run make servers): %w", name, err)
	}
	return file, nil
}

// Folder returns the real path of the folder that holds the installed node_modules.
func Folder() (string, error) {
	folder := os.Getenv("STOCKADE_SERVERS")
	if folder == "" {
		root, err := Checkout()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(root, ".tools", "servers")
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", fmt.Errorf("finding the installed servers (run make servers): %w", err)
	}
	return real, nil
}

// Checkout returns the folder of the module, found upwards from the working folder.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the checkout: no go.mod above the working folder")
		}
		dir = parent
	}
}

// Node returns the real path of a node binary: the pinned one for major 24, the
// machine's own for 0 when it is at least node 20, else the pinned one.
func Node(major int) (string, error) {
	if major == 0 {
		if node, err := machineNode(); err == nil {
			return node, nil
		}
	} else if major != 24 {
		return "", fmt.Errorf("finding node %d: only node 24 is pinned", major)
	}
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node, err := filepath.EvalSymlinks(filepath.Join(folder, "node_modules", "node24-"+arch, "bin", "node"))
	if err != nil {
		return "", fmt.Errorf("finding the pinned node (run make servers): %w", err)
	}
	return node, nil
}

// machineNode returns the machine's node when it is new enough for every pinned server.
// The answer is kept: asking starts node once.
var machineNode = sync.OnceValues(func() (string, error) {
	found, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("finding node: %w", err)
	}
	node, err := filepath.EvalSymlinks(found)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", found, err)
	}
	out, err := exec.Command(node, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %q for its version: %w", node, err)
	}
	word, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	major, err := strconv.Atoi(word)
	if err != nil {
		return "", fmt.Errorf("reading the version of %q: %w", node, err)
	}
	if major < oldestNode {
		return "", fmt.Errorf("finding node: %q is node %d, need %d", node, major, oldestNode)
	}
	return node, nil
})
