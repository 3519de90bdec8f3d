package profiles_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

func parse(t *testing.T, text string) *profiles.Profile {
	t.Helper()
	p, err := profiles.Parse("p.yaml", []byte("version: 1\nname: p\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWithAdds(t *testing.T) {
	base := parse(t, "filesystem: {read: [/r]}\nroots: args\nenvironment: {pass: [A], set: {B: x}, secrets: [C]}\nnetwork: {listen: [80]}\n")
	before := fmt.Sprintf("%+v", *base)
	p, err := base.With(profiles.Flags{
		Roots: []string{"/root1", "."}, Read: []string{"./a", "~/b"}, Write: []string{"${roots}/w", "../up"}, Exec: []string{"git", "./tool"},
		Egress: []string{"all"}, Listen: []string{"81"}, Unix: []string{"/s"}, Env: []string{"D", "B=y", "C=z", "E=1=2", "F="},
	})
	if err != nil {
		t.Fatal(err)
	}
	flag := func(name string) profiles.Position { return profiles.Position{File: name} }
	want := *base
	want.Roots.List = []profiles.PathEntry{{Path: "/root1", Position: flag("--root")}, {Path: "${cwd}/.", Position: flag("--root")}}
	want.Filesystem.Read = append(want.Filesystem.Read[:1:1], profiles.PathEntry{Path: "${cwd}/./a", Position: flag("--read")}, profiles.PathEntry{Path: "~/b", Position: flag("--read")})
	want.Filesystem.Write = []profiles.PathEntry{{Path: "${roots}/w", Position: flag("--write")}, {Path: "${cwd}/../up", Position: flag("--write")}}
	want.Filesystem.Execute = []profiles.Sourced[string]{{Value: "git", Position: flag("--exec")}, {Value: "${cwd}/./tool", Position: flag("--exec")}}
	want.Network.Egress = profiles.Sourced[profiles.EgressMode]{Value: profiles.EgressAll, Position: flag("--egress")}
	want.Network.Listen = append(want.Network.Listen[:1:1], profiles.Sourced[uint16]{Value: 81, Position: flag("--listen")})
	want.Network.Unix = []profiles.PathEntry{{Path: "/s", Position: flag("--unix")}}
	want.Environment.Pass = append(want.Environment.Pass[:1:1], profiles.Sourced[string]{Value: "D", Position: flag("--env")})
	want.Environment.Secrets = nil
	want.Environment.Set = nil
	for _, v := range [][2]string{{"B", "y"}, {"C", "z"}, {"E", "1=2"}, {"F", ""}} {
		want.Environment.Set = append(want.Environment.Set, profiles.EnvSet{Name: v[0], Value: v[1], Position: flag("--env")})
	}
	if diff := cmp.Diff(&want, p); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	if after := fmt.Sprintf("%+v", *base); after != before {
		t.Error("flags changed the profile that they were laid over")
	}
}

func TestWithRefuses(t *testing.T) {
	tests := []struct {
		name  string
		flags profiles.Flags
		want  string
	}{
		{"pattern", profiles.Flags{Write: []string{"/a/**"}}, `--write: "/a/**": there are no patterns in paths | write the folder itself, "/a": a grant holds the whole tree`},
		{"NUL", profiles.Flags{Read: []string{"/a\x00b"}}, `--read: a path cannot hold a NUL byte | remove it`},
		{"empty", profiles.Flags{Write: []string{""}}, `--write: the value is empty | give it a value, or leave the flag out`},
		{"roots of roots", profiles.Flags{Roots: []string{"${roots}"}}, `--root: a root cannot be made from ${roots} | write "roots: args" for the server's own folder arguments, or name folders`},
		{"unknown variable", profiles.Flags{Unix: []string{"${nope}/x"}}, `--unix: "${nope}/x": variable ${nope} is not known | known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign`},
		{"program folder", profiles.Flags{Exec: []string{"/opt/"}}, `--exec: "/opt/" is a folder | name the program itself: folders cannot be executed`},
		{"no program", profiles.Flags{Exec: []string{""}}, `--exec: the value is empty | give it a value, or leave the flag out`},
		{"port", profiles.Flags{Listen: []string{"65616"}}, `--listen: port 65616 is out of range | a number from 1 to 65535`},
		{"no port", profiles.Flags{Listen: []string{""}}, `--listen: "" is not a port | a number from 1 to 65535`},
		{"egress", profiles.Flags{Egress: []string{"https://example.com"}}, `--egress: egress rule "https://example.com" is a URL | write "example.com:443"`},
		{"nearly an egress word", profiles.Flags{Egress: []string{"NONE"}}, `--egress: "NONE" reads like the word none, not like a host | did you mean "none"? a host of that name is written with its port: "NONE:443"`},
		{"no egress rule", profiles.Flags{Egress: []string{""}}, `--egress: egress rule "" is empty | a rule is one of HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT, PREFIX/LENGTH:PORT; IPv6 in brackets, ports from 1 to 65535, 443 when there is none`},
		{"socket folder", profiles.Flags{Unix: []string{"/run/x/"}}, `--unix: "/run/x/" is a folder | name the socket file itself`},
		{"variable name", profiles.Flags{Env: []string{"A-B=hunter2"}}, `--env: "A-B" is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"no name", profiles.Flags{Env: []string{"=hunter2"}}, `--env: "" is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"every variable", profiles.Flags{Env: []string{"*"}}, `--env: "*" would pass too much | write at least two letters before the *, such as "LC_*"`},
		{"the host's loader", profiles.Flags{Env: []string{"LD_PRELOAD"}}, `--env: LD_PRELOAD cannot come from the host: the loader runs code from it | set it to a fixed value under environment.set if the server needs it`},
		{"PATH", profiles.Flags{Env: []string{"PATH=/x"}}, `--env: PATH is made by stockade (filesystem.execute) | list the programs under filesystem.execute: their folders become PATH`},
		{"value", profiles.Flags{Env: []string{"A=hunter2$x"}}, `--env: A: the value holds an unknown variable | known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign`},
		{"twice", profiles.Flags{Env: []string{"A=hunter2", "A=hunter2"}}, `--env: A is set twice | give it once`},
		{"two ways", profiles.Flags{Env: []string{"A=hunter2", "A"}}, `--env: A is both passed and set | give it once`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := profiles.Empty().With(tt.flags)
			got := one(t, err)
			if got != tt.want {
				t.Errorf("problem:\n got %s\nwant %s", got, tt.want)
			}
			if p != nil || strings.Contains(got, "hunter2") {
				t.Errorf("a profile comes with the error (%v), or the message holds a value", p)
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := profiles.Empty().With(profiles.Flags{Read: []string{"/a/**"}, Listen: []string{"0"}, Env: []string{"1"}})
		var many profiles.Errors
		if !errors.As(err, &many) || len(many) != 3 {
			t.Errorf("got %v, want three problems", err)
		}
	})
}

// TestWithRelativePaths: a person types flags in the working folder.
func TestWithRelativePaths(t *testing.T) {
	got, err := profiles.Empty().With(profiles.Flags{Read: []string{"a/b", "./c", "/d", "~/e", "${home}/f"}})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got.Filesystem.Read {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"${cwd}/a/b", "${cwd}/./c", "/d", "~/e", "${home}/f"}, paths); diff != "" {
		t.Error(diff)
	}
}

func TestWithEgress(t *testing.T) {
	tests := []struct {
		profile string
		flags   []string
		want    string // "" with an error
	}{
		{"", nil, " []"},
		{"", []string{"none"}, " []"},
		{"none", []string{"none"}, "none []"},
		{"none", []string{"a.example:1"}, " [a.example:1]"},
		{"none", []string{"all"}, "all []"},
		{"all", []string{"a.example:1"}, "all []"},
		{"all", []string{"public"}, "all []"},
		{"public", []string{"localhost:6379"}, "public [localhost:6379]"},
		{"", []string{"API.example.com"}, " [API.example.com]"},
		{"all", []string{"none"}, ""},
		{"public", []string{"none"}, ""},
		{"public", []string{"all"}, "all []"},
		{"[\"a.example:1\"]", []string{"b.example:2"}, " [a.example:1 b.example:2]"},
		{"[\"a.example:1\"]", []string{"none"}, ""},
		{"[\"a.example:1\"]", []string{"public"}, "public [a.example:1]"},
		{"[\"a.example:1\"]", []string{"all"}, "all []"},
		{"[\"a.example:1\"]", []string{"all", "b.example:2"}, "all []"},
		{"[]", []string{"none"}, " []"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.profile, tt.flags), func(t *testing.T) {
			p := profiles.Empty()
			if tt.profile != "" {
				p = parse(t, "network: {egress: "+tt.profile+"}\n")
			}
			got, err := p.With(profiles.Flags{Egress: tt.flags})
			if tt.want == "" {
				if want := "--egress: flags only add, and the profile has more than none | name a profile that grants less"; one(t, err) != want {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var hosts []string
			for _, h := range got.Network.Hosts {
				hosts = append(hosts, h.To)
			}
			if text := fmt.Sprintf("%s %v", got.Network.Egress.Value, hosts); text != tt.want {
				t.Errorf("egress is %q, want %q", text, tt.want)
			}
		})
	}
}
