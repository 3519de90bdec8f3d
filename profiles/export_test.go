package profiles

import (
	"flag"

	"stockade/sandbox/program"
)

// Update makes tests write their expected files.
var Update = flag.Bool("update", false, "write generated and golden files instead of comparing them")

// FactsForTests are one machine and one command line: a node server from a package, with
// two folder arguments.
func FactsForTests() Facts {
	return Facts{
		Home: "/home/me", Dir: "/home/me/project", Repo: "/home/me/project", Runtime: "/run/user/1000",
		Env: map[string]string{
			"PATH": "/home/me/bin:/usr/bin", "HOME": "/home/me", "LANG": "C.UTF-8", "LC_TIME": "C", "TERM": "xterm", "USER": "me",
			"TOKEN": "hunter2", "API_TOKEN": "hunter3", "EMPTY": "", "LD_PRELOAD": "/evil.so", "NODE_OPTIONS": "--require /evil.js", "GIT_SSH": "x",
		},
		UID: 1000, PID: 4321,
		Program: program.Program{
			File: "/usr/bin/node", Argv: []string{"node", "/srv/fs/dist/index.js", "/data/a", "/data/b"}, Named: "/usr/bin/node", Runtime: program.Node,
			Entry: "/srv/fs/dist/index.js", Package: "@modelcontextprotocol/server-filesystem", Args: []string{"/data/a", "/data/b"},
			Execute: []string{"/usr/bin/node", "/lib64/ld-linux-x86-64.so.2"},
			Read:    []program.Need{{Path: "/usr/lib/libc.so.6", Why: "library of node"}, {Path: "/srv/fs", Why: "package folder"}, {Path: "/etc/ssl/openssl.cnf", Why: "settings of OpenSSL", Optional: true}},
			Path:    []string{"/usr/bin"}, Notes: []string{"a note of the search"},
		},
		ArgFolders: []ArgFolder{{"/data/a", "/data/a", ArgIsFolder}, {"/data/b", "/data/b", ArgIsFolder}},
		Execute: map[string]Closure{
			"git":    {Execute: []string{"/usr/bin/git", "/lib64/ld-linux-x86-64.so.2"}, Read: []program.Need{{Path: "/usr/lib/git-core", Why: "programs of git"}}},
			"/opt/x": {Execute: []string{"/opt/x"}},
		},
		LandlockABI: 7,
		Data:        "/home/me/.local/share", State: "/home/me/.local/state", Config: "/home/me/.config", Cache: "/home/me/.cache",
		Run: "4321-1",
	}
}

// EveryKey is a profile that uses every key and form.
const EveryKey = everyKey
