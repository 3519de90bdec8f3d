package profiles_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// schemaNode is what the test reads of the schema: the keys of a section, wherever in it a
// mapping of the section's own stands.
type schemaNode struct {
	Description string
	Properties  map[string]schemaNode
	AnyOf       []schemaNode
}

func schemaKeys(above string, node *schemaNode) map[string]string {
	out := make(map[string]string)
	for _, way := range append(node.AnyOf, *node) {
		for name, key := range way.Properties {
			out[above+name] = key.Description
			maps.Copy(out, schemaKeys(above+name+".", &key))
		}
	}
	return out
}

// The reference has the keys of the schema, with the same sentences, and says of each what
// it takes, or has keys below it.
func TestReferenceIsTheSchema(t *testing.T) {
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root schemaNode
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	want := schemaKeys("", &root)
	got := make(map[string]string)
	all := profiles.Reference()
	for i, k := range all {
		if _, twice := got[k.Key]; twice {
			t.Errorf("%s is there twice", k.Key)
		}
		got[k.Key] = k.Doc
		section := i+1 < len(all) && strings.HasPrefix(all[i+1].Key, k.Key+".")
		if k.Takes == "" && !section || strings.Contains(k.Takes, "  ") || strings.HasSuffix(k.Takes, ".") {
			t.Errorf("%s takes %q", k.Key, k.Takes)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the reference is not the schema (-schema +reference):\n%s", diff)
	}
}

func TestReferenceSaysWhatIsTaken(t *testing.T) {
	for key, want := range map[string]string{
		"version":                "the number 1",
		"filesystem":             "",
		"filesystem.home":        "one of private, real",
		"filesystem.read":        "a list of paths, each alone or as {path, broad, reason}",
		"network.egress":         "one of none, public, all, or a list of rules, each alone or as {to, names, addresses}",
		"environment.secrets":    "a list of names, each alone or as {name, optional}",
		"limits.open-files":      "a number, 16 to 1073741824",
		"limits.file-size":       "a number of bytes, at least 4096, or a size such as 64MiB or 1GB",
		"missing":                "the word refuse, or a section",
		"guard.concurrent-calls": "a number, 1 to 1048576",
	} {
		at := slices.IndexFunc(profiles.Reference(), func(k profiles.KeyReference) bool { return k.Key == key })
		if at < 0 {
			t.Errorf("no key %s", key)
			continue
		}
		if got := profiles.Reference()[at].Takes; got != want {
			t.Errorf("%s takes %q, want %q", key, got, want)
		}
	}
}

// The reference of the policy has each key that the parser takes, and no other.
func TestPolicyReferenceIsTaken(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range profiles.PolicyReference() {
		seen[k.Key] = true
		if k.Doc == "" || strings.Contains(k.Takes, "broad") {
			t.Errorf("%s: %q, takes %q", k.Key, k.Doc, k.Takes)
		}
		// A mapping with a key that is nowhere: known keys are told apart from this one.
		text := "version: 1\n"
		if k.Key != "version" {
			text += strings.ReplaceAll(k.Key, ".", ": {") + ": {no-such-key: 1}" + strings.Repeat("}", strings.Count(k.Key, ".")) + "\n"
		}
		_, err := profiles.ParsePolicy("policy.yaml", []byte(text))
		last := k.Key[strings.LastIndexByte(k.Key, '.')+1:]
		if err != nil && strings.Contains(err.Error(), "unknown key \""+last+"\"") {
			t.Errorf("%s: %v", k.Key, err)
		}
		if k.Key != "version" && err == nil {
			t.Errorf("%s takes anything", k.Key)
		}
	}
	for _, key := range []string{"profiles.from", "defaults.filesystem", "limits.filesystem.never", "limits.memory", "require.layers", "audit.starts"} {
		if !seen[key] {
			t.Errorf("no %s", key)
		}
	}
	if seen["defaults.filesystem.read"] {
		t.Error("keys of a profile are repeated")
	}
}

// Every variable has a text, and one that the parser does not refuse.
func TestVariablesAreKnown(t *testing.T) {
	all := profiles.Variables()
	if len(all) == 0 {
		t.Fatal("no variables")
	}
	for _, v := range all {
		if v.Doc == "" {
			t.Errorf("%s has no text", v.Name)
		}
		if _, err := profiles.Parse("x.yaml", []byte("version: 1\nfilesystem: {read: [\""+v.Name+"\"]}\n")); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
