package program

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// walkLimit bounds how many folder entries are looked at for compiled modules.
const walkLimit = 2000

// moduleLimit bounds the compiled modules of the standard library, of which there are 80.
const moduleLimit = 512

// layout is where a CPython keeps its files.
type layout struct {
	prefix  string // real path, such as /usr
	version string // the name of its library folder, such as python3.11
	// library are the standard library's folders: lib/python3.11, and on distributions
	// with two library folders lib64/python3.11 too.
	library []string
	// environment is the folder of the virtual environment; "" outside of one.
	environment string
	// system says that the base installation's packages are visible too.
	system bool
	// sites are the folders of installed packages, for compiled modules and .pth files.
	sites []string
}

// pythonFiles adds the standard library and the installed packages. It reports false when
// there is no standard library where CPython would look for it (Modules/getpath.py).
func (s *search) pythonFiles(e executable) bool {
	p := &s.python
	beside := parentOf(e.entry.path)
	home := ""
	p.system = true
	if config, folder, ok := s.virtualEnvironment(e.named); ok {
		p.environment = folder
		p.system = config.systemPackages
		if config.home != "" {
			if found, err := s.real(config.home); err == nil && found.folder() {
				home = found.path
			}
		}
	}
	if !s.baseLibrary(p, home, e) && !s.findLibrary(p, beside, e) {
		return false
	}
	library := p.library[:0]
	for _, folder := range p.library {
		if real := s.needWithin(folder, p.prefix, "standard library of Python", fatal); real != "" {
			library = append(library, real)
		}
	}
	if p.library = library; len(library) == 0 {
		return false
	}
	stem := strings.ReplaceAll(strings.TrimPrefix(p.version, "python"), ".", "")
	s.needWithin(p.prefix+"/lib/python"+strings.TrimSuffix(stem, "t")+".zip", p.prefix, "standard library of Python", tolerable)
	if p.environment != "" {
		s.needWithin(p.environment+"/pyvenv.cfg", p.environment, "virtual environment", fatal)
		for _, lib := range [...]string{"lib", "lib64"} {
			s.site(p, p.environment+"/"+lib+"/"+p.version+"/site-packages", p.environment, "packages of the virtual environment")
		}
	}
	if !p.system {
		return true
	}
	for _, library := range p.library {
		if site, err := s.real(library + "/site-packages"); err == nil && inside(site.path, p.prefix) {
			p.sites = appendNew(p.sites, site.path)
		}
	}
	if p.prefix == "/usr" {
		// Debian's folders, then those of distributions that keep Python's names.
		s.site(p, "/usr/lib/python3/dist-packages", "/", "Debian's Python packages")
		for _, lib := range [...]string{"lib", "lib64"} {
			s.site(p, "/usr/local/"+lib+"/"+p.version+"/dist-packages", "/", "installed Python packages")
			s.site(p, "/usr/local/"+lib+"/"+p.version+"/site-packages", "/", "installed Python packages")
		}
		// Debian's standard library holds a link to this one.
		s.needFile("/etc/"+p.version+"/sitecustomize.py", "Python's start of the system")
	}
	return true
}

// baseLibrary finds the standard library through the home key of a pyvenv.cfg. That file
// may be the server's, so the place has to hold the interpreter that is executed, or be
// the system's own.
func (s *search) baseLibrary(p *layout, home string, e executable) bool {
	if home == "" {
		return false
	}
	var base layout
	if !s.findLibrary(&base, home, e) {
		return false
	}
	if !inside(e.entry.path, base.prefix) && base.prefix != "/usr" && base.prefix != "/usr/local" {
		s.note("the base %q of the virtual environment %q does not hold its interpreter %q and is not readable; %s",
			base.prefix, p.environment, e.entry.path, readHint(base.prefix))
		return false
	}
	p.prefix, p.version, p.library = base.prefix, base.version, base.library
	return true
}

// site adds one folder of installed packages, if it is there. tree is the folder that it
// must not leave.
func (s *search) site(p *layout, path, tree, why string) {
	if found, err := s.real(path); err != nil || !found.folder() {
		return
	}
	if real := s.needWithin(path, tree, why, tolerable); real != "" {
		p.sites = appendNew(p.sites, real)
	}
}

// environmentConfig is what matters of a pyvenv.cfg.
type environmentConfig struct {
	home           string
	systemPackages bool
}

// virtualEnvironment finds the environment that an interpreter was named through: a
// pyvenv.cfg in the folder of its name, links not followed, or in the folder above.
func (s *search) virtualEnvironment(named string) (environmentConfig, string, bool) {
	folder := s.folderOf(named)
	for _, at := range [...]string{folder, parentOf(folder)} {
		data, err := s.tree.read(join(at, "pyvenv.cfg"), 64<<10)
		if err != nil {
			continue
		}
		return parseEnvironment(data), at, true
	}
	return environmentConfig{}, "", false
}

func parseEnvironment(data []byte) environmentConfig {
	var config environmentConfig
	for line := range bytes.Lines(data) {
		key, value, found := strings.Cut(string(line), "=")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "home":
			config.home = value
		case "include-system-site-packages":
			config.systemPackages = strings.EqualFold(value, "true")
		}
	}
	return config
}

// findLibrary looks for the standard library upwards from a folder, as CPython does, by
// the file os.py in it.
func (s *search) findLibrary(p *layout, start string, e executable) bool {
	names := s.versionNames(baseOf(e.entry.path), start)
	for at := start; ; at = parentOf(at) {
		for _, name := range names {
			for _, lib := range [...]string{"lib", "lib64"} {
				if folder := join(at, lib) + "/" + name; s.isFile(folder + "/os.py") {
					p.prefix, p.version = at, name
					p.library = append(p.library, folder)
				}
			}
			if p.prefix == "" {
				continue
			}
			// Fedora keeps the modules in lib64 and the packages in both.
			for _, lib := range [...]string{"lib", "lib64"} {
				if folder := join(at, lib) + "/" + name; s.isFolder(folder) {
					p.library = appendNew(p.library, folder)
				}
			}
			return true
		}
		if at == "/" {
			return false
		}
	}
}

// versionNames are the possible names of the library folder: that of the interpreter if
// it holds a minor version, or else what is installed beside it.
func (s *search) versionNames(base, start string) []string {
	if strings.Contains(base, ".") {
		name := strings.TrimSuffix(strings.Replace(base, "python-", "python", 1), "d")
		return []string{name}
	}
	var names []string
	for _, lib := range [...]string{"lib", "lib64"} {
		_ = s.list(join(parentOf(start), lib), func(name string, _ uint8) bool {
			if strings.HasPrefix(name, "python3.") && versioned(name, "python") {
				names = appendNew(names, name)
			}
			return len(names) < 64
		})
	}
	return sortVersions(names)
}

// pythonModules adds the libraries of compiled modules, and the folders that packages in
// development are linked from.
func (s *search) pythonModules() {
	p := &s.python
	for _, folder := range p.sites {
		s.developed(folder)
	}
	if s.libraries == nil {
		return
	}
	left := moduleLimit
	for _, folder := range p.library {
		_ = s.list(folder+"/lib-dynload", func(name string, kind uint8) bool {
			if strings.HasSuffix(name, ".so") {
				left--
				s.module(folder+"/lib-dynload/"+name, kind)
			}
			return left > 0
		})
	}
	for _, folder := range p.sites {
		s.compiled(folder, 0)
	}
	if s.walked > walkLimit {
		s.note("Python's packages hold more than the %d entries that are looked at for compiled modules; "+
			"a library that a module misses needs a read grant", walkLimit)
	}
}

// module adds the libraries of a compiled module in a real folder.
func (s *search) module(path string, kind uint8) {
	found := entry{path: path, mode: unix.S_IFREG}
	if kind != unix.DT_REG {
		var err error
		if found, err = s.real(path); err != nil {
			return
		}
	}
	s.libraries.module(found)
}

// compiled looks for compiled modules below a folder.
func (s *search) compiled(folder string, depth int) {
	var below []string
	err := s.list(folder, func(name string, kind uint8) bool {
		if s.walked++; s.walked > walkLimit {
			return false
		}
		if kind == unix.DT_UNKNOWN {
			var st unix.Stat_t
			if lstat(join(folder, name), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				kind = unix.DT_DIR
			}
		}
		switch {
		case kind == unix.DT_DIR:
			if name != "__pycache__" && !strings.HasSuffix(name, "-info") {
				below = append(below, name)
			}
		case strings.HasSuffix(name, ".so"):
			s.module(join(folder, name), kind)
		}
		return true
	})
	if err != nil || depth > 8 {
		return
	}
	for _, name := range below {
		if s.walked > walkLimit {
			return
		}
		s.compiled(join(folder, name), depth+1)
	}
}
