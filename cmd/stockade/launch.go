package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
	"stockade/seccomp"
)

// machine is what this machine and the host's environment say, gathered once.
type machine struct {
	env                                 map[string]string
	home, dir, repo                     string
	data, state, config, cache, runtime string
	packages                            string // where the store of packages really lies
	program                             program.Facts
	policies                            policies
	unwritten                           bool // see [profiles.Search]
}

// lookAround gathers what every command needs that deals with profiles.
func lookAround() (machine, error) {
	m := machine{env: environment(os.Environ())}
	var err error
	if m.home, err = homeFolder(m.env); err != nil {
		return m, err
	}
	if m.dir, err = workingFolder(); err != nil {
		return m, err
	}
	m.repo = repository(m.dir, m.home, os.Getuid())
	m.data = xdgFolder(m.env, "XDG_DATA_HOME", m.home, ".local/share")
	m.state = xdgFolder(m.env, "XDG_STATE_HOME", m.home, ".local/state")
	m.config = xdgFolder(m.env, "XDG_CONFIG_HOME", m.home, ".config")
	m.cache = xdgFolder(m.env, "XDG_CACHE_HOME", m.home, ".cache")
	if v := m.env["XDG_RUNTIME_DIR"]; filepath.IsAbs(v) {
		m.runtime = filepath.Clean(v)
	}
	m.packages = profiles.StorePath(m.data)
	m.program = program.Facts{Home: m.home, Dir: m.dir, Env: m.env}
	m.policies.system, err = profiles.ReadSystemPolicy(systemPolicyFile(), systemOwner)
	return m, err
}

func (m machine) search() profiles.Search {
	return profiles.Search{
		Repo: m.repo, Config: m.ownConfig(), System: systemFolder, Dir: m.dir, Packages: m.packages,
		Policy: m.policies.system, Admits: m.policies.admits, Denied: m.approvals().Denied,
		Unwritten: m.unwritten,
	}
}

// process says which process becomes the server.
type process uint8

const (
	// thisProcess executes the server.
	thisProcess process = iota
	// anotherProcess: the plan is shown, or entered by a child.
	anotherProcess
)

// facts are the machine's facts for one command line.
func (m machine) facts(p program.Program, who process) (profiles.Facts, error) {
	f := profiles.Facts{
		Home: m.home, Dir: m.dir, Repo: m.repo, Env: m.env,
		UID: os.Getuid(), Program: p, Module: profiles.FindModule(p, m.dir),
		Data: m.data, State: m.state, Config: m.config, Cache: m.cache, Runtime: m.runtime, Packages: m.packages,
		StdioDevices: terminals(),
	}
	if who == thisProcess {
		f.PID = os.Getpid()
	}
	var err error
	if f.LandlockABI, err = sandbox.LandlockABI(); err != nil {
		return f, err
	}
	f.Run, err = sandbox.RunName()
	return f, err
}

// launch is a plan that was worked out, with what it came from.
type launch struct {
	machine  machine
	packaged *packaged // nil: the command line is no package runner's
	resolved profiles.Resolved
	source   string // where the profile came from, for people

	// What the plan was worked out from, to work it out again with more.
	profile *profiles.Profile
	facts   profiles.Facts
}

// prepare works out the plan for a server's command. It reads and makes nothing, but for a
// package that is to be installed first.
func prepare(ctx context.Context, opts *launchOptions, server []string, who process, absent missing, std stdio) (launch, error) {
	if err := opts.check(); err != nil {
		return launch{}, err
	}
	m, err := lookAround()
	if err != nil {
		return launch{}, err
	}
	if err := m.addPolicies(opts.policies); err != nil {
		return launch{}, err
	}
	if err := m.policies.each(func(p *profiles.Policy) error { return p.CheckFlags(opts.grants()) }); err != nil {
		return launch{}, err
	}
	asked := server
	server, unpacked, err := m.unpack(ctx, opts.profile.value, server, absent, std)
	if err != nil {
		return launch{}, err
	}
	p, err := program.Resolve(server, m.program)
	if err != nil {
		return launch{}, err
	}
	facts, err := m.facts(p, who)
	if err != nil {
		return launch{}, err
	}
	search := m.search()
	profile, err := m.choose(search, opts.profile.value, p)
	if err != nil {
		return launch{}, err
	}
	if err := m.admit(search, profile); err != nil {
		return launch{}, err
	}
	resolved, err := compile(search, profile, opts.grants(), facts)
	if err != nil {
		return launch{}, err
	}
	if resolved.Profile.FromRepo { // by itself, or by what it extends
		word, err := m.trust(search, comparison{profile, opts.profile.value, opts.grants(), facts, asked, resolved})
		if err != nil {
			return launch{}, err
		}
		resolved.Notes = append(slices.Clip(resolved.Notes), word...)
	}
	if err := m.hold(&resolved); err != nil {
		return launch{}, err
	}
	resolved.Notes = append(slices.Clip(resolved.Notes), policyNotes(m.policies.all())...)
	l := launch{machine: m, packaged: unpacked, resolved: resolved, source: profile.File, profile: profile, facts: facts}
	if l.source == "" {
		l.source = "no profile matches this command"
	}
	return l, nil
}

// warnings are what the person should know at every start.
func (l launch) warnings(opened []sandbox.OpenedGrant) []string {
	return append(slices.Clip(l.resolved.Warnings), ownCode(l.resolved.Program, opened)...)
}

// choose finds the profile: the named one, the first that matches, or the empty one.
func (m machine) choose(search profiles.Search, name string, p program.Program) (*profiles.Profile, error) {
	if name == "" {
		return matching(search, p)
	}
	return m.find(search, name)
}

// find finds a named profile, and knows the repository's.
func (m machine) find(search profiles.Search, name string) (*profiles.Profile, error) {
	found, err := search.Find(name)
	if err == nil && m.inRepository(found.File) {
		found.FromRepo = true
	}
	return found, err
}

// matching finds the first profile that matches, or the empty one.
func matching(search profiles.Search, p program.Program) (*profiles.Profile, error) {
	found, err := search.Match(p)
	if err == nil && found == nil {
		found = profiles.Empty()
	}
	return found, err
}

// compile completes a profile, adds the flags, looks up what it asks for on this machine
// and makes the plan.
func compile(search profiles.Search, p *profiles.Profile, flags profiles.Flags, facts profiles.Facts) (profiles.Resolved, error) {
	p, err := search.Complete(p)
	if err != nil {
		return profiles.Resolved{}, err
	}
	if p, err = p.With(flags); err != nil {
		return profiles.Resolved{}, err
	}
	wanted := p.Wants(facts)
	for _, a := range wanted.Arguments {
		a.State = argState(a.Path)
		facts.ArgFolders = append(facts.ArgFolders, a)
	}
	if len(wanted.Programs) > 0 {
		facts.Execute = make(map[string]profiles.Closure, len(wanted.Programs))
		inside := program.Facts{Home: facts.Home, Dir: facts.Dir, Env: map[string]string{"PATH": wanted.Path}}
		for _, name := range wanted.Programs {
			var c profiles.Closure
			c.Execute, c.Read, c.Err = program.Closure(name, inside)
			facts.Execute[name] = c
		}
	}
	if len(wanted.Sockets) > 0 {
		facts.Sockets = lookAtSockets(wanted.Sockets)
	}
	if wanted.SyscallFile != "" {
		data, source, err := readSyscallFile(wanted.SyscallFile)
		if err != nil {
			return profiles.Resolved{}, err
		}
		if facts.SyscallProfile, err = seccomp.ParseBase(data); err != nil {
			return profiles.Resolved{}, fmt.Errorf("reading system call profile %q: %w", wanted.SyscallFile, err)
		}
		facts.Files = append(facts.Files, source)
	}
	return profiles.Compile(p, facts)
}

func argState(path string) profiles.ArgState {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return profiles.ArgMissing
	case st.IsDir():
		return profiles.ArgIsFolder
	}
	return profiles.ArgIsFile
}

// readSyscallFile reads a file of syscalls.profile.
func readSyscallFile(path string) ([]byte, profiles.Source, error) {
	data, err := readFile(path, maxSyscallFile)
	if err != nil {
		return nil, profiles.Source{}, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, profiles.Source{}, &factError{problem: fmt.Sprintf("finding %q", path), hint: "start again", cause: plainError(err)}
	}
	return data, profiles.Source{File: path, Real: real, SHA256: sha256.Sum256(data)}, nil
}

// maxSyscallFile bounds a file of syscalls.profile; the longest known ones have 20 KiB.
const maxSyscallFile = 1 << 20

// readFile reads a regular file of bounded size. It never waits: a fifo or a device is an
// error.
func readFile(path string, limit int64) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &factError{problem: fmt.Sprintf("reading %q", path), hint: "name a readable file", cause: plainError(err)}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }() // read only: nothing can be lost
	st, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if !st.Mode().IsRegular() {
		return fail(fmt.Errorf("it is no regular file"))
	}
	if err := profiles.CheckOwner(f); err != nil {
		return nil, &factError{problem: fmt.Sprintf("reading %q", path), hint: hintOf(err), cause: err}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return fail(err)
	}
	if int64(len(data)) > limit {
		return fail(fmt.Errorf("it is larger than %d bytes", limit))
	}
	return data, nil
}
