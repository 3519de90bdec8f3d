package registrytest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Wheel is one version of a Python package as a wheel for every platform, or for the one
// that Platform names.
type Wheel struct {
	Name, Version string
	// Requires are requirements, such as `other>=1`, `third; extra == "cli"`.
	Requires []string
	// Extras are the extras that the package has.
	Extras []string
	// RequiresPython is the range of Python versions, such as ">=3.10"; "" is any.
	RequiresPython string
	// Programs are console scripts: name to "module:function".
	Programs map[string]string
	// Files are the package's files by path, such as "example/__init__.py".
	Files map[string]string
	// Platform is the wheel's platform tag; "" is "any".
	Platform string
}

// Source is one version of a Python package as a source archive, built by its own backend
// without any build requirement. Build is Python code that runs when it is built.
type Source struct {
	Wheel
	Build string
}

// pythonFile is one file of an index page.
type pythonFile struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython string            `json:"requires-python,omitempty"`
}

// normal returns a name in the form of index paths (PEP 503).
func normal(name string) string {
	fields := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return strings.Join(fields, "-")
}

// stem is the name and version as file names begin with them.
func (w Wheel) stem() string { return strings.ReplaceAll(normal(w.Name), "-", "_") + "-" + w.Version }

// Filename returns the wheel's file name.
func (w Wheel) Filename() string {
	platform := w.Platform
	if platform == "" {
		platform = "any"
	}
	return w.stem() + "-py3-none-" + platform + ".whl"
}

// Path returns the path of the wheel in the registry.
func (w Wheel) Path() string { return "/files/" + w.Filename() }

func (w Wheel) metadata() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", w.Name, w.Version)
	if w.RequiresPython != "" {
		fmt.Fprintf(&b, "Requires-Python: %s\n", w.RequiresPython)
	}
	for _, extra := range w.Extras {
		fmt.Fprintf(&b, "Provides-Extra: %s\n", extra)
	}
	for _, requirement := range w.Requires {
		fmt.Fprintf(&b, "Requires-Dist: %s\n", requirement)
	}
	return b.String()
}

// Archive returns the wheel.
func (w Wheel) Archive() []byte {
	files := maps.Clone(w.Files)
	if files == nil {
		files = map[string]string{}
	}
	info := w.stem() + ".dist-info/"
	tag := strings.TrimSuffix(strings.TrimPrefix(w.Filename(), w.stem()+"-"), ".whl")
	files[info+"METADATA"] = w.metadata()
	files[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: registrytest\nRoot-Is-Purelib: true\nTag: " + tag + "\n"
	if len(w.Programs) > 0 {
		points := []string{"[console_scripts]"}
		for _, name := range slices.Sorted(maps.Keys(w.Programs)) {
			points = append(points, name+" = "+w.Programs[name])
		}
		files[info+"entry_points.txt"] = strings.Join(points, "\n") + "\n"
	}
	var record strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256([]byte(files[path]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[path]))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files[info+"RECORD"] = record.String()
	return zipped(files)
}

// backend builds the wheel that lies in the source archive, after the test's own code.
const backend = `import shutil, os
%s
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), %q), wheel_directory)
    return %q
def get_requires_for_build_wheel(config_settings=None):
    return []
`

// Filename returns the source archive's file name.
func (s Source) Filename() string { return s.stem() + ".tar.gz" }

// Path returns the path of the source archive in the registry.
func (s Source) Path() string { return "/files/" + s.Filename() }

// Archive returns the source archive.
func (s Source) Archive() []byte {
	return Tarball(s.stem(), s.Folder())
}

// Folder returns the files of the source archive by path.
func (s Source) Folder() map[string]string {
	wheel := s.Wheel.Filename()
	return map[string]string{
		"PKG-INFO":       s.metadata(),
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
		"backend.py":     fmt.Sprintf(backend, s.Build, wheel, wheel),
		wheel:            string(s.Wheel.Archive()),
	}
}

// AddPython adds wheels.
func (r *Registry) AddPython(all ...Wheel) {
	for _, w := range all {
		r.addPythonFile(w, w.Filename(), w.Archive())
	}
}

// AddSource adds source archives.
func (r *Registry) AddSource(all ...Source) {
	for _, s := range all {
		r.addPythonFile(s.Wheel, s.Filename(), s.Archive())
	}
}

func (r *Registry) addPythonFile(w Wheel, filename string, archive []byte) {
	path := "/files/" + filename
	r.archive(path, archive)
	sum := sha256.Sum256(archive)
	r.mu.Lock()
	defer r.mu.Unlock()
	name := normal(w.Name)
	r.python[name] = append(r.python[name], pythonFile{
		Filename: filename, URL: r.server.URL + path,
		Hashes: map[string]string{"sha256": hex.EncodeToString(sum[:])}, RequiresPython: w.RequiresPython,
	})
}

func (r *Registry) serveIndex(w http.ResponseWriter, req *http.Request, name string) {
	name = strings.TrimSuffix(name, "/")
	r.mu.Lock()
	files, known := r.python[name]
	files = slices.Clone(files)
	r.mu.Unlock()
	if !known {
		http.NotFound(w, req)
		return
	}
	if strings.Contains(req.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json") {
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		text, err := json.Marshal(map[string]any{"meta": map[string]string{"api-version": "1.0"}, "name": name, "files": files})
		must(err)
		_, _ = w.Write(text) // the client may be gone
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<!DOCTYPE html><html><head><title>%s</title></head><body>\n", html.EscapeString(name)) //nolint:gosec // escaped
	for _, file := range files {
		python := ""
		if file.RequiresPython != "" {
			python = fmt.Sprintf(` data-requires-python="%s"`, html.EscapeString(file.RequiresPython))
		}
		fmt.Fprintf(w, "<a href=\"%s#sha256=%s\"%s>%s</a><br>\n", //nolint:gosec // escaped
			html.EscapeString(file.URL), file.Hashes["sha256"], python, html.EscapeString(file.Filename))
	}
	fmt.Fprint(w, "</body></html>\n")
}
