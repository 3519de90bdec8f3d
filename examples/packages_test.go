package examples_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/examples/stock"
	"stockade/sandbox/packages/registrytest"
)

// probeJS is a server that tries what a runner's command line would have let it do, and
// says what became of each.
const probeJS = `#!/usr/bin/env node
const fs = require("fs"), net = require("net"), child = require("child_process");
const attempt = f => { try { f(); return "done"; } catch (e) { return e.code || e.message; } };
const [token, registry, outside, project] = process.argv.slice(2);
const said = {
  version: require("./package.json").version,
  dependency: require("probe-library"),
  rc: attempt(() => fs.readFileSync(token)),
  store: attempt(() => fs.writeFileSync(__dirname + "/planted.js", "x")),
  outside: attempt(() => fs.writeFileSync(outside, "x")),
  project: attempt(() => fs.writeFileSync(project + "/made", "x")),
  shell: child.spawnSync("/bin/sh", ["-c", "echo"]).error?.code || "done",
  npm: child.spawnSync("npm", ["--version"]).error?.code || "done",
  secret: Object.keys(process.env).filter(n => /TOKEN|NPM_CONFIG/i.test(n)),
};
const [host, port] = registry.split(":");
const socket = net.connect(port, host, () => { said.registry = "done"; console.log(JSON.stringify(said)); process.exit(0); });
socket.on("error", e => { said.registry = e.code; console.log(JSON.stringify(said)); process.exit(0); });
`

// probed is what the probe found.
type probed struct {
	Version    string   `json:"version"`
	Dependency string   `json:"dependency"`
	RC         string   `json:"rc"`
	Store      string   `json:"store"`
	Outside    string   `json:"outside"`
	Project    string   `json:"project"`
	Shell      string   `json:"shell"`
	NPM        string   `json:"npm"`
	Secret     []string `json:"secret"`
	Registry   string   `json:"registry"`
}

const registryToken = "token-that-nobody-may-see"

// workshop is a registry with a server, and a person whose npm is configured for it.
type workshop struct {
	place
	registry *registrytest.Registry
}

func probe(version string) registrytest.NPM {
	return registrytest.NPM{
		Name: "@corp/probe", Version: version,
		Manifest: map[string]any{"bin": map[string]string{"corp-probe": "server.js"}, "dependencies": map[string]string{"probe-library": "^1.0.0"}},
		Files:    map[string]string{"server.js": probeJS},
	}
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{place: newPlace(t), registry: registrytest.StartWith(t, registrytest.Options{Token: registryToken})}
	w.registry.AddNPM(probe("1.0.0"), registrytest.NPM{Name: "probe-library", Version: "1.0.0", Files: map[string]string{"index.js": `module.exports = "of the library"`}})
	host := w.registry.Host()
	write(t, filepath.Join(w.home, ".npmrc"), "registry="+w.registry.NPM()+"\n//"+host+"/npm/:_authToken=${CORP_TOKEN}\n")
	t.Cleanup(func() { writable(t, w.home) })
	return w
}

// writable gives the rights back that removing a test's folder needs: the store is
// read-only.
func writable(t *testing.T, top string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (w workshop) stockade(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command(append([]string{binary}, words...)...)
	cmd.Env = append(cmd.Env, "CORP_TOKEN="+registryToken)
	return cmd
}

// probe runs the probe through the words of a runner.
func (w workshop) probe(t *testing.T, runner ...string) (probed, string) {
	t.Helper()
	words := append([]string{"run", "--write", w.project, "--"}, runner...)
	words = append(words, filepath.Join(w.home, ".npmrc"), w.registry.Host(), filepath.Join(w.home, "outside"), w.project)
	stdout, stderr := output(t, w.stockade(t, words...), 0)
	var said probed
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatalf("%v in %q; stderr:\n%s", err, stdout, stderr)
	}
	if strings.Contains(stderr+stdout, registryToken) {
		t.Errorf("the token is shown:\n%s%s", stdout, stderr)
	}
	return said, stderr
}

var jailedProbe = probed{
	Version: "1.0.0", Dependency: "of the library", RC: "EACCES", Store: "EACCES", Outside: "EACCES", Project: "done",
	Shell: "EACCES", NPM: "EACCES", Secret: []string{}, Registry: "EAFNOSUPPORT",
}

// TestRunner is the whole of it: a private package with a token is installed once by the
// person's own configuration, and its server gets none of what that needed.
func TestRunner(t *testing.T) {
	w := newWorkshop(t)
	said, stderr := w.probe(t, "npx", "-y", "@corp/probe")
	if diff := cmp.Diff(jailedProbe, said); diff != "" {
		t.Errorf("in the jail (-want +got):\n%s", diff)
	}
	if want := "stockade: note: installed npm:@corp/probe 1.0.0, 2 packages"; !strings.Contains(stderr, want) {
		t.Errorf("got %q, want %q", stderr, want)
	}

	// Outside, npx gives the same server all of it.
	cmd := w.command("npx", "-y", "@corp/probe", filepath.Join(w.home, ".npmrc"), w.registry.Host(), filepath.Join(w.home, "outside"), w.project)
	cmd.Env = append(cmd.Env, "CORP_TOKEN="+registryToken)
	stdout, _ := output(t, cmd, 0)
	var free probed
	if err := json.Unmarshal([]byte(stdout), &free); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"rc": free.RC, "store": free.Store, "outside": free.Outside, "shell": free.Shell, "npm": free.NPM, "registry": free.Registry} {
		if got != "done" {
			t.Errorf("outside: %s: got %q, want it to work", name, got)
		}
	}

	// A second start asks nobody: the registry is gone. Another runner has the same store.
	asked := w.registry.Total()
	w.registry.Stop()
	for _, runner := range [][]string{
		{"npx", "-y", "@corp/probe"},
		{"npx", "@corp/probe@latest"},
		{"bunx", "@corp/probe"},
		{"pnpm", "dlx", "@corp/probe"},
		{"npm", "exec", "--yes", "--", "@corp/probe"},
		{"npx", "-p", "@corp/probe", "corp-probe"},
	} {
		if said, stderr := w.probe(t, runner...); said.Version != "1.0.0" || strings.Contains(stderr, "installing") {
			t.Errorf("%v: got %+v; stderr:\n%s", runner, said, stderr)
		}
	}
	if now := w.registry.Total(); now != asked {
		t.Errorf("second starts made %d requests", now-asked)
	}
}

// TestRunnerUpdate: what is installed stays until the person updates it.
func TestRunnerUpdate(t *testing.T) {
	w := newWorkshop(t)
	w.probe(t, "npx", "-y", "@corp/probe")
	w.registry.AddNPM(probe("1.1.0"))
	if said, _ := w.probe(t, "npx", "-y", "@corp/probe"); said.Version != "1.0.0" {
		t.Errorf("a later start runs %s", said.Version)
	}
	type listed struct {
		Name, Version, Newest string
		Requests              []string
		Packages              int
	}
	list := func() []listed {
		t.Helper()
		stdout, _ := output(t, w.stockade(t, "package", "list", "--json"), 0)
		var out []listed
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if diff := cmp.Diff([]listed{{"@corp/probe", "1.0.0", "1.1.0", []string{"npm:@corp/probe"}, 2}}, list()); diff != "" {
		t.Errorf("package list (-want +got):\n%s", diff)
	}
	stdout, _ := output(t, w.stockade(t, "package", "update", "@corp/probe"), 0)
	if want := "npm:@corp/probe  1.1.0  was 1.0.0\n"; stdout != want {
		t.Errorf("package update: got %q, want %q", stdout, want)
	}
	if said, _ := w.probe(t, "npx", "-y", "@corp/probe"); said.Version != "1.1.0" {
		t.Errorf("after the update it runs %s", said.Version)
	}
	if said, _ := w.probe(t, "npx", "-y", "@corp/probe@1.0.0"); said.Version != "1.0.0" {
		t.Errorf("the version that is named: got %s", said.Version)
	}
	homes, err := filepath.Glob(filepath.Join(w.home, ".local/share/stockade/homes/*"))
	if err != nil || len(homes) != 1 {
		t.Errorf("private homes: %q (%v); an update keeps a server's data", homes, err)
	}
	output(t, w.stockade(t, "package", "remove", "npm:@corp/probe"), 0)
	if got := list(); len(got) != 0 {
		t.Errorf("after removing: %+v", got)
	}
}

// TestRunnerRefusals: each is one error and one hint, and nothing is left of the install.
func TestRunnerRefusals(t *testing.T) {
	bad := func(name string, manifest map[string]any, files map[string]string) registrytest.NPM {
		return registrytest.NPM{Name: name, Version: "1.0.0", Manifest: manifest, Files: files}
	}
	tests := []struct {
		name   string
		runner []string
		spoil  func(t *testing.T, w workshop)
		want   string
		hint   string
	}{
		{"no such package", []string{"npx", "-y", "@corp/nothing"}, nil, "@corp/nothing", ""},
		{"no such version", []string{"npx", "-y", "@corp/probe@9.9.9"}, nil, "9.9.9", ""},
		{"other content than the registry announced", []string{"npx", "-y", "@corp/probe"}, func(_ *testing.T, w workshop) {
			w.registry.Break(probe("1.0.0").Path(), registrytest.Tampered)
		}, "integrity", ""},
		{"the registry is down", []string{"npx", "-y", "@corp/probe"}, func(_ *testing.T, w workshop) { w.registry.Stop() }, "", ""},
		{"the registry refuses", []string{"npx", "-y", "@corp/probe"}, func(_ *testing.T, w workshop) {
			w.registry.Break("/npm/@corp/probe", registrytest.Forbidden)
		}, "", ""},
		{"a program outside of its package", []string{"npx", "-y", "escape"}, func(_ *testing.T, w workshop) {
			w.registry.AddNPM(bad("escape", map[string]any{"bin": map[string]string{"escape": "../probe-library/index.js"}, "dependencies": map[string]string{"probe-library": "1"}}, nil))
		}, "", ""},
		{"a program that is a library", []string{"npx", "-y", "probe-library"}, nil, "probe-library has no program to start", ""},
		{"a program of no kind", []string{"npx", "-y", "odd"}, func(_ *testing.T, w workshop) {
			w.registry.AddNPM(bad("odd", map[string]any{"bin": "odd.txt"}, map[string]string{"odd.txt": "echo hello\n"}))
		}, "has no #! line and is no program file", ""},
		{"two packages with one program", []string{"npx", "-y", "-p", "one", "-p", "two", "both"}, func(_ *testing.T, w workshop) {
			for _, name := range []string{"one", "two"} {
				w.registry.AddNPM(bad(name, map[string]any{"bin": map[string]string{"both": "x.js"}}, map[string]string{"x.js": "#!/usr/bin/env node\n"}))
			}
		}, `one and two both have a program "both"`, ""},
		{"no program of that name", []string{"npx", "-y", "-p", "@corp/probe", "other"}, nil, `@corp/probe has no program "other"`, "it has corp-probe"},
		{"a line of shell", []string{"npx", "-c", "corp-probe"}, nil, "npx -c cannot be kept", ""},
		{"a runner in a shell", []string{"bash", "-c", "npx -y @corp/probe"}, nil, "bash -c is refused", "stockade run -- npx -y @corp/probe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorkshop(t)
			if tt.spoil != nil {
				tt.spoil(t, w)
			}
			stdout, stderr := output(t, w.stockade(t, append([]string{"run", "--"}, tt.runner...)...), 125)
			if stdout != "" {
				t.Errorf("standard output has %q", stdout)
			}
			errs, hints := lines(stderr, "stockade: error: "), lines(stderr, "stockade: hint: ")
			if len(errs) != 1 || len(hints) != 1 || !strings.Contains(errs[0], tt.want) || !strings.Contains(hints[0], tt.hint) {
				t.Errorf("want one error with %q and one hint with %q; stderr:\n%s", tt.want, tt.hint, stderr)
			}
			if strings.Contains(stderr, registryToken) {
				t.Errorf("the token is shown:\n%s", stderr)
			}
			if left, err := filepath.Glob(filepath.Join(w.home, ".local/share/stockade/packages/.partial/*")); err != nil || len(left) > 0 {
				t.Errorf("half installed: %v, %v", left, err)
			}
			if runs, err := filepath.Glob(filepath.Join(w.home, ".cache/stockade/runs/*")); err != nil || len(runs) > 0 {
				t.Errorf("left behind: %v, %v", runs, err)
			}
		})
	}
}

func lines(text, prefix string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			out = append(out, strings.TrimSuffix(rest, "\n"))
		}
	}
	return out
}

// TestRunnerTampered: a store that somebody changed is never run.
func TestRunnerTampered(t *testing.T) {
	w := newWorkshop(t)
	w.probe(t, "npx", "-y", "@corp/probe")
	found, err := filepath.Glob(filepath.Join(w.home, ".local/share/stockade/packages/npm/@corp/probe@1.0.0-*/node_modules/@corp/probe/server.js"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.Chmod(found[0], 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, found[0], "#!/usr/bin/env node\nconsole.log('planted')\n")
	stdout, stderr := output(t, w.stockade(t, "run", "--", "npx", "-y", "@corp/probe"), 125)
	if stdout != "" || !strings.Contains(stderr, `"node_modules/@corp/probe/server.js" was changed`) || !strings.Contains(stderr, "stockade package remove npm:@corp/probe") {
		t.Errorf("got %q; stderr:\n%s", stdout, stderr)
	}
	output(t, w.stockade(t, "package", "remove", "npm:@corp/probe"), 0)
	if said, _ := w.probe(t, "npx", "-y", "@corp/probe"); said.Version != "1.0.0" {
		t.Errorf("after removing it: %+v", said)
	}
}

// TestRunnersTogether starts twenty hosts' servers at once.
func TestRunnersTogether(t *testing.T) {
	w := newWorkshop(t)
	var all sync.WaitGroup
	for range 20 {
		cmd := w.stockade(t, "run", "--write", w.project, "--", "npx", "-y", "@corp/probe",
			filepath.Join(w.home, ".npmrc"), w.registry.Host(), filepath.Join(w.home, "outside"), w.project)
		all.Go(func() {
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), `"version":"1.0.0"`) {
				t.Errorf("got %v: %s", err, out)
			}
		})
	}
	all.Wait()
	if got := w.registry.Count(probe("1.0.0").Path()); got != 1 {
		t.Errorf("the package was fetched %d times, want once", got)
	}
}

// TestInstallScripts: they do not run, unless a profile names their package; then they have
// the install's jail, without its credentials.
func TestInstallScripts(t *testing.T) {
	w := newWorkshop(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	script := `const fs = require("fs"), net = require("net");
const attempt = f => { try { f(); return "done"; } catch (e) { return e.code; } };
const said = {
  outside: attempt(() => fs.writeFileSync(` + "`" + w.home + "/outside`" + `, "x")),
  project: attempt(() => fs.readFileSync(` + "`" + w.project + "/inside.txt`" + `)),
  rc: attempt(() => fs.readFileSync(` + "`" + w.home + "/.npmrc`" + `)),
  token: process.env.CORP_TOKEN || "none",
};
const end = what => { said.network = what; fs.writeFileSync("said.json", JSON.stringify(said)); };
net.connect(` + listener.Addr().String()[len("127.0.0.1:"):] + `, "127.0.0.1", () => { end("done"); process.exit(); }).on("error", e => end(e.code));
`
	w.registry.AddNPM(registrytest.NPM{
		Name: "built", Version: "1.0.0",
		Manifest: map[string]any{"bin": "server.js", "scripts": map[string]string{"postinstall": "node build.js"}},
		Files:    map[string]string{"build.js": script, "server.js": "#!/usr/bin/env node\ntry { console.log(require('fs').readFileSync(__dirname + '/said.json', 'utf8')) } catch (e) { console.log(e.code) }\n"},
	})
	stdout, stderr := output(t, w.stockade(t, "run", "--", "npx", "-y", "built"), 0)
	if stdout != "ENOENT\n" || !strings.Contains(stderr, "install scripts did not run: built") {
		t.Errorf("without a profile: got %q; stderr:\n%s", stdout, stderr)
	}
	profile := w.profile(t, "extends: [node]\ninstall: {scripts: [built]}\n")
	stdout, stderr = output(t, w.stockade(t, "run", "--profile", profile, "--", "npx", "-y", "built"), 0)
	want := `{"outside":"EACCES","project":"EACCES","rc":"EACCES","token":"none","network":"ECONNREFUSED"}` + "\n"
	if got := strings.ReplaceAll(stdout, `"network":"EACCES"`, `"network":"ECONNREFUSED"`); got != want {
		t.Errorf("with the profile: got %q, want %q; stderr:\n%s", stdout, want, stderr)
	}
	if _, err := os.Stat(filepath.Join(w.home, "outside")); err == nil {
		t.Error("the script wrote outside")
	}
}

// TestRunnerIdentity: a package that chooses its name itself, or brings others along, gets
// neither the profile nor the private home that go by the name.
func TestRunnerIdentity(t *testing.T) {
	w := newWorkshop(t)
	named := registrytest.NPM{Name: "@corp/probe", Version: "1.0.0", Manifest: map[string]any{"bin": "x.js"}, Files: map[string]string{
		"x.js": "#!/usr/bin/env node\nconsole.log(process.env.PROBE_SECRET || 'no secret', process.env.HOME)\n",
	}}
	w.registry.AddNPM(registrytest.NPM{Name: "other", Version: "1.0.0", Manifest: map[string]any{"bin": "x.js"}, Files: map[string]string{"x.js": named.Files["x.js"]}})
	folder := filepath.Join(w.project, "evil")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range named.Folder() {
		write(t, filepath.Join(folder, path), text)
	}
	own := filepath.Join(w.home, ".config", "stockade", "profiles")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(own, "corp.yaml"), "version: 1\nname: corp\nmatch: {packages: [\"npm:@corp/probe\"]}\nextends: [node]\nenvironment: {secrets: [PROBE_SECRET]}\n")
	run := func(words ...string) string {
		t.Helper()
		cmd := w.stockade(t, append([]string{"run", "--"}, words...)...)
		cmd.Env = append(cmd.Env, "PROBE_SECRET=hush")
		stdout, _ := output(t, cmd, 0)
		return stdout
	}
	honest := named
	honest.Version = "2.0.0"
	w.registry.AddNPM(honest)
	if got := run("npx", "-y", "@corp/probe"); !strings.HasPrefix(got, "hush ") || !strings.Contains(got, "corp+npm+") {
		t.Errorf("the honest one: got %q", got)
	}
	for _, words := range [][]string{{"npx", "-y", "./evil"}, {"npx", "-y", "-p", "@corp/probe", "-p", "other", "other"}, {"npx", "-y", "-p", "./evil", "probe"}} {
		if got := run(words...); !strings.HasPrefix(got, "no secret ") || strings.Contains(got, "corp+npm+") {
			t.Errorf("%v: got %q", words, got)
		}
	}
}
