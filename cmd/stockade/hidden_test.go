package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/profiles"
	"stockade/sandbox/egress"
)

// A secret that a server asks with is neither told nor logged.
func TestSecretsAreNotLogged(t *testing.T) {
	p, err := profiles.Parse("p.yaml", []byte("version: 1\nenvironment: {pass: [OPEN], secrets: [API_TOKEN, SHORT]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	var errs bytes.Buffer
	l := openDenialLog(state, "p", stdio{err: &errs})
	l.hide = hider(p, []string{"API_TOKEN=s3cret-v\x1balue", "OPEN=ordinary", "SHORT=443"})
	l.deny(egress.Denial{Program: "node", Call: "dns", Asked: "name s3cret-v\x1balue.evil.example", Rule: "no rule names s3cret-v\x1balue.evil.example", Hint: `add "s3cret-v\x1balue.evil.example:443" to ordinary`})
	l.observed(denialEntry{Program: "ls", Call: "openat", Kind: kindFile, Operation: "reading", Asked: "/s3cret-v\x1balue", Hint: "add /s3cret-v\x1balue", Key: "filesystem.read"})
	l.close()
	logged, err := os.ReadFile(filepath.Join(logFolder(state), logFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{errs.String(), string(logged)} {
		if strings.Contains(text, "s3cret") || !strings.Contains(text, "(API_TOKEN)") || !strings.Contains(text, "ordinary") || !strings.Contains(text, "443") {
			t.Errorf("got %q", text)
		}
	}
	if hider(p, []string{"OPEN=ordinary"}) != nil {
		t.Error("something is hidden without a secret")
	}
}
