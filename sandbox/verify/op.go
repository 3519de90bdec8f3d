package verify

// Op names one operation of the probe.
type Op string

// The operations. Those that work on success leave nothing behind.
const (
	OpList           Op = "list"
	OpRead           Op = "read"
	OpWrite          Op = "write"
	OpMoveBetween    Op = "move-between"
	OpTruncate       Op = "truncate"
	OpExec           Op = "exec"
	OpExecCopy       Op = "exec-copy"
	OpMemfd          Op = "memfd"
	OpNoCapabilities Op = "no-capabilities"
	OpNoNewPrivs     Op = "no-new-privs"
	OpDescriptor     Op = "descriptor"
	OpEnvironment    Op = "environment"
	OpCoreLimit      Op = "core-limit"
	OpUmask          Op = "umask"
	OpTerminal       Op = "terminal"
	OpPrlimit        Op = "prlimit"
	OpSetpriority    Op = "setpriority"
	OpPtrace         Op = "ptrace"
	OpSignal         Op = "signal"
	OpSignalSelf     Op = "signal-self"
	OpUnshare        Op = "unshare"
	OpClone3         Op = "clone3"
	OpKeyring        Op = "keyring"
	OpBPF            Op = "bpf"
	OpTiocsti        Op = "tiocsti"
	OpDatagramPair   Op = "datagram-pair"
	OpStreamPair     Op = "stream-pair"
	OpIoUring        Op = "io-uring"
	OpChmod          Op = "chmod"
	OpChmodIgnored   Op = "chmod-ignored"
	OpFchmod         Op = "fchmod"
	OpSocket         Op = "socket"
	OpConnect        Op = "connect"
	OpListen         Op = "listen"
	OpListenAnywhere Op = "listen-anywhere"
	OpBind           Op = "bind"
)
