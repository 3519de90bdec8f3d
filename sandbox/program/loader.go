package program

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

const (
	loaderFileLimit = 4 << 20 // glibc's has 0.2 MB, musl's 0.7
	muslPathLimit   = 64 << 10
)

// loader is the program that maps a dynamic program's libraries, and where it looks.
type loader struct {
	named   string // PT_INTERP
	real    string
	musl    bool
	cache   loaderCache // without entries when there is none
	config  string      // real path of the cache, or of musl's list of folders; "" for none
	folders []string    // searched last
}

// loaderAt learns what a loader knows without being told. m is the program's machine. The
// answer is remembered: git and its helpers share one.
func (t *tree) loaderAt(named string, m machine) (loader, error) {
	if l, ok := t.loaders[named]; ok {
		return l, nil
	}
	l, err := t.learn(named, m)
	if err == nil {
		if t.loaders == nil {
			t.loaders = make(map[string]loader, 1)
		}
		t.loaders[named] = l
	}
	return l, err
}

func (t *tree) learn(named string, m machine) (loader, error) {
	found, err := t.real(named)
	if err != nil {
		return loader{}, err
	}
	if err := t.checkLoader(found); err != nil {
		return loader{}, err
	}
	l := loader{named: named, real: found.path}
	if strings.HasPrefix(baseOf(named), "ld-musl-") {
		l.musl = true
		t.muslFolders(&l)
		return l, nil
	}
	cache := "/etc/ld.so.cache"
	if isSystemFolder(parentOf(found.path)) {
		l.folders = systemLibraries(m)
	} else if cache, l.folders, err = t.builtInto(found); err != nil {
		// A loader of a store or private prefix carries other places than the system's.
		return loader{}, err
	}
	if cache == "" {
		return l, nil
	}
	data, err := t.read(cache, loaderCacheLimit)
	if err != nil {
		// Without a readable cache the loader goes on to its folders.
		return l, nil //nolint:nilerr // as above
	}
	if l.cache, err = parseLoaderCache(data, m); err == nil {
		if where, err := t.real(cache); err == nil {
			l.config = where.path
		}
	}
	return l, nil
}

var errNoLoader = errors.New("it is a program and no loader")

// checkLoader refuses programs in the place of a loader: the kernel would map any, and a
// server that brings its own program could make another one executable that way.
func (t *tree) checkLoader(found entry) error {
	f, err := t.open(found)
	if err != nil {
		return err
	}
	defer f.close()
	img, err := readELF(f, nil)
	if err != nil {
		return err
	}
	if !img.library() {
		return errNoLoader
	}
	return nil
}

// isSystemFolder says whether a folder is one where distributions keep their own loader.
func isSystemFolder(folder string) bool {
	for _, root := range [...]string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"} {
		if folder == root {
			return true
		}
		// Debian's: one folder for each architecture.
		if rest, ok := strings.CutPrefix(folder, root+"/"); ok {
			return strings.HasSuffix(rest, "-linux-gnu") && !strings.Contains(rest, "/")
		}
	}
	return false
}

// systemLibraries are the folders built into distributions' loaders, Debian's first. A
// distribution has some of them; libraries of another width in them are passed over.
func systemLibraries(m machine) []string {
	folders := make([]string, 0, 6)
	if triplet := debianTriplet(m); triplet != "" {
		folders = append(folders, "/lib/"+triplet, "/usr/lib/"+triplet)
	}
	return append(folders, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func debianTriplet(m machine) string {
	switch m.number {
	case 62:
		return "x86_64-linux-gnu"
	case 183:
		return "aarch64-linux-gnu"
	case 243:
		return "riscv64-linux-gnu"
	case 21:
		return "powerpc64le-linux-gnu"
	case 22:
		return "s390x-linux-gnu"
	}
	return ""
}

// builtInto finds the two things that a glibc loader has compiled into it: the path of
// its cache, and its folders, which it keeps with a slash at the end.
func (t *tree) builtInto(found entry) (cache string, folders []string, err error) {
	data, err := t.read(found.path, loaderFileLimit)
	if err != nil {
		return "", nil, err
	}
	if at := bytes.Index(data, []byte("/ld.so.cache\x00")); at >= 0 {
		start := bytes.LastIndexByte(data[:at], 0) + 1
		if path := string(data[start : at+len("/ld.so.cache")]); path[0] == '/' {
			cache = path
		}
	}
	for rest := data; len(folders) < 16; {
		at := bytes.Index(rest, []byte("/\x00"))
		if at < 0 {
			break
		}
		start := bytes.LastIndexByte(rest[:at+1], 0) + 1
		path := rest[start:at]
		if len(path) > 1 && path[0] == '/' && isPrintable(path) {
			folders = appendNew(folders, string(path))
		}
		rest = rest[at+1:]
	}
	return cache, folders, nil
}

func isPrintable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// muslFolders reads the list that musl's loader keeps two folders above itself, in etc;
// it has a default only when there is no such file (ldso/dynlink.c, musl 1.2).
func (t *tree) muslFolders(l *loader) {
	l.folders = []string{"/lib", "/usr/local/lib", "/usr/lib"}
	prefix := strings.TrimSuffix(parentOf(parentOf(l.named)), "/")
	name := strings.TrimSuffix(baseOf(l.named), ".so.1")
	list := prefix + "/etc/" + name + ".path"
	found, err := t.real(list)
	if err != nil {
		return
	}
	l.folders, l.config = nil, found.path
	data, err := t.read(list, muslPathLimit)
	if err != nil {
		return
	}
	split := func(r rune) bool { return r == ':' || r == '\n' }
	for _, folder := range strings.FieldsFunc(string(data), split) {
		if folder[0] == '/' {
			l.folders = append(l.folders, folder)
		}
	}
}

// isMuslItself says whether musl answers a library name with its loader, which is its
// libc too (load_library in ldso/dynlink.c).
func isMuslItself(name string) bool {
	stem, _, found := strings.Cut(name, ".")
	if !found {
		return false
	}
	switch stem {
	case "libc", "libpthread", "librt", "libm", "libdl", "libutil", "libxnet":
		return true
	}
	return false
}

// appendNew appends what the list does not hold yet.
func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
