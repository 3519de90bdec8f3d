package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"stockade/profiles"
	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// What a server's own files name is read for `profile init`, outside of any jail: regular
// files of one package, bounded, and as text alone.

// mentionsOf reads what the files of a server name. It is nil for servers whose code is no
// text, such as native ones, and for code on a command line.
func mentionsOf(p program.Program, module string, m machine) (*profiles.Mentions, error) {
	var found packages.Mentions
	var err error
	switch {
	case p.Runtime == program.Python:
		found, err = pythonMentions(p, module, m.home)
	case p.Entry != "" && p.Runtime != program.Shell:
		found, err = scriptMentions(p.Entry, m.home)
	default:
		return nil, nil //nolint:nilnil // nothing to read, which Propose takes
	}
	if err != nil {
		return nil, err
	}
	list := func(in []packages.Mention) []profiles.Mention {
		var out []profiles.Mention
		for _, m := range in {
			out = append(out, profiles.Mention{Name: m.Name, From: m.Place()})
		}
		return out
	}
	return &profiles.Mentions{Secrets: list(found.Secrets), Variables: list(found.Variables), Hosts: list(found.Hosts), Cut: found.Cut}, nil
}

// scriptMentions reads the package of a script for node, bun or deno: the folder in
// node_modules, or the nearest one with a package.json that names a package.
func scriptMentions(entry, home string) (packages.Mentions, error) {
	const modules = "/node_modules/"
	if at := strings.LastIndex(entry, modules); at >= 0 {
		rest := strings.Split(entry[at+len(modules):], "/")
		name := rest[0]
		if strings.HasPrefix(name, "@") && len(rest) > 2 {
			name += "/" + rest[1]
		}
		if len(rest) > 1 && name[0] != '.' {
			return packages.MentionsOf(entry[:at+len(modules)] + name)
		}
		return packages.MentionsOfFile(entry)
	}
	if folder := above(entry, home, namesPackage); folder != "" {
		return packages.MentionsOf(folder)
	}
	return packages.MentionsOfFile(entry)
}

// pythonMentions reads the package that brought a program or module along, or the project
// that holds it.
func pythonMentions(p program.Program, module, home string) (packages.Mentions, error) {
	if p.Entry == "" && p.Package == "" {
		return packages.Mentions{}, nil // code on the command line
	}
	for _, site := range p.Sites {
		switch {
		case p.Entry != "" && filepath.Base(filepath.Dir(p.Entry)) != "bin":
			continue // no program that an installer made
		case p.Entry == "" && filepath.Dir(module) != site:
			continue // another module of that name comes first
		}
		program, name := "", p.Package
		if p.Entry != "" {
			program, name = filepath.Base(p.Entry), ""
		}
		wheel, err := packages.InstalledWheel(site, program, name)
		if err == nil && wheel != "" {
			return packages.MentionsOfWheel(site, wheel)
		}
	}
	code := p.Entry
	if code == "" {
		code = module
	}
	if code == "" {
		return packages.Mentions{}, nil
	}
	if folder := above(code, home, holdsProject); folder != "" {
		return packages.MentionsOf(folder)
	}
	if st, err := os.Stat(code); err == nil && st.IsDir() {
		return packages.MentionsOf(code)
	}
	return packages.MentionsOfFile(code)
}

// maxAbove bounds how many folders a project's top is looked for in.
const maxAbove = 8

// above finds the nearest folder above a file that is a project's top; "" when there is
// none. It does not look at the home folder and what holds that.
func above(file, home string, top func(folder string) bool) string {
	at := filepath.Dir(file)
	for range maxAbove {
		if at == "/" || at == home || strings.HasPrefix(home, at+"/") {
			return ""
		}
		if top(at) {
			return at
		}
		at = filepath.Dir(at)
	}
	return ""
}

// maxManifest bounds a package.json.
const maxManifest = 1 << 20

func namesPackage(folder string) bool {
	data, err := readFile(filepath.Join(folder, "package.json"), maxManifest)
	var manifest struct{ Name string }
	return err == nil && json.Unmarshal(data, &manifest) == nil && manifest.Name != ""
}

func holdsProject(folder string) bool {
	for _, name := range [...]string{"pyproject.toml", "setup.py", "setup.cfg"} {
		if st, err := os.Lstat(filepath.Join(folder, name)); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}
