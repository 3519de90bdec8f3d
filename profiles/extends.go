package profiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxExtends bounds how many files lie on one line of extends.
const maxExtends = 8

// Complete returns the profile with everything it extends merged in. A name in extends is
// a file beside the profile, or a built-in profile; a profile that shares the name of a
// built-in one may extend that one. Lists append, extended profiles first; single values
// replace. Name, description and match are a profile's own and are not inherited. The
// policy's defaults lie under the whole.
//
// Errors name the place of the extends entry: unknown names, cycles, lines longer than 8;
// and of what has no effect even in the whole: install.execute without install.scripts.
func (s Search) Complete(p *Profile) (*Profile, error) {
	if len(p.Extends) == 0 {
		done := *p
		return finished(s.Policy.Under(&done))
	}
	c, start := completion{}, *p
	if p.FromRepo {
		var bad *problem
		if c.repo, start.File, bad = s.home(p.File); bad != nil {
			return nil, Errors{bad.at(Position{File: p.File})}
		}
		root, err := os.OpenRoot(c.repo)
		if err != nil {
			return nil, Errors{wrong("", "opening the repository: %s", reason(err)).at(Position{File: c.repo})}
		}
		defer func() { _ = root.Close() }() // only read from
		c.root = root
	}
	out, err := c.complete(&start, []string{start.File})
	if err != nil {
		return nil, err
	}
	out.File = p.File
	return finished(s.Policy.Under(out))
}

// finished checks what only the whole says: what one file adds may need another's.
func finished(p *Profile) (*Profile, error) {
	if err := p.Install.check().orNil(); err != nil {
		return nil, err
	}
	return p, nil
}

// home returns the top folder of the repository that a profile's file lies in, and the
// file's path below it. The file may be named from anywhere, and by a link.
func (s Search) home(file string) (repo, path string, bad *problem) {
	named, err := filepath.Abs(file)
	if err != nil {
		return "", "", wrong("", "finding the profile's folder: %s", reason(err))
	}
	if s.Repo != "" && strings.HasPrefix(named, filepath.Join(s.Repo, repoFolder)+"/") {
		return s.Repo, named, nil
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return "", "", wrong("", "finding the profile's folder: %s", reason(err))
	}
	for _, place := range [...]string{real, named} {
		if repo, found := repositoryOf(place); found {
			return repo, place, nil
		}
	}
	return s.Repo, real, nil
}

// completion is one run of Complete.
type completion struct {
	repo string   // top folder of the repository, for its profiles
	root *os.Root // the same, opened
	done []string // files that are merged: a profile reached twice counts once
}

// complete merges what p extends, depth first. line lists the files from the first profile
// to p.
func (c *completion) complete(p *Profile, line []string) (*Profile, error) {
	if len(p.Extends) == 0 {
		return p, nil
	}
	var out *Profile
	var errs Errors
	for _, name := range p.Extends {
		parent, err := c.find(p, name)
		if err == nil {
			err = checkLine(line, parent.File, name)
		}
		if err == nil && slices.Contains(c.done, parent.File) {
			continue
		}
		if err == nil {
			c.done = append(c.done, parent.File)
			parent, err = c.complete(parent, append(slices.Clone(line), parent.File))
		}
		if err != nil {
			var more Errors
			if !errors.As(err, &more) {
				return nil, err
			}
			errs = append(errs, more...)
			continue
		}
		if out == nil {
			out = parent
		} else {
			out = merge(out, parent)
		}
	}
	if err := errs.orNil(); err != nil {
		return nil, err
	}
	if out == nil { // all of them are merged already, by another way
		out = &Profile{}
	}
	return merge(out, p), nil
}

func checkLine(line []string, next string, at Sourced[string]) error {
	if slices.Contains(line, next) {
		return Errors{wrong("remove one of the entries", "profiles extend each other: %s", strings.Join(append(slices.Clone(line), next), " -> ")).at(at.Position)}
	}
	if len(line) >= maxExtends {
		return Errors{wrong("merge some of the files", "more than %d profiles on one line of extends", maxExtends).at(at.Position)}
	}
	return nil
}

// find reads the profile that an entry of extends names.
func (c *completion) find(p *Profile, name Sourced[string]) (*Profile, error) {
	builtIn := strings.HasPrefix(p.File, builtinFile)
	if !builtIn && filepath.Base(p.File) != name.Value+suffix {
		parent, err := c.beside(p, name.Value)
		if parent != nil || err != nil {
			return parent, err
		}
	}
	if parent, ok := Builtin(name.Value); ok {
		return parent, nil
	}
	hint := fmt.Sprintf("built-in profiles are %s; others lie beside the file, as %q", strings.Join(BuiltinNames(), ", "), name.Value+suffix)
	if near := nearest(name.Value, BuiltinNames()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, Errors{wrong(hint, "extends: no profile is named %q", name.Value).at(name.Position)}
}

// beside reads NAME.yaml from the folder of p; nil, nil when there is none. Files of a
// repository are opened below its top folder.
func (c *completion) beside(p *Profile, name string) (*Profile, error) {
	if p.File == "" {
		return nil, nil //nolint:nilnil // it lies nowhere, so nothing is beside it
	}
	folder := filepath.Dir(p.File)
	sh := shelf{folder: folder, prefix: folder, open: machine{}, place: PlaceUser}
	if c.root != nil {
		whole, err := filepath.Abs(folder)
		if err != nil {
			return nil, Errors{wrong("", "finding what the profile extends: %s", reason(err)).at(Position{File: p.File})}
		}
		below, err := filepath.Rel(c.repo, whole)
		if err != nil {
			return nil, Errors{wrong("", "finding what the profile extends: %s", reason(err)).at(Position{File: p.File})}
		}
		sh = shelf{folder: folder, prefix: below, open: c.root, place: PlaceRepo, root: c.root}
	}
	if _, err := sh.lstat(name + suffix); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is beside it; the built-in profiles are next
	}
	return sh.parse(name + suffix)
}

// merge lays a profile over the one that it extends. Lists append, single values replace.
// Neither argument is changed.
func merge(under, over *Profile) *Profile {
	out := *over
	out.Extends = nil
	out.FromRepo = under.FromRepo || over.FromRepo
	out.Sources = appended(under.Sources, over.Sources)
	out.Filesystem = mergeFilesystem(&under.Filesystem, &over.Filesystem)
	out.Roots = mergeRoots(&under.Roots, &over.Roots)
	out.Network = mergeNetwork(&under.Network, &over.Network)
	out.Environment = mergeEnvironment(&under.Environment, &over.Environment)
	out.Install = InstallScripts{
		Scripts: appended(under.Install.Scripts, over.Install.Scripts),
		Execute: appended(under.Install.Execute, over.Install.Execute),
		Read:    appended(under.Install.Read, over.Install.Read),
	}
	out.Syscalls = Syscalls{
		Profile: replace(under.Syscalls.Profile, over.Syscalls.Profile),
		Allow:   appended(under.Syscalls.Allow, over.Syscalls.Allow),
		Deny:    appended(under.Syscalls.Deny, over.Syscalls.Deny),
	}
	out.Limits = Limits{
		OpenFiles: replace(under.Limits.OpenFiles, over.Limits.OpenFiles),
		FileSize:  replace(under.Limits.FileSize, over.Limits.FileSize),
		Memory:    replace(under.Limits.Memory, over.Limits.Memory),
		Processes: replace(under.Limits.Processes, over.Limits.Processes),
	}
	out.View = replace(under.View, over.View)
	out.Guard = mergeGuard(under.Guard, over.Guard)
	out.Missing = mergeMissing(&under.Missing, &over.Missing)
	return &out
}

// replace takes the value of over where one is written.
func replace[T any](under, over Sourced[T]) Sourced[T] {
	if over.written() {
		return over
	}
	return under
}

// appended never writes into the array of either list: built-in profiles are shared.
func appended[T any](under, over []T) []T {
	switch {
	case len(under) == 0:
		return slices.Clip(over)
	case len(over) == 0:
		return slices.Clip(under)
	}
	return append(slices.Clip(under), over...)
}

func mergeFilesystem(under, over *Filesystem) Filesystem {
	return Filesystem{
		Read:         appended(under.Read, over.Read),
		Write:        appended(under.Write, over.Write),
		Optional:     appended(under.Optional, over.Optional),
		Execute:      appended(under.Execute, over.Execute),
		Protect:      appended(under.Protect, over.Protect),
		Hide:         appended(under.Hide, over.Hide),
		SpecialFiles: replace(under.SpecialFiles, over.SpecialFiles),
		Metadata:     replace(under.Metadata, over.Metadata),
		Home:         replace(under.Home, over.Home),
	}
}

// mergeRoots: the word args and a list replace each other, a list appends to a list.
func mergeRoots(under, over *Roots) Roots {
	switch {
	case over.FromArgs.written():
		return *over
	case over.ListAt != Position{}:
		return Roots{List: appended(under.List, over.List), ListAt: over.ListAt}
	}
	return *under
}

// mergeNetwork: a word replaces a word or a list, with what that said about names; a list
// replaces a word, and a list appends to a list. The word public in a list is a part of it.
func mergeNetwork(under, over *Network) Network {
	out := Network{
		Egress: under.Egress, Hosts: under.Hosts, HostsAt: under.HostsAt,
		Names:  replace(under.Names, over.Names),
		Listen: appended(under.Listen, over.Listen),
		Unix:   appended(under.Unix, over.Unix),
	}
	switch {
	case over.HostsAt != Position{}:
		out.Egress = over.Egress
		if under.HostsAt != (Position{}) {
			out.Egress = replace(under.Egress, over.Egress)
		}
		out.Hosts, out.HostsAt = appended(under.Hosts, over.Hosts), over.HostsAt
	case over.Egress.written():
		out.Egress, out.Hosts, out.HostsAt, out.Names = over.Egress, nil, Position{}, over.Names
	}
	return out
}

// mergeEnvironment: the later word about one name counts, whether it passes, sets or hides
// it.
func mergeEnvironment(under, over *Environment) Environment {
	names := func(name string) bool {
		return slices.ContainsFunc(over.Pass, func(s Sourced[string]) bool { return s.Value == name }) ||
			slices.ContainsFunc(over.Secrets, func(s Secret) bool { return s.Name == name }) ||
			slices.ContainsFunc(over.Set, func(v EnvSet) bool { return v.Name == name })
	}
	return Environment{
		Pass:    appended(kept(under.Pass, func(s *Sourced[string]) bool { return !names(s.Value) }), over.Pass),
		Set:     appended(kept(under.Set, func(v *EnvSet) bool { return !names(v.Name) }), over.Set),
		Secrets: appended(kept(under.Secrets, func(s *Secret) bool { return !names(s.Name) }), over.Secrets),
	}
}

// kept is a new list of what keep takes; nil when that is nothing.
func kept[T any](list []T, keep func(*T) bool) []T {
	var out []T
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

func mergeGuard(under, over *Guard) *Guard {
	if under == nil || over == nil {
		if over == nil {
			return under
		}
		return over
	}
	tools := over.ToolsAt
	if tools == (Position{}) {
		tools = under.ToolsAt
	}
	return &Guard{
		Position:        over.Position,
		Pins:            replace(under.Pins, over.Pins),
		Tools:           appended(under.Tools, over.Tools),
		ToolsAt:         tools,
		CallsPerMinute:  replace(under.CallsPerMinute, over.CallsPerMinute),
		ConcurrentCalls: replace(under.ConcurrentCalls, over.ConcurrentCalls),
		CallTimeout:     replace(under.CallTimeout, over.CallTimeout),
		MessageSize:     replace(under.MessageSize, over.MessageSize),
		ResultSize:      replace(under.ResultSize, over.ResultSize),
		Sampling:        replace(under.Sampling, over.Sampling),
		Elicitation:     replace(under.Elicitation, over.Elicitation),
		Roots:           replace(under.Roots, over.Roots),
	}
}

// mergeMissing: the word refuse takes back what an extended profile allows; a list takes
// back the word and appends to a list.
func mergeMissing(under, over *Missing) Missing {
	switch {
	case over.Refuse.written():
		return Missing{Refuse: over.Refuse}
	case len(over.Allow) > 0:
		return Missing{Allow: appended(under.Allow, over.Allow)}
	}
	return *under
}
