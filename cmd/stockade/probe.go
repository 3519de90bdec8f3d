package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/verify"
)

// Words with which stockade starts itself for verify. They are no commands: they are not in
// the table, in no help, and do nothing that the person could not do without.
const (
	enterWord  = "verify:enter"
	checksWord = "verify:checks"
)

// planDescriptor is where the child of verify reads its plan.
const planDescriptor = 3

// maxPlan bounds what the child reads.
const maxPlan = 64 << 20

// sentPlan carries a plan through a pipe. The environment travels as bytes: JSON holds only
// UTF-8, and a variable may hold anything.
type sentPlan struct {
	Plan sandbox.Plan
	Env  [][]byte
}

func encodePlan(p sandbox.Plan) ([]byte, error) {
	sent := sentPlan{Plan: p}
	sent.Plan.Env = nil
	for _, e := range p.Env {
		sent.Env = append(sent.Env, []byte(e))
	}
	data, err := json.Marshal(sent)
	if err != nil {
		return nil, fmt.Errorf("writing the plan for the probe: %w", err)
	}
	// encoding/json writes bytes that are not UTF-8 as this escape, and the path would be
	// another one.
	if bytes.Contains(data, []byte(`\ufffd`)) {
		return nil, &factError{
			problem: "a path of the plan is not UTF-8, which the probe cannot be told",
			hint:    "rename it; stockade run does not mind",
		}
	}
	return data, nil
}

func decodePlan(r io.Reader) (sandbox.Plan, error) {
	var sent sentPlan
	if err := json.NewDecoder(io.LimitReader(r, maxPlan)).Decode(&sent); err != nil {
		return sandbox.Plan{}, fmt.Errorf("reading the plan: %w", err)
	}
	for _, e := range sent.Env {
		sent.Plan.Env = append(sent.Plan.Env, string(e))
	}
	return sent.Plan, nil
}

// runEnter is the child of verify: it enters the plan and becomes the probe, or starts it
// where the plan needs a supervisor. A descriptor
// stays open on purpose, as a careless host would leave one, for the probe to look for.
func runEnter(std stdio) error {
	plan, err := decodePlan(os.NewFile(planDescriptor, "plan"))
	if err != nil {
		return err
	}
	var pair [2]int
	if err := unix.Pipe(pair[:]); err != nil {
		return fmt.Errorf("making a descriptor to be closed: %w", err)
	}
	if err := unix.Dup3(pair[0], verify.PlantedDescriptor, 0); err != nil {
		return fmt.Errorf("planting a descriptor to be closed: %w", err)
	}
	opened, err := sandbox.Open(plan)
	if err != nil {
		return err
	}
	if plan.Supervised() {
		unsaid := func(egress.Denial) {} // the probe tells what was refused
		return superviseServer(opened, hearing{deny: unsaid}, std)
	}
	if _, err := sandbox.Enter(opened); err != nil {
		return err
	}
	return sandbox.Exec(opened)
}

// runChecks is the probe, inside the jail.
func runChecks(std stdio) error {
	if status := verify.RunChecks(std.in, std.out); status != 0 {
		return &factError{
			problem: "the probe could not read its checks, or not say what it found",
			hint:    `this word is how "stockade verify" starts its probe; it is no command`,
		}
	}
	return nil
}

// keepClear remembers which private folders of a plan are not there yet, and returns the
// function that removes them again: the temporary folder with what is in it, the others
// when they are empty.
func keepClear(p sandbox.Plan) func() {
	var absent []string
	for _, path := range [...]string{p.Tmp.Path, p.Home.Path, p.Runs} {
		for at := path; at != "" && at != "/" && at != "."; at = filepath.Dir(at) {
			if _, err := os.Lstat(at); err == nil {
				break
			}
			absent = append(absent, at)
		}
	}
	return func() {
		if p.Tmp.Path != "" {
			_ = os.RemoveAll(p.Tmp.Path)
		}
		for _, at := range absent {
			_ = os.Remove(at) // a folder that is not empty is somebody's
		}
	}
}
