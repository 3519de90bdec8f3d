package packages

import "time"

// Entry is an installed package with all that it needs, in the store.
type Entry struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`    // of the package that is run
	Version string `json:"version"` // exact
	// Registered tells that the name is the registry's and that the tree holds nothing but
	// what the package asks for: see [Request.Registered]. Other entries are kept apart.
	Registered bool `json:"registered"`
	// Digest is the first 16 hexadecimal digits of the SHA-256 of the manifest's content part.
	Digest string `json:"digest"`
	// Folder is STORE/KIND/NAME@VERSION-DIGEST, or STORE/KIND/+/NAME@VERSION-DIGEST for one
	// that is not registered; a scope is a folder of its own.
	Folder string `json:"folder"`
	// Locked lists every package of the tree, sorted by name and version.
	Locked []Locked `json:"locked"`
	// Runtime is what it was installed for: "node v20.20.2", "python 3.11.2".
	Runtime   string    `json:"runtime"`
	Scripts   []string  `json:"scripts"` // packages whose install scripts ran
	Installed time.Time `json:"installed"`
	Size      int64     `json:"size"`  // bytes
	Files     int       `json:"files"` // files and links
}

// Locked is one package of an installed tree.
type Locked struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Integrity is the registry's hash of the archive, as the package manager checked it:
	// "sha512-…" (npm) or "sha256=…" (PyPI); "" for sources without one.
	Integrity string `json:"integrity"`
}

// Start is how an entry's program is started: without package manager and shell.
type Start struct {
	// Argv is the command line: the program's own file first (its `#!` line names the
	// runtime), or the runtime and the file.
	Argv []string
	// Env are variables that the runner would have set and the program needs; usually none.
	Env []string
}

// Step is one command of an install, carried out in the install jail.
type Step struct {
	// Title is for progress: "resolving", "installing", "running install scripts".
	Title string
	// Argv is the command line; Argv[0] is a name on PATH or an absolute path.
	Argv []string
	// Env are variables beside the jail's own, NAME=VALUE. None is a secret.
	Env []string
	// Access says what the step may do beyond writing the stage.
	Access Access
}

// Access is what a step may do beyond writing the stage.
type Access uint8

const (
	// Offline has no network.
	Offline Access = iota
	// Online reaches the hosts of [Registries], with the person's credentials.
	Online
	// Scripted runs install scripts: the hosts of [Registries] without any credential, and a
	// shell.
	Scripted
)

// Registries are the hosts that an install reaches.
type Registries struct {
	// Rules are egress rules, "host:port", sorted.
	Rules []string
	// Files are files of the person's configuration that the package manager reads:
	// ~/.npmrc, pip.conf, certificate bundles. Absolute paths.
	Files []string
	// Variables are variables of the host's environment that the package manager reads:
	// NPM_CONFIG_*, PIP_*, proxies, and what the files name as ${VARIABLE}.
	Variables []string
	// OpenFiles and OpenVariables are those of them that hold no credential: certificates of
	// authorities, proxies without a password. A [Scripted] step gets only these.
	OpenFiles, OpenVariables []string
}
