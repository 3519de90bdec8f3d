package program_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/program"
)

func TestMain(m *testing.M) { jailtest.Main(m, victims) }

// world is a machine made of files in one folder: a loader, libraries, programs, a home.
type world struct {
	testing.TB
	root string // real path
	home string
	dir  string // working folder, below home
	env  map[string]string
}

// newWorld makes a world with a loader at lib/ld.so whose built-in folder is lib, and
// PATH=usr/bin.
func newWorld(tb testing.TB) *world {
	tb.Helper()
	root, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{TB: tb, root: root, home: root + "/home/me", dir: root + "/home/me/code"}
	w.env = map[string]string{"PATH": root + "/usr/bin", "HOME": w.home}
	w.folder("home/me/code")
	w.elf("lib/ld.so", elfFile{soName: "ld.so", tail: "\x00" + root + "/etc/ld.so.cache\x00" + root + "/lib/\x00"})
	w.elf("lib/libc.so.6", elfFile{soName: "libc.so.6"})
	return w
}

func (w *world) facts() program.Facts {
	return program.Facts{Home: w.home, Dir: w.dir, Env: w.env}
}

// at is the absolute form of a path in the world. Absolute paths stay.
func (w *world) at(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return w.root + "/" + path
}

func (w *world) folder(path string) {
	w.Helper()
	if err := os.MkdirAll(w.at(path), 0o755); err != nil {
		w.Fatal(err)
	}
}

func (w *world) write(path, content string, mode os.FileMode) {
	w.Helper()
	w.folder(filepath.Dir(w.at(path)))
	if err := os.WriteFile(w.at(path), []byte(content), mode); err != nil {
		w.Fatal(err)
	}
	if err := os.Chmod(w.at(path), mode); err != nil {
		w.Fatal(err)
	}
}

// file makes a file that is only read; script one that may be executed. Both replace
// ROOT by the world's folder.
func (w *world) file(path, content string) {
	w.Helper()
	w.write(path, strings.ReplaceAll(content, "ROOT", w.root), 0o644)
}

func (w *world) script(path, content string) {
	w.Helper()
	w.write(path, strings.ReplaceAll(content, "ROOT", w.root), 0o755)
}

func (w *world) link(target, path string) {
	w.Helper()
	w.folder(filepath.Dir(w.at(path)))
	if err := os.Symlink(strings.ReplaceAll(target, "ROOT", w.root), w.at(path)); err != nil {
		w.Fatal(err)
	}
}

// program makes a dynamic program that needs libc.
func (w *world) program(path string) {
	w.Helper()
	w.elf(path, elfFile{loader: w.at("lib/ld.so"), needed: []string{"libc.so.6"}})
}

func (w *world) elf(path string, e elfFile) {
	w.Helper()
	w.write(path, string(e.bytes()), 0o755)
}

func (w *world) resolve(argv ...string) (program.Program, error) {
	for i, arg := range argv {
		argv[i] = strings.ReplaceAll(arg, "ROOT", w.root)
	}
	return program.Resolve(argv, w.facts())
}

func (w *world) mustResolve(argv ...string) program.Program {
	w.Helper()
	p, err := w.resolve(argv...)
	if err != nil {
		w.Fatalf("Resolve(%q): %v", argv, err)
	}
	return p
}

// rel shortens paths inside of the world and sorts nothing.
func (w *world) rel(paths ...string) []string {
	var short []string
	for _, path := range paths {
		short = append(short, strings.ReplaceAll(path, w.root, "ROOT"))
	}
	return short
}

// reads are the needs inside of the world, sorted.
func (w *world) reads(needs []program.Need) []string {
	var paths []string
	for _, n := range needs {
		if path, ok := strings.CutPrefix(n.Path, w.root+"/"); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// notes joins the notes, shortened.
func (w *world) notes(p program.Program) string {
	return strings.ReplaceAll(strings.Join(p.Notes, "\n"), w.root, "ROOT")
}

// with returns a copy of the world with other variables.
func (w *world) with(variables map[string]string) *world {
	other := *w
	other.env = maps.Clone(w.env)
	for name, value := range variables {
		other.env[name] = strings.ReplaceAll(value, "ROOT", w.root)
	}
	return &other
}

// in returns a copy of the world with another working folder, which it makes.
func (w *world) in(dir string) *world {
	other := *w
	other.dir = w.at(dir)
	w.folder(dir)
	return &other
}

// elfFile is the smallest ELF file with what a loader reads.
type elfFile struct {
	loader         string
	needed         []string
	soName         string
	rPath, runPath string
	flags1         uint64
	class          byte   // 0 for this machine's
	machine        uint16 // 0 for this machine's
	kind           uint16 // e_type; 0 for a shared object's
	tail           string // put behind everything
}

func hostMachine() uint16 {
	switch runtime.GOARCH {
	case "amd64":
		return 62
	case "arm64":
		return 183
	}
	panic("no ELF number known for " + runtime.GOARCH)
}

// bytes lays the file out as header, program headers, strings, dynamic section, loader
// name; everything is mapped at address 0x10000 plus its offset.
func (e elfFile) bytes() []byte {
	if e.class == 0 {
		e.class = 2
	}
	if e.machine == 0 {
		e.machine = hostMachine()
	}
	wide := e.class == 2
	word := func(b *bytes.Buffer, values ...uint64) {
		for _, v := range values {
			if wide {
				b.Write(binary.LittleEndian.AppendUint64(nil, v))
			} else {
				b.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
			}
		}
	}
	const base = 0x10000
	headerSize, entrySize := uint64(64), uint64(56)
	if !wide {
		headerSize, entrySize = 52, 32
	}
	texts := bytes.NewBufferString("\x00")
	text := func(s string) uint64 {
		at := uint64(texts.Len())
		texts.WriteString(s + "\x00")
		return at
	}
	var dynamic bytes.Buffer
	for _, name := range e.needed {
		word(&dynamic, 1, text(name))
	}
	for tag, value := range map[uint64]string{14: e.soName, 15: e.rPath, 29: e.runPath} {
		if value != "" {
			word(&dynamic, tag, text(value))
		}
	}
	if e.flags1 != 0 {
		word(&dynamic, 0x6ffffffb, e.flags1)
	}
	count := uint64(2)
	if e.loader != "" {
		count++
	}
	textsAt := headerSize + count*entrySize
	word(&dynamic, 5, base+textsAt, 10, uint64(texts.Len()), 0, 0)
	dynamicAt := textsAt + uint64(texts.Len())
	loaderAt := dynamicAt + uint64(dynamic.Len())
	end := loaderAt + uint64(len(e.loader)) + 1

	var out bytes.Buffer
	out.Write([]byte{0x7f, 'E', 'L', 'F', e.class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	half := func(values ...uint16) {
		for _, v := range values {
			out.Write(binary.LittleEndian.AppendUint16(nil, v))
		}
	}
	if e.kind == 0 {
		e.kind = 3
	}
	half(e.kind, e.machine)
	out.Write(binary.LittleEndian.AppendUint32(nil, 1))
	word(&out, 0, headerSize, 0)
	out.Write(binary.LittleEndian.AppendUint32(nil, 0))
	half(uint16(headerSize), uint16(entrySize), uint16(count), 0, 0, 0)
	segment := func(kind uint32, at, size uint64) {
		out.Write(binary.LittleEndian.AppendUint32(nil, kind))
		if wide {
			out.Write(binary.LittleEndian.AppendUint32(nil, 4))
		}
		word(&out, at, base+at, base+at, size, size)
		if !wide {
			out.Write(binary.LittleEndian.AppendUint32(nil, 4))
		}
		word(&out, 1)
	}
	segment(1, 0, end)
	segment(2, dynamicAt, uint64(dynamic.Len()))
	if e.loader != "" {
		segment(3, loaderAt, uint64(len(e.loader))+1)
	}
	out.Write(texts.Bytes())
	out.Write(dynamic.Bytes())
	out.WriteString(e.loader + "\x00")
	out.WriteString(e.tail)
	return out.Bytes()
}
