package main

import (
	"context"
	"fmt"
	"slices"

	"stockade/profiles"
	"stockade/sandbox/packages"
)

// packaged is a server that a package runner's command line asks for.
type packaged struct {
	command packages.Command
	entry   packages.Entry
}

// missing says what to do about a package that is not in the store.
type missing uint8

const (
	// installMissing installs it.
	installMissing missing = iota
	// refuseMissing is for commands that only look.
	refuseMissing
)

// notInstalledError is a look at a package that is not in the store.
type notInstalledError struct {
	request string
	server  []string
}

func (e *notInstalledError) Error() string {
	return e.request + " is not installed, so its plan is not known yet"
}

// Hint is the cure, for a person.
func (e *notInstalledError) Hint() string {
	return shellWords(append([]string{"stockade", "package", "add", "--"}, maskArguments(e.server)...))
}

// unpack turns a package runner's command line into that of the installed program. Other
// command lines stay as they are, and nil is returned with them.
func (m *machine) unpack(ctx context.Context, profile string, server []string, absent missing, std stdio) ([]string, *packaged, error) {
	c, isRunner, err := packages.Parse(server, m.where())
	if err != nil {
		return nil, nil, err
	}
	if !isRunner {
		note, err := unwrap(server)
		if note != "" {
			std.say(sayNote, note)
		}
		return server, nil, err
	}
	for _, note := range c.Notes {
		std.say(sayNote, note)
	}
	if err := m.admitPackages(c.Request); err != nil {
		return nil, nil, err
	}
	in := newInstaller(*m, std)
	if err := in.allowScripts(profile, &c.Request); err != nil {
		return nil, nil, err
	}
	e, found, err := in.store.Find(c.Request)
	switch {
	case err != nil:
		return nil, nil, err
	case !found && absent == refuseMissing:
		return nil, nil, &notInstalledError{request: c.Request.Key(), server: server}
	case !found:
		ctx, stop := interruptible(ctx)
		e, err = in.ensure(ctx, c.Request)
		stop()
		if err != nil {
			return nil, nil, err
		}
		m.packages = profiles.StorePath(m.data) // the install has made it
	}
	if err := m.admitEntry(c.Request, &e); err != nil {
		return nil, nil, err
	}
	start, err := e.Start(c)
	if err != nil {
		return nil, nil, err
	}
	return start.Argv, &packaged{command: c, entry: e}, nil
}

// allowScripts puts the packages whose install scripts may run into a request: those that
// the profile lists which will hold for the server.
func (in *installer) allowScripts(name string, r *packages.Request) error {
	search := in.machine.search()
	p, err := in.installProfile(search, name, *r)
	if err != nil || p == nil {
		return err
	}
	if err := in.machine.admit(search, p); err != nil {
		return err
	}
	if p, err = search.Complete(p); err != nil {
		return err
	}
	if p.FromRepo {
		if err := in.trustScripts(search, name, *r, p); err != nil {
			return err
		}
	}
	in.scripts = p.Install
	for _, s := range p.Install.Scripts {
		r.Scripts = append(r.Scripts, s.Value)
	}
	slices.Sort(r.Scripts)
	r.Scripts = slices.Compact(r.Scripts)
	return nil
}

// trustScripts refuses install scripts of a repository's profile that nobody allowed.
func (in *installer) trustScripts(search profiles.Search, name string, r packages.Request, p *profiles.Profile) error {
	base, err := in.baseline(search.WithoutRepo(), name, r)
	if err != nil {
		return err
	}
	if base == nil {
		base = profiles.Empty()
	}
	if base, err = search.WithoutRepo().Complete(base); err != nil {
		return err
	}
	var files []profiles.Source
	if file := p.SyscallFile(); file != "" {
		_, source, err := readSyscallFile(file)
		if err != nil {
			return err
		}
		files = append(files, source)
	}
	subject, err := in.machine.subject(p, files)
	if err != nil {
		return err
	}
	word, since, err := in.machine.approvals().Of(&subject)
	changes := profiles.NarrowerInstall(p, base)
	switch {
	case err != nil:
		return err
	case word == profiles.Denied:
		return &deniedError{p.File, since}
	case len(changes) == 0:
		return nil
	case word == profiles.Allowed:
		return in.machine.policies.each(func(policy *profiles.Policy) error { return policy.CheckApproval(p.File) })
	}
	refused := &repositoryError{file: p.File, than: shownFile(base), ask: askFor(p.File, nil)}
	for _, c := range changes {
		refused.wider = append(refused.wider, c.String())
	}
	return refused
}

// baseline finds what would apply without a repository's profile, as baseline does for a
// program: one of its name in the other places, else what matches the package there. A file
// that was named by its path has no other place.
func (in *installer) baseline(search profiles.Search, name string, r packages.Request) (*profiles.Profile, error) {
	if name != "" {
		list, err := search.List()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(l profiles.Listed) bool { return l.Name == name }) {
			name = ""
		}
	}
	return in.installProfile(search, name, r)
}

// installProfile finds the profile of a package before it is installed; nil for none.
func (in *installer) installProfile(search profiles.Search, name string, r packages.Request) (*profiles.Profile, error) {
	if name != "" {
		return in.machine.find(search, name)
	}
	if !r.Registered() {
		return nil, nil //nolint:nilnil // its name says nothing: no profile matches by it
	}
	return search.MatchPackage(fmt.Sprintf("%s:%s", r.Kind, r.Specs[0].Name))
}
