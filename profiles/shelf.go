package profiles

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox/program"
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
	empty  bool // files without a byte are passed over
}

// repoProfiles is where a repository keeps its profiles.
const repoProfiles = repoFolder + "/profiles"

// shelves opens the places in order. close ends them.
func (s Search) shelves() ([]shelf, error) {
	var out []shelf
	if s.Repo != "" && s.admits(PlaceRepo) {
		// Links in a repository must not lead out of it: its files are as foreign as its
		// last author.
		root, err := os.OpenRoot(s.Repo)
		if err != nil {
			return nil, Errors{wrong("", "opening the repository: %s", reason(err)).at(Position{File: s.Repo})}
		}
		out = append(out, shelf{place: PlaceRepo, folder: filepath.Join(s.Repo, repoProfiles), open: root, prefix: repoProfiles, root: root, denied: s.Denied, empty: s.Unwritten})
	}
	for _, c := range []struct {
		place Place
		dir   string
	}{{PlaceUser, s.Config}, {PlaceSystem, s.System}} {
		if c.dir != "" && s.admits(c.place) {
			folder := filepath.Join(c.dir, "stockade", "profiles")
			out = append(out, shelf{place: c.place, folder: folder, open: machine{}, prefix: folder, empty: s.Unwritten})
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
	if sh.empty && len(read.data) == 0 {
		return true, nil
	}
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
