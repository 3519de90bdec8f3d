package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openPlan opens one grant beside the program that every plan needs.
func openPlan(t *testing.T, g Grant, guarded ...Guarded) (OpenedGrant, error) {
	t.Helper()
	program, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{File: program, Guarded: guarded, Grants: []Grant{{Path: program, Access: Execute}, g}}
	o, err := Open(p)
	if err != nil {
		return OpenedGrant{}, err
	}
	defer o.Close()
	return o.Grants[1], nil
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mustDo(t, os.WriteFile(at("file"), nil, 0o600))
	mustDo(t, os.Symlink("missing", at("dangling")))
	mustDo(t, os.Symlink("loop", at("loop")))
	mustDo(t, unix.Mkfifo(at("fifo"), 0o600))
	tests := []struct {
		name  string
		grant Grant
		want  string // part of the message
		errno error
	}{
		{"missing", Grant{Path: at("missing"), Access: Read}, "no such file", unix.ENOENT},
		{"dangling link", Grant{Path: at("dangling"), Access: Read}, "no such file", unix.ENOENT},
		{"looping link", Grant{Path: at("loop"), Access: Read}, "too many levels", unix.ELOOP},
		{"looping link, optional", Grant{Path: at("loop"), Access: Read, Presence: Optional}, "too many levels", unix.ELOOP},
		{"below a file", Grant{Path: at("file/x"), Access: Write}, "not a directory", unix.ENOTDIR},
		{"NUL", Grant{Path: at("a\x00b"), Access: Read}, "NUL", nil},
		{"relative", Grant{Path: "a/b", Access: Read}, "absolute", nil},
		{"file for a folder", Grant{Path: at("file"), Access: Write, Want: KindFolder}, "is a file, not a folder", nil},
		{"folder for a program", Grant{Path: dir, Access: Execute}, "only a file can be executed", nil},
		{"fifo for a program", Grant{Path: at("fifo"), Access: Execute}, "only a file can be executed", nil},
		{"file for a device", Grant{Path: at("file"), Access: Device}, "not a device", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.grant.Origin = Origin{Source: "p.yaml", Line: 3, Column: 7}
			_, err := openPlan(t, tt.grant)
			var grantErr *GrantError
			if !errors.As(err, &grantErr) {
				t.Fatalf("got %v, want a GrantError", err)
			}
			if !strings.HasPrefix(err.Error(), "p.yaml:3:7: granting ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("message %q, want the place and %q", err, tt.want)
			}
			if tt.errno != nil && !errors.Is(err, tt.errno) {
				t.Errorf("got %v, want %v", err, tt.errno)
			}
			if grantErr.Hint() == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestOpenFollowsLinksOnce(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	target := filepath.Join(dir, "a b\nü")
	mustDo(t, os.Mkdir(target, 0o700))
	link := filepath.Join(dir, "link")
	mustDo(t, os.Symlink(target, link))
	got, err := openPlan(t, Grant{Path: link, Access: Write})
	mustDo(t, err)
	if got.Target != target || got.Kind != KindFolder || got.State != Granted {
		t.Errorf("got target %q, %s, state %d", got.Target, got.Kind, got.State)
	}
}

func TestOptionalAbsentIsSkipped(t *testing.T) {
	got, err := openPlan(t, Grant{Path: filepath.Join(t.TempDir(), "x"), Access: Read, Presence: Optional})
	mustDo(t, err)
	if got.State != Skipped {
		t.Errorf("state %d, want skipped", got.State)
	}
}

func TestProgramHasToBeGranted(t *testing.T) {
	_, err := Open(Plan{File: "/bin/true"})
	if err == nil || !strings.Contains(err.Error(), "execute grants") {
		t.Errorf("got %v", err)
	}
}

// TestGuarded: home lies behind a link, as on machines that keep homes elsewhere.
func TestGuarded(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	for _, d := range []string{"disk/u/.ssh/keys", "disk/u/work", "disk/u/state/stockade"} {
		mustDo(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	home := filepath.Join(dir, "home")
	mustDo(t, os.Symlink(filepath.Join(dir, "disk/u"), home))
	mustDo(t, os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(dir, "innocent")))
	guarded := []Guarded{
		{Path: home, Why: "your home folder", Rule: GuardWhole},
		{Path: home + "/.ssh", Why: "SSH keys", Rule: GuardTree},
		{Path: home + "/state/stockade", Why: "stockade's own state", Rule: GuardAlways},
	}
	tests := []struct {
		name, path, broad, want string
	}{
		{"work", home + "/work", "", ""},
		{"work by its real path", dir + "/disk/u/work", "", ""},
		{"home", home, "", "your home folder"},
		{"home by its real path", dir + "/disk/u", "", "your home folder"},
		{"above home", dir + "/disk", "", "your home folder"},
		{"keys", home + "/.ssh", "", "SSH keys"},
		{"inside keys", home + "/.ssh/keys", "", "SSH keys"},
		{"keys by another link", dir + "/innocent", "", "SSH keys"},
		{"keys with a reason", home + "/.ssh", "signs commits", ""},
		{"state", home + "/state/stockade", "", "own state"},
		{"state with a reason", home + "/state/stockade", "I want to", "own state"},
		{"above state with a reason", home, "I want to", ""},
		{"above state", home + "/state", "", "own state"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openPlan(t, Grant{Path: tt.path, Access: Write, Broad: tt.broad}, guarded...)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestPlantedLinks: in an earlier run the server replaced a folder that it could write by a
// link to one that it could not.
func TestPlantedLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	program, err := filepath.EvalSymlinks("/bin/true")
	mustDo(t, err)
	for _, d := range []string{"proj/real", "private"} {
		mustDo(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	mustDo(t, os.Symlink(dir+"/private", dir+"/proj/planted"))
	mustDo(t, os.Symlink("real", dir+"/proj/inside"))
	mustDo(t, os.Symlink(dir+"/private", dir+"/own"))
	mustDo(t, os.Symlink("proj/planted", dir+"/over"))
	open := func(paths ...string) error {
		p := Plan{File: program, Grants: []Grant{{Path: program, Access: Execute}}}
		for _, path := range paths {
			p.Grants = append(p.Grants, Grant{Path: dir + path, Access: Write})
		}
		o, err := Open(p)
		if err == nil {
			o.Close()
		}
		return err
	}
	for _, path := range []string{"/proj/planted", "/over", "/proj/./planted", "/proj/inside/../planted"} {
		if err := open("/proj", path); err == nil || !strings.Contains(err.Error(), "may have made it") {
			t.Errorf("%s, a planted link: %v", path, err)
		}
	}
	for _, paths := range [][]string{{"/proj", "/proj/inside"}, {"/proj", "/own"}, {"/proj/planted"}, {"/over"}, {"/proj", "/private"}} {
		if err := open(paths...); err != nil {
			t.Errorf("%v: %v", paths, err)
		}
	}
}

// TestPlantedLinksInWords: the command line names a file in a folder of the server, which
// has become a link.
func TestPlantedLinksInWords(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	program, err := filepath.EvalSymlinks("/bin/true")
	mustDo(t, err)
	mustDo(t, os.Mkdir(dir+"/proj", 0o700))
	mustDo(t, os.WriteFile(dir+"/secret", nil, 0o600))
	mustDo(t, os.WriteFile(dir+"/proj/own", nil, 0o600))
	mustDo(t, os.Symlink(dir+"/secret", dir+"/proj/.env"))
	mustDo(t, os.Symlink("own", dir+"/proj/inside"))
	open := func(need string, words ...string) error {
		o, err := Open(Plan{File: program, Dir: dir + "/proj", Argv: append([]string{"node"}, words...), Grants: []Grant{
			{Path: program, Access: Execute},
			{Path: dir + "/proj", Access: Write},
			{Path: need, Access: Read, Origin: Origin{Source: OriginRuntime}},
		}})
		if err == nil {
			o.Close()
		}
		return err
	}
	for _, word := range []string{"--env-file=.env", ".env", dir + "/proj/.env"} {
		if err := open(dir+"/secret", word); err == nil || !strings.Contains(err.Error(), "may have made it") {
			t.Errorf("%s: %v", word, err)
		}
	}
	for need, word := range map[string]string{dir + "/secret": dir + "/secret", dir + "/proj/own": "inside"} {
		if err := open(need, word); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// TestRuntimeLinksAreRefused: what a runtime needs was resolved; a link there is new.
func TestRuntimeLinksAreRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	mustDo(t, os.WriteFile(dir+"/file", nil, 0o600))
	mustDo(t, os.Symlink("file", dir+"/link"))
	mustDo(t, os.Symlink(".", dir+"/folder"))
	runtime := Origin{Source: OriginRuntime}
	for _, path := range []string{dir + "/link", dir + "/folder/file"} {
		if _, err := openPlan(t, Grant{Path: path, Access: Read, Origin: runtime}); !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v, want ELOOP", path, err)
		}
		if _, err := openPlan(t, Grant{Path: path, Access: Read}); err != nil {
			t.Errorf("%s as a person's grant: %v", path, err)
		}
	}
	if _, err := openPlan(t, Grant{Path: dir + "/file", Access: Read, Origin: runtime}); err != nil {
		t.Error(err)
	}
}

// TestGuardedRuntime: a server's own files do not lead into a guarded tree; a command line
// that names a program there does.
func TestGuardedRuntime(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	program, err := filepath.EvalSymlinks("/bin/true")
	mustDo(t, err)
	mustDo(t, os.MkdirAll(dir+"/.agent/server", 0o700))
	open := func(argv ...string) error {
		o, err := Open(Plan{
			File: program, Argv: argv,
			Guarded: []Guarded{{Path: dir + "/.agent", Why: "an agent's settings", Rule: GuardTree}},
			Grants: []Grant{
				{Path: program, Access: Execute},
				{Path: dir + "/.agent/server", Access: Read, Origin: Origin{Source: OriginRuntime}},
			},
		})
		if err == nil {
			o.Close()
		}
		return err
	}
	if err := open("node", "/elsewhere/main.js"); err == nil || !strings.Contains(err.Error(), "an agent's settings") {
		t.Errorf("led there by a server's files: %v", err)
	}
	if err := open("node", dir+"/.agent/other"); err == nil {
		t.Error("the command line names a neighbour, and that opens the folder")
	}
	if err := open("node", dir+"/.agent/server/main.js"); err != nil {
		t.Errorf("named by the command line: %v", err)
	}
}

// TestGuardedOwnPart: of a place that holds programs, a program's needs reach its own part
// to read and execute, whatever the command line names, and a profile's grants reach none.
func TestGuardedOwnPart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mustDo(t, err)
	program, err := filepath.EvalSymlinks("/bin/true")
	mustDo(t, err)
	for _, d := range []string{"state/store/own/lib", "state/store/own-2/lib", "state/homes", "elsewhere"} {
		mustDo(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	mustDo(t, os.WriteFile(dir+"/state/store/own/run", nil, 0o700))
	runtime := Origin{Source: OriginRuntime}
	tests := []struct {
		name   string
		grant  Grant
		argv   string
		opened bool
	}{
		{"own part", Grant{Path: "/state/store/own", Access: Read, Origin: runtime}, "", true},
		{"inside the own part", Grant{Path: "/state/store/own/lib", Access: Read, Origin: runtime}, "/elsewhere/x", true},
		{"own program", Grant{Path: "/state/store/own/run", Access: Execute, Origin: runtime}, "", true},
		{"own part to write", Grant{Path: "/state/store/own/lib", Access: Write, Origin: runtime}, "/state/store/own/run", false},
		{"neighbour whose name begins alike", Grant{Path: "/state/store/own-2", Access: Read, Origin: runtime}, "", false},
		{"neighbour that is named", Grant{Path: "/state/store/own-2", Access: Read, Origin: runtime}, "/state/store/own-2/lib", false},
		{"the whole", Grant{Path: "/state/store", Access: Read, Origin: runtime}, "/state/store/own/run", false},
		{"above the place", Grant{Path: "/state", Access: Read, Origin: runtime}, "/state/store/own/run", false},
		{"beside it in the place", Grant{Path: "/state/homes", Access: Read, Origin: runtime}, "", false},
		{"own part by a profile", Grant{Path: "/state/store/own", Access: Read}, "/state/store/own/run", false},
		{"own part by a profile with a reason", Grant{Path: "/state/store/own", Access: Write, Broad: "r"}, "/state/store/own/run", false},
		{"outside", Grant{Path: "/elsewhere", Access: Read, Origin: runtime}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.grant.Path = dir + tt.grant.Path
			o, err := Open(Plan{
				File: program, Argv: []string{"node", dir + tt.argv},
				Guarded: []Guarded{{Path: dir + "/state", Why: "stockade's own files", Rule: GuardAlways, Own: dir + "/state/store/own"}},
				Grants:  []Grant{{Path: program, Access: Execute}, tt.grant},
			})
			if err == nil {
				o.Close()
			}
			switch {
			case tt.opened && err != nil:
				t.Errorf("refused: %v", err)
			case !tt.opened && (err == nil || !strings.Contains(err.Error(), "stockade's own files")):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSocketFileIsNotGranted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	mustDo(t, err)
	defer unix.Close(fd)
	mustDo(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	_, err = openPlan(t, Grant{Path: path, Access: Read})
	if err == nil || !strings.Contains(err.Error(), "socket") {
		t.Errorf("got %v", err)
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
