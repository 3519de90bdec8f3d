package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stockade/profiles"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// installer carries out installs into the store, each step in a jail of its own.
type installer struct {
	machine machine
	store   packages.Store
	std     stdio
	egress  []string                // further hosts that the person names for this install
	scripts profiles.InstallScripts // of the profile: what install scripts may do
}

func newInstaller(m machine, std stdio) *installer {
	return &installer{machine: m, store: m.store(), std: std}
}

// store is where packages are kept.
func (m machine) store() packages.Store {
	return packages.Store{Root: filepath.Join(m.data, "stockade", "packages")}
}

func (m machine) where() packages.Where { return packages.Where{Home: m.home, Dir: m.dir} }

// ensure returns the entry of a request, and installs it when the store has none.
func (in *installer) ensure(ctx context.Context, r packages.Request) (packages.Entry, error) {
	if e, found, err := in.store.Find(r); err != nil || found {
		return e, err
	}
	held, err := in.lock(ctx, r)
	if err != nil {
		return packages.Entry{}, err
	}
	// Whoever had the lock before may have installed it.
	e, found, err := in.store.Find(r)
	if err == nil && !found {
		e, err = in.install(ctx, held, r)
	}
	if releaseErr := held.Release(); err == nil {
		err = releaseErr
	}
	return e, err
}

// again resolves and installs a request whether or not the store has it.
func (in *installer) again(ctx context.Context, r packages.Request) (packages.Entry, error) {
	held, err := in.lock(ctx, r)
	if err != nil {
		return packages.Entry{}, err
	}
	e, err := in.install(ctx, held, r)
	if releaseErr := held.Release(); err == nil {
		err = releaseErr
	}
	return e, err
}

// lock is the way to every install, so a policy's list of packages is asked here.
func (in *installer) lock(ctx context.Context, r packages.Request) (*packages.Held, error) {
	if err := in.machine.admitPackages(r); err != nil {
		return nil, err
	}
	return in.store.Lock(ctx, r, func() {
		in.std.say(sayNote, "waiting for another start that installs "+r.Key())
	})
}

// install carries out the steps of an install and takes the result into the store.
func (in *installer) install(ctx context.Context, held *packages.Held, r packages.Request) (packages.Entry, error) {
	line := beginProgress(in.std, "installing "+r.Key())
	defer line.end()
	stage, err := held.Stage()
	if err != nil {
		return packages.Entry{}, err
	}
	run := installRun{installer: in, request: r, stage: stage, line: line}
	var installed packages.Installed
	if r.Kind == packages.PyPI {
		installed, err = run.pip(ctx)
	} else {
		installed, err = run.npm(ctx)
	}
	if err != nil {
		return packages.Entry{}, err
	}
	line.step("checking")
	e, err := held.Commit(installed, run.runtime)
	if err != nil {
		return packages.Entry{}, err
	}
	line.end()
	in.std.say(sayNote, fmt.Sprintf("installed %s:%s %s, %s, %s", e.Kind, e.Name, e.Version, counted(len(e.Locked), "package"), sized(e.Size)))
	if installed.Newest != "" && installed.Newest != e.Version && unpinned(r) {
		in.std.say(sayNote, fmt.Sprintf("the newest version is %s; the package manager chose %s, as a rule because of the runtime's version (%s)", installed.Newest, e.Version, run.runtime))
	}
	if left := withoutScripts(installed.WithScripts, r.Scripts); len(left) > 0 {
		in.std.say(sayNote, "install scripts did not run: "+strings.Join(left, ", ")+"; if the server needs them, list them under install.scripts in its profile")
	}
	return e, nil
}

// unpinned tells whether a request asks for whatever is newest.
func unpinned(r packages.Request) bool {
	return r.Specs[0].Source == packages.Registry && (r.Specs[0].Version == "" || r.Specs[0].Version == "latest")
}

func withoutScripts(have, run []string) []string {
	return slices.DeleteFunc(slices.Clone(have), func(name string) bool { return slices.Contains(run, name) })
}

// installRun is one install that is under way.
type installRun struct {
	*installer
	request packages.Request
	stage   packages.Stage
	line    *progress
	runtime string
}

// npm installs with the person's npm.
func (run *installRun) npm(ctx context.Context) (packages.Installed, error) {
	var none packages.Installed
	config, err := run.npmConfig(ctx)
	if err != nil {
		return none, err
	}
	steps, err := packages.NPMSteps(run.request, run.stage, config)
	if err != nil {
		return none, err
	}
	for _, s := range steps {
		if s.Access == packages.Scripted {
			if err := packages.NPMScripts(run.request, run.stage); err != nil {
				return none, err
			}
		}
		if _, err := run.step(ctx, s, config.Reach, packages.NPMFailure); err != nil {
			return none, err
		}
	}
	return packages.NPMInstalled(run.request, run.stage)
}

// npmConfig asks npm for the configuration of the person: the registries above all.
func (run *installRun) npmConfig(ctx context.Context) (packages.NPMConfig, error) {
	npm, err := program.Resolve([]string{"npm"}, run.machine.program)
	if err != nil {
		return packages.NPMConfig{}, &factError{problem: "packages of the npm registry are installed by npm", hint: "install npm; it comes with node", cause: err}
	}
	run.runtime = "node at " + npm.File
	config, err := packages.FindNPMConfig(run.machine.person(), npm.File, npm.Entry)
	if err != nil {
		return packages.NPMConfig{}, err
	}
	out, err := run.step(ctx, config.List(run.stage), config.Reach, packages.NPMFailure)
	if err != nil {
		return packages.NPMConfig{}, err
	}
	return config.Listed(out, run.request)
}

// step carries out one step and explains its failure: what the package manager said, and
// what the jail refused.
func (run *installRun) step(ctx context.Context, s packages.Step, reach packages.Registries, explain func([]byte, int) error) ([]byte, error) {
	run.line.step(s.Title)
	result, err := run.runStep(ctx, run.stage, s, run.grants(s.Access, reach, run.request))
	if err != nil {
		return nil, err
	}
	if result.status == 0 {
		return result.out, nil
	}
	err = explain(append(slices.Clone(result.out), result.err...), result.status)
	for _, line := range result.told {
		if text, ok := strings.CutPrefix(line, string(sayNote)+": refused: "); ok {
			return nil, &installError{cause: err, refused: text}
		}
	}
	return nil, err
}

// installError is a failure that follows a refusal of the install jail.
type installError struct {
	cause   error
	refused string
}

func (e *installError) Error() string {
	return e.cause.Error() + "; the install jail refused: " + e.refused
}

func (e *installError) Unwrap() error { return e.cause }

// Hint is the cure, for a person.
func (e *installError) Hint() string {
	return `an install reaches the registry of your npm or pip configuration alone; a further host is named by "stockade package add --egress HOST:PORT ..."`
}

// grants are what a step's jail gets for the step's access.
func (in *installer) grants(access packages.Access, reach packages.Registries, r packages.Request) profiles.InstallGrants {
	g := profiles.InstallGrants{Files: reach.Files, Variables: in.set(reach.Variables)}
	if access != packages.Offline {
		g.Rules = append(slices.Clone(reach.Rules), in.egress...)
	}
	switch access {
	case packages.Online:
		g.Places = r.LocalPlaces()
		for _, s := range r.Specs {
			if s.Source == packages.Git {
				g.Execute = gitPrograms
			}
		}
	case packages.Scripted:
		// Scripts are the package's own code: no credentials, and what the profile lists.
		g.Files, g.Variables = reach.OpenFiles, in.set(reach.OpenVariables)
		g.Execute = append([]profiles.Sourced[string]{{Value: "/bin/sh", Position: profiles.InstallPosition}}, in.scripts.Execute...)
		g.Read = in.scripts.Read
	case packages.Offline:
		// A package of Python may have brought code by then. npm's only step of this kind asks
		// for the configuration, before any package is there.
		if r.Kind == packages.PyPI {
			g.Files, g.Variables = reach.OpenFiles, in.set(reach.OpenVariables)
		}
	}
	if r.Kind == packages.PyPI {
		g.Files = append(slices.Clip(g.Files), pipFiles...)
	}
	return g
}

// pipFiles are what Python's modules venv and pip read: the pip of Debian and Ubuntu, the
// distribution's name, and content types, without which pip fails.
var pipFiles = []string{
	"/usr/share/python-wheels", "/etc/os-release", "/etc/debian_version", "/etc/lsb-release", "/etc/redhat-release", "/etc/system-release",
	"/etc/mime.types",
}

// gitPrograms are what npm starts for a package from a repository.
var gitPrograms = []profiles.Sourced[string]{
	{Value: "git", Position: profiles.InstallPosition},
	{Value: "/usr/lib/git-core/git", Position: profiles.InstallPosition},
	{Value: "/usr/lib/git-core/git-remote-https", Position: profiles.InstallPosition},
}

// set keeps the variables that the host has set.
func (in *installer) set(names []string) []string {
	var out []string
	for _, name := range names {
		if in.machine.env[name] != "" {
			out = append(out, name)
		}
	}
	return out
}

// person is whose configuration the package managers read.
func (m machine) person() packages.Person {
	p := packages.Person{Home: m.home}
	for name, value := range m.env {
		p.Environ = append(p.Environ, name+"="+value)
	}
	slices.Sort(p.Environ)
	return p
}
