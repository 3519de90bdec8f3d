package stockade_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is what the non-test files of one package may import beside the standard library.
type room struct {
	rooms []string // packages of this module; a trailing / admits all below
	other []string // modules or packages of others
	not   []string // of the standard library
}

// offline are the standard packages that have no business below cmd: the rooms there
// speak to the kernel. plugin and os/exec.. start what nobody granted.
var offline = []string{"net/http", "net/rpc", "net/smtp", "plugin"}

// rooms is the import table: cmd → profiles → sandbox → seccomp, and leaves. An arrow that
// is not listed is a failure. It is kept a second time by depguard in .golangci.yml, for
// editors; this one reads the files itself, so no build cache can hide a broken rule.
var rooms = map[string]room{
	"seccomp": {
		other: []string{
			"github.com/opencontainers/runtime-spec", "github.com/seccomp/libseccomp-golang",
			"github.com/moby/profiles/seccomp", "golang.org/x/sys/unix",
		},
		not: offline,
	},
	"sandbox/program": {other: []string{"golang.org/x/sys/unix"}, not: offline},
	"sandbox/egress": {
		other: []string{
			"golang.org/x/net/dns/dnsmessage", "golang.org/x/net/http2/hpack", "golang.org/x/net/idna", "golang.org/x/sys/unix",
		},
		not: offline,
	},
	"sandbox/supervise": {
		rooms: []string{"sandbox/egress", "sandbox/forecast", "seccomp"},
		other: []string{"golang.org/x/sys/unix", "kernel.org/pub/linux/libs/security/libcap/psx"},
		not:   offline,
	},
	"sandbox/forecast": {other: []string{"golang.org/x/sys/unix"}, not: offline},
	"sandbox/guard":    {other: []string{"github.com/go-json-experiment/json/jsontext"}, not: offline},
	"sandbox": {
		rooms: []string{"sandbox/egress", "sandbox/forecast", "sandbox/guard", "seccomp"},
		other: []string{
			"github.com/landlock-lsm/go-landlock", "github.com/opencontainers/runtime-spec", "golang.org/x/sys/unix",
		},
		not: offline,
	},
	"sandbox/packages":              {other: []string{"github.com/google/renameio/v2", "golang.org/x/sys/unix", "mvdan.cc/sh/v3/syntax"}, not: offline},
	"sandbox/packages/registrytest": {},
	"sandbox/verify": {
		rooms: []string{"sandbox", "sandbox/egress", "seccomp"},
		other: []string{"golang.org/x/sys/unix"},
		not:   offline,
	},
	"sandbox/jailtest": {
		rooms: []string{"sandbox"},
		other: []string{"golang.org/x/sys/unix"},
	},
	"profiles": {
		rooms: []string{"sandbox", "sandbox/egress", "sandbox/guard", "sandbox/program", "seccomp"},
		other: []string{"go.yaml.in/yaml/v4", "github.com/opencontainers/runtime-spec", "github.com/google/jsonschema-go", "github.com/google/renameio/v2"},
		not:   offline,
	},
	"profiles/hostconfig": {
		other: []string{"github.com/pelletier/go-toml/v2", "github.com/tailscale/hujson", "go.yaml.in/yaml/v4"},
		not:   append([]string{"os", "path/filepath"}, offline...),
	},
	"cmd/stockade": {
		rooms: []string{
			"profiles", "profiles/hostconfig", "sandbox", "sandbox/egress", "sandbox/forecast", "sandbox/guard", "sandbox/packages", "sandbox/program",
			"sandbox/supervise", "sandbox/verify", "seccomp",
		},
		other: []string{
			"github.com/urfave/cli/v2", "golang.org/x/term", "golang.org/x/sys/unix", "github.com/opencontainers/runtime-spec",
			"github.com/aymanbagabas/go-udiff", "github.com/google/renameio/v2",
		},
		not: []string{"net/http"},
	},
	"nettest":                  {rooms: []string{"sandbox/jailtest"}, other: []string{"golang.org/x/net/dns/dnsmessage", "golang.org/x/sys/unix"}},
	"examples/stock":           {},
	"race":                     {rooms: []string{"examples/stock"}, other: []string{"golang.org/x/sys/unix"}},
	"examples/filesystem/demo": {rooms: []string{"examples/stock", "race"}},
	"examples/static-go":       {other: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"bench/execonly":           {},
	"bench/firstlist":          {},
}

// source is one Go file of the module.
type source struct {
	path string // relative, with slashes
	dir  string // its package's folder
	file *ast.File
	set  *token.FileSet
	text []byte
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isTool knows programs that `go run` starts by file name and no build includes.
func (s source) isTool() bool {
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if c.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}

// isGenerated knows the marker that go generate's convention sets.
func (s source) isGenerated() bool { return ast.IsGenerated(s.file) }

// skipped are folders that hold no source of ours.
var skipped = []string{".git", ".tools", "bin", "node_modules"}

// walk calls visit with every file of the tree.
func walk(t *testing.T, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, ".test") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(path), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources parses every Go file that belongs to a package.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	set := token.NewFileSet()
	walk(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") || strings.HasPrefix(path, ".") {
			return
		}
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{path: path, dir: filepath.ToSlash(filepath.Dir(path)), file: file, set: set, text: text})
	})
	if len(all) == 0 {
		t.Fatal("found no source: the test must run in the module's folder")
	}
	return all
}

func TestImportTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || s.isTool() {
			continue
		}
		seen[s.dir] = true
		rule, known := rooms[s.dir]
		if !known {
			t.Errorf("%s: package %s is in no room; add it to the table", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := rule.refuses(name); why != "" {
				t.Errorf("%s imports %s: %s", s.path, name, why)
			}
		}
	}
	for dir := range rooms {
		if !seen[dir] {
			t.Errorf("the table has a room %q that does not exist", dir)
		}
	}
}

// refuses says why a room may not import a package; "" when it may.
func (r room) refuses(name string) string {
	if slices.Contains(r.not, name) {
		return "this room does without it"
	}
	if inner, ours := strings.CutPrefix(name, "stockade/"); ours {
		if slices.Contains(r.rooms, inner) {
			return ""
		}
		return "no such arrow between the rooms"
	}
	first, _, _ := strings.Cut(name, "/")
	if !strings.Contains(first, ".") {
		return ""
	}
	for _, allowed := range r.other {
		if name == allowed || strings.HasPrefix(name, allowed+"/") {
			return ""
		}
	}
	return "not in this room's list of modules"
}

func TestImportTableRefuses(t *testing.T) {
	tests := []struct {
		name, dir, imported string
		want                bool
	}{
		{"sandbox and seccomp", "sandbox", "stockade/seccomp", false},
		{"seccomp and sandbox", "seccomp", "stockade/sandbox", true},
		{"sandbox and yaml", "sandbox", "go.yaml.in/yaml/v4", true},
		{"sandbox and net/http", "sandbox", "net/http", true},
		{"sandbox and os", "sandbox", "os", false},
		{"egress and a room", "sandbox/egress", "stockade/sandbox", true},
		{"egress and net", "sandbox/egress", "net", false},
		{"egress and another part of x/net", "sandbox/egress", "golang.org/x/net/http2", true},
		{"guard and a room", "sandbox/guard", "stockade/sandbox", true},
		{"guard and another leaf", "sandbox/guard", "stockade/sandbox/egress", true},
		{"guard and x/sys", "sandbox/guard", "golang.org/x/sys/unix", true},
		{"supervise and the package above", "sandbox/supervise", "stockade/sandbox", true},
		{"supervise and egress", "sandbox/supervise", "stockade/sandbox/egress", false},
		{"program and its parent", "sandbox/program", "stockade/sandbox", true},
		{"profiles and cli", "profiles", "github.com/urfave/cli/v2", true},
		{"cmd and jailtest", "cmd/stockade", "stockade/sandbox/jailtest", true},
		{"cmd and a module with a similar name", "cmd/stockade", "github.com/urfave/cli/v22", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rooms[tt.dir].refuses(tt.imported) != ""; got != tt.want {
				t.Errorf("%s importing %s: refused = %v, want %v", tt.dir, tt.imported, got, tt.want)
			}
		})
	}
}

func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range sources(t) {
		if s.isTest() || s.isTool() {
			continue
		}
		if _, known := comments[s.dir]; !known {
			comments[s.dir] = nil
		}
		if s.file.Doc != nil {
			comments[s.dir] = append(comments[s.dir], s.path)
		}
		if name := s.file.Name.Name; slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "manager", "types"}, name) {
			t.Errorf("%s: a package called %s says nothing about what is in it", s.path, name)
		}
	}
	for dir, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %s has %d package comments, want one: %v", dir, len(files), files)
		}
	}
}

// TestSizes keeps files and functions small enough to be read at one go. Test functions
// may be long: their tables are.
func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.isGenerated() {
			continue
		}
		limit := 400
		if s.isTest() {
			limit = 700
		}
		if lines := bytes.Count(s.text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, limit %d: is there a second idea in it?", s.path, lines, limit)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || s.isTest() {
				continue
			}
			lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if lines > 80 {
				t.Errorf("%s: function %s has %d lines, limit 80", s.path, f.Name.Name, lines)
			}
		}
	}
}

func TestModuleFileHasNoReplace(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod:%d: a replaced module is not what others get", i+1)
		}
	}
}

// pathLetters go on a path; before anything else, a slash begins one.
const pathLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~}*"

// TestNothingOfTheWorkplace looks for paths of one machine, hosts of package registries,
// and loose ends. The words are put together here so that this file does not hold them.
func TestNothingOfTheWorkplace(t *testing.T) {
	words := []string{
		"/wo" + "rk/", "/fa" + "rm/",
		"registry." + "npmjs", "py" + "pi.org", "python" + "hosted", "proxy." + "golang", "deb." + "debian", "sum." + "golang",
		"TO" + "DO", "FIX" + "ME",
	}
	walk(t, func(path string, text []byte) {
		if path == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, word := range words {
				// Inside a longer path the word is anybody's: only a path that begins so is ours.
				at := strings.Index(line, word)
				if at < 0 || word[0] == '/' && at > 0 && strings.ContainsRune(pathLetters, rune(line[at-1])) {
					continue
				}
				t.Errorf("%s:%d: holds %q", path, i+1, word)
			}
		}
	})
}
