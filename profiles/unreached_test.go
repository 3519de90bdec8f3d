package profiles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// TestUnreached: an address on the server's command line that network.egress does not let
// out is told, with the flag that does. Nothing else of the argument is.
func TestUnreached(t *testing.T) {
	const dsn = "postgresql://me:hunter2@db.example:6543/harbour?sslmode=require"
	tests := []struct {
		name, egress string
		args         []string
		want         []string
	}{
		{"no address", "none", []string{"/data", "--port=5432", "a:b", "file:///etc/passwd", "x://", "://"}, nil},
		{"none", "none", []string{"--read-only", dsn}, []string{`2 of the server names db.example:6543`}},
		{"a flag's value", "none", []string{"--db=" + dsn}, []string{`1 of the server names db.example:6543`}},
		{"the scheme's port", "none", []string{"https://a.example/mcp", "HTTP://b.example", "postgres://c.example/d", "postgresql://[2001:db8::1]/d"}, []string{
			`1 of the server names a.example:443`, `2 of the server names b.example:80`, `3 of the server names c.example:5432`, `4 of the server names [2001:db8::1]:5432`,
		}},
		{"no known port", "none", []string{"mongodb+srv://a.example/d", "npm://left/pad"}, nil},
		{"a socket", "none", []string{"postgresql://%2Frun%2Fpostgresql/d", "postgresql:///d"}, nil},
		{"many hosts", "none", []string{"postgresql://a.example:1,b.example:2/d"}, nil},
		{"its rule", "[db.example:6543]", []string{dsn}, nil},
		{"a wider rule", `["*.example:1-65535"]`, []string{dsn}, nil},
		{"another port", "[db.example:5432]", []string{dsn}, []string{`1 of the server names db.example:6543`}},
		{"an address", `["10.0.0.0/8:5432"]`, []string{"postgres://10.1.2.3/d", "postgres://10.1.2.3:1/d"}, []string{`2 of the server names 10.1.2.3:1`}},
		{"this machine", "none", []string{"http://localhost:3000"}, []string{`1 of the server names localhost:3000`}},
		{"this machine's rule", `["localhost:3000"]`, []string{"http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000"}, nil},
		{"public", "public", []string{"https://a.example", "https://93.184.216.34", "https://10.0.0.5", "http://localhost:3000"}, []string{
			`3 of the server names 10.0.0.5:443`, `4 of the server names localhost:3000`,
		}},
		{"all", "all", []string{dsn, "http://localhost:3000"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompile(t, parse(t, "network: {egress: "+tt.egress+"}\n"), func(f *profiles.Facts) { f.Program.Args = tt.args })
			var got []string
			for _, w := range r.Warnings {
				if strings.Contains(w, "hunter2") || strings.Contains(w, "harbour") {
					t.Errorf("the warning %q shows more than host and port", w)
				}
				text, found := strings.CutPrefix(w, "argument ")
				told, to, _ := strings.Cut(text, `, and network.egress does not let it out; to allow it, add "--egress `)
				if !found || !strings.HasSuffix(told+`"`, " "+to) {
					t.Errorf("got %q", w)
				}
				got = append(got, told)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreachedHintHolds: the flag that a warning names ends it.
func TestUnreachedHintHolds(t *testing.T) {
	for _, arg := range []string{"https://a.example/mcp", "postgres://10.1.2.3/d", "http://localhost:3000", "ws://[::1]:9222/devtools"} {
		with := func(f *profiles.Facts) { f.Program.Args = []string{arg} }
		first := mustCompile(t, profiles.Empty(), with)
		if len(first.Warnings) != 1 {
			t.Errorf("%s: got warnings %q, want one", arg, first.Warnings)
			continue
		}
		_, flag, _ := strings.Cut(first.Warnings[0], `"--egress `)
		p, err := profiles.Empty().With(profiles.Flags{Egress: []string{strings.TrimSuffix(flag, `"`)}})
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		if again := mustCompile(t, p, with); len(again.Warnings) > 0 {
			t.Errorf("%s: with the flag there are still warnings %q", arg, again.Warnings)
		}
	}
}
