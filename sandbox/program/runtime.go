package program

import (
	"strings"
)

// kind is what an ELF file turns out to be; several kinds share a Runtime.
type kind uint8

const (
	plain kind = iota
	nodeKind
	pythonKind
	shellKind
	bunKind
	denoKind
)

// kindOf tells a runtime by the name of its real file: links such as nodejs and python3
// end in it, and a copy under another name is a program of its own.
func kindOf(e executable) kind {
	base := baseOf(e.entry.path)
	switch base {
	case "node", "nodejs", "iojs":
		return nodeKind
	case "bun":
		return bunKind
	case "deno":
		return denoKind
	case "busybox", "toybox":
		// Many programs in one: argv[0] chooses, or else the first argument.
		applet := baseOf(e.named)
		if applet == base && len(e.args) > 0 {
			applet = e.args[0]
		}
		if isShellName(applet) {
			return shellKind
		}
		return plain
	}
	switch {
	case isShellName(base):
		return shellKind
	case versioned(base, "node"), versioned(base, "nodejs"):
		return nodeKind
	case versioned(base, "python"):
		return pythonKind
	}
	return plain
}

func isShellName(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "oksh", "yash", "posh", "rbash":
		return true
	}
	return versioned(name, "zsh") || versioned(name, "bash")
}

// versioned says whether a name is a stem alone or with a version: python3.11, node-20,
// python3.13t (the letter marks CPython's builds without a global lock, or for debugging).
func versioned(name, stem string) bool {
	rest, ok := strings.CutPrefix(name, stem)
	if !ok {
		return false
	}
	rest = strings.TrimPrefix(rest, "-")
	rest = strings.TrimSuffix(strings.TrimSuffix(rest, "d"), "t")
	for i := range len(rest) {
		if !isDigit(rest[i]) && rest[i] != '.' {
			return false
		}
	}
	return true
}

// runtime adds what the runtime reads at start, and finds its script.
func (s *search) runtime(e executable) error {
	name := baseOf(e.entry.path)
	switch kindOf(e) {
	case nodeKind:
		s.program.Runtime = Node
		s.nodeFiles(e)
		s.nodeCommandLine()
	case pythonKind:
		if !s.pythonFiles(e) {
			s.note("%q has no standard library where CPython keeps it; it is taken for a native program", e.entry.path)
			s.clock(zoneTree)
			break
		}
		s.program.Runtime = Python
		s.clock(zoneTree)
		s.pythonCommandLine()
		s.pythonModules()
		s.program.Sites = s.python.sites
	case shellKind:
		s.program.Runtime = Shell
		s.clock(zoneTree)
		s.shellCommandLine(e)
	case bunKind, denoKind:
		s.clock(zoneTree)
		s.scriptRunner(name)
	case plain:
		s.clock(zoneTree)
	}
	s.libcFiles()
	if s.libraries == nil {
		return nil
	}
	for _, path := range s.libraries.files {
		if strings.HasPrefix(baseOf(path), "libcrypto.so.") {
			s.openssl(parentOf(parentOf(path)))
		}
	}
	s.addLibraries(name)
	return nil
}

// zones says how much of the time zone database a program reads.
type zones uint8

const (
	zoneLocal zones = iota // the machine's zone: the runtime carries the others itself
	zoneTree
)

func (s *search) clock(z zones) {
	if z == zoneTree {
		s.needFolder("/usr/share/zoneinfo", "time zones", tolerable)
	}
	s.needFile("/etc/localtime", "time zone")
}

// libcFiles adds what glibc opens behind a program's back. All of it may be absent.
func (s *search) libcFiles() {
	if s.libraries == nil || s.libraries.loader.musl {
		return
	}
	s.needFile("/usr/lib/locale/locale-archive", "locales")
	s.needFolder("/usr/lib/locale/C.utf8", "the C.UTF-8 locale", tolerable)
	libc := ""
	for _, path := range s.libraries.files {
		if base := baseOf(path); base == "libc.so.6" || strings.HasPrefix(base, "libc-2.") {
			libc = path
		}
	}
	if libc == "" {
		return
	}
	s.needFile(parentOf(libc)+"/gconv/gconv-modules.cache", "character sets")
	// pthread_exit and pthread_cancel load it, and end the process if they cannot.
	s.libraries.optional("libgcc_s.so.1")
	if strings.HasPrefix(baseOf(libc), "libc-2.") {
		// Until 2.33 the file carried its version in its name, and names were resolved by
		// libraries of their own; since 2.34 that is inside libc.
		s.libraries.optional("libnss_files.so.2")
		s.libraries.optional("libnss_dns.so.2")
		s.libraries.optional("libresolv.so.2")
	}
}

// scriptRunner finds the script of a runtime that is not followed further: bun and deno
// carry their modules' loading rules themselves.
func (s *search) scriptRunner(name string) {
	args := s.program.Args
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") || s.origin == "" && !hasScriptSuffix(arg) {
			continue
		}
		found, err := s.real(s.absolute(arg))
		if err != nil || !found.regular() || !s.granting(found.path) {
			continue
		}
		s.program.Entry = found.path
		s.program.Args = args[i+1:]
		s.note("%s is run as a native program; its caches and modules outside of the script's package are not readable", name)
		s.nodePackage(found.path)
		return
	}
}

func hasScriptSuffix(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return false
	}
	switch name[dot:] {
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx":
		return true
	}
	return false
}

// absolute places a relative path in the working folder.
func (s *search) absolute(path string) string {
	if path == "" || path[0] == '/' {
		return path
	}
	return join(s.facts.Dir, path)
}
