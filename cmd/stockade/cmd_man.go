package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

const manAbout = `
DESCRIPTION
    Writes the manual into a folder, for packages: DIR/man1 with a page for each command, and
    DIR/man5 with the formats of profiles and of the policy. They are made from the same table as the
    help. A page that is there already is an error.

    When SOURCE_DATE_EPOCH is set, its day is the date of the pages, in UTC; otherwise they
    have none. To read one page:

        stockade man /tmp/manual && man -l /tmp/manual/man1/stockade-run.1
` + askStatus

func newManCommand(c *call) *cli.Command {
	return &cli.Command{
		UsageText:   "stockade man DIR",
		Description: manAbout,
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			words, err := c.words(ctx, 1, 1)
			if err != nil {
				return err
			}
			return runMan(words[0])
		},
	}
}

func runMan(dir string) error {
	date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	pages, err := manualPages()
	if err != nil {
		return err
	}
	for i := range pages {
		if err := writeNew(filepath.Join(dir, pages[i].file()), roffPage(&pages[i], date)); err != nil {
			return err
		}
	}
	return nil
}

// sourceDate reads the variable that build tools agree on for a date that is the same at
// each build (reproducible-builds.org, "SOURCE_DATE_EPOCH"): seconds since 1970.
func sourceDate(seconds string) (string, error) {
	if seconds == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(seconds, 10, 40)
	if err != nil {
		return "", &usageError{problem: "SOURCE_DATE_EPOCH is not a number of seconds since 1970", hint: "unset it, or set it to the output of: git log -1 --format=%ct"}
	}
	return time.Unix(int64(n), 0).UTC().Format(time.DateOnly), nil
}

// writeNew writes a file that must not be there yet, in a folder that may.
func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a manual is for everybody
		return fmt.Errorf("making the folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a manual is for everybody
	if errors.Is(err, fs.ErrExist) {
		return &usageError{problem: path + " is there already", hint: "name a folder that is new or empty"}
	}
	if err != nil {
		return fmt.Errorf("writing a page: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fmt.Errorf("writing a page: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing a page: %w", err)
	}
	return nil
}
