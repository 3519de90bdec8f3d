package registrytest

import (
	"crypto/sha1" //nolint:gosec // npm's "shasum" is one
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"strings"
)

// NPM is one version of an npm package.
type NPM struct {
	Name, Version string
	// Manifest are further fields of package.json: "bin", "scripts", "engines",
	// "dependencies", "optionalDependencies", "os", "cpu".
	Manifest map[string]any
	// Files are the other files, by their path in the package.
	Files map[string]string
	// Tags are dist-tags that name this version. Without any it becomes "latest", as when
	// it is published; a package's first version is "latest" in each case.
	Tags []string
	// Published is the version's time, RFC 3339; "" is 2025-01-01.
	Published string
}

// packument is what a registry tells of a package.
type packument struct {
	Name     string                    `json:"name"`
	Tags     map[string]string         `json:"dist-tags"`
	Versions map[string]map[string]any `json:"versions"`
	Time     map[string]string         `json:"time"`
}

// Tarball returns the package as "npm pack" would write it.
func (p NPM) Tarball() []byte { return Tarball("package", p.Folder()) }

// Folder returns the package's files by path, package.json among them.
func (p NPM) Folder() map[string]string {
	files := maps.Clone(p.Files)
	if files == nil {
		files = map[string]string{}
	}
	text, err := json.MarshalIndent(p.manifest(), "", "  ")
	must(err)
	files["package.json"] = string(text) + "\n"
	return files
}

func (p NPM) manifest() map[string]any {
	all := map[string]any{}
	maps.Copy(all, p.Manifest)
	all["name"], all["version"] = p.Name, p.Version
	return all
}

// Path returns the path of the version's archive: "/npm/@scope/name/-/name-1.0.0.tgz".
func (p NPM) Path() string {
	return "/npm/" + p.Name + "/-/" + path.Base(p.Name) + "-" + p.Version + ".tgz"
}

// AddNPM adds versions of packages.
func (r *Registry) AddNPM(all ...NPM) {
	for _, p := range all {
		r.addNPM(p)
	}
}

func (r *Registry) addNPM(p NPM) {
	archive := p.Tarball()
	r.archive(p.Path(), archive)
	sum512 := sha512.Sum512(archive)
	sum1 := sha1.Sum(archive) //nolint:gosec // npm's "shasum" is one
	manifest := p.manifest()
	manifest["dist"] = map[string]any{
		"tarball":   r.server.URL + p.Path(),
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum512[:]),
		"shasum":    hex.EncodeToString(sum1[:]),
	}
	if scripts, ok := manifest["scripts"].(map[string]any); ok {
		for _, name := range []string{"preinstall", "install", "postinstall"} {
			if scripts[name] != nil {
				manifest["hasInstallScript"] = true
			}
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.npm[p.Name]
	if known == nil {
		known = &packument{Name: p.Name, Tags: map[string]string{}, Versions: map[string]map[string]any{}, Time: map[string]string{}}
		r.npm[p.Name] = known
	}
	known.Versions[p.Version] = manifest
	known.Time[p.Version] = "2025-01-01T00:00:00.000Z"
	if p.Published != "" {
		known.Time[p.Version] = p.Published
	}
	if len(p.Tags) == 0 || known.Tags["latest"] == "" {
		known.Tags["latest"] = p.Version
	}
	for _, tag := range p.Tags {
		known.Tags[tag] = p.Version
	}
}

func (r *Registry) servePackument(w http.ResponseWriter, req *http.Request, name string) {
	r.mu.Lock()
	known := r.npm[name]
	var text []byte
	if known != nil {
		var err error
		text, err = json.Marshal(known)
		must(err)
	}
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if known == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"Not found"}`)) // the client may be gone
		return
	}
	if strings.Contains(req.Header.Get("Accept"), "application/vnd.npm.install-v1+json") {
		w.Header().Set("Content-Type", "application/vnd.npm.install-v1+json")
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(text) // the client may be gone
}
