package profiles

// form is what may be written at a key.
type form uint8

const (
	formSection   form = iota + 1 // a mapping with known keys
	formVersion                   // the number 1
	formText                      // one text
	formWord                      // one of a few words
	formTexts                     // a list of texts
	formPaths                     // a list of paths
	formPorts                     // a list of TCP ports
	formVariables                 // a mapping from variable names to values
	formSize                      // bytes: 512MiB, 1GB, a plain number
	formCount                     // a number
	formDuration                  // 60s, 2m
	formEgress                    // a word, or a list of rules
	formRoots                     // the word args, or a list of paths
	formMissing                   // the word refuse, or a mapping
	formSecrets                   // a list of variables, or of mappings that name them
)

// key is one key of a profile. The table below is what the parser reads by, what the
// schema for editors is made from, and what tests walk.
type key struct {
	name  string
	doc   string // one sentence, for the schema
	form  form
	words []string // the words that may be written
	keys  []key    // of a mapping
	// field returns a pointer to where the value goes; nil for mappings that hold no value
	// of their own.
	field func(*Profile) any
	// check judges one text and returns it in its normal form; nil takes any.
	check func(string) (string, *problem)
	// least is the smallest number for sizes and counts, most the largest.
	least, most uint64
	// pattern describes a text to editors, as a regular expression without lookaround; it
	// may allow more than check does, never less.
	pattern string
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

const sizePattern = `^[0-9]+([kKMGT]i?B|B)?$`

var (
	guardWords = []string{"allow", "deny"}
	namesWords = []string{string(NamesStrict), string(NamesPinned)}
	// addressesWords are those of one rule alone: no word of the whole network opens all of them.
	addressesWords = []string{string(AddressesAny), string(AddressesOrdinary)}
)

// profileKeys is every key of a profile, in the order of the documentation.
var profileKeys = []key{
	{
		name: "version", form: formVersion, doc: "The version of the profile language: 1.",
		field: func(p *Profile) any { return &p.Version },
	},
	{
		name: "name", form: formText, doc: "The profile's name; the file's name when left out. Each profile has a private home for each installation of a server.",
		field: func(p *Profile) any { return &p.Name }, check: checkName, pattern: `^[A-Za-z0-9][A-Za-z0-9._-]*$`,
	},
	{
		name: "description", form: formText, doc: "A sentence for people.",
		field: func(p *Profile) any { return &p.Description },
	},
	{name: "match", form: formSection, doc: "Which command lines this profile is for.", keys: matchKeys},
	{
		name: "extends", form: formTexts, doc: "Profiles to start from, built-in or beside this file. Lists append, single values replace.",
		field: func(p *Profile) any { return &p.Extends }, check: checkName, pattern: `^[A-Za-z0-9][A-Za-z0-9._-]*$`,
	},
	{name: "filesystem", form: formSection, doc: "Files, folders and programs.", keys: filesystemKeys},
	{
		name: "roots", form: formRoots, words: []string{"args"}, doc: "What ${roots} stands for: args (the server's own folder arguments), or a list of folders.",
		field: func(p *Profile) any { return &p.Roots }, check: checkPath,
	},
	{name: "network", form: formSection, doc: "What the server may connect to and listen on.", keys: networkKeys},
	{name: "environment", form: formSection, doc: "The server's environment, built from nothing.", keys: environmentKeys},
	{name: "install", form: formSection, doc: "Install scripts of packages that a runner (npx, uvx) puts into the store. They run in the install jail; the server's own jail is the same with and without.", keys: installKeys},
	{name: "syscalls", form: formSection, doc: "The system call filter.", keys: syscallsKeys},
	{name: "limits", form: formSection, doc: "Resource limits of the jail.", keys: limitsKeys},
	{
		name: "view", form: formWord, words: []string{string(ViewFull), string(ViewGrants)}, doc: "full: names outside the grants stay visible; grants: nothing else exists.",
		field: func(p *Profile) any { return &p.View },
	},
	{name: "guard", form: formSection, doc: "Reads MCP messages; the key alone turns the guard on.", keys: guardKeys},
	{
		name: "missing", form: formMissing, words: []string{"refuse"}, doc: "What happens when the kernel lacks a layer: refuse, or the layers that the profile may run without.",
		field: func(p *Profile) any { return &p.Missing }, keys: missingKeys,
	},
}

var matchKeys = []key{
	{
		name: "packages", form: formTexts, doc: `Packages with their kind: "npm:@scope/name", installed in node_modules or site-packages; what calls itself so elsewhere does not match. A * stands for any part of a name.`,
		field: func(p *Profile) any { return &p.Match.Packages }, check: checkPackage, pattern: `^(npm|pypi):.+$`,
	},
	{
		name: "commands", form: formTexts, doc: "Names of commands, without folders. A * stands for any part of a name.",
		field: func(p *Profile) any { return &p.Match.Commands }, check: checkCommand, pattern: `^[^/]+$`,
	},
}

var filesystemKeys = []key{
	{
		name: "read", form: formPaths, doc: "Files and folders that may be read. A folder means the whole tree.",
		field: func(p *Profile) any { return &p.Filesystem.Read }, check: checkPath,
	},
	{
		name: "write", form: formPaths, doc: "Files and folders that may be read and changed, never executed.",
		field: func(p *Profile) any { return &p.Filesystem.Write }, check: checkPath,
	},
	{
		name: "execute", form: formTexts, doc: "Programs that may be started: a name on the jail's PATH, or an absolute path.",
		field: func(p *Profile) any { return &p.Filesystem.Execute }, check: checkProgram,
	},
	{
		name: "protect", form: formTexts, doc: "Names that stay unchangeable inside a write grant.",
		field: func(p *Profile) any { return &p.Filesystem.Protect }, check: checkInside,
	},
	{
		name: "hide", form: formTexts, doc: "Names that stay unreadable inside a grant.",
		field: func(p *Profile) any { return &p.Filesystem.Hide }, check: checkInside,
	},
	{
		name: "optional", form: formPaths, doc: "Read if there.",
		field: func(p *Profile) any { return &p.Filesystem.Optional }, check: checkPath,
	},
	{
		name: "special-files", form: formWord, words: []string{string(SpecialFilesAllow), string(SpecialFilesRefuse)}, doc: "Fifos, sockets and devices inside a grant.",
		field: func(p *Profile) any { return &p.Filesystem.SpecialFiles },
	},
	{
		name: "metadata", form: formWord, words: []string{string(MetadataIgnore), string(MetadataRefuse), string(MetadataMediated)}, doc: "chmod, chown, utimes and xattr by path: answered and not done, refused, or done inside write grants.",
		field: func(p *Profile) any { return &p.Filesystem.Metadata },
	},
	{
		name: "home", form: formWord, words: []string{string(HomePrivate), string(HomeReal)}, doc: "Which path HOME names; grants nothing by itself.",
		field: func(p *Profile) any { return &p.Filesystem.Home },
	},
}

var networkKeys = []key{
	{
		name: "egress", form: formEgress, words: []string{string(EgressNone), string(EgressPublic), string(EgressAll)},
		doc:   `What the server may connect to: none, public (no loopback, private or other special address), all, or a list: "api.example.com:443", "*.example.com:443", "10.1.0.0/16:5432", "[2001:db8::1]:443", "localhost:6379". A port may be a range; a host without one means 443. The word public may stand in the list. {to: HOST, addresses: any} lets a host's name lead to private addresses, loopback and the like, but not to cloud metadata.`,
		field: func(p *Profile) any { return &p.Network }, check: checkEgress, pattern: `^[^\s@]+$`,
	},
	{
		name: "names", form: formWord, words: namesWords, doc: "How a host name is held in rules that do not say: strict (on TLS and HTTP ports a relay checks the name that the client sends) or pinned (by the addresses that the name resolves to).",
		field: func(p *Profile) any { return &p.Network.Names },
	},
	{
		name: "listen", form: formPorts, doc: "TCP ports that the server may bind.",
		field: func(p *Profile) any { return &p.Network.Listen },
	},
	{
		name: "unix", form: formPaths, doc: "Unix sockets that the server may connect to, by path. Sockets that hand out more than themselves need broad and a reason.",
		field: func(p *Profile) any { return &p.Network.Unix }, check: checkSocket,
	},
}

var environmentKeys = []key{
	{
		name: "pass", form: formTexts, doc: "Variables of the host that the server gets. A * may end a name of two or more letters.",
		field: func(p *Profile) any { return &p.Environment.Pass }, check: checkPass, pattern: `^[A-Za-z_][A-Za-z0-9_]*\*?$`,
	},
	{
		name: "set", form: formVariables, doc: "Variables with values of the profile's own. Values may hold ${home} and the like; $$ is a dollar sign.",
		field: func(p *Profile) any { return &p.Environment.Set }, check: checkSet, pattern: `^[A-Za-z_][A-Za-z0-9_]*$`,
	},
	{
		name: "secrets", form: formSecrets, doc: "Variables of the host that the server needs and nobody may see. One that the server can do without is {name: NAME, optional: true}.",
		field: func(p *Profile) any { return &p.Environment.Secrets }, check: checkSecret, pattern: `^[A-Za-z_][A-Za-z0-9_]*$`,
	},
}

var installKeys = []key{
	{
		name: "scripts", form: formTexts, doc: "Packages, by their names on npm or PyPI, whose install scripts may run. Without it none do.",
		field: func(p *Profile) any { return &p.Install.Scripts }, check: checkScriptPackage, pattern: `^(@[A-Za-z0-9._~-]+/)?[A-Za-z0-9._~-]+$`,
	},
	{
		name: "execute", form: formTexts, doc: "Programs that the scripts may start beside a shell and the runtime: a name on the jail's PATH, or an absolute path.",
		field: func(p *Profile) any { return &p.Install.Execute }, check: checkInstallProgram,
	},
	{
		name: "read", form: formPaths, doc: "Files and folders that the scripts may read, such as headers and toolchains.",
		field: func(p *Profile) any { return &p.Install.Read }, check: checkInstallPath,
	},
}

var syscallsKeys = []key{
	{
		name: "profile", form: formText, doc: "default, or a file in the OCI runtime-spec linux.seccomp form, relative to this one.",
		field: func(p *Profile) any { return &p.Syscalls.Profile }, check: checkSyscallFile,
	},
	{
		name: "allow", form: formTexts, doc: "System calls to take out of the refusals.",
		field: func(p *Profile) any { return &p.Syscalls.Allow }, check: checkSyscall, pattern: `^[a-z0-9_]+$`,
	},
	{
		name: "deny", form: formTexts, doc: "System calls to refuse as well.",
		field: func(p *Profile) any { return &p.Syscalls.Deny }, check: checkSyscall, pattern: `^[a-z0-9_]+$`,
	},
}

var limitsKeys = []key{
	{
		name: "open-files", form: formCount, least: 16, most: 1 << 30, doc: "Open files of one process.",
		field: func(p *Profile) any { return &p.Limits.OpenFiles },
	},
	{
		name: "file-size", form: formSize, least: 4 * kib, most: 1 << 62, doc: "The largest file that a process may write.",
		field: func(p *Profile) any { return &p.Limits.FileSize },
	},
	{
		name: "memory", form: formSize, least: mib, most: 1 << 62, doc: "Memory of the whole jail; needs a delegated cgroup v2.",
		field: func(p *Profile) any { return &p.Limits.Memory },
	},
	{
		name: "processes", form: formCount, least: 1, most: 1 << 22, doc: "Processes and threads of the whole jail; needs a delegated cgroup v2.",
		field: func(p *Profile) any { return &p.Limits.Processes },
	},
}

var guardKeys = []key{
	{
		name: "pins", form: formWord, words: []string{"require", "first-use", "off"}, doc: "Whether tool definitions have to be approved.",
		field: func(p *Profile) any { return &p.guard().Pins },
	},
	{
		name: "tools", form: formTexts, doc: "The only tools that are listed and callable. A * stands for any part of a name.",
		field: func(p *Profile) any { return &p.guard().Tools }, check: checkTool,
	},
	{
		name: "calls-per-minute", form: formCount, least: 1, most: 1 << 32, doc: "Tool calls in a minute.",
		field: func(p *Profile) any { return &p.guard().CallsPerMinute },
	},
	{
		name: "concurrent-calls", form: formCount, least: 1, most: 1 << 20, doc: "Tool calls at the same time.",
		field: func(p *Profile) any { return &p.guard().ConcurrentCalls },
	},
	{
		name: "call-timeout", form: formDuration, doc: "How long a tool call may take.",
		field: func(p *Profile) any { return &p.guard().CallTimeout },
	},
	{
		name: "message-size", form: formSize, least: kib, most: 1 << 40, doc: "The largest message.",
		field: func(p *Profile) any { return &p.guard().MessageSize },
	},
	{
		name: "result-size", form: formSize, least: kib, most: 1 << 40, doc: "The largest tool result.",
		field: func(p *Profile) any { return &p.guard().ResultSize },
	},
	{
		name: "sampling", form: formWord, words: guardWords, doc: "Whether the server may ask the host's model.",
		field: func(p *Profile) any { return &p.guard().Sampling },
	},
	{
		name: "elicitation", form: formWord, words: guardWords, doc: "Whether the server may ask the person.",
		field: func(p *Profile) any { return &p.guard().Elicitation },
	},
	{
		name: "roots", form: formWord, words: guardWords, doc: "Whether the server may ask for the host's roots.",
		field: func(p *Profile) any { return &p.guard().Roots },
	},
}

var missingKeys = []key{
	{
		name: "allow", form: formTexts, doc: "Layers that the profile may run without.",
		field: func(p *Profile) any { return &p.Missing.Allow }, check: checkLayer,
	},
}

// guard returns the guard section, making it when a key of it is written.
func (p *Profile) guard() *Guard {
	if p.Guard == nil {
		p.Guard = &Guard{}
	}
	return p.Guard
}

// Keys of an entry in a path list, and of one in network.egress, that is a mapping.
var (
	entryKeys = []string{"path", "broad", "reason"}
	ruleKeys  = []string{"to", "names", "addresses"}
)
