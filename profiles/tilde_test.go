package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"stockade/profiles"
)

// A ~ that no shell has replaced means one folder to stockade and another one to a server with a
// private home.
func TestTildeIsTold(t *testing.T) {
	for arg, told := range map[string]bool{"~": true, "~/notes": true, "~x": false, "/home/me/~": false, "--root=~": false} {
		for home, private := range map[string]bool{"": true, "filesystem: {home: real}\n": false} {
			p, err := profiles.Parse("p.yaml", []byte("version: 1\n"+home))
			if err != nil {
				t.Fatal(err)
			}
			r := mustCompile(t, p, func(f *profiles.Facts) { f.Program.Args = []string{arg} })
			got := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "argument 1 of the server begins with ~") })
			if got != (told && private) {
				t.Errorf("%q, private home %v: told %v", arg, private, got)
			}
		}
	}
}
