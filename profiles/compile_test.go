package profiles_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
	"stockade/seccomp"
)

// compile completes and compiles, with facts changed by a step.
func compile(t *testing.T, p *profiles.Profile, change func(*profiles.Facts)) (profiles.Resolved, error) {
	t.Helper()
	p, err := profiles.Search{}.Complete(p)
	if err != nil {
		t.Fatal(err)
	}
	f := profiles.FactsForTests()
	if change != nil {
		change(&f)
	}
	return profiles.Compile(p, f)
}

func mustCompile(t *testing.T, p *profiles.Profile, change func(*profiles.Facts)) profiles.Resolved {
	t.Helper()
	r, err := compile(t, p, change)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe writes a plan as text, one fact a line.
func describe(r profiles.Resolved) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p := r.Plan
	line("name %s", p.Name)
	line("file %s", p.File)
	line("argv %q", p.Argv)
	line("dir %s", p.Dir)
	for _, e := range p.Env {
		line("env %s", e)
	}
	line("home %s", p.Home.Path)
	line("tmp %s", p.Tmp.Path)
	line("runs %s", p.Runs)
	for _, g := range p.Grants {
		presence := ""
		if g.Presence == sandbox.Optional {
			presence = " if there"
		}
		broad := ""
		if g.Broad != "" {
			broad = " broad: " + g.Broad
		}
		line("grant %s %s%s as %s%s [%s: %s]", g.Access, g.Path, presence, g.Want, broad, g.Origin, g.Why)
	}
	line("egress %d listen %v", p.Network.Egress, p.Network.Listen)
	if p.Network.Egress == sandbox.EgressRules {
		line("egress rules beside %s", p.Network.Rules.Mode)
	}
	for _, rule := range p.Network.Rules.Rules {
		line("egress rule %s names %s text %q [%s]", rule, rule.Names, rule.Text, rule.Origin)
	}
	for _, g := range p.Network.Unix {
		line("unix %s broad %q [%s]", g.Path, g.Broad, g.Origin)
	}
	if p.Filter.Supervision != seccomp.Unsupervised {
		line("filter supervision %d", p.Filter.Supervision)
	}
	line("filter sockets %d listening %d metadata %d truncation %d base %v allow %v deny %v", p.Filter.Sockets, p.Filter.Listening,
		p.Filter.Metadata, p.Filter.Truncation, p.Filter.Base != nil, p.Filter.Allow, p.Filter.Deny)
	line("limits %+v", p.Limits)
	line("missing %v", p.Missing)
	for _, g := range p.Guarded {
		line("guarded %d %s: %s", g.Rule, g.Path, g.Why)
	}
	for _, w := range r.Warnings {
		line("warning %s", w)
	}
	for _, n := range r.Notes {
		line("note %s", n)
	}
	for _, o := range r.Residual {
		line("open %s, but %s", o.Promise, o.Open)
	}
	return b.String()
}

func TestCompileGolden(t *testing.T) {
	python := func(f *profiles.Facts) {
		f.Program = program.Program{
			File: "/usr/bin/python3.11", Argv: []string{"python3", "-m", "my_server"}, Named: "/usr/bin/python3", Runtime: program.Python, Package: "my_server",
			Execute: []string{"/usr/bin/python3.11", "/lib64/ld-linux-x86-64.so.2"}, Read: []program.Need{{Path: "/usr/lib/python3.11", Why: "standard library"}}, Path: []string{"/usr/bin"},
		}
	}
	static := func(f *profiles.Facts) {
		f.Program = program.Program{File: "/opt/notes", Argv: []string{"notes"}, Named: "/opt/notes", Execute: []string{"/opt/notes"}, Path: []string{"/opt"}}
		f.UID, f.LandlockABI, f.StdioDevices = 0, 2, []string{"/dev/pts/3"}
	}
	cases := map[string]func(*profiles.Facts){"base": nil, "node": nil, "filesystem": nil, "python": python, "static": static, "empty": nil}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			p, ok := profiles.Builtin(name)
			if name == "empty" {
				p, ok = profiles.Empty(), true
			}
			if !ok {
				t.Fatal("no such profile")
			}
			golden(t, name, describe(mustCompile(t, p, cases[name])))
		})
	}
	t.Run("everything", func(t *testing.T) {
		p, err := parse(t, `extends: [node]
filesystem:
  read: ["${home}/reference", {path: "${repo}", broad: true, reason: a test of reasons}, "${args}"]
  write: ["${roots}", "${roots}/deep/../shallow", "~/notes"]
  execute: [git, /opt/x]
  optional: [/etc/gitconfig]
  metadata: refuse
  special-files: allow
roots: ["${cwd}/r1", {path: /r2, broad: true, reason: all of it}]
network: {egress: all, listen: [8081, 8080, 8081]}
environment:
  pass: ["API*", NONE]
  set: {STORE: "${private}/s", PRICE: "5$$", NODE_OPTIONS: --no-warnings, R: "~/x"}
  secrets: [TOKEN]
syscalls: {deny: [getcwd], allow: [bpf]}
limits: {open-files: 512, file-size: 1MiB, memory: 1GiB, processes: 64}
view: full
missing: {allow: [scope-signals, landlock-tcp, scope-signals]}
`).With(profiles.Flags{Roots: []string{"/r3"}, Read: []string{"~/flag"}, Env: []string{"FLAG=1", "ABSENT"}, Listen: []string{"9000"}})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "everything", describe(mustCompile(t, p, nil)))
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *profiles.Update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestCompileIsDeterministic(t *testing.T) {
	p, _ := profiles.Builtin("filesystem")
	many := func(f *profiles.Facts) {
		for i := range 50 {
			f.Env[fmt.Sprintf("LC_%d", i)] = "x"
		}
	}
	want := mustCompile(t, p, many)
	for range 20 {
		if diff := cmp.Diff(want, mustCompile(t, p, many)); diff != "" {
			t.Fatalf("the same profile and facts give another plan:\n%s", diff)
		}
	}
}

// TestCompileIsPure: neither the process's environment nor the facts change anything but
// through the arguments.
func TestCompileIsPure(t *testing.T) {
	p, _ := profiles.Builtin("filesystem")
	facts := profiles.FactsForTests()
	before := fmt.Sprintf("%+v %+v", *p, facts)
	want := mustCompile(t, p, nil)
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "LANG", "TERM", "PATH", "TZ"} {
		t.Setenv(name, "/elsewhere")
	}
	t.Chdir(t.TempDir())
	if diff := cmp.Diff(want, mustCompile(t, p, nil)); diff != "" {
		t.Errorf("the plan depends on the process:\n%s", diff)
	}
	done, err := profiles.Search{}.Complete(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profiles.Compile(done, facts); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprintf("%+v %+v", *p, facts); after != before {
		t.Error("compiling changes its arguments")
	}
}

func TestCompileRefuses(t *testing.T) {
	list := func(states ...profiles.ArgFolder) func(*profiles.Facts) {
		return func(f *profiles.Facts) { f.ArgFolders = states }
	}
	const noRoots = `there are no roots | give folders with "--root DIR", or write "roots: args" to take the server's own folder arguments`
	const noNames = `network.names changes nothing: network.egress has no rule for a host | remove the key, or list hosts under network.egress`
	const unused = `roots grant nothing here: no entry of the profile uses ${roots} | write "write: [\"${roots}\"]" or "read: [\"${roots}\"]" under filesystem in profile "p", or use --write or --read`
	tests := []struct {
		name, src string
		facts     func(*profiles.Facts)
		want      []string
	}{
		// Not built yet.
		{"protect", "filesystem: {protect: [.git]}\n", nil, []string{"3:24: filesystem.protect: this layer is not built yet | grant the folders beside it instead of the one that holds it"}},
		{"hide", "filesystem: {hide: [.env]}\n", nil, []string{"3:21: filesystem.hide: this layer is not built yet | grant the folders beside it instead of the one that holds it"}},
		{"special files", "filesystem: {special-files: refuse}\n", nil, []string{`3:29: filesystem.special-files: refuse: this layer is not built yet | write "special-files: allow", or remove the key`}},
		{"metadata", "filesystem: {metadata: mediated}\n", nil, []string{`3:24: filesystem.metadata: mediated: this layer is not built yet | write "metadata: ignore" or "metadata: refuse"`}},
		{"view", "view: grants\n", nil, []string{`3:7: view: grants: this layer is not built yet | write "view: full", or remove the key`}},
		{"guard alone", "guard:\n", nil, []string{`3:7: guard.pins: this layer is not built yet | write "pins: off" for a guard without them`}},
		{"guard with pins", "guard: {pins: require}\n", nil, []string{`3:15: guard.pins: this layer is not built yet | write "pins: off" for a guard without them`}},
		{"guard with pins at first use", "guard: {pins: first-use}\n", nil, []string{`3:15: guard.pins: this layer is not built yet | write "pins: off" for a guard without them`}},
		{"guard with a result larger than a message", "guard: {pins: off, message-size: 1MiB, result-size: 1MiB}\n", nil, []string{"3:53: guard.result-size: a result lies in a message, and message-size is 1048576 bytes | write a smaller one, or remove the key"}},

		// Words about names without a name.
		{"names without egress", "network: {names: strict}\n", nil, []string{"3:18: " + noNames}},
		{"names of public", "network: {names: pinned, egress: public}\n", nil, []string{"3:18: " + noNames}},
		{"names of addresses", "network: {egress: [\"10.0.0.0/8:5432\"], names: pinned}\n", nil, []string{"3:47: " + noNames}},

		// Variables without a value.
		{"no repository", "filesystem: {read: [\"${repo}/x\"]}\n", func(f *profiles.Facts) { f.Repo = "" }, []string{"3:21: filesystem.read: ${repo} is not set: the working folder lies in no repository | start the server inside one, or name the folder"}},
		{"no runtime folder", "filesystem: {optional: [\"${runtime}\"]}\n", func(f *profiles.Facts) { f.Runtime = "" }, []string{"3:25: filesystem.optional: ${runtime} is not set: XDG_RUNTIME_DIR is not set | set it in the host's configuration, or name the folder"}},
		{"no private home", "filesystem: {home: real}\nenvironment: {set: {A: \"${private}\"}}\n", nil, []string{`4:21: environment.set.A: ${private} is not set: with filesystem.home: real there is no private home | write "home: private"`}},
		{"no arguments", "filesystem: {read: [\"${args}\"]}\n", list(profiles.ArgFolder{Arg: "x", Path: "/home/me/project/x"}), []string{"3:21: filesystem.read: ${args} is not set: no argument of the server names a path that is there | give the server its paths as arguments"}},
		{"no roots", "filesystem: {write: [\"${roots}\"]}\n", nil, []string{"3:22: filesystem.write: ${roots} is not set: " + noRoots}},
		{"empty roots", "filesystem: {write: [\"${roots}\"]}\nroots: []\n", nil, []string{"3:22: filesystem.write: ${roots} is not set: " + noRoots}},
		{"several roots in a value", "filesystem: {read: [\"${roots}\"]}\nroots: args\nenvironment: {set: {A: \"${roots}\"}}\n", nil, []string{"5:21: environment.set.A: ${roots} stands for 2 paths here | write the folders out"}},

		// roots: args
		{"no folder arguments", "filesystem: {write: [\"${roots}\"]}\nroots: args\n", list(), []string{`3:22: filesystem.write: ${roots} is not set: none of the server's arguments is a folder that exists | make the folder, write its absolute path, or use "--root DIR"`}},
		{
			"file as a folder", "filesystem: {write: [\"${roots}\"]}\nroots: args\n", list(profiles.ArgFolder{Arg: "/a", Path: "/a", State: profiles.ArgIsFolder}, profiles.ArgFolder{Arg: "./f", Path: "/f", State: profiles.ArgIsFile}),
			[]string{`4:8: roots: args: the server's argument "./f" is a file, not a folder | give the server the folder that holds it`},
		},
		{
			"missing folder", "filesystem: {write: [\"${roots}\"]}\nroots: args\n", list(profiles.ArgFolder{Arg: "~/f", Path: "/home/me/f"}),
			[]string{`4:8: roots: args: the server's argument "~/f" does not exist | make the folder, or correct the argument`},
		},
		{
			"one cause, one problem", "filesystem: {write: [\"${roots}\"], read: [\"${args}\", \"${roots}/x\"]}\nroots: args\nenvironment: {set: {A: \"${roots}\", B: \"${args}/y\"}}\n", list(profiles.ArgFolder{Arg: "./f", Path: "/f"}),
			[]string{`4:8: roots: args: the server's argument "./f" does not exist | make the folder, or correct the argument`},
		},
		{"a bad argument of unused roots", "roots: args\n", list(profiles.ArgFolder{Arg: "/f", Path: "/f", State: profiles.ArgIsFile}), []string{`3:8: roots: args: the server's argument "/f" is a file, not a folder | give the server the folder that holds it`}},
		{"unused roots", "roots: args\n", nil, []string{"3:8: " + unused}},
		{"unused list of roots", "roots: [/a, /b]\n", nil, []string{"3:9: " + unused, "3:13: " + unused}},

		// Programs, variables, calls.
		{"program not found", "filesystem: {execute: [nope]}\n", nil, []string{`3:24: filesystem.execute: program "nope" was not found on the jail's PATH | write its absolute path`}},
		{"program that cannot run", "filesystem: {execute: [git]}\n", func(f *profiles.Facts) {
			f.Execute["git"] = profiles.Closure{Err: &program.NotExecutableError{Path: "/usr/bin/git", Reason: "it is a shim", Hint: "write /opt/git in the profile"}}
		}, []string{`3:24: filesystem.execute: starting "/usr/bin/git": it is a shim | write /opt/git in the profile`}},
		{"secret not set", "environment: {secrets: [NONE]}\n", nil, []string{"3:25: environment.secrets: NONE is not set in the host's environment | set it in the host's configuration of this server; if the server can do without, write {name: NONE, optional: true}"}},
		{"secret empty", "environment: {secrets: [EMPTY]}\n", nil, []string{"3:25: environment.secrets: EMPTY is empty | set it in the host's configuration of this server"}},
		{"unknown call", "syscalls: {deny: [bpff], allow: [nothing_like_it]}\n", nil, []string{"3:19: syscalls.deny: bpff is no system call | did you mean bpf?", "3:34: syscalls.allow: nothing_like_it is no system call | remove it"}},
		{"call of another key", "syscalls: {allow: [connect]}\n", nil, []string{`3:20: syscalls.allow: connect is decided by "network.egress" | use network.egress`}},
		{"list not read", "syscalls: {profile: ./x.json}\n", nil, []string{`3:21: syscalls.profile: "./x.json" was not read | correct the path`}},
		{"private folder", "filesystem: {read: [\"${tmp}\"], write: [\"${private}/x\"]}\n", nil, []string{
			"3:21: filesystem.read: the private home and temporary folder are always granted | remove the entry",
			"3:40: filesystem.write: the private home and temporary folder are always granted | remove the entry",
		}},
		{"several", "view: grants\nfilesystem: {read: [\"${repo}\"], execute: [nope]}\n", func(f *profiles.Facts) { f.Repo = "" }, []string{
			`3:7: view: grants: this layer is not built yet | write "view: full", or remove the key`,
			"4:21: filesystem.read: ${repo} is not set: the working folder lies in no repository | start the server inside one, or name the folder",
			`4:43: filesystem.execute: program "nope" was not found on the jail's PATH | write its absolute path`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := compile(t, parse(t, tt.src), tt.facts)
			if diff := cmp.Diff(tt.want, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if !reflect.DeepEqual(r, profiles.Resolved{}) {
				t.Error("a plan comes with the error")
			}
			if err != nil && strings.Contains(err.Error(), "hunter") {
				t.Error("the message holds a value")
			}
		})
	}
}

func TestCompileRefusesFacts(t *testing.T) {
	for name, change := range map[string]func(*profiles.Facts){
		"no home": func(f *profiles.Facts) { f.Home = "" }, "relative cache": func(f *profiles.Facts) { f.Cache = "c" }, "no program": func(f *profiles.Facts) { f.Program.File = "" },
		"no config": func(f *profiles.Facts) { f.Config = "" }, "no run": func(f *profiles.Facts) { f.Run = "" }, "run with a folder": func(f *profiles.Facts) { f.Run = "../x" },
		"run above": func(f *profiles.Facts) { f.Run = ".." },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compile(t, profiles.Empty(), change); err == nil {
				t.Error("compiles")
			}
		})
	}
}

func TestEmptyGrantsNothing(t *testing.T) {
	r := mustCompile(t, profiles.Empty(), nil)
	for _, g := range r.Plan.Grants {
		if g.Origin.Source != sandbox.OriginAlways && g.Origin.Source != sandbox.OriginRuntime {
			t.Errorf("%s %s is granted by %s", g.Access, g.Path, g.Origin)
		}
		for _, private := range []string{"/home/me/project", "/data"} {
			if strings.HasPrefix(g.Path, private) {
				t.Errorf("%s is granted", g.Path)
			}
		}
	}
	if r.Plan.Network.Egress != sandbox.EgressNone || r.Plan.Filter.Sockets != seccomp.NoSockets || r.Plan.Filter.Listening != seccomp.ListenRefused {
		t.Errorf("network %+v, filter %+v", r.Plan.Network, r.Plan.Filter)
	}
	var names []string
	for _, e := range r.Plan.Env {
		name, value, _ := strings.Cut(e, "=")
		names = append(names, name)
		if strings.Contains(value, "hunter") {
			t.Errorf("%s holds a secret", name)
		}
	}
	if diff := cmp.Diff([]string{"HOME", "LANG", "LC_TIME", "PATH", "TMPDIR"}, names); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestCompileNetworkAndFilter(t *testing.T) {
	list := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	supervised := seccomp.Policy{Sockets: seccomp.InternetSockets, Supervision: seccomp.SupervisedInternet}
	tests := []struct {
		name, src string
		abi       int
		want      seccomp.Policy
		egress    sandbox.Egress
	}{
		{"none", "", 7, seccomp.Policy{}, sandbox.EgressNone},
		{"egress none", "network: {egress: none, listen: []}", 7, seccomp.Policy{}, sandbox.EgressNone},
		{"listen", "network: {listen: [80]}", 7, seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed}, sandbox.EgressNone},
		{"all", "network: {egress: all}", 7, seccomp.Policy{Sockets: seccomp.InternetSockets}, sandbox.EgressAll},
		{"both", "network: {egress: all, listen: [80]}", 7, seccomp.Policy{Sockets: seccomp.InternetSockets, Listening: seccomp.ListenAllowed}, sandbox.EgressAll},
		{"public", "network: {egress: public}", 7, supervised, sandbox.EgressRules},
		{"list", "network: {egress: [a.example]}", 7, supervised, sandbox.EgressRules},
		{"empty list", "network: {egress: []}", 7, seccomp.Policy{}, sandbox.EgressNone},
		{"list and listen", "network: {egress: [a.example], listen: [80]}", 7, seccomp.Policy{Sockets: seccomp.InternetSockets, Listening: seccomp.ListenAllowed, Supervision: seccomp.SupervisedInternet}, sandbox.EgressRules},
		{"metadata", "filesystem: {metadata: refuse}", 7, seccomp.Policy{Metadata: seccomp.MetadataRefuse}, sandbox.EgressNone},
		{"ABI 3", "", 3, seccomp.Policy{}, sandbox.EgressNone},
		{"ABI 2", "", 2, seccomp.Policy{Truncation: seccomp.TruncationByFilter}, sandbox.EgressNone},
		{"no Landlock", "", 0, seccomp.Policy{Truncation: seccomp.TruncationByFilter}, sandbox.EgressNone},
		{"default list", "syscalls: {profile: default}", 7, seccomp.Policy{}, sandbox.EgressNone},
		{"names", "syscalls: {allow: [bpf, acct, bpf], deny: [getcwd]}", 7, seccomp.Policy{Allow: []string{"acct", "bpf"}, Deny: []string{"getcwd"}}, sandbox.EgressNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompile(t, parse(t, tt.src+"\n"), func(f *profiles.Facts) { f.LandlockABI, f.SyscallProfile = tt.abi, list })
			if diff := cmp.Diff(tt.want, r.Plan.Filter); diff != "" {
				t.Errorf("filter (-want +got):\n%s", diff)
			}
			if r.Plan.Network.Egress != tt.egress {
				t.Errorf("egress %d", r.Plan.Network.Egress)
			}
		})
	}
}
