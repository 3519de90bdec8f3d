package profiles

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox"
	"stockade/sandbox/egress"
)

// policyEffects has, for every key of a policy but the defaults, a policy and a profile that
// it must refuse or change.
var policyEffects = map[string]struct{ policy, profile string }{
	"limits.filesystem.never":         {"limits: {filesystem: {never: [/x]}}", ""},
	"limits.filesystem.never-write":   {"limits: {filesystem: {never-write: [/x]}}", ""},
	"limits.filesystem.never-execute": {"limits: {filesystem: {never-execute: [/x]}}", ""},
	"limits.filesystem.broad":         {"limits: {filesystem: {broad: refuse}}", "filesystem: {read: [{path: /etc, broad: true, reason: r}]}"},
	"limits.network.egress":           {"limits: {network: {egress: [a.example]}}", "network: {egress: [b.example]}"},
	"limits.network.never":            {"limits: {network: {never: [b.example]}}", "network: {egress: [a.example]}"},
	"limits.network.listen":           {"limits: {network: {listen: []}}", "network: {listen: [80]}"},
	"limits.network.unix":             {"limits: {network: {unix: []}}", "network: {unix: [/run/x]}"},
	"limits.environment.never":        {"limits: {environment: {never: [TERM]}}", "environment: {pass: [TERM]}"},
	"limits.syscalls":                 {"limits: {syscalls: refuse}", "syscalls: {allow: [bpf]}"},
	"limits.open-files":               {"limits: {open-files: 16}", ""},
	"limits.file-size":                {"limits: {file-size: 1MiB}", ""},
	"limits.memory":                   {"limits: {memory: 1GiB}", ""},
	"limits.processes":                {"limits: {processes: 16}", ""},
	"require.layers":                  {"require: {layers: [scope-signals]}", "missing: {allow: [scope-signals]}"},
	"require.home":                    {"require: {home: private}", "filesystem: {home: real}"},
}

// policyElsewhere are keys whose effect is not on a plan, with the test that shows it.
var policyElsewhere = map[string]string{
	"version":            "TestPolicyRefuses",
	"profiles.from":      "the script policy",
	"profiles.unknown":   "the script policy",
	"profiles.flags":     "the script policy",
	"profiles.approvals": "the script policy",
	"limits.packages":    "TestPolicyPackages",
	"require.pins":       "TestPolicyRefuses", // refused, until there are pins
	"audit.starts":       "TestSharedMachine",
	"audit.denials":      "TestAudit",
}

func policyOf(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy("policy.yaml", []byte("version: 1\n"+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sameReal(path string) string { return path }

func TestEveryKeyOfAPolicyHasAnEffect(t *testing.T) {
	eachKey(policyKeys(&Policy{}), "", func(k *key, path string) {
		if k.form == formSection || strings.HasPrefix(path, "defaults.") || policyElsewhere[path] != "" {
			return
		}
		t.Run(path, func(t *testing.T) {
			test, known := policyEffects[path]
			if !known {
				t.Fatal("no way to write this key is listed")
			}
			p, err := Parse("p.yaml", []byte("version: 1\n"+test.profile+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			facts := FactsForTests()
			facts.Sockets = map[string]Socket{"/run/x": {State: SocketThere, Real: "/run/x"}}
			plain, err := Compile(p, facts)
			if err != nil {
				t.Fatal(err)
			}
			held, err := Compile(p, facts)
			if err != nil {
				t.Fatal(err)
			}
			err = policyOf(t, test.policy).Apply(&held, PolicyFacts{Homes: []string{"/home/me"}, Real: sameReal})
			switch {
			case err != nil && !strings.Contains(err.Error(), "policy.yaml:2:"):
				t.Errorf("refused without the policy's line: %v", err)
			case err == nil && reflect.DeepEqual(plain, held):
				t.Errorf("%q changes nothing and refuses nothing", test.policy)
			}
			// A profile that asks for nothing is within every limit.
			nothing, err := Compile(Empty(), facts)
			if err != nil {
				t.Fatal(err)
			}
			if err := policyOf(t, test.policy).Apply(&nothing, PolicyFacts{Homes: []string{"/home/me"}, Real: sameReal}); err != nil {
				t.Errorf("the empty profile is refused: %v", err)
			}
		})
	})
}

// Each word of each key is read.
func TestEveryWordOfAPolicy(t *testing.T) {
	eachKey(policyKeys(&Policy{}), "", func(k *key, path string) {
		for _, word := range k.words {
			text := word
			for i, part := range slices.Backward(strings.Split(path, ".")) {
				text = part + ": " + text
				if i > 0 {
					text = "{" + text + "}"
				}
			}
			_, err := ParsePolicy("policy.yaml", []byte("version: 1\n"+text+"\n"))
			if err != nil && !strings.Contains(err.Error(), "not built yet") {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

func TestPolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {}\n":                          "policy.yaml:1:1: the version is missing",
		"version: 2\n":                          "version 2 is not known",
		"version: 1\nfrom: [x]\n":               `unknown key "from"`,
		"version: 1\nprofiles: {from: [usr]}\n": `profiles.from: "usr" is not known`,
		"version: 1\nlimits: {filesystem: {never: [\"${cwd}/x\"]}}\n":                                   "a limit cannot depend on what the person who starts a server chooses",
		"version: 1\nlimits: {filesystem: {never: [x]}}\n":                                              "is a relative path",
		"version: 1\nlimits: {filesystem: {never: [{path: /x, broad: true, reason: r}]}}\n":             "broad means nothing in a limit",
		"version: 1\nlimits: {network: {never: [\"a.example:443\"]}}\n":                                 "names a port",
		"version: 1\nlimits: {network: {unix: [\"${runtime}/x\"]}}\n":                                   "a limit cannot depend",
		"version: 1\nlimits: {environment: {never: [\"*\"]}}\n":                                         "is not a variable's name",
		"version: 1\nlimits: {environment: {never: [\"HO*\"]}}\n":                                       "holds HOME, which every server has",
		"version: 1\nlimits: {environment: {pass: [X]}}\n":                                              `unknown key "pass" in "limits.environment"`,
		"version: 1\nprofiles: {from: []}\n":                                                            "profiles.from: an empty list holds nothing",
		"version: 1\nlimits: {filesystem: {never: []}}\n":                                               "limits.filesystem.never: an empty list holds nothing",
		"version: 1\nlimits: {filesystem: {}}\n":                                                        "limits.filesystem: an empty section holds nothing",
		"version: 1\nlimits:\n":                                                                         "limits: an empty section holds nothing",
		"version: 1\nlimits: {filesystem: {never-execute: [\"cat \"]}}\n":                               "begins or ends with a blank",
		"version: 1\nrequire: {pins: require}\n":                                                        "require.pins: this layer is not built yet",
		"version: 1\nrequire: {layers: [scope-signals]}\ndefaults: {missing: {allow: [scope-signals]}}": "is required, and the defaults go without it",
		"version: 1\ndefaults: {filesystem: {protect: [x]}}\n":                                          "this layer is not built yet",
		"version: 1\ndefaults: {match: {commands: [x]}}\n":                                              `unknown key "match" in "defaults"`,
		"version: 1\naudit: {starts: file}\n":                                                           `audit.starts: "file" is not known`,
	} {
		_, err := ParsePolicy("policy.yaml", []byte(text))
		var all Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// Defaults lie under a profile: lists first, single values replaced.
func TestPolicyDefaults(t *testing.T) {
	p := policyOf(t, "defaults: {filesystem: {read: [/a]}, environment: {set: {A: default, B: default}}, limits: {open-files: 64}}")
	over, err := Parse("p.yaml", []byte("version: 1\nname: p\nfilesystem: {read: [/b]}\nenvironment: {set: {A: own}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(p.Under(over), FactsForTests())
	if err != nil {
		t.Fatal(err)
	}
	if same(&r.Plan, findGrant(&r, "/a")) == nil || findGrant(&r, "/a").Origin.String() != "policy.yaml:2:32" || findGrant(&r, "/b") == nil {
		t.Errorf("grants: %+v", r.Plan.Grants)
	}
	env := strings.Join(r.Plan.Env, "\n")
	if !strings.Contains(env, "A=own") || !strings.Contains(env, "B=default") || r.Plan.Limits.OpenFiles != 64 || r.Plan.Name != "p" {
		t.Errorf("environment and limits: %q, %+v", env, r.Plan.Limits)
	}
	var none *Policy
	if none.Under(over) != over {
		t.Error("no policy changes a profile")
	}
}

func findGrant(r *Resolved, path string) *sandbox.Grant {
	for i := range r.Plan.Grants {
		if r.Plan.Grants[i].Path == path {
			return &r.Plan.Grants[i]
		}
	}
	return nil
}

// Limits below ${home} hold for each of the homes.
func TestPolicyHomesAreAllHeld(t *testing.T) {
	p := policyOf(t, `limits: {filesystem: {never: ["${home}/keys", "~/more"]}}`)
	if !p.UsesHome() {
		t.Error("the policy does not use the home folder")
	}
	r, err := Compile(Empty(), FactsForTests())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(&r, PolicyFacts{Homes: []string{"/home/a", "/home/b"}, Real: sameReal}); err != nil {
		t.Fatal(err)
	}
	var closed []string
	for _, g := range r.Plan.Guarded {
		if g.Origin.Source != "" {
			closed = append(closed, g.Path)
		}
	}
	if diff := cmp.Diff([]string{"/home/a/keys", "/home/b/keys", "/home/a/more", "/home/b/more"}, closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
}

// A registry of the install jail needs no word about addresses in the limit, and gets none.
func TestPolicyOfInstalls(t *testing.T) {
	r, err := Compile(Install(InstallGrants{Rules: []string{"registry.example:443"}}), FactsForTests())
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan.Network.Rules.Rules[0].Addresses != egress.AnyAddress {
		t.Fatal("the install jail's own rule leads to ordinary addresses alone")
	}
	if err := policyOf(t, "limits: {network: {egress: [registry.example]}}").Apply(&r, PolicyFacts{Real: sameReal}); err != nil {
		t.Fatal(err)
	}
	if r.Plan.Network.Rules.Rules[0].Addresses != egress.Ordinary {
		t.Error("the limit is passed: the rule leads to any address")
	}
	if err := policyOf(t, "limits: {network: {egress: [other.example]}}").Apply(&r, PolicyFacts{Real: sameReal}); err == nil || !strings.Contains(err.Error(), "the install jail: network.egress registry.example:443: beyond") {
		t.Errorf("a registry beyond the limit: %v", err)
	}
}

func TestPolicyPackages(t *testing.T) {
	p := policyOf(t, `limits: {packages: ["npm:@modelcontextprotocol/*", "npm:pinned@1.2.3", "pypi:mcp-server-time"]}`)
	for _, test := range []struct {
		name, version string
		admitted      bool
	}{
		{"npm:@modelcontextprotocol/server-memory", "", true},
		{"npm:@modelcontextprotocol/server-memory", "9.9.9", true},
		{"npm:@modelcontextprotocol.evil/server-memory", "", false},
		{"npm:pinned", "", true}, // the version is judged when it is known
		{"npm:pinned", "1.2.3", true},
		{"npm:pinned", "1.2.4", false},
		{"pypi:mcp-server-time", "1", true},
		{"npm:mcp-server-time", "1", false},
		{"", "", false},
	} {
		err := p.CheckPackage(test.name, test.version)
		if (err == nil) != test.admitted || err != nil && !strings.Contains(err.Error(), "policy.yaml:2:10") {
			t.Errorf("%s %s: %v", test.name, test.version, err)
		}
	}
	if err := policyOf(t, "limits: {packages: []}").CheckPackage("npm:x", "1"); err == nil {
		t.Error("an empty list admits a package")
	}
	if err := policyOf(t, "").CheckPackage("", ""); err != nil {
		t.Errorf("no list: %v", err)
	}
	for _, text := range []string{"x", "npm:x@^1", "npm:x@", "npm:x@1 || 2"} {
		if _, err := ParsePolicy("p.yaml", []byte("version: 1\nlimits: {packages: [\""+text+"\"]}\n")); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
