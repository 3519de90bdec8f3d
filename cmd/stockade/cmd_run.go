package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"stockade/sandbox"
	"stockade/seccomp"
)

const runAbout = `
DESCRIPTION
    Works out the plan (which profile, what it grants on this machine), puts this process
    into the jail and executes COMMAND in place: the server keeps the process number, the
    standard streams and the signals that its host sends, and stockade is gone.

    With rules or public in network.egress, or with network.unix, stockade stays instead, as
    a supervisor. The server is then its child: signals (Ctrl-C too) are handed on, the exit
    status is the server's or 128 + N when signal N ended it, and what the server started
    ends with it, also in sessions of its own (setsid). Each refusal of the supervisor is a
    line on standard error and in "stockade log".

    Without a supervisor the kernel alone refuses the network, and no line tells of it: a
    socket is EAFNOSUPPORT ("address family not supported"), a name EAI_AGAIN or "could not
    resolve". --egress HOST, for this run, or network.egress in the profile lets it out.
    A RULE is HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT or
    PREFIX/LENGTH:PORT; the port is 443 when there is none, for addresses too.
    "--egress none" adds nothing, and is an error when the profile grants more than that.

    --explain-denials tells of what the kernel alone refuses: one line on standard error for
    each file, program and socket, with the operation, the profile's file and the key to add
    to, and the same in "stockade log". stockade then stays as the server's parent, also
    where no supervisor is needed: its filter lets these calls wait for a look, each goes on
    as without, and Landlock decides. The look costs a few tens of microseconds a call, and is
    a forecast: a server that changes a path while it is looked at makes a wrong line, and
    nothing else. What runtimes look for at their start and do without is in the log alone,
    and what is missing (ENOENT) or closed to you anyway is in neither.

    The words after "--" are the server's. They are never parsed, joined or split, and no
    shell sees them.

    The profile is the one that --profile names (a name, or a file when the word holds "/"),
    else the first that matches the command: of the repository, yours, the machine's, the
    built-in ones. With none, the empty profile applies. Grant flags add to it for this run;
    what you want to keep belongs in a profile.

    Nothing is written to standard output. What stands against the start is one error and
    one hint on standard error, and nothing is left behind.

    A package runner's command line (npx, npm exec, bunx, pnpm dlx, yarn dlx, uvx, uv tool
    run, pipx run) is carried out in two jails. The package is installed into a store of your
    own, once: in a jail that reaches the registry of your npm or pip configuration and
    nothing else, and runs no install script unless the profile names the package. Then the
    package's own program is run, without package manager, shell, registry and credentials.
    A later start asks no registry. See "stockade package --help".

    Container clients, remote addresses and scripts of a project (npm start, uv run) are
    refused, with the reason: what they start is not in this jail, or would need more in it
    than the server.
` + launchStatus + `
EXAMPLES
    stockade run -- npx -y @modelcontextprotocol/server-filesystem /home/me/project
    stockade run -- node /srv/mcp/filesystem/dist/index.js /home/me/project
    stockade run --profile fs --root ~/project -- mcp-server-filesystem /home/me/project
    stockade run --read /etc/hosts --env LANG=C -- my-server
`

func newRunCommand(c *call) *cli.Command {
	opts := &launchOptions{}
	return &cli.Command{
		UsageText:   "stockade run " + launchSynopsis,
		Description: runAbout,
		Flags:       append(opts.flags(), opts.explainDenialsFlag()),
		Action: func(ctx *cli.Context) error {
			if err := c.needsServer(ctx); err != nil {
				return err
			}
			return runRun(ctx.Context, opts, c.server, c.stdio)
		},
	}
}

// runRun starts the server. Without a supervisor it returns only when that failed; the
// process is then to end, since its thread may be in the jail.
func runRun(ctx context.Context, opts *launchOptions, server []string, std stdio) error {
	l, err := prepare(ctx, opts, server, thisProcess, installMissing, std)
	if err != nil {
		return err
	}
	if opts.explainDenials {
		l.resolved.Plan.Filter.Observation = seccomp.Observed
	}
	opened, err := sandbox.Open(l.resolved.Plan)
	if err != nil {
		return err
	}
	for _, w := range l.warnings(opened.Grants) {
		std.say(sayWarning, w)
	}
	if err := l.machine.auditStart(l); err != nil {
		return err
	}
	if l.resolved.Plan.Supervised() || l.resolved.Plan.Observed() {
		return superviseLogged(opened, l.machine, origin{source: l.source, hide: hider(l.resolved.Profile, opened.Plan.Env)}, std)
	}
	report, err := sandbox.Enter(opened)
	if err != nil {
		return err
	}
	std.sayDegraded(report)
	return sandbox.Exec(opened)
}

// sayDegraded warns of the layers that the profile agreed to run without.
func (s stdio) sayDegraded(report sandbox.Report) {
	for _, layer := range report.Layers {
		if layer.State == sandbox.Degraded {
			s.say(sayWarning, fmt.Sprintf("%s: %s, as the profile allows", layer.Layer, layer.Detail))
		}
	}
}

// needsServer checks that a server's command follows after "--", and nothing else of ours
// before it. Words that may be values of variables are in no message.
func (c *call) needsServer(ctx *cli.Context) error {
	words := ctx.Args().Slice()
	own := c.ours[:len(c.ours)-len(words)]
	shown, whole := ownWords(c.ours)
	if whole {
		shown = shellWords(own)
	}
	switch {
	case c.server == nil:
		corrected := "stockade " + shown + " -- COMMAND [ARG]..."
		if !whole {
			corrected = commandPath(ctx.Command) + " " + corrected[len("stockade "):]
		} else if len(words) > 0 {
			corrected = shellWords(slices.Concat([]string{"stockade"}, own, []string{"--"}, maskArguments(words)))
		}
		return &usageError{problem: fmt.Sprintf(`%q needs "--" before the server's command`, commandPath(ctx.Command)), hint: corrected}
	case len(words) > 0:
		return &usageError{
			problem: fmt.Sprintf(`%q takes nothing but flags before "--"`, commandPath(ctx.Command)),
			hint:    `the server's command is what comes after "--", and the value of a flag what comes after its name; see ` + seeHelp(ctx.Command),
		}
	case len(c.server) == 0:
		corrected := "stockade " + shown
		if !whole {
			corrected = commandPath(ctx.Command) + " " + shown
		}
		return &usageError{problem: `no command after "--"`, hint: corrected + " -- COMMAND [ARG]..."}
	}
	return nil
}
