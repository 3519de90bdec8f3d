package sandbox

// Layer is one kernel mechanism of the jail. Its string is the name in profiles
// (`missing: {allow: [...]}`), reports and messages.
type Layer string

const (
	// LayerFiles is Landlock's file rights (Linux 5.13, ABI 1).
	LayerFiles Layer = "landlock-files"
	// LayerRefer is moving and linking between folders under Landlock (Linux 5.19, ABI 2).
	LayerRefer Layer = "landlock-refer"
	// LayerTruncate is LANDLOCK_ACCESS_FS_TRUNCATE (Linux 6.2, ABI 3). The filter covers for it.
	LayerTruncate Layer = "landlock-truncate"
	// LayerTCP is Landlock's TCP bind and connect rights (Linux 6.7, ABI 4).
	LayerTCP Layer = "landlock-tcp"
	// LayerIoctlDev is ioctl on devices (Linux 6.10, ABI 5).
	LayerIoctlDev Layer = "landlock-ioctl-dev"
	// LayerScopeSignals keeps signals inside the jail (Linux 6.12, ABI 6).
	LayerScopeSignals Layer = "scope-signals"
	// LayerScopeAbstract keeps abstract Unix sockets inside the jail (Linux 6.12, ABI 6).
	LayerScopeAbstract Layer = "scope-abstract-unix"
	// LayerUnix is LANDLOCK_ACCESS_FS_RESOLVE_UNIX (ABI 9).
	LayerUnix Layer = "landlock-unix"
	// LayerUDP is Landlock's UDP rights (ABI 10).
	LayerUDP Layer = "landlock-udp"
	// LayerSeccomp is the system call filter (Linux 3.17).
	LayerSeccomp Layer = "seccomp"
	// LayerNoNewPrivs is PR_SET_NO_NEW_PRIVS (Linux 3.5).
	LayerNoNewPrivs Layer = "no-new-privs"
	// LayerCapabilities is the empty capability sets.
	LayerCapabilities Layer = "capabilities"
	// LayerDescriptors is that nothing above descriptor 2 is inherited.
	LayerDescriptors Layer = "descriptors"
	// LayerEnvironment is the environment built from nothing.
	LayerEnvironment Layer = "environment"
	// LayerLimits is resource limits, core dumps and umask.
	LayerLimits Layer = "limits"
	// LayerTerminal is that the jail has no controlling terminal.
	LayerTerminal Layer = "terminal"
	// LayerCgroup is memory and process limits by cgroup v2.
	LayerCgroup Layer = "cgroup"
)
