package packages_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/sandbox/packages"
)

// person is somebody with a home and an environment of a test's own.
func person(t *testing.T, environ ...string) packages.Person {
	t.Helper()
	return packages.Person{Home: t.TempDir(), Environ: environ}
}

// write writes a file, and the folders that it needs.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// writeAll writes files by path below a folder and returns the folder.
func writeAll(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for path, text := range files {
		write(t, filepath.Join(folder, path), text)
	}
	return folder
}

// newStage makes an empty stage.
func newStage(t *testing.T) packages.Stage {
	t.Helper()
	top := t.TempDir()
	s := packages.Stage{Tree: filepath.Join(top, "tree"), Home: filepath.Join(top, "home"), Temp: filepath.Join(top, "tmp")}
	for _, folder := range []string{s.Tree, s.Home, s.Temp} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// carryOut runs a step as an install jail would, but outside any: in the stage, with the
// person's variables that the step may see.
func carryOut(t *testing.T, step packages.Step, s packages.Stage, p packages.Person, reach packages.Registries) ([]byte, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, step.Argv[0], step.Argv[1:]...)
	cmd.Dir = s.Tree
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "TMPDIR=" + s.Temp}
	names := reach.Variables
	if step.Access == packages.Scripted {
		names = reach.OpenVariables
	}
	for _, name := range names {
		for _, entry := range p.Environ {
			if strings.HasPrefix(entry, name+"=") {
				cmd.Env = append(cmd.Env, entry)
			}
		}
	}
	cmd.Env = append(cmd.Env, step.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) {
		t.Fatalf("%q did not end by itself: %v\n%s", step.Argv, err, out.Bytes())
	}
	return out.Bytes(), cmd.ProcessState.ExitCode()
}

// realFile returns the file behind a program's name on PATH.
func realFile(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// exists tells whether something is at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hintOf returns an error's hint, "" for none.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
