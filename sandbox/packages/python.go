package packages

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// PythonNames returns the programs that --python may stand for, best first: names to look
// up on PATH, or one absolute path. dir is what a relative path begins at. A version's third
// number cannot be told from a name; [PipInstalled] compares it.
func PythonNames(asked, dir string) ([]string, error) {
	asked = strings.TrimSpace(asked)
	switch {
	case asked == "":
		return []string{"python3", "python"}, nil
	case strings.Contains(asked, "/"):
		if !filepath.IsAbs(asked) {
			asked = filepath.Join(dir, asked)
		}
		return []string{filepath.Clean(asked)}, nil
	}
	name, version := asked, ""
	if i := strings.IndexAny(asked, "0123456789"); i >= 0 {
		name, version = asked[:i], asked[i:]
	}
	program, known := map[string]string{"": "python", "python": "python", "cpython": "python", "cpython@": "python", "python@": "python", "pypy": "pypy", "pypy@": "pypy"}[name]
	parts := strings.Split(version, ".")
	for _, part := range parts {
		known = known && (part != "" && allDigits(part) || version == "")
	}
	if !known || len(parts) > 3 {
		return nil, &InstallError{
			Problem: fmt.Sprintf("--python %q is no version, name or path that can be looked up without uv", asked),
			Cure:    `write a version such as 3.12, a name such as python3.12, or a path`,
		}
	}
	if version == "" {
		return []string{program + "3", program}, nil
	}
	if len(parts) == 1 && len(version) > 1 { // 312
		parts = []string{version[:1], version[1:]}
	}
	return []string{program + strings.Join(parts[:min(2, len(parts))], ".")}, nil
}

// numbersOf returns the version in what --python asked for, "" for none.
func numbersOf(asked string) string {
	if strings.Contains(asked, "/") {
		return ""
	}
	i := strings.IndexAny(asked, "0123456789")
	if i < 0 {
		return ""
	}
	version := asked[i:]
	if !strings.Contains(version, ".") && len(version) > 1 {
		version = version[:1] + "." + version[1:]
	}
	return version
}

// fileURL returns a path as a URL.
func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: path}).String()
}
