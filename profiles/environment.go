package profiles

import (
	"slices"
	"strings"
)

// danger is a family of variables that decide what code a program loads or starts, or
// whom it trusts. Who controls one controls the server, so the host's values never pass;
// a profile may set one of its own.
type danger struct {
	why    string
	exact  []string
	prefix []string
}

var dangers = []danger{
	{
		why:    "the loader runs code from it",
		prefix: []string{"LD_", "DYLD_"},
	},
	{
		why:   "the C library loads code or tables from it, or sends names elsewhere",
		exact: []string{"GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_TRACE", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS"},
	},
	{
		why:    "node loads code by it, or stops checking certificates",
		exact:  []string{"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NODE_TLS_REJECT_UNAUTHORIZED", "ELECTRON_RUN_AS_NODE", "BUN_OPTIONS"},
		prefix: []string{"npm_config_"},
	},
	{
		why:   "Python loads code by it",
		exact: []string{"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONPLATLIBDIR", "PYTHONEXECUTABLE", "PYTHONWARNINGS", "PYTHONPYCACHEPREFIX"},
	},
	{
		why:    "a shell runs commands from it",
		exact:  []string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "ZDOTDIR", "FPATH"},
		prefix: []string{"BASH_FUNC_"},
	},
	{
		why: "Perl, Ruby, Lua, PHP, Java or .NET load code by it",
		exact: []string{
			"PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB", "RUBYLIB", "RUBYOPT", "GEM_PATH", "GEM_HOME", "BUNDLE_GEMFILE", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
			"PHPRC", "PHP_INI_SCAN_DIR", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "DOTNET_STARTUP_HOOKS",
		},
		prefix: []string{"CORECLR_", "COR_PROFILER"},
	},
	{
		why:   "a compiler or build tool starts a program by it",
		exact: []string{"GOFLAGS", "GOENV", "CC", "CXX", "MAKEFLAGS", "RUSTC_WRAPPER", "RUSTFLAGS"},
	},
	{
		why:    "git or ssh start a program or read configuration by it",
		exact:  []string{"GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "SSH_ASKPASS", "SUDO_ASKPASS"},
		prefix: []string{"GIT_SSH", "GIT_CONFIG"},
	},
	{
		why:   "programs start it",
		exact: []string{"BROWSER", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "TERMINAL"},
	},
	{
		why:   "libraries load modules by it, or write session keys to it",
		exact: []string{"OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "SSLKEYLOGFILE", "GTK_MODULES", "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "QT_PLUGIN_PATH", "TERMINFO", "TERMINFO_DIRS"},
	},
}

// decides returns why a variable decides about code or trust, or "".
func decides(name string) string {
	for i := range dangers {
		if slices.Contains(dangers[i].exact, name) {
			return dangers[i].why
		}
	}
	return decidesAll(name)
}

// decidesAll returns why every variable that begins like this decides, or "".
func decidesAll(stem string) string {
	for i := range dangers {
		for _, p := range dangers[i].prefix {
			// npm reads its variables without regard to case.
			if len(stem) >= len(p) && (stem[:len(p)] == p || p == "npm_config_" && strings.EqualFold(stem[:len(p)], p)) {
				return dangers[i].why
			}
		}
	}
	return ""
}

// made returns which key makes a variable that stockade itself makes, or "".
func made(name string) string {
	switch name {
	case "PATH":
		return "filesystem.execute"
	case "HOME":
		return "filesystem.home"
	case "TMPDIR":
		return "the private temporary folder"
	}
	return ""
}

func checkVariable(s string) *problem {
	const hint = "letters, digits and underscore, beginning with a letter"
	if s == "" || !letter(s[0]) && s[0] != '_' {
		return wrong(hint, "%q is not a variable's name", showName(s))
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && c != '_' {
			return wrong(hint, "%q is not a variable's name", showName(s))
		}
	}
	return nil
}

// showName leaves out what comes after an equals sign: it is a value.
func showName(s string) string {
	name, _, found := strings.Cut(s, "=")
	if found {
		return name + "=..."
	}
	return s
}

// checkPass judges a name or pattern of environment.pass.
func checkPass(s string) (string, *problem) {
	stem, pattern := strings.CutSuffix(s, "*")
	if strings.ContainsAny(stem, "*?[") {
		return "", wrong("write the beginning of the names and one * at the end", "%q: a pattern has one *, at its end", s)
	}
	if pattern {
		letters := 0
		for i := range len(stem) {
			if letter(stem[i]) {
				letters++
			}
		}
		if letters < 2 {
			return "", wrong(`write at least two letters before the *, such as "LC_*"`, "%q would pass too much", s)
		}
	}
	if bad := checkVariable(stem); bad != nil {
		return "", bad
	}
	if pattern {
		if why := decidesAll(stem); why != "" {
			return "", wrong("remove it", "%q passes nothing: %s", s, why)
		}
		return s, nil
	}
	return s, checkHostVariable(s)
}

// checkSecret judges a name of environment.secrets.
func checkSecret(s string) (string, *problem) {
	if strings.ContainsAny(s, "*?[") {
		return "", wrong("name each secret", "%q: secrets have no patterns", s)
	}
	if bad := checkVariable(s); bad != nil {
		return "", bad
	}
	return s, checkHostVariable(s)
}

// checkHostVariable refuses names whose value cannot come from the host.
func checkHostVariable(s string) *problem {
	if by := made(s); by != "" {
		return wrong("remove it", "%s is made by stockade (%s)", s, by)
	}
	if why := decides(s); why != "" {
		return wrong("set it to a fixed value under environment.set if the server needs it", "%s cannot come from the host: %s", s, why)
	}
	return nil
}

// checkSet judges a name of environment.set.
func checkSet(s string) (string, *problem) {
	if bad := checkVariable(s); bad != nil {
		return "", bad
	}
	if by := made(s); by != "" {
		hint := "remove it"
		switch s {
		case "PATH":
			hint = "list the programs under filesystem.execute: their folders become PATH"
		case "HOME":
			hint = "write filesystem.home: real, or private"
		}
		return "", wrong(hint, "%s is made by stockade (%s)", s, by)
	}
	return s, nil
}

// passes tells whether a name or pattern of environment.pass lets a variable through.
func passes(pattern, name string) bool {
	stem, isPattern := strings.CutSuffix(pattern, "*")
	if !isPattern {
		return pattern == name
	}
	return strings.HasPrefix(name, stem) && decides(name) == "" && made(name) == ""
}

// secretLike tells whether a name says that its value is a secret.
func secretLike(name string) bool {
	upper := strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIAL"} {
		if strings.Contains(upper, part) {
			return true
		}
	}
	return false
}

// Passes tells whether an entry of environment.pass lets a variable through.
func Passes(entry, name string) bool { return passes(entry, name) }

// NeverPassed says why no profile lets a variable of the host through to a server; "" when one
// may.
func NeverPassed(name string) string {
	if key := made(name); key != "" {
		return "stockade makes it (" + key + ")"
	}
	if bad := checkVariable(name); bad != nil {
		return "it is no variable's name"
	}
	if why := decides(name); why != "" {
		return why
	}
	return ""
}
