package profiles

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stockade/sandbox/program"
)

// Who a server is decides which profile it gets and which private home. What a file says
// about itself does not count: every folder may hold a package.json with any name. What
// counts is where the server's code lies.

const nodeModules = "/node_modules/"

// npmInstallation finds the package that a real path lies in: PREFIX/node_modules/NAME/…,
// or in pnpm's store PREFIX/node_modules/.pnpm/NAME@VERSION/node_modules/NAME/…. root is
// PREFIX/node_modules/NAME in both, so that an update by pnpm stays the same installation.
//
// Only the outermost node_modules folder counts: what lies in the folder of a package was
// written by that package.
func npmInstallation(path string) (name, root string, ok bool) {
	prefix, rest, found := strings.Cut(path, nodeModules)
	if !found {
		return "", "", false
	}
	kept, pnpm := strings.CutPrefix(rest, ".pnpm/")
	if pnpm {
		if kept, rest, found = strings.Cut(kept, nodeModules); !found || strings.Contains(kept, "/") {
			return "", "", false
		}
	}
	name, inner, found := strings.Cut(rest, "/")
	if found && strings.HasPrefix(name, "@") {
		var second string
		second, inner, found = strings.Cut(inner, "/")
		name += "/" + second
	}
	switch {
	case !found || name == "" || name[0] == '.' || strings.HasSuffix(name, "/"):
		return "", "", false
	case strings.Contains("/"+inner, nodeModules):
		return "", "", false
	case pnpm && !strings.HasPrefix(kept, strings.ReplaceAll(name, "/", "+")+"@"):
		return "", "", false // brought along by another package
	}
	return name, prefix + nodeModules + name, true
}

// installedName is the program's package with its kind, as match.packages writes it, when
// the package is installed; "" when it is not, or says another name than its folder has
// and no alias explains it. What lies in the store of package runners has the name of its
// entry there. Names on PyPI are the same in any case and with any of - _ . between words.
// module is the answer of [FindModule], store of [StorePath].
func installedName(p *program.Program, module, store string) string {
	if e, ok := stored(store, p, module); ok {
		return e.identity()
	}
	if p.Package == "" {
		return ""
	}
	switch p.Runtime {
	case program.Node:
		if name, root, ok := npmInstallation(p.Entry); ok && (name == p.Package || aliased(root, name, p.Package)) {
			return "npm:" + p.Package
		}
	case program.Python:
		// The interpreter's own folders count, and no others of their names: a repository may
		// hold a folder "site-packages", and be the working folder.
		if module != "" && slices.Contains(p.Sites, filepath.Dir(module)) {
			return "pypi:" + canonicalPyPI(p.Package)
		}
	case program.Native, program.Shell:
	}
	return ""
}

// aliased tells whether the person installed a package under another name: the package.json
// beside the outermost node_modules folder says "NAME": "npm:PACKAGE@VERSION". Packages do
// not write that file, and who does could install the package under its own name.
func aliased(root, name, pkg string) bool {
	f, err := os.OpenFile(strings.TrimSuffix(root, nodeModules+name)+"/package.json", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	if info, err := f.Stat(); err != nil || checkRegular(info) != nil {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return false
	}
	var project struct {
		Dependencies, DevDependencies, OptionalDependencies map[string]string
	}
	if json.Unmarshal(data, &project) != nil {
		return false
	}
	for _, list := range [...]map[string]string{project.Dependencies, project.DevDependencies, project.OptionalDependencies} {
		version, found := strings.CutPrefix(list[name], "npm:"+pkg)
		if found && (version == "" || version[0] == '@') {
			return true
		}
	}
	return false
}

// FindModule returns the real path of the module that `python -m` runs; "" for programs of
// other kinds and for modules that are not found. Python looks into the working folder
// before all others, whatever package has the same name, and so does this: it lists that
// folder and then what the program needs to read.
func FindModule(p program.Program, dir string) string {
	if p.Runtime != program.Python || p.Entry != "" || p.Package == "" {
		return ""
	}
	first, _, _ := strings.Cut(p.Package, ".")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir + "/" + first // not known, so not an installed one
	}
	if found := moduleIn(dir, entries, first); found != "" {
		return found
	}
	for _, n := range p.Read {
		entries, err := os.ReadDir(n.Path)
		if err != nil {
			continue // a file, or a need that is not there
		}
		if found := moduleIn(n.Path, entries, first); found != "" {
			return found
		}
	}
	return ""
}

// moduleIn finds a module among the entries of a folder: a package's folder, source, or
// compiled code with whatever the name of its ABI is.
func moduleIn(folder string, entries []os.DirEntry, module string) string {
	for _, e := range entries {
		tail, found := strings.CutPrefix(e.Name(), module)
		if !found || tail != "" && tail != ".py" && tail != ".pyc" && (tail[0] != '.' || !strings.HasSuffix(tail, ".so")) {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(folder, e.Name()))
		if err != nil {
			return filepath.Join(folder, e.Name())
		}
		return real
	}
	return ""
}

// maxKeyPart keeps a part of a home's name below NAME_MAX (255 bytes).
const maxKeyPart = 200

// homeKey names a server's private home: one for each profile and installation. Nothing
// that the server's files say about themselves is in it, so no server can be named so that
// it gets another's home; and it is spelled so that no two installations read alike.
//
// The key is PROFILE+PATH; PROFILE+code+PATH+FOLDER for an interpreter with its code on
// the command line; PROFILE+npm+NAME or PROFILE+pypi+NAME for a package in the store, so
// that an update there keeps the server's data. All programs of one package have one home:
// they are one author's code, and package managers update them together. A profile's name
// holds no "+", a spelled path begins with one and holds no "++", and "~" stands only where
// a long key is cut into folders, which are no homes themselves.
func homeKey(profile string, f *Facts) string {
	p := &f.Program
	key := profile + "+"
	entry, inStore := stored(f.Packages, p, f.Module)
	_, root, installed := npmInstallation(p.Entry)
	switch {
	case inStore && entry.unregistered:
		key += spelled(entry.folder)
	case inStore:
		key += entry.kind + "+" + spelled(entry.name)
	case installed:
		key += spelled(root)
	case p.Entry != "":
		key += spelled(p.Entry)
	case f.Module != "":
		key += spelled(f.Module)
	case p.Runtime == program.Native:
		key += spelled(p.File)
	default:
		key += "code+" + spelled(p.File) + "+" + spelled(f.Dir)
	}
	if len(key) <= maxKeyPart {
		return key
	}
	parts := []string{key[:maxKeyPart] + "~"}
	for key = key[maxKeyPart:]; len(key) > maxKeyPart; key = key[maxKeyPart:] {
		parts = append(parts, "~"+key[:maxKeyPart]+"~")
	}
	return strings.Join(append(parts, "~"+key), "/")
}

// spelled writes a path as a part of a file's name. Different paths give different names.
func spelled(path string) string {
	var b strings.Builder
	b.Grow(len(path))
	for i := range len(path) {
		switch c := path[i]; {
		case letter(c) || digit(c) || c == '.' || c == '-' || c == '_' || c == '@':
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
