package program

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoaderCacheOfThisMachine finds every library of the machine's own cache again: the
// order that the search relies on is the one that ldconfig wrote.
func TestLoaderCacheOfThisMachine(t *testing.T) {
	data, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		t.Fatal(err)
	}
	m, known := thisMachine()
	if !known {
		t.Fatal("this architecture is not known")
	}
	cache, err := parseLoaderCache(data, m)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := cacheFlags(m)
	count := 0
	for i := range len(cache.entries) / cacheEntrySize {
		e := cache.entry(i)
		if cache.order.Uint32(e) != want {
			continue
		}
		count++
		name, path := string(cache.text(e[4:])), string(cache.text(e[8:]))
		found := false
		for _, c := range cache.find(name, m) {
			found = found || c.path == path
		}
		if !found {
			t.Errorf("%q (%q) is in the cache and not found", name, path)
		}
	}
	if count < 10 {
		t.Errorf("only %d libraries", count)
	}
	if found := cache.find("libnone.so.1", m); found != nil {
		t.Errorf("found %v", found)
	}
}

func TestParseNodeLine(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want nodeLine
	}{
		{"nothing", nil, nodeLine{}},
		{"script", []string{"a.js", "-x", "--", "y"}, nodeLine{entry: "a.js", args: []string{"-x", "--", "y"}, hasEntry: true}},
		{"flags", []string{"--no-warnings", "--max-old-space-size=100", "--inspect", "a.js"}, nodeLine{entry: "a.js", args: []string{}, hasEntry: true}},
		{"require", []string{"-r", "./x.js", "--require=y", "--import", "tsx", "a"}, nodeLine{entry: "a", args: []string{}, modules: []string{"./x.js", "y", "tsx"}, hasEntry: true}},
		{"loader", []string{"--loader", "l", "--experimental-loader", "m", "a"}, nodeLine{entry: "a", args: []string{}, modules: []string{"l", "m"}, hasEntry: true}},
		{"values", []string{"-C", "dev", "--title", "t", "--conditions", "x", "--test-reporter", "tap", "a"}, nodeLine{entry: "a", args: []string{}, hasEntry: true}},
		{"underscores", []string{"--disable_warning", "W", "a"}, nodeLine{entry: "a", args: []string{}, hasEntry: true}},
		{"files", []string{"--env-file", "e", "--env-file=f", "a"}, nodeLine{entry: "a", args: []string{}, files: []string{"e", "f"}, hasEntry: true}},
		{"two dashes", []string{"--no-warnings", "--", "-a.js", "x"}, nodeLine{entry: "-a.js", args: []string{"x"}, hasEntry: true}},
		{"eval", []string{"-e", "code", "a.js"}, nodeLine{args: []string{"a.js"}}},
		{"eval with equals", []string{"--eval=code", "a.js"}, nodeLine{args: []string{"a.js"}}},
		{"print", []string{"-p", "code", "x"}, nodeLine{args: []string{"x"}}},
		{"print and eval", []string{"-pe", "code"}, nodeLine{args: []string{}}},
		{"print before a flag", []string{"-p", "-e", "code", "x"}, nodeLine{args: []string{"x"}}},
		{"standard input", []string{"-", "x"}, nodeLine{args: []string{"-", "x"}}},
		{"run", []string{"--run", "start"}, nodeLine{args: []string{}}},
		{"value missing", []string{"--title"}, nodeLine{args: []string{}}},
		{"V8 option takes no word", []string{"--stack-trace-limit", "a.js"}, nodeLine{entry: "a.js", args: []string{}, hasEntry: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parseNodeLine(tt.args)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(nodeLine{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePythonLine(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want pythonLine
	}{
		{"nothing", nil, pythonLine{}},
		{"script", []string{"a.py", "-m", "x"}, pythonLine{script: "a.py", args: []string{"-m", "x"}}},
		{"flags", []string{"-I", "-uBs", "-E", "a.py"}, pythonLine{script: "a.py", args: []string{}}},
		{"values", []string{"-X", "dev", "-W", "ignore", "-Xutf8", "-Werror", "a.py"}, pythonLine{script: "a.py", args: []string{}}},
		{"module", []string{"-u", "-m", "pkg.mod", "-x"}, pythonLine{module: "pkg.mod", args: []string{"-x"}}},
		{"module attached", []string{"-umpkg", "a"}, pythonLine{module: "pkg", args: []string{"a"}}},
		{"code", []string{"-c", "code", "a.py"}, pythonLine{args: []string{"a.py"}}},
		{"code in a group", []string{"-Ic", "code"}, pythonLine{args: []string{}}},
		{"value missing", []string{"-m"}, pythonLine{}},
		{"long option", []string{"--check-hash-based-pycs", "always", "a.py"}, pythonLine{script: "a.py", args: []string{}}},
		{"two dashes", []string{"--", "-a.py"}, pythonLine{script: "-a.py", args: []string{}}},
		{"standard input", []string{"-", "x"}, pythonLine{args: []string{"x"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parsePythonLine(tt.args)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(pythonLine{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestShellScript(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		at    int
		found bool
	}{
		{"nothing", nil, 0, false},
		{"script", []string{"a.sh", "-c"}, 0, true},
		{"flags", []string{"-eu", "a.sh"}, 1, true},
		{"option", []string{"-euo", "pipefail", "a.sh"}, 2, true},
		{"plus", []string{"+o", "posix", "a.sh"}, 2, true},
		{"code", []string{"-c", "code", "name"}, 2, false},
		{"login code", []string{"-lc", "code"}, 2, false},
		{"code behind an option", []string{"-o", "posix", "-c", "code", "x"}, 4, false},
		{"standard input", []string{"-s", "x"}, 1, false},
		{"file of settings", []string{"--rcfile", "rc", "--norc", "a.sh"}, 3, true},
		{"two dashes", []string{"-e", "--", "-a.sh"}, 2, true},
		{"code missing", []string{"-c"}, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if at, found := shellScript(tt.args); at != tt.at || found != tt.found {
				t.Errorf("got %d, %t; want %d, %t", at, found, tt.at, tt.found)
			}
		})
	}
}

func TestMatchVersion(t *testing.T) {
	installed := sortVersions([]string{"3.9.18", "3.10.2", "3.10.13", "3.11.0rc1", "3.100.1", "system-like", "3.12-dev", "20"})
	if diff := cmp.Diff([]string{"system-like", "20", "3.100.1", "3.12-dev", "3.11.0rc1", "3.10.13", "3.10.2", "3.9.18"}, installed); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for wanted, want := range map[string]string{
		"3.10.2": "3.10.2", "3.10": "3.10.13", "3.1": "", "3": "3.100.1", "3.11": "", "3.11.0rc1": "3.11.0rc1", "20": "20", "2": "", "": "",
	} {
		if got, ok := matchVersion(installed, wanted); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t", wanted, got, ok)
		}
	}
}

func TestParseTools(t *testing.T) {
	tests := []struct {
		name, text string
		want       []tool
		refused    bool
	}{
		{"simple", "[tools]\nnode = \"20\" # twenty\npython='3.11'\n", []tool{{"node", []string{"20"}}, {"python", []string{"3.11"}}}, false},
		{"list", "[tools]\npython = [\"3.11\", '3.10',]\n", []tool{{"python", []string{"3.11", "3.10"}}}, false},
		{"inline table", "[tools]\nnode = { version = \"22\", postinstall = \"x, y\", ok = true }\n", []tool{{"node", []string{"22"}}}, false},
		{"own table", "[tools.node]\nos = [\"linux\"]\nversion = \"22\"\n", []tool{{"node", []string{"22"}}}, false},
		{"quoted name", "[tools]\n\"npm:@scope/x\" = \"latest\"\n", []tool{{"npm:@scope/x", []string{"latest"}}}, false},
		{"other tables", "[env]\nA = \"1\"\n[tools]\nnode = \"20\"\n[tasks.x]\nrun = \"node\"\n", []tool{{"node", []string{"20"}}}, false},
		{"text that looks like a table", "[env]\nA = \"\"\"\n[tools]\nnode = \"1\"\n\"\"\"\n[tools]\nnode = \"20\"\n", []tool{{"node", []string{"20"}}}, false},
		{"no tools", "min_version = \"2024\"\n", nil, false},
		{"list over lines", "[tools]\nnode = [\n\"20\"]\n", nil, true},
		{"number", "[tools]\nnode = 20\n", nil, true},
		{"template", "[tools]\nnode = \"{{ env.X }}\"\n", nil, true},
		{"escape", "[tools]\nnode = \"2\\u0030\"\n", nil, true},
		{"dotted key", "tools.node = \"20\"\n", nil, true},
		{"dotted key inside", "[tools]\nnode.version = \"20\"\n", nil, true},
		{"quoted table", "[\"tools\"]\nnode = \"20\"\n", nil, true},
		{"list of tables", "[[tools]]\nnode = \"20\"\n", nil, true},
		{"table without a version", "[tools]\nnode = { os = \"linux\" }\n", nil, true},
		{"words behind", "[tools]\nnode = \"20\" \"21\"\n", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseTools(tt.text)
			if (err != nil) != tt.refused {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(tool{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
