// Package profiles holds what a person writes: profiles in YAML, read strictly, checked,
// merged with what they extend, and compiled into a plan for package sandbox.
//
//	p, err := search.Match(prog)          // or search.Find(name); nil, nil: profiles.Empty()
//	p, err = search.Complete(p)           // merges what it extends
//	p, err = p.With(flags)                // grant flags add to it
//	r, err := profiles.Compile(p, facts)  // r.Plan is what sandbox.Enter does
//
// Compile is pure: the same profile and facts give the same plan on any machine. Reading
// the machine (folders, environment, programs, kernel) is the caller's, in [Facts].
//
// Errors are positions and cures: each names file, line and column, and says what to
// write instead. All errors of a file are reported at once. They never hold an
// environment value.
//
// Everything that is written takes effect or is refused. Keys whose layer is not built yet
// are read and checked, and [Compile] refuses them.
//
// The package does not judge whether a grant is wise. It knows which places need a second
// word (broad, with a reason), and it says what stays open ([Resolved].Residual).
package profiles

// Position is a place in a profile file.
type Position struct {
	File   string // as shown to the person
	Line   int    // 1-based; 0: the value does not come from a file with lines
	Column int    // 1-based, in bytes
}

// Sourced is a value with the place where it was written.
type Sourced[T any] struct {
	Value T
	Position
}

// written tells whether the value stands in a file or on the command line.
func (s *Sourced[T]) written() bool { return s.Position != Position{} }

// PathEntry is one entry of a path list: a string, or a mapping with reasons.
type PathEntry struct {
	Path   string // may hold variables and a leading ~; not yet resolved
	Broad  bool   // the person knows that the path holds too much
	Reason string // required with Broad
	Position
}

// Mode-like words. Their zero value is "not written".
type (
	// EgressMode is the scalar form of network.egress.
	EgressMode string
	// NamesMode is network.names, or the names of one rule.
	NamesMode string
	// AddressesMode is the addresses of one rule.
	AddressesMode string
	// MetadataMode is filesystem.metadata.
	MetadataMode string
	// SpecialFilesMode is filesystem.special-files.
	SpecialFilesMode string
	// HomeMode is filesystem.home.
	HomeMode string
	// ViewMode is view.
	ViewMode string
	// PinsMode is guard.pins: require, first-use, off.
	PinsMode string
)

// Words of the modes above that decide something in this package.
const (
	EgressNone   EgressMode = "none"
	EgressPublic EgressMode = "public"
	EgressAll    EgressMode = "all"

	NamesStrict NamesMode = "strict"
	NamesPinned NamesMode = "pinned"

	AddressesOrdinary AddressesMode = "ordinary"
	AddressesAny      AddressesMode = "any"

	MetadataIgnore   MetadataMode = "ignore"
	MetadataRefuse   MetadataMode = "refuse"
	MetadataMediated MetadataMode = "mediated"

	SpecialFilesAllow  SpecialFilesMode = "allow"
	SpecialFilesRefuse SpecialFilesMode = "refuse"

	HomePrivate HomeMode = "private"
	HomeReal    HomeMode = "real"

	ViewFull   ViewMode = "full"
	ViewGrants ViewMode = "grants"

	PinsOff PinsMode = "off"
)

// SyscallsDefault is the word for the built-in filter.
const SyscallsDefault = "default"

// Profile is one parsed file, before or after its `extends` are merged in.
type Profile struct {
	File string // where it was read from; "built-in NAME" for built-in ones; "" for the empty profile
	// FromRepo marks a profile of the repository. It may only narrow (see [Narrower]), unless
	// the person allowed its content (see [Approvals]).
	FromRepo bool
	// Sources are the files that the words came from: what it extends first, itself last.
	// Built-in profiles have none.
	Sources     []Source
	Version     int
	Name        Sourced[string] // without a place when it comes from the file's name
	Description string
	Match       Match
	Extends     []Sourced[string]
	Filesystem  Filesystem
	Roots       Roots
	Network     Network
	Environment Environment
	Install     InstallScripts
	Syscalls    Syscalls
	Limits      Limits
	View        Sourced[ViewMode]
	Guard       *Guard // nil: no guard key
	Missing     Missing
}

// Match says which command lines a profile is for.
type Match struct {
	Packages []Sourced[string] // "npm:@scope/name", glob allowed
	Commands []Sourced[string] // base name of the command or entry, glob allowed
}

// Filesystem is the section of that name.
type Filesystem struct {
	Read, Write, Optional []PathEntry
	Execute               []Sourced[string] // a name on the jail's PATH, or an absolute path
	Protect, Hide         []Sourced[string]
	SpecialFiles          Sourced[SpecialFilesMode]
	Metadata              Sourced[MetadataMode]
	Home                  Sourced[HomeMode]
}

// Roots is `roots: args`, or a list of folders. Flags add a list to either.
type Roots struct {
	FromArgs Sourced[bool]
	List     []PathEntry
	ListAt   Position // where the list form stands, also when it is empty
}

// Network is the section of that name.
type Network struct {
	// Egress is "" when a list or nothing is written. A list may hold the word public, and a
	// flag may add rules to it: then it stands beside Hosts.
	Egress  Sourced[EgressMode]
	Hosts   []EgressRule       // rules for hosts and addresses
	HostsAt Position           // where the list form stands, also when it is empty
	Names   Sourced[NamesMode] // for rules that do not say
	Listen  []Sourced[uint16]
	Unix    []PathEntry
}

// EgressRule is one rule of network.egress: text, or a mapping that also says how its host
// name is held, and to which addresses it may lead.
type EgressRule struct {
	To        string                 // as written; [egress.ParseRule] reads it
	Names     Sourced[NamesMode]     // "" when the rule does not say
	Addresses Sourced[AddressesMode] // "" when the rule does not say: ordinary
	Position
}

// Environment is the section of that name. Values of Set are the person's own words in
// the file; they are still never printed.
type Environment struct {
	Pass    []Sourced[string] // names, * allowed at the end after two letters
	Set     []EnvSet
	Secrets []Secret
}

// EnvSet is one variable that a profile sets.
type EnvSet struct {
	Name  string
	Value string // may hold variables
	Position
}

// Syscalls is the section of that name.
type Syscalls struct {
	Profile     Sourced[string] // "default", or a file in OCI form relative to the profile
	Allow, Deny []Sourced[string]
}

// Limits is the section of that name; 0 is "not written". Sizes are bytes.
type Limits struct {
	OpenFiles, FileSize, Memory, Processes Sourced[uint64]
}

// Guard is the section of that name. Pins parse; they are not built yet.
type Guard struct {
	Position
	Pins            Sourced[PinsMode]
	Tools           []Sourced[string]
	ToolsAt         Position // where the list stands, also when it is empty
	CallsPerMinute  Sourced[uint64]
	ConcurrentCalls Sourced[uint64]
	CallTimeout     Sourced[string] // a Go duration, checked
	MessageSize     Sourced[uint64]
	ResultSize      Sourced[uint64]
	Sampling        Sourced[string] // allow, deny
	Elicitation     Sourced[string]
	Roots           Sourced[string]
}

// Missing is `missing: refuse`, or the layers that may be absent.
type Missing struct {
	Refuse Sourced[bool]
	Allow  []Sourced[string]
}

// Empty is the profile of a server that no profile matches: its own program and runtime,
// a private home and temporary folder, and nothing else.
func Empty() *Profile {
	return &Profile{Version: 1, Name: Sourced[string]{Value: "empty"}}
}
