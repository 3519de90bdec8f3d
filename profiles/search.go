package profiles

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox/program"
)

// Search is where profiles are looked for, first match wins: the repository, the person's
// own folder, the machine's, the built-in ones. An empty field leaves that place out.
type Search struct {
	Repo   string // top folder of the repository; its profiles are in .stockade/profiles
	Config string // $XDG_CONFIG_HOME; profiles are in stockade/profiles
	System string // /etc; profiles are in stockade/profiles
	Dir    string // working folder, for [FindModule]
	// Unwritten passes files without a single byte over: the shell has made the one that
	// "stockade profile init" is to print into.
	Unwritten bool
	// Policy's defaults are laid under every profile by [Search.Complete]; nil: there are none.
	Policy *Policy
	// Admits tells whether profiles may come from a place; nil: from all.
	Admits func(Place) bool
	// Denied tells whether the person denied the repository's profile at a real path: it is
	// passed over then. nil: nobody is asked.
	Denied func(real string) (bool, error)
	// Packages is where the store of package runners really lies; [StorePath] says it.
	Packages string
}

// WithoutRepo is the search that would happen if the repository had no profiles. What a
// repository's profile grants is compared with what this finds (see [Narrower]).
func (s Search) WithoutRepo() Search {
	s.Repo = ""
	return s
}

// Place is where a profile was found.
type Place string

const (
	// PlaceRepo is .stockade/profiles in the repository: nobody approved its files.
	PlaceRepo Place = "repository"
	// PlaceUser is the person's configuration folder.
	PlaceUser Place = "user"
	// PlaceSystem is the machine's configuration folder.
	PlaceSystem Place = "system"
	// PlaceBuiltin is stockade itself.
	PlaceBuiltin Place = "built-in"
)

func (s Search) admits(place Place) bool { return s.Admits == nil || s.Admits(place) }

// builtin is Builtin where built-in profiles are admitted.
func (s Search) builtin(name string) (*Profile, bool) {
	if !s.admits(PlaceBuiltin) {
		return nil, false
	}
	return Builtin(name)
}

// matchBuiltin is the same for a match.
func (s Search) matchBuiltin(fits func(*Match) bool) *Profile {
	if !s.admits(PlaceBuiltin) {
		return nil
	}
	return matchBuiltin(fits)
}

// Find returns the profile that --profile names: a file when the word holds a slash or
// ends in .yaml, else a name, looked for in order. A profile that is there and cannot be
// read is an error; the search does not go on behind it.
func (s Search) Find(nameOrFile string) (*Profile, error) {
	return s.FindAt(nameOrFile, Position{File: "--profile"})
}

// FindAt is Find for a word that was written elsewhere. Errors about the word have the
// place; the zero Position is no place.
func (s Search) FindAt(nameOrFile string, at Position) (*Profile, error) {
	if strings.Contains(nameOrFile, "/") || strings.HasSuffix(nameOrFile, suffix) {
		return ParseFile(nameOrFile)
	}
	if _, bad := checkName(nameOrFile); bad != nil {
		return nil, Errors{bad.at(at)}
	}
	shelves, err := s.shelves()
	if err != nil {
		return nil, err
	}
	defer closeShelves(shelves)
	for _, sh := range shelves {
		p, err := sh.named(nameOrFile)
		if p != nil || err != nil {
			return p, err
		}
	}
	if p, ok := s.builtin(nameOrFile); ok {
		return p, nil
	}
	return nil, Errors{wrong(s.findHint(nameOrFile, shelves), "no profile is named %q", nameOrFile).at(at)}
}

func (s Search) findHint(name string, shelves []shelf) string {
	for _, sh := range shelves {
		for _, ending := range []string{otherSuffix, ".json", ""} {
			if sh.holds(name + ending) {
				return fmt.Sprintf("rename %q: profiles end in %s", filepath.Join(sh.folder, name+ending), suffix)
			}
		}
	}
	names := BuiltinNames()
	for _, sh := range shelves {
		files, _ := sh.files()
		if slices.Contains(files, name+suffix) {
			return fmt.Sprintf("%s is denied; take that back with: stockade allow %s", filepath.Join(sh.folder, name+suffix), filepath.Join(sh.folder, name+suffix))
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f, suffix))
		}
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "see: stockade profile list"
}

// Match returns the profile whose match section fits a program, from the first place that
// has one; nil, nil when none does. Two fitting profiles in one place are an error, and so
// is a file that may hold a match section and cannot be read: it could be the narrower one.
func (s Search) Match(p program.Program) (*Profile, error) {
	shelves, err := s.shelves()
	if err != nil {
		return nil, err
	}
	defer closeShelves(shelves)
	installed := installedName(&p, FindModule(p, s.Dir), s.Packages)
	for _, sh := range shelves {
		found, err := sh.match(&p, installed)
		if found != nil || err != nil {
			return found, err
		}
	}
	// nil is an answer: the caller takes Empty.
	return s.matchBuiltin(func(m *Match) bool { return m.fits(&p, installed) }), nil
}

// fits tells whether a match section names the program, or the package that it is
// installed as.
func (m *Match) fits(p *program.Program, installed string) bool {
	if installed != "" {
		for _, pattern := range m.Packages {
			if matches(pattern.Value, installed) {
				return true
			}
		}
	}
	for _, pattern := range m.Commands {
		for _, file := range [...]string{p.Named, p.Entry} {
			if file != "" && matches(pattern.Value, filepath.Base(file)) {
				return true
			}
		}
	}
	return false
}

// matches compares a pattern that checkGlob has passed.
func matches(pattern, name string) bool {
	if pattern == name {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// Listed is one profile of a list.
type Listed struct {
	Name        string
	Place       Place
	File        string // "" for built-in profiles
	Description string
	Matches     []string // packages and commands, as written
	// Hidden tells that an earlier place has a profile of this name, Denied that the person
	// denied it.
	Hidden, Denied bool
	Err            error // why the file cannot be used; nil when it can
}

// List returns every profile of every place, in the order of the search. A broken file is
// listed with its error.
func (s Search) List() ([]Listed, error) {
	shelves, err := s.shelves()
	if err != nil {
		return nil, err
	}
	defer closeShelves(shelves)
	var out []Listed
	seen := map[string]bool{}
	add := func(l Listed) {
		l.Hidden = seen[l.Name]
		seen[l.Name] = seen[l.Name] || !l.Denied
		out = append(out, l)
	}
	for _, sh := range shelves {
		files, err := sh.files()
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			l := Listed{Name: strings.TrimSuffix(file, suffix), Place: sh.place, File: filepath.Join(sh.folder, file)}
			read, err := sh.read(file)
			if err == nil {
				l.Denied, err = sh.passesOver(read)
			}
			var p *Profile
			if err == nil {
				p, err = sh.parseContent(file, read)
			}
			if l.Err = err; err == nil {
				l.Description, l.Matches = p.Description, p.Match.words()
			}
			add(l)
		}
	}
	if !s.admits(PlaceBuiltin) {
		return out, nil
	}
	for _, name := range BuiltinNames() {
		p, _ := Builtin(name)
		add(Listed{Name: name, Place: PlaceBuiltin, Description: p.Description, Matches: p.Match.words()})
	}
	return out, nil
}

func (m *Match) words() []string {
	var out []string
	for _, p := range m.Packages {
		out = append(out, p.Value)
	}
	for _, c := range m.Commands {
		out = append(out, c.Value)
	}
	return out
}

// PlaceOf tells where a profile comes from, by where its file really lies.
func (s Search) PlaceOf(p *Profile) Place {
	switch {
	case len(p.Sources) == 0:
		return PlaceBuiltin
	case p.FromRepo:
		return PlaceRepo
	case s.System != "" && inside(p.Sources[len(p.Sources)-1].Real, filepath.Join(s.System, "stockade", "profiles")):
		return PlaceSystem
	}
	return PlaceUser
}
