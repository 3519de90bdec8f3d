package packages

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxManifest bounds a package.json that is read; the longest known ones have 100 KiB.
const maxManifest = 4 << 20

// bin is a program of an npm package.
type bin struct {
	name string // as people type it
	file string // below the package's folder
	of   string // the package
}

// ProgramError is a package from which no program can be started.
type ProgramError struct {
	Problem, Cure string
}

func (e *ProgramError) Error() string { return e.Problem }

// Hint is the cure, for a person.
func (e *ProgramError) Hint() string { return e.Cure }

// Start is how the program that a command line asks for is started: its own file, whose `#!`
// line names the runtime.
func (e Entry) Start(c Command) (Start, error) {
	if e.Kind == PyPI {
		return e.startPython(c)
	}
	b, err := e.choose(c)
	if err != nil {
		return Start{}, err
	}
	file, err := e.inside(filepath.Join(e.Folder, "node_modules", b.of), b.file)
	if err != nil {
		return Start{}, err
	}
	runtime, err := runtimeOf(file)
	if err != nil {
		return Start{}, err
	}
	switch {
	case c.Runtime != "":
		return Start{Argv: append([]string{c.Runtime, file}, c.Args...)}, nil
	case runtime != "":
		return Start{Argv: append([]string{runtime, file}, c.Args...)}, nil
	}
	return Start{Argv: append([]string{file}, c.Args...)}, nil
}

// choose finds the program by npm's own rule: the one that is asked for by name, or the only
// one of the package, or the one that is called as the package is without its scope.
func (e Entry) choose(c Command) (bin, error) {
	var all []bin
	for i, s := range c.Request.Specs {
		name := s.Name
		if i == 0 {
			name = e.Name
		}
		found, err := e.bins(name)
		if err != nil {
			return bin{}, err
		}
		if i == 0 && c.Program == "" {
			return defaultBin(e.Name, found)
		}
		all = append(all, found...)
	}
	var named []bin
	for _, b := range all {
		if b.name == c.Program {
			named = append(named, b)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return bin{}, &ProgramError{
			Problem: fmt.Sprintf("%s has no program %q", e.Name, c.Program),
			Cure:    "it has " + names(all),
		}
	}
	return bin{}, &ProgramError{
		Problem: fmt.Sprintf("%s and %s both have a program %q", named[0].of, named[1].of, c.Program),
		Cure:    "name only the package that is meant",
	}
}

func defaultBin(name string, all []bin) (bin, error) {
	if len(all) == 0 {
		return bin{}, &ProgramError{Problem: name + " has no program to start", Cure: "it is a library; name the package that has the server"}
	}
	same := true
	for _, b := range all {
		same = same && path.Clean(b.file) == path.Clean(all[0].file)
	}
	if same {
		return all[0], nil
	}
	_, short, scoped := strings.Cut(name, "/")
	if !scoped {
		short = name
	}
	for _, b := range all {
		if b.name == short {
			return b, nil
		}
	}
	return bin{}, &ProgramError{
		Problem: name + " has several programs and none of its own name: " + names(all),
		Cure:    fmt.Sprintf("name one: npx -y -p %s %s", name, all[0].name),
	}
}

func names(all []bin) string {
	out := make([]string, len(all))
	for i, b := range all {
		out[i] = b.name
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(slices.Compact(out), ", ")
}

// bins reads the programs of an installed package, sorted by name.
func (e Entry) bins(name string) ([]bin, error) {
	folder := filepath.Join(e.Folder, "node_modules", name)
	data, err := readBounded(filepath.Join(folder, "package.json"), maxManifest)
	if err != nil {
		return nil, &ProgramError{Problem: fmt.Sprintf("reading the package.json of %s: %v", name, plain(err)), Cure: "install it anew: stockade package update " + name}
	}
	var m struct {
		Name        string          `json:"name"`
		Bin         json.RawMessage `json:"bin"`
		Directories struct {
			Bin string `json:"bin"`
		} `json:"directories"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, &ProgramError{Problem: fmt.Sprintf("reading the package.json of %s: %v", name, err), Cure: "the package is broken; tell its author"}
	}
	one, many := "", map[string]string{}
	switch {
	case json.Unmarshal(m.Bin, &one) == nil && one != "":
		short := m.Name
		if _, rest, scoped := strings.Cut(short, "/"); scoped {
			short = rest
		}
		many[short] = one
	case json.Unmarshal(m.Bin, &many) == nil:
	case m.Directories.Bin != "":
		entries, err := os.ReadDir(filepath.Join(folder, filepath.Clean("/"+m.Directories.Bin)))
		if err != nil {
			break
		}
		for _, f := range entries {
			many[f.Name()] = path.Join(m.Directories.Bin, f.Name())
		}
	}
	var out []bin
	for _, key := range slices.Sorted(maps.Keys(many)) {
		out = append(out, bin{name: path.Base(path.Clean("/" + key)), file: many[key], of: name})
	}
	return out, nil
}

// inside resolves a file of a package, which has to lie in it.
func (e Entry) inside(folder, file string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(folder, filepath.Clean("/"+file)))
	if err != nil {
		return "", &ProgramError{Problem: fmt.Sprintf("the package's program %q is missing", file), Cure: "the package is broken, or its program is made by an install script: list it under install.scripts in a profile, and update it"}
	}
	within, err := filepath.EvalSymlinks(folder)
	if err != nil || !filepath.IsLocal(file) || !strings.HasPrefix(real, within+"/") {
		return "", &ProgramError{Problem: fmt.Sprintf("the package's program %q lies outside of the package", file), Cure: "do not use this package: no honest one does that"}
	}
	return real, nil
}

// runtimeOf says which runtime has to be put before a program's file: none when its `#!`
// line does that, or it is one itself. The line that nearly all programs have is read here
// already, so that they start from a file system mounted noexec, too.
func runtimeOf(file string) (string, error) {
	head, err := readUpTo(file, longestLine)
	if err != nil {
		return "", &ProgramError{Problem: fmt.Sprintf("reading the package's program %q: %v", file, plain(err)), Cure: "install it anew"}
	}
	line, _, _ := strings.Cut(string(head), "\n")
	switch {
	case strings.TrimRight(line, " \t\r") == "#!/usr/bin/env node":
		return "node", nil
	case strings.HasPrefix(line, "#!"), strings.HasPrefix(line, "\x7fELF"):
		return "", nil
	}
	switch filepath.Ext(file) {
	case ".js", ".mjs", ".cjs":
		return "node", nil
	}
	return "", &ProgramError{
		Problem: fmt.Sprintf("the package's program %q has no #! line and is no program file", file),
		Cure:    "a shell would have to guess what it is, and there is none in the jail",
	}
}

// longestLine is what the kernel reads of a `#!` line (BINPRM_BUF_SIZE), in bytes.
const longestLine = 256

func readBounded(file string, most int64) ([]byte, error) {
	data, err := readUpTo(file, most+1)
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}

// readUpTo reads the beginning of a regular file. It never waits for a fifo.
func readUpTo(file string, most int64) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", file)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
