package program_test

import (
	"debug/elf"
	"os"
	"testing"

	"stockade/sandbox/program"
)

func benchmark(b *testing.B, argv ...string) {
	b.Helper()
	facts := program.Facts{Home: b.TempDir(), Dir: b.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}}
	if _, err := program.Resolve(argv, facts); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := program.Resolve(argv, facts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolveNode(b *testing.B) {
	script := b.TempDir() + "/server.js"
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	benchmark(b, "node", script)
}

func BenchmarkResolvePython(b *testing.B) { benchmark(b, "/usr/bin/python3", "-c", "pass") }

func BenchmarkResolveStatic(b *testing.B) {
	w := newWorld(b)
	w.elf("static", elfFile{})
	benchmark(b, w.at("static"))
}

func BenchmarkClosureGit(b *testing.B) {
	facts := program.Facts{Home: b.TempDir(), Dir: b.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := program.Closure("git", facts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDebugELF is what reading one file with the standard library would cost.
func BenchmarkDebugELF(b *testing.B) {
	p, err := program.Resolve([]string{"node"}, program.Facts{Dir: "/", Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := elf.Open(p.File)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.ImportedLibraries(); err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
}
