package supervise_test

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/jailtest"
	"stockade/sandbox/supervise"
	"stockade/seccomp"
)

// ground is a small world on disk, inside and outside of grants:
//
//	read/    granted for reading; write/ and also/ for writing; outside/ not at all
//	each with file, folder/, prog, and link -> ../outside/file
type ground struct {
	user jailtest.User
	dir  string
	plan sandbox.Plan
}

func newGround(t *testing.T, user jailtest.User) *ground {
	t.Helper()
	g := &ground{user: user, dir: jailtest.Dir(t, user)}
	must := func(err error, path string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		jailtest.Own(t, user, path)
	}
	folder := func(name string) {
		t.Helper()
		must(os.Mkdir(g.at(name), 0o755), g.at(name))
	}
	for _, name := range []string{"data", "cache"} {
		folder(name)
	}
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read", "write", "also", "outside"} {
		folder(name)
		folder(name + "/folder")
		must(os.WriteFile(g.at(name+"/file"), []byte("content"), 0o644), g.at(name+"/file"))
		must(os.WriteFile(g.at(name+"/folder/file"), []byte("content"), 0o644), g.at(name+"/folder/file"))
		must(os.WriteFile(g.at(name+"/prog"), program, 0o755), g.at(name+"/prog"))
		must(os.Symlink("../outside/file", g.at(name+"/link")), g.at(name+"/link"))
		must(os.Symlink("../outside/nothing", g.at(name+"/dangling")), g.at(name+"/dangling"))
	}
	g.plan = g.newPlan(t)
	return g
}

func (g *ground) at(name string) string { return filepath.Join(g.dir, name) }

func (g *ground) newPlan(t *testing.T) sandbox.Plan {
	t.Helper()
	binary, err := filepath.EvalSymlinks(jailtest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	p := sandbox.Plan{
		Name: "test", File: binary, Dir: g.dir,
		Home: sandbox.Folder{Path: g.at("data/stockade/homes/test")},
		Tmp:  sandbox.Folder{Path: g.at("cache/stockade/runs/test")},
		Runs: g.at("cache/stockade/runs"),
		Env:  []string{"PATH=/usr/bin:/bin", "TMPDIR=" + g.at("cache/stockade/runs/test"), "GORACE=atexit_sleep_ms=0"},
	}
	grant := func(path string, a sandbox.Access) {
		p.Grants = append(p.Grants, sandbox.Grant{Path: path, Access: a, Origin: sandbox.Origin{Source: "test"}})
	}
	grant(binary, sandbox.Execute)
	if f, err := elf.Open(binary); err == nil {
		if section := f.Section(".interp"); section != nil {
			data, err := section.Data()
			if err != nil {
				t.Fatal(err)
			}
			loader, err := filepath.EvalSymlinks(strings.TrimRight(string(data), "\x00"))
			if err != nil {
				t.Fatal(err)
			}
			grant(loader, sandbox.Execute)
			grant(filepath.Dir(loader), sandbox.Read)
		}
		f.Close()
	}
	// The race detector reads its options there; without them each victim sleeps a second.
	p.Grants = append(p.Grants, sandbox.Grant{Path: "/proc/self/environ", Access: sandbox.Read, Origin: sandbox.Origin{Source: sandbox.OriginAlways}})
	grant("/dev/null", sandbox.Device)
	grant(p.Home.Path, sandbox.Scratch)
	grant(p.Tmp.Path, sandbox.Scratch)
	grant(g.at("read"), sandbox.Read)
	grant(g.at("write"), sandbox.Write)
	grant(g.at("also"), sandbox.Write)
	return p
}

// run does an operation in the jail, with or without observation.
func (g *ground) run(t *testing.T, observation seccomp.Observation, op ...string) jailtest.Result {
	t.Helper()
	plan := g.plan
	plan.Filter.Observation = observation
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return jailtest.Launch{User: g.user, Dir: g.dir}.Run(t, "observer", append([]string{string(text)}, op...)...)
}

// told reads the refusals that lie in the ground; the Go runtime of a victim makes others.
func (g *ground) told(t *testing.T, r jailtest.Result) (out []supervise.Refusal) {
	t.Helper()
	for line := range strings.Lines(r.Stderr) {
		text, found := strings.CutPrefix(line, "refusal: ")
		if !found {
			continue
		}
		var one supervise.Refusal
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		if one.Operation == supervise.MakingSocket || strings.HasPrefix(one.Path, g.dir+"/") {
			out = append(out, one)
		}
	}
	return out
}

var observeVictims = jailtest.Victims{
	// observer: a plan as JSON, an operation and its arguments. It ends as the server ends.
	"observer": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		var p sandbox.Plan
		if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
			s.Failf("reading the plan: %v", err)
		}
		p.Argv = append([]string{"victim"}, args[1:]...)
		p.Env = append(p.Env, jailtest.Environment("files")...)
		status, err := observeServer(p)
		if err != nil {
			s.Failf("%v", err)
		}
		if status.Signaled() {
			s.Failf("the server was killed by %v", status.Signal())
		}
		os.Exit(status.ExitStatus())
		panic("unreachable")
	},
	// files: an operation and its arguments.
	"files": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		do, known := fileOperations[args[0]]
		if !known {
			s.Failf("no operation is called %q", args[0])
		}
		s.Begin()
		return do(s, args[1:])
	},
}

// observeServer starts the plan, observed or not, and waits for its end.
func observeServer(p sandbox.Plan) (status unix.WaitStatus, err error) {
	opened, err := sandbox.Open(p)
	if err != nil {
		return 0, err
	}
	life, err := supervise.Begin()
	if err != nil {
		return 0, err
	}
	c := supervise.Config{Profile: "test", Deny: func(egress.Denial) {}}
	parent := sandbox.Parent{Reach: supervise.Reach}
	if p.Observed() {
		c.Observation = &supervise.Observation{
			Tell: func(r supervise.Refusal) {
				text, err := json.Marshal(r)
				if err != nil {
					panic(err)
				}
				_, _ = os.Stderr.WriteString("refusal: " + string(text) + "\n")
			},
			Unseen: func() { _, _ = os.Stderr.WriteString("unseen\n") },
		}
		if c.Observation.Filter, err = p.Filter.Unobserved(); err != nil {
			return 0, err
		}
		parent.Answer = c.Observation.Answer
	} else {
		// The filter of a child that is started has a listener, so it needs calls that wait.
		opened.Plan.Filter.Supervision = seccomp.SupervisedUnix
	}
	started, err := sandbox.Start(opened, parent)
	if err != nil {
		return 0, err
	}
	c.Listener, c.PID = started.Listener, started.PID
	served := make(chan error, 1)
	go func() { served <- serveObserved(c, opened) }()
	status, err = life.Wait(started.PID)
	return status, errors.Join(err, <-served)
}

func serveObserved(c supervise.Config, opened *sandbox.Opened) (err error) {
	if c.Observation != nil {
		if c.Observation.Domain, err = opened.Domain(); err != nil {
			return err
		}
	}
	if err := supervise.Withdraw(); err != nil {
		return err
	}
	if err := supervise.Serve(c); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
