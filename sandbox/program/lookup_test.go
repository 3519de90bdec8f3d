package program_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/program"
)

func TestResolveFindsPrograms(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/plain")
	w.program("opt/with blank/größe\nzwei")
	w.program("home/me/code/-dash")
	w.program("home/me/code/local")
	w.link("../../usr/bin/plain", "opt/tools/linked")
	w.link("ROOT/opt", "srv")
	w.program("usr/bin/-dash")

	tests := []struct {
		name       string
		argv       []string
		named, arg string // Named and Argv[0]
		file       string
	}{
		{"on PATH", []string{"plain"}, "ROOT/usr/bin/plain", "ROOT/usr/bin/plain", "ROOT/usr/bin/plain"},
		{"absolute", []string{"ROOT/usr/bin/plain"}, "ROOT/usr/bin/plain", "ROOT/usr/bin/plain", "ROOT/usr/bin/plain"},
		{"relative to the working folder", []string{"./local"}, "ROOT/home/me/code/local", "ROOT/home/me/code/local", "ROOT/home/me/code/local"},
		{"upwards", []string{"../code/local"}, "ROOT/home/me/code/../code/local", "ROOT/home/me/code/../code/local", "ROOT/home/me/code/local"},
		{"upwards through a link", []string{"ROOT/srv/../usr/bin/plain"}, "ROOT/srv/../usr/bin/plain", "ROOT/srv/../usr/bin/plain", "ROOT/usr/bin/plain"},
		{"a link", []string{"ROOT/opt/tools/linked"}, "ROOT/opt/tools/linked", "ROOT/opt/tools/linked", "ROOT/usr/bin/plain"},
		{"through a linked folder", []string{"ROOT/srv/tools/linked"}, "ROOT/srv/tools/linked", "ROOT/srv/tools/linked", "ROOT/usr/bin/plain"},
		{"blanks, letters, line ends", []string{"ROOT/opt/with blank/größe\nzwei"}, "ROOT/opt/with blank/größe\nzwei", "ROOT/opt/with blank/größe\nzwei", "ROOT/opt/with blank/größe\nzwei"},
		{"a dash in front", []string{"./-dash"}, "ROOT/home/me/code/-dash", "ROOT/home/me/code/-dash", "ROOT/home/me/code/-dash"},
		{"a dash in front, on PATH", []string{"-dash"}, "ROOT/usr/bin/-dash", "ROOT/usr/bin/-dash", "ROOT/usr/bin/-dash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			argv := append(tt.argv, "--flag", "", "a b")
			p, err := w.resolve(argv...)
			if err != nil {
				t.Fatal(err)
			}
			got := w.rel(p.Named, p.Argv[0], p.File)
			if diff := cmp.Diff([]string{tt.named, tt.arg, tt.file}, got); diff != "" {
				t.Errorf("named, argv[0] and file (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"--flag", "", "a b"}, p.Argv[1:]); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(p.Argv[1:], p.Args); diff != "" {
				t.Errorf("Args of a native program (-argv +args):\n%s", diff)
			}
		})
	}
}

func TestPathElementsThatAreSkipped(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/tool")
	w.program("home/me/code/tool")
	w.program("home/me/code/bin/tool")
	w.folder("usr/folders/tool")
	w.link("loop", "usr/loop")
	w.link("nowhere", "usr/dangling/tool")
	w.file("usr/data/tool", "not executable")

	tests := []struct{ name, path, note string }{
		{"empty in front", ":ROOT/usr/bin", "an empty element of PATH means the working folder and is not searched"},
		{"empty behind", "ROOT/none:ROOT/usr/bin:", "an empty element of PATH means the working folder and is not searched"},
		{"dot", ".:ROOT/usr/bin", `"." on PATH is relative to the working folder and is not searched`},
		{"relative", "bin:ROOT/usr/bin", `"bin" on PATH is relative to the working folder and is not searched`},
		{"literal tilde", "~/bin:ROOT/usr/bin", `"~/bin" on PATH is relative to the working folder and is not searched`},
		{"unreachable", "ROOT/usr/loop:ROOT/usr/bin", `"ROOT/usr/loop" on PATH cannot be searched: too many levels of symbolic links`},
		{"a folder of that name", "ROOT/usr/folders:ROOT/usr/bin", ""},
		{"a link to nowhere", "ROOT/usr/dangling:ROOT/usr/bin", ""},
		{"a file that may not run", "ROOT/usr/data:ROOT/usr/bin", ""},
		{"a file instead of a folder", "ROOT/usr/data/tool:ROOT/usr/bin", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := w.with(map[string]string{"PATH": tt.path})
			p, err := w.resolve("tool")
			if err != nil {
				t.Fatal(err)
			}
			if p.File != w.at("usr/bin/tool") {
				t.Errorf("found %q", p.File)
			}
			if got := w.notes(p); got != tt.note {
				t.Errorf("notes %q, want %q", got, tt.note)
			}
		})
	}
}

func TestProgramInsideTheWorkingFolderIsNoted(t *testing.T) {
	w := newWorld(t).with(map[string]string{"PATH": "ROOT/home/me/code/node_modules/.bin:ROOT/usr/bin"})
	w.program("home/me/code/node_modules/.bin/tool")
	p := w.mustResolve("tool")
	if want := `"tool" was found inside the working folder: "ROOT/home/me/code/node_modules/.bin/tool"`; w.notes(p) != want {
		t.Errorf("notes %q, want %q", w.notes(p), want)
	}
}

func TestNotFound(t *testing.T) {
	w := newWorld(t)
	w.file("usr/bin/file", "x")
	tests := []struct {
		name     string
		argv     []string
		path     string
		searched []string
		text     string
	}{
		{"on PATH", []string{"none"}, "ROOT/a:ROOT/b", []string{"ROOT/a", "ROOT/b"}, `finding program "none": not found on PATH (ROOT/a:ROOT/b)`},
		{"PATH empty", []string{"none"}, "", nil, `finding program "none": PATH names no usable folder`},
		{"path", []string{"./none"}, "ROOT/a", nil, `finding program "ROOT/home/me/code/none": no such file or directory`},
		{"through a file", []string{"ROOT/usr/bin/file/x"}, "", nil, `finding program "ROOT/usr/bin/file/x": not a directory`},
		{"NUL in the name", []string{"a\x00b"}, "", nil, `finding program "a\x00b": the name holds a NUL byte`},
		{"empty name", []string{""}, "", nil, `finding program "": the command is empty`},
		{"no argv", nil, "", nil, `finding program "": the command is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := w.with(map[string]string{"PATH": tt.path})
			_, err := w.resolve(tt.argv...)
			var absent *program.NotFoundError
			if !errors.As(err, &absent) {
				t.Fatalf("error %v is no NotFoundError", err)
			}
			if diff := cmp.Diff(tt.searched, w.rel(absent.Searched...)); diff != "" {
				t.Errorf("searched (-want +got):\n%s", diff)
			}
			if got := strings.ReplaceAll(err.Error(), w.root, "ROOT"); got != tt.text {
				t.Errorf("text %q, want %q", got, tt.text)
			}
		})
	}
}

func TestArgumentsAndFactsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/plain")
	if _, err := w.resolve("plain", "a", "b\x00"); err == nil || err.Error() != "reading argument 2: it holds a NUL byte" {
		t.Errorf("NUL in an argument: error %v", err)
	}
	facts := w.facts()
	facts.Dir = "relative"
	if _, err := program.Resolve([]string{"plain"}, facts); err == nil {
		t.Error("a relative working folder is accepted")
	}
}

func TestPathDefaultsOnlyWhenUnset(t *testing.T) {
	w := newWorld(t)
	delete(w.env, "PATH")
	p, err := w.resolve("env", "--version")
	var refused *program.NotExecutableError
	// Every machine has env, and it is followed: a version is no program.
	if !errors.As(err, &refused) || refused.Path != "/usr/bin/env" && refused.Path != "/bin/env" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// notExecutable asserts the error's kind and parts.
func notExecutable(t *testing.T, w *world, err error, path, reason string, cause error) {
	t.Helper()
	var refused *program.NotExecutableError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v is no NotExecutableError", err)
	}
	if got := strings.ReplaceAll(refused.Path, w.root, "ROOT"); got != path {
		t.Errorf("path %q, want %q", got, path)
	}
	if got := strings.ReplaceAll(refused.Reason, w.root, "ROOT"); got != reason {
		t.Errorf("reason %q, want %q", got, reason)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %v is not %v", err, cause)
	}
	if cause == nil && refused.Err != nil {
		t.Errorf("unexpected cause %v", refused.Err)
	}
}

func TestNotExecutable(t *testing.T) {
	w := newWorld(t)
	w.folder("x/folder")
	w.file("x/plain", "#!/bin/sh\n")
	w.link("b", "x/a")
	w.link("a", "x/b")
	w.script("x/text", "echo hello\n")
	w.script("x/empty", "")
	w.script("x/bytes", "MZ\x90\x00\x03")
	w.script("x/bom", "\xef\xbb\xbf#!/bin/sh\n")
	w.script("x/short", "\x7fELF\x02\x01")
	w.script("x/object", strings.Replace(string(elfFile{}.bytes()), "\x03\x00", "\x01\x00", 1))
	w.elf("x/foreign", elfFile{machine: 8})
	w.elf("x/narrow", elfFile{class: 1})
	w.elf("x/noloader", elfFile{loader: "/nonexistent/ld.so"})
	w.elf("x/relative", elfFile{loader: "lib/ld.so"})
	w.elf("x/folderloader", elfFile{loader: w.at("lib")})
	if err := unix.Mkfifo(w.at("x/fifo"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.at("x/fifo"), 0o777); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name, path, reason string
		cause              error
	}{
		{"folder", "ROOT/x/folder", "it is a folder", nil},
		{"slash behind a folder", "ROOT/x/folder/", "it is a folder", nil},
		{"no x bit", "ROOT/x/plain", "it may not be executed", unix.EACCES},
		{"fifo", "ROOT/x/fifo", "it is not a regular file", nil},
		{"device", "/dev/null", "it is not a regular file", nil},
		{"looping links", "ROOT/x/a", "it cannot be reached", unix.ELOOP},
		{"text", "ROOT/x/text", "it is a text without a `#!` line, which only a shell could guess at", nil},
		{"empty", "ROOT/x/empty", "it is empty", nil},
		{"bytes", "ROOT/x/bytes", "it is neither an ELF program nor a script", nil},
		{"byte order mark", "ROOT/x/bom", "it is a text without a `#!` line, which only a shell could guess at", nil},
		{"cut off", "ROOT/x/short", "it is a damaged ELF file", errors.New("")},
		{"object file", "ROOT/x/object", "it is a damaged ELF file", errors.New("")},
		{"other machine", "ROOT/x/foreign", "it is built for another machine (machine 8, 64 bits)", nil},
		{"other width", "ROOT/x/narrow", "", nil},
		{"loader missing", "ROOT/x/noloader", "its loader cannot run", unix.ENOENT},
		{"loader relative", "ROOT/x/relative", `its loader "lib/ld.so" is not named by an absolute path`, nil},
		{"loader a folder", "ROOT/x/folderloader", "its loader cannot run", errors.New("")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.resolve(tt.path)
			if tt.name == "other width" {
				var refused *program.NotExecutableError
				if !errors.As(err, &refused) || !strings.HasSuffix(refused.Reason, "32 bits)") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if tt.cause != nil && tt.cause.Error() == "" {
				// Any cause of the reader's own.
				if refused, ok := errors.AsType[*program.NotExecutableError](err); ok {
					tt.cause = refused.Err
				}
			}
			notExecutable(t, w, err, tt.path, tt.reason, tt.cause)
		})
	}

	// The first refusal on PATH is told when nothing else is found.
	w.file("usr/bin/plain", "data")
	_, err := w.resolve("plain")
	notExecutable(t, w, err, "ROOT/usr/bin/plain", "it may not be executed", unix.EACCES)
}

func TestUnreachableFolders(t *testing.T) {
	if os.Getuid() == 0 {
		// Root passes these permissions; the ordinary user's run of this test is the proof.
		t.Log("root is not refused by permissions")
	}
	w := newWorld(t)
	w.program("usr/bin/tool")
	w.program("closed/tool")
	closed := w.at("closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
	w = w.with(map[string]string{"PATH": "ROOT/closed:ROOT/usr/bin"})
	p := w.mustResolve("tool")
	want := w.at("usr/bin/tool")
	note := `"ROOT/closed" on PATH cannot be searched: permission denied`
	if os.Getuid() == 0 {
		want, note = w.at("closed/tool"), ""
	}
	if p.File != want || w.notes(p) != note {
		t.Errorf("found %q with notes %q, want %q with %q", p.File, w.notes(p), want, note)
	}
	if os.Getuid() != 0 {
		_, err := w.resolve("ROOT/closed/tool")
		notExecutable(t, w, err, "ROOT/closed/tool", "it cannot be reached", unix.EACCES)
	}
}

func TestSetIDIsNoted(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/raised")
	if err := os.Chmod(w.at("usr/bin/raised"), 0o4755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	p := w.mustResolve("raised")
	if !strings.Contains(w.notes(p), "set-user-id") {
		t.Errorf("notes %q", w.notes(p))
	}
}

// TestRealPathsAgree compares the resolver of links with the standard library's.
func TestRealPathsAgree(t *testing.T) {
	w := newWorld(t)
	w.program("a/b/c/tool")
	w.link("b", "a/one")
	w.link("../a/one/c", "x/two")
	w.link("ROOT/x/two", "x/three")
	w.link("three/../c/./tool", "x/four")
	for _, path := range []string{
		"a/one/c/tool", "x/two/tool", "x/three/tool", "x/three/../c/tool", "x/four",
		"x//two///tool", "./x/./two/tool", "a/b/../one/../one/c/tool",
	} {
		want, err := filepath.EvalSymlinks(w.at(path))
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.resolve(w.at(path))
		if err != nil || p.File != want {
			t.Errorf("%s: %q, %v; want %q", path, p.File, err, want)
		}
	}
}
