package packages

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Python packages lie side by side in one folder. What belongs to one says its RECORD, a
// list that the installer writes (PEP 376, PEP 427).

// ReadWheelMentions reads what one package of a site-packages folder names: its code and
// its METADATA, which holds its readme. distribution is its name on PyPI, in any spelling.
func ReadWheelMentions(site fs.FS, distribution string) (Mentions, error) {
	r := newMentionReader(site)
	info, err := r.distInfo(func(name string) bool { return wheelName(name) == wheelName(distribution) })
	if err != nil {
		return Mentions{}, err
	}
	if info == "" {
		return Mentions{}, fmt.Errorf("reading what package %q names: it is not installed here", distribution)
	}
	r.file(info + "/METADATA")
	files, err := r.record(info)
	if err != nil {
		return Mentions{}, err
	}
	for _, name := range files {
		if fs.ValidPath(name) && ownPart(name) && strings.HasSuffix(name, ".py") {
			r.file(name)
		}
	}
	return r.result(), nil
}

// MentionsOfWheel is [ReadWheelMentions] for a folder of the file system.
func MentionsOfWheel(site, distribution string) (Mentions, error) {
	return inRoot(site, func(folder fs.FS) (Mentions, error) { return ReadWheelMentions(folder, distribution) })
}

// WheelOf finds the package of a site-packages folder that brought a program along (the
// name of a file in the environment's bin folder) or a module; one of the two is "". The
// answer is "" when none did.
func WheelOf(site fs.FS, program, module string) (string, error) {
	r := newMentionReader(site)
	top, _, _ := strings.Cut(module, ".")
	info, err := r.distInfo(func(name string) bool {
		files, err := r.record(name)
		if err != nil {
			return false
		}
		for _, file := range files {
			switch {
			case program != "" && strings.HasPrefix(file, "../") && path.Base(path.Dir(file)) == "bin" && path.Base(file) == program:
				return true
			case top != "" && (file == top+"/__init__.py" || file == top+"/__main__.py" || file == top+".py"):
				return true
			}
		}
		return false
	})
	if err != nil || info == "" {
		return "", err
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(info, distInfo), "-")
	return name, nil
}

// InstalledWheel is [WheelOf] for a folder of the file system.
func InstalledWheel(site, program, module string) (string, error) {
	root, err := os.OpenRoot(site)
	if err != nil {
		return "", fmt.Errorf("listing the installed packages: %w", err)
	}
	defer func() { _ = root.Close() }() // only read from
	return WheelOf(confined{root}, program, module)
}

const distInfo = ".dist-info"

// distInfo finds the first *.dist-info folder that fits; "" when none does.
func (r *mentionReader) distInfo(fits func(info string) bool) (string, error) {
	entries, err := r.list(".")
	if err != nil {
		return "", fmt.Errorf("listing the installed packages: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasSuffix(e.Name(), distInfo) && fits(e.Name()) {
			return e.Name(), nil
		}
	}
	return "", nil
}

// maxRecord bounds a RECORD, in bytes.
const maxRecord = 8 << 20

// record lists the files of a package, as paths from the site-packages folder.
func (r *mentionReader) record(info string) ([]string, error) {
	f, err := r.folder.Open(info + "/RECORD")
	if err != nil {
		return nil, fmt.Errorf("reading the files of %q: %w", info, err)
	}
	defer func() { _ = f.Close() }() // only read from
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("reading the files of %q: RECORD is no regular file", info)
	}
	rows := csv.NewReader(io.LimitReader(f, maxRecord))
	rows.FieldsPerRecord = -1
	var files []string
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the files of %q: %w", info, err)
		}
		files = append(files, row[0])
	}
}

// ownPart tells whether a file is what runs, and not a test or a copy of another package.
func ownPart(name string) bool {
	for _, out := range leftOut {
		if strings.Contains("/"+name, "/"+out+"/") {
			return false
		}
	}
	return true
}

// wheelName is the one spelling of a package's name, taken from NAME-VERSION.dist-info or a
// name on PyPI (PEP 503). A folder's name has no dash before the version.
func wheelName(s string) string {
	if base, found := strings.CutSuffix(s, distInfo); found {
		s, _, _ = strings.Cut(base, "-")
	}
	return canonicalPython(s)
}
