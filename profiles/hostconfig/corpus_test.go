package hostconfig_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles/hostconfig"
)

var update = flag.Bool("update", false, "write the wrapped forms in testdata anew")

// placeIn returns the place of the host that a folder is called after in which the file has
// most servers, then what its content suggests, then the host's first of that syntax.
func placeIn(t *testing.T, folder, file string, src []byte) hostconfig.Place {
	t.Helper()
	format := hostconfig.JSON
	switch filepath.Ext(file) {
	case ".toml":
		format = hostconfig.TOML
	case ".yaml":
		format = hostconfig.YAML
	}
	var places []hostconfig.Place
	for _, h := range hostconfig.Hosts {
		for _, p := range h.Files {
			if h.Name == folder && p.Format == format {
				places = append(places, p)
			}
		}
	}
	best, found := 0, hostconfig.Place{}
	for _, p := range places {
		f, err := hostconfig.Parse(file, src, p)
		if err != nil {
			t.Fatal(err)
		}
		servers := 0
		for _, s := range f.Servers {
			if s.Kind != hostconfig.Wrong {
				servers++
			}
		}
		if servers > best {
			best, found = servers, p
		}
	}
	if best > 0 {
		return found
	}
	guess, ok, err := hostconfig.Guess(file, src)
	if err != nil {
		t.Fatal(err)
	}
	if !ok && len(places) > 0 {
		return places[0]
	}
	return guess
}

// count is a line of the table of a folder.
type count struct{ files, servers, wrapped, remote, empty, builtin, left int }

// testFolder runs a round trip over HOST/FILE below a folder.
func testFolder(t *testing.T, folder string, look func(*testing.T, string, []byte)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files (%v)", folder, err)
	}
	counts := map[string]*count{}
	for _, file := range files {
		host := filepath.Base(filepath.Dir(file))
		name := host + "/" + filepath.Base(file)
		if strings.HasSuffix(name, ".wrapped") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := placeIn(t, host, name, src)
			wrapped := roundTrip(t, name, src, p)
			look(t, file, wrapped)
			f, err := hostconfig.Parse(name, src, p)
			if err != nil {
				t.Fatal(err)
			}
			c := counts[host]
			if c == nil {
				c = &count{}
				counts[host] = c
			}
			c.add(t, f)
		})
	}
	t.Logf("%-16s %5s %7s %7s %6s %5s %8s %4s", "host", "files", "servers", "wrapped", "remote", "empty", "built-in", "left")
	for _, h := range append(hostconfig.Hosts, hostconfig.Host{Name: "generic"}) {
		if c := counts[h.Name]; c != nil {
			t.Logf("%-16s %5d %7d %7d %6d %5d %8d %4d", h.Name, c.files, c.servers, c.wrapped, c.remote, c.empty, c.builtin, c.left)
		}
	}
}

func (c *count) add(t *testing.T, f *hostconfig.File) {
	t.Helper()
	c.files++
	for _, note := range f.Notes {
		t.Log(note)
	}
	for _, s := range f.Servers {
		c.servers++
		switch {
		case s.Refusal != nil:
			c.left++
			t.Log(s.Refusal)
		case s.Kind == hostconfig.Command:
			c.wrapped++
		case s.Kind == hostconfig.Remote:
			c.remote++
		case s.Kind == hostconfig.Empty:
			c.empty++
		default:
			c.builtin++
		}
	}
}

// golden compares a wrapped file with FILE.wrapped.
func golden(t *testing.T, file string, wrapped []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file+".wrapped", wrapped, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file + ".wrapped")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(wrapped)); diff != "" {
		t.Errorf("%s.wrapped (-want +got):\n%s", file, diff)
	}
}

// TestHosts runs over files of the module's own: HOST/FILE, and the wrapped form beside it.
func TestHosts(t *testing.T) {
	testFolder(t, "testdata/hosts", golden)
	for _, h := range hostconfig.Hosts {
		if files, err := filepath.Glob(filepath.Join("testdata/hosts", h.Name, "*")); err != nil || len(files) == 0 {
			t.Errorf("%s: no test file (%v)", h.Name, err)
		}
	}
}

// TestOthersFiles runs over files that are not the module's: HOST/FILE below the folder
// that STOCKADE_HOST_CONFIGS names. Without one there is nothing more to look at.
func TestOthersFiles(t *testing.T) {
	if folder := os.Getenv("STOCKADE_HOST_CONFIGS"); folder != "" {
		testFolder(t, folder, func(*testing.T, string, []byte) {})
	}
}
