package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

const logAbout = `
DESCRIPTION
    Prints what servers asked for and were refused by their supervisor: connections, names,
    datagrams, Unix sockets and listening, one line each, the oldest first, with the rule
    that decided and how to allow it. What the kernel alone refuses is in it for servers that
    were started with --explain-denials: files, programs and the making of sockets. Of others
    it is not: files, programs, and all of the network, binding a port included, where no
    supervisor stays (the profile has no rules or public in network.egress, nor network.unix).

    At most 600 refusals of a run are written in a minute; a line tells how many more there
    were. Lookups of names come without the process that asked.

    The log is $XDG_STATE_HOME/stockade/log/denials.jsonl (~/.local/state when unset). At
    4 MiB it becomes denials.1.jsonl, in place of the one before. It holds what was asked
    for, which a server chooses: read it as its words.

    With --json, one object a line, as in the log:
        {"time", "profile", "program", "pid", "call", "asked", "rule", "hint"}
    What the kernel refused has more: "kind" ("file", "program" or "socket"), "operation"
    ("reading", "creating"), "file" (the profile's) and "key" (of the profile, under which to
    add "asked" or the folder in "hint"). A line with "unseen" and an empty "call" counts the
    calls of such a run whose outcome could not be foreseen.
    "unlogged" is there too when so many refusals before this one came too fast to be
    logged. A line with "unlogged" and an empty "call" is no refusal: it tells of those
    that no other line followed.

EXIT STATUS
    0    done, also when there is nothing to print
    125  the log cannot be read
`

type logOptions struct {
	json, follow   bool
	profile, since once
	kind           once
}

func newLogCommand(c *call) *cli.Command {
	opts := &logOptions{}
	return &cli.Command{
		UsageText:   "stockade log [--json] [--profile NAME] [--kind KIND] [--since DURATION] [--follow]",
		Description: logAbout,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON lines", Destination: &opts.json},
			&cli.GenericFlag{Name: "profile", Value: &opts.profile, Usage: "`NAME` only servers under this profile"},
			&cli.GenericFlag{Name: "kind", Value: &opts.kind, Usage: "`KIND` only refusals of this kind: network, file, program or socket"},
			&cli.GenericFlag{Name: "since", Value: &opts.since, Usage: "`DURATION` only what is not older: 90s, 15m, 24h"},
			&cli.BoolFlag{Name: "follow", Usage: "go on with what is refused from now on", Destination: &opts.follow},
		},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runLog(ctx.Context, opts, c.stdio)
		},
	}
}

func runLog(ctx context.Context, opts *logOptions, std stdio) error {
	p, err := newLogPrinter(opts, time.Now(), std.out)
	if err != nil {
		return err
	}
	m, err := lookAround()
	if err != nil {
		return err
	}
	folder := logFolder(m.state)
	r := &logReader{folder: folder, take: p.print}
	defer r.close()
	if err := r.begin(); err != nil {
		return err
	}
	if opts.follow {
		ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
		defer stop()
		if err := r.follow(ctx); err != nil {
			return err
		}
	}
	switch {
	case p.unreadable > 0:
		std.say(sayWarning, fmt.Sprintf("%s of the log could not be read", counted(p.unreadable, "line")))
	case r.dir == 0 && !opts.follow:
		std.say(sayNote, fmt.Sprintf("there is no log at %q: no refusal was written to it", folder))
	case p.printed == 0 && !opts.follow:
		std.say(sayNote, "nothing was refused, or nothing that fits; what the kernel alone refuses is not logged")
	}
	return nil
}

// logPrinter prints the entries that are asked for.
type logPrinter struct {
	out                 io.Writer
	json                bool
	profile, kind       string    // "": all
	after               time.Time // zero: all
	printed, unreadable int
}

func newLogPrinter(opts *logOptions, now time.Time, out io.Writer) (*logPrinter, error) {
	if err := opts.profile.check("profile"); err != nil {
		return nil, err
	}
	if err := opts.since.check("since"); err != nil {
		return nil, err
	}
	if err := opts.kind.check("kind"); err != nil {
		return nil, err
	}
	if k := opts.kind.value; k != "" && !slices.Contains(kinds, k) {
		return nil, &usageError{problem: fmt.Sprintf("--kind: %q is no kind of refusal", hideValue(k)), hint: "the kinds are " + strings.Join(kinds, ", ")}
	}
	p := &logPrinter{out: out, json: opts.json, profile: opts.profile.value, kind: opts.kind.value}
	if text := opts.since.value; text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, &usageError{problem: fmt.Sprintf("--since: %q is no time span", hideValue(text)), hint: "write a number with a unit: 90s, 15m, 24h"}
		}
		p.after = now.Add(-d)
	}
	return p, nil
}

// print takes one line of the log. A line that is none (a disk was full) is counted.
func (p *logPrinter) print(line []byte) error {
	e, whole := readEntry(line)
	if !whole {
		p.unreadable++
		return nil
	}
	if p.profile != "" && e.Profile != p.profile || e.Time.Before(p.after) || p.kind != "" && e.kind() != p.kind {
		return nil
	}
	p.printed++
	if p.json {
		_, err := p.out.Write(append(bytes.Clone(line), '\n'))
		return err
	}
	at := e.Time.Local().Format("2006-01-02 15:04:05")
	if e.Unseen > 0 {
		_, err := fmt.Fprintf(p.out, "%s  %s  (of %s nobody could foresee whether the kernel refuses it)\n", at, escape(e.Profile), counted(e.Unseen, "call"))
		return err
	}
	if e.Call == "" {
		_, err := fmt.Fprintf(p.out, "%s  %s  (%s up to here came too fast to be logged)\n", at, escape(e.Profile), counted(e.Unlogged, "refusal"))
		return err
	}
	if e.Unlogged > 0 {
		if _, err := fmt.Fprintf(p.out, "(%s before this one came too fast to be logged)\n", counted(e.Unlogged, "refusal")); err != nil {
			return err
		}
	}
	text := denialText(e)
	if e.PID > 0 {
		text = fmt.Sprintf("[%d] %s", e.PID, text)
	}
	_, err := fmt.Fprintf(p.out, "%s  %s  %s\n", at, escape(e.Profile), escape(text))
	return err
}

// kind is what a person filters by: "" for a line that is no refusal.
func (e denialEntry) kind() string {
	if e.Kind == "" && e.Call != "" {
		return kindNetwork
	}
	return e.Kind
}

func readEntry(line []byte) (denialEntry, bool) {
	var e denialEntry
	err := json.Unmarshal(line, &e)
	return e, err == nil && !e.Time.IsZero() && (e.Call != "" || e.Unlogged > 0 || e.Unseen > 0)
}

// logReader hands the lines of the log on, oldest first.
type logReader struct {
	folder string
	take   func(line []byte) error

	dir  int // 0: not open
	fd   int // 0: not open
	rest []byte
}

// begin reads what is there.
func (r *logReader) begin() error {
	if err := r.openFolder(); err != nil || r.dir == 0 {
		return err
	}
	old, err := openLogNamed(r.dir, r.folder, oldLogFile, unix.O_RDONLY)
	if err == nil {
		r.fd = old
		err = r.read()
		r.endFile()
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := r.openFile(); err != nil || r.fd == 0 {
		return err
	}
	return r.read()
}

// openFolder opens the folder if it is there. Nothing is made for a look.
func (r *logReader) openFolder() error {
	if r.dir != 0 {
		return nil
	}
	dir, err := unix.Open(r.folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the folder of the log %q: %w", r.folder, err)
	}
	r.dir = dir
	return nil
}

func (r *logReader) openFile() error {
	fd, err := openLog(r.dir, r.folder, unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	r.fd = fd
	return nil
}

// read takes every whole line to the end of the file. A line that is being written stays
// for the next time.
func (r *logReader) read() error {
	var buffer [32 << 10]byte
	for {
		n, err := unix.Read(r.fd, buffer[:])
		if err != nil {
			return fmt.Errorf("reading the log in %q: %w", r.folder, err)
		}
		if n == 0 {
			return nil
		}
		r.rest = append(r.rest, buffer[:n]...)
		for {
			end := bytes.IndexByte(r.rest, '\n')
			if end < 0 {
				break
			}
			line := r.rest[:end]
			r.rest = r.rest[end+1:]
			if err := r.take(line); err != nil {
				return err
			}
		}
	}
}

// endFile closes a file that nobody writes to any more; what is left of it is no line.
func (r *logReader) endFile() {
	if r.fd != 0 {
		unix.Close(r.fd)
	}
	r.fd, r.rest = 0, nil
}

func (r *logReader) close() {
	r.endFile()
	if r.dir != 0 {
		unix.Close(r.dir)
		r.dir = 0
	}
}

// followEvery is how soon a new line is printed.
const followEvery = 250 * time.Millisecond

// follow goes on until it is told to end.
func (r *logReader) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.goOn(); err != nil {
			return err
		}
	}
}

// goOn reads what came since, from the same file and from the one that took its place.
func (r *logReader) goOn() error {
	if err := r.openFolder(); err != nil || r.dir == 0 {
		return err
	}
	if r.fd == 0 {
		if err := r.openFile(); err != nil || r.fd == 0 {
			return err
		}
	}
	// Asked before reading: what is written between the two is read the next time.
	replaced := r.replaced()
	if err := r.read(); err != nil {
		return err
	}
	if !replaced {
		return nil
	}
	r.endFile()
	if err := r.openFile(); err != nil || r.fd == 0 {
		return err
	}
	return r.read()
}

// replaced tells whether the name of the log is another file's by now, or nobody's.
func (r *logReader) replaced() bool {
	var have, now unix.Stat_t
	if unix.Fstat(r.fd, &have) != nil {
		return true
	}
	return unix.Fstatat(r.dir, logFile, &now, unix.AT_SYMLINK_NOFOLLOW) != nil || have.Ino != now.Ino || have.Dev != now.Dev
}
