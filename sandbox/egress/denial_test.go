package egress_test

import (
	"encoding/json"
	"testing"
	"time"

	"stockade/sandbox/egress"
)

func TestDenialIsOneLine(t *testing.T) {
	tests := []struct {
		name   string
		denial egress.Denial
		want   string
	}{
		{"whole", egress.Denial{Program: "node", PID: 12, Asked: "tcp 8.8.8.8:443", Rule: "no rule names 8.8.8.8:443"}, "refused tcp 8.8.8.8:443 from node (12): no rule names 8.8.8.8:443"},
		{"without a program", egress.Denial{Asked: "name evil.example", Rule: "no rule names evil.example"}, "refused name evil.example: no rule names evil.example"},
		{"without a rule", egress.Denial{Asked: "unix /run/x"}, "refused unix /run/x"},
		{"line ends and escapes", egress.Denial{Program: "no\nde", PID: 1, Asked: "unix /tmp/\x1b[2J\n: x"}, `refused "unix /tmp/\x1b[2J\n: x" from "no\nde" (1)`},
		{"text that turns around", egress.Denial{Asked: "unix /tmp/\u202egnp.x"}, `refused "unix /tmp/\u202egnp.x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.denial.String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDenialAsJSON(t *testing.T) {
	text, err := json.Marshal(egress.Denial{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Profile: "github", Program: "node", PID: 12,
		Call: "connect", Asked: "tcp 8.8.8.8:443", Rule: "no rule names 8.8.8.8:443",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-01-02T03:04:05Z","profile":"github","program":"node","pid":12,"call":"connect","asked":"tcp 8.8.8.8:443","rule":"no rule names 8.8.8.8:443"}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}
