package seccomp_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/seccomp"
)

var update = flag.Bool("update", false, "write the presets instead of comparing them")

// preset is one file under presets/.
type preset struct {
	name   string
	policy seccomp.Policy
}

// presets returns the policies that have an embedded filter.
func presets() []preset {
	networks := []preset{
		{"none", strict},
		{"server", server},
		{"client", client},
		{"internet", internet},
		{"supervised-unix", supervisedUnix},
		{"supervised-server", supervisedServer},
		{"supervised-internet", supervised},
	}
	var all []preset
	for _, n := range networks {
		for metadata, m := range map[seccomp.Metadata]string{seccomp.MetadataIgnore: "-ignore", seccomp.MetadataRefuse: "-refuse"} {
			for truncation, t := range map[seccomp.Truncation]string{seccomp.TruncationByLandlock: "", seccomp.TruncationByFilter: "-truncation"} {
				p := n.policy
				p.Metadata, p.Truncation = metadata, truncation
				all = append(all, preset{n.name + m + t, p})
			}
		}
	}
	return all
}

var bothArchitectures = []string{"amd64", "arm64"}

// TestPresets builds every embedded filter again, for both architectures, and compares.
func TestPresets(t *testing.T) {
	files := map[string]bool{}
	golden := func(name string, content []byte) {
		t.Helper()
		files[name] = true
		path := filepath.Join("presets", name)
		if *update {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, content) {
			t.Errorf("%s differs from what its policy gives now; run go generate ./seccomp and read the difference", path)
		}
	}
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			filter, err := p.policy.FilterFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			program, err := seccomp.Build(filter, arch)
			if err != nil {
				t.Fatal(err)
			}
			golden(fmt.Sprintf("%s.%s.bpf", p.name, arch), program.Bytes())
			// A text for each kind of network is what people read; the others differ from
			// them in the lines that their names say.
			if !strings.HasSuffix(p.name, "-ignore") {
				continue
			}
			text, err := seccomp.ExportText(filter, arch)
			if err != nil {
				t.Fatal(err)
			}
			golden(fmt.Sprintf("%s.%s.txt", p.name, arch), []byte(text))
		}
	}
	entries, err := os.ReadDir("presets")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !files[entry.Name()] {
			t.Errorf("presets/%s belongs to no policy", entry.Name())
		}
	}
}

// TestPresetsAreEmbedded compares what Program returns with the files on disk, so that no
// two files can be mixed up in the embedding.
func TestPresetsAreEmbedded(t *testing.T) {
	for _, p := range presets() {
		want, err := os.ReadFile(filepath.Join("presets", p.name+"."+runtime.GOARCH+".bpf"))
		if err != nil {
			t.Fatal(err)
		}
		if seccomp.Preset(p.policy) != string(want) {
			t.Errorf("%s: the embedded filter is another one", p.name)
		}
		program, err := p.policy.Program()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, program.Bytes()); diff != "" {
			t.Errorf("%s: Program differs from its file (-file +program):\n%s", p.name, diff)
		}
	}
}

// TestNoPresetForWordsOfAPerson holds that nothing a person wrote is lost to a preset.
func TestNoPresetForWordsOfAPerson(t *testing.T) {
	base, err := seccomp.ParseBase([]byte(`{"defaultAction": "SCMP_ACT_ERRNO"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []seccomp.Policy{
		{Base: base},
		{Allow: []string{"inotify_add_watch"}},
		{Deny: []string{"socketpair"}},
		{Sockets: seccomp.ListenSockets},
		{Supervision: seccomp.SupervisedInternet, Base: base},
		{Supervision: seccomp.SupervisedUnix, Deny: []string{"connect"}},
	} {
		if seccomp.Preset(p) != "" {
			t.Errorf("%+v: has a preset", p)
		}
		program, err := p.Program()
		if err != nil || len(program) == 0 {
			t.Errorf("%+v: no program: %v", p, err)
		}
	}
}

// TestPresetsAreShort holds the length of each preset, which every start pays for, and of
// the way to an answer when all arguments are 0.
func TestPresetsAreShort(t *testing.T) {
	const longest, deepest = 300, 22
	for _, p := range presets() {
		for _, arch := range bothArchitectures {
			program := build(t, p.policy, arch)
			if len(program) > longest {
				t.Errorf("%s on %s: %d instructions, want at most %d", p.name, arch, len(program), longest)
			}
			for number := range uint32(600) {
				_, steps, err := interpret(program, call{number: number, arch: auditArch[arch]})
				if err != nil {
					t.Fatal(err)
				}
				if steps > deepest {
					t.Errorf("%s on %s: number %d takes %d steps, want at most %d", p.name, arch, number, steps, deepest)
				}
			}
		}
	}
}
