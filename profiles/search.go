package profiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// shelf is one folder of profiles. Its files are opened by name below root, or anywhere
// when root is nil.
type shelf struct {
	place  Place
	folder string // as shown
	open   opener
	prefix string // of the folder, for open
	root   *os.Root
	denied func(real string) (bool, error)
}

// repoProfiles is where a repository keeps its profiles.
const repoProfiles = repoFolder + "/profiles"

// shelves opens the places in order. close ends them.
func (s Search) shelves() ([]shelf, error) {
	var out []shelf
	if s.Repo != "" {
		// Links in a repository must not lead out of it: its files are as foreign as its
		// last author.
		root, err := os.OpenRoot(s.Repo)
		if err != nil {
			return nil, Errors{wrong("", "opening the repository: %s", reason(err)).at(Position{File: s.Repo})}
		}
		out = append(out, shelf{place: PlaceRepo, folder: filepath.Join(s.Repo, repoProfiles), open: root, prefix: repoProfiles, root: root, denied: s.Denied})
	}
	for _, c := range []struct {
		place Place
		dir   string
	}{{PlaceUser, s.Config}, {PlaceSystem, s.System}} {
		if c.dir != "" {
			folder := filepath.Join(c.dir, "stockade", "profiles")
			out = append(out, shelf{place: c.place, folder: folder, open: machine{}, prefix: folder})
		}
	}
	return out, nil
}

func closeShelves(shelves []shelf) {
	for _, sh := range shelves {
		if sh.root != nil {
			_ = sh.root.Close() // only read from
		}
	}
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
	if p, ok := Builtin(nameOrFile); ok {
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
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f, suffix))
		}
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "see: stockade profile list"
}

// holds tells whether something of that name lies in the folder, a dangling link included.
func (sh *shelf) holds(file string) bool {
	_, err := sh.lstat(file)
	return err == nil
}

func (sh *shelf) lstat(file string) (fs.FileInfo, error) {
	if sh.root != nil {
		return sh.root.Lstat(path.Join(sh.prefix, file))
	}
	return os.Lstat(filepath.Join(sh.prefix, file))
}

// named reads the profile of a name; nil, nil when the folder has none.
func (sh *shelf) named(name string) (*Profile, error) {
	if _, err := sh.lstat(name + suffix); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no such profile here; the search goes on
	} else if err != nil {
		at := Position{File: filepath.Join(sh.folder, name+suffix)}
		return nil, Errors{wrong(openHint(err), "opening the profile: %s", reason(err)).at(at)}
	}
	read, err := sh.read(name + suffix)
	if err != nil {
		return nil, err
	}
	if denied, err := sh.passesOver(read); denied || err != nil {
		return nil, err
	}
	return sh.parseContent(name+suffix, read)
}

// passesOver tells whether the person denied a file of the repository.
func (sh *shelf) passesOver(read content) (bool, error) {
	if sh.denied == nil {
		return false, nil
	}
	return sh.denied(read.real)
}

// read returns the content of one file of the folder.
func (sh *shelf) read(file string) (content, error) {
	shown := filepath.Join(sh.folder, file)
	if strings.HasSuffix(file, otherSuffix) {
		return content{}, Errors{wrong("rename it", "profiles end in %s", suffix).at(Position{File: shown})}
	}
	return readBounded(sh.open, filepath.Join(sh.prefix, file), shown)
}

// parse reads and parses one file of the folder.
func (sh *shelf) parse(file string) (*Profile, error) {
	read, err := sh.read(file)
	if err != nil {
		return nil, err
	}
	return sh.parseContent(file, read)
}

func (sh *shelf) parseContent(file string, read content) (*Profile, error) {
	p, err := parseNamed(filepath.Join(sh.folder, file), read)
	if err != nil {
		return nil, err
	}
	// One name, or --profile and the list would disagree about which file is meant.
	if base := strings.TrimSuffix(file, suffix); p.Name.Value != base {
		return nil, Errors{wrong("rename the file, or remove the key", "the profile is named %q in a file named %q", p.Name.Value, base).at(p.Name.Position)}
	}
	_, inRepo := repositoryOf(read.real)
	p.FromRepo = sh.place == PlaceRepo || inRepo
	return p, nil
}

// otherSuffix is what people also call YAML files. Such a file is an error and not passed
// over: its author believes that it counts.
const otherSuffix = ".yml"

// files lists the profile files of the folder, sorted. A missing folder has none.
func (sh *shelf) files() ([]string, error) {
	var entries []fs.DirEntry
	var err error
	if sh.root != nil {
		entries, err = fs.ReadDir(sh.root.FS(), sh.prefix)
	} else {
		entries, err = os.ReadDir(sh.prefix)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Errors{wrong(openHint(err), "listing the profiles: %s", reason(err)).at(Position{File: sh.folder})}
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if name[0] != '.' && (strings.HasSuffix(name, suffix) || strings.HasSuffix(name, otherSuffix)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
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
	return matchBuiltin(func(m *Match) bool { return m.fits(&p, installed) }), nil
}

func (sh *shelf) match(p *program.Program, installed string) (*Profile, error) {
	files, err := sh.files()
	if err != nil {
		return nil, err
	}
	var found *Profile
	for _, file := range files {
		read, err := sh.read(file)
		if err != nil {
			return nil, err
		}
		if denied, err := sh.passesOver(read); err != nil {
			return nil, err
		} else if denied {
			continue
		}
		// Every file is read, also one without a match section: a broken one could be the
		// narrower profile that was meant.
		candidate, err := sh.parseContent(file, read)
		if err != nil {
			return nil, err
		}
		switch {
		case !candidate.Match.fits(p, installed):
		case found != nil:
			return nil, Errors{wrong("name one with --profile, or narrow a match section",
				"%q and %q both match this command line", found.Name.Value, candidate.Name.Value).at(Position{File: candidate.File})}
		default:
			found = candidate
		}
	}
	return found, nil
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
