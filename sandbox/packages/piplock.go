package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PipInstalled reads what [PipSteps] made, checks that the environment holds the fetched
// packages and nothing else, and writes requirements.txt with a hash of each archive into the
// tree, so that pip can make the same tree again.
func PipInstalled(r Request, s Stage) (Installed, error) {
	fetched, err := readWheels(filepath.Join(s.Home, pipWheels), r.Scripts)
	if err != nil {
		return Installed{}, err
	}
	var lock strings.Builder
	for _, p := range fetched {
		fmt.Fprintf(&lock, "%s==%s --hash=sha256:%s\n", p.name, p.version, p.sum)
	}
	if err := writeNew(filepath.Join(s.Tree, "requirements.txt"), lock.String()); err != nil {
		return Installed{}, fmt.Errorf("writing the lock of %q: %w", r.Specs[0].Name, err)
	}
	return pythonInstalled(r, s, fetched)
}

// fetchedWheel is an archive that goes into the tree.
type fetchedWheel struct {
	name, version string
	integrity     string // as in [Locked]
	sum           string
}

// readWheels hashes the wheels of a folder. The index's own hash was compared by pip when it
// fetched them; one that was built here has none.
func readWheels(folder string, built []string) ([]fetchedWheel, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading what pip fetched: %w", err)
	}
	var all []fetchedWheel
	for _, e := range entries {
		words := strings.Split(e.Name(), "-")
		if !strings.HasSuffix(e.Name(), ".whl") || len(words) < 5 || !e.Type().IsRegular() {
			return nil, fmt.Errorf("reading what pip fetched: %q is no wheel", e.Name())
		}
		sum, err := sumOf(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading what pip fetched: %w", err)
		}
		w := fetchedWheel{name: normalName(words[0]), version: words[1], sum: sum, integrity: "sha256=" + sum}
		if slices.ContainsFunc(built, func(name string) bool { return normalName(name) == w.name }) {
			w.integrity = ""
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b fetchedWheel) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// pythonInstalled compares the environment's packages with those that were fetched.
func pythonInstalled(r Request, s Stage, fetched []fetchedWheel) (Installed, error) {
	if err := checkPythonVersion(s.Tree, r.Python); err != nil {
		return Installed{}, err
	}
	present, err := distributions(filepath.Join(s.Tree, "venv"))
	if err != nil {
		return Installed{}, err
	}
	got := Installed{}
	for _, p := range fetched {
		version, ok := present[p.name]
		if !ok {
			return Installed{}, fmt.Errorf("checking what pip installed: %q was fetched, and is not there", p.name)
		}
		delete(present, p.name)
		got.Locked = append(got.Locked, Locked{Name: p.name, Version: version, Integrity: p.integrity})
	}
	for name := range present {
		return Installed{}, fmt.Errorf("checking what pip installed: %q is there, and nothing asked for it", name)
	}
	for _, name := range r.Scripts {
		if !slices.ContainsFunc(fetched, func(p fetchedWheel) bool { return p.name == normalName(name) }) {
			return Installed{}, &InstallError{
				Problem: fmt.Sprintf("the profile lets %q be built, and the package is not installed", name),
				Cure:    "take the name out of install.scripts, or correct it",
			}
		}
	}
	got.Name = normalName(r.Specs[0].Name)
	if got.Name == "" {
		if got.Name, err = pipName(r, got.Locked); err != nil {
			return Installed{}, err
		}
	}
	for _, p := range got.Locked {
		if p.Name == got.Name {
			got.Version = p.Version
		}
	}
	if got.Version == "" {
		return Installed{}, fmt.Errorf("checking what pip installed: %q is not there", got.Name)
	}
	return got, nil
}

// pipName finds the name of a package that was given by its address alone.
func pipName(r Request, locked []Locked) (string, error) {
	name := normalName(nameOfPlace(r.Specs[0].Place))
	if words := strings.Split(filepath.Base(r.Specs[0].Place), "-"); strings.HasSuffix(r.Specs[0].Place, ".whl") {
		name = normalName(words[0])
	}
	for _, p := range locked {
		if p.Name == name {
			return name, nil
		}
	}
	return "", &InstallError{
		Problem: fmt.Sprintf("the name of the package at %q is not to be told", withoutPassword(r.Specs[0].Place)),
		Cure:    `write "NAME @ ADDRESS"`,
	}
}

// distributions returns the packages of an environment by name.
func distributions(venv string) (map[string]string, error) {
	folders, err := filepath.Glob(filepath.Join(globQuote(venv), "lib", "py*", "site-packages"))
	if err != nil || len(folders) != 1 {
		return nil, fmt.Errorf("checking what pip installed: the environment has %d folders for packages", len(folders))
	}
	entries, err := os.ReadDir(folders[0])
	if err != nil {
		return nil, fmt.Errorf("checking what pip installed: %w", err)
	}
	found := map[string]string{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".dist-info")
		name, version, cut := strings.Cut(stem, "-")
		if ok && cut {
			found[normalName(name)] = version
		}
	}
	return found, nil
}

// globQuote takes the meaning of pattern letters away.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// checkPythonVersion compares the version that --python asked for with the environment's.
func checkPythonVersion(tree, asked string) error {
	wanted := numbersOf(asked)
	if wanted == "" {
		return nil
	}
	text, err := readInside(tree, "venv/pyvenv.cfg")
	if err != nil {
		return fmt.Errorf("checking the environment: %w", err)
	}
	version := ""
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(string(line), "=")
		if key = strings.TrimSpace(key); key == "version" || key == "version_info" {
			version = strings.TrimSpace(value)
		}
	}
	if version == wanted || strings.HasPrefix(version, wanted+".") {
		return nil
	}
	return &InstallError{
		Problem: fmt.Sprintf("--python %s asks for another interpreter than the one that was found, Python %s", asked, version),
		Cure:    "install that version, or name its path with --python",
	}
}
