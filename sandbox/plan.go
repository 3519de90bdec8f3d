package sandbox

import (
	"fmt"

	"stockade/sandbox/egress"
	"stockade/sandbox/guard"
	"stockade/seccomp"
)

// Access is what a grant allows on a path. Each value is a fixed set of Landlock rights,
// trimmed to the kind of object that the path turns out to be.
type Access uint8

const (
	// Read allows reading files and listing folders.
	Read Access = iota + 1
	// Write allows Read, and creating, changing, moving and removing files and folders.
	// It never allows execution, devices, fifos or sockets.
	Write
	// Scratch is Write for the server's private folders: fifos and socket files too.
	Scratch
	// Execute allows reading and executing one file.
	Execute
	// Device allows reading and writing one device node.
	Device
)

// String returns the word that explain prints.
func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case Scratch:
		return "scratch"
	case Execute:
		return "execute"
	case Device:
		return "device"
	}
	return "unknown"
}

// Presence says what a missing path means.
type Presence uint8

const (
	// Required makes a missing path an error before the start.
	Required Presence = iota
	// Optional skips a missing path.
	Optional
)

// Origin is where a grant comes from, for explain and for errors.
type Origin struct {
	Source string // a profile's file name, "built-in node", "--read", "runtime", "always"
	Line   int    // 1-based; 0 when the source has no lines
	Column int    // 1-based, in bytes; 0 when the source has no lines
}

// String returns "file:line:column", or the source alone when it has no lines.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

// Sources of grants that nobody wrote.
const (
	// OriginAlways marks what every jail has.
	OriginAlways = "always"
	// OriginRuntime marks what the program needs to start.
	OriginRuntime = "runtime"
)

// Grant is one permission on a path.
type Grant struct {
	Path     string // absolute and clean; links are followed once, when it is opened
	Access   Access
	Presence Presence
	Want     Kind // the kind it has to be; KindAny for any (roots are folders)
	// Broad is the reason for a grant that needs one (see [Guarded]); "" otherwise.
	Broad  string
	Origin Origin
	Why    string // a few words for explain
}

// Guarded is a place that no ordinary grant may hold, contain or lie in.
type Guarded struct {
	Path string // absolute, links resolved
	Why  string // "your home folder", "holds SSH keys"
	// Rule says how strict it is.
	Rule GuardRule
	// Own is the real path of a folder in the place that holds the server's own program; ""
	// for none. What the program needs to start may be read and executed there, and in no
	// other part of the place. It opens nothing to what a profile grants.
	Own string
	// Origin is where somebody wrote that the place is guarded; empty for our own table.
	Origin Origin
}

// GuardRule says which grants a guarded place forbids.
type GuardRule uint8

const (
	// GuardWhole forbids granting the place itself or a folder above it, unless Broad.
	GuardWhole GuardRule = iota
	// GuardTree forbids also what lies inside, unless Broad.
	GuardTree
	// GuardAlways is GuardTree, and no reason opens the place itself or what lies inside:
	// stockade's own state. A folder above it is as for GuardWhole.
	GuardAlways
	// GuardNever forbids every grant that reaches the place, whatever its reason and whoever
	// made it, but what every jail has: what a policy closes.
	GuardNever
	// GuardNeverWrite is GuardNever for grants that write; others pass.
	GuardNeverWrite
	// GuardNeverExecute is GuardNever for executing the file at the place.
	GuardNeverExecute
)

// Network is what the jail may do on the network.
type Network struct {
	Egress Egress
	Rules  egress.Policy // with EgressRules
	Listen []uint16      // TCP ports that may be bound; empty: none
	Unix   []UnixGrant   // socket files that may be connected to
}

// UnixGrant is a socket file that the jail may connect to.
type UnixGrant struct {
	Path   string // real path: absolute, links followed
	Broad  string // the reason for a socket that hands out more than itself; "" otherwise
	Origin Origin
}

// Egress is what the jail may connect to.
type Egress uint8

const (
	// EgressNone allows no Internet socket at all.
	EgressNone Egress = iota
	// EgressAll leaves TCP and UDP open to every address.
	EgressAll
	// EgressRules lets the supervisor decide on every connection.
	EgressRules
)

// Limits are resource limits of the jail; 0 keeps what the host set.
type Limits struct {
	OpenFiles uint64 // RLIMIT_NOFILE
	FileSize  uint64 // RLIMIT_FSIZE, bytes
	Memory    uint64 // cgroup v2 memory.max, bytes
	Processes uint64 // cgroup v2 pids.max
}

// Folder is a private folder of the jail that Enter makes.
type Folder struct {
	Path string // absolute; "" when the plan has none
}

// Plan is everything that Enter does, as plain data: a profile resolved against this
// machine and command line. Two equal plans make the same jail.
type Plan struct {
	Name string // profile name, for messages and for the private home
	File string // real path of the program to execute
	Argv []string
	Dir  string   // working folder; kept as it is
	Env  []string // complete environment, NAME=VALUE; values are never printed

	Grants  []Grant
	Guarded []Guarded
	Network Network
	Filter  seccomp.Policy
	Limits  Limits
	// Guard says which MCP messages pass; nil: nobody reads them.
	Guard *guard.Policy

	Home Folder // private home, kept between runs
	Tmp  Folder // private temporary folder of this run
	// Runs is the folder that holds the temporary folders of all runs.
	Runs string

	// Missing lists the layers that the profile agrees to run without.
	Missing []Layer
}

// Supervised tells whether a supervisor has to stay with the server.
func (p Plan) Supervised() bool { return p.Mediated() || p.Guard != nil }

// Mediated tells whether a supervisor has to answer calls of the server: only it can tell
// hosts and socket files apart.
func (p Plan) Mediated() bool {
	return p.Network.Egress == EgressRules || len(p.Network.Unix) > 0
}

// asks tells whether the filter lets calls wait, so that somebody has to take its listener.
func (p Plan) asks() bool { return p.Filter.Supervision != seccomp.Unsupervised || p.Observed() }

// Observed tells whether a supervisor has to stay to tell of what the kernel refuses. It
// decides nothing: the filter lets calls wait, and each goes on or is refused as without it.
func (p Plan) Observed() bool { return p.Filter.Observation != seccomp.Unobserved }
