package program

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func FuzzHashbang(f *testing.F) {
	for _, seed := range []string{
		"#!/bin/sh\n", "#!/bin/sh", "#! /usr/bin/env node\n", "#!\n", "#!", "#!a b\x00c\n",
		"#!" + strings.Repeat("a", 300), "#!/x " + strings.Repeat(" ", 300),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		if !isHashbang(head) {
			return
		}
		line, err := parseHashbang(head)
		if err != nil {
			return
		}
		if line.interpreter == "" || strings.ContainsAny(line.interpreter, " \t\n\x00") {
			t.Errorf("interpreter %q of %q", line.interpreter, head)
		}
		if len(line.arguments) > 1 {
			t.Errorf("%d arguments of %q", len(line.arguments), head)
		}
		for _, part := range append(line.arguments, line.interpreter) {
			if len(part) > 253 || !bytes.Contains(head[:min(len(head), 256)], []byte(part)) || strings.ContainsAny(part, "\n\x00") {
				t.Errorf("%q is no part of the first line of %q", part, head)
			}
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"node --x", `a "b c" 'd\'e' \_f`, `"`, `\`, "a #b", `$X`, `\c`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, reason := splitWords(text)
		if reason != "" && words != nil {
			t.Errorf("both words and a reason for %q", text)
		}
		if total := len(strings.Join(words, "")); total > len(text) {
			t.Errorf("%q grew into %q", text, words)
		}
		parseEnv([]string{"-S", text, "x"})
	})
}

func FuzzLoaderCache(f *testing.F) {
	// Two entries, and their texts behind them. Seeds are short: the fuzzer spends its time
	// on making long ones shorter.
	entry := func(text byte) string {
		return "\x03\x03\x00\x00" + string([]byte{text, 0, 0, 0, text, 0, 0, 0}) + strings.Repeat("\x00", 12)
	}
	f.Add([]byte(cacheMagic+"\x02\x00\x00\x00"+strings.Repeat("\x00", 24)+entry(98)+entry(96)+"/b\x00/a\x00"), "/b")
	f.Add([]byte(cacheMagic+strings.Repeat("\x00", 28)), "x")
	f.Add([]byte(oldCacheMagic+"\x00\xff\xff\xff\xff"), "x")
	f.Add([]byte(oldCacheMagic+"\x00\x00\x00\x00\x00"+cacheMagic+"\x01\x00\x00\x00"+strings.Repeat("\x10", 60)), "")
	m := machine{62, elfClass64, elfDataLittle}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		cache, err := parseLoaderCache(data, m)
		if err != nil {
			return
		}
		found := cache.find(name, m)
		if len(found) > len(data)/cacheEntrySize {
			t.Errorf("%d entries in %d bytes", len(found), len(data))
		}
		for _, c := range found {
			if !strings.HasPrefix(c.path, "/") || strings.Contains(c.path, "\x00") || len(c.path) > elfMaxString {
				t.Errorf("path %q", c.path)
			}
		}
	})
}

func FuzzELF(f *testing.F) {
	// A program with one segment, and a dynamic section and texts inside of it.
	segment := func(kind, at, size byte) string {
		word := func(b byte) string { return string([]byte{b, 0, 0, 0, 0, 0, 0, 0}) }
		return string([]byte{kind, 0, 0, 0, 4, 0, 0, 0}) + word(at) + word(at) + word(at) + word(size) + word(size) + word(1)
	}
	f.Add([]byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x03\x00\x3e\x00\x01\x00\x00\x00" +
		strings.Repeat("\x00", 8) + "\x40" + strings.Repeat("\x00", 21) + "\x38\x00\x03\x00" + strings.Repeat("\x00", 6) +
		segment(1, 0, 255) + segment(2, 232, 48) + segment(3, 228, 3) + "/a\x00\x00" +
		"\x01" + strings.Repeat("\x00", 7) + "\x01" + strings.Repeat("\x00", 7) +
		"\x05" + strings.Repeat("\x00", 7) + "\xe3" + strings.Repeat("\x00", 7) + "\x0a" + strings.Repeat("\x00", 7) + "\x09"))
	f.Add([]byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 60)))
	f.Add([]byte("\x7fELF\x01\x02\x01" + strings.Repeat("\x00", 60)))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, errWhole := readELF(bytes.NewReader(data), data)
		read, errRead := readELF(bytes.NewReader(data), nil)
		if (errWhole == nil) != (errRead == nil) {
			t.Fatalf("with the head: %v; without: %v", errWhole, errRead)
		}
		if errWhole != nil {
			return
		}
		if whole.loader != read.loader || !slices.Equal(whole.needed, read.needed) ||
			whole.soName != read.soName || whole.rPath != read.rPath || whole.runPath != read.runPath {
			t.Errorf("with the head: %+v; without: %+v", whole, read)
		}
		if len(whole.needed) > elfMaxDynamic/8 {
			t.Errorf("%d libraries", len(whole.needed))
		}
		for _, name := range append(whole.needed, whole.loader, whole.soName, whole.rPath, whole.runPath) {
			if len(name) > elfMaxString || strings.Contains(name, "\x00") {
				t.Errorf("name %q", name)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","main":"b.js","dependencies":{"c":"1"},"volta":{"node":"20"}}`,
		`{"name":"\u0061\n","workspaces":["x"],"peerDependencies":{"p":"1"},"peerDependenciesMeta":{"p":{"optional":true}}}`,
		`{"a":[1,-2.5e3,true,null,{"b":[]}],"name":5}`, `{`, `{}`, `[]`, `{"name":"a",}`, `{"name" "a"}`, `{"a":01}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			return
		}
		// What is accepted is JSON, and the name is the last one of that very key.
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		var name string
		if json.Unmarshal(fields["name"], &name) == nil && m.name != name && !strings.Contains(name, "\uFFFD") {
			t.Errorf("name %q, want %q", m.name, name)
		}
	})
}

func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		"[tools]\nnode = \"20\"\n", "[tools]\nnode = ['20', \"18\"]", "[tools]\npython = {version='3.11', virtualenv=\".venv\"}",
		"[tools.node]\nversion = \"20\"\npostinstall = '''\n[tools]\n'''", "[env]\nA = \"\"\"\n[tools]\n\"\"\"",
		"tools.node = \"20\"", "[tools]\n\"npm:@a/b\" = \"latest\" # x", "[[tools]]", "[tools]\nnode", "[tools]\nnode = [",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tools, err := parseTools(text)
		if err != nil {
			return
		}
		for _, tool := range tools {
			if tool.name == "" || len(tool.versions) == 0 || slices.Contains(tool.versions, "") {
				t.Errorf("tool %+v of %q", tool, text)
			}
		}
	})
}

func FuzzVersions(f *testing.F) {
	f.Add("3.11.7", "3.9.18", "3")
	f.Add("20.0.0", "020.0", "v20")
	f.Add("a1b2", "a01b10", "a")
	f.Fuzz(func(t *testing.T, a, b, wanted string) {
		if compareVersions(a, b) != -compareVersions(b, a) {
			t.Errorf("%q and %q have no order", a, b)
		}
		if version, ok := matchVersion(sortVersions([]string{a, b}), wanted); ok && !strings.HasPrefix(version, wanted) {
			t.Errorf("%q matches %q", version, wanted)
		}
	})
}
