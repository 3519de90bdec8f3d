package hostconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles/hostconfig"
)

// place returns a known host's place by the file's name.
func place(t testing.TB, file string) hostconfig.Place {
	t.Helper()
	_, p, ok := hostconfig.Recognise(file)
	if !ok {
		t.Fatalf("%s: no host reads a file of this name", file)
	}
	return p
}

// wrapAll wraps every entry that is a command without a launcher and without a refusal.
func wrapAll(t testing.TB, f *hostconfig.File) ([]byte, []hostconfig.Ref) {
	t.Helper()
	var edits []hostconfig.Edit
	var refs []hostconfig.Ref
	for _, s := range f.Servers {
		if s.Kind == hostconfig.Command && s.Refusal == nil && s.Wrapped == nil {
			edits = append(edits, hostconfig.Edit{Ref: s.Ref, Launcher: "stockade"})
			refs = append(refs, s.Ref)
		}
	}
	out, err := f.Wrap(edits...)
	if err != nil {
		t.Fatal(err)
	}
	return out, refs
}

// roundTrip wraps everything, twice, and takes it away again.
func roundTrip(t testing.TB, file string, src []byte, p hostconfig.Place) []byte {
	t.Helper()
	f, err := hostconfig.Parse(file, src, p)
	if err != nil {
		t.Fatal(err)
	}
	once, refs := wrapAll(t, f)
	wrapped, err := hostconfig.Parse(file, once, p)
	if err != nil {
		t.Fatalf("the wrapped file: %v", err)
	}
	for i, s := range wrapped.Servers {
		before := f.Servers[i]
		if s.Kind != before.Kind || s.Ref != before.Ref || (s.Refusal == nil) != (before.Refusal == nil) {
			t.Errorf("%s: %v %v became %v %v", file, before.Ref, before.Kind, s.Ref, s.Kind)
		}
		if s.Refusal == nil {
			if diff := cmp.Diff(before.Own(), s.Own()); diff != "" {
				t.Errorf("%s: %s: the server's own command line changed (-before +after):\n%s", file, s.Name, diff)
			}
		}
		if s.Kind == hostconfig.Command && s.Refusal == nil && s.Wrapped == nil {
			t.Errorf("%s: %s is not wrapped", file, s.Name)
		}
	}
	var again []hostconfig.Edit
	for _, ref := range refs {
		again = append(again, hostconfig.Edit{Ref: ref, Launcher: "/other/stockade", Words: []string{"--profile", "p"}})
	}
	twice, err := wrapped.Wrap(again...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(once), string(twice)); diff != "" {
		t.Errorf("%s: wrapping twice changed (-once +twice):\n%s", file, diff)
	}
	back, err := wrapped.Unwrap(refs...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(src), string(back)); diff != "" {
		t.Errorf("%s: unwrapping gave other bytes (-before +after):\n%s", file, diff)
	}
	return once
}

type layout struct{ name, file, before, after string }

// entry puts an entry's members into a file of Claude Code.
func entry(members string) string { return `{"mcpServers":{"a":{` + members + `}}}` }

var jsonLayouts = []layout{
	{"words in one line", ".mcp.json", entry(`"command": "npx", "args": ["-y", "x"]`), entry(`"command": "stockade", "args": ["run", "--", "npx", "-y", "x"]`)},
	{
		"words in lines", ".mcp.json",
		entry("\n  \"command\": \"npx\",\n  \"args\": [\n    \"-y\",\n    \"x\"\n  ]\n"),
		entry("\n  \"command\": \"stockade\",\n  \"args\": [\n    \"run\",\n    \"--\",\n    \"npx\",\n    \"-y\",\n    \"x\"\n  ]\n"),
	},
	{
		"CRLF, a mark and a trailing comma", ".mcp.json",
		"\xef\xbb\xbf" + entry("\r\n\t\"command\": \"npx\",\r\n\t\"args\": [\r\n\t\t\"x\",\r\n\t],\r\n"),
		"\xef\xbb\xbf" + entry("\r\n\t\"command\": \"stockade\",\r\n\t\"args\": [\r\n\t\t\"run\",\r\n\t\t\"--\",\r\n\t\t\"npx\",\r\n\t\t\"x\",\r\n\t],\r\n"),
	},
	{"empty list", ".mcp.json", entry(`"command": "x", "args": []`), entry(`"command": "stockade", "args": ["run", "--", "x"]`)},
	{"empty list with a blank", ".mcp.json", entry(`"command": "x", "args": [ ]`), entry(`"command": "stockade", "args": ["run", "--", "x" ]`)},
	{"empty list with a comment", ".mcp.json", entry(`"command": "x", "args": [ /* none */ ]`), entry(`"command": "stockade", "args": ["run", "--", "x" /* none */ ]`)},
	{"no list", ".mcp.json", entry(`"command": "x", "cwd": "/"`), entry(`"command": "stockade", "args": [ "run", "--", "x"], "cwd": "/"`)},
	{"no list, in lines", ".mcp.json", entry("\n    \"type\": \"stdio\",\n    \"command\": \"x\" // why\n"), entry("\n    \"type\": \"stdio\",\n    \"command\": \"stockade\",\n    \"args\": [ \"run\", \"--\", \"x\"] // why\n")},
	{"no list, minified", ".mcp.json", entry(`"command":"x"`), entry(`"command":"stockade","args":[ "run", "--", "x"]`)},
	{"no list, a trailing comma", ".mcp.json", entry(`"command": "x",`), entry(`"command": "stockade", "args": [ "run", "--", "x"],`)},
	{"words first", ".mcp.json", entry(`"args":["y"],"command":"x"`), entry(`"args":["run", "--", "x", "y"],"command":"stockade"`)},
	{"escapes", ".mcp.json", entry(`"command": "C:\\x\\\u0041.exe", "args": ["\u002d"]`), entry(`"command": "stockade", "args": ["run", "--", "C:\\x\\\u0041.exe", "\u002d"]`)},
	{"comments in the list", ".mcp.json", entry("\"command\": \"x\", \"args\": [ // one\n  /* two */ \"y\", // three\n]"), entry("\"command\": \"stockade\", \"args\": [ // one\n  /* two */ \"run\", \"--\", \"x\", \"y\", // three\n]")},
	{"placeholders", ".vscode/mcp.json", `{"servers":{"a":{"command":"${input:x}","args":["${workspaceFolder}/y"]}}}`, `{"servers":{"a":{"command":"stockade","args":["run", "--", "${input:x}", "${workspaceFolder}/y"]}}}`},
	{"one list", "opencode.json", `{"mcp":{"a":{"command":["nix","run","--"]}}}`, `{"mcp":{"a":{"command":["stockade", "run", "--", "nix","run","--"]}}}`},
	{"one list, second version", "opencode.json", `{"mcp":{"timeout":{},"servers":{"a":{"command":["x"]}}}}`, `{"mcp":{"timeout":{},"servers":{"a":{"command":["stockade", "run", "--", "x"]}}}}`},
	{"one list, a server called servers", "opencode.json", `{"mcp":{"servers":{"type":"local","command":["x"]}}}`, `{"mcp":{"servers":{"type":"local","command":["stockade", "run", "--", "x"]}}}`},
	{"nested", ".zed/settings.json", `{"context_servers":{"a":{"command":{"path":"x","args":["y"],"env":null},"settings":{}}}}`, `{"context_servers":{"a":{"command":{"path":"stockade","args":["run", "--", "x", "y"],"env":null},"settings":{}}}}`},
	{"nested, no list", ".zed/settings.json", `{"context_servers":{"a":{"command":{"path":"x"}}}}`, `{"context_servers":{"a":{"command":{"path":"stockade","args":[ "run", "--", "x"]}}}}`},
	{"a flat key", ".amp/settings.json", `{"amp.mcpServers":{"a":{"command":"x","args":["y"]}}}`, `{"amp.mcpServers":{"a":{"command":"stockade","args":["run", "--", "x", "y"]}}}`},
	{"by project", "/home/u/.claude.json", `{"projects":{"/p":{"mcpServers":{"a":{"command":"x","args":[]}}},"/q":{"mcpServers":{"a":{"command":"y","args":[]}}}},"mcpServers":{"a":{"command":"z","args":[]}}}`, `{"projects":{"/p":{"mcpServers":{"a":{"command":"stockade","args":["run", "--", "x"]}}},"/q":{"mcpServers":{"a":{"command":"stockade","args":["run", "--", "y"]}}}},"mcpServers":{"a":{"command":"stockade","args":["run", "--", "z"]}}}`},
	{"the launcher's own name, but no run", ".mcp.json", entry(`"command":"stockade","args":["run","x"]`), entry(`"command":"stockade","args":["run", "--", "stockade", "run","x"]`)},
	{"wrapped by hand", ".mcp.json", entry(`"command":"/opt/bin/stockade","args":["run","--profile","p","--","x"]`), entry(`"command":"/opt/bin/stockade","args":["run","--profile","p","--","x"]`)},
	{"nothing to wrap", ".mcp.json", `{"mcpServers":{"a":{"url":"https://mcp.example.com"},"b":{"link":"x"},"c":{"enabled":false}}}`, `{"mcpServers":{"a":{"url":"https://mcp.example.com"},"b":{"link":"x"},"c":{"enabled":false}}}`},
	{"no servers", ".mcp.json", "{\"mcpServers\": {}, \"_comment\": \"\u2014\"} ", "{\"mcpServers\": {}, \"_comment\": \"\u2014\"} "},
}

func testLayouts(t *testing.T, layouts []layout) {
	t.Helper()
	for _, tt := range layouts {
		t.Run(tt.name, func(t *testing.T) {
			got := roundTrip(t, tt.file, []byte(tt.before), place(t, tt.file))
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Errorf("wrapped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLayoutsJSON(t *testing.T) { testLayouts(t, jsonLayouts) }
