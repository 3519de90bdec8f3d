package profiles

import (
	"slices"
	"strings"
)

// Flags are grants that a command line adds for one run, as written.
type Flags struct {
	Roots  []string // --root
	Read   []string // --read
	Write  []string // --write
	Exec   []string // --exec
	Egress []string // --egress: none, public, all or HOST:PORT
	Listen []string // --listen
	Unix   []string // --unix
	Env    []string // --env: NAME or NAME=VALUE
}

// With returns the profile with flags added. Each flag is checked like the key that it
// repeats; errors have the flag's name as their file. Flags only add: a flag that would
// take something away is an error. A relative path is relative to the working folder,
// because a person types flags there; for --exec only one that begins with ./ or ../, since
// a bare name is a program on the PATH.
func (p *Profile) With(f Flags) (*Profile, error) {
	var errs Errors
	over := &Profile{}
	roots := flagPaths(&errs, "--root", f.Roots)
	for _, e := range roots {
		if bad := checkRoot(e.Path); bad != nil {
			errs = append(errs, bad.at(e.Position))
		}
	}
	over.Filesystem.Read = flagPaths(&errs, "--read", f.Read)
	over.Filesystem.Write = flagPaths(&errs, "--write", f.Write)
	over.Network.Unix = flagPaths(&errs, "--unix", f.Unix)
	for _, e := range over.Network.Unix {
		if _, bad := checkSocket(e.Path); bad != nil {
			errs = append(errs, bad.at(e.Position))
		}
	}
	for _, program := range f.Exec {
		at := Position{File: "--exec"}
		text, bad := checkGiven(fromHere(program), checkProgram)
		if bad != nil {
			errs = append(errs, bad.at(at))
			continue
		}
		over.Filesystem.Execute = append(over.Filesystem.Execute, Sourced[string]{text, at})
	}
	for _, text := range f.Listen {
		at := Position{File: "--listen"}
		port, bad := checkPort(text)
		if bad != nil {
			errs = append(errs, bad.at(at))
			continue
		}
		over.Network.Listen = append(over.Network.Listen, Sourced[uint16]{port, at})
	}
	flagEnv(&errs, &over.Environment, f.Env)
	egress := flagEgress(&errs, &p.Network, f.Egress)
	if err := errs.orNil(); err != nil {
		return nil, err
	}
	out := merge(p, over)
	out.File, out.FromRepo, out.Version, out.Name = p.File, p.FromRepo, p.Version, p.Name
	out.Description, out.Match, out.Extends = p.Description, p.Match, p.Extends
	out.Roots.List = appended(p.Roots.List, roots)
	out.Network.Egress, out.Network.Hosts, out.Network.HostsAt, out.Network.Names = egress.Egress, egress.Hosts, egress.HostsAt, egress.Names
	return out, nil
}

// fromHere spells a path that is relative to the working folder with its variable.
func fromHere(path string) string {
	if path == "." || path == ".." || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") {
		return "${cwd}/" + path
	}
	return path
}

func checkGiven(text string, check func(string) (string, *problem)) (string, *problem) {
	if text == "" {
		return "", wrong("give it a value, or leave the flag out", "the value is empty")
	}
	return check(text)
}

func flagPaths(errs *Errors, flag string, given []string) []PathEntry {
	var out []PathEntry
	for _, path := range given {
		at := Position{File: flag}
		if path != "" && !strings.ContainsRune("/~$", rune(path[0])) {
			path = "${cwd}/" + path
		}
		text, bad := checkGiven(path, checkPath)
		if bad != nil {
			*errs = append(*errs, bad.at(at))
			continue
		}
		out = append(out, PathEntry{Path: text, Position: at})
	}
	return out
}

// flagEnv reads --env. NAME passes the host's variable, NAME=VALUE sets one. No message
// holds a value.
func flagEnv(errs *Errors, env *Environment, given []string) {
	at := Position{File: "--env"}
	add := func(bad *problem) { *errs = append(*errs, bad.at(at)) }
	for _, text := range given {
		name, value, sets := strings.Cut(text, "=")
		if !sets {
			if _, bad := checkGiven(name, checkPass); bad != nil {
				add(bad)
				continue
			}
			env.Pass = append(env.Pass, Sourced[string]{name, at})
			continue
		}
		if _, bad := checkSet(name); bad != nil {
			add(bad)
			continue
		}
		if bad := checkValue(value); bad != nil {
			add(wrong(bad.hint, "%s: %s", name, bad.message))
			continue
		}
		env.Set = append(env.Set, EnvSet{Name: name, Value: value, Position: at})
	}
	for i, v := range env.Set {
		for _, other := range env.Set[:i] {
			if other.Name == v.Name {
				add(wrong("give it once", "%s is set twice", v.Name))
			}
		}
		for _, p := range env.Pass {
			if p.Value == v.Name {
				add(wrong("give it once", "%s is both passed and set", v.Name))
			}
		}
	}
}

// flagEgress adds --egress to what a profile lets out: rules to a list, to none or to
// public, and a wider word to a narrower one.
func flagEgress(errs *Errors, net *Network, given []string) Network {
	out := Network{Egress: net.Egress, Hosts: net.Hosts, HostsAt: net.HostsAt, Names: net.Names}
	at := Position{File: "--egress"}
	for _, text := range given {
		switch mode := EgressMode(text); mode {
		case EgressNone:
			if len(net.Hosts) > 0 || egressRank(net.Egress.Value) > egressRank(EgressNone) {
				*errs = append(*errs, wrong("name a profile that grants less", "flags only add, and the profile has more than none").at(at))
			}
		case EgressPublic, EgressAll:
			if egressRank(mode) > egressRank(out.Egress.Value) {
				out.Egress = Sourced[EgressMode]{mode, at}
			}
			if out.Egress.Value == EgressAll { // holds every rule
				out.Hosts, out.HostsAt, out.Names = nil, Position{}, Sourced[NamesMode]{}
			}
		default:
			rule, bad := checkEgress(text)
			if bad != nil {
				*errs = append(*errs, bad.at(at))
				continue
			}
			if out.Egress.Value == EgressAll {
				continue // holds every rule already
			}
			if out.Egress.Value == EgressNone {
				out.Egress = Sourced[EgressMode]{}
			}
			out.Hosts = append(slices.Clip(out.Hosts), EgressRule{To: rule, Position: at})
			out.HostsAt = at
		}
	}
	return out
}

func egressRank(m EgressMode) int {
	switch m {
	case EgressPublic:
		return 1
	case EgressAll:
		return 2
	case EgressNone:
	}
	return 0
}
