package profiles

import (
	"testing"

	"stockade/sandbox/egress"
)

// An install jail has a supervisor, with no rule where it needs none.
func TestInstallIsSupervised(t *testing.T) {
	facts := FactsForTests()
	for stage, want := range map[string]bool{"": false, "/home/me/.local/share/stockade/packages/stage/x": true} {
		facts.Stage = stage
		r, err := Compile(Install(InstallGrants{}), facts)
		if err != nil {
			t.Fatal(err)
		}
		if r.Plan.Supervised() != want || len(r.Plan.Network.Rules.Rules) != 0 || r.Plan.Network.Rules.Mode != egress.List {
			t.Errorf("stage %q: supervised: %v, rules %+v", stage, r.Plan.Supervised(), r.Plan.Network.Rules)
		}
	}
}
