package nettest_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/nettest"
)

// TestRefusalsAreTold wants each refusal in two places: in a line on the server's stderr,
// and in the log, with who asked, what for, which rule decided and how to allow it.
func TestRefusalsAreTold(t *testing.T) {
	n := nettest.Get(t)
	const network = `egress: ["data.corp-demo.org", "shop.cdn-demo.net", "loop.corp-demo.org", "10.0.0.5:5432"]`
	asks := []string{
		"get https://data.corp-demo.org/",
		"lookup evil.attacker-demo.org",
		"lookup loop.corp-demo.org",
		"tcp 93.184.216.30 80",
		"tcp 185.199.108.153 443",
		"tcp 169.254.169.254 80",
		"udp 10.0.0.5 7000",
		"via https://foreign.cdn-demo.net/ shop.cdn-demo.net",
	}
	type refusal struct{ Call, Asked, Rule, Hint string }
	want := []refusal{
		{"dns", "name evil.attacker-demo.org", "no rule names evil.attacker-demo.org", `add "evil.attacker-demo.org:443" to network.egress`},
		{"dns", "name loop.corp-demo.org at 127.0.0.1", "127.0.0.1 is loopback (RFC 1122)", `add {to: "loop.corp-demo.org:443", addresses: any} to network.egress`},
		{"dns", "name loop.corp-demo.org at ::1", "::1 is loopback (RFC 4291)", `add {to: "loop.corp-demo.org:443", addresses: any} to network.egress`},
		{"connect", "tcp 185.199.108.153:443", "no rule names 185.199.108.153:443", `add "185.199.108.153:443" to network.egress`},
		{"connect", "tcp 169.254.169.254:80", "cloud metadata (Amazon, Azure, Google Cloud and others)", ""},
		{"connect", "tcp 93.184.216.30:80", "an address of this machine", `add "93.184.216.30:80" to network.egress`},
		{"send", "udp 10.0.0.5:7000", "private (RFC 1918)", `add "10.0.0.5:7000" to network.egress`},
		{
			"relay", "server name foreign.cdn-demo.net on 151.101.1.69:443", "no rule names foreign.cdn-demo.net:443",
			`add "foreign.cdn-demo.net:443" to network.egress`,
		},
	}

	cmd := jailed{}.Command(t, pythonClient(t, n), network, asks...)
	end := run(t, cmd)
	if end.status != 0 {
		t.Fatalf("the client ended with status %d; stderr:\n%s", end.status, end.stderr)
	}
	for _, r := range want {
		var lines []string
		for line := range strings.Lines(end.stderr) {
			if strings.HasPrefix(line, "stockade: ") && strings.Contains(line, r.Asked+": ") && strings.Contains(line, r.Rule) && strings.Contains(line, r.Hint) {
				lines = append(lines, line)
			}
		}
		if len(lines) != 1 {
			t.Errorf("stderr tells of %q %d times, want once; stderr:\n%s", r.Asked, len(lines), end.stderr)
		}
	}

	log := exec.Command(launcherProgram.find(t, n), "log", "--json")
	log.Env = cmd.Env
	written := run(t, log)
	var got []refusal
	for line := range strings.Lines(written.stdout) {
		var entry struct {
			Profile, Program        string
			PID                     int
			Call, Asked, Rule, Hint string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("reading %q: %v", line, err)
		}
		if entry.Profile != "case" {
			t.Errorf("the log names profile %q, want %q: %s", entry.Profile, "case", line)
		}
		// A query comes without the program that sent it.
		if entry.Call != "dns" && (!strings.HasPrefix(entry.Program, "python3") || entry.PID == 0) {
			t.Errorf("the log names program %q (%d), want python3: %s", entry.Program, entry.PID, line)
		}
		got = append(got, refusal{entry.Call, entry.Asked, entry.Rule, entry.Hint})
	}
	// Both families are asked for at once, and the relay reads on its own.
	byAsked := func(a, b refusal) int { return strings.Compare(a.Asked, b.Asked) }
	slices.SortFunc(want, byAsked)
	slices.SortFunc(got, byAsked)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
