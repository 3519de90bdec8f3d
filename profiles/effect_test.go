package profiles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// effects has, for every key that holds a value, ways to write it that must change what is
// compiled or be refused. A key that does neither is a key that does nothing.
var effects = map[string][]string{
	"name":                     {"name: other"},
	"filesystem.read":          {"filesystem: {read: [/x]}", "filesystem: {read: [{path: /, broad: true, reason: r}]}"},
	"filesystem.write":         {"filesystem: {write: [/x]}"},
	"filesystem.execute":       {"filesystem: {execute: [git]}"},
	"filesystem.optional":      {"filesystem: {optional: [/x]}"},
	"filesystem.protect":       {"filesystem: {protect: [x]}"},
	"filesystem.hide":          {"filesystem: {hide: [x]}"},
	"filesystem.special-files": {"filesystem: {special-files: refuse}"},
	"filesystem.metadata":      {"filesystem: {metadata: refuse}", "filesystem: {metadata: mediated}"},
	"filesystem.home":          {"filesystem: {home: real}"},
	"roots":                    {"roots: args", "roots: [/x]", "roots: args\nfilesystem: {read: [\"${roots}\"]}"},
	"network.egress":           {"network: {egress: all}", "network: {egress: public}", "network: {egress: [\"a.example:1\"]}", "network: {egress: [{to: a.example, names: pinned}]}", "network: {egress: [{to: a.example, addresses: any}]}"},
	"network.names":            {"network: {names: strict}", "network: {names: pinned}", "network: {egress: [a.example], names: pinned}"},
	"network.listen":           {"network: {listen: [80]}"},
	"network.unix":             {"network: {unix: [/x]}"},
	"environment.pass":         {"environment: {pass: [TERM]}", "environment: {pass: [\"US*\"]}", "environment: {pass: [NOT_SET]}"},
	"environment.set":          {"environment: {set: {A: b}}"},
	"environment.secrets":      {"environment: {secrets: [TOKEN]}", "environment: {secrets: [NOT_SET]}", "environment: {secrets: [{name: TOKEN, optional: true}]}", "environment: {secrets: [{name: NOT_SET, optional: true}]}"},
	"syscalls.profile":         {"syscalls: {profile: ./x.json}"},
	"syscalls.allow":           {"syscalls: {allow: [bpf]}"},
	"syscalls.deny":            {"syscalls: {deny: [getcwd]}"},
	"limits.open-files":        {"limits: {open-files: 64}"},
	"limits.file-size":         {"limits: {file-size: 1MiB}"},
	"limits.memory":            {"limits: {memory: 1GiB}"},
	"limits.processes":         {"limits: {processes: 64}"},
	"view":                     {"view: grants"},
	"guard.pins":               {"guard: {pins: off}"},
	"guard.tools":              {"guard: {pins: off, tools: [x]}"},
	"guard.calls-per-minute":   {"guard: {pins: off, calls-per-minute: 1}"},
	"guard.concurrent-calls":   {"guard: {pins: off, concurrent-calls: 1}"},
	"guard.call-timeout":       {"guard: {pins: off, call-timeout: 1s}"},
	"guard.message-size":       {"guard: {pins: off, message-size: 1MiB}"},
	"guard.result-size":        {"guard: {pins: off, result-size: 1MiB}"},
	"guard.sampling":           {"guard: {pins: off, sampling: deny}"},
	"guard.elicitation":        {"guard: {pins: off, elicitation: deny}"},
	"guard.roots":              {"guard: {pins: off, roots: deny}"},
	"missing":                  {"missing: {allow: [scope-signals]}"},
	"missing.allow":            {"missing: {allow: [landlock-tcp]}"},
}

// elsewhere are keys whose effect is not on a plan, with the test that shows it.
var elsewhere = map[string]string{
	"version":        "TestParseRefuses",
	"description":    "TestList",
	"match.packages": "TestMatch",
	"match.commands": "TestMatch",
	"extends":        "TestCompleteMerges",
	// Of the install jail alone.
	"install.scripts": "TestInstallScripts",
	"install.execute": "TestInstallScripts",
	"install.read":    "TestInstallScripts",
}

func TestEveryKeyHasAnEffect(t *testing.T) {
	compiled := func(t *testing.T, text string) (Resolved, error) {
		t.Helper()
		p, err := Parse("p.yaml", []byte("version: 1\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return Compile(p, FactsForTests())
	}
	base, err := compiled(t, "")
	if err != nil {
		t.Fatal(err)
	}
	eachKey(profileKeys, "", func(_ *key, path string) {
		t.Run(path, func(t *testing.T) {
			texts := effects[path]
			if elsewhere[path] != "" {
				return
			}
			if len(texts) == 0 {
				t.Fatal("no way to write this key is listed")
			}
			for _, text := range texts {
				section, _, _ := strings.Cut(path, ".")
				if !strings.Contains(text, section+":") {
					t.Errorf("%q does not write %s", text, path)
				}
				r, err := compiled(t, text)
				if err != nil {
					continue // refused, and not passed over
				}
				r.Profile = base.Profile
				if cmp.Equal(base, r) {
					t.Errorf("%q changes nothing and is not refused", text)
				}
			}
		})
	})
}

// TestEveryWordIsJudged: each word of each key compiles, or is refused as not built.
func TestEveryWordIsJudged(t *testing.T) {
	built := map[string]bool{
		"filesystem.special-files allow": true, "filesystem.metadata ignore": true, "filesystem.metadata refuse": true,
		"filesystem.home private": true, "filesystem.home real": true, "network.egress none": true, "network.egress public": true, "network.egress all": true,
		"view full": true, "missing refuse": true, "guard.pins off": true,
	}
	eachKey(profileKeys, "", func(k *key, path string) {
		for _, word := range k.words {
			if path == "roots" || path == "network.names" {
				continue // has to be used
			}
			name := path + " " + word
			t.Run(name, func(t *testing.T) {
				text := path + ": " + word
				if section, key, nested := strings.Cut(path, "."); nested {
					text = fmt.Sprintf("%s: {%s: %s}", section, key, word)
				}
				p, err := Parse("p.yaml", []byte("version: 1\n"+text+"\n"))
				if err != nil {
					t.Fatal(err)
				}
				_, err = Compile(p, FactsForTests())
				if built[name] != (err == nil) {
					t.Errorf("compiling gives %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "not built yet") {
					t.Errorf("refused with %v", err)
				}
			})
		}
	})
}
