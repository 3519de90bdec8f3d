package profiles_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
)

// problems lists errors as "line:column: message | hint".
func problems(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var many profiles.Errors
	if !errors.As(err, &many) || len(many) == 0 {
		t.Fatalf("the error is a %T, not Errors: %v", err, err)
	}
	var out []string
	for _, e := range many {
		if e.File != "p.yaml" {
			t.Errorf("the error names the file %q: %v", e.File, e)
		}
		line := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
		if e.Hint != "" {
			line += " | " + e.Hint
		}
		out = append(out, line)
	}
	return out
}

// TestParseRefuses has one broken profile for each rule. Every text has "version: 1" put
// before it unless it says a version itself or is about syntax.
func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string
	}{
		// The file.
		{"empty", "", []string{`1:1: the profile is empty | write at least "version: 1"`}},
		{"only comments", "# nothing\n", []string{`2:1: the profile is empty | write at least "version: 1"`}},
		{"a list", "- version: 1\n", []string{`1:1: a profile is a mapping of keys to values | begin with "version: 1"`}},
		{"no version", "name: x\n", []string{`1:1: the version is missing | write "version: 1"`}},
		{"another version", "version: 2\n", []string{`1:10: version 2 is not known | write "version: 1"`}},
		{"version as text", "version: \"1\"\n", []string{`1:10: version: expected the number 1, found text | write "version: 1"`}},
		{"version without value", "version:\n", []string{`1:9: version: expected the number 1, found nothing | write "version: 1"`}},
		{"two documents", "version: 1\n---\nversion: 1\n", []string{`2:1: more than one document | one file holds one profile`}},
		{"document end", "version: 1\n...\nname: x\n", []string{`3:1: more than one document | one file holds one profile`}},
		{"directive", "%YAML 1.2\n---\nversion: 1\n", []string{`1:1: YAML directives are not read | remove it`}},
		{"tab", "version: 1\nlimits:\n\topen-files: 64\n", []string{`3:1: tab character | indent and align with spaces`}},
		{"tabs in two lines", "version:\t1\t\nname:\tx\n", []string{"1:9: tab character | indent and align with spaces", "2:6: tab character | indent and align with spaces"}},
		{"NUL", "version: 1\nname: a\x00b\n", []string{"2:8: NUL byte | remove it"}},
		{"control character", "version: 1\nname: a\x1bb\n", []string{"2:8: control character 0x1b | remove it"}},
		{"lone carriage return", "version: 1\rname: x\n", []string{"1:11: control character 0x0d | remove it"}},
		{"not UTF-8", "version: 1\nname: a\xffb\n", []string{"2:8: invalid UTF-8 | save the file as UTF-8"}},
		{"UTF-16", "\xff\xfev\x00", []string{"1:1: invalid UTF-8 | save the file as UTF-8", "1:2: invalid UTF-8 | save the file as UTF-8", "1:4: NUL byte | remove it"}},
		{"reordering character", "version: 1\n# ab\u202ecd\n", []string{"2:5: invisible character U+202E | remove it: what a person reads has to be what is meant"}},
		{"zero width space", "version: 1\nname: a\u200bb\n", []string{"2:8: invisible character U+200B | remove it: what a person reads has to be what is meant"}},

		// YAML that is left out.
		{"anchor", "version: 1\nname: &x y\n", []string{"2:7: YAML anchors are not read | write the value out where it is needed; if & is meant, put quotes around the text"}},
		{"alias", "version: 1\nname: *x\n", []string{"2:7: YAML aliases are not read | if * is meant, put quotes around the text"}},
		{"unquoted pattern", "version: 1\nnetwork:\n  egress:\n    - *.example.com:443\n", []string{"4:7: YAML aliases are not read | if * is meant, put quotes around the text"}},
		{"alias bomb", "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nversion: 1\n", []string{"1:4: YAML anchors are not read | write the value out where it is needed; if & is meant, put quotes around the text"}},
		{"tag", "version: !!int 1\n", []string{"1:10: YAML tags are not read | if ! is meant, put quotes around the text"}},
		{"merge key", "version: 1\n<<: {name: x}\n", []string{`2:1: YAML merge keys are not read | write the keys out, or use "extends"`}},
		{"complex key", "? [version]\n: 1\n", []string{`1:3: a list or mapping cannot be a key | write "key: value"; put quotes around brackets that are meant as text`}},
		{"mapping as a key", "version: 1\n{a: b}: 1\n", []string{`2:1: a list or mapping cannot be a key | write "key: value"; put quotes around brackets that are meant as text`}},
		{"null as a key", "version: 1\n~: 1\n", []string{`2:1: a key has to be text | put quotes around it if it is meant as text`}},
		{"number as a key", "version: 1\nlimits: {1: 1}\n", []string{`2:10: a key has to be text | put quotes around it if it is meant as text`}},
		{"truth as a key", "version: 1\nenvironment: {set: {true: 1}}\n", []string{`2:21: a key has to be text | put quotes around it if it is meant as text`}},
		{"date as a key", "version: 1\n2001-01-01: 1\n", []string{`2:1: a key has to be text | put quotes around it if it is meant as text`}},
		{"anchor on a key", "version: 1\n&a name: x\n", []string{"2:1: YAML anchors are not read | write the value out where it is needed; if & is meant, put quotes around the text"}},
		{"anchor on the profile", "--- &a\nversion: 1\n", []string{"1:5: YAML anchors are not read | write the value out where it is needed; if & is meant, put quotes around the text"}},
		{"alias as a key", "version: &a 1\n*a : x\n", []string{"1:10: YAML anchors are not read | write the value out where it is needed; if & is meant, put quotes around the text"}},
		{"tag without a name", "version: ! 1\n", []string{"1:10: YAML tags are not read | if ! is meant, put quotes around the text"}},
		{"tag on nothing", "version: 1\nname: !!str\n", []string{"2:7: YAML tags are not read | if ! is meant, put quotes around the text"}},
		{"directive that the library reads", "# x\n%YAML 1.1\n---\nversion: 1\n", []string{`2:1: YAML directives are not read | remove it`}},
		{"tag directive", "%TAG ! tag:x,1:\n---\nversion: 1\n", []string{`1:1: YAML directives are not read | remove it`}},
		{"null as a list", "version: 1\nextends: ~\n", []string{"2:10: extends: ~ is not a value | leave it out; nothing behind a key is an empty list or mapping"}},
		{"null as a section", "version: 1\nlimits: null\n", []string{"2:9: limits: null is not a value | leave it out; nothing behind a key is an empty list or mapping"}},
		{"null as variables", "version: 1\nenvironment: {set: Null}\n", []string{"2:20: environment.set: Null is not a value | leave it out; nothing behind a key is an empty list or mapping"}},
		{"unquoted variable in brackets", "version: 1\nfilesystem: {read: [${home}/x]}\n", []string{`2:22: expected a comma or ']' | separate entries with commas; put quotes around text that holds brackets`}},
		{"colon in text", "version: 1\nname: a: b\n", []string{`2:8: ":" where no key can be | put quotes around text that holds ": ", and align keys with their neighbours`}},
		{"open bracket", "version: 1\nextends: [base\nname: x\n", []string{`3:5: expected a comma or ']' | separate entries with commas; put quotes around text that holds brackets`}},
		{"never closed", "version: 1\nextends: [base\n", []string{`2:10: the bracket is never closed | close it with ] or }`}},
		{"open quote", "version: 1\nname: \"x\n", []string{`2:7: the quote is never closed | close it; a quote inside is written twice, or after \ in double quotes`}},
		{"unknown escape", "version: 1\nname: \"\\q\"\n", []string{`2:8: unknown escape | write \\ for a backslash; single quotes take text as it is`}},
		{"NUL escape", "version: 1\nfilesystem: {read: [\"/a\\x00b\"]}\n", []string{"2:21: text cannot hold a NUL byte | remove it"}},
		{"bad indentation", "version: 1\nnetwork:\n    egress: none\n  listen: []\n", []string{`4:3: expected a key | align it with its neighbours, and write "key: value"; put quotes around whole texts`}},
		{"stray item", "version: 1\n- x\n", []string{`2:1: expected a key | align it with its neighbours, and write "key: value"; put quotes around whole texts`}},
		{"text behind a value", "version: 1\nname: \"x\" y\n", []string{`2:11: expected a key | align it with its neighbours, and write "key: value"; put quotes around whole texts`}},
		{"deep nesting", "version: 1\nname: " + strings.Repeat("[", 40) + "\n", []string{"2:39: nested too deep"}},

		// Keys.
		{"unknown key", "version: 1\nnetwork:\n  egres: none\n", []string{`3:3: unknown key "egres" in "network" | did you mean "egress"?`}},
		{"other case and sign", "version: 1\nfilesystem: {special_Files: allow}\n", []string{`2:14: unknown key "special_Files" in "filesystem" | did you mean "special-files"?`}},
		{"key of a section", "version: 1\nlisten: [80]\n", []string{`2:1: unknown key "listen" | "listen" belongs under "network"`}},
		{"key of the profile", "version: 1\nnetwork: {extends: [base]}\n", []string{`2:11: unknown key "extends" in "network" | "extends" belongs under "the file itself"`}},
		{"a word of its own", "version: 1\nmissing: {layers: []}\n", []string{`2:11: unknown key "layers" in "missing" | known here: allow`}},
		{"duplicate key", "version: 1\nname: a\nname: b\n", []string{`3:1: key "name" is already written in line 2 | keep one of them`}},
		{"duplicate section", "version: 1\nlimits: {}\nlimits: {}\n", []string{`3:1: key "limits" is already written in line 2 | keep one of them`}},
		{"several problems", "version: 1\nnam: x\nlimits: {memory: lots}\nview: half\n", []string{
			`2:1: unknown key "nam" | did you mean "name"?`,
			`3:18: limits.memory: "lots" is not a size | write bytes, or a number with a unit: 512MiB, 1GB`,
			`4:7: view: "half" is not known | write full or grants`,
		}},

		// Kinds of values.
		{"section as text", "version: 1\nlimits: none\n", []string{"2:9: limits: expected a mapping, found text | write its keys below it: open-files, file-size, memory, processes"}},
		{"section as list", "version: 1\nnetwork: [none]\n", []string{"2:10: network: expected a mapping, found a list | write its keys below it: egress, names, listen, unix"}},
		{"text as list", "version: 1\nname: [x]\n", []string{"2:7: name: expected text, found a list"}},
		{"text without value", "version: 1\nname:\n", []string{"2:6: name: no value | write one, or remove the key; text that means nothing to YAML needs quotes"}},
		{"word null", "version: 1\nview: null\n", []string{"2:7: view: no value | write one, or remove the key; text that means nothing to YAML needs quotes"}},
		{"empty text", "version: 1\nname: \"\"\n", []string{"2:7: name: the text is empty | write one, or remove it"}},
		{"list as text", "version: 1\nfilesystem: {read: /x}\n", []string{"2:20: filesystem.read: expected a list of paths, found text | write [...], also for one entry"}},
		{"list in a list", "version: 1\nextends: [[base]]\n", []string{"2:11: extends: expected text, found a list"}},
		{"null in a list", "version: 1\nextends: [base, ~]\n", []string{"2:17: extends: no value | write one, or remove the key; text that means nothing to YAML needs quotes"}},
		{"nearly a word", "version: 1\nfilesystem: {metadata: ignored}\n", []string{`2:24: filesystem.metadata: "ignored" is not known | did you mean "ignore"?`}},

		// Names.
		{"name with a folder", "version: 1\nname: a/b\n", []string{`2:7: name: "a/b" is not a profile's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`}},
		{"name that begins with a dot", "version: 1\nname: .a\n", []string{`2:7: name: ".a" is not a profile's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`}},
		{"name of 65 letters", "version: 1\nname: " + strings.Repeat("a", 65) + "\n", []string{`2:7: name: a profile's name has at most 64 letters`}},
		{"extends a file", "version: 1\nextends: [base.yaml]\n", []string{`2:11: "base.yaml" is a file, not a profile's name | leave out .yaml`}},

		// match
		{"package without kind", "version: 1\nmatch: {packages: [server-x]}\n", []string{`2:20: package "server-x" has no kind | write "npm:server-x"`}},
		{"package of unknown kind", "version: 1\nmatch: {packages: [\"gem:x\"]}\n", []string{`2:20: package kind "gem" is not known | known are npm, pypi`}},
		{"package with version", "version: 1\nmatch: {packages: [\"npm:@a/b@1.2.3\"]}\n", []string{`2:20: package "npm:@a/b@1.2.3" names a version | leave out the version`}},
		{"every package", "version: 1\nmatch: {packages: [\"npm:*\"]}\n", []string{`2:20: "*" matches everything | write the beginning of the names that are meant`}},
		{"broken pattern", "version: 1\nmatch: {commands: [\"a[\"]}\n", []string{`2:20: "a[" is not a pattern | * and ? and [...] are the signs; put \ before one that is meant`}},
		{"command with folder", "version: 1\nmatch: {commands: [bin/x]}\n", []string{`2:20: command "bin/x" holds a folder | write the command's name without folders`}},

		// network
		{"port 65616", "version: 1\nnetwork: {listen: [65616]}\n", []string{"2:20: port 65616 is out of range | a number from 1 to 65535"}},
		{"port 0", "version: 1\nnetwork: {listen: [0]}\n", []string{"2:20: port 0 is out of range | a number from 1 to 65535"}},
		{"negative port", "version: 1\nnetwork: {listen: [-1]}\n", []string{`2:20: "-1" is not a port | a number from 1 to 65535`}},
		{"port range", "version: 1\nnetwork: {listen: [80-90]}\n", []string{"2:20: port ranges such as 80-90 are not read | list each port"}},
		{"port in quotes", "version: 1\nnetwork: {listen: [\"80\"]}\n", []string{"2:20: network.listen: expected a number, found quoted text | write the port without quotes"}},
		{"port in hexadecimal", "version: 1\nnetwork: {listen: [0x50]}\n", []string{`2:20: "0x50" is not a port | a number from 1 to 65535`}},
		{"port in octal", "version: 1\nnetwork: {listen: [080]}\n", []string{`2:20: "080" is not a port | write it without leading zeros`}},
		{"egress word", "version: 1\nnetwork: {egress: nune}\n", []string{`2:19: network.egress: "nune" is not known | did you mean "none"?`}},
		{"egress rule without list", "version: 1\nnetwork: {egress: \"a.example:443\"}\n", []string{"2:19: network.egress: expected a word or a list, found text | write [...], also for one rule"}},
		{"egress mapping", "version: 1\nnetwork: {egress: {a: b}}\n", []string{"2:19: network.egress: expected a list of rules, found a mapping | write [...], also for one entry"}},

		// roots and missing
		{"roots as a path", "version: 1\nroots: /x\n", []string{"2:8: roots: expected args or a list of folders, found text | write [...], also for one folder"}},
		{"roots word", "version: 1\nroots: arg\n", []string{`2:8: roots: "arg" is not known | did you mean "args"?`}},
		{"roots of roots", "version: 1\nroots: [\"${roots}/x\"]\n", []string{`2:9: a root cannot be made from ${roots} | write "roots: args" for the server's own folder arguments, or name folders`}},
		{"missing allow", "version: 1\nmissing: allow\n", []string{"2:10: missing: allow needs the names of layers | write {allow: [LAYER, ...]}: each layer by name"}},
		{"unknown layer", "version: 1\nmissing: {allow: [scope-signal]}\n", []string{`2:19: layer "scope-signal" is not known | did you mean "scope-signals"?`}},
		{"the jail's own layer", "version: 1\nmissing: {allow: [landlock-files]}\n", []string{`2:19: layer "landlock-files" cannot be missing: it is the jail itself | stockade doctor says what this kernel can enforce`}},
		{"layer without need", "version: 1\nmissing: {allow: [landlock-udp]}\n", []string{`2:19: layer "landlock-udp" cannot be missing: no profile needs it: the filter refuses what it would hold | remove it`}},
		{"cgroup", "version: 1\nmissing: {allow: [cgroup]}\n", []string{`2:19: layer "cgroup" cannot be missing: it holds only limits that a profile asks for | remove limits.memory and limits.processes instead`}},

		// guard
		{"duration", "version: 1\nguard: {call-timeout: 60}\n", []string{`2:23: guard.call-timeout: "60" is not a duration | write a number with a unit: 60s, 2m`}},
		{"negative duration", "version: 1\nguard: {call-timeout: \"-1s\"}\n", []string{`2:23: guard.call-timeout: "-1s" is not longer than nothing | write a number with a unit: 60s, 2m`}},
		{"calls", "version: 1\nguard: {calls-per-minute: 0}\n", []string{"2:27: guard.calls-per-minute: 0 is too small | at least 1; sizes take a unit, such as 512MiB"}},

		// limits
		{"few files", "version: 1\nlimits: {open-files: 15}\n", []string{"2:22: limits.open-files: 15 is too small | at least 16; sizes take a unit, such as 512MiB"}},
		{"count with unit", "version: 1\nlimits: {processes: 1k}\n", []string{`2:21: limits.processes: "1k" is not a number | write digits only`}},
		{"count in quotes", "version: 1\nlimits: {processes: \"64\"}\n", []string{"2:21: limits.processes: expected a number, found quoted text | write the number without quotes"}},
		{"size overflow", "version: 1\nlimits: {memory: 99999999999TiB}\n", []string{"2:18: limits.memory: 99999999999TiB is too large"}},
		{"number overflow", "version: 1\nlimits: {open-files: 99999999999999999999}\n", []string{"2:22: limits.open-files: 99999999999999999999 is too large"}},
		{"size with two meanings", "version: 1\nlimits: {memory: 2g}\n", []string{`2:18: limits.memory: "2g" has two meanings | write 2GiB (1024) or 2GB (1000)`}},
		{"size with fraction", "version: 1\nlimits: {memory: 1.5GiB}\n", []string{`2:18: limits.memory: sizes have no fractions: "1.5GiB" | write a whole number of a smaller unit, such as 1536MiB`}},
		{"gigabytes forgotten", "version: 1\nlimits: {memory: 2}\n", []string{"2:18: limits.memory: 2 is too small | at least 1048576; sizes take a unit, such as 512MiB"}},
		{"nothing as a limit", "version: 1\nlimits: {file-size: 0}\n", []string{"2:21: limits.file-size: 0 is too small | at least 4096; sizes take a unit, such as 512MiB"}},

		// syscalls
		{"call in capitals", "version: 1\nsyscalls: {deny: [SYS_bpf]}\n", []string{`2:19: "SYS_bpf" is not a system call | write the kernel's name, such as inotify_add_watch`}},
		{"list's name", "version: 1\nsyscalls: {profile: defaul}\n", []string{`2:21: syscalls.profile: "defaul" is neither "default" nor a file | did you mean "default"?`}},
		{"list below home", "version: 1\nsyscalls: {profile: ~/x.json}\n", []string{"2:21: syscalls.profile: variables are not known here | write an absolute path, or one relative to the profile"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := profiles.Parse("p.yaml", []byte(tt.src))
			if diff := cmp.Diff(tt.want, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseRefusesPaths has the rules for every list of paths.
func TestParseRefusesPaths(t *testing.T) {
	const known = "known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign"
	tests := []struct{ name, entry, message, hint string }{
		{"relative", "a/b", `"a/b" is a relative path`, `write "${cwd}/a/b", "${home}/a/b" or an absolute path`},
		{"other home", "~bob/x", `"~bob/x": other people's home folders are not known`, "write the absolute path"},
		{"bare tilde", "~", `LIST: a bare ~ means nothing to YAML`, `write "~" with quotes, or "${home}"`},
		{"tree", `"/a/**"`, `"/a/**": there are no patterns in paths`, `write the folder itself, "/a": a grant holds the whole tree`},
		{"children", `"/a/*"`, `"/a/*": there are no patterns in paths`, `write the folder itself, "/a": a grant holds the whole tree`},
		{"pattern", `"/a/*.md"`, `"/a/*.md": there are no patterns in paths`, "write each path, or the folder that holds them"},
		{"shell variable", `"$HOME/x"`, `"$HOME/x": $HOME is a shell's spelling, and the host's variables are not known here`, "did you mean ${home}?"},
		{"host variable", `"$PROJECT/x"`, `"$PROJECT/x": $PROJECT is a shell's spelling, and the host's variables are not known here`, known},
		{"unknown variable", `"${hom}/x"`, `"${hom}/x": variable ${hom} is not known`, "did you mean ${home}?"},
		{"host's placeholder", `"${workspaceFolder}/x"`, `"${workspaceFolder}/x": variable ${workspaceFolder} is not known`, known},
		{"lone dollar", `"/a$"`, `"/a$": a dollar sign that begins no variable`, known},
		{"open brace", `"${home"`, `"${home": a dollar sign that begins no variable`, known},
		{"variable in the middle", `"/a/${home}"`, `"/a/${home}": a variable stands for an absolute path`, "begin the path with it"},
		{"two variables", `"${home}/${cwd}"`, `"${home}/${cwd}": a variable stands for an absolute path`, "begin the path with it"},
		{"glued variable", `"${home}x"`, `"${home}x": a variable stands for a whole path`, "write a / behind it"},
		{"URL", `"file:///a"`, `"file:///a" is a URL`, "write the path alone"},
		{"long", strings.Repeat("/abc", 1024), "the path is longer than 4095 bytes", ""},
		{"number", "[1]", "LIST: expected a path, found a list", `write a path, or {path: ..., broad: true, reason: "..."}`},
		{"broad without reason", "{path: /a, broad: true}", "LIST: broad needs a reason", `add reason: "...": who reads the profile has to know why`},
		{"reason without broad", "{path: /a, reason: x}", "LIST: a reason has no effect without broad: true", "write broad: true, or a comment"},
		{"no path", "{broad: true, reason: x}", "LIST: the entry has no path", `write {path: ..., broad: true, reason: "..."}`},
		{"broad as a word", "{path: /a, broad: yes, reason: x}", "LIST.broad: expected true or false", "write true or false"},
		{"unknown entry key", "{path: /a, brod: true}", `unknown key "brod" in an entry of "LIST"`, `did you mean "broad"?`},
		{"double entry key", "{path: /a, path: /b}", `key "path" is already written in line 3`, "keep one of them"},
		{"bad path in an entry", "{path: b}", `"b" is a relative path`, `write "${cwd}/b", "${home}/b" or an absolute path`},
	}
	lists := map[string]string{
		"filesystem.read": "filesystem:\n  read: [ENTRY]\n", "filesystem.write": "filesystem:\n  write: [ENTRY]\n",
		"filesystem.optional": "filesystem:\n  optional: [ENTRY]\n", "network.unix": "network:\n  unix: [ENTRY]\n",
		"roots": "# folders\nroots: [ENTRY]\n",
	}
	for list, text := range lists {
		for _, tt := range tests {
			t.Run(list+"/"+tt.name, func(t *testing.T) {
				_, err := profiles.Parse("p.yaml", []byte("version: 1\n"+strings.Replace(text, "ENTRY", tt.entry, 1)))
				var many profiles.Errors
				if !errors.As(err, &many) || len(many) != 1 {
					t.Fatalf("got %v, want one problem", err)
				}
				want := profiles.Error{Position: many[0].Position, Message: strings.ReplaceAll(tt.message, "LIST", list), Hint: tt.hint}
				if diff := cmp.Diff(want, many[0]); diff != "" {
					t.Errorf("problem (-want +got):\n%s", diff)
				}
				if many[0].Line != 3 || many[0].Column < 9 {
					t.Errorf("the problem is at %d:%d, not at the entry", many[0].Line, many[0].Column)
				}
			})
		}
	}
}

func TestParseReads(t *testing.T) {
	const src = "\ufeff---\nversion: 1\r\n" +
		"name: x # a comment\n" +
		"description: >-\n  two\n  lines\n" +
		"filesystem:\n" +
		"  read:\n" +
		"  - ~/a\n" +
		"  - path: /\n" +
		"    broad: true\n" +
		"    reason: 'it''s a test'\n" +
		"  write: [\"${roots}/b\", /ü$$]\n" +
		"network: {listen: [80, 65535], egress: [\"API.Example.COM.:443\"]}\n" +
		"environment: {set: {A: 0x10, B: yes, C: \"~\", D: 'a: b'}}\n" +
		"limits: {file-size: 1kB, memory: 1048576}\n" +
		"roots: []\n" +
		"missing:\n"
	const broken = "limits: {file-size: 1kB"
	at := func(line, column int) profiles.Position {
		return profiles.Position{File: "p.yaml", Line: line, Column: column}
	}
	want := &profiles.Profile{
		File: "p.yaml", Version: 1, Description: "two lines",
		Name: profiles.Sourced[string]{Value: "x", Position: at(3, 7)},
		Filesystem: profiles.Filesystem{
			Read: []profiles.PathEntry{
				{Path: "~/a", Position: at(9, 5)},
				{Path: "/", Broad: true, Reason: "it's a test", Position: at(10, 11)},
			},
			Write: []profiles.PathEntry{{Path: "${roots}/b", Position: at(13, 11)}, {Path: "/ü$$", Position: at(13, 25)}},
		},
		Roots: profiles.Roots{ListAt: at(17, 8)},
		Network: profiles.Network{
			Listen:  []profiles.Sourced[uint16]{{Value: 80, Position: at(14, 20)}, {Value: 65535, Position: at(14, 24)}},
			Hosts:   []profiles.EgressRule{{To: "API.Example.COM.:443", Position: at(14, 41)}},
			HostsAt: at(14, 40),
		},
		Environment: profiles.Environment{Set: []profiles.EnvSet{
			{Name: "A", Value: "0x10", Position: at(15, 21)},
			{Name: "B", Value: "yes", Position: at(15, 30)},
			{Name: "C", Value: "~", Position: at(15, 38)},
			{Name: "D", Value: "a: b", Position: at(15, 46)},
		}},
		Limits: profiles.Limits{
			FileSize: profiles.Sourced[uint64]{Value: 8000, Position: at(16, 21)},
			Memory:   profiles.Sourced[uint64]{Value: 1 << 20, Position: at(16, 34)},
		},
	}
	got, err := profiles.Parse("p.yaml", []byte(strings.Replace(src, broken, "limits: {file-size: 8kB", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	if _, err := profiles.Parse("p.yaml", []byte(src)); err == nil {
		t.Error("a limit of 1000 bytes is accepted")
	}
}

// TestParseKeepsText: where text is expected, a plain word is its letters, whatever a
// version of YAML would make of it; where a number or true is expected, only one spelling is
// one.
func TestParseKeepsText(t *testing.T) {
	words := []string{"yes", "No", "on", "y", "true", "False", "0x10", "0o17", "017", "1_000", "1e3", "1.50", ".inf", "-.Inf", ".NaN", "2001-01-01", "12:30:45", "+1", "="}
	for _, word := range words {
		t.Run(word, func(t *testing.T) {
			p, err := profiles.Parse("p.yaml", []byte("version: 1\ndescription: "+word+"\nenvironment: {set: {A: "+word+"}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Environment.Set[0].Value; got != word || p.Description != word {
				t.Errorf("read as %q and %q", got, p.Description)
			}
			for _, text := range []string{
				"limits: {open-files: WORD}", "limits: {file-size: WORD}", "network: {listen: [WORD]}", "guard: {calls-per-minute: WORD}",
				"filesystem: {read: [{path: /a, broad: WORD, reason: x}]}",
			} {
				if word == "true" && strings.Contains(text, "broad") {
					continue
				}
				_, err := profiles.Parse("p.yaml", []byte("version: 1\n"+strings.Replace(text, "WORD", word, 1)+"\n"))
				if got := problems(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "2:") || !strings.Contains(got[0], " | ") {
					t.Errorf("%s: got %v, want one problem with a cure", text, got)
				}
			}
			if _, err := profiles.Parse("p.yaml", []byte("version: "+word+"\n")); err == nil {
				t.Error("read as the version")
			}
		})
	}
}

func TestParseReadsTextOverLines(t *testing.T) {
	p, err := profiles.Parse("p.yaml", []byte("version: 1\ndescription: one\n  two\n\n  three # not text\nenvironment:\n  set:\n    A: \"one\n      two\\\n      three\"\n    B: 'one\n\n      two'\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.Description, p.Environment.Set[0].Value, p.Environment.Set[1].Value}
	if diff := cmp.Diff([]string{"one two\nthree", "one twothree", "one\ntwo"}, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// TestParseColumnsCountBytes: an editor that counts bytes finds the place behind letters
// beyond ASCII.
func TestParseColumnsCountBytes(t *testing.T) {
	_, err := profiles.Parse("p.yaml", []byte("version: 1\nextends: [\"ü\", base.yaml]\n"))
	want := []string{
		`2:11: "ü" is not a profile's name | letters, digits, dot, dash and underscore, beginning with a letter or digit`,
		`2:17: "base.yaml" is a file, not a profile's name | leave out .yaml`,
	}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestParseBoundsItsErrors(t *testing.T) {
	src := "version: 1\n" + strings.Repeat("x: 1\n", 20000)
	_, err := profiles.Parse("p.yaml", []byte(src))
	got := problems(t, err)
	if len(got) != 101 || !strings.Contains(got[100], "more problems") {
		t.Errorf("%d problems, the last is %q", len(got), got[len(got)-1])
	}
	_, err = profiles.Parse("p.yaml", []byte("version: 1\nview: "+strings.Repeat("x", 500000)+"\n"))
	if text := err.Error(); len(text) > 10000 {
		t.Errorf("one word makes a message of %d bytes", len(text))
	}
}

func TestParseRefusesLargeFile(t *testing.T) {
	_, err := profiles.Parse("p.yaml", []byte("version: 1\n#"+strings.Repeat("x", 10<<20)))
	if diff := cmp.Diff([]string{"1:1: the file is larger than 1048576 bytes | a profile has a few dozen lines"}, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
