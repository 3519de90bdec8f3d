package packages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Installed is what a finished stage holds.
type Installed struct {
	Name, Version string // of the package that is run
	// Newest is what the registry calls the newest version, "" when it was not asked or did
	// not say. npm takes an older one by itself when the newest needs another node.
	Newest string
	Locked []Locked
	// WithScripts are the packages that have install scripts, run or not, sorted.
	WithScripts []string
}

// npmLock is package-lock.json, or node_modules/.package-lock.json, which npm writes about
// what is really there.
type npmLock struct {
	Version  int                  `json:"lockfileVersion"`
	Packages map[string]npmLocked `json:"packages"`
}

// npmLocked is one package of a lock, by its path: "node_modules/a/node_modules/b".
type npmLocked struct {
	Name        string `json:"name"` // when unlike the path's
	Version     string `json:"version"`
	Resolved    string `json:"resolved"`
	Integrity   string `json:"integrity"`
	Link        bool   `json:"link"`
	InBundle    bool   `json:"inBundle"`
	Optional    bool   `json:"optional"`
	DevOptional bool   `json:"devOptional"`
	Extraneous  bool   `json:"extraneous"`
	Script      bool   `json:"hasInstallScript"`

	// Of the root: the request as npm has noted it.
	Dependencies         map[string]string `json:"dependencies"`
	DevDependencies      map[string]string `json:"devDependencies"`
	OptionalDependencies map[string]string `json:"optionalDependencies"`
	PeerDependencies     map[string]string `json:"peerDependencies"`
}

// NPMInstalled reads what [NPMSteps] made and checks that it is all there, that nothing else
// is, and that every package of a registry was checked against a hash.
func NPMInstalled(r Request, s Stage) (Installed, error) {
	lock, err := readNPMLock(s.Tree, "package-lock.json")
	if err != nil {
		return Installed{}, err
	}
	present, err := readNPMLock(s.Tree, "node_modules/.package-lock.json")
	if err != nil {
		return Installed{}, err
	}
	if err := checkNPMTree(s.Tree, lock, present); err != nil {
		return Installed{}, fmt.Errorf("checking what npm installed: %w", err)
	}
	name, err := npmName(r, s.Tree, lock)
	if err != nil {
		return Installed{}, err
	}
	main, ok := present.Packages["node_modules/"+name]
	if !ok {
		return Installed{}, fmt.Errorf("checking what npm installed: %q is not there", name)
	}
	if r.Specs[0].Source == Registry && (main.Integrity == "" || main.isLocal()) {
		return Installed{}, fmt.Errorf("checking what npm installed: %q was asked of the registry, and did not come from there", name)
	}
	if err := namedScripts(r.Scripts, present); err != nil {
		return Installed{}, err
	}
	got := Installed{Name: name, Version: main.Version}
	for path, p := range present.Packages {
		name := p.name(path)
		got.Locked = append(got.Locked, Locked{Name: name, Version: p.Version, Integrity: p.Integrity})
		if p.Script {
			got.WithScripts = append(got.WithScripts, name)
		}
	}
	slices.SortFunc(got.Locked, func(a, b Locked) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version), strings.Compare(a.Integrity, b.Integrity))
	})
	got.Locked = slices.Compact(got.Locked)
	slices.Sort(got.WithScripts)
	got.WithScripts = slices.Compact(got.WithScripts)
	if r.Specs[0].Source == Registry {
		got.Newest = npmNewest(s, name)
	}
	return got, nil
}

// NPMScripts checks, before install scripts run, that what lies under the names of r.Scripts are
// the packages of those names: an alias, an address or a repository is another package.
func NPMScripts(r Request, s Stage) error {
	present, err := readNPMLock(s.Tree, "node_modules/.package-lock.json")
	if err != nil {
		return err
	}
	for path, p := range present.Packages {
		folder := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		if !slices.Contains(r.Scripts, folder) {
			continue
		}
		if p.name(path) != folder || p.Integrity == "" || p.isLocal() || p.Resolved != "" && !strings.Contains(p.Resolved, "/"+folder+"/") {
			return &InstallError{
				Problem: fmt.Sprintf("the package under the name %q is not the registry's package of that name, so its install scripts do not run", folder),
				Cure:    "name the package that it really is under install.scripts, if its scripts may run",
			}
		}
	}
	return nil
}

func readNPMLock(tree, path string) (npmLock, error) {
	text, err := readInside(tree, path)
	if err != nil {
		return npmLock{}, fmt.Errorf("reading what npm installed: %w", err)
	}
	var lock npmLock
	if err := json.Unmarshal(text, &lock); err != nil {
		return npmLock{}, fmt.Errorf("reading %q: %w", path, err)
	}
	if lock.Version < 2 || len(lock.Packages) == 0 {
		return npmLock{}, fmt.Errorf("reading %q: it lists no packages in the format of npm 9 and later", path)
	}
	return lock, nil
}

// name returns the package's own name.
func (p npmLocked) name(path string) string {
	if p.Name != "" {
		return p.Name
	}
	const mark = "node_modules/"
	return path[strings.LastIndex(path, mark)+len(mark):]
}

// checkNPMTree compares what was to be installed with what npm says is there, and that with
// the folders: a setting that nobody thought of would show as a difference.
func checkNPMTree(tree string, lock, present npmLock) error {
	for path, p := range lock.Packages {
		if path == "" {
			continue
		}
		if !strings.HasPrefix(path, "node_modules/") || slices.Contains(strings.Split(path, "/"), "..") {
			return fmt.Errorf("%q lies outside node_modules", path)
		}
		if _, ok := present.Packages[path]; !ok && !p.Optional && !p.DevOptional {
			return fmt.Errorf("%q was to be installed, and is not there", path)
		}
	}
	for path, p := range present.Packages {
		planned, ok := lock.Packages[path]
		switch {
		case !ok || p.Extraneous:
			return fmt.Errorf("%q was installed, and nothing asked for it", path)
		case p.Link:
			return fmt.Errorf("%q is a link to another folder, not a copy", path)
		case planned.Version != p.Version || planned.Integrity != p.Integrity:
			return fmt.Errorf("%q is another version than npm has locked", path)
		case p.Integrity == "" && !p.InBundle && !p.isLocal():
			return fmt.Errorf("the registry gives no hash for %q, so its content was not checked", path)
		}
		if err := checkNPMFolder(tree, path, p); err != nil {
			return err
		}
	}
	return checkNPMNames(tree, present)
}

// isLocal tells whether a package came from a repository or a folder, for which npm has no
// hash: a repository's commit is one, and a folder is the person's own.
func (p npmLocked) isLocal() bool {
	return strings.HasPrefix(p.Resolved, "git+") || strings.HasPrefix(p.Resolved, "file:")
}

// checkNPMFolder compares a package's own package.json with the lock.
func checkNPMFolder(tree, path string, p npmLocked) error {
	file := path + "/package.json"
	text, err := readInside(tree, file)
	if err != nil {
		return err
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return fmt.Errorf("reading %q: %w", file, err)
	}
	// npm locks a version in its canonical form: "v1.0.0" is "1.0.0".
	if trimmed := strings.TrimLeft(strings.TrimSpace(manifest.Version), "v="); trimmed != p.Version && !p.InBundle {
		return fmt.Errorf("%q holds version %q, and %q is locked", path, manifest.Version, p.Version)
	}
	return nil
}

// checkNPMNames looks for what lies in the tree and in its node_modules beside the packages
// that npm lists.
func checkNPMNames(tree string, present npmLock) error {
	known := map[string]bool{"node_modules": true, "package.json": true, "package-lock.json": true}
	for path := range present.Packages {
		if !strings.Contains(strings.TrimPrefix(path, "node_modules/"), "/node_modules/") {
			known[path] = true
			known[filepath.ToSlash(filepath.Dir(path))] = true // a scope's folder
		}
	}
	known["node_modules/.bin"], known["node_modules/.package-lock.json"] = true, true
	var folders []string
	look := func(folder string) error {
		entries, err := os.ReadDir(filepath.Join(tree, folder))
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.ToSlash(filepath.Join(folder, e.Name()))
			if !known[path] {
				return fmt.Errorf("%q is in the tree, and npm does not list it", path)
			}
			if strings.HasPrefix(e.Name(), "@") {
				folders = append(folders, path)
			}
		}
		return nil
	}
	if err := errors.Join(look("."), look("node_modules")); err != nil {
		return err
	}
	for _, folder := range slices.Clone(folders) {
		if err := look(folder); err != nil {
			return err
		}
	}
	return nil
}

// npmName finds the name of the package that is run: the request's own, or, for a folder,
// an archive or a repository, that of the one dependency that no other package accounts for.
func npmName(r Request, tree string, lock npmLock) (string, error) {
	asked := r.Specs[0]
	if asked.Name != "" {
		return asked.Name, nil
	}
	root, saved := lock.Packages[""], map[string]string{}
	for _, kind := range []map[string]string{root.Dependencies, root.DevDependencies, root.OptionalDependencies, root.PeerDependencies} {
		maps.Copy(saved, kind)
	}
	for _, spec := range r.Specs {
		delete(saved, spec.Name)
	}
	if len(saved) == 1 {
		for name := range saved {
			return name, nil
		}
	}
	for name, source := range saved {
		place := source
		if local, ok := strings.CutPrefix(source, "file:"); ok {
			place = filepath.Join(tree, local)
		}
		if place == asked.Place {
			return name, nil
		}
	}
	return "", &InstallError{
		Problem: fmt.Sprintf("which of %d packages comes from %q is not to be told", len(saved), withoutPassword(asked.Place)),
		Cure:    "write NAME@ in front of the address",
	}
}

// namedScripts refuses a profile that allows the install scripts of a package that is not
// in the tree: its author believes that something runs, and it does not.
func namedScripts(names []string, present npmLock) error {
	for _, name := range names {
		found := false
		for path := range present.Packages {
			found = found || strings.HasSuffix(path, "node_modules/"+name)
		}
		if !found {
			return &InstallError{
				Problem: fmt.Sprintf("the profile lets install scripts of %q run, and the package is not installed", name),
				Cure:    "take the name out of install.scripts",
			}
		}
	}
	return nil
}
