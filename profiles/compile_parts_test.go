package profiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
)

func TestWants(t *testing.T) {
	p := parse(t, `filesystem: {execute: [git, /opt/tool/bin/x, "${home}/bin/y", "${repo}/z"], read: ["${args}"]}
syscalls: {profile: ./list.json}
`)
	p.Syscalls.Profile.File = "/etc/stockade/profiles/p.yaml"
	f := profiles.FactsForTests()
	f.Repo = ""
	f.Program.Args = []string{"--flag", "--file=/x", "-", "word", "/abs/../a", "./rel", "../up", "~", "~/h", "https://example.com/x", "file:///x", "", "${workspaceFolder}/x", "a b"}
	want := profiles.Wanted{
		Programs: []string{"git", "/opt/tool/bin/x", "/home/me/bin/y"},
		Path:     "/usr/local/bin:/usr/bin:/bin",
		Arguments: []profiles.ArgFolder{
			{Arg: "word", Path: "/home/me/project/word"},
			{Arg: "/abs/../a", Path: "/a"},
			{Arg: "./rel", Path: "/home/me/project/rel"},
			{Arg: "../up", Path: "/home/me/up"},
			{Arg: "~", Path: "/home/me"},
			{Arg: "~/h", Path: "/home/me/h"},
			{Arg: "a b", Path: "/home/me/project/a b"},
		},
		SyscallFile: "/etc/stockade/profiles/list.json",
	}
	if diff := cmp.Diff(want, p.Wants(f)); diff != "" {
		t.Errorf("wanted (-want +got):\n%s", diff)
	}
	if w := profiles.Empty().Wants(f); len(w.Programs)+len(w.Arguments) > 0 || w.SyscallFile != "" {
		t.Errorf("the empty profile wants %+v", w)
	}
	abs := parse(t, "syscalls: {profile: /x.json}\nroots: args\n")
	if w := abs.Wants(f); w.SyscallFile != "/x.json" || len(w.Arguments) != 7 {
		t.Errorf("got %+v", w)
	}
	if w := parse(t, "syscalls: {profile: default}\nenvironment: {set: {A: \"${args}\"}}\n").Wants(f); w.SyscallFile != "" || len(w.Arguments) != 7 {
		t.Errorf("got %+v", w)
	}
}

// TestNamesAreNotLookedUpBesideTheServer: a script in a virtual environment that is called
// as a known program does not get its interpreter granted.
func TestNamesAreNotLookedUpBesideTheServer(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "venv/bin")
	for _, name := range []string{"ls", "of-the-server"} {
		write(t, filepath.Join(bin, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	f := profiles.FactsForTests()
	f.Program.Path = []string{bin}
	p := parse(t, "filesystem: {execute: [ls, of-the-server, "+bin+"/of-the-server]}\n")
	w := p.Wants(f)
	closure := func(name string) ([]string, error) {
		files, _, err := program.Closure(name, program.Facts{Home: f.Home, Dir: f.Dir, Env: map[string]string{"PATH": w.Path}})
		return files, err
	}
	own := filepath.Join(bin, "of-the-server")
	system, err := filepath.EvalSymlinks("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	if files, err := closure("ls"); err != nil || !slices.Contains(files, system) || slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, bin) }) {
		t.Errorf("ls is %q, %v; want %s", files, err, system)
	}
	files, err := closure("of-the-server")
	if _, absent := errors.AsType[*program.NotFoundError](err); !absent {
		t.Errorf("of-the-server is %q, %v; want an error", files, err)
	}
	if files, err := closure(own); err != nil || !slices.Contains(files, own) {
		t.Errorf("by its path: %q, %v", files, err)
	}
}

func TestRootsFromArguments(t *testing.T) {
	r := mustCompile(t, parse(t, "filesystem: {write: [\"${roots}\"]}\nroots: args\n"), func(f *profiles.Facts) {
		f.ArgFolders = []profiles.ArgFolder{
			{Arg: "/a", Path: "/a", State: profiles.ArgIsFolder},
			{Arg: "verbose", Path: "/home/me/project/verbose"},
			{Arg: "readme", Path: "/home/me/project/readme", State: profiles.ArgIsFile},
			{Arg: "sub", Path: "/home/me/project/sub", State: profiles.ArgIsFolder},
			{Arg: "/a/", Path: "/a", State: profiles.ArgIsFolder},
		}
	})
	var got []string
	for _, g := range r.Plan.Grants {
		if g.Access == sandbox.Write {
			got = append(got, g.Path)
			if g.Want != sandbox.KindFolder {
				t.Errorf("%s may be a %s", g.Path, g.Want)
			}
		}
	}
	if diff := cmp.Diff([]string{"/a", "/home/me/project/sub"}, got); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
}

func TestPlaceholdersAreWarnedOf(t *testing.T) {
	tests := []struct{ arg, name string }{
		{"${workspaceFolder}/x", "${workspaceFolder}"},
		{"--key=${input:api-key}", "${input:api-key}"},
		{"${env:HOME}", "${env:HOME}"},
		{"${HOME}", "${HOME}"},
		{"${TOKEN:-hunter2}", "${TOKEN}"},
		{"{env:TOKEN}", "{env:TOKEN}"},
		{"{file:~/x}", "{file:~/x}"},
		{"${{ secrets.X }}", "${{ secrets.X }"},
		{"$HOME", ""},
		{"plain", ""},
		{"{}", ""},
		{"${open", ""},
		{"a{b}c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.arg, func(t *testing.T) {
			r := mustCompile(t, profiles.Empty(), func(f *profiles.Facts) { f.Program.Args = []string{"x", tt.arg} })
			want := ""
			if tt.name != "" {
				want = "argument 2 of the server holds " + tt.name + ", which the host did not fill in"
			}
			if got := strings.Join(r.Warnings, "\n"); got != want {
				t.Errorf("warnings:\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestOwnProcessFiles: each runtime gets the files that it reads, of its own process only.
func TestOwnProcessFiles(t *testing.T) {
	for _, runtime := range []program.Runtime{program.Native, program.Node, program.Python, program.Shell} {
		for pid, folder := range map[int]string{4321: "/proc/4321/", 0: "/proc/self/"} {
			r := mustCompile(t, profiles.Empty(), func(f *profiles.Facts) { f.Program.Runtime, f.PID = runtime, pid })
			for _, g := range r.Plan.Grants {
				global := slices.Contains([]string{"/proc/meminfo", "/proc/cpuinfo", "/proc/stat"}, g.Path)
				if strings.HasPrefix(g.Path, "/proc") && !global && !strings.HasPrefix(g.Path, folder) {
					t.Errorf("runtime %d, process %d: %s is granted", runtime, pid, g.Path)
				}
				if strings.HasPrefix(g.Path, "/proc") && (g.Want != sandbox.KindFile || g.Presence != sandbox.Optional || g.Access != sandbox.Read) {
					t.Errorf("%s is granted as %s, %s", g.Path, g.Access, g.Want)
				}
			}
		}
	}
}

func TestGuardedPlaces(t *testing.T) {
	rules := map[string]sandbox.GuardRule{}
	asRoot := mustCompile(t, profiles.Empty(), func(f *profiles.Facts) { f.Home = "/root" }).Plan.Guarded
	for i, g := range asRoot {
		if slices.ContainsFunc(asRoot[:i], func(other sandbox.Guarded) bool { return other.Path == g.Path }) {
			t.Errorf("%s is guarded twice when it is the home folder", g.Path)
		}
	}
	for _, g := range mustCompile(t, profiles.Empty(), nil).Plan.Guarded {
		if g.Why == "" || !filepath.IsAbs(g.Path) || filepath.Clean(g.Path) != g.Path {
			t.Errorf("guarded place %+v", g)
		}
		if _, twice := rules[g.Path]; twice {
			t.Errorf("%s is guarded twice", g.Path)
		}
		rules[g.Path] = g.Rule
	}
	for path, want := range map[string]sandbox.GuardRule{
		"/": sandbox.GuardWhole, "/etc": sandbox.GuardWhole, "/proc": sandbox.GuardWhole, "/home": sandbox.GuardWhole, "/home/me": sandbox.GuardWhole,
		"/home/me/.ssh": sandbox.GuardTree, "/home/me/.aws": sandbox.GuardTree, "/home/me/.gnupg": sandbox.GuardTree, "/home/me/.config/gcloud": sandbox.GuardTree,
		"/home/me/.kube": sandbox.GuardTree, "/home/me/.docker": sandbox.GuardTree, "/home/me/.claude.json": sandbox.GuardTree, "/etc/shadow": sandbox.GuardTree,
		"/home/me/.config/stockade": sandbox.GuardAlways, "/home/me/.local/state/stockade": sandbox.GuardAlways,
		"/home/me/.local/state/stockade/approvals": sandbox.GuardNeverWrite,
		"/home/me/.local/share/stockade":           sandbox.GuardAlways, "/home/me/.cache/stockade": sandbox.GuardAlways,
	} {
		if got, known := rules[path]; !known || got != want {
			t.Errorf("%s is guarded by rule %d (known: %v), want %d", path, got, known, want)
		}
	}
	r := mustCompile(t, profiles.Empty(), func(f *profiles.Facts) { f.Home, f.Env = "/", nil })
	for _, g := range r.Plan.Guarded {
		if strings.HasPrefix(g.Path, "//") {
			t.Errorf("guarded place %q", g.Path)
		}
	}
}

// TestEnvironmentOrder: values of the host are passed by name, and the profile's own count
// more.
func TestEnvironmentOrder(t *testing.T) {
	r := mustCompile(t, parse(t, "environment: {pass: [\"US*\", \"LC_*\", \"NO*\"], set: {LANG: own, LC_TIME: mine, USER: you}}\n"), nil)
	var got []string
	for _, e := range r.Plan.Env {
		if name, _, _ := strings.Cut(e, "="); name != "HOME" && name != "PATH" && name != "TMPDIR" {
			got = append(got, e)
		}
	}
	if diff := cmp.Diff([]string{"LANG=own", "LC_TIME=mine", "USER=you"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// TestResidual: each weakness is said when it is there, and not when it is not.
func TestResidual(t *testing.T) {
	tests := []struct {
		name, src string
		facts     func(*profiles.Facts)
		open      string
		want      bool
	}{
		{"metadata", "", nil, "stay visible (stat)", true},
		{"descriptors", "", nil, "the mode (set-id bits are refused), owner, times, ACLs", true},
		{"devices as root", "", func(f *profiles.Facts) { f.UID = 0 }, "device nodes such as /dev/null", true},
		{"devices", "", nil, "device nodes such as /dev/null", false},
		{"loader", "", nil, "the loader can start any program file", true},
		{"static", "", func(f *profiles.Facts) { f.Program.Execute, f.Program.Entry = f.Program.Execute[:1], "" }, "the loader can start any program file", false},
		{"script", "", nil, "node runs every script", true},
		{"no script", "", func(f *profiles.Facts) { f.Program.Entry = "" }, "node runs every script", false},
		{"interpreter", "filesystem: {execute: [git]}", nil, "inside this jail: git", true},
		{"other program", "filesystem: {execute: [/opt/x]}", nil, "run commands or scripts of their own", false},
		{"egress", "network: {egress: all}", nil, "every address and port", true},
		{"no egress", "network: {egress: none}", nil, "every address and port", false},
		{"listen", "network: {listen: [80]}", nil, "open on every address", true},
		{"ports", "network: {listen: [80]}", func(f *profiles.Facts) { f.LandlockABI = 3 }, "may listen on any port", true},
		{"ports on a newer kernel", "network: {listen: [80]}", func(f *profiles.Facts) { f.LandlockABI = 4 }, "may listen on any port", false},
		{"signals", "", func(f *profiles.Facts) { f.LandlockABI = 5 }, "can signal the person's other processes", true},
		{"signals on a newer kernel", "", func(f *profiles.Facts) { f.LandlockABI = 6 }, "can signal the person's other processes", false},
		{"root", "", func(f *profiles.Facts) { f.UID = 0 }, "runs as root, without capabilities: file modes hold", true},
		{"listening on any port", "network: {listen: [80]}\n", nil, "takes one that the kernel picks", true},
		{"listening under a supervisor", "network: {listen: [80], egress: public}\n", func(f *profiles.Facts) { f.LandlockABI = 3 }, "takes one that the kernel picks", false},
		{"ports under a supervisor", "network: {listen: [80], egress: public}\n", func(f *profiles.Facts) { f.LandlockABI = 3 }, "may listen on any port", false},
		{"not listening", "network: {egress: all}\n", nil, "takes one that the kernel picks", false},
		{"not root", "", nil, "runs as root", false},
		{"broad", "filesystem: {read: [{path: /, broad: true, reason: why not}]}", nil, "/ is granted whole: why not", true},
		{"terminal", "", func(f *profiles.Facts) { f.StdioDevices = []string{"/dev/pts/1"} }, "terminal that it was started on", true},
		{"secrets", "environment: {secrets: [TOKEN]}", nil, "gets them too", true},
		{"calls", "syscalls: {allow: [bpf]}", nil, "the profile allows bpf", true},
		{"limits", "limits: {memory: 1GiB, processes: 8, file-size: 1MiB}", nil, "memory, processes", false},
		{"no limits", "", nil, "memory, processes, file size are not limited", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompile(t, parse(t, tt.src+"\n"), tt.facts)
			var all []string
			for _, o := range r.Residual {
				if o.Promise == "" || o.Open == "" {
					t.Errorf("half a sentence: %+v", o)
				}
				all = append(all, o.Open)
			}
			if got := strings.Contains(strings.Join(all, "\n"), tt.open); got != tt.want {
				t.Errorf("%q is said: %v, want %v, in:\n%s", tt.open, got, tt.want, strings.Join(all, "\n"))
			}
		})
	}
}

// TestRootsAreFolders: however a root is given, the grant that comes from it is good for a
// folder alone, and says where it was asked for; a path inside a root, or a root named as
// an ordinary path, may be a file.
func TestRootsAreFolders(t *testing.T) {
	const uses = "filesystem: {write: [\"${roots}\"], read: [\"${roots}/in\", /plain]}\n"
	at := func(line, column int) sandbox.Origin {
		return sandbox.Origin{Source: "p.yaml", Line: line, Column: column}
	}
	tests := []struct {
		name, src string
		flags     profiles.Flags
		path, why string
	}{
		{"argument", uses + "roots: args\n", profiles.Flags{}, "/data/a", "root from the server's argument"},
		{"list", uses + "roots: [/r]\n", profiles.Flags{}, "/r", "root from p.yaml:4:9"},
		{"flag", uses, profiles.Flags{Roots: []string{"/r/file.txt"}}, "/r/file.txt", "root from --root"},
		{"flag beside arguments", uses + "roots: args\n", profiles.Flags{Roots: []string{"./r"}}, "/home/me/project/r", "root from --root"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parse(t, tt.src).With(tt.flags)
			if err != nil {
				t.Fatal(err)
			}
			r := mustCompile(t, p, nil)
			got := map[string]sandbox.Grant{}
			for _, g := range r.Plan.Grants {
				got[g.Access.String()+" "+g.Path] = g
			}
			want := map[string]sandbox.Grant{
				"write " + tt.path:        {Path: tt.path, Access: sandbox.Write, Want: sandbox.KindFolder, Origin: at(3, 22), Why: tt.why},
				"read " + tt.path + "/in": {Path: tt.path + "/in", Access: sandbox.Read, Origin: at(3, 42), Why: tt.why},
				"read /plain":             {Path: "/plain", Access: sandbox.Read, Origin: at(3, 57), Why: "filesystem.read"},
			}
			for key, g := range want {
				if diff := cmp.Diff(g, got[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

// TestUsersAreNotListed: no built-in profile grants the lists of users, also not one that
// looks up names.
func TestUsersAreNotListed(t *testing.T) {
	for _, name := range profiles.BuiltinNames() {
		for _, egress := range []string{"none", "all", "public", "[a.example]"} {
			t.Run(name+" "+egress, func(t *testing.T) {
				p, err := profiles.Search{}.Complete(parse(t, "extends: ["+name+"]\nnetwork: {egress: "+egress+"}\n"))
				if err != nil {
					t.Fatal(err)
				}
				p, has := provided(t, p)
				resolver := false
				for _, g := range mustCompile(t, p, has).Plan.Grants {
					switch g.Path {
					case "/etc", "/etc/passwd", "/etc/group":
						t.Errorf("%s is granted", g.Path)
					case "/etc/resolv.conf":
						resolver = true
					}
				}
				if resolver != (egress != "none") {
					t.Errorf("/etc/resolv.conf is granted: %v", resolver)
				}
			})
		}
	}
}
