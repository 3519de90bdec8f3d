package program

import (
	"fmt"
	"strings"
)

// maxLibraries bounds a closure; large desktop programs have 300.
const maxLibraries = 2048

// object is a program or library as the loader has it.
type object struct {
	path   string // as it was found: $ORIGIN is the folder of this path
	real   string
	image  image
	parent *object // what asked for it first; nil for the program
}

// libraries works out which files the loader maps for one program, and for modules that
// the program opens later. It follows the rules of ld.so(8) and of musl's loader, with
// an environment that names no folders: LD_LIBRARY_PATH and LD_PRELOAD are the profile's.
//
// A library of another width or machine that comes first on the way is passed over, as
// the loader does. Folders glibc-hwcaps below a search folder are not looked into; the
// loader goes on to the plain library when it cannot open the better one.
type libraries struct {
	tree    *tree
	loader  loader
	machine machine
	program *object
	// loaded are names that the program's own libraries answer to, found or not.
	loaded map[string]struct{}
	// asked are names that modules asked for, each with the search folders of its own.
	asked map[string]struct{}
	known map[string]struct{} // real paths in files
	files []string            // real paths, in the order they were found
	// missing are libraries of the program itself that were not found.
	missing []string
	// refused says why files or names that were asked for are not readable.
	refused []string
	// cut says that maxLibraries was reached.
	cut  bool
	head [elfHeadSize]byte
}

// newLibraries finds the libraries of a program. real is its path without links: the
// kernel tells the loader that one.
func newLibraries(t *tree, l loader, real string, img image) *libraries {
	s := &libraries{
		tree: t, loader: l, machine: img.machine,
		program: &object{path: real, real: real, image: img},
		loaded:  make(map[string]struct{}, 16),
		known:   make(map[string]struct{}, 16),
	}
	s.loaded[baseOf(l.named)] = struct{}{}
	queue := []*object{s.program}
	for len(queue) > 0 {
		asking := queue[0]
		queue = queue[1:]
		for _, name := range asking.image.needed {
			if _, ok := s.loaded[name]; ok {
				continue
			}
			s.loaded[name] = struct{}{}
			refused := len(s.refused)
			found := s.locate(name, asking)
			if len(found) == 0 && len(s.refused) == refused {
				s.missing = append(s.missing, name)
			}
			for _, o := range found {
				if o.image.soName != "" {
					s.loaded[o.image.soName] = struct{}{}
				}
				if s.add(o) {
					queue = append(queue, o)
				}
			}
		}
	}
	return s
}

// module adds the libraries of a file that the running program may open with dlopen(3),
// not the file itself. Files that are no ELF files of the program's machine add nothing.
func (s *libraries) module(e entry) {
	module := s.load(e)
	if module == nil {
		return
	}
	module.path, module.parent = e.path, s.program
	s.follow([]*object{module})
}

// optional adds a library that the program may ask for by name later.
func (s *libraries) optional(name string) {
	if _, ok := s.loaded[name]; ok || s.loader.musl {
		return
	}
	var queue []*object
	for _, o := range s.locate(name, s.program) {
		if s.add(o) {
			queue = append(queue, o)
		}
	}
	s.follow(queue)
}

// follow adds what objects outside of the program's own closure ask for. The same name
// may mean another file to each, so a name is settled only together with its folders.
//
// These objects are the server's own files. What they ask for by a path is not followed:
// packages bring their libraries along and name them by names.
func (s *libraries) follow(queue []*object) {
	if s.asked == nil {
		s.asked = make(map[string]struct{}, 16)
	}
	for len(queue) > 0 {
		asking := queue[0]
		queue = queue[1:]
		folders := strings.Join(s.ownFolders(asking), ":")
		for _, name := range asking.image.needed {
			if _, ok := s.loaded[name]; ok {
				continue
			}
			if strings.Contains(name, "/") {
				s.refuse("%q asks for the library %q by a path, which is not followed", asking.real, name)
				continue
			}
			key := name
			if folders != "" {
				key += "\x00" + folders
			}
			if _, ok := s.asked[key]; ok {
				continue
			}
			s.asked[key] = struct{}{}
			for _, o := range s.locate(name, asking) {
				if s.add(o) {
					queue = append(queue, o)
				}
			}
		}
	}
}

// add records a file and says whether it is new.
func (s *libraries) add(o *object) bool {
	if _, ok := s.known[o.real]; ok || o.real == s.loader.real {
		return false
	}
	if len(s.files) >= maxLibraries {
		s.cut = true
		return false
	}
	s.known[o.real] = struct{}{}
	s.files = append(s.files, o.real)
	return true
}

// locate finds the file for a name in the needs of an object. The first answer is the
// one for every processor; others are variants for newer processors out of the cache,
// which the loader prefers where they fit.
func (s *libraries) locate(name string, asking *object) []*object {
	if s.loader.musl && isMuslItself(name) {
		return []*object{{path: s.loader.named, real: s.loader.real, parent: asking}}
	}
	if strings.Contains(name, "/") {
		// A path, not a name. One relative to the working folder is not followed: what
		// lies there is not known when the program starts again elsewhere.
		for _, path := range s.expand(name, asking) {
			if o := s.tryFor(path, asking); o != nil {
				return []*object{o}
			}
		}
		return nil
	}
	for _, folder := range s.ownFolders(asking) {
		if o := s.tryFor(join(folder, name), asking); o != nil {
			return []*object{o}
		}
	}
	if asking.image.noDefault && !s.loader.musl {
		return nil
	}
	var plain *object
	var found []*object
	for _, c := range s.loader.cache.find(name, s.machine) {
		if !c.variant && plain != nil {
			continue
		}
		o := s.tryFor(c.path, asking)
		switch {
		case o == nil:
		case c.variant:
			found = append(found, o)
		default:
			plain = o
		}
	}
	if plain == nil {
		for _, folder := range s.loader.folders {
			if plain = s.tryFor(join(folder, name), asking); plain != nil {
				break
			}
		}
	}
	if plain == nil {
		return found
	}
	return append([]*object{plain}, found...)
}

// ownFolders are the search folders that an object brings along. glibc: DT_RPATH of the
// object and of everything that led to it, unless the object has DT_RUNPATH, which then
// stands alone. musl takes both for the same and inherits both.
func (s *libraries) ownFolders(asking *object) []string {
	var folders []string
	if !s.loader.musl && asking.image.runPath != "" {
		return s.appendFolders(nil, asking.image.runPath, asking)
	}
	for o := asking; o != nil; o = o.parent {
		switch {
		case o.image.runPath == "":
			folders = s.appendFolders(folders, o.image.rPath, o)
		case s.loader.musl:
			folders = s.appendFolders(folders, o.image.runPath, o)
		}
	}
	return folders
}

func (s *libraries) appendFolders(folders []string, list string, o *object) []string {
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, ":")
		// An empty element is the working folder, which decides nothing here.
		if one != "" {
			folders = append(folders, s.expand(one, o)...)
		}
	}
	return folders
}

// expand replaces the tokens of ld.so(8) and returns absolute paths only. $LIB differs
// between distributions, so it gives more than one answer.
func (s *libraries) expand(path string, o *object) []string {
	if !strings.Contains(path, "$") {
		if path[0] != '/' {
			return nil
		}
		return []string{strings.TrimRight(path, "/")}
	}
	replace := func(path, token, value string) string {
		path = strings.ReplaceAll(path, "${"+token+"}", value)
		return strings.ReplaceAll(path, "$"+token, value)
	}
	path = replace(path, "ORIGIN", parentOf(o.path))
	path = replace(path, "PLATFORM", strings.TrimSuffix(debianTriplet(s.machine), "-linux-gnu"))
	paths := []string{path}
	if strings.Contains(path, "LIB") {
		paths = paths[:0]
		for _, lib := range [...]string{"lib/" + debianTriplet(s.machine), "lib64", "lib"} {
			paths = append(paths, replace(path, "LIB", lib))
		}
	}
	absolute := paths[:0]
	for _, p := range paths {
		if p[0] == '/' && !strings.Contains(p, "$") {
			absolute = append(absolute, strings.TrimRight(p, "/"))
		}
	}
	return absolute
}

func (s *libraries) tryFor(path string, asking *object) *object {
	o := s.try(path)
	if o == nil {
		return nil
	}
	o.parent = asking
	if !o.image.library() && !s.ownLibrary(o) {
		s.refuse("%q asks for %q, which is a program and no library", asking.real, o.real)
		return nil
	}
	return o
}

// ownLibrary says whether an object that can be started too is one of the loader's own
// libraries: libc.so.6 has a loader, and prints its version when it is started. Programs
// do not lie in those folders under a library's name.
func (s *libraries) ownLibrary(o *object) bool {
	base := baseOf(o.real)
	if !strings.HasSuffix(base, ".so") && !strings.Contains(base, ".so.") {
		return false
	}
	folder := parentOf(o.real)
	if folder == parentOf(s.loader.real) {
		return true
	}
	for _, own := range s.loader.folders {
		if found, err := s.tree.real(own); err == nil && found.path == folder {
			return true
		}
	}
	for _, c := range s.loader.cache.find(baseOf(o.path), s.machine) {
		if found, err := s.tree.real(c.path); err == nil && found.path == o.real {
			return true
		}
	}
	return false
}

func (s *libraries) refuse(format string, args ...any) {
	if len(s.refused) < maxNotes {
		s.refused = appendNew(s.refused, fmt.Sprintf(format, args...))
	}
}

// try opens a file and returns it if the program could map it.
func (s *libraries) try(path string) *object {
	found, err := s.tree.real(path)
	if err != nil {
		return nil
	}
	o := s.load(found)
	if o != nil {
		o.path = path
	}
	return o
}

func (s *libraries) load(found entry) *object {
	f, err := s.tree.open(found)
	if err != nil {
		return nil
	}
	defer f.close()
	n, _ := f.ReadAt(s.head[:], 0)
	img, err := readELF(f, s.head[:n])
	if err != nil || img.machine != s.machine {
		return nil
	}
	return &object{real: found.path, image: img}
}
