package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/sandbox/egress"
)

// A limit below ${home} holds for the folder that the user database names, whatever HOME says.
func TestPolicyHomes(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	m, err := lookAround()
	if err != nil {
		t.Fatal(err)
	}
	homes, err := m.homes("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{m.home, filepath.Clean(u.HomeDir)} {
		if !slices.Contains(homes, want) {
			t.Errorf("the homes are %q, without %q", homes, want)
		}
	}
	// A user that only the name service switch knows, or nobody.
	if _, err := homeBySwitch("4294967000"); err == nil {
		t.Error("a user that is not there has a home folder")
	}
	home, err := homeBySwitch(u.Uid)
	if err != nil || home != u.HomeDir {
		t.Errorf("getent says %q (%v), want %q", home, err, u.HomeDir)
	}
}

// What a policy wants told of refusals is told as often as the log is written, and a log that
// fails is said once.
func TestAudit(t *testing.T) {
	var errs bytes.Buffer
	l := openDenialLog(t.TempDir(), "web", stdio{err: &errs})
	var told []string
	l.audit = func(line string) error {
		told = append(told, line)
		return nil
	}
	denial := egress.Denial{Program: "node", PID: 7, Call: "connect", Asked: "tcp 203.0.113.9:443", Rule: "no rule names it"}
	l.deny(denial)
	l.audit = func(string) error { return errors.New("nobody reads it") }
	l.deny(denial)
	l.deny(denial)
	l.close()
	want := []string{fmt.Sprintf(`denial uid=%d profile="web" node: refused: connect tcp 203.0.113.9:443: no rule names it`, os.Getuid())}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if n := strings.Count(errs.String(), "nobody reads it"); n != 1 {
		t.Errorf("a log that fails is said %d times:\n%s", n, errs.String())
	}
}
