package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// launchStatus ends the help of every command that may start a server.
const launchStatus = `
EXIT STATUS
    125  stockade stopped before the server started
    126  the server's program was found but cannot run
    127  the server's program was not found
    else the server's own status; 128 + N when signal N ended it
`

// askStatus ends the help of commands that only answer.
const askStatus = `
EXIT STATUS
    0    done
    125  stockade could not do it
`

const appSummary = "start stock MCP servers in a jail kept by the kernel"

const appAbout = `
DESCRIPTION
    stockade starts a stock MCP server in a jail that the kernel keeps: it can read, write,
    execute and reach only what its profile grants. Put "stockade run --" in front of the
    server's command line. Neither the server nor the host application is changed.

    With no profile the server gets its own program and runtime, a private home and a
    private temporary folder: no files of yours, no network, no secrets.
` + launchStatus + `
    Commands that only answer exit with 0, or as their help says.

FILES
    .stockade/profiles/                       a repository's profiles; more than narrowing needs "stockade allow"
    $XDG_CONFIG_HOME/stockade/profiles/       your own profiles (~/.config when unset)
    /etc/stockade/profiles/                   the machine's profiles
    $XDG_DATA_HOME/stockade/                  private homes of servers (~/.local/share when unset)
    $XDG_CACHE_HOME/stockade/                 private temporary folders (~/.cache when unset)
    /etc/stockade/policy.yaml                 the machine's policy: defaults, and limits that nothing passes
    $XDG_STATE_HOME/stockade/log/             what servers were refused (~/.local/state when unset)
    $XDG_STATE_HOME/stockade/approvals/       what you allowed and denied
    $XDG_STATE_HOME/stockade/backups/         files of hosts as they were before "stockade wrap"
`

func writeAppHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString("NAME\n    stockade - " + appSummary + "\n")
	b.WriteString("\nSYNOPSIS\n    stockade COMMAND [FLAG]... [NAME]... [-- SERVER [ARG]...]\n")
	b.WriteString("\nCOMMANDS\n")
	var rows [][]string
	for _, e := range commandTable() {
		rows = append(rows, []string{"    " + e.name, e.summary})
	}
	if err := table(&b, rows); err != nil {
		return err
	}
	b.WriteString("\n    \"stockade COMMAND --help\" says more about each.\n")
	b.WriteString(appAbout)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeHelp prints a command's help like a manual page. Description holds the sections
// that are written by hand, UsageText the synopsis.
func writeHelp(w io.Writer, cmd *cli.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "NAME\n    %s - %s\n", commandPath(cmd), cmd.Usage)
	b.WriteString("\nSYNOPSIS\n")
	for line := range strings.SplitSeq(strings.TrimSpace(cmd.UsageText), "\n") {
		b.WriteString("    " + strings.TrimSpace(line) + "\n")
	}
	if len(cmd.Flags) > 0 {
		b.WriteString("\nOPTIONS\n")
		var rows [][]string
		for _, f := range cmd.Flags {
			rows = append(rows, flagRow(f))
		}
		if err := table(&b, rows); err != nil {
			return err
		}
	}
	if len(cmd.Subcommands) > 0 {
		b.WriteString("\nCOMMANDS\n")
		var rows [][]string
		for _, sub := range cmd.Subcommands {
			rows = append(rows, []string{"    " + sub.Name, sub.Usage})
		}
		if err := table(&b, rows); err != nil {
			return err
		}
	}
	b.WriteString(cmd.Description)
	_, err := io.WriteString(w, b.String())
	return err
}

// flagRow shows one flag. Its usage text may begin with the name of its value in
// backquotes.
func flagRow(f cli.Flag) []string {
	word, text := "--"+f.Names()[0], flagUsage(f)
	if rest, ok := strings.CutPrefix(text, "`"); ok {
		if value, after, ok := strings.Cut(rest, "`"); ok {
			word, text = word+" "+value, strings.TrimSpace(after)
		}
	}
	return []string{"    " + word, text}
}

func flagUsage(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		return d.GetUsage()
	}
	return ""
}
