package profiles_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

func mustAddrPort(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	out, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDiffOfEgress: widening is decided on what rules let out, not on how they are written.
func TestDiffOfEgress(t *testing.T) {
	tests := []struct {
		a, b string
		want []string
	}{
		{"[a.example]", "[\"A.example.:443\"]", nil},
		{"[a.example, b.example]", "[b.example, a.example]", nil},
		{"[]", "none", nil},
		{"[a.example]", "[a.example, b.example]", []string{"egress b.example:443 added (widening)"}},
		{"[a.example, b.example]", "[a.example]", []string{"egress b.example:443 removed (narrowing)"}},
		{"[a.example]", "[b.example]", []string{"egress b.example:443 added (widening)", "egress a.example:443 removed (narrowing)"}},
		{"[a.example]", "none", []string{"egress none changed (narrowing)", "egress a.example:443 removed (narrowing)", "sockets changed (narrowing)"}},

		// One rule within another.
		{"[\"*.a.example\"]", "[x.a.example]", []string{"egress x.a.example:443 added (neutral)", "egress *.a.example:443 removed (narrowing)"}},
		{"[\"*.a.example\"]", "[a.example]", []string{"egress a.example:443 added (widening)", "egress *.a.example:443 removed (narrowing)"}},
		{"[x.a.example]", "[\"*.a.example\"]", []string{"egress *.a.example:443 added (widening)", "egress x.a.example:443 removed (neutral)"}},
		{"[\"*.a.example\"]", "[\"*.b.a.example\"]", []string{"egress *.b.a.example:443 added (neutral)", "egress *.a.example:443 removed (narrowing)"}},
		{"[\"*.a.example\"]", "[xa.example]", []string{"egress xa.example:443 added (widening)", "egress *.a.example:443 removed (narrowing)"}},
		{"[\"a.example:1-100\"]", "[\"a.example:22\"]", []string{"egress a.example:22 added (neutral)", "egress a.example:1-100 removed (narrowing)"}},
		{"[\"a.example:1-100\"]", "[\"a.example:99-101\"]", []string{"egress a.example:99-101 added (widening)", "egress a.example:1-100 removed (narrowing)"}},
		{"[\"10.0.0.0/8:80\"]", "[\"10.1.0.0/16:80\"]", []string{"egress 10.1.0.0/16:80 added (neutral)", "egress 10.0.0.0/8:80 removed (narrowing)"}},
		{"[\"10.1.0.0/16:80\"]", "[\"10.0.0.0/8:80\"]", []string{"egress 10.0.0.0/8:80 added (widening)", "egress 10.1.0.0/16:80 removed (neutral)"}},
		{"[\"0.0.0.0/0:1-65535\"]", "[\"0.0.0.0/0:1-65535\", a.example]", []string{"egress a.example:443 added (widening)"}},

		// Names.
		{"[a.example]", "[{to: a.example, names: pinned}]", []string{"egress a.example:443 (names: pinned) changed (widening)"}},
		{"[{to: a.example, names: pinned}]", "[a.example]", []string{"egress a.example:443 changed (narrowing)"}},
		{"[\"a.example:22\"]", "[{to: \"a.example:22\", names: pinned}]", nil},
		{"[\"*.a.example\"]", "[\"*.a.example\", {to: x.a.example, names: pinned}]", []string{"egress x.a.example:443 (names: pinned) added (widening)"}},
		{"[{to: \"*.a.example\", names: pinned}]", "[{to: \"*.a.example\", names: pinned}, x.a.example]", []string{"egress x.a.example:443 added (neutral)"}},
		{"[{to: \"*.a.example\", names: pinned}, x.a.example]", "[{to: \"*.a.example\", names: pinned}]", []string{"egress x.a.example:443 removed (widening)"}},

		// Addresses.
		{"[a.example]", "[{to: a.example, addresses: any}]", []string{"egress a.example:443 (addresses: any) changed (widening)"}},
		{"[{to: a.example, addresses: any}]", "[a.example]", []string{"egress a.example:443 changed (narrowing)"}},
		{"[{to: a.example, addresses: any}]", "[{to: a.example, addresses: any}]", nil},
		{"[{to: a.example, names: pinned}]", "[{to: a.example, addresses: any}]", []string{"egress a.example:443 (addresses: any) changed (widening)"}},
		{"[{to: a.example, names: pinned, addresses: any}]", "[{to: a.example, addresses: any}]", []string{"egress a.example:443 (addresses: any) changed (narrowing)"}},
		{"[{to: \"a.example:22\", addresses: any}]", "[{to: \"a.example:22\", names: pinned, addresses: any}]", nil},
		{"[a.example]", "[a.example, {to: b.example, names: pinned, addresses: any}]", []string{"egress b.example:443 (names: pinned, addresses: any) added (widening)"}},
		{"[\"*.a.example\"]", "[\"*.a.example\", {to: x.a.example, addresses: any}]", []string{"egress x.a.example:443 (addresses: any) added (widening)"}},
		{"[{to: \"*.a.example\", addresses: any}]", "[{to: \"*.a.example\", addresses: any}, x.a.example]", []string{"egress x.a.example:443 added (neutral)"}},
		{"[{to: \"*.a.example\", addresses: any}, x.a.example]", "[{to: \"*.a.example\", addresses: any}]", []string{"egress x.a.example:443 removed (widening)"}},
		{"public", "[public, {to: a.example, addresses: any}]", []string{"egress a.example:443 (addresses: any) added (widening)"}},
		{"public", "[{to: a.example, addresses: any}]", []string{"egress public removed (narrowing)", "egress a.example:443 (addresses: any) added (widening)"}},
		{"[\"0.0.0.0/0:1-65535\"]", "[\"0.0.0.0/0:1-65535\", {to: a.example, addresses: any}]", []string{"egress a.example:443 (addresses: any) added (widening)"}},
		{"all", "[{to: a.example, addresses: any}]", []string{"egress all removed (narrowing)", "egress a.example:443 (addresses: any) added (neutral)", "sockets changed (narrowing)"}},

		// Words.
		{"all", "public", []string{"egress public changed (narrowing)", "sockets changed (narrowing)"}},
		{"public", "all", []string{"egress all changed (widening)", "sockets changed (widening)"}},
		{"all", "[a.example, \"127.0.0.1:80\"]", []string{"egress all removed (narrowing)", "egress a.example:443 added (neutral)", "egress 127.0.0.1:80 added (neutral)", "egress [::1]:80 added (neutral)", "sockets changed (narrowing)"}},
		{"public", "[a.example]", []string{"egress public removed (narrowing)", "egress a.example:443 added (neutral)"}},
		{"[a.example]", "public", []string{"egress public changed (widening)", "egress a.example:443 removed (neutral)"}},
		{"public", "[\"1.1.1.1:444\"]", []string{"egress public removed (narrowing)", "egress 1.1.1.1:444 added (neutral)"}},
		{"public", "[\"1.1.1.1:443\"]", []string{"egress public removed (narrowing)", "egress 1.1.1.1:443 added (widening)"}}, // QUIC, too
		{"public", "[\"1.1.1.1:53\"]", []string{"egress public removed (narrowing)", "egress 1.1.1.1:53 added (widening)"}},   // past the stub
		{"public", "[\"10.0.0.1:444\"]", []string{"egress public removed (narrowing)", "egress 10.0.0.1:444 added (widening)"}},
		{"public", "[\"1.0.0.0/8:444\"]", []string{"egress public removed (narrowing)", "egress 1.0.0.0/8:444 added (widening)"}}, // cannot be told
		{"public", "[public, \"10.0.0.1:444\"]", []string{"egress 10.0.0.1:444 added (widening)"}},
		{"public", "none", []string{"egress none changed (narrowing)", "sockets changed (narrowing)"}},
		{"none", "public", []string{"egress public changed (widening)", "sockets changed (widening)"}},
	}
	for _, tt := range tests {
		t.Run(tt.a+" to "+tt.b, func(t *testing.T) {
			text := func(egress string) *profiles.Profile {
				if strings.Contains(egress, "127.0.0.1:80") {
					egress = strings.Replace(egress, "127.0.0.1", "localhost", 1)
				}
				return parse(t, "network: {egress: "+egress+"}\n")
			}
			a, b := mustCompile(t, text(tt.a), nil), mustCompile(t, text(tt.b), nil)
			var got, wider []string
			for _, c := range profiles.Diff(a, b) {
				if c.Section == "filesystem" {
					continue // what resolvers read
				}
				_, change, _ := strings.Cut(c.String(), ": ")
				got = append(got, change)
				if c.Section == "network" && strings.Contains(c.What, ":") && c.Origin.Line != 3 {
					t.Errorf("%s comes from %s", c.What, c.Origin)
				}
				if c.Effect == profiles.Widening {
					wider = append(wider, c.String())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			narrower := 0
			for _, c := range profiles.Narrower(b, a) {
				if c.Section != "filesystem" {
					narrower++
				}
			}
			if narrower != len(wider) {
				t.Errorf("a repository's profile would widen %d things, the differences %d", narrower, len(wider))
			}
		})
	}
}

// TestNarrowingProfilesNeedNobody: what a repository may ask for without approval.
func TestNarrowingProfilesNeedNobody(t *testing.T) {
	for _, pair := range [][2]string{
		{"[a.example]", "all"},
		{"public", "all"},
		{"[{to: a.example, names: pinned}]", "public"},
		{"[x.a.example]", "[\"*.a.example\"]"},
	} {
		repo, base := mustCompile(t, parse(t, "network: {egress: "+pair[0]+"}\n"), nil), mustCompile(t, parse(t, "network: {egress: "+pair[1]+"}\n"), nil)
		if wider := profiles.Narrower(repo, base); len(wider) > 0 {
			t.Errorf("%s within %s widens: %v", pair[0], pair[1], wider)
		}
	}
}

func TestDiffOfSockets(t *testing.T) {
	const reason = "{path: /srv/a, broad: true, reason: r}"
	tests := []struct {
		a, b string
		want []string
	}{
		{"[]", "[/srv/a]", []string{"network: unix /srv/a added (widening)", "syscalls: calls that the supervisor answers changed (neutral)"}},
		{"[/srv/a, /srv/b]", "[/srv/b]", []string{"network: unix /srv/a removed (narrowing)"}},
		{"[/srv/a]", "[" + reason + "]", []string{"network: unix /srv/a: broad changed (widening)"}},
		{"[" + reason + "]", "[/srv/a]", []string{"network: unix /srv/a: broad changed (narrowing)"}},
		{"[/srv/a]", "[/srv/a]", nil},
	}
	for _, tt := range tests {
		t.Run(tt.a+" to "+tt.b, func(t *testing.T) {
			facts := sockets(nil, "/srv/a", "/srv/b")
			a, b := mustCompile(t, parse(t, "network: {unix: "+tt.a+"}\n"), facts), mustCompile(t, parse(t, "network: {unix: "+tt.b+"}\n"), facts)
			var got []string
			for _, c := range profiles.Diff(a, b) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
