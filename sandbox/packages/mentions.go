package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Mentions is what a package's own files name: variables of the environment, and hosts. It
// is a proposal for a person and never a grant: whoever wrote the package wrote these too,
// and a name that is put together when the program runs is not found.
type Mentions struct {
	Secrets   []Mention // variables whose names say that they hold a secret
	Variables []Mention // other variables
	Hosts     []Mention // "api.example.com:443", from https:// literals of code
	// Cut says that there was more than the bounds let be read.
	Cut bool
}

// Mention is one name, and the first place that names it: documentation before code.
type Mention struct {
	Name string
	File string // below the folder that was read, with slashes
	Line int    // 1-based
}

// Place is "file:line".
func (m Mention) Place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// Bounds of one reading.
const (
	maxMentionFiles   = 3000
	maxMentionEntries = 20000
	maxMentionFile    = 4 << 20  // bytes of one file; the rest of it is not read
	maxMentionBytes   = 48 << 20 // bytes of all files
	maxMentionDepth   = 12       // folders below the first
)

// ReadMentions reads a package's folder. Links are not followed, and of the folders below,
// those of dependencies, tests and version control are left out. A file that cannot be
// read is passed over; a folder itself that cannot be listed is an error.
func ReadMentions(folder fs.FS) (Mentions, error) {
	r := newMentionReader(folder)
	if err := r.walk(); err != nil {
		return Mentions{}, fmt.Errorf("reading what a package names: %w", err)
	}
	return r.result(), nil
}

// MentionsOf reads what an ordinary folder of the file system names, as [ReadMentions]
// does. Nothing outside of it is opened, and nothing that is no regular file.
func MentionsOf(folder string) (Mentions, error) {
	return inRoot(folder, ReadMentions)
}

// MentionsOfFile reads what a single file names, for a script that is no package's. Without
// an ending that says its language, its first line does.
func MentionsOfFile(file string) (Mentions, error) {
	return inRoot(path.Dir(file), func(folder fs.FS) (Mentions, error) {
		r := newMentionReader(folder)
		r.read(path.Base(file), byFirstLine)
		return r.result(), nil
	})
}

func inRoot(folder string, read func(fs.FS) (Mentions, error)) (Mentions, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Mentions{}, fmt.Errorf("reading what a package names: %w", err)
	}
	defer func() { _ = root.Close() }() // only read from
	return read(confined{root})
}

// confined is a folder's files. A fifo in the place of a file is opened without waiting,
// and the reader sees that it is no regular file.
type confined struct{ root *os.Root }

// Open opens a file or folder below the root.
func (c confined) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return c.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// mentionReader is one reading.
type mentionReader struct {
	folder  fs.FS
	files   int
	entries int
	bytes   int64
	cut     bool

	variables map[string]ranked
	hosts     map[string]ranked
	secret    map[string]bool // a manifest says that it is one
}

// ranked is a mention with how much its source is worth: 0 manifest or documentation, 1
// code.
type ranked struct {
	Mention
	rank int
}

func newMentionReader(folder fs.FS) *mentionReader {
	return &mentionReader{folder: folder, variables: map[string]ranked{}, hosts: map[string]ranked{}, secret: map[string]bool{}}
}

// leftOut are folders that are not the package's own, or not what runs.
var leftOut = [...]string{
	"node_modules", "bower_components", "vendor", "third_party", "site-packages",
	"test", "tests", "__tests__", "spec", "fixtures", "__mocks__", "__pycache__", "coverage",
}

// walk reads the folder and those below it, the upper ones first: there is the
// documentation, and a bound should cut the rest.
func (r *mentionReader) walk() error {
	type level struct {
		path  string
		depth int
	}
	queue := []level{{".", 0}}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		entries, err := r.list(at.path)
		if err != nil {
			if at.depth == 0 {
				return err
			}
			continue
		}
		for _, e := range entries {
			name := path.Join(at.path, e.Name())
			switch {
			case e.Type().IsRegular():
				r.file(name)
			case !e.IsDir() || e.Name()[0] == '.' || slices.Contains(leftOut[:], e.Name()):
			case at.depth == maxMentionDepth:
				r.cut = true
			default:
				queue = append(queue, level{name, at.depth + 1})
			}
		}
	}
	return nil
}

// list returns the entries of a folder, sorted. It asks for no more than may be looked at.
func (r *mentionReader) list(folder string) ([]fs.DirEntry, error) {
	f, err := r.folder.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "list", Path: folder, Err: fs.ErrInvalid}
	}
	left := maxMentionEntries - r.entries
	if left <= 0 {
		r.cut = true
		return nil, nil
	}
	entries, err := dir.ReadDir(left + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > left {
		entries, r.cut = entries[:left], true
	}
	r.entries += len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// file reads one file, if it is of a kind that says something.
func (r *mentionReader) file(name string) {
	if look := lookerFor(name); look != nil {
		r.read(name, look)
	}
}

// read reads one file for a look at it.
func (r *mentionReader) read(name string, look func(*page)) {
	if r.files == maxMentionFiles || r.bytes >= maxMentionBytes {
		r.cut = true
		return
	}
	f, err := r.folder.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	limit := min(maxMentionFile, maxMentionBytes-r.bytes)
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return
	}
	if int64(len(data)) > limit {
		data, r.cut = data[:limit], true
	}
	r.files++
	r.bytes += int64(len(data))
	look(&page{reader: r, file: name, text: string(data)})
}

// lookerFor tells by its name what a file is; nil for files that say nothing.
func lookerFor(name string) func(*page) {
	base := path.Base(name)
	lower := strings.ToLower(base)
	extension := path.Ext(lower)
	switch {
	case lower == "server.json":
		return (*page).manifest
	case strings.HasPrefix(lower, ".env"):
		if strings.Contains(lower, "example") || strings.Contains(lower, "sample") || strings.Contains(lower, "template") {
			return (*page).settings
		}
		return nil // a person's own, with values
	case strings.HasPrefix(lower, "changelog"), strings.HasPrefix(lower, "history"), strings.HasPrefix(lower, "license"), strings.HasSuffix(lower, ".d.ts"):
		return nil
	case extension == ".md", extension == ".mdx", extension == ".rst", extension == ".adoc", strings.HasPrefix(lower, "readme"), base == "METADATA":
		return (*page).documentation
	case extension == ".py":
		return (*page).python
	}
	switch extension {
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
		if strings.Contains(lower, ".test.") || strings.Contains(lower, ".spec.") || strings.Contains(lower, ".config.") {
			return nil
		}
		return (*page).script
	}
	return nil
}

// byFirstLine looks at a file that was named by itself.
func byFirstLine(p *page) {
	if look := lookerFor(p.file); look != nil {
		look(p)
		return
	}
	first, _, _ := strings.Cut(p.text, "\n")
	switch {
	case !strings.HasPrefix(first, "#!"):
	case strings.Contains(first, "python"):
		p.python()
	case strings.Contains(first, "node"), strings.Contains(first, "bun"), strings.Contains(first, "deno"), strings.Contains(first, "tsx"):
		p.script()
	}
}

// result sorts what was found: what is documented first, then by name.
func (r *mentionReader) result() Mentions {
	sorted := func(found map[string]ranked) []Mention {
		list := make([]ranked, 0, len(found))
		for _, m := range found {
			list = append(list, m)
		}
		slices.SortFunc(list, func(a, b ranked) int { return cmp.Or(a.rank-b.rank, cmp.Compare(a.Name, b.Name)) })
		var out []Mention
		for _, m := range list {
			out = append(out, m.Mention)
		}
		return out
	}
	m := Mentions{Hosts: sorted(r.hosts), Cut: r.cut}
	for _, v := range sorted(r.variables) {
		if r.secret[v.Name] || secretVariable(v.Name) {
			m.Secrets = append(m.Secrets, v)
		} else {
			m.Variables = append(m.Variables, v)
		}
	}
	return m
}

// page is one file while it is read.
type page struct {
	reader *mentionReader
	file   string
	text   string
	rank   int

	counted, line int // lines up to an offset
}

// place counts lines up to an offset. Offsets mostly grow, so no part is counted twice.
func (p *page) place(offset int) int {
	if offset < p.counted {
		p.counted, p.line = 0, 0
	}
	p.line += strings.Count(p.text[p.counted:offset], "\n")
	p.counted = offset
	return p.line + 1
}

// variable notes the name of a variable.
func (p *page) variable(name string, offset int) {
	if variableName(name) && !ordinaryVariable(name) {
		p.note(p.reader.variables, name, offset)
	}
}

func (p *page) note(found map[string]ranked, name string, offset int) {
	if have, known := found[name]; known && have.rank <= p.rank {
		return
	}
	found[name] = ranked{Mention{Name: name, File: p.file, Line: p.place(offset)}, p.rank}
}
