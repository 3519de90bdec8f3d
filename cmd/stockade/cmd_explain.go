package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"stockade/sandbox"
)

const explainAbout = `
DESCRIPTION
    Works out the plan like "stockade run" and prints it instead of starting the server:
    each grant with what it allows, the path and, when that is a link, its target, why it is
    there, and the file, line and column that it comes from; then network, system calls,
    names of environment variables (never values), private folders, limits, the layers of
    this kernel, and what stays open. Nothing is made, started or restricted.

    In the server's command, what looks like a secret reads "masked": the value of a flag,
    variable or header with such a name (--api-key, TOKEN=), and a password in a URL.

    The private home belongs to one profile and one installation of a server, which is told
    by the path of its package, script or program: the same server at another path, or under
    another profile, has another home.

    For a package runner's command line (npx, uvx and kin) the plan is that of the installed
    program. When the package is not in the store yet, "stockade package add -- COMMAND" puts
    it there, in a jail that reaches the registry of your npm or pip configuration, writes
    the store, and starts no server.

    Paths are opened to find their targets, so a plan that cannot start is an error here,
    too.

    --format json prints one object. Its keys are stable; new ones may be added:
        profile       {name, source}
        program       {file, argv, runtime, entry, package}
        stored        {runner, request, kind, name, version, digest, folder, packages, scripts}
                      of a package runner's command line; absent for others
        dir           the working folder
        grants        [{access, path, target, kind, state, why, broad, origin: {source, line, column}}]
                      state is "granted", "skipped" (optional and absent) or "pending" (made at start)
        network       {egress, rules: [{to, names, addresses, origin}], listen, unix:
                      [{path, broad, origin}], supervised, observed}; supervised says that its calls are
                      decided on; egress is "none", "public", "list"
                      or "all", and names "strict", "pinned", or "" for addresses; observed says
                      that --explain-denials is on
        syscalls      {default, allowed, answers: [{answer, calls}]}
        environment   [NAME]
        secrets       [{name, optional, passed, origin}]: which of them are environment.secrets
        install       {scripts, execute, read}, each [{what, broad, origin}]: what install
                      scripts may do when a package is put into the store
        folders       {home, tmp}
        limits        {open_files, file_size, memory, processes}; 0 keeps the host's
        guard         {pins, tools, calls_per_minute, concurrent_calls, call_timeout, message_size,
                      result_size, sampling, elicitation, roots}, absent without one; tools is null
                      where every tool passes
        layers        [{layer, verdict, detail}]
        waived        [LAYER] that the profile agrees to run without
        warnings      [text]
        notes         [text]
        residual      [{promise, open}]

    --format oci prints a config.json of the OCI runtime specification that comes as close
    to the plan as that format can, with the additional list "notes" of what it cannot say
    (the same list is the annotation "stockade.notes"). Runtimes ignore keys that they do
    not know.

EXIT STATUS
    0    the plan was printed
    125  there is no plan: the profile, a path or this machine stands against it
    126  the server's program was found but cannot run
    127  the server's program was not found
`

type explainOptions struct {
	launchOptions
	format once
	all    bool
}

func newExplainCommand(c *call) *cli.Command {
	opts := &explainOptions{}
	return &cli.Command{
		UsageText:   "stockade explain [--format text|json|oci] [--all] " + sameSynopsis,
		Description: explainAbout,
		Flags: append(append(opts.flags(), opts.explainDenialsFlag()),
			&cli.GenericFlag{Name: "format", Value: &opts.format, Usage: "`text|json|oci` how to print; default: text"},
			&cli.BoolFlag{Name: "all", Usage: "list optional paths that are absent, and all calls that are refused", Destination: &opts.all}),
		Action: func(ctx *cli.Context) error {
			if err := c.needsServer(ctx); err != nil {
				return err
			}
			return runExplain(ctx.Context, opts, c.server, c.stdio)
		},
	}
}

func runExplain(ctx context.Context, opts *explainOptions, server []string, std stdio) error {
	if err := opts.format.check("format"); err != nil {
		return err
	}
	switch opts.format.value {
	case "", "text", "json", "oci":
	default:
		return &usageError{problem: "unknown format", hint: "the formats are text, json and oci"}
	}
	l, err := prepare(ctx, &opts.launchOptions, server, anotherProcess, refuseMissing, std)
	if err != nil {
		return err
	}
	opened, err := sandbox.Open(l.resolved.Plan)
	if err != nil {
		return err
	}
	defer opened.Close()
	if opts.format.value == "oci" {
		return writeOCI(std, opened)
	}
	v, err := view(l, opened)
	if err != nil {
		return err
	}
	v.Network.Observed = opts.explainDenials
	if opts.format.value == "json" {
		return writeJSON(std.out, v)
	}
	d := inShort
	if opts.all {
		d = inFull
	}
	return writePlan(std.out, v, d)
}

// ociConfig is a config.json with one key more.
type ociConfig struct {
	*specs.Spec
	Notes []string `json:"notes"`
}

// notesAnnotation is the reserved place for what a runtime does not read.
const notesAnnotation = "stockade.notes"

func writeOCI(std stdio, opened *sandbox.Opened) error {
	spec, notes, err := sandbox.OCI(opened.Plan, opened.Grants)
	if err != nil {
		return err
	}
	uid, gid := os.Getuid(), os.Getgid()
	spec.Process.Args = maskArguments(spec.Process.Args)
	if !slices.Equal(spec.Process.Args, opened.Plan.Argv) {
		notes = append(notes, fmt.Sprintf("arguments that look like secrets read %q: fill them in", masked))
	}
	spec.Process.User.UID, spec.Process.User.GID = uint32(uid), uint32(gid) //nolint:gosec // the kernel's ids are 32 bits wide
	list, err := json.Marshal(notes)
	if err != nil {
		return fmt.Errorf("writing the notes: %w", err)
	}
	spec.Annotations = map[string]string{notesAnnotation: string(list)}
	return writeJSON(std.out, ociConfig{spec, notes})
}
