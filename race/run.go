package race

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"stockade/examples/stock"
)

// ErrInconclusive marks a run that proves nothing about the jail.
var ErrInconclusive = errors.New("the race proves nothing")

// Jail says how a server is started.
type Jail struct {
	Name string
	// Words go before the server's command line; nil starts it unjailed. They get the
	// stage, whose root is the one folder to grant.
	Words func(s *Stage) []string
	// Refusal is the errno name that the kernel's refusals carry in the server's answers
	// ("EACCES" under Landlock, "ENOENT" in a mount namespace).
	Refusal string
}

// Config is one run: one server, one jail, one way to swap.
type Config struct {
	Server stock.Server
	Jail   Jail
	Method Method
	Calls  int // for each row, rounded up to whole bursts; at least one
	Rows   []Row
}

// RowTally is the count of one row.
type RowTally struct {
	Row string
	Tally
}

// Result is what came of a run.
type Result struct {
	Tally
	Rows  []RowTally
	Turns int      // how often the name was turned outwards
	Notes []string // what the first leaks were
}

// Run makes one run. A leak is no error; an error that is [ErrInconclusive] says that the
// counts mean nothing.
func Run(ctx context.Context, c Config) (result Result, err error) {
	stage, err := NewStage(c.Method)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	server, err := startServer(ctx, stage, c)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrInconclusive, err)
	}
	defer func() {
		if closeErr := server.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrInconclusive, closeErr))
		}
	}()
	swap, err := startSwapper(ctx, stage)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, swap.close()) }()
	r := &runner{Config: c, stage: stage, server: server, swap: swap, took: 8 * time.Millisecond}
	if err := r.rows(ctx); err != nil {
		return r.result, err
	}
	return r.result, r.check()
}

func startServer(ctx context.Context, s *Stage, c Config) (*Client, error) {
	words, err := c.Server.Command(s.Root())
	if err != nil {
		return nil, err
	}
	if c.Jail.Words != nil {
		words = append(c.Jail.Words(s), words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = s.Home()
	cmd.Env = []string{"HOME=" + s.Home(), "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + s.Home(), "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.server}
	return StartClient(ctx, cmd)
}

// runner is the state of one run.
type runner struct {
	Config
	stage  *Stage
	server *Client
	swap   *swapProcess
	took   time.Duration // how long a burst takes to answer, smoothed
	result Result
}

func (r *runner) rows(ctx context.Context) error {
	for _, row := range r.Rows {
		if !slices.Contains(r.server.Tools(), row.Tool) {
			continue
		}
		tally, err := r.row(ctx, row)
		r.result.add(tally)
		r.result.Rows = append(r.result.Rows, RowTally{Row: row.Name, Tally: tally})
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInconclusive, row.Name, err)
		}
	}
	return nil
}

// row makes a row's bursts, and then one call with nothing swapped, which must be served.
func (r *runner) row(ctx context.Context, row Row) (Tally, error) {
	var sum Tally
	bursts := max(1, (r.Calls+files-1)/files)
	for n := range bursts {
		mode := r.timed
		// Of five bursts two meet a free-running swapper, three a timed one.
		if n%5 == 1 || n%5 == 3 {
			mode = r.free
		}
		tally, err := r.burst(ctx, row, mode)
		sum.add(tally)
		if err != nil {
			return sum, err
		}
	}
	return sum, r.legitimate(ctx, row)
}

type swapMode func(row Row) (before, after func() error)

// timed lets the swapper turn the name at moments spread over the burst's answering time.
func (r *runner) timed(row Row) (before, after func() error) {
	delay := time.Duration(rand.Int64N(int64(r.took)))
	if row.Timing == Late {
		delay = r.took/2 + delay/2
	}
	hold := time.Duration(rand.Int64N(int64(r.took)/2 + 1))
	return func() error { return r.swap.say(fmt.Sprintf("burst %d %d 1", delay, hold)) }, r.settle
}

// free lets the swapper turn the name all the time.
func (r *runner) free(Row) (before, after func() error) {
	before = func() error { return r.swap.say("free") }
	after = func() error {
		if err := r.swap.say("rest"); err != nil {
			return err
		}
		return r.settle()
	}
	return before, after
}

func (r *runner) settle() error {
	turns, err := r.swap.done()
	r.result.Turns += turns
	return err
}

func (r *runner) burst(ctx context.Context, row Row, mode swapMode) (Tally, error) {
	calls := make([]Call, files)
	for i := range calls {
		calls[i] = Call{Tool: row.Tool, Args: row.Args(r.stage, r.Server, i)}
	}
	before, after := mode(row)
	start := time.Now()
	answers, err := r.server.Burst(ctx, calls, before)
	r.took = max(time.Millisecond, (3*r.took+time.Since(start))/4)
	if err := errors.Join(err, after()); err != nil {
		return Tally{}, err
	}
	tally, notes, err := r.stage.judge(row, answers, r.Jail.Refusal)
	if err != nil {
		return tally, err
	}
	r.result.Notes = append(r.result.Notes, notes[:min(len(notes), max(0, 5-len(r.result.Notes)))]...)
	return tally, r.stage.Reset()
}

// legitimate makes one call while the name leads inside and nothing moves.
func (r *runner) legitimate(ctx context.Context, row Row) error {
	call := Call{Tool: row.Tool, Args: row.Args(r.stage, r.Server, 0)}
	answers, err := r.server.Burst(ctx, []Call{call}, func() error { return nil })
	if err != nil {
		return fmt.Errorf("making an ordinary call: %w", err)
	}
	if answers[0].Failed {
		return fmt.Errorf("making an ordinary call: %s", answers[0].Text)
	}
	if err := row.Served(r.stage, 0, answers[0].Text); err != nil {
		return fmt.Errorf("making an ordinary call: %w", err)
	}
	return r.stage.Reset()
}

// check refuses a run in which the attack did not happen.
func (r *runner) check() error {
	switch {
	case r.result.Calls == 0:
		return fmt.Errorf("%w: no row fits the server", ErrInconclusive)
	case r.result.Turns == 0:
		return fmt.Errorf("%w: the name was never swapped", ErrInconclusive)
	case r.result.Served == 0:
		return fmt.Errorf("%w: no raced call was served", ErrInconclusive)
	}
	return nil
}

// Sum adds up runs in one jail. It refuses, as [ErrInconclusive], a sum in which the
// kernel never had to say no: then the servers' own checks were all there was. A single
// run may be so, since newer servers withstand a retargeted link by themselves.
func Sum(jail Jail, runs []Result) (Tally, error) {
	var sum Tally
	for _, run := range runs {
		sum.add(run.Tally)
	}
	if jail.Words != nil && sum.Refused == 0 {
		return sum, fmt.Errorf("%w: the kernel refused nothing in %d calls", ErrInconclusive, sum.Calls)
	}
	return sum, nil
}

// swapProcess is the client's side of the swapper.
type swapProcess struct {
	cmd   *exec.Cmd
	in    *os.File
	lines *bufio.Reader
}

func startSwapper(ctx context.Context, s *Stage) (*swapProcess, error) {
	// The magic link needs no way through the folders above the binary, which may be
	// closed to the swapper's user.
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{swapperName, s.method.String(), s.Root(), s.Outside()}
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.attacker}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening the swapper's input: %w", err)
	}
	cmd.Stdin = theirs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the swapper's output: %w", err), theirs.Close(), ours.Close())
	}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the swapper: %w", err), ours.Close())
	}
	return &swapProcess{cmd: cmd, in: ours, lines: bufio.NewReader(out)}, nil
}

func (p *swapProcess) say(line string) error {
	if _, err := p.in.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("telling the swapper: %w", err)
	}
	return nil
}

// done waits for the swapper's answer: how often it turned the name.
func (p *swapProcess) done() (turns int, err error) {
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("hearing from the swapper: %w", err)
	}
	if _, err := fmt.Sscanf(strings.TrimSpace(line), "done %d", &turns); err != nil {
		return 0, fmt.Errorf("hearing from the swapper: %w", err)
	}
	return turns, nil
}

func (p *swapProcess) close() error {
	if err := p.in.Close(); err != nil {
		return fmt.Errorf("closing the swapper's input: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("ending the swapper: %w", err)
	}
	return nil
}
