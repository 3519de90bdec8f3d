package verify_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/jailtest"
	"stockade/sandbox/verify"
	"stockade/seccomp"
)

func TestMain(m *testing.M) {
	jailtest.Main(m, jailtest.Victims{"jail": jail, "probe": probe})
}

// jail enters the plan of args[0] and executes this binary as the probe.
func jail(s *jailtest.Stage, args []string) jailtest.Outcome {
	var p sandbox.Plan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		s.Failf("reading the plan: %v", err)
	}
	p.Argv = []string{p.File, args[1]}
	p.Env = append(p.Env, jailtest.Environment("probe")...)
	if err := unix.Dup2(2, verify.PlantedDescriptor); err != nil {
		s.Failf("planting a descriptor: %v", err)
	}
	o, err := sandbox.Open(p)
	if err != nil {
		s.Failf("opening: %v", err)
	}
	if _, err := sandbox.Enter(o); err != nil {
		s.Failf("entering: %v", err)
	}
	s.Failf("executing: %v", sandbox.Exec(o))
	return jailtest.Outcome{}
}

// probe runs the checks of args[0]. Its results go out by the note of its outcome, since
// standard output is the harness's.
func probe(s *jailtest.Stage, args []string) jailtest.Outcome {
	s.Begin()
	var out strings.Builder
	status := verify.RunChecks(strings.NewReader(args[0]), &out)
	return jailtest.Outcome{Value: int64(status), Note: out.String()}
}

type world struct {
	user   jailtest.User
	plan   sandbox.Plan
	checks []verify.Check
}

func newWorld(t *testing.T, user jailtest.User) *world {
	t.Helper()
	dir := jailtest.Dir(t, user)
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	jailtest.Own(t, user, victim)
	binary, err := filepath.EvalSymlinks(jailtest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{user: user, plan: sandbox.Plan{
		Name: "verify", File: binary,
		Home: sandbox.Folder{Path: dir + "/data/stockade/homes/v"},
		Tmp:  sandbox.Folder{Path: dir + "/cache/stockade/runs/v"},
		Runs: dir + "/cache/stockade/runs",
		Env:  []string{"PATH=/usr/bin:/bin"},
	}}
	w.grant(binary, sandbox.Execute)
	for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if real, err := filepath.EvalSymlinks(loader); err == nil {
			w.grant(real, sandbox.Execute)
			w.grant(filepath.Dir(real), sandbox.Read)
		}
	}
	w.grant("/dev/null", sandbox.Device)
	w.grant(w.plan.Home.Path, sandbox.Scratch)
	w.grant(w.plan.Tmp.Path, sandbox.Scratch)
	other := startSleeper(t, user)
	w.checks = verify.Checks(w.plan, verify.Machine{Parent: other, Self: binary, Victim: victim, Foreign: foreign(t)})
	for i := range w.checks {
		if w.checks[i].Op == verify.OpEnvironment {
			w.checks[i].Names = append(w.checks[i].Names, "STOCKADE_VICTIM")
		}
	}
	return w
}

func (w *world) grant(path string, a sandbox.Access) {
	w.plan.Grants = append(w.plan.Grants, sandbox.Grant{Path: path, Access: a, Origin: sandbox.Origin{Source: "test"}})
}

func foreign(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, f := range []string{"/bin/sh", "/usr/bin/env"} {
		real, err := filepath.EvalSymlinks(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, real)
	}
	return out
}

func startSleeper(t *testing.T, user jailtest.User) int {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "600")
	if user.Switch == jailtest.ChangeIdentity {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func results(t *testing.T, r jailtest.Result) []verify.Result {
	t.Helper()
	jailtest.WantValue(t, r, 0)
	out, err := verify.ReadResults(strings.NewReader(r.Outcome.Note))
	if err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	return out
}

func (w *world) inside(t *testing.T, plan sandbox.Plan) []verify.Result {
	t.Helper()
	p, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return results(t, jailtest.RunAs(t, w.user, "jail", string(p), w.encoded(t)))
}

func (w *world) encoded(t *testing.T) string {
	t.Helper()
	c, err := json.Marshal(w.checks)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

func TestAllHoldInTheJail(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		w := newWorld(t, user)
		got := w.inside(t, w.plan)
		for _, r := range got {
			if r.Outcome != verify.Holds {
				t.Errorf("%s: %s: want %q, got %q", r.Layer, r.Name, r.Want, r.Got)
			}
		}
		if !verify.Strong(w.checks, got) {
			t.Error("not strong")
		}
		if verify.Strong(w.checks, got[:len(got)-1]) {
			t.Error("strong with a check missing")
		}
	})
}

// TestNothingHoldsOutside: a probe without a jail must not find one. Every check that
// wants a refusal has to come out weaker there.
func TestNothingHoldsOutside(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		t.Helper()
		w := newWorld(t, user)
		// Without privilege or a device these are refused everywhere, with the same errno.
		always := []verify.Op{verify.OpSocket, verify.OpBPF}
		for _, r := range results(t, jailtest.RunAs(t, user, "probe", w.encoded(t))) {
			if r.Want == "" || r.Op == verify.OpDescriptor || slices.Contains(always, r.Op) {
				continue
			}
			if r.Outcome == verify.Holds {
				t.Errorf("%s: %s holds without a jail (got %q)", r.Layer, r.Name, r.Got)
			}
		}
	})
}

// TestWeakerJails: checks of a strict plan, run in a jail that lacks one thing of it.
func TestWeakerJails(t *testing.T) {
	tests := []struct {
		name  string
		ops   []verify.Op // that must come out weaker
		relax func(w *world, p sandbox.Plan) sandbox.Plan
	}{
		{"a folder more", []verify.Op{verify.OpList, verify.OpRead}, func(_ *world, p sandbox.Plan) sandbox.Plan {
			p.Grants = append(p.Grants, sandbox.Grant{Path: "/etc", Access: sandbox.Read})
			return p
		}},
		{"a program more", []verify.Op{verify.OpExec}, func(w *world, p sandbox.Plan) sandbox.Plan {
			for _, c := range w.checks {
				if c.Op == verify.OpExec && c.Want != "" {
					p.Grants = append(p.Grants, sandbox.Grant{Path: c.Path, Access: sandbox.Execute})
				}
			}
			return p
		}},
		{"a variable more", []verify.Op{verify.OpEnvironment}, func(_ *world, p sandbox.Plan) sandbox.Plan {
			p.Env = append(slices.Clone(p.Env), "EXTRA=1")
			return p
		}},
		{"Internet sockets", []verify.Op{verify.OpSocket}, func(_ *world, p sandbox.Plan) sandbox.Plan {
			p.Network.Egress = sandbox.EgressAll
			p.Filter.Sockets = seccomp.InternetSockets
			return p
		}},
		{"a call more", []verify.Op{verify.OpIoUring}, func(_ *world, p sandbox.Plan) sandbox.Plan {
			p.Filter.Allow = []string{"io_uring_setup"}
			return p
		}},
		{"metadata refused", []verify.Op{verify.OpChmodIgnored}, func(_ *world, p sandbox.Plan) sandbox.Plan {
			p.Filter.Metadata = seccomp.MetadataRefuse
			return p
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
				t.Helper()
				w := newWorld(t, user)
				got := w.inside(t, tt.relax(w, w.plan))
				if verify.Strong(w.checks, got) {
					t.Error("strong")
				}
				for _, r := range got {
					if r.Outcome != verify.Holds && !slices.Contains(tt.ops, r.Op) {
						t.Errorf("%s came out %s (%q), too", r.Name, r.Outcome, r.Got)
					}
				}
			})
		})
	}
}

func TestOutsideTwins(t *testing.T) {
	checks := []verify.Check{
		{Name: "there", Op: verify.OpList, Path: "/", Want: "EACCES", Outside: verify.WorksOutside},
		{Name: "absent", Op: verify.OpRead, Path: "/no/such/file", Want: "EACCES", Outside: verify.WorksOutside},
		{Name: "not tried", Op: verify.OpRead, Path: "/no/such/file", Want: "EACCES"},
	}
	failed := verify.TryOutside(checks)
	if len(failed) != 1 || failed[0].Name != "absent" || failed[0].Outcome != verify.CannotTell {
		t.Fatalf("got %+v", failed)
	}
	inside := []verify.Result{{Check: checks[0], Outcome: verify.Holds}, {Check: checks[1], Outcome: verify.Holds}}
	if merged := verify.Merge(inside, failed); verify.Strong(checks[:2], merged) {
		t.Error("a refusal that happens outside too counts as proof")
	}
}

func TestReadResultsNeedsTheFinish(t *testing.T) {
	if _, err := verify.ReadResults(strings.NewReader(`{"name":"x","outcome":"holds"}` + "\n")); err == nil {
		t.Error("no error without the finish line")
	}
	if status := verify.RunChecks(strings.NewReader("no checks"), &strings.Builder{}); status != 2 {
		t.Errorf("status %d for unreadable checks", status)
	}
}
