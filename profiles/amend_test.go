package profiles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

func TestAmend(t *testing.T) {
	read := profiles.Addition{Key: "filesystem.read", Entry: "/srv/b", Because: "node (openat)"}
	more := profiles.Addition{Key: "filesystem.read", Entry: `/srv/"c" \d`, Because: "node\n(openat)"}
	rule := profiles.Addition{Key: "network.egress", Entry: "api.example:443", Because: "node looked it up"}
	port := profiles.Addition{Key: "network.listen", Entry: "8080", Because: "node (bind)"}
	program := profiles.Addition{Key: "filesystem.execute", Entry: "/usr/bin/git", Because: "node (execve)"}
	const head = "version: 1\nname: p\n"
	for _, tt := range []struct {
		name, text string
		add        []profiles.Addition
		want       string
	}{
		{"nothing there", head, []profiles.Addition{read, program, rule}, head +
			"\nfilesystem:\n  read:\n    - \"/srv/b\"  # node (openat)\n  execute:\n    - \"/usr/bin/git\"  # node (execve)\n\nnetwork:\n  egress:\n    - \"api.example:443\"  # node looked it up\n"},
		{"no last line end", strings.TrimSuffix(head, "\n"), []profiles.Addition{port}, head + "\nnetwork:\n  listen:\n    - 8080  # node (bind)\n"},
		{"flow list", head + "filesystem:\n  read: [\"/srv/a\"]  # mine\n", []profiles.Addition{read, more}, head +
			"filesystem:\n  # /srv/b: node (openat)\n  # /srv/\"c\" \\d: \"node\\n(openat)\"\n  read: [\"/srv/b\", \"/srv/\\\"c\\\" \\\\d\", \"/srv/a\"]  # mine\n"},
		{"empty flow list", head + "filesystem: {read: []}\n", []profiles.Addition{read}, head + "# /srv/b: node (openat)\nfilesystem: {read: [\"/srv/b\"]}\n"},
		{"flow section", head + "filesystem: {write: [/srv/a]}\n", []profiles.Addition{read}, head + "# /srv/b: node (openat)\nfilesystem: {read: [\"/srv/b\"], write: [/srv/a]}\n"},
		{"block list", head + "filesystem:\n  read:\n  # mine\n  - /srv/a\n", []profiles.Addition{read}, head + "filesystem:\n  read:\n  # mine\n  - \"/srv/b\"  # node (openat)\n  - /srv/a\n"},
		{"block section", head + "filesystem:\n    # mine\n    write: [/srv/a]\n", []profiles.Addition{read}, head + "filesystem:\n    # mine\n    read:\n      - \"/srv/b\"  # node (openat)\n    write: [/srv/a]\n"},
		{"none", head + "network: {egress: none}\n", []profiles.Addition{rule}, head + "# api.example:443: node looked it up\nnetwork: {egress: [\"api.example:443\"]}\n"},
		{"public", head + "network:\n  egress: public\n", []profiles.Addition{rule}, head + "network:\n  # api.example:443: node looked it up\n  egress: [public, \"api.example:443\"]\n"},
		{"a list before a list", head + "filesystem:\n  read: [/srv/a]\n", []profiles.Addition{read, program}, head + "filesystem:\n  execute:\n    - \"/usr/bin/git\"  # node (execve)\n  # /srv/b: node (openat)\n  read: [\"/srv/b\", /srv/a]\n"},
		{"section without anything", head + "filesystem:\n  # write: [x]\n", []profiles.Addition{read}, head + "filesystem:\n  read:\n    - \"/srv/b\"  # node (openat)\n  # write: [x]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := profiles.Amend("p.yaml", []byte(tt.text), tt.add)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for name, text := range map[string]string{
		"braces": "{version: 1, name: p}\n",
		"all":    head + "network: {egress: all}\n",
		"broken": head + "filesystem: [\n",
	} {
		if got, err := profiles.Amend("p.yaml", []byte(text), []profiles.Addition{rule}); err == nil {
			t.Errorf("%s was amended:\n%s", name, got)
		}
	}
}

// TestExtension: each built-in profile can be one's own, and matches the same.
func TestExtension(t *testing.T) {
	list, err := profiles.Search{}.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d profiles, %v", len(list), err)
	}
	for _, l := range list {
		p, err := profiles.Search{}.Find(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := profiles.Amend("x.yaml", profiles.Extension(p), []profiles.Addition{{Key: "filesystem.read", Entry: "/srv/b", Because: "x"}})
		if err != nil {
			t.Fatalf("%s: %v", l.Name, err)
		}
		own, err := profiles.Parse("x.yaml", text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", l.Name, err, text)
		}
		values := func(list []profiles.Sourced[string]) (out []string) {
			for _, e := range list {
				out = append(out, e.Value)
			}
			return out
		}
		if diff := cmp.Diff([][]string{values(p.Match.Packages), values(p.Match.Commands)}, [][]string{values(own.Match.Packages), values(own.Match.Commands)}); diff != "" {
			t.Errorf("%s matches other commands:\n%s", l.Name, diff)
		}
		if own.Name.Value != l.Name || len(own.Extends) != 1 || own.Extends[0].Value != l.Name {
			t.Errorf("%s: %+v", l.Name, own)
		}
		if _, err := (profiles.Search{}).Complete(own); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
}
