package program_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/program"
)

// cacheEntry is one library in a loader cache.
type cacheEntry struct {
	name, path string
	flags      uint32 // 0 for this machine's
	hwcap      uint64
}

// loaderCache writes the format glibc-ld.so.cache1.1. Entries must come in the loader's
// order, from high to low.
func loaderCache(entries ...cacheEntry) string {
	own := map[uint16]uint32{62: 0x0303, 183: 0x0a03}[hostMachine()]
	var table, texts bytes.Buffer
	at := uint32(48 + 24*len(entries))
	text := func(s string) uint32 {
		offset := at + uint32(texts.Len())
		texts.WriteString(s + "\x00")
		return offset
	}
	for _, e := range entries {
		if e.flags == 0 {
			e.flags = own
		}
		for _, v := range []uint32{e.flags, text(e.name), text(e.path), 0} {
			table.Write(binary.LittleEndian.AppendUint32(nil, v))
		}
		table.Write(binary.LittleEndian.AppendUint64(nil, e.hwcap))
	}
	var out bytes.Buffer
	out.WriteString("glibc-ld.so.cache1.1")
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(entries))))
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(texts.Len())))
	out.Write(make([]byte, 20))
	return out.String() + table.String() + texts.String()
}

func TestClosureOfLibraries(t *testing.T) {
	w := newWorld(t)
	lib := func(path string, e elfFile) {
		if e.soName == "" {
			e.soName = filepath.Base(path)
		}
		w.elf(path, e)
	}
	loader := w.at("lib/ld.so")
	// A chain: a needs b needs c; names repeat.
	lib("lib/liba.so", elfFile{needed: []string{"libb.so", "libc.so.6"}})
	lib("lib/libb.so", elfFile{needed: []string{"libcc.so"}})
	lib("lib/libcc.so", elfFile{needed: []string{"liba.so"}})
	// The same name in two folders.
	lib("one/libx.so", elfFile{})
	lib("two/libx.so", elfFile{})
	// Decoys: another width, another machine, no ELF file, a folder.
	lib("narrow/libx.so", elfFile{class: 1})
	lib("foreign/libx.so", elfFile{machine: 8})
	w.file("text/libx.so", "INPUT(libx.so.1)\n")
	w.folder("folder/libx.so")
	// Inherited and own search folders.
	lib("one/libpath.so", elfFile{needed: []string{"libdeep.so"}})
	lib("one/libdeep.so", elfFile{})
	lib("two/libdeep.so", elfFile{})
	lib("one/libown.so", elfFile{needed: []string{"libdeep.so"}, runPath: w.at("two")})
	lib("app/lib/liborigin.so", elfFile{needed: []string{"libbeside.so"}, runPath: "$ORIGIN"})
	lib("app/lib/libbeside.so", elfFile{})
	lib("store/libhash.so", elfFile{soName: "libname.so"})
	w.link("ROOT/store/libhash.so", "lib/libname.so")
	w.link("ROOT/app/lib/liborigin.so", "linked/liborigin.so")
	lib("linked/libbeside.so", elfFile{})
	// In the cache only.
	lib("hidden/libcached.so.1", elfFile{})
	lib("hidden/v3/libcached.so.1", elfFile{needed: []string{"libb.so"}})
	lib("hidden/libnarrow.so.1", elfFile{class: 1})
	lib("lib/libnarrow.so.1", elfFile{})
	lib("hidden/libother.so.1", elfFile{})
	w.file("etc/ld.so.cache", loaderCache(
		cacheEntry{name: "libother.so.1", path: w.at("hidden/libother.so.1"), flags: 0x0003},
		cacheEntry{name: "libnarrow.so.1", path: w.at("hidden/libnarrow.so.1")},
		cacheEntry{name: "libcached.so.1", path: w.at("hidden/v3/libcached.so.1"), hwcap: 1 << 62},
		cacheEntry{name: "libcached.so.1", path: w.at("hidden/libcached.so.1")},
	))

	tests := []struct {
		name    string
		program elfFile
		want    []string // beside the cache
		note    string
	}{
		{name: "nothing needed"},
		{name: "chain", program: elfFile{needed: []string{"liba.so"}}, want: []string{"lib/liba.so", "lib/libb.so", "lib/libc.so.6", "lib/libcc.so"}},
		{name: "run path", program: elfFile{needed: []string{"libx.so"}, runPath: w.at("two") + ":" + w.at("one")}, want: []string{"two/libx.so"}},
		{name: "old path", program: elfFile{needed: []string{"libx.so"}, rPath: w.at("one") + ":" + w.at("two")}, want: []string{"one/libx.so"}},
		{name: "run path beats old path", program: elfFile{needed: []string{"libx.so"}, rPath: w.at("one"), runPath: w.at("two")}, want: []string{"two/libx.so"}},
		{name: "wrong width first", program: elfFile{needed: []string{"libx.so"}, runPath: w.at("narrow") + ":" + w.at("one")}, want: []string{"one/libx.so"}},
		{name: "wrong machine first", program: elfFile{needed: []string{"libx.so"}, runPath: w.at("foreign") + ":" + w.at("one")}, want: []string{"one/libx.so"}},
		{name: "text and folder first", program: elfFile{needed: []string{"libx.so"}, runPath: w.at("text") + ":" + w.at("folder") + ":" + w.at("one")}, want: []string{"one/libx.so"}},
		{name: "empty and relative elements", program: elfFile{needed: []string{"libx.so"}, runPath: ":lib:" + w.at("two") + "/:"}, want: []string{"two/libx.so"}},
		{name: "old path is inherited", program: elfFile{needed: []string{"libpath.so"}, rPath: w.at("one")}, want: []string{"one/libdeep.so", "one/libpath.so"}},
		{name: "run path is not inherited", program: elfFile{needed: []string{"libpath.so"}, runPath: w.at("one")}, want: []string{"one/libpath.so"}, note: `library "libdeep.so" of "ROOT/usr/bin/p" was not found`},
		{name: "library's own run path", program: elfFile{needed: []string{"libown.so"}, rPath: w.at("one")}, want: []string{"one/libown.so", "two/libdeep.so"}},
		{name: "origin of the program", program: elfFile{needed: []string{"liborigin.so"}, runPath: "${ORIGIN}/../../app/lib"}, want: []string{"app/lib/libbeside.so", "app/lib/liborigin.so"}},
		{name: "origin is where a link was found", program: elfFile{needed: []string{"liborigin.so"}, runPath: w.at("linked")}, want: []string{"app/lib/liborigin.so", "linked/libbeside.so"}},
		{name: "link to another name", program: elfFile{needed: []string{"libname.so"}}, want: []string{"store/libhash.so"}},
		{name: "path as a name", program: elfFile{needed: []string{"$ORIGIN/../../one/libx.so"}}, want: []string{"one/libx.so"}},
		{name: "cache with a variant", program: elfFile{needed: []string{"libcached.so.1"}}, want: []string{"hidden/libcached.so.1", "hidden/v3/libcached.so.1", "lib/libb.so", "lib/libc.so.6", "lib/libcc.so", "lib/liba.so"}},
		{name: "cache entry of another width", program: elfFile{needed: []string{"libnarrow.so.1"}}, want: []string{"lib/libnarrow.so.1"}},
		{name: "cache entry of another ABI", program: elfFile{needed: []string{"libother.so.1"}}, note: `library "libother.so.1" of "ROOT/usr/bin/p" was not found`},
		{name: "neither cache nor defaults", program: elfFile{needed: []string{"libcached.so.1"}, flags1: 0x800}, note: `library "libcached.so.1" of "ROOT/usr/bin/p" was not found`},
		{name: "the loader itself", program: elfFile{needed: []string{"ld.so"}}},
		{name: "missing", program: elfFile{needed: []string{"libgone.so"}}, note: `library "libgone.so" of "ROOT/usr/bin/p" was not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.program.loader = loader
			w.elf("usr/bin/p", tt.program)
			p, err := w.resolve("p")
			if err != nil {
				t.Fatal(err)
			}
			want := append(tt.want, "etc/ld.so.cache")
			slices.Sort(want)
			if diff := cmp.Diff(want, w.reads(p.Read)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"ROOT/usr/bin/p", "ROOT/lib/ld.so"}, w.rel(p.Execute...)); diff != "" {
				t.Errorf("execute (-want +got):\n%s", diff)
			}
			if got := w.notes(p); got != tt.note {
				t.Errorf("notes %q, want %q", got, tt.note)
			}
		})
	}
}

func TestSearchPathOfTheHostIsNotFollowed(t *testing.T) {
	w := newWorld(t).with(map[string]string{"LD_LIBRARY_PATH": "ROOT/one"})
	w.elf("one/libx.so", elfFile{})
	w.elf("usr/bin/p", elfFile{loader: w.at("lib/ld.so"), needed: []string{"libx.so"}})
	p := w.mustResolve("p")
	want := `library "libx.so" of "ROOT/usr/bin/p" was not found; LD_LIBRARY_PATH is not looked at, because the jail does not pass it by itself`
	if w.notes(p) != want || w.reads(p.Read) != nil {
		t.Errorf("notes %q, read %q", w.notes(p), w.reads(p.Read))
	}
}

// TestLibrariesThatLibcOpens covers what glibc loads behind a program's back, now and
// before 2.34, when names were resolved by libraries of their own.
func TestLibrariesThatLibcOpens(t *testing.T) {
	for _, tt := range []struct {
		libc string
		want []string
	}{
		{"libc.so.6", []string{"lib/libc.so.6", "lib/libgcc_s.so.1"}},
		{"libc-2.31.so", []string{"lib/libc-2.31.so", "lib/libgcc_s.so.1", "lib/libnss_dns.so.2", "lib/libnss_files.so.2", "lib/libresolv.so.2"}},
	} {
		t.Run(tt.libc, func(t *testing.T) {
			w := newWorld(t)
			if tt.libc != "libc.so.6" {
				if err := os.Rename(w.at("lib/libc.so.6"), w.at("lib/"+tt.libc)); err != nil {
					t.Fatal(err)
				}
				w.link(tt.libc, "lib/libc.so.6")
			}
			w.elf("lib/libgcc_s.so.1", elfFile{needed: []string{"libc.so.6"}})
			w.elf("lib/libnss_files.so.2", elfFile{})
			w.elf("lib/libnss_dns.so.2", elfFile{needed: []string{"libresolv.so.2"}})
			w.elf("lib/libresolv.so.2", elfFile{})
			w.file("lib/gconv/gconv-modules.cache", "")
			w.program("usr/bin/p")
			p := w.mustResolve("p")
			if diff := cmp.Diff(append([]string{"lib/gconv/gconv-modules.cache"}, tt.want...), w.reads(p.Read)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if len(p.Notes) != 0 {
				t.Errorf("notes %q", p.Notes)
			}
		})
	}
}

func TestProgramsWithOpenSSLReadItsPolicy(t *testing.T) {
	w := newWorld(t)
	w.elf("opt/lib/libcrypto.so.3", elfFile{})
	w.file("opt/ssl/openssl.cnf", "")
	w.elf("usr/bin/p", elfFile{loader: w.at("lib/ld.so"), needed: []string{"libcrypto.so.3"}, runPath: w.at("opt/lib")})
	p := w.mustResolve("p")
	if diff := cmp.Diff([]string{"opt/lib/libcrypto.so.3", "opt/ssl/openssl.cnf"}, w.reads(p.Read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestDamagedLoaderCacheLeavesTheFolders(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/p")
	for name, cache := range map[string]string{
		"empty":      "",
		"other text": "hello",
		"cut off":    loaderCache(cacheEntry{name: "libc.so.6", path: "/x"})[:50],
		"wild count": "glibc-ld.so.cache1.1\xff\xff\xff\xff" + strings.Repeat("\x00", 24),
	} {
		t.Run(name, func(t *testing.T) {
			w.file("etc/ld.so.cache", cache)
			p := w.mustResolve("p")
			if diff := cmp.Diff([]string{"lib/libc.so.6"}, w.reads(p.Read)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaticProgramsNeedNoLoader(t *testing.T) {
	w := newWorld(t)
	w.elf("usr/bin/static", elfFile{})
	p := w.mustResolve("static", "a")
	if diff := cmp.Diff([]string{"ROOT/usr/bin/static"}, w.rel(p.Execute...)); diff != "" {
		t.Errorf("execute (-want +got):\n%s", diff)
	}
	if got := w.reads(p.Read); got != nil {
		t.Errorf("read %q", got)
	}
}

func TestMuslLoader(t *testing.T) {
	w := newWorld(t)
	loader := w.at("alpine/lib/ld-musl-x86_64.so.1")
	w.elf("alpine/lib/ld-musl-x86_64.so.1", elfFile{})
	w.elf("alpine/lib/libz.so.1", elfFile{needed: []string{"libc.musl-x86_64.so.1"}, runPath: ""})
	w.link("ld-musl-x86_64.so.1", "alpine/lib/libc.musl-x86_64.so.1")
	w.elf("alpine/opt/libown.so", elfFile{needed: []string{"libinherited.so"}})
	w.elf("alpine/opt/libinherited.so", elfFile{})
	w.file("alpine/etc/ld-musl-x86_64.path", w.at("alpine/none")+"\n"+w.at("alpine/lib")+":relative\n")
	w.elf("usr/bin/p", elfFile{
		loader: loader, runPath: w.at("alpine/opt"),
		needed: []string{"libz.so.1", "libc.so", "libown.so", "libpthread.so"},
	})
	p := w.mustResolve("p")
	want := []string{"alpine/etc/ld-musl-x86_64.path", "alpine/lib/libz.so.1", "alpine/opt/libinherited.so", "alpine/opt/libown.so"}
	if diff := cmp.Diff(want, w.reads(p.Read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ROOT/usr/bin/p", "ROOT/alpine/lib/ld-musl-x86_64.so.1"}, w.rel(p.Execute...)); diff != "" {
		t.Errorf("execute (-want +got):\n%s", diff)
	}
	for _, n := range p.Read {
		if strings.HasSuffix(n.Path, ".path") && n.Optional {
			t.Error("musl finds nothing when its list of folders is there and refused, so it is not optional")
		}
		if strings.Contains(n.Path, "locale") || strings.Contains(n.Path, "gconv") {
			t.Errorf("a musl program reads glibc's %q", n.Path)
		}
	}
	if len(p.Notes) != 0 {
		t.Errorf("notes %q", p.Notes)
	}
}

// ldd asks the system's own loader for the libraries of files.
func ldd(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	text, err := exec.Command("ldd", files...).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	paths := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		_, target, found := strings.Cut(strings.TrimSpace(line), " => ")
		if path, _, _ := strings.Cut(target, " ("); found && strings.HasPrefix(path, "/") {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				t.Fatal(err)
			}
			paths[real] = true
		}
	}
	if len(paths) == 0 {
		t.Fatalf("ldd %q named no library: %s", files, text)
	}
	return paths
}

func realFacts(t *testing.T) program.Facts {
	t.Helper()
	return program.Facts{
		Home: t.TempDir(), Dir: t.TempDir(),
		Env: map[string]string{"PATH": os.Getenv("PATH")},
	}
}

func TestClosureAgreesWithTheLoader(t *testing.T) {
	for _, name := range []string{"node", "git", "ls", "sh"} {
		t.Run(name, func(t *testing.T) {
			p, err := program.Resolve([]string{name}, realFacts(t))
			if err != nil {
				t.Fatal(err)
			}
			want := ldd(t, p.File)
			for _, n := range p.Read {
				if !strings.HasPrefix(n.Why, "library of ") {
					continue
				}
				if !want[n.Path] && filepath.Base(n.Path) != "libgcc_s.so.1" {
					t.Errorf("%q is readable and no library of it", n.Path)
				}
				delete(want, n.Path)
			}
			for path := range want {
				if !slices.Contains(p.Execute, path) {
					t.Errorf("%q is not readable", path)
				}
			}
		})
	}
}

// TestProgramsAreNoLibraries: a needed name must not make a program readable, which the
// loader could start then.
func TestProgramsAreNoLibraries(t *testing.T) {
	const site = "usr/lib/python3.11/site-packages/"
	build := func(t *testing.T) *world {
		t.Helper()
		w := pythonWorld(t)
		w.program("usr/bin/dash")
		w.program("usr/bin/libdash.so")
		w.link("dash", "usr/bin/liblink.so")
		w.elf("usr/bin/libpie.so", elfFile{flags1: 0x08000000})
		w.elf("usr/bin/libexec.so", elfFile{kind: 2})
		w.elf("usr/bin/libgood.so", elfFile{})
		w.elf("lib/libself.so.1", elfFile{loader: w.at("lib/ld.so")})
		w.program("lib/tool")
		return w
	}
	tests := []struct{ name, needed, want, note string }{
		{"path of a program", "/usr/bin/dash", "", `asks for the library "/usr/bin/dash" by a path`},
		{"path of a library", "ROOT/usr/bin/libgood.so", "", `asks for the library "ROOT/usr/bin/libgood.so" by a path`},
		{"path from its own folder", "$ORIGIN/../../../bin/libgood.so", "", "by a path, which is not followed"},
		{"program", "dash", "", `asks for "ROOT/usr/bin/dash", which is a program and no library`},
		{"program under a library's name", "libdash.so", "", `asks for "ROOT/usr/bin/libdash.so", which is a program`},
		{"link to a program", "liblink.so", "", `asks for "ROOT/usr/bin/dash", which is a program`},
		{"program without a loader of its own", "libpie.so", "", `asks for "ROOT/usr/bin/libpie.so", which is a program`},
		{"static program", "libexec.so", "", `asks for "ROOT/usr/bin/libexec.so", which is a program`},
		{"program beside the loader", "tool", "", `asks for "ROOT/lib/tool", which is a program`},
		{"library", "libgood.so", "usr/bin/libgood.so", ""},
		{"the loader's own library that starts", "libself.so.1", "lib/libself.so.1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := build(t)
			needed := strings.ReplaceAll(tt.needed, "ROOT", w.root)
			w.elf(site+"pkg/_x.so", elfFile{needed: []string{needed}, runPath: w.at("usr/bin")})
			p := w.mustResolve("python3")
			want := []string{"lib/libc.so.6", "usr/lib/python3.11"}
			if tt.want != "" {
				want = append(want, tt.want)
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, w.reads(p.Read)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if notes := w.notes(p); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
	// A program's own needs.
	w := build(t)
	w.elf("usr/bin/p", elfFile{loader: w.at("lib/ld.so"), needed: []string{w.at("usr/bin/dash"), "libself.so.1", w.at("usr/bin/libgood.so")}})
	p := w.mustResolve("p")
	if diff := cmp.Diff([]string{"lib/libself.so.1", "usr/bin/libgood.so"}, w.reads(p.Read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if want := `"ROOT/usr/bin/p" asks for "ROOT/usr/bin/dash", which is a program and no library`; w.notes(p) != want {
		t.Errorf("notes %q, want %q", w.notes(p), want)
	}
	// A program in the place of the loader, which would become executable.
	w.elf("usr/bin/q", elfFile{loader: w.at("usr/bin/dash")})
	_, err := w.resolve("q")
	if refused, ok := asRefused(err); !ok || refused.Reason != "its loader cannot be read" || !strings.Contains(err.Error(), "a program and no loader") {
		t.Errorf("error %v", err)
	}
}
