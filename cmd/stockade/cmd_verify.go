package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/program"
	"stockade/sandbox/verify"
)

const verifyAbout = `
DESCRIPTION
    Works out the plan like "stockade run", starts a probe in place of the server in that
    very jail, and lets it try what the plan forbids and, beside it, what the plan allows.
    The probe is stockade itself: its program is the one grant that is added.

    A check holds when the kernel gives exactly the expected answer. "weaker" is any other
    answer; "cannot tell" is an operation that does not work outside the jail either, so
    that its refusal proves nothing.

    Nothing is left behind, and the server is not started.

    With --json:
        {"profile", "holds", "checks": [{"layer", "name", "op", "path", "num", "names",
         "want", "outside", "outcome", "got"}]}
    "want" and "got" are errno names, "" for success.

EXIT STATUS
    0    every check holds
    1    the jail is weaker than the plan, or a check cannot tell
    125  stockade stopped before the probe ran
    126  the server's program was found but cannot run
    127  the server's program was not found
`

type verifyOptions struct {
	launchOptions
	json bool
}

func newVerifyCommand(c *call) *cli.Command {
	opts := &verifyOptions{}
	return &cli.Command{
		UsageText:   "stockade verify [--json] " + sameSynopsis,
		Description: verifyAbout,
		Flags: append(opts.flags(),
			&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json}),
		Action: func(ctx *cli.Context) error {
			if err := c.needsServer(ctx); err != nil {
				return err
			}
			return runVerify(ctx.Context, opts, c.server, c.stdio)
		},
	}
}

// verification is the answer of verify; its JSON form is documented in the help.
type verification struct {
	Profile string          `json:"profile"`
	Holds   bool            `json:"holds"`
	Checks  []verify.Result `json:"checks"`
}

func runVerify(ctx context.Context, opts *verifyOptions, server []string, std stdio) error {
	// A signal ends the child, and what was made is removed before this process ends.
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	l, err := prepare(ctx, &opts.launchOptions, server, anotherProcess, refuseMissing, std)
	if err != nil {
		return err
	}
	for _, w := range l.resolved.Warnings {
		std.say(sayWarning, w)
	}
	plan, machine, err := probePlan(l)
	if err != nil {
		return err
	}
	clear := keepClear(plan)
	defer clear()
	checks, results, err := probe(ctx, plan, machine, std)
	if err != nil {
		return err
	}
	v := verification{Profile: plan.Name, Holds: verify.Strong(checks, results), Checks: results}
	if opts.json {
		err = writeJSON(std.out, v)
	} else {
		err = writeVerification(std.out, v)
	}
	if err != nil {
		return err
	}
	if !v.Holds {
		return &noError{
			answer: "the jail is weaker than its plan",
			hint:   `look at the checks that do not hold; "stockade doctor" tells what this kernel lacks`,
		}
	}
	return nil
}

// probePlan is the plan with stockade in the server's place. Everything else stays.
func probePlan(l launch) (sandbox.Plan, verify.Machine, error) {
	self, err := ownProgram()
	if err != nil {
		return sandbox.Plan{}, verify.Machine{}, err
	}
	execute, read, err := program.Closure(self, l.machine.program)
	if err != nil {
		return sandbox.Plan{}, verify.Machine{}, fmt.Errorf("working out what the probe needs: %w", err)
	}
	plan := l.resolved.Plan
	plan.Grants = slices.Clone(plan.Grants)
	origin := sandbox.Origin{Source: sandbox.OriginAlways}
	for _, file := range append([]string{self}, execute...) {
		plan.Grants = append(plan.Grants, sandbox.Grant{Path: file, Access: sandbox.Execute, Origin: origin, Why: "the probe"})
	}
	for _, n := range read {
		g := sandbox.Grant{Path: n.Path, Access: sandbox.Read, Origin: origin, Why: "the probe: " + n.Why}
		if n.Optional {
			g.Presence = sandbox.Optional
		}
		plan.Grants = append(plan.Grants, g)
	}
	plan.File, plan.Argv = self, []string{"stockade", checksWord}
	machine := verify.Machine{Parent: os.Getpid(), Self: self}
	if fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		machine.IPv6 = verify.IPv6Present
	}
	for _, name := range [...]string{"sh", "env", "cat"} {
		if p, err := program.Resolve([]string{name}, l.machine.program); err == nil {
			machine.Foreign = append(machine.Foreign, p.File)
		}
	}
	return plan, machine, nil
}

// ownProgram is the real path of this program. The kernel appends a word when the file was
// replaced while it ran; such a file is not what started.
func ownProgram() (string, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("asking for the path of stockade's own program: %w", err)
	}
	if _, err := os.Stat(self); err != nil {
		return "", fmt.Errorf("looking for stockade's own program %q: %w", self, plainError(err))
	}
	return self, nil
}

// probe runs the checks: all in a child that enters the plan, then those that have to work
// outside, here.
func probe(ctx context.Context, plan sandbox.Plan, machine verify.Machine, std stdio) ([]verify.Check, []verify.Result, error) {
	victim, remove, err := plantVictim(plan)
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	machine.Victim = victim
	plan.Guard = nil // the probe is no server, and speaks its own language
	if plan.Mediated() {
		socket, err := plantSocket(victim)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = socket.Close() }() // what was to be tried on it has been
		machine.Socket = socket.Addr().String()
	}
	checks := verify.Checks(plan, machine)
	inside, err := runProbe(ctx, plan, checks, std)
	if err != nil {
		return nil, nil, err
	}
	// Afterwards, because the folders that the child made are tried, too.
	return checks, verify.Merge(inside, verify.TryOutside(checks)), nil
}

// plantVictim makes a file that no plan can grant: it lies in stockade's own folder. The
// folder of the temporary folders is made with it, so that it is still there when what is
// refused inside is tried outside: a supervised probe takes away what it made.
func plantVictim(plan sandbox.Plan) (path string, remove func(), err error) {
	dir := filepath.Dir(plan.Runs)
	if err := os.MkdirAll(plan.Runs, 0o700); err != nil {
		return "", nil, fmt.Errorf("making %q for a file to be refused: %w", dir, plainError(err))
	}
	f, err := os.CreateTemp(dir, "verify-")
	if err != nil {
		return "", nil, fmt.Errorf("making a file to be refused in %q: %w", dir, plainError(err))
	}
	path = f.Name()
	remove = func() { _ = os.Remove(path) }
	_, err = f.WriteString("outside\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("writing %q: %w", path, plainError(err))
	}
	return path, remove, nil
}

// plantSocket listens beside the victim. Whoever connects waits in the kernel's queue,
// which is all that a check needs.
func plantSocket(victim string) (net.Listener, error) {
	path := victim + ".sock"
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, &factError{problem: fmt.Sprintf("making a socket to be refused at %q", path), hint: "set XDG_CACHE_HOME to a folder with a shorter path", cause: err}
	}
	return socket, nil
}

// runProbe starts this program again. The child reads the plan from descriptor 3, enters
// it and executes the probe, which reads the checks from standard input.
func runProbe(ctx context.Context, plan sandbox.Plan, checks []verify.Check, std stdio) ([]verify.Result, error) {
	sent, err := encodePlan(plan)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(checks)
	if err != nil {
		return nil, fmt.Errorf("writing the checks: %w", err)
	}
	pipe, feed, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the plan: %w", err)
	}
	var found bytes.Buffer
	child := exec.CommandContext(ctx, plan.File)
	child.Args = []string{"stockade", enterWord}
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(list), &found, std.err
	child.ExtraFiles = []*os.File{pipe}
	err = child.Start()
	_ = pipe.Close() // the child alone reads: when it ends early, the write below fails
	if err != nil {
		_ = feed.Close()
		return nil, fmt.Errorf("starting the probe: %w", err)
	}
	_, feedErr := feed.Write(sent)
	if closeErr := feed.Close(); feedErr == nil {
		feedErr = closeErr
	}
	err = child.Wait()
	if status := child.ProcessState.ExitCode(); status >= exitStopped && status <= exitNotFound {
		return nil, &toldError{status: status} // the child said why
	}
	if err != nil {
		return nil, fmt.Errorf("running the probe: %w", err)
	}
	if feedErr != nil {
		return nil, fmt.Errorf("handing the plan to the probe: %w", feedErr)
	}
	results, err := verify.ReadResults(&found)
	if err != nil {
		return nil, err
	}
	return results, nil
}

func writeVerification(w io.Writer, v verification) error {
	rows := make([][]string, 0, len(v.Checks))
	held := 0
	for _, c := range v.Checks {
		if c.Outcome == verify.Holds {
			held++
		}
		rows = append(rows, []string{string(c.Outcome), string(c.Layer), escape(c.Name), expectation(c)})
	}
	if err := table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d checks hold\n", held, len(v.Checks))
	return err
}

func expectation(c verify.Result) string {
	word := func(errno string) string {
		if errno == "" {
			return "works"
		}
		return escape(errno)
	}
	if c.Outcome == verify.Holds {
		return word(c.Want)
	}
	return word(c.Got) + ", wanted " + word(c.Want)
}
