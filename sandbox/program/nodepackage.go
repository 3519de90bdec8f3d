package program

import (
	"strings"
)

const nodeModules = "/node_modules/"

// maxLinkedPackages bounds how many packages that lie elsewhere are followed by links.
const maxLinkedPackages = 64

// nodePackage adds the folders that a script's own modules and its dependencies lie in.
// entry is a real path. It returns the package's name.
//
// Native addons (*.node) that need libraries from outside of the package find only those
// that node itself needs.
func (s *search) nodePackage(entry string) string {
	for _, root := range [...]string{"/usr/share/nodejs", "/usr/lib/nodejs"} {
		// Debian's packages lie side by side, and its node looks there by itself.
		if inside(entry, root) {
			s.needFolder("/usr/share/nodejs", "Debian's node packages", fatal)
			s.needFolder("/usr/lib/nodejs", "Debian's node packages", tolerable)
		}
	}
	if strings.Contains(entry, nodeModules) {
		return s.installedPackage(entry)
	}
	return s.projectPackage(entry)
}

// installedPackage handles a script inside a node_modules folder: the package's folder
// alone if its dependencies are in it, or else the folder that holds them all.
func (s *search) installedPackage(entry string) string {
	last := strings.LastIndex(entry, nodeModules) + len(nodeModules)
	name := packageName(entry[last:])
	folder := entry[:last] + name
	if strings.HasPrefix(name, ".") || folder == entry {
		// node_modules/.bin/x, or a file where packages lie.
		s.need(Need{Path: entry, Why: "script " + baseOf(entry)})
		return ""
	}
	m, ok := s.manifest(folder)
	if !ok {
		s.needFolder(folder, "package folder", fatal)
		return ""
	}
	outer := s.store(entry)
	switch {
	case len(m.required) == 0 && len(m.other) == 0:
		s.needFolder(folder, "package folder", fatal)
	case s.sharesModules(outer) || !s.complete(folder, m):
		s.needFolder(outer, "package and its dependencies", fatal)
	default:
		s.needFolder(folder, "package folder", fatal)
	}
	s.linkedPackages(folder, outer, m)
	return m.name
}

// store is the outermost folder that a package's dependencies may lie in: the first
// node_modules of the path, or pnpm's store above it.
func (s *search) store(entry string) string {
	first := strings.Index(entry, nodeModules)
	if i := strings.Index(entry, "/.pnpm/"); i >= 0 && i < first {
		return entry[:i+len("/.pnpm")]
	}
	return entry[:first+len(nodeModules)-1]
}

// sharesModules says whether packages in a node_modules folder share their dependencies.
// A package manager that installs for a project lifts them to the top, beside a
// package.json; global folders, which have none, keep each package's inside of it.
func (s *search) sharesModules(modules string) bool {
	return s.exists(join(parentOf(modules), "package.json"))
}

// complete says whether all that a package requires lies in its own node_modules.
// Optional dependencies count only when they are installed beside the package.
func (s *search) complete(folder string, m manifest) bool {
	own := join(folder, "node_modules/")
	for _, name := range m.required {
		if !isPackageName(name) || !s.exists(own+name) {
			return false
		}
	}
	cut := strings.LastIndex(folder, nodeModules)
	if cut < 0 {
		return true
	}
	beside := folder[:cut+len(nodeModules)]
	for _, name := range m.other {
		if !isPackageName(name) || !s.exists(own+name) && s.exists(beside+name) {
			return false
		}
	}
	return true
}

// projectPackage handles a script outside of any node_modules folder: the folder of the
// nearest package.json that names a package, and the node_modules folders above it that
// dependencies are in.
func (s *search) projectPackage(entry string) string {
	folder, m, found := "", manifest{}, false
	for at := parentOf(entry); !s.tooBroad(at); at = parentOf(at) {
		here, ok := s.manifest(at)
		if !ok {
			continue
		}
		if !found || here.name != "" {
			folder, m, found = at, here, true
		}
		// Build output often holds a package.json with nothing but a module type.
		if here.name != "" {
			break
		}
	}
	if !found {
		s.loneScript(entry, "package.json")
		return ""
	}
	s.needFolder(folder, "package folder", fatal)
	lacking := !s.complete(folder, m)
	for at := parentOf(folder); !s.tooBroad(at); at = parentOf(at) {
		if !s.exists(join(at, "package.json")) {
			continue
		}
		if lacking || s.isWorkspace(at) {
			s.needWithin(join(at, "node_modules"), at, "dependencies of the workspace", tolerable)
		}
	}
	s.linkedPackages(folder, folder, m)
	return m.name
}

// workspaceRoot is the nearest folder that declares a workspace, the given one or one
// above it; "" when there is none below the home folder.
func (s *search) workspaceRoot(folder string) string {
	for at := folder; !s.tooBroad(at); at = parentOf(at) {
		if s.isWorkspace(at) {
			return at
		}
	}
	return ""
}

// isWorkspace says whether a folder's packages share its node_modules.
func (s *search) isWorkspace(folder string) bool {
	if s.exists(join(folder, "pnpm-workspace.yaml")) {
		return true
	}
	m, ok := s.manifest(folder)
	return ok && m.workspaces
}

// linkedPackages adds dependencies whose folder is a link to outside of what is readable:
// the other packages of a workspace. Only a folder below the workspace's root, or in the
// package's own tree, that calls itself by the dependency's name is added, so that a link
// alone opens nothing; what npm link leaves is a person's to grant.
func (s *search) linkedPackages(folder, tree string, m manifest) {
	root := s.workspaceRoot(folder)
	type visit struct {
		folder string
		names  []string
	}
	queue := []visit{{folder, append(append([]string(nil), m.required...), m.other...)}}
	for followed := 0; len(queue) > 0; queue = queue[1:] {
		for _, name := range queue[0].names {
			target, ok := s.dependency(queue[0].folder, name)
			if !ok || s.readable(target) {
				continue
			}
			if !inside(target, tree) && (root == "" || target == root || !inside(target, root)) {
				s.note("the dependency %q lies at %q, outside of the package and its workspace, and is not readable; %s",
					name, target, readHint(target))
				continue
			}
			linked, ok := s.manifest(target)
			if !ok || linked.name != name || s.tooBroad(target) {
				s.note("the dependency %q is a link to %q, which is not that package and not readable", name, target)
				continue
			}
			if followed++; followed > maxLinkedPackages {
				s.note("more than %d dependencies are links; the rest is not readable", maxLinkedPackages)
				return
			}
			s.needFolder(target, "linked package "+name, fatal)
			queue = append(queue, visit{target, append(linked.required, linked.other...)})
		}
	}
}

// dependency finds the real folder of a package's dependency, as node does.
func (s *search) dependency(folder, name string) (string, bool) {
	if !isPackageName(name) {
		return "", false
	}
	for at := folder; at != "/"; at = parentOf(at) {
		if baseOf(at) == "node_modules" {
			continue
		}
		if found, err := s.real(at + nodeModules + name); err == nil && found.folder() {
			return found.path, true
		}
		if s.tooBroad(at) {
			break
		}
	}
	return "", false
}

// isPackageName says whether a name is one or two plain path elements: a manifest must
// not lead out of the folder that it is used in.
func isPackageName(name string) bool {
	scope, rest, scoped := strings.Cut(name, "/")
	if scoped && (strings.Contains(rest, "/") || !isPlainName(rest)) {
		return false
	}
	return isPlainName(scope)
}

// isPlainName says whether a text is a single path element that leads downwards.
func isPlainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// readable says whether a real path lies in a folder that is readable already.
func (s *search) readable(path string) bool {
	for _, folder := range s.granted {
		if inside(path, folder) {
			return true
		}
	}
	return false
}
