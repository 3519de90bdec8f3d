package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
	"stockade/seccomp"
)

// exampleLaunch is a plan with one of everything that explain shows.
func exampleLaunch() (launch, []sandbox.OpenedGrant) {
	at := func(line, column int) sandbox.Origin {
		return sandbox.Origin{Source: "fs.yaml", Line: line, Column: column}
	}
	granted := func(g sandbox.Grant, target string, kind sandbox.Kind) sandbox.OpenedGrant {
		return sandbox.OpenedGrant{Grant: g, Target: target, Kind: kind, State: sandbox.Granted}
	}
	home := "/home/me/.local/share/stockade/homes/fs++srv+mcp+dist+index.js"
	pending := granted(sandbox.Grant{Path: home, Access: sandbox.Scratch, Origin: sandbox.Origin{Source: sandbox.OriginAlways}, Why: "private home"}, home, sandbox.KindFolder)
	pending.State = sandbox.Pending
	absent := sandbox.OpenedGrant{
		Grant: sandbox.Grant{Path: "/home/me/.gitconfig", Access: sandbox.Read, Presence: sandbox.Optional, Origin: at(9, 14), Why: "filesystem.optional"},
		State: sandbox.Skipped,
	}
	l := launch{
		source: "/home/me/.config/stockade/profiles/fs.yaml",
		resolved: profiles.Resolved{
			Profile: exampleProfile(),
			Program: program.Program{Runtime: program.Node, Entry: "/srv/mcp/dist/index.js", Package: "@modelcontextprotocol/server-filesystem"},
			Plan: sandbox.Plan{
				Name: "fs", File: "/usr/bin/node", Argv: []string{"node", "/srv/mcp/dist/index.js", "--api-key", "s3cret-key", "/home/me/my project"},
				Dir: "/home/me/my project", Env: []string{"PATH=/usr/bin", "HOME=" + home, "TOKEN=s3cret=value"},
				Network: sandbox.Network{Listen: []uint16{8080, 9090}},
				Filter:  seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed},
				Limits:  sandbox.Limits{OpenFiles: 1024, FileSize: 1 << 30, Memory: 1<<31 + 1},
				Home:    sandbox.Folder{Path: home},
				Tmp:     sandbox.Folder{Path: "/home/me/.cache/stockade/runs/1-2-3"},
				Missing: []sandbox.Layer{sandbox.LayerScopeSignals},
			},
			Warnings: []string{"fs.yaml:12:3: it is wide"},
			Notes:    []string{"a shim was followed\nstockade: error: forged"},
			Residual: []profiles.Residual{
				{Promise: "files are kept", Open: "their sizes are seen"},
				{Promise: "files are kept", Open: "their times are seen"},
				{Promise: "the machine is kept", Open: "processor time is not limited"},
			},
		},
	}
	return l, []sandbox.OpenedGrant{
		pending, absent,
		granted(sandbox.Grant{Path: "/usr/bin/node", Access: sandbox.Execute, Origin: sandbox.Origin{Source: sandbox.OriginRuntime}, Why: "the server's program"}, "/usr/bin/node", sandbox.KindFile),
		granted(sandbox.Grant{Path: "/home/me/link", Access: sandbox.Write, Origin: at(7, 5), Why: "root from the server's argument"}, "/home/me/my project", sandbox.KindFolder),
		granted(sandbox.Grant{Path: "/etc", Access: sandbox.Read, Broad: "the server checks the machine", Origin: at(8, 5), Why: "filesystem.read"}, "/etc", sandbox.KindFolder),
		granted(sandbox.Grant{Path: "/proc/self/status", Access: sandbox.Read, Origin: sandbox.Origin{Source: sandbox.OriginAlways}, Why: "memory in use"}, "/proc/4711/status", sandbox.KindFile),
		granted(sandbox.Grant{Path: "/srv/a\x1b[2Jb", Access: sandbox.Read, Origin: sandbox.Origin{Source: "--read"}, Why: "filesystem.read"}, "/srv/a\x1b[2Jb", sandbox.KindFile),
	}
}

// exampleProfile has what a profile says beyond its plan.
func exampleProfile() *profiles.Profile {
	at := func(line, column int) profiles.Position {
		return profiles.Position{File: "fs.yaml", Line: line, Column: column}
	}
	p := profiles.Empty()
	p.Environment.Secrets = []profiles.Secret{
		{Name: "TOKEN", Position: at(20, 13)}, {Name: "OTHER_TOKEN", Optional: true, Position: at(20, 20)},
	}
	p.Install = profiles.InstallScripts{
		Scripts: []profiles.Sourced[string]{{Value: "@scope/native", Position: at(22, 13)}},
		Execute: []profiles.Sourced[string]{{Value: "make", Position: at(23, 13)}},
		Read:    []profiles.PathEntry{{Path: "${home}/tools", Broad: true, Reason: "its compiler", Position: at(24, 10)}},
	}
	return p
}

// exampleView is the example on a kernel of the test's own, so that the output is the same
// on every machine.
func exampleView(t *testing.T) planView {
	t.Helper()
	l, grants := exampleLaunch()
	v, err := view(l, &sandbox.Opened{Plan: l.resolved.Plan, Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	v.Layers = []layerView{
		{sandbox.LayerFiles, "present", "holds files"},
		{sandbox.LayerScopeSignals, "absent", "needs ABI 6, this kernel has ABI 4"},
	}
	v.Syscalls.Allowed = 300
	for i := range v.Syscalls.Answers {
		v.Syscalls.Answers[i].Calls = v.Syscalls.Answers[i].Calls[:1]
	}
	v.Syscalls.Answers = append(v.Syscalls.Answers, answerView{"ELOOP", strings.Fields("a b c d e f g h i j k")})
	return v
}

func TestExplainText(t *testing.T) {
	for _, tt := range []struct {
		name   string
		detail detail
	}{{"explain.golden", inShort}, {"explain-all.golden", inFull}} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := writePlan(&b, exampleView(t), tt.detail); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name, b.Bytes())
			if strings.Contains(b.String(), "s3cret") {
				t.Error("a secret is printed")
			}
		})
	}
}

func TestExplainJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, exampleView(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.json.golden", b.Bytes())
	if strings.Contains(b.String(), "s3cret") {
		t.Error("the value of a variable is printed")
	}
	if strings.Contains(b.String(), "null") {
		t.Error("an empty list is null")
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// The help promises these keys; a change here is a change for programs that read them.
func TestExplainHelpNamesEveryKey(t *testing.T) {
	data, err := json.Marshal(exampleView(t))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if !strings.Contains(explainAbout, "\n        "+key+" ") {
			t.Errorf("the help does not name %q", key)
		}
	}
}

func TestExplainOCI(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TOKEN", "s3cret-value")
	var out, errs bytes.Buffer
	args := []string{"explain", "--format", "oci", "--env", "TOKEN", "--read", "/etc/hostname", "--", "echo", "hi", "--token", "s3cret-argument"}
	if status := run(args, stdio{out: &out, err: &errs}); status != 0 || errs.Len() > 0 {
		t.Fatalf("status %d, stderr %q", status, errs.String())
	}
	if strings.Contains(out.String(), "s3cret") {
		t.Error("the value of a variable is printed")
	}
	var config struct {
		specs.Spec
		Notes []string `json:"notes"`
	}
	if err := json.Unmarshal(out.Bytes(), &config); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(config.Notes, func(n string) bool { return strings.Contains(n, masked) }) {
		t.Errorf("the notes do not say that an argument is masked: %q", config.Notes)
	}
	var annotated []string
	if err := json.Unmarshal([]byte(config.Annotations[notesAnnotation]), &annotated); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Notes, annotated); diff != "" {
		t.Errorf("the annotation differs: %s", diff)
	}
	if got := config.Process.User.UID; got != uint32(os.Getuid()) {
		t.Errorf("uid %d", got)
	}
	if !slices.Contains(config.Process.Env, "TOKEN=") || config.Linux.Seccomp == nil || !config.Process.NoNewPrivileges {
		t.Errorf("process %+v", config.Process)
	}
	if !slices.ContainsFunc(config.Mounts, func(m specs.Mount) bool {
		return m.Destination == "/etc/hostname" && slices.Contains(m.Options, "ro")
	}) {
		t.Error("the grant is not mounted")
	}
}

// TestExplainNetwork has what a supervised plan shows.
func TestExplainNetwork(t *testing.T) {
	n := networkView{
		Egress: "list", Listen: []uint16{8080}, Supervised: true,
		Rules: []ruleView{
			{To: "a.example:443", Names: "strict", Origin: originView{Source: "p.yaml", Line: 3, Column: 4}},
			{To: "192.0.2.1:80", Origin: originView{Source: "--egress"}},
		},
		Unix: []socketView{
			{Path: "/srv/app.sock", Origin: originView{Source: "p.yaml", Line: 5, Column: 6}},
			{Path: "/run/docker.sock", Broad: "it builds images", Origin: originView{Source: "p.yaml", Line: 6, Column: 6}},
		},
	}
	want := [][]string{
		{"egress", "list", "what the rules name; no other name resolves"},
		{"  rule", "a.example:443", "names: strict", "p.yaml:3:4"},
		{"  rule", "192.0.2.1:80", "address", "--egress"},
		{"listen", "8080", "TCP, on every address of this machine"},
		{"unix", "/srv/app.sock", "Unix socket", "p.yaml:5:6"},
		{"unix", "/run/docker.sock", "Unix socket; broad: it builds images", "p.yaml:6:6"},
		{"supervisor", "stays", "as the server's parent: it decides on each connection, resolves names and relays"},
	}
	if diff := cmp.Diff(want, networkRows(n, nil)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
