package sandbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"stockade/seccomp"
)

func TestSupportOf(t *testing.T) {
	covered := Plan{Filter: seccomp.Policy{Truncation: seccomp.TruncationByFilter}}
	tests := []struct {
		name    string
		plan    Plan
		abi     int
		missing Layer // the layer of the error; "" for none
	}{
		{"no Landlock", Plan{}, 0, LayerFiles},
		{"no Landlock cannot be waived", Plan{Missing: []Layer{LayerFiles, LayerRefer, LayerScopeSignals}}, 0, LayerFiles},
		{"ABI 1 lacks moves", covered, 1, LayerRefer},
		{"ABI 2 lacks truncate when the filter does not cover it", Plan{}, 2, LayerTruncate},
		{"ABI 2 lacks signals", covered, 2, LayerScopeSignals},
		{"ABI 2 with signals waived", Plan{Filter: covered.Filter, Missing: []Layer{LayerScopeSignals}}, 2, ""},
		{"ABI 3 with a port", Plan{Network: Network{Listen: []uint16{80}}, Missing: []Layer{LayerScopeSignals}}, 3, LayerTCP},
		{"ABI 5", Plan{}, 5, LayerScopeSignals},
		{"ABI 6", Plan{}, 6, ""},
		{"ABI 7", Plan{Network: Network{Listen: []uint16{80}}}, 7, ""},
		{"ABI 11", Plan{}, 11, ""},
		{"a newer ABI", Plan{}, 99, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			layers, err := supportOf(tt.plan, tt.abi)
			var unsupported *UnsupportedError
			switch {
			case tt.missing == "" && err != nil:
				t.Fatalf("unexpected error: %v", err)
			case tt.missing == "" && len(layers) != len(landlockNeeds):
				t.Errorf("%d layers reported, want %d", len(layers), len(landlockNeeds))
			case tt.missing != "" && (!errors.As(err, &unsupported) || unsupported.Layer != tt.missing):
				t.Errorf("got %v, want an error of %s", err, tt.missing)
			}
		})
	}
}

func TestWaivedLayerIsDegraded(t *testing.T) {
	layers, err := supportOf(Plan{Filter: seccomp.Policy{Truncation: seccomp.TruncationByFilter}, Missing: []Layer{LayerScopeSignals}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		want := Enforced
		if l.Layer == LayerScopeSignals {
			want = Degraded
		}
		if l.State != want {
			t.Errorf("%s is %s, want %s", l.Layer, l.State, want)
		}
	}
}

// TestRightsGrow: a newer ABI handles everything that an older one does.
func TestRightsGrow(t *testing.T) {
	for abi := 1; abi <= newestABI+2; abi++ {
		older, newer := rightsOf(abi-1), rightsOf(abi)
		if older.files&^newer.files != 0 || older.net&^newer.net != 0 || older.scopes&^newer.scopes != 0 {
			t.Errorf("ABI %d drops rights of ABI %d", abi, abi-1)
		}
	}
	want := abiRights{files: 1<<17 - 1, net: 1<<4 - 1, scopes: 1<<2 - 1}
	if diff := cmp.Diff(want, rightsOf(newestABI), cmp.AllowUnexported(abiRights{})); diff != "" {
		t.Error(diff)
	}
}

func TestHandled(t *testing.T) {
	none, all := Network{}, Network{Egress: EgressAll}
	if got := handled(none, 10).net; got != 1<<4-1 {
		t.Errorf("egress none handles %#x", got)
	}
	if got := handled(all, 10).net; got != 0 {
		t.Errorf("egress all handles %#x", got)
	}
	all.Listen = []uint16{80}
	if got := handled(all, 10).net; got != ll.AccessNetBindTCP {
		t.Errorf("egress all with a port handles %#x", got)
	}
}

// TestNoAccessIsWriteAndExecute: what a server may write it may not execute, and no access
// makes devices or reaches Unix sockets.
func TestNoAccessIsWriteAndExecute(t *testing.T) {
	const writing = ll.AccessFSWriteFile | ll.AccessFSMakeReg | ll.AccessFSTruncate
	const never = ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSResolveUnix
	for a := Read; a <= Device; a++ {
		r := a.rights()
		if r&writing != 0 && r&ll.AccessFSExecute != 0 {
			t.Errorf("%s writes and executes", a)
		}
		if r&never != 0 {
			t.Errorf("%s holds %#x", a, r&never)
		}
		if r == 0 || a.String() == "unknown" {
			t.Errorf("access %d has no rights or no name", a)
		}
	}
}

func TestBelow(t *testing.T) {
	tests := []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
		{"/srv/data-old", "/srv/data", false},
	}
	for _, tt := range tests {
		if got := below(tt.path, tt.dir); got != tt.want {
			t.Errorf("below(%q, %q) = %t", tt.path, tt.dir, got)
		}
	}
}
