package profiles

import (
	"path/filepath"
	"strings"

	"stockade/sandbox/program"
)

// The store of package runners is written by stockade alone, so its folders' names say
// what lies in them. In the store, and nowhere else, the name of a folder is an identity.

// StorePath is where the store of package runners really lies, links followed, or "" when
// there is none. data is $XDG_DATA_HOME. It is what [Facts] and [Search] take.
func StorePath(data string) string {
	real, err := filepath.EvalSymlinks(storeBelow(data))
	if err != nil || !filepath.IsAbs(real) {
		return ""
	}
	return real
}

func storeBelow(data string) string { return ours(data) + "/packages" }

// storeEntry is one installed package in the store.
type storeEntry struct {
	kind, name string // "npm", "@scope/name"
	folder     string // STORE/KIND/NAME@VERSION-DIGEST, a real path
	// unregistered: its name does not say whose code it is.
	unregistered bool
}

// entryDigits is the length of the digest in an entry's name.
const entryDigits = 16

// entryOf finds the entry of a store that a real path lies in: below
// STORE/npm/NAME@VERSION-DIGEST, STORE/npm/@SCOPE/NAME@VERSION-DIGEST or
// STORE/pypi/NAME@VERSION-DIGEST; or STORE/npm/+/… and STORE/pypi/+/… for entries whose name
// does not say whose code they hold. store is the answer of [StorePath]; "" holds nothing.
func entryOf(store, path string) (storeEntry, bool) {
	rest, inside := strings.CutPrefix(path, store+"/")
	if store == "" || !inside {
		return storeEntry{}, false
	}
	kind, rest, _ := strings.Cut(rest, "/")
	scope, top := "", store+"/"+kind+"/"
	rest, unregistered := strings.CutPrefix(rest, "+/")
	if unregistered {
		top += "+/"
	}
	if kind == "npm" && strings.HasPrefix(rest, "@") {
		var found bool
		if scope, rest, found = strings.Cut(rest, "/"); !found || !packageWord(scope[1:]) {
			return storeEntry{}, false
		}
		scope += "/"
	}
	base, inner, _ := strings.Cut(rest, "/")
	name, version, versioned := strings.Cut(base, "@")
	dash := strings.LastIndexByte(version, '-')
	switch {
	case kind != "npm" && kind != "pypi":
		return storeEntry{}, false
	case inner == "" || !versioned || !packageWord(name):
		return storeEntry{}, false
	case dash < 1 || !isDigest(version[dash+1:]):
		return storeEntry{}, false
	}
	return storeEntry{kind: kind, name: scope + name, folder: top + scope + base, unregistered: unregistered}, true
}

func isDigest(s string) bool {
	for i := range len(s) {
		if c := s[i]; !digit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == entryDigits
}

// stored finds the entry that a program's own code lies in: its script, the module that
// `python -m` runs, or the file of a native program.
func stored(store string, p *program.Program, module string) (storeEntry, bool) {
	if store == "" {
		return storeEntry{}, false
	}
	code := p.Entry
	if code == "" {
		code = module
	}
	if code == "" && p.Runtime == program.Native {
		code = p.File
	}
	return entryOf(store, code)
}

// identity is the entry's package as match.packages writes it; "" for one whose name does not
// say whose code it is.
func (e storeEntry) identity() string {
	if e.unregistered {
		return ""
	}
	return e.kind + ":" + e.name
}
