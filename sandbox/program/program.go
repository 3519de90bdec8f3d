// Package program works out what a command line starts: the file that the kernel will
// execute, the interpreters behind it, and the files these need at start.
//
//	p, err := program.Resolve([]string{"npx-like-script", "--flag"}, facts)
//	// p.File is the interpreter, p.Argv what it gets, p.Read what it opens at start.
//
// It reads files and never runs any. It grants nothing: its answer is data that
// profiles.Compile turns into grants. Paths in the answer are real paths (no links left)
// unless a field says otherwise. What it reads is bounded, and it opens regular files
// only, so that nothing in a project can make it hang.
//
// Needs are as narrow as the files tell: single libraries, the folders of one package, a
// script alone where no package is told. A file that a server could have written does not
// widen them: its words (a `#!` line, a wrapper, a package.json) and its links grant
// nothing outside of the tree that it belongs to, which is its package, the workspace
// around that, or the project that holds a virtual environment; anything else is a note
// that says how a person grants it. What the host's own command line names is granted.
//
// What stays a file's own choice is the interpreter in its `#!` line: an ELF program, or a
// script on PATH or beside it.
//
// What it does not know, and a profile adds by hand: libraries that a program opens by a
// computed name (native addons of node packages with libraries of the system, name service
// modules), what version managers put into the environment, LD_LIBRARY_PATH and
// /etc/ld.so.preload.
//
// It does not protect against a program that changes between this look and the start;
// the launcher grants by opened descriptor, so a swapped file is one that cannot run.
package program

// Runtime is the language runtime that a command line ends in.
type Runtime uint8

const (
	// Native is an ELF program without an interpreter of its own language.
	Native Runtime = iota
	// Node is node, or a program that carries it.
	Node
	// Python is CPython, also inside a virtual environment.
	Python
	// Shell is a POSIX shell running a script.
	Shell
)

// Facts are what a search for a program depends on, gathered once by the caller.
type Facts struct {
	Home string            // absolute path of the person's home folder
	Dir  string            // absolute working folder
	Env  map[string]string // the host's environment (PATH, PYENV_VERSION, ...); never printed
}

// Need is one file or folder that has to be readable for a program to start.
type Need struct {
	Path string // absolute; a folder means the tree below it
	Why  string // a few words for explain: "library of node", "package folder"
	// Optional needs are granted when present and skipped when absent.
	Optional bool
}

// Program is the answer of [Resolve].
type Program struct {
	// File is the real path of the file to execute. For scripts it is the interpreter:
	// the `#!` chain, env(1) included, is followed here and not left to the jail.
	File string
	// Argv is the complete argument vector for File. Argv[0] is what the kernel would
	// have passed, as an absolute path whose links are kept: virtual environments and
	// multi-call programs depend on it.
	Argv []string
	// Named is the path under which the command was found, links and shims not followed.
	Named string
	// Runtime is what File runs.
	Runtime Runtime
	// Entry is the server's script, as a real path: the one that the host named, also when
	// its `#!` line makes the runtime start another; else the one that the runtime executes.
	// It is "" for native programs and for `node -e`, `python -m` and the like in the host's
	// own words. bun and deno are native, and their script is told here.
	Entry string
	// Package is the name in the package.json nearest to Entry, or the Python module
	// of `python -m`; "" when there is none.
	Package string
	// Args are the server's own arguments: Argv after the entry, module or code (or after
	// Argv[0] for native programs). Words of a `#!` line are never among them.
	Args []string
	// Execute lists every file that must be executable: File and its ELF loader.
	Execute []string
	// Read lists what must be readable beyond Execute: libraries, the runtime's own
	// files, the package.
	Read []Need
	// Sites are the folders of installed packages of a Python that runs, as real paths.
	Sites []string
	// Path lists the folders that lead the jail's PATH, so that the runtime finds itself:
	// real folders, a virtual environment's first, never one of shims.
	Path []string
	// Notes are facts that a person should see: a shim that was followed, a file that is
	// not granted and how it would be. There are at most 65.
	Notes []string
}
