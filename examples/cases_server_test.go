package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/examples/stock"
)

// where says how a case's server was started.
type where uint8

const (
	jailed where = iota
	outside
)

// both runs a case against the server in the jail of its built-in profile, and against
// the same server as it is.
func both(t *testing.T, p place, server stock.Server, test func(t *testing.T, s *session, from where)) {
	t.Helper()
	command, err := server.Command(p.project)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("in the jail", func(t *testing.T) {
		test(t, connect(t, p.command(in("")(t, command...)...)), jailed)
	})
	t.Run("outside", func(t *testing.T) {
		test(t, connect(t, p.command(free(t, command...)...)), outside)
	})
}

// oldFilesystems follow links, and take every path that begins with the root's for inside.
var oldFilesystems = []stock.Server{stock.Filesystem051, stock.Filesystem062}

// TestV01 is CVE-2025-53109: a link inside the root leads outside, for reading and for
// writing, by file and by folder.
func TestV01(t *testing.T) {
	for _, server := range oldFilesystems {
		t.Run(server.Version, func(t *testing.T) {
			p := newPlace(t)
			secrets := filepath.Join(p.base, "secrets")
			if err := os.Mkdir(secrets, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(secrets, "key.txt"), secretText)
			for link, target := range map[string]string{"file": p.secret, "folder": secrets, "inner": filepath.Join(p.project, "inside.txt")} {
				if err := os.Symlink(target, filepath.Join(p.project, link)); err != nil {
					t.Fatal(err)
				}
			}
			at := func(name string) map[string]any { return map[string]any{"path": filepath.Join(p.project, name)} }
			overwrite := map[string]any{"path": filepath.Join(p.project, "file"), "content": secretText + ", changed"}

			both(t, p, server, func(t *testing.T, s *session, from where) {
				t.Helper()
				s.served(t, "read_file", at("inner"), insideText)
				if from == jailed {
					s.refused(t, "read_file", at("file"), "EACCES")
					s.refused(t, "list_directory", at("folder"), "EACCES")
					s.refused(t, "write_file", overwrite, "EACCES")
					s.served(t, "read_file", at("inner"), insideText)
					return
				}
				s.served(t, "read_file", at("file"), secretText)
				s.served(t, "list_directory", at("folder"), "key.txt")
				s.served(t, "write_file", overwrite, "Successfully wrote")
			})
		})
	}
}

// TestV01PrefixSibling is CVE-2025-53110: a folder whose name only begins like the root's.
func TestV01PrefixSibling(t *testing.T) {
	for _, server := range oldFilesystems {
		t.Run(server.Version, func(t *testing.T) {
			p := newPlace(t)
			sibling := p.project + "-keys"
			if err := os.Mkdir(sibling, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(sibling, "key.txt"), secretText)
			key := map[string]any{"path": filepath.Join(sibling, "key.txt")}
			both(t, p, server, func(t *testing.T, s *session, from where) {
				t.Helper()
				if from == jailed {
					s.refused(t, "read_file", key, "EACCES")
					s.refused(t, "list_directory", map[string]any{"path": sibling}, "EACCES")
					return
				}
				s.served(t, "read_file", key, secretText)
			})
		})
	}
}

// TestV09 is a server that has no limits of its own: the root that a client offers
// replaces the folders of the file server's command line. (2.0.1 speaks the protocol's
// newest era, which asks clients for no roots.)
func TestV09(t *testing.T) {
	for _, server := range []stock.Server{stock.Filesystem20250821, stock.Filesystem20260831} {
		t.Run(server.Version, func(t *testing.T) {
			p := newPlace(t)
			command, err := server.Command(p.project)
			if err != nil {
				t.Fatal(err)
			}
			secret := map[string]any{"path": p.secret}

			outside := connect(t, p.command(free(t, command...)...), p.base)
			outside.waitForRoot(t, p.base)
			outside.served(t, "read_text_file", secret, secretText)
			outside.end(t)

			s := connect(t, p.command(in("")(t, command...)...), p.base)
			s.waitForRoot(t, p.base)
			s.refused(t, "read_text_file", secret, "EACCES")
			s.refused(t, "write_file", map[string]any{"path": filepath.Join(p.base, "new.txt"), "content": "x"}, "EACCES")
			s.served(t, "read_text_file", map[string]any{"path": filepath.Join(p.project, "inside.txt")}, insideText)
		})
	}
}

// waitForRoot asks the file server for its folders until it has taken over the client's,
// which it fetches after the handshake.
func (s *session) waitForRoot(t *testing.T, root string) {
	t.Helper()
	var text string
	for range 1000 {
		var failed bool
		text, failed = s.call(t, "list_allowed_directories", map[string]any{})
		if failed {
			t.Fatal(text)
		}
		if strings.HasSuffix(strings.TrimSpace(text), "\n"+root) {
			return
		}
	}
	t.Fatalf("the server never took the client's roots: %q; stderr:\n%s", text, s.stderr)
}

// TestV18 is the memory server as a writer of any file: its storage path comes from
// outside, for example the shell's start-up file.
func TestV18(t *testing.T) {
	entity := map[string]any{"entities": []map[string]any{{"name": "echo owned", "entityType": "x", "observations": []string{}}}}
	tests := []struct {
		name string
		body string // of the profile, beside what the example says
		want string
	}{
		{name: "a profile that passes the path on", body: "environment: {pass: [MEMORY_FILE_PATH]}\n", want: "EACCES"},
		{name: "a profile that does not", body: "", want: "EACCES"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			startup := filepath.Join(p.home, ".bashrc")
			write(t, startup, "")
			command, err := stock.Memory.Command()
			if err != nil {
				t.Fatal(err)
			}
			start := func(launch launch) *session {
				cmd := p.command(launch(t, command...)...)
				cmd.Env = append(cmd.Env, "MEMORY_FILE_PATH="+startup)
				return connect(t, cmd)
			}
			s := start(in(p.profile(t, tt.body)))
			s.refused(t, "create_entities", entity, tt.want)
			s.end(t)
			if got, err := os.ReadFile(startup); err != nil || len(got) != 0 {
				t.Errorf("the start-up file became %q (%v)", got, err)
			}
			outside := start(free)
			text, failed := outside.call(t, "create_entities", entity)
			got, err := os.ReadFile(startup)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				t.Errorf("outside the jail the start-up file stayed empty (answer %q, failed: %v)", text, failed)
			}
		})
	}
}
