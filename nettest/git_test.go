package nettest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/nettest"
)

// gitClient is git with its helper for HTTPS, which links another TLS library than curl's.
func gitClient(t *testing.T, n *nettest.Network) program {
	t.Helper()
	return program{
		words: []string{"/usr/bin/git"},
		env: map[string]string{
			"GIT_SSL_CAINFO": n.CAFile(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
		},
		read: []string{n.CAFile(), "/usr/share/git-core/templates"},
		exec: []string{"/usr/lib/git-core/git", "/usr/lib/git-core/git-remote-https"},
	}
}

func TestGit(t *testing.T) {
	n := nettest.Get(t)
	commit := n.Repository(t)
	address := func(host string) string { return "https://" + host + "/repo.git" }
	const list = `egress: ["git.corp-demo.org", "private.corp-demo.org"]`
	tests := []struct {
		name, network, host string
		place               nettest.Place // that it reaches outside
		refusal             string        // inside; "": it works there too
	}{
		{"all", "egress: all", nettest.GitName, nettest.Public, ""},
		{"allowed", list, nettest.GitName, nettest.Public, ""},
		{"allowed and pinned", "names: pinned\n" + list, nettest.GitName, nettest.Public, ""},
		{"public", "egress: public", nettest.GitName, nettest.Public, ""},
		{"not allowed", list, nettest.AttackerName, nettest.Attacker, "Could not resolve host: " + nettest.AttackerName},
		{"leads inside", list, nettest.PrivateName, nettest.Private, "Could not resolve host: " + nettest.PrivateName},
		{"leads inside, public", "egress: public", nettest.PrivateName, nettest.Private, "Could not resolve host: " + nettest.PrivateName},
		{"an address", list, nettest.Address(nettest.Attacker).String(), nettest.Attacker, "Failed to connect to " + nettest.Address(nettest.Attacker).String()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := n.Mark(t)
			end := run(t, plain{}.Command(t, gitClient(t, n), "", "ls-remote", address(tt.host), "refs/heads/main"))
			if want := commit + "\trefs/heads/main\n"; end.status != 0 || end.stdout != want {
				t.Errorf("outside: got status %d, %q and %q; want %q", end.status, end.stdout, end.stderr, want)
			}
			if !n.Reached(t, mark, tt.place) {
				t.Errorf("outside: %s was not reached", tt.place)
			}

			mark = n.Mark(t)
			cmd := jailed{}.Command(t, gitClient(t, n), tt.network, "clone", "-q", address(tt.host), "copy")
			end = run(t, cmd)
			if tt.refusal == "" {
				text, err := os.ReadFile(filepath.Join(cmd.Dir, "copy", nettest.RepositoryFile))
				if end.status != 0 || err != nil || string(text) != nettest.RepositoryText {
					t.Errorf("inside: got status %d and %q (%v); stderr:\n%s", end.status, text, err, end.stderr)
				}
				return
			}
			if end.status != 128 || !strings.Contains(end.stderr, tt.refusal) {
				t.Errorf("inside: got status %d, want 128 and %q; stderr:\n%s", end.status, tt.refusal, end.stderr)
			}
			n.Untouched(t, mark, tt.place)
			if tt.place == nettest.Attacker {
				n.Unasked(t, mark, tt.host)
			}
		})
	}
}
