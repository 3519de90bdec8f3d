package hostconfig

// Format is a file's syntax.
type Format uint8

// The formats. JSON includes comments and trailing commas everywhere: which host bears
// which does not change how a file is edited.
const (
	JSON   Format = iota // JSON, with or without comments
	TOML                 // TOML 1.0
	YAML                 // YAML 1.2
	Script               // Script: a program of the host's own; reported, never changed
)

// String returns the format's name.
func (f Format) String() string {
	return [...]string{"JSON", "TOML", "YAML", "script"}[f]
}

// Scope says whose file it is.
type Scope uint8

// The scopes.
const (
	User    Scope = iota // User: below the person's home
	Project              // Project: below a project's folder, so anybody may have written it
	System               // System: for everybody on the machine
)

// Base is the folder that a place's path is relative to.
type Base uint8

// The bases.
const (
	Home   Base = iota // Home: the home folder
	Config             // Config: $XDG_CONFIG_HOME, else ~/.config
	Folder             // Folder: the project's folder
	Root               // Root: the path is absolute
)

// Place is one file that a host reads.
type Place struct {
	Scope  Scope
	Base   Base
	Path   string // with slashes, relative to Base
	Moved  string // the environment variable that names another folder for the file; "" for none
	Format Format
	Shapes []Shape
}

// Shape is where in a file the servers are, and what their keys are called.
type Shape struct {
	// Path leads from the root to the servers; "*" stands for each key of a table, and
	// that key is the entry's project. An empty path is a file of nothing but servers.
	Path []string
	List bool // a list of tables with a name key, not a table by name
	// If and Unless are paths to a table of tables: one that has to be there for this shape,
	// and one in whose presence it is not this shape.
	If, Unless []string
	Keys       *Keys
}

// Keys are the names of an entry's keys.
type Keys struct {
	Command  string
	Args     string // "" when the command is one list
	Env      string
	Inherits string // names of variables to hand on; "" when the host has no such key
	// Nested says that command may be a table of path, args and env instead.
	Nested bool
}

// Keys that are called the same in every host that has them.
var urlKeys = []string{"url", "serverUrl", "httpUrl", "uri"}

// builtinTypes are values of Goose's type key with nothing to start in them, or code that
// the host starts in its own way.
var builtinTypes = []string{"builtin", "platform", "frontend", inlineType}

// inlineType is Goose's word for code that stands in the file.
const inlineType = "inline_python"

// remoteTypes are values of a type key that make a host look at the address.
var remoteTypes = []string{"http", "sse", "remote", "streamable_http", "streamable-http", "streamableHttp"}
