package hostconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/profiles/hostconfig"
)

// placeIn returns the first place of the host that a folder is called after in which the
// file has servers, then what its content suggests, then the host's first of that syntax.
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
	for _, p := range places {
		if f, err := hostconfig.Parse(file, src, p); err == nil && len(f.Servers) > 0 {
			return p
		}
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

// count is a line of the table that TestFolder prints.
type count struct{ files, servers, wrapped, remote, empty, builtin, left int }

// testFolder runs a round trip over HOST/FILE below a folder.
func testFolder(t *testing.T, folder string) {
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
			golden(t, file, wrapped)
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

// golden compares a wrapped file with FILE.wrapped, where that is there or -update is set.
func golden(t *testing.T, file string, wrapped []byte) {
	t.Helper()
	want, err := os.ReadFile(file + ".wrapped")
	if err != nil {
		return
	}
	if string(want) != string(wrapped) {
		t.Errorf("%s: wrapped:\n%s", file, fmt.Sprintf("%q", wrapped))
	}
}

// TestFolder runs over a folder of the files of others, which do not belong to the module:
// HOST/FILE below STOCKADE_HOST_CONFIGS.
func TestFolder(t *testing.T) {
	folder := os.Getenv("STOCKADE_HOST_CONFIGS")
	if folder == "" {
		folder = "testdata/hosts"
	}
	testFolder(t, folder)
}
