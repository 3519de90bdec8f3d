package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// call is one invocation: the words before "--" are ours and parsed, the words after it
// are the server's and are handed on as they are.
type call struct {
	stdio
	ours   []string
	server []string // nil: there was no "--"
}

// entry is one line of the command table.
type entry struct {
	name, summary string
	command       func(*call) *cli.Command
}

// commandTable lists the commands in the order of the help. It is data and functions
// without closures, so it costs nothing at start.
func commandTable() []entry {
	return []entry{
		{"run", "start a server in its jail", newRunCommand},
		{"explain", "print the plan: what is granted, why, and what stays open", newExplainCommand},
		{"verify", "prove every layer of the plan from inside", newVerifyCommand},
		{"doctor", "tell what this kernel can enforce", newDoctorCommand},
		{"wrap", "put the servers of hosts into their jails", newWrapCommand},
		{"unwrap", "take the servers of hosts out of their jails", newUnwrapCommand},
		{"status", "tell which servers of which hosts are in a jail", newStatusCommand},
		{"allow", "approve a repository's profile, by its content", newAllowCommand},
		{"deny", "pass a repository's profile over", newDenyCommand},
		{"learn", "run a server and propose what its profile lacks", newLearnCommand},
		{"log", "print what servers were refused", newLogCommand},
		{"profile", "list, show, check, compare and propose profiles", newProfileCommand},
		{"package", "install, update, list and remove what package runners run", newPackageCommand},
		{"completion", "print a shell's completion script", newCompletionCommand},
		{"man", "write the manual pages into a folder", newManCommand},
		{"version", "print the version", newVersionCommand},
	}
}

// run carries out one command line and returns the exit status.
func run(args []string, std stdio) int {
	err := dispatch(args, std)
	if err != nil {
		std.fail(err)
	}
	return exitStatus(err)
}

// dispatch splits the words, builds the one command that they name and runs it. The other
// commands are not built: the start of a server waits for this.
func dispatch(args []string, std stdio) error {
	if len(args) > 0 && args[0] == enterWord {
		return runEnter(std)
	}
	if len(args) > 0 && args[0] == checksWord {
		return runChecks(std)
	}
	if len(args) > 0 && args[0] == stepWord {
		return runStepChild(std)
	}
	ours, server := split(args)
	ours = helpWords(ours)
	c := &call{stdio: std, ours: ours, server: server}
	if len(ours) == 0 {
		return c.alone()
	}
	app := newApp(c, ours[0])
	return app.RunContext(context.Background(), append([]string{app.Name}, ours...))
}

// split cuts the words at the first "--". cli drops or keeps that word depending on where
// it stands, so it never sees it.
func split(args []string) (ours, server []string) {
	at := slices.Index(args, "--")
	if at < 0 {
		return args, nil
	}
	// The third index keeps an append to ours from writing over the server's words.
	return args[:at:at], args[at+1:]
}

// helpWords turns the other spellings of help and version into the one that cli parses.
func helpWords(ours []string) []string {
	switch {
	case len(ours) == 0:
		return ours
	case ours[0] == "help":
		return append(slices.Clone(ours[1:]), "--help")
	case ours[0] == "--version" || ours[0] == "-v":
		return append([]string{"version"}, ours[1:]...)
	}
	return ours
}

// alone handles a command line without words of ours: the help, or a forgotten "run".
func (c *call) alone() error {
	if c.server == nil {
		return writeAppHelp(c.out)
	}
	return &usageError{
		problem: `no command before "--"`,
		hint:    shellWords(append([]string{"stockade", "run", "--"}, c.server...)),
	}
}

func newApp(c *call, first string) *cli.App {
	app := &cli.App{
		Name:                      "stockade",
		Compiled:                  time.Unix(0, 1), // else cli looks for the program's file to date it
		HideHelp:                  true,
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // "/a,b" is one path
		Writer:                    c.out,
		ErrWriter:                 c.err,
		OnUsageError:              c.usage,
		ExitErrHandler:            func(*cli.Context, error) {}, // the default ends the process past our defers
		Action:                    func(ctx *cli.Context) error { return unknownCommand(ctx.Args().First()) },
	}
	for _, e := range commandTable() {
		if e.name == first {
			app.Commands = []*cli.Command{c.finish(e)}
		}
	}
	return app
}

// finish gives a command and what is below it what all commands share.
func (c *call) finish(e entry) *cli.Command {
	cmd := e.command(c)
	cmd.Name, cmd.Usage = e.name, e.summary
	for _, one := range append([]*cli.Command{cmd}, cmd.Subcommands...) {
		one.HideHelp, one.HideHelpCommand = true, true
		one.OnUsageError = c.usage
	}
	return cmd
}

// usage handles what cli could not parse. Without a help flag of cli's own, its flag
// package reports --help and -h this way, at any command.
func (c *call) usage(ctx *cli.Context, err error, _ bool) error {
	if errors.Is(err, flag.ErrHelp) {
		if ctx.Command == nil || ctx.Command.Name == ctx.App.Name {
			return writeAppHelp(c.out)
		}
		return writeHelp(c.out, ctx.Command)
	}
	return &usageError{problem: usageProblem(err), hint: c.usageHint(ctx, err)}
}

// usageProblem rewrites the flag package's messages: two dashes, and no value of a flag,
// which may be a variable's.
func usageProblem(err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name, _, _ = strings.Cut(name, "=")
		return fmt.Sprintf("unknown flag %q", "--"+name)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("--%s needs a value", name)
	}
	if _, rest, ok := strings.Cut(text, " for -"); ok && strings.HasPrefix(text, "invalid boolean value") {
		name, _, _ := strings.Cut(rest, ":")
		return fmt.Sprintf("--%s takes no value", name)
	}
	if strings.HasPrefix(text, "bad flag syntax") {
		return "a word of dashes is not a flag"
	}
	return text
}

func (c *call) usageHint(ctx *cli.Context, err error) string {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok && ctx.Command != nil {
		name, _, _ = strings.Cut(name, "=")
		var names []string
		for _, f := range ctx.Command.Flags {
			names = append(names, f.Names()...)
		}
		if near := nearest(name, names); near != "" {
			return fmt.Sprintf("did you mean %q?", "--"+near)
		}
		if takesServer(ctx.Command.Name) {
			return `flags of the server's command come after "--"; see ` + seeHelp(ctx.Command)
		}
	}
	if ctx.Command == nil || ctx.Command.Name == ctx.App.Name {
		return `see "stockade --help"`
	}
	return "see " + seeHelp(ctx.Command)
}

func seeHelp(cmd *cli.Command) string { return fmt.Sprintf("%q", commandPath(cmd)+" --help") }

// commandPath is the full name of a command, "stockade profile list".
func commandPath(cmd *cli.Command) string {
	if cmd.HelpName != "" {
		return cmd.HelpName
	}
	return "stockade " + cmd.Name
}

// needsSubcommand is the action of a command that does nothing by itself.
func (c *call) needsSubcommand(ctx *cli.Context) error {
	var names []string
	for _, sub := range ctx.Command.Subcommands {
		names = append(names, sub.Name)
	}
	word := ctx.Args().First()
	hint := "see " + seeHelp(ctx.Command)
	if word == "" {
		return &usageError{problem: fmt.Sprintf("%q needs one of %s", commandPath(ctx.Command), strings.Join(names, ", ")), hint: hint}
	}
	if near := nearest(word, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", commandPath(ctx.Command)+" "+near)
	}
	return &usageError{problem: fmt.Sprintf("unknown command %q", ctx.Command.Name+" "+hideValue(word)), hint: hint}
}

func unknownCommand(name string) error {
	var names []string
	for _, e := range commandTable() {
		names = append(names, e.name)
	}
	hint := `see "stockade --help" for the commands`
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", "stockade "+near)
	}
	return &usageError{problem: fmt.Sprintf("unknown command %q", hideValue(name)), hint: hint}
}

// takesServer tells which commands have a server's command after "--".
func takesServer(name string) bool {
	return name == "run" || name == "explain" || name == "verify" || name == "init" || name == "add" || name == "allow"
}

// noServer refuses a "--" where no command belongs.
func (c *call) noServer(ctx *cli.Context) error {
	if c.server == nil {
		return nil
	}
	return &usageError{
		problem: fmt.Sprintf(`%q takes no command after "--"`, commandPath(ctx.Command)),
		hint:    "see " + seeHelp(ctx.Command),
	}
}

// words checks how many words a command got. Flags after the first word are words to cli;
// they are refused here instead of being taken for names.
func (c *call) words(ctx *cli.Context, least, most int) ([]string, error) {
	got := ctx.Args().Slice()
	for _, w := range got {
		if len(w) > 1 && w[0] == '-' {
			return nil, &usageError{
				problem: fmt.Sprintf("%q comes after a name", hideValue(w)),
				hint:    "flags come before names; see " + seeHelp(ctx.Command),
			}
		}
	}
	switch {
	case len(got) < least:
		return nil, &usageError{problem: fmt.Sprintf("%q needs a name", commandPath(ctx.Command)), hint: "see " + seeHelp(ctx.Command)}
	case len(got) > most:
		return nil, &usageError{
			problem: fmt.Sprintf("%q does not take %q", commandPath(ctx.Command), hideValue(got[most])),
			hint:    "see " + seeHelp(ctx.Command),
		}
	}
	return got, nil
}

// hideValue leaves out what may be a variable's value.
func hideValue(word string) string {
	if name, _, found := strings.Cut(word, "="); found {
		return name + "=..."
	}
	return word
}

// usageError is a command line that is not understood.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string { return e.problem }

// Hint is the cure, for a person.
func (e *usageError) Hint() string { return e.hint }
