package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// stepWord is the word with which stockade starts itself for one step of an install: the
// child enters the install jail, so that this process stays outside of it. Like the words of
// verify it is no command and does nothing that the person could not do without.
const stepWord = "package:step"

const (
	// maxAnswer bounds the standard output of a step that is read, in bytes.
	maxAnswer = 4 << 20
	// maxComplaint bounds what is kept of a step's standard error, in bytes: its end.
	maxComplaint = 64 << 10
	// stepGrace is how long a step has to end when the person stops an install.
	stepGrace = 3 * time.Second
	// stepPatience is how long what a step started has of that, before its supervisor ends it.
	stepPatience = time.Second
)

// stepResult is what a step printed and how it ended.
type stepResult struct {
	status int
	out    []byte
	err    []byte   // without the lines of stockade
	told   []string // the lines of stockade: refusals of the supervisor
}

// runStep carries out one step in a jail of its own. stage is its private home, and its
// working folder lies below it.
func (in *installer) runStep(ctx context.Context, stage packages.Stage, s packages.Step, grants profiles.InstallGrants) (stepResult, error) {
	plan, err := in.stepPlan(stage, s, grants)
	if err != nil {
		return stepResult{}, err
	}
	defer keepClear(plan)()
	sent, err := encodePlan(plan)
	if err != nil {
		return stepResult{}, err
	}
	self, err := ownProgram()
	if err != nil {
		return stepResult{}, err
	}
	pipe, feed, err := os.Pipe()
	if err != nil {
		return stepResult{}, fmt.Errorf("making a pipe for the plan of the install jail: %w", err)
	}
	var out, complaint tail
	out.most, complaint.most = maxAnswer, maxComplaint
	child := exec.CommandContext(ctx, self)
	child.Args = []string{"stockade", stepWord}
	child.Dir = stage.Tree
	child.Stdout, child.Stderr = &out, &complaint
	child.ExtraFiles = []*os.File{pipe}
	child.Cancel = func() error { return child.Process.Signal(unix.SIGTERM) }
	child.WaitDelay = stepGrace
	// The thread that starts the child is the process's first one (see main.go), and lives as
	// long as the process: an install ends with whoever waits for it.
	// SIGTERM, and not SIGKILL: the step's supervisor has to end what the step started.
	child.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	err = child.Start()
	_ = pipe.Close() // the child alone reads: when it ends early, the write below fails
	if err != nil {
		_ = feed.Close()
		return stepResult{}, fmt.Errorf("starting the install jail: %w", err)
	}
	_, feedErr := feed.Write(sent)
	if closeErr := feed.Close(); feedErr == nil {
		feedErr = closeErr
	}
	err = child.Wait()
	if ctx.Err() != nil {
		return stepResult{}, fmt.Errorf("installing: %w", context.Cause(ctx))
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return stepResult{}, fmt.Errorf("running the install jail: %w", err)
	}
	if feedErr != nil && err == nil {
		return stepResult{}, fmt.Errorf("handing the plan to the install jail: %w", feedErr)
	}
	result := stepResult{status: child.ProcessState.ExitCode(), out: out.kept}
	result.told, result.err = ownLines(complaint.kept)
	if result.status == exitStopped && len(result.err) == 0 {
		return stepResult{}, &jailError{step: s.Title, told: result.told}
	}
	return result, nil
}

// jailError is an install jail that could not be made. Its lines are those of the child.
type jailError struct {
	step string
	told []string
}

func (e *jailError) Error() string {
	for _, line := range e.told {
		if text, ok := strings.CutPrefix(line, string(sayError)+": "); ok {
			return e.step + " in the install jail: " + text
		}
	}
	return e.step + ": the install jail could not be made"
}

// Hint is the cure, for a person.
func (e *jailError) Hint() string {
	for _, line := range e.told {
		if text, ok := strings.CutPrefix(line, string(sayHint)+": "); ok {
			return text
		}
	}
	return `"stockade doctor" tells what this kernel can do`
}

// ownLines parts the lines that stockade wrote from those of the package manager. Who
// writes a line in stockade's form is heard as stockade; nothing is decided by it.
func ownLines(text []byte) (ours []string, rest []byte) {
	for line := range bytes.Lines(text) {
		if own, ok := bytes.CutPrefix(line, []byte("stockade: ")); ok {
			ours = append(ours, strings.TrimSuffix(string(own), "\n"))
			continue
		}
		rest = append(rest, line...)
	}
	return ours, rest
}

// stepPlan compiles the plan of a step's jail.
func (in *installer) stepPlan(stage packages.Stage, s packages.Step, grants profiles.InstallGrants) (sandbox.Plan, error) {
	m := in.machine
	m.packages = profiles.StorePath(m.data) // the store may be new
	m.dir, m.repo = stage.Tree, ""
	m.program.Dir = stage.Tree
	p, err := program.Resolve(s.Argv, m.program)
	if err != nil {
		return sandbox.Plan{}, fmt.Errorf("%s: %w", s.Title, err)
	}
	facts, err := m.facts(p, anotherProcess)
	if err != nil {
		return sandbox.Plan{}, err
	}
	facts.StdioDevices = nil
	if facts.Stage, err = filepath.EvalSymlinks(filepath.Dir(stage.Tree)); err != nil {
		return sandbox.Plan{}, fmt.Errorf("finding the stage: %w", plainError(err))
	}
	for _, set := range s.Env {
		name, value, _ := strings.Cut(set, "=")
		grants.Set = append(grants.Set, profiles.EnvSet{Name: name, Value: literal(value), Position: profiles.InstallPosition})
	}
	search := m.search()
	search.Policy = nil // its defaults are for servers
	resolved, err := compile(search, profiles.Install(grants), profiles.Flags{}, facts)
	if err == nil {
		err = m.hold(&resolved)
	}
	if err != nil {
		return sandbox.Plan{}, err
	}
	return resolved.Plan, nil
}

// literal keeps a value from being read as one with variables.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// runStepChild is the child: it enters the plan and becomes the package manager, or starts
// it where the plan needs a supervisor.
func runStepChild(std stdio) error {
	plan, err := decodePlan(os.NewFile(planDescriptor, "plan"))
	if err != nil {
		return err
	}
	opened, err := sandbox.Open(plan)
	if err != nil {
		return err
	}
	if plan.Supervised() {
		m, err := lookAround()
		if err != nil {
			return err
		}
		return superviseLogged(opened, m, origin{patience: stepPatience}, std)
	}
	if _, err := sandbox.Enter(opened); err != nil {
		return err
	}
	return sandbox.Exec(opened)
}

// tail keeps the end of what is written to it.
type tail struct {
	kept []byte
	most int
}

var _ io.Writer = (*tail)(nil)

// Write takes everything.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}
