package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// guards is the table of guarded places. Their real paths are looked up when the first
// grant asks for them: a plan that grants nothing but system files needs none.
type guards struct {
	list   []Guarded
	places []guardedPlace
	// system is whether grants of [systemPlaces] need no look: no guarded place lies there.
	system bool
}

func newGuards(list []Guarded) guards {
	return guards{list: list, system: !slices.ContainsFunc(list, func(g Guarded) bool {
		return ofSystem(g.Path) || g.Rule >= GuardNever && slices.ContainsFunc(systemPlaces[:], func(s string) bool { return below(s, g.Path) })
	})}
}

type guardedPlace struct {
	Guarded
	real string
}

// resolve follows the links on the way to each place, so that a home folder behind a link
// is guarded under both names. Places that do not exist are guarded by name.
func (gs *guards) resolve() {
	if gs.places != nil || len(gs.list) == 0 {
		return
	}
	parents := make(map[string]string)
	gs.places = make([]guardedPlace, 0, len(gs.list))
	for _, g := range gs.list {
		gs.places = append(gs.places, guardedPlace{Guarded: g, real: realPath(g.Path, parents)})
	}
}

// systemPlaces are what the distribution installs, by real path. A runtime needs files of
// these at nearly every start, and no guarded place is there or is a link to there.
var systemPlaces = [...]string{
	"/usr/lib", "/usr/bin", "/usr/share", "/usr/lib64", "/usr/libexec", "/usr/sbin",
	"/etc/ld.so.cache", "/etc/ssl/openssl.cnf",
}

func ofSystem(target string) bool {
	for _, place := range systemPlaces {
		if below(target, place) {
			return true
		}
	}
	return false
}

// realPath resolves the folder of a path once for all places that share it, and asks
// for a link of its own with one call.
func realPath(path string, parents map[string]string) string {
	parent, name := filepath.Split(path)
	realParent, known := parents[parent]
	if !known {
		realParent = parent
		if r, err := filepath.EvalSymlinks(parent); err == nil {
			realParent = r
		}
		parents[parent] = realParent
	}
	full := filepath.Join(realParent, name)
	var st unix.Stat_t
	if unix.Lstat(full, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return full
	}
	if r, err := filepath.EvalSymlinks(full); err == nil {
		return r
	}
	return full
}

// check refuses a grant that reaches a guarded place without saying why. Grants that the
// launcher itself adds pass. A runtime's own files may lie inside a guarded tree when the
// command line itself names something there (a server installed below an agent's folder),
// or in the part of it that is the server's own (a package in the store); a server's files
// cannot lead there by themselves. What a policy closes is judged first: it is the reason
// that no word of the person changes.
func (gs *guards) check(p Plan, og OpenedGrant) error {
	if og.State != Granted || og.Origin.Source == OriginAlways {
		return nil
	}
	if og.Origin.Source == OriginRuntime && gs.system && ofSystem(og.Target) {
		return nil
	}
	gs.resolve()
	for _, judge := range [...]func(*guardedPlace) error{
		func(g *guardedPlace) error {
			if g.Origin == (Origin{}) {
				return nil
			}
			return g.never(og)
		},
		func(g *guardedPlace) error { return g.unlessSaid(p, og) },
		func(g *guardedPlace) error { return g.never(og) },
	} {
		for i := range gs.places {
			if err := judge(&gs.places[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessSaid judges by the rules that a reason, or the runtime's need, passes.
func (g *guardedPlace) unlessSaid(p Plan, og OpenedGrant) error {
	ofRuntime := og.Origin.Source == OriginRuntime
	if g.Rule >= GuardNever || ofRuntime && g.Own != "" && (og.Access == Read || og.Access == Execute) && below(og.Target, g.Own) {
		return nil
	}
	for _, place := range [...]string{g.Path, g.real} {
		rule := g.Rule
		if ofRuntime && g.Own == "" && namedIn(p.Argv, og.Target, place) {
			rule = GuardWhole
		}
		if !rule.forbids(og.Target, place) {
			continue
		}
		if og.Broad != "" && (rule != GuardAlways || !below(og.Target, place)) {
			continue
		}
		return guardError(og, g, place)
	}
	return nil
}

// never judges by the rules that nothing passes.
func (g *guardedPlace) never(og OpenedGrant) error {
	writes := og.Access == Write || og.Access == Scratch
	switch {
	case g.Rule < GuardNever, g.Rule == GuardNeverWrite && !writes, g.Rule == GuardNeverExecute && og.Access != Execute:
		return nil
	}
	for _, place := range [...]string{g.Path, g.real} {
		if g.Rule.forbids(og.Target, place) {
			return guardError(og, g, place)
		}
	}
	if g.Rule == GuardNeverExecute && sameObject(og, g.real) {
		return guardError(og, g, g.real) // another name of it: programs come with hard links
	}
	return nil
}

// sameObject tells whether a grant's object is the one at a path.
func sameObject(og OpenedGrant, path string) bool {
	var granted, there unix.Stat_t
	return unix.Fstat(og.fd, &granted) == nil && unix.Stat(path, &there) == nil && granted.Dev == there.Dev && granted.Ino == there.Ino
}

// Holds tells whether a real path is the place or lies in it.
func (g Guarded) Holds(real string) bool {
	return below(real, g.Path) || below(real, realPath(g.Path, map[string]string{}))
}

// GuardedPlace returns the guarded place that stands against granting a real path: of several the one
// that the path lies in, then the one that it is, then one that lies in it. It reports false
// when none does.
func (p Plan) GuardedPlace(real string) (g Guarded, guarded bool) {
	gs := newGuards(p.Guarded)
	gs.resolve()
	nearest := 0
	for i := range gs.places {
		for _, place := range [...]string{gs.places[i].Path, gs.places[i].real} {
			near := 0
			switch rule := gs.places[i].Rule; {
			case !rule.forbids(real, place):
				continue
			case rule == GuardAlways && below(real, place):
				near = 4
			case rule == GuardTree && below(real, place):
				near = 3
			case real == place:
				near = 2
			default:
				near = 1
			}
			if near > nearest {
				g, nearest = gs.places[i].Guarded, near
			}
		}
	}
	return g, nearest > 0
}

// namedIn tells whether a command line names a path in a place that the grant of target
// itself holds: the server's own folder, say, and not its neighbour.
func namedIn(argv []string, target, place string) bool {
	return slices.ContainsFunc(argv, func(word string) bool {
		if !strings.HasPrefix(word, "/") {
			return false
		}
		word = filepath.Clean(word)
		return below(word, place) && below(word, target)
	})
}

func guardError(og OpenedGrant, g *guardedPlace, place string) error {
	what := fmt.Sprintf("it reaches %s (%s)", place, g.Why)
	switch {
	case g.Origin != (Origin{}):
		what = fmt.Sprintf("it reaches %s, which %s closes", place, g.Origin)
	case og.Target == place:
		what = "it is " + g.Why
	}
	if og.Target != og.Path {
		what = fmt.Sprintf("it is a link to %q; %s", og.Target, what)
	}
	cure := `grant what the server needs below it, or write {path: ..., broad: true, reason: "..."}`
	switch {
	case g.Origin != (Origin{}):
		cure = "the machine's policy has the last word: grant something else, or ask who keeps it"
	case g.Rule >= GuardAlways && (g.Rule != GuardAlways || below(og.Target, place)):
		cure = "no profile can grant this; grant the folders beside it"
	}
	return &GrantError{Grant: og.Grant, Err: errors.New(what), Cure: cure}
}

// forbids tells whether a grant of the tree at target touches the place.
func (r GuardRule) forbids(target, place string) bool {
	if below(place, target) {
		return true
	}
	return r != GuardWhole && below(target, place)
}

// below tells whether path is dir or lies in it. Both are clean and absolute. It compares
// whole names: /srv/data-old is not below /srv/data.
func below(path, dir string) bool {
	if dir == "/" {
		return true
	}
	return path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
