package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stockade/profiles"
	"stockade/sandbox/program"
)

// A profile of a repository may narrow what applies without it. More than that needs the
// person's word about its content, which "stockade allow" keeps.

func (m machine) approvals() profiles.Approvals {
	a := profiles.ApprovalsBelow(m.state)
	a.Foreign = m.ofOthers
	return a
}

// repositoryError refuses a repository's profile that grants more than what would apply
// without it.
type repositoryError struct {
	file  string
	wider []string
	than  string
	named string   // the name it lacks, when its private home is all that it widens
	ask   []string // the command that shows it and asks for approval
}

func (e *repositoryError) Error() string {
	return fmt.Sprintf("%s grants more than %s, and nobody approved it: %s", e.file, e.than, strings.Join(e.wider, "; "))
}

// Hint is the cure, for a person.
func (e *repositoryError) Hint() string {
	if e.named != "" {
		return fmt.Sprintf("a private home goes with a profile's name: name the file %q, as the profile that it narrows", e.named+".yaml")
	}
	return "read the profile; then " + shellWords(e.ask) + ", or name another one with --profile"
}

// deniedError refuses a profile that the person denied and that is named all the same.
type deniedError struct {
	file string
	time time.Time
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("%s is denied since %s", e.file, e.time.Local().Format(time.DateOnly))
}

// Hint is the cure, for a person.
func (e *deniedError) Hint() string {
	return "name another one with --profile, or take it back with " + shellWords([]string{"stockade", "allow", e.file})
}

// comparison is a repository's plan, and what it was made from.
type comparison struct {
	profile  *profiles.Profile // as found
	named    string            // --profile
	flags    profiles.Flags    // the person's own, for both plans
	facts    profiles.Facts
	server   []string // the command line, as given
	resolved profiles.Resolved
}

// trust refuses a repository's plan that grants more than what would apply if the repository
// had no profiles, unless the person allowed its content. It returns what explain should say.
func (m machine) trust(search profiles.Search, c comparison) ([]string, error) {
	subject, err := m.subject(c.resolved.Profile, c.resolved.Files)
	if err != nil {
		return nil, err
	}
	word, since, err := m.approvals().Of(&subject)
	if err != nil {
		return nil, err
	}
	if word == profiles.Denied {
		return nil, &deniedError{c.profile.File, since}
	}
	changes, base, err := wider(search, c)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	if word == profiles.Allowed {
		if err := m.policies.each(func(p *profiles.Policy) error { return p.CheckApproval(c.profile.File) }); err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("%s grants more than %s; you allowed it on %s", c.profile.File, shownFile(base.Profile), since.Local().Format(time.DateOnly))}, nil
	}
	refused := &repositoryError{file: c.profile.File, than: shownFile(base.Profile), ask: askFor(c.profile.File, c.server)}
	for _, change := range changes {
		refused.wider = append(refused.wider, change.String())
	}
	plan := &c.resolved.Plan
	if len(changes) == 1 && plan.Home.Path != "" && base.Plan.Home.Path != "" && plan.Home.Path != base.Plan.Home.Path {
		refused.named = base.Plan.Name
	}
	return nil, refused
}

func askFor(file string, server []string) []string {
	ask := []string{"stockade", "allow", file}
	if len(server) > 0 {
		ask = append(append(ask, "--"), maskArguments(server)...)
	}
	return ask
}

func shownFile(p *profiles.Profile) string {
	if p.File == "" {
		return "the empty profile"
	}
	return p.File
}

// subject is what the person is asked about. What the repository's profile reads beside
// profiles is part of it.
func (m machine) subject(p *profiles.Profile, others []profiles.Source) (profiles.Subject, error) {
	s, ok := p.Subject(others...)
	if !ok {
		return s, fmt.Errorf("%s is no file that could be approved", shownFile(p))
	}
	return s, nil
}

// wider compares a plan with the one that would apply if the repository had no profiles.
// Both have this run's flags: those are the person's.
func wider(search profiles.Search, c comparison) ([]profiles.Change, profiles.Resolved, error) {
	without := search.WithoutRepo()
	other, err := baseline(without, c.named, c.facts.Program)
	if err != nil {
		return nil, profiles.Resolved{}, err
	}
	whole, err := without.Complete(other)
	if err != nil {
		return nil, profiles.Resolved{}, err
	}
	flags := c.flags
	if !whole.UsesRoots() {
		flags.Roots = nil // they would grant nothing, which is an error where a person means it
	}
	base, err := compile(without, other, flags, c.facts)
	if err != nil {
		return nil, base, fmt.Errorf("comparing %s with %s: %w", c.profile.File, shownFile(other), err)
	}
	return profiles.Narrower(c.resolved, base), base, nil
}

// baseline finds what would apply without a repository's profile: one of its name in the
// other places, else what matches there.
func baseline(search profiles.Search, name string, p program.Program) (*profiles.Profile, error) {
	if name == "" {
		return matching(search, p)
	}
	list, err := search.List()
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Name == name {
			return search.Find(name)
		}
	}
	return matching(search, p)
}

// inRepository tells whether a file that was named by its path is a repository's: all in its
// folder .stockade, also when that is a link, and all else below the top folder of any, whatever
// folder stockade is started from. A host's configuration in the repository can name it, so the
// person may not have meant to trust it. Package profiles knows by itself the files that lie in
// a folder of that name.
func (m machine) inRepository(file string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false // built-in profiles have no file
	}
	if real, err = filepath.Abs(real); err != nil {
		return true
	}
	if m.repo != "" {
		if folder, err := filepath.EvalSymlinks(filepath.Join(m.repo, ".stockade")); err == nil && strings.HasPrefix(real, folder+"/") {
			return true
		}
	}
	return m.ofOthers(real)
}

// ofOthers tells whether a real path lies in a repository that is not what holds the person's
// own home folder, as the dotfiles of some do.
func (m machine) ofOthers(real string) bool {
	own := ""
	for at := real; at != "/"; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err != nil {
			continue
		}
		if own == "" {
			homes, err := m.homes("a repository's profile")
			if err != nil {
				return true
			}
			// The last is the user database's word: HOME is for the host's configuration to set.
			own = realAsFar(homes[len(homes)-1])
		}
		if !below(own, at) {
			return true
		}
	}
	return false
}

// ownConfig is the folder with the person's own profiles: "" when it came with a repository. The
// one in the home folder that the user database names is the person's, also as a repository.
func (m machine) ownConfig() string {
	if !m.ofOthers(realAsFar(filepath.Join(m.config, "stockade", "profiles"))) {
		return m.config
	}
	homes, err := m.homes("the profiles")
	if err != nil || m.config != filepath.Join(homes[len(homes)-1], ".config") {
		return "" // whoever wrote the repository wrote what is in it
	}
	return m.config
}

// below tells whether a clean path is a folder or lies in it.
func below(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
