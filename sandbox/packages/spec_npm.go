package packages

import (
	"net/url"
	"path/filepath"
	"strings"
)

const npmCure = "NAME, @SCOPE/NAME, each with @VERSION if you like; an https:// address of an archive; git+https://; github:USER/REPO; or ./FOLDER"

// npmSpec reads a package as npm's command line has it (npm-package-arg).
func npmSpec(word string, where Where) (Spec, error) {
	switch {
	case word == "":
		return Spec{}, refuse(npmCure, "a package without a name")
	case localWord(word):
		return localSpec(word, where, npmArchive)
	}
	name, rest := word, ""
	if at := strings.IndexByte(word[1:], '@'); at >= 0 && !strings.Contains(word[:at+1], ":") {
		name, rest = word[:at+1], word[at+2:]
	}
	switch {
	case strings.Contains(name, ":"):
		name, rest = "", word
	case strings.Count(name, "/") == 1 && name[0] != '@':
		// USER/REPO stands for GitHub, also with #COMMIT behind it.
		return gitSpec("", "github:"+word)
	}
	if name != "" && !validNPMName(name) {
		return Spec{}, refuse(npmCure, "%q is no name of an npm package", name)
	}
	if alias, ok := strings.CutPrefix(rest, "npm:"); ok {
		// An alias changes the folder's name alone.
		return npmSpec(alias, where)
	}
	switch {
	case strings.Contains(rest, ":"):
		return addressSpec(name, rest)
	case localWord(rest):
		s, err := localSpec(rest, where, npmArchive)
		s.Name = name
		return s, err
	case strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.HasPrefix(strings.TrimSpace(rest), "-"):
		return Spec{}, refuse(npmCure, "%q is no version", rest)
	case strings.ContainsAny(rest, `/\#`) || npmArchive(rest):
		// npm would take it for a repository or an archive, and the name says nothing then.
		return Spec{}, refuse(npmCure, "%q is no version", rest)
	}
	return Spec{Name: name, Version: rest}, nil
}

func localWord(word string) bool {
	return word == "." || word == ".." || word == "~" || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") ||
		strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~/") || strings.HasPrefix(word, "file:")
}

func npmArchive(path string) bool {
	return strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".tar")
}

// localSpec is a folder or an archive on this machine, by its absolute path.
func localSpec(word string, where Where, archive func(string) bool) (Spec, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(word, "file://"), "file:")
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		path = where.Home + path[1:]
	case !filepath.IsAbs(path):
		path = filepath.Join(where.Dir, path)
	}
	s := Spec{Source: Folder, Place: filepath.Clean(path)}
	if archive(path) {
		s.Source = Archive
	}
	if strings.ContainsRune(path, 0) {
		return Spec{}, refuse("write another path", "a path holds a NUL byte")
	}
	return s, nil
}

// addressSpec is a package at an address.
func addressSpec(name, rest string) (Spec, error) {
	switch scheme, _, _ := strings.Cut(rest, ":"); scheme {
	case "github", "gitlab", "bitbucket", "git+https", "git+ssh", "git", "ssh", "git+http", "gist":
		return gitSpec(name, rest)
	case "https":
		if strings.Contains(rest, ".git") && !npmArchive(strings.SplitN(rest, "#", 2)[0]) {
			return gitSpec(name, "git+"+rest)
		}
		if err := plainAddress(rest); err != nil {
			return Spec{}, err
		}
		return Spec{Source: Archive, Name: name, Place: rest}, nil
	case "http":
		return Spec{}, refuse("use https://", "an archive over http:// could be replaced on the way")
	}
	return Spec{}, refuse(npmCure, "a package with an address of another kind")
}

// gitSpec is a repository, reached over HTTPS.
func gitSpec(name, address string) (Spec, error) {
	scheme, path, _ := strings.Cut(address, ":")
	hosts := map[string]string{"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}
	if host, known := hosts[scheme]; known {
		repository, commit, _ := strings.Cut(path, "#")
		owner, project, ok := strings.Cut(strings.TrimSuffix(repository, ".git"), "/")
		if !ok || !plainName(owner) || !plainName(project) {
			return Spec{}, refuse("github:USER/REPO", "%q is no repository", address)
		}
		address = "git+https://" + host + "/" + owner + "/" + project + ".git"
		if commit != "" {
			address += "#" + commit
		}
		scheme = "git+https"
	}
	if scheme != "git+https" {
		return Spec{}, refuse("git+https://HOST/PATH.git", "a repository over %s needs keys that the install jail has not", scheme)
	}
	if err := plainAddress(strings.TrimPrefix(address, "git+")); err != nil {
		return Spec{}, err
	}
	return Spec{Source: Git, Name: name, Place: address}, nil
}

// plainAddress refuses an address with a password in it: it would be in every list.
func plainAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return refuse(npmCure, "an address that cannot be read")
	}
	if u.User != nil {
		return refuse("put the credential into your npm or pip configuration, or into .netrc", "an address with a user or password in it, for the host %s", u.Hostname())
	}
	return nil
}

// validNPMName is a name of the registry, with its scope. New packages have small letters; old
// ones may have capitals. Names that begin with a dot, a dash or an underscore are none.
func validNPMName(name string) bool {
	if scope, rest, scoped := strings.Cut(name, "/"); scoped {
		return len(scope) > 1 && scope[0] == '@' && plainName(scope[1:]) && plainName(rest) && len(name) <= 214
	}
	return plainName(name) && len(name) <= 214
}

func plainName(word string) bool {
	for i := range len(word) {
		c := word[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte("-._~", c) < 0) {
			return false
		}
	}
	return word != ""
}
