package packages

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// startPython starts a console script of a virtual environment by the environment's own
// interpreter: the script's `#!` line still names the place where it was installed.
func (e Entry) startPython(c Command) (Start, error) {
	scripts, err := e.scripts()
	if err != nil {
		return Start{}, err
	}
	wanted := c.Program
	switch {
	case wanted != "":
	case len(scripts) == 1:
		wanted = scripts[0]
	default:
		for _, s := range scripts {
			if canonicalPython(s) == e.Name {
				wanted = s
			}
		}
	}
	switch {
	case wanted == "" && len(scripts) == 0:
		return Start{}, &ProgramError{Problem: e.Name + " has no program to start", Cure: "it is a library; name the package that has the server"}
	case wanted == "":
		return Start{}, &ProgramError{
			Problem: e.Name + " has several programs and none of its own name: " + strings.Join(scripts, ", "),
			Cure:    fmt.Sprintf("name one: uvx --from %s %s", e.Name, scripts[0]),
		}
	case filepath.Base(wanted) != wanted || wanted[0] == '.':
		return Start{}, &ProgramError{Problem: fmt.Sprintf("%q is no program's name", wanted), Cure: "it has " + strings.Join(scripts, ", ")}
	}
	bin := filepath.Join(e.Folder, "venv", "bin")
	head, err := readUpTo(filepath.Join(bin, wanted), 2)
	if err != nil {
		return Start{}, &ProgramError{Problem: fmt.Sprintf("%s has no program %q", e.Name, wanted), Cure: "it has " + strings.Join(scripts, ", ")}
	}
	argv := []string{filepath.Join(bin, wanted)}
	if string(head) == "#!" {
		argv = []string{filepath.Join(bin, "python"), filepath.Join(bin, wanted)}
	}
	return Start{Argv: append(argv, c.Args...)}, nil
}

// scripts lists the console scripts of the entry's own package, sorted: entry_points.txt of
// its metadata (Python packaging, "Entry points specification").
func (e Entry) scripts() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(escapeGlob(e.Folder), "venv", "lib", "python*", "site-packages", "*.dist-info", "entry_points.txt"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range found {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-")
		if canonicalPython(name) != e.Name {
			continue
		}
		data, err := readBounded(file, maxManifest)
		if err != nil {
			return nil, &ProgramError{Problem: fmt.Sprintf("reading %q: %v", file, plain(err)), Cure: "install it anew"}
		}
		out = append(out, consoleScripts(data)...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func consoleScripts(data []byte) []string {
	var out []string
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case section == "console_scripts" && line != "" && line[0] != '#' && line[0] != ';':
			if name, _, ok := strings.Cut(line, "="); ok {
				out = append(out, strings.TrimSpace(name))
			}
		}
	}
	return out
}

// canonicalPython is a name in the index's form: small letters, and one dash for any run of
// - _ and . (PEP 503).
func canonicalPython(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if r == '-' || r == '_' || r == '.' {
			dash = true
			continue
		}
		if dash && b.Len() > 0 {
			b.WriteByte('-')
		}
		dash = false
		b.WriteRune(r)
	}
	return b.String()
}
