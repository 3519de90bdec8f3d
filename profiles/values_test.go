package profiles_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
)

// parseOne parses a text that holds one value at line 3, and returns the one problem as
// "message | hint", or "".
func parseOne(t *testing.T, text string) (*profiles.Profile, string) {
	t.Helper()
	p, err := profiles.Parse("p.yaml", []byte("version: 1\n"+text))
	if err == nil {
		return p, ""
	}
	var many profiles.Errors
	if !errors.As(err, &many) || len(many) != 1 {
		t.Fatalf("got %v, want one problem", err)
	}
	if many[0].Line != 3 || many[0].Column < 5 {
		t.Errorf("the problem is at %d:%d, not at the value", many[0].Line, many[0].Column)
	}
	return nil, strings.TrimSuffix(many[0].Message+" | "+many[0].Hint, " | ")
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{
		"1048576": 1 << 20, "4096": 4096, "4096B": 4096, "4KiB": 4096, "5kB": 5000, "5KB": 5000, "1MB": 1e6, "1MiB": 1 << 20,
		"1GB": 1e9, "1GiB": 1 << 30, "1TB": 1e12, "1TiB": 1 << 40, "\"1GiB\"": 1 << 30,
	} {
		t.Run(text, func(t *testing.T) {
			p, problem := parseOne(t, "limits:\n  file-size: "+text+"\n")
			if problem != "" {
				t.Fatal(problem)
			}
			if got := p.Limits.FileSize.Value; got != want {
				t.Errorf("%s is %d bytes, want %d", text, got, want)
			}
		})
	}
	for _, text := range []string{
		"1G", "1k", "1gib", "1GiBs", "1 GiB", "GiB", "-1", "+1", "1e9", "0x1000", "010000", "1_000_000", "18446744073709551616",
		"18014398509481984KiB", "16777216TiB", "infinity", ".5GiB", "1,000",
	} {
		t.Run("refuses "+text, func(t *testing.T) {
			if _, problem := parseOne(t, "limits:\n  file-size: "+text+"\n"); problem == "" {
				t.Errorf("%q is read as a size", text)
			}
		})
	}
}

func TestEnvironmentNames(t *testing.T) {
	const fixed = " | set it to a fixed value under environment.set if the server needs it"
	tests := []struct{ key, name, problem string }{
		{"pass", "LANG", ""},
		{"pass", "_X1", ""},
		{"pass", "LC_*", ""},
		{"pass", "AWS*", ""},
		{"pass", "http_proxy", ""},
		{"pass", "ENVIRONMENT", ""},
		{"pass", "ENV*", ""},
		{"pass", "LDAP_*", ""},
		{"secrets", "TOKEN", ""},
		{"set", "NODE_OPTIONS", ""},
		{"set", "LD_PRELOAD", ""},

		{"pass", "*", `"*" would pass too much | write at least two letters before the *, such as "LC_*"`},
		{"pass", "A*", `"A*" would pass too much | write at least two letters before the *, such as "LC_*"`},
		{"pass", "A_1*", `"A_1*" would pass too much | write at least two letters before the *, such as "LC_*"`},
		{"pass", "*_KEY", `"*_KEY": a pattern has one *, at its end | write the beginning of the names and one * at the end`},
		{"pass", "A?C", `"A?C": a pattern has one *, at its end | write the beginning of the names and one * at the end`},
		{"pass", "LC_**", `"LC_**": a pattern has one *, at its end | write the beginning of the names and one * at the end`},
		{"pass", "1X", `"1X" is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"pass", "A-B", `"A-B" is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"pass", "A=secret", `"A=..." is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"secrets", "A=secret", `"A=..." is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"secrets", "TOKEN*", `"TOKEN*": secrets have no patterns | name each secret`},
		{"pass", "PATH", "PATH is made by stockade (filesystem.execute) | remove it"},
		{"pass", "HOME", "HOME is made by stockade (filesystem.home) | remove it"},
		{"secrets", "TMPDIR", "TMPDIR is made by stockade (the private temporary folder) | remove it"},
		{"set", "PATH", "PATH is made by stockade (filesystem.execute) | list the programs under filesystem.execute: their folders become PATH"},
		{"set", "HOME", "HOME is made by stockade (filesystem.home) | write filesystem.home: real, or private"},
		{"set", "TMPDIR", "TMPDIR is made by stockade (the private temporary folder) | remove it"},
		{"set", "A B", `"A B" is not a variable's name | letters, digits and underscore, beginning with a letter`},
		{"pass", "LD_*", `"LD_*" passes nothing: the loader runs code from it | remove it`},
		{"pass", "LD_PRELOAD", "LD_PRELOAD cannot come from the host: the loader runs code from it" + fixed},
		{"secrets", "LD_AUDIT", "LD_AUDIT cannot come from the host: the loader runs code from it" + fixed},
		{"pass", "DYLD_INSERT_LIBRARIES", "DYLD_INSERT_LIBRARIES cannot come from the host: the loader runs code from it" + fixed},
		{"pass", "NPM_CONFIG_NODE_OPTIONS", "NPM_CONFIG_NODE_OPTIONS cannot come from the host: node loads code by it, or stops checking certificates" + fixed},
		{"pass", "GIT_CONFIG_COUNT", "GIT_CONFIG_COUNT cannot come from the host: git or ssh start a program or read configuration by it" + fixed},
	}
	for _, name := range []string{
		"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "BASH_ENV", "ENV", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF",
		"GIT_CONFIG", "GIT_CONFIG_GLOBAL", "BROWSER", "EDITOR", "PAGER", "npm_config_prefix", "LD_LIBRARY_PATH", "BASH_FUNC_x",
	} {
		t.Run("host's "+name, func(t *testing.T) {
			for _, key := range []string{"pass", "secrets"} {
				_, problem := parseOne(t, fmt.Sprintf("environment:\n  %s: [%q]\n", key, name))
				if !strings.Contains(problem, "cannot come from the host") {
					t.Errorf("%s takes it: %s", key, problem)
				}
			}
		})
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.name, func(t *testing.T) {
			value := fmt.Sprintf("[%q]", tt.name)
			if tt.key == "set" {
				value = fmt.Sprintf("{%q: x}", tt.name)
			}
			_, problem := parseOne(t, fmt.Sprintf("environment:\n  %s: %s\n", tt.key, value))
			if problem != tt.problem {
				t.Errorf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
		})
	}
}

func TestEnvironmentValues(t *testing.T) {
	tests := []struct{ name, set, problem string }{
		{"null", "{A: ~}", `environment.set.A: no value | write "" for an empty value; text that means nothing to YAML needs quotes`},
		{"list", "{A: [x]}", "environment.set.A: expected text, found a list"},
		{"unknown variable", `{A: "hunter2${nope}"}`, "environment.set.A: the value holds an unknown variable | known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign"},
		{"shell variable", `{A: "hunter2$HOME"}`, "environment.set.A: the value holds an unknown variable | known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign"},
		{"twice", "{A: x, A: y}", `variable "A" is already set in line 3 | keep one of them`},
		{"not a mapping", "[A]", "environment.set: expected a mapping from names to values, found a list | write {NAME: value}"},
		{"dollar sign", `{A: "$$HOME"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problem := parseOne(t, "environment:\n  set: "+tt.set+"\n")
			if problem != tt.problem {
				t.Errorf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
			if strings.Contains(problem, "hunter2") {
				t.Error("the message holds the value")
			}
		})
	}
}

func TestOneVariableTwoWays(t *testing.T) {
	_, err := profiles.Parse("p.yaml", []byte("version: 1\nenvironment:\n  pass: [A, B]\n  secrets: [A, C, C]\n  set: {B: x, C: y}\n"))
	want := []string{
		`4:13: variable "A" is already listed in line 3 | keep one of them`,
		`4:19: variable "C" is already listed in line 4 | keep one of them`,
		`5:9: variable "B" is already listed in line 3 | keep one of them`,
		`5:15: variable "C" is already listed in line 4 | keep one of them`,
	}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestMissingNamesAreWaivable: what a profile may name, the sandbox agrees to run without.
func TestMissingNamesAreWaivable(t *testing.T) {
	waivable := sandbox.Waivable()
	for _, layer := range []sandbox.Layer{
		sandbox.LayerRefer, sandbox.LayerTruncate, sandbox.LayerTCP, sandbox.LayerScopeSignals, sandbox.LayerScopeAbstract,
		sandbox.LayerFiles, sandbox.LayerIoctlDev, sandbox.LayerUnix, sandbox.LayerUDP, sandbox.LayerSeccomp, sandbox.LayerNoNewPrivs,
		sandbox.LayerCapabilities, sandbox.LayerDescriptors, sandbox.LayerEnvironment, sandbox.LayerLimits, sandbox.LayerTerminal, sandbox.LayerCgroup,
	} {
		t.Run(string(layer), func(t *testing.T) {
			_, problem := parseOne(t, fmt.Sprintf("missing:\n  allow: [%s]\n", layer))
			may := false
			for _, w := range waivable {
				may = may || w == layer
			}
			if problem == "" && !may {
				t.Error("the profile may name it, the sandbox does not waive it")
			}
			if strings.Contains(problem, "not known") {
				t.Error("the parser does not know the layer")
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	tests := []struct{ entry, problem string }{
		{"git", ""},
		{"g++", ""},
		{"/opt/x", ""},
		{"${home}/bin/x", ""},
		{"~/bin/x", ""},
		{"${repo}/tool", ""},
		{"bin/x", `"bin/x" is a relative path | write "${cwd}/bin/x", "${home}/bin/x" or an absolute path`},
		{"git*", `"git*" is not a program's name: there are no patterns here | name each program`},
		{"/opt/*", `"/opt/*": there are no patterns in paths | write the folder itself, "/opt": a grant holds the whole tree`},
		{"/opt/", `"/opt/" is a folder | name the program itself: folders cannot be executed`},
		{"..", `".." is a folder | name the program`},
		{"${roots}/x", "a program cannot lie in ${roots}: the server could replace it | install the program where the server cannot change it"},
		{"${tmp}/x", "a program cannot lie in ${tmp}: the server could replace it | install the program where the server cannot change it"},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			_, problem := parseOne(t, fmt.Sprintf("filesystem:\n  execute: [%q]\n", tt.entry))
			if problem != tt.problem {
				t.Errorf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
		})
	}
}

func TestNamesInsideGrants(t *testing.T) {
	for entry, ok := range map[string]bool{
		"**/.git/hooks": true, ".mcp.json": true, ".env*": true, "a/b": true, "/a": false, "~/a": false, "${home}/a": false,
		"../a": false, "a/./b": false, "a//b": false, "a[": false,
	} {
		for _, key := range []string{"protect", "hide"} {
			t.Run(key+" "+entry, func(t *testing.T) {
				_, problem := parseOne(t, fmt.Sprintf("filesystem:\n  %s: [%q]\n", key, entry))
				if (problem == "") != ok {
					t.Errorf("problem: %q", problem)
				}
			})
		}
	}
}
