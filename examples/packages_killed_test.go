package examples_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox/packages/registrytest"
)

// TestRunnerKilled stops an install in the middle: the registry holds an answer back. No
// process of it is left, and the next start installs.
func TestRunnerKilled(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			w := newWorkshop(t)
			path := probe("1.0.0").Path()
			w.registry.Break(path, registrytest.Hang)
			cmd := w.stockade(t, "run", "--", "npx", "-y", "@corp/probe")
			var stderr buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool { return w.registry.Count(path) > 0 })
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			switch {
			case signal == syscall.SIGKILL && status.Signal() != syscall.SIGKILL:
				t.Errorf("it ended with %v", cmd.ProcessState)
			case signal != syscall.SIGKILL && (status.ExitStatus() != 125 || len(lines(stderr.String(), "stockade: error: ")) != 1):
				t.Errorf("it ended with %v; stderr:\n%s", cmd.ProcessState, stderr.String())
			}
			until(t, func() bool { // what the kernel ends by parent death takes a moment
				pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
				return pid <= 0 && errors.Is(err, unix.ECHILD)
			})
			w.registry.Break(path, registrytest.Answer)
			if said, _ := w.probe(t, "npx", "-y", "@corp/probe"); said.Version != "1.0.0" {
				t.Errorf("the next start: got %+v", said)
			}
			if left, err := os.ReadDir(filepath.Join(w.home, ".local/share/stockade/packages/.partial")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestBuildKilled stops an install in the middle of an install script, which has stopped the
// package manager and left a process of its own that ignores signals. None of them outlives it.
func TestBuildKilled(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			w := newWorkshop(t)
			stubborn := `const { spawn } = require("child_process");
spawn(process.execPath, ["-e", "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); require('fs').writeFileSync('started', ''); setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" }).unref();
const wait = setInterval(() => { if (require("fs").existsSync("started")) { clearInterval(wait); process.kill(process.ppid, "SIGSTOP"); setInterval(() => {}, 1000) } }, 10);
`
			w.registry.AddNPM(registrytest.NPM{
				Name: "stubborn", Version: "1.0.0", Manifest: map[string]any{"bin": "server.js", "scripts": map[string]string{"postinstall": "node build.js"}},
				Files: map[string]string{"build.js": stubborn, "server.js": "#!/usr/bin/env node\n"},
			})
			profile := w.profile(t, "extends: [node]\ninstall: {scripts: [stubborn]}\n")
			cmd := w.stockade(t, "run", "--profile", profile, "--", "npx", "-y", "stubborn")
			var stderr buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool {
				found, _ := filepath.Glob(filepath.Join(w.home, ".local/share/stockade/packages/.partial/*/*/node_modules/stubborn/started"))
				return len(found) > 0
			})
			time.Sleep(100 * time.Millisecond) // for the stop behind it
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			until(t, func() bool {
				pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
				return pid <= 0 && errors.Is(err, unix.ECHILD)
			})
		})
	}
}

// until waits for something that happens by itself.
func until(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCaseS55RunnerCaches is S55 and S56: servers die because a runner's cache lies outside of the jail, or has
// to be written even to be read. An install has a cache of its own, and a start needs none
// and writes none.
func TestCaseS55RunnerCaches(t *testing.T) {
	w := newWorkshop(t)
	w.probe(t, "npx", "-y", "@corp/probe")
	for _, cache := range []string{".npm", ".cache/npm", ".config/npm"} {
		if _, err := os.Lstat(filepath.Join(w.home, cache)); err == nil {
			t.Errorf("an install made %s in the person's home", cache)
		}
	}
	before := map[string]time.Time{}
	record := func(into map[string]time.Time) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(w.home, ".local/share/stockade/packages"), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				into[path] = info.ModTime()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	record(before)
	w.probe(t, "npx", "-y", "@corp/probe")
	after := map[string]time.Time{}
	record(after)
	for path, at := range after {
		if was, ok := before[path]; !ok || !was.Equal(at) {
			t.Errorf("a later start changed %s", strings.TrimPrefix(path, w.home))
		}
	}
}
