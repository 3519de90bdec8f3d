package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

// Sockets says which socket families and types a server may create (socket(2)).
type Sockets uint8

const (
	// NoSockets refuses every family. Only stream and seqpacket Unix socket pairs work,
	// because hosts and runtimes use them as pipes.
	NoSockets Sockets = iota
	// ListenSockets admits TCP sockets over IPv4 and IPv6 for servers that listen and
	// never connect.
	ListenSockets
	// InternetSockets admits TCP and UDP over IPv4 and IPv6, connecting included, and the
	// netlink route socket that resolvers ask for the machine's addresses.
	InternetSockets
)

// Supervision says which calls wait for a supervisor: the kernel stops the caller, tells
// the holder of the listener (see [Listen]) and gives the caller what that answers.
type Supervision uint8

const (
	// Unsupervised decides every call in the kernel.
	Unsupervised Supervision = iota
	// SupervisedUnix admits Unix sockets. connect(2), sendto(2) with an address, sendmsg(2),
	// sendmmsg(2) and listen(2) wait for the supervisor. Of the Internet it admits what
	// [ListenSockets] does, if Sockets says so, and nothing else.
	SupervisedUnix
	// SupervisedInternet is the same with the families of [InternetSockets] beside Unix,
	// whatever Sockets says.
	SupervisedInternet
)

// Observation says whether an observer is told of calls that the policy decides by itself.
type Observation uint8

const (
	// Unobserved tells nobody.
	Unobserved Observation = iota
	// Observed lets calls wait whose refusal would be silent: those that name a file and have
	// a Landlock right, the execution of programs, and the creation of sockets. Whoever holds
	// the listener answers each with what the policy without observation says
	// ([Program.Verdict]): one that is allowed goes on, and Landlock decides.
	Observed
)

// Listening says whether listen(2) and accept(2) work.
type Listening uint8

const (
	// ListenRefused answers EACCES, also for a socket that was never bound: the kernel
	// would pick a port by itself.
	ListenRefused Listening = iota
	// ListenAllowed leaves the choice of ports to Landlock.
	ListenAllowed
)

// Metadata says what calls do that change a file's mode, owner, times or extended
// attributes by path. Calls on an open descriptor always work.
type Metadata uint8

const (
	// MetadataIgnore answers success and changes nothing: programs that restore modes by
	// name (git, pip, npm) go on.
	MetadataIgnore Metadata = iota
	// MetadataRefuse answers EPERM.
	MetadataRefuse
)

// Truncation says who keeps a server from cutting files short that it may not write.
type Truncation uint8

const (
	// TruncationByLandlock: the kernel has LANDLOCK_ACCESS_FS_TRUNCATE (ABI 3, Linux 6.2).
	TruncationByLandlock Truncation = iota
	// TruncationByFilter: older kernels. truncate(2) by path and opens that truncate
	// without asking to write are refused.
	TruncationByFilter
)

// Policy is what a filter is made from. The zero value is the strictest one.
type Policy struct {
	Sockets Sockets
	// Listening says nothing with a supervisor, which decides on each listen(2).
	Listening Listening
	// Supervision other than [Unsupervised] makes a filter for [Listen]. Installed without a
	// listener, its waiting calls answer ENOSYS.
	Supervision Supervision
	// Observation other than [Unobserved] makes a filter for [Listen] too.
	Observation Observation
	Metadata    Metadata
	Truncation  Truncation
	// Base is a person's own list in the OCI runtime-spec form, in place of the built-in
	// one; nil for the built-in one. What this package refuses stays refused.
	Base *specs.LinuxSeccomp
	// Allow names system calls that the person takes out of the refusals, Deny names
	// further refusals; both are kernel names ("inotify_add_watch").
	Allow, Deny []string
}
