package profiles_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/guard"
)

func TestGuardPlan(t *testing.T) {
	tests := []struct {
		name, text string
		want       *guard.Policy
	}{
		{"none", "", nil},
		{"alone", "guard: {pins: off}", &guard.Policy{MessageSize: 32 << 20}},
		{"no tool", "guard: {pins: off, tools: []}", &guard.Policy{MessageSize: 32 << 20, Listed: true}},
		{"all keys", "guard: {pins: off, tools: [b*, a], calls-per-minute: 120, concurrent-calls: 8, call-timeout: 60s, message-size: 1MiB, result-size: 8KiB, sampling: allow, elicitation: deny, roots: allow}", &guard.Policy{
			MessageSize: 1 << 20, Listed: true, Tools: []string{"a", "b*"}, CallsPerMinute: 120, ConcurrentCalls: 8,
			CallTimeout: time.Minute, ResultSize: 8 << 10, Sampling: guard.Allow, Roots: guard.Allow,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompile(t, parse(t, tt.text+"\n"), nil)
			if diff := cmp.Diff(tt.want, r.Plan.Guard); diff != "" {
				t.Errorf("guard (-want +got):\n%s", diff)
			}
			if r.Plan.Guard != nil {
				if err := r.Plan.Guard.Check(); err != nil {
					t.Error(err)
				}
			}
			if r.Plan.Supervised() != (tt.want != nil) || r.Plan.Mediated() {
				t.Error("a guard and nothing else needs a supervisor, which answers no call")
			}
			plain := mustCompile(t, parse(t, "\n"), nil)
			if diff := cmp.Diff(plain.Plan.Filter, r.Plan.Filter); diff != "" {
				t.Errorf("the filter changes (-without +with):\n%s", diff)
			}
		})
	}
}
