package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"
)

// version is the release, or the one that comes next with "-dev".
const version = "0.1.0-dev"

const versionAbout = `
DESCRIPTION
    Prints the version on one line: "stockade VERSION OS/ARCHITECTURE GO-VERSION".
    With --json: {"version", "os", "arch", "go"}.
` + askStatus

type versionOptions struct{ json bool }

func newVersionCommand(c *call) *cli.Command {
	opts := &versionOptions{}
	return &cli.Command{
		UsageText:   "stockade version [--json]",
		Description: versionAbout,
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json}},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runVersion(opts, c.stdio)
		},
	}
}

func runVersion(opts *versionOptions, std stdio) error {
	if opts.json {
		return writeJSON(std.out, struct {
			Version string `json:"version"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
			Go      string `json:"go"`
		}{version, runtime.GOOS, runtime.GOARCH, runtime.Version()})
	}
	_, err := fmt.Fprintf(std.out, "stockade %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

// writeJSON prints a value for programs: indented, a line feed at the end, and "<" and "&"
// as they are.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}
