package profiles

import (
	"fmt"
	"slices"
	"strings"

	"stockade/sandbox/egress"
)

// policyPlaces are the words of profiles.from.
var policyPlaces = []string{string(PlaceRepo), string(PlaceUser), string(PlaceSystem), string(PlaceBuiltin)}

// ParsePolicy reads a policy. name is what errors call the file. The error is an [Errors]
// with every problem of the file.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	doc, err := readDocument(name, data, "a policy")
	if err != nil {
		return nil, err
	}
	p := &Policy{File: name, at: map[string]Position{}}
	p.Defaults.File = name
	keys := policyKeys(p)
	r := reader{profile: &p.Defaults, file: name, top: keys, written: p.at}
	r.section(keys, "", &doc)
	if p.Defaults.Version == 0 && !r.sawVersion {
		r.fail(&doc, `write "version: 1"`, "the version is missing")
	}
	r.checkTwice()
	if len(r.errs) == 0 { // what could not be read is no empty list
		r.errs = p.check()
	}
	if err := r.errs.orNil(); err != nil {
		return nil, err
	}
	return p, nil
}

// check judges what single values do not say.
func (p *Policy) check() Errors {
	var errs Errors
	for _, list := range [...][]PathEntry{p.Never, p.NeverWrite, p.Network.Unix} {
		for _, e := range list {
			if e.Broad {
				errs = append(errs, wrong("write the path alone", "broad means nothing in a limit").at(e.Position))
			}
		}
	}
	for _, list := range [...]struct {
		key  string
		size int
	}{
		{"profiles.from", len(p.From)},
		{"limits.filesystem.never", len(p.Never)},
		{"limits.filesystem.never-write", len(p.NeverWrite)},
		{"limits.filesystem.never-execute", len(p.NeverExecute)},
		{"limits.network.never", len(p.NeverReached)},
		{"limits.environment.never", len(p.NeverPassed)},
		{"require.layers", len(p.Layers)},
	} {
		if at, has := p.at[list.key]; has && list.size == 0 {
			errs = append(errs, wrong("name something, or remove the key", "%s: an empty list holds nothing", list.key).at(at))
		}
	}
	for _, section := range [...]string{"profiles", "limits", "limits.filesystem", "limits.network", "limits.environment", "require", "audit"} {
		if at, has := p.at[section]; has && !slices.ContainsFunc(p.Written(), func(w WrittenKey) bool { return strings.HasPrefix(w.Key, section+".") }) {
			errs = append(errs, wrong("write its keys below it, or remove it", "%s: an empty section holds nothing", section).at(at))
		}
	}
	if p.Pins.written() {
		errs = append(errs, wrong("remove the key", "require.pins: this layer is not built yet").at(p.Pins.Position))
	}
	errs = append(errs, p.Defaults.Unbuilt()...)
	for _, l := range p.Layers {
		if slices.ContainsFunc(p.Defaults.Missing.Allow, func(m Sourced[string]) bool { return m.Value == l.Value }) {
			errs = append(errs, wrong("remove one of them", "layer %s is required, and the defaults go without it", l.Value).at(l.Position))
		}
	}
	return errs
}

func checkPlace(s string) (string, *problem) {
	if slices.Contains(policyPlaces, s) {
		return s, nil
	}
	hint := "known are " + strings.Join(policyPlaces, ", ")
	if near := nearest(s, policyPlaces); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return "", wrong(hint, "profiles.from: %q is not known", s)
}

// checkPolicyPath judges a path of a limit. It knows ${home} alone: the other variables are
// what the person sets.
func checkPolicyPath(s string) (string, *problem) {
	s, bad := checkPath(s)
	if bad != nil {
		return "", bad
	}
	if strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "${home}") {
		return "", wrong("write an absolute path, or one below ${home}", "%q: a limit cannot depend on what the person who starts a server chooses", s)
	}
	return s, nil
}

func checkPolicySocket(s string) (string, *problem) {
	s, bad := checkSocket(s)
	if bad != nil {
		return "", bad
	}
	return checkPolicyPath(s)
}

func checkPolicyProgram(s string) (string, *problem) {
	if strings.TrimSpace(s) != s {
		return "", wrong("remove the blank", "%q begins or ends with a blank", s)
	}
	s, bad := checkProgram(s)
	if bad != nil || !strings.ContainsAny(s, "/$~") {
		return s, bad
	}
	return checkPolicyPath(s)
}

// checkNever judges an entry of limits.network.never.
func checkNever(s string) (string, *problem) {
	if _, err := egress.ParseNever(s); err != nil {
		return "", ruleProblem(err)
	}
	return s, nil
}

// checkNeverPassed judges an entry of limits.environment.never.
func checkNeverPassed(s string) (string, *problem) {
	stem := strings.TrimSuffix(s, "*")
	if bad := checkVariable(stem); bad != nil {
		return "", bad
	}
	for _, always := range [...]string{"PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "LC_ALL"} {
		if holdsName(s, always) {
			return "", wrong("name the variables that are meant", "%q holds %s, which every server has", s, always)
		}
	}
	return s, nil
}

// holdsName tells whether an entry of limits.environment.never is about a variable.
func holdsName(entry, name string) bool {
	stem, pattern := strings.CutSuffix(entry, "*")
	return name == entry || pattern && strings.HasPrefix(name, stem)
}

// checkPolicyPackage judges an entry of limits.packages: as in match.packages, and with an
// exact version.
func checkPolicyPackage(s string) (string, *problem) {
	name, version := cutVersion(s)
	if _, bad := checkPackage(name); bad != nil {
		return "", bad
	}
	if strings.ContainsAny(version, "*?[^~<>=| ") || name != s && version == "" {
		return "", wrong("write one version, as in \"npm:name@1.2.3\"", "%q: a limit names one version, or none", s)
	}
	return s, nil
}

// cutVersion cuts a package's version off; a scope begins with the same sign.
func cutVersion(s string) (name, version string) {
	kind, rest, _ := strings.Cut(s, ":")
	if at := strings.LastIndexByte(rest, '@'); at > 0 {
		return kind + ":" + rest[:at], rest[at+1:]
	}
	return s, ""
}
