// Command demo attacks the stock file server in four versions, without stockade and with
// it, and prints what got out. `make demo` runs it.
//
// Exit status: 0 when secrets leaked without stockade and none with it; 1 when one leaked
// with it; 2 when the attack or the jail did not work, so that the figures mean nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"stockade/examples/stock"
	"stockade/race"
)

// callsPerRow keeps the whole demo under a minute on two cores.
const callsPerRow = 32

func main() {
	// An interrupt ends the run in order: servers, swapper and folders go.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx)
	stop()
	os.Exit(status)
}

func run(ctx context.Context) int {
	if race.IsSwapper() {
		if err := race.RunSwapper(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	binary, err := stock.Binary()
	if err != nil {
		return fail(err)
	}
	defer func() { _ = stock.Clean() }()
	jail := race.Jail{
		Name:    "stockade",
		Words:   func(*race.Stage) []string { return []string{binary, "run", "--"} },
		Refusal: "EACCES",
	}
	if err := denials(ctx, os.Stdout, jail); err != nil {
		return fail(err)
	}
	leaks, err := table(ctx, os.Stdout, jail)
	if err != nil {
		return fail(err)
	}
	switch {
	case leaks.jailed > 0:
		return 1
	case leaks.free == 0:
		return fail(errors.New("nothing leaked without stockade: the attack does not work here"))
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "demo:", err)
	return 2
}

// count is the number of leaks on either side.
type count struct{ free, jailed int }

// line is a row of the table: two words, four figures.
const line = "%-13s %-12s %7v %15v %15v %16v\n"

func printCounts(out io.Writer, version, method string, calls, free, jailed, refused int) {
	fmt.Fprintf(out, line, version, method, calls, free, jailed, refused)
}

// table races every version by every method and prints a line for each.
func table(ctx context.Context, out io.Writer, jail race.Jail) (count, error) {
	fmt.Fprintf(out, "\nA folder in the allowed root is swapped for a link to a secret while tools are called.\n")
	fmt.Fprintf(out, "A leak: an answer shows the secret, or something outside the root changed.\n\n")
	fmt.Fprintf(out, line, "file server", "swapped by", "calls", "leaks without", "with stockade", "kernel said no")
	var runs []race.Result
	var sum count
	for _, server := range stock.Filesystems {
		for _, method := range race.Methods {
			config := race.Config{Server: server, Method: method, Calls: callsPerRow, Rows: race.Rows}
			free, err := race.Run(ctx, config)
			if err != nil {
				return sum, fmt.Errorf("racing %s without stockade: %w", server.Version, err)
			}
			config.Jail = jail
			jailed, err := race.Run(ctx, config)
			if err != nil {
				return sum, fmt.Errorf("racing %s with stockade: %w", server.Version, err)
			}
			runs = append(runs, jailed)
			sum.free += free.Leaks
			sum.jailed += jailed.Leaks
			printCounts(out, server.Version, method.String(), free.Calls, free.Leaks, jailed.Leaks, jailed.Refused)
		}
	}
	all, err := race.Sum(jail, runs)
	if err != nil {
		return sum, err
	}
	printCounts(out, "all", "", all.Calls, sum.free, sum.jailed, all.Refused)
	fmt.Fprintf(out, "\nNot counted: %d answers in the jail showed the size or mode of an outside file.\n", all.Metadata)
	fmt.Fprintln(out, "Landlock has no right for such metadata; stockade does not promise to hide it.")
	return sum, nil
}
