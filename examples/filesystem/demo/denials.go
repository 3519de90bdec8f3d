package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"stockade/examples/stock"
	"stockade/race"
)

// ask is one call that needs no race: the old file server follows links, and takes every
// folder that begins with the root's name for the root.
type ask struct {
	what string
	call func(root string) race.Call
}

var asks = []ask{
	{"read a file of the project", func(root string) race.Call {
		return race.Call{Tool: "read_file", Args: map[string]any{"path": filepath.Join(root, "notes.txt")}}
	}},
	{"read a link that leads outside", func(root string) race.Call {
		return race.Call{Tool: "read_file", Args: map[string]any{"path": filepath.Join(root, "link.txt")}}
	}},
	{"read a folder beside it, project-keys", func(root string) race.Call {
		return race.Call{Tool: "read_file", Args: map[string]any{"path": root + "-keys/key.txt"}}
	}},
	{"write through the link", func(root string) race.Call {
		return race.Call{Tool: "write_file", Args: map[string]any{"path": filepath.Join(root, "link.txt"), "content": "overwritten"}}
	}},
}

// denials asks version 0.6.2 for things outside its folder, without and with stockade,
// and prints both answers.
func denials(ctx context.Context, out io.Writer, jail race.Jail) (err error) {
	base, err := os.MkdirTemp("", "stockade-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	root := filepath.Join(base, "project")
	if err := furnish(root); err != nil {
		return err
	}
	command, err := stock.Filesystem062.Command(root)
	if err != nil {
		return err
	}
	free, err := answers(ctx, base, root, command)
	if err != nil {
		return err
	}
	if err := furnish(root); err != nil {
		return err
	}
	jailed, err := answers(ctx, base, root, append(jail.Words(nil), command...))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The stock file server %s, asked four things; its folder is %q.\n", stock.Filesystem062.Version, filepath.Base(root))
	for i, a := range asks {
		fmt.Fprintf(out, "\n  %s\n    without:  %s\n    stockade: %s\n", a.what,
			strings.ReplaceAll(free[i], base, "…"), strings.ReplaceAll(jailed[i], base, "…"))
	}
	return nil
}

// furnish makes the project, the folder beside it, the file outside and the link to it.
func furnish(root string) error {
	outside := filepath.Join(filepath.Dir(root), "outside.txt")
	for _, dir := range []string{root, root + "-keys"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("furnishing the demo: %w", err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(root, "notes.txt"): "notes of the project",
		root + "-keys/key.txt":           "a private key",
		outside:                          "a private file",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("furnishing the demo: %w", err)
		}
	}
	err := os.Symlink(outside, filepath.Join(root, "link.txt"))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("furnishing the demo: %w", err)
	}
	return nil
}

// answers starts the server with command, asks one thing after the other, and ends it.
func answers(ctx context.Context, base, root string, command []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = base
	cmd.Env = []string{"HOME=" + filepath.Join(base, "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}
	if err := os.MkdirAll(filepath.Join(base, "home"), 0o700); err != nil {
		return nil, fmt.Errorf("making a home: %w", err)
	}
	client, err := race.StartClient(ctx, cmd)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(asks))
	for i, a := range asks {
		got, err := client.Burst(ctx, []race.Call{a.call(root)}, func() error { return nil })
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		texts[i] = strings.TrimSpace(got[0].Text)
	}
	return texts, client.Close()
}
