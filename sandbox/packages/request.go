package packages

import "strings"

// Kind is the registry that a package comes from.
type Kind string

const (
	// NPM is the npm registry, for npx, npm exec, bunx, pnpm dlx and yarn dlx.
	NPM Kind = "npm"
	// PyPI is the Python package index, for uvx, uv tool run and pipx run.
	PyPI Kind = "pypi"
)

// Source is where a package's content comes from.
type Source uint8

const (
	// Registry is a name with a version, a range or a tag.
	Registry Source = iota
	// Git is a repository, reached over HTTPS.
	Git
	// Archive is a tarball or wheel, at an HTTPS address or in a local file.
	Archive
	// Folder is a local folder, copied when it is installed.
	Folder
)

// Spec names one package.
type Spec struct {
	Source Source
	// Name is in the registry's canonical form: npm's as it is, with its scope; PyPI's in
	// lower case with single dashes (PEP 503). "" for other sources that name none.
	Name string
	// Version is the version, range or tag as written: npm's after the "@", PyPI's specifiers
	// such as "==1.2" or ">=1,<2". "" asks for the newest.
	Version string
	// Extras are PyPI extras ("cli" of "mcp[cli]"), sorted.
	Extras []string
	// Place is where another source than a registry lies: an https:// or git+https:// URL, or
	// an absolute path.
	Place string
}

// Request is everything that decides what is installed.
type Request struct {
	Kind Kind
	// Specs has the package that is run first; then others that run with it, sorted.
	Specs []Spec
	// Python is the interpreter that --python asked for; "" for any.
	Python string
	// Scripts are the packages whose install scripts run, sorted. The profile names them, and
	// a tree with them is another one, so they are part of the key.
	Scripts []string
}

// Command is a runner's command line, taken apart.
type Command struct {
	Runner  string // as people write it: "npx", "npm exec", "uv tool run"
	Request Request
	// Program is the program that the command line names; "" leaves the choice to the
	// package.
	Program string
	// Runtime is "bun" when the command line forces bun; "" follows the program's `#!` line.
	Runtime string
	// Args are the server's own words.
	Args []string
	// Notes say which of the runner's flags have no effect here, and why.
	Notes []string
}

// Where is what a command line's local paths are relative to.
type Where struct {
	Home string // absolute
	Dir  string // absolute working folder
}

// Registered tells whether what is installed is one package of a registry and what that asks
// for. Then the package's name says whose code runs, and a profile and a private home may go
// by it. A folder, an archive or a repository chooses its name itself, and further packages
// or an interpreter from the command line are other people's code under the first one's name.
func (r Request) Registered() bool {
	return len(r.Specs) == 1 && r.Specs[0].Source == Registry && !strings.Contains(r.Python, "/")
}
