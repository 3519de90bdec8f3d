package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/forecast"
	"stockade/sandbox/supervise"
)

func TestAdvice(t *testing.T) {
	plan := sandbox.Plan{Name: "p", Guarded: []sandbox.Guarded{
		{Path: "/no/home", Why: "your home folder"},
		{Path: "/no/home/.ssh", Why: "SSH keys", Rule: sandbox.GuardTree},
		{Path: "/no/home/.config/stockade", Why: "stockade's own files", Rule: sandbox.GuardAlways},
	}}
	mine := advisor{plan: plan, source: "./p.yaml", dir: "/no/dir"}
	builtin := advisor{plan: plan, source: builtInSource + "node", dir: "/no/dir"}
	nobodys := advisor{plan: plan, source: "no profile matches this command", dir: "/no/dir"}
	file := func(op supervise.Operation, path, grant string, uses forecast.Use) supervise.Refusal {
		return supervise.Refusal{Program: "node", PID: 7, Call: "openat", Operation: op, Path: path, Grant: grant, Uses: uses}
	}
	socket := func(family int, errno unix.Errno) supervise.Refusal {
		return supervise.Refusal{Program: "node", PID: 7, Call: "socket", Operation: supervise.MakingSocket, Family: family, Errno: errno}
	}
	wider := file(supervise.Moving, "/srv/a", "/srv", forecast.UseWrite)
	wider.Wider = true
	replaced := file(supervise.Reading, "/srv/a", "/srv/a", forecast.UseRead)
	replaced.Replaced = true
	linked := file(supervise.Reading, "/srv/a", "/srv/a", forecast.UseRead)
	linked.Asked = "/srv/link"
	for _, tt := range []struct {
		name string
		by   advisor
		r    supervise.Refusal
		key  string
		want string
	}{
		{"read", mine, file(supervise.Reading, "/srv/a", "/srv/a", forecast.UseRead), "filesystem.read", `node: refused: reading /srv/a (openat): the profile does not grant it; to allow it, add "/srv/a" to filesystem.read in /no/dir/p.yaml`},
		{"read and write", mine, file(supervise.Writing, "/srv/a", "/srv/a", forecast.UseRead|forecast.UseWrite), "filesystem.write", `node: refused: writing to /srv/a (openat): the profile does not grant it; to allow it, add "/srv/a" to filesystem.write in /no/dir/p.yaml`},
		{"make", mine, file(supervise.Creating, "/srv/d/a", "/srv/d", forecast.UseMakeFile), "filesystem.write", `node: refused: creating /srv/d/a (openat): the profile does not grant it; to allow it, add "/srv/d" to filesystem.write in /no/dir/p.yaml`},
		{"execute", builtin, file(supervise.Executing, "/srv/a", "/srv/a", forecast.UseRead|forecast.UseExecute), "filesystem.execute", `node: refused: executing /srv/a (openat): the profile does not grant it; to allow it, add "/srv/a" to filesystem.execute in a profile of your own that extends "node"; for one run, --exec /srv/a`},
		{"nobody's profile", nobodys, file(supervise.Listing, "/srv", "/srv", forecast.UseList), "filesystem.read", `node: refused: listing /srv (openat): the profile does not grant it; to allow it, add "/srv" to filesystem.read in a profile of your own ("stockade profile init" writes one); for one run, --read /srv`},
		{"link", mine, linked, "filesystem.read", `node: refused: reading /srv/a (openat): asked for as /srv/link, and the profile does not grant it; to allow it, add "/srv/a" to filesystem.read in /no/dir/p.yaml`},
		{"own process", mine, file(supervise.Reading, "/proc/7/environ", "/proc/7/environ", forecast.UseRead), "filesystem.read", `node: refused: reading /proc/self/environ (openat): the profile does not grant it; to allow it, add "/proc/self/environ" to filesystem.read in /no/dir/p.yaml`},
		{"another process", mine, file(supervise.Reading, "/proc/77/environ", "/proc/77/environ", forecast.UseRead), "filesystem.read", `node: refused: reading /proc/77/environ (openat): the profile does not grant it; to allow it, add "/proc/77/environ" to filesystem.read in /no/dir/p.yaml`},
		{"keys", mine, file(supervise.Reading, "/no/home/.ssh/id", "/no/home/.ssh/id", forecast.UseRead), "filesystem.read", `node: refused: reading /no/home/.ssh/id (openat): /no/home/.ssh is kept from servers (SSH keys): only {path: "/no/home/.ssh/id", broad: true, reason: "..."} in filesystem.read of /no/dir/p.yaml opens it`},
		{"own files", mine, file(supervise.Reading, "/no/home/.config/stockade/x", "/no/home/.config/stockade/x", forecast.UseRead), "", `node: refused: reading /no/home/.config/stockade/x (openat): /no/home/.config/stockade is kept from every server (stockade's own files)`},
		{"home", mine, file(supervise.Creating, "/no/home/a", "/no/home", forecast.UseMakeFile), "filesystem.write", `node: refused: creating /no/home/a (openat): /no/home as a whole is kept from servers (your home folder); to allow it, name what the server needs below it in filesystem.write of /no/dir/p.yaml`},
		{"what holds keys", mine, file(supervise.Listing, "/no", "/no", forecast.UseList), "filesystem.read", `node: refused: listing /no (openat): /no as a whole is kept from servers: it holds /no/home (your home folder); to allow it, name what the server needs below it in filesystem.read of /no/dir/p.yaml`},
		{"wider", mine, wider, "", `node: refused: moving /srv/a (openat): there the server may do more with it than in the folder that it comes from; to allow it, have the server copy it, or grant both folders under filesystem.write`},
		{"replaced", mine, replaced, "", `node: refused: reading /srv/a (openat): the profile grants the file that was there at the start, and another one is in its place; to allow it, grant the folder that holds it, or start the server again`},
		{"fifo", mine, file(supervise.Creating, "/srv/f", "/srv", forecast.UseMakeFifo), "", `node: refused: creating /srv/f (openat): devices, fifos and sockets can be made in the server's private folders only`},
		{"IPv4", mine, socket(unix.AF_INET, unix.EAFNOSUPPORT), "network.egress", `node: refused: making an IPv4 socket (socket): the profile grants no network; to allow it, name the destinations in network.egress of /no/dir/p.yaml; for one run, --egress HOST`},
		{"Unix", builtin, socket(unix.AF_UNIX, unix.EACCES), "network.unix", `node: refused: making a Unix socket (socket): the profile grants no Unix socket; to allow it, name the socket file in network.unix; for one run, --unix PATH`},
		{"packet", mine, socket(unix.AF_PACKET, unix.EAFNOSUPPORT), "", `node: refused: making a packet socket (socket): no profile grants such a socket`},
		{"raw", mine, socket(unix.AF_INET, unix.EPERM), "", `node: refused: making an IPv4 socket (socket): no profile grants such a socket`},
		{"unknown", mine, socket(44, unix.EAFNOSUPPORT), "", `node: refused: making a family-44 socket (socket): no profile grants such a socket`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.by.entry(tt.r)
			if got := denialText(e); got != tt.want || e.Key != tt.key {
				t.Errorf("got  %s (key %q)\nwant %s (key %q)", got, e.Key, tt.want, tt.key)
			}
		})
	}
}

// TestObservedLines: a thing has one line in a run; what servers do without has none, and is
// in the log.
func TestObservedLines(t *testing.T) {
	state := t.TempDir()
	var errs bytes.Buffer
	l := openDenialLog(state, "p", stdio{err: &errs})
	read := func(at time.Time, path string) denialEntry {
		return denialEntry{Time: at, Profile: "p", Program: "node", Call: "openat", Kind: kindFile, Operation: "reading", Asked: path, Rule: notGranted, Key: "filesystem.read"}
	}
	for i := range 50 {
		l.observed(read(noon.Add(time.Duration(i)*time.Minute), "/srv/a"))
		l.observed(read(noon, "/proc/self/cgroup"))
		l.observed(read(noon, "/sys/fs/cgroup/memory.max"))
	}
	l.observed(denialEntry{Time: noon, Call: "socket", Kind: kindSocket, Operation: "making", Asked: "a netlink socket"})
	l.overlooked()
	l.overlooked()
	l.close()
	want := "stockade: note: node: refused: reading /srv/a (openat): the profile does not grant it\n" +
		"stockade: note: 49 more refusals; \"stockade log\" lists them\n"
	if errs.String() != want {
		t.Errorf("got\n%swant\n%s", errs.String(), want)
	}
	all := entries(t, filepath.Join(state, "stockade/log/denials.jsonl"))
	if len(all) != 152 || all[151].Unseen != 2 {
		t.Errorf("the log has %d lines, the last one %+v", len(all), all[len(all)-1])
	}
	quiet := read(noon, "/etc/passwd")
	for _, path := range []string{"/etc/passwd", "/proc/self/cgroup.x", "/sys/fs/cgroup", "/etc/hosts.allow"} {
		if quiet.Asked = path; quietly(quiet) {
			t.Errorf("%s has no line", path)
		}
	}
	write := read(noon, "/proc/self/cgroup")
	write.Key = "filesystem.write"
	if quietly(write) {
		t.Error("writing where reading would have no line has none")
	}
}

// TestObservedFloodIsBounded: a server that asks for ever other things gets twenty lines a
// minute, and what is remembered has an end.
func TestObservedFloodIsBounded(t *testing.T) {
	var errs bytes.Buffer
	l := openDenialLog(t.TempDir(), "p", stdio{err: &errs})
	for i := range 3 * mostOnce {
		at := noon.Add(time.Duration(i) * time.Second)
		l.observed(denialEntry{Time: at, Call: "openat", Kind: kindFile, Operation: "reading", Asked: fmt.Sprint("/srv/", i)})
	}
	l.close()
	if n := strings.Count(errs.String(), "refused: reading"); n > mostOnce || n < tellLines {
		t.Errorf("%d lines", n)
	}
	if len(l.once) > mostOnce {
		t.Errorf("%d things are remembered", len(l.once))
	}
}

// TestObserverKilled: a server does not go on without the parent that answers its calls.
func TestObserverKilled(t *testing.T) {
	s := prepareSupervised(t, "/bin/sh", "-c", "echo $$; read line; while :; do :; done")
	for i, word := range s.cmd.Args {
		if strings.Contains(word, "stockade run ") {
			s.cmd.Args[i] = strings.Replace(word, "stockade run ", "stockade run --explain-denials ", 1)
		}
	}
	s.start()
	server, err := strconv.Atoi(strings.TrimSpace(s.line()))
	if err != nil {
		t.Fatal(err)
	}
	pidfd, err := unix.PidfdOpen(server, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 10_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			_ = unix.Kill(server, unix.SIGKILL)
			t.Fatalf("the server goes on: %v", err)
		}
		return
	}
}

// TestObservedStreams: what goes through a server is the same, byte for byte, and so is its
// status.
func TestObservedStreams(t *testing.T) {
	home := t.TempDir()
	text := strings.Repeat("some bytes\x00\xff\n", 100_000)
	script := `cat; cat /etc/shadow /nothing 2>/dev/null; exit 3`
	for _, flags := range [][]string{nil, {"--explain-denials"}} {
		words := append(append([]string{"run", "--exec", "cat"}, flags...), "--", "/bin/sh", "-c", script)
		cmd := exec.Command("stockade", words...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.Dir = home
		cmd.Stdin = strings.NewReader(text)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		exit, is := errors.AsType[*exec.ExitError](err)
		if !is || exit.ExitCode() != 3 {
			t.Errorf("%v: %v\n%s", flags, err, errs.String())
		}
		if out.String() != text {
			t.Errorf("%v: %d bytes came out, %d went in", flags, out.Len(), len(text))
		}
	}
}
