package packages

import (
	"slices"
	"strings"
)

// maxVariable bounds a variable's name, in bytes.
const maxVariable = 100

// variableName tells whether a word is spelled as variables are that people set: letters
// are large, or there is an underscore. It leaves out methods of the object that holds the
// environment.
func variableName(s string) bool {
	if len(s) < 2 || len(s) > maxVariable || !isLetter(s[0]) {
		return false
	}
	large, underscore := true, false
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && !isDigit(c) && c != '_' {
			return false
		}
		large = large && (c < 'a' || c > 'z')
		underscore = underscore || c == '_'
	}
	return large || underscore
}

// largeWords tells whether a name has several words, all in large letters. Where nothing else
// says that a word is a variable, this does.
func largeWords(s string) bool { return strings.Contains(s, "_") && s == strings.ToUpper(s) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isWord tells whether a byte can be part of a name in JavaScript or Python.
func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '$' }

// ordinaryNames are variables of runtimes, shells, terminals, operating systems and build
// services. A package that asks for them needs nothing of its own.
var ordinaryNames = [...]string{
	"APPDATA", "BASH_VERSION", "CI", "CIRCLECI", "CIRRUS_CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "COMSPEC", "CONTINUOUS_INTEGRATION",
	"DEBUG", "DISPLAY", "DRONE", "EDITOR", "FORCE_COLOR", "GITEA_ACTIONS", "GITHUB_ACTIONS", "GITHUB_ENV", "GITHUB_OUTPUT", "GITLAB_CI", "HOME", "HOMEDRIVE",
	"HOMEPATH", "HOSTNAME", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "INIT_CWD", "JENKINS_URL", "K_SERVICE", "LAMBDA_TASK_ROOT", "LANG",
	"LANGUAGE", "LINES", "LOCALAPPDATA", "LOGNAME", "LOG_LEVEL", "MANPAGER", "MSYSTEM", "NETLIFY", "NO_COLOR", "NO_UPDATE_NOTIFIER", "OLDPWD", "OS", "OSTYPE",
	"PAGER", "PATH", "PATHEXT", "PKG_EXECPATH", "PROGRAMDATA", "PROGRAMFILES", "PS1", "PWD", "READABLE_STREAM", "SHELL", "SHLVL", "SYSTEMDRIVE", "SYSTEMROOT",
	"SYSTEM_ROOT", "SUDO_USER", "SUDO_UID", "TEAMCITY_VERSION", "TEMP", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TF_BUILD", "TMP", "TMPDIR", "TRAVIS",
	"TZ", "USER", "USERNAME", "USERPROFILE", "VERCEL", "VIRTUAL_ENV", "VISUAL", "WINDIR", "WINDOWID", "WT_SESSION", "APPVEYOR", "BUILDKITE", "NOW_BUILDER",
	"ENV", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "TEST_WORKER_INDEX", "TEST_PARALLEL_INDEX", "WS_NO_BUFFER_UTIL", "WS_NO_UTF_8_VALIDATE", "UNDICI_NO_WASM_SIMD",
}

var ordinaryStems = [...]string{
	"NODE_", "NPM_", "YARN_", "PNPM_", "BUN_", "DENO_", "LC_", "XDG_", "PYTHON", "PIP_", "UV_", "JEST_", "VITEST", "MOCHA_", "PLAYWRIGHT_TEST", "ELECTRON_",
	"CODEBUILD_", "AWS_LAMBDA_", "VSCODE_", "LD_", "DYLD_", "GRACEFUL_FS_", "LIBUV_", "WEBPACK_", "BABEL_", "TS_NODE", "TSX_", "CONDA_", "ERR_",
}

func ordinaryVariable(name string) bool {
	upper := strings.ToUpper(name)
	return slices.Contains(ordinaryNames[:], upper) ||
		slices.ContainsFunc(ordinaryStems[:], func(stem string) bool { return strings.HasPrefix(upper, stem) })
}

// secretWords end, or are, a word of a variable's name whose value is a secret.
var secretWords = [...]string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "PRIVATEKEY"}

// secretAlone are too short to end a word.
var secretAlone = [...]string{"PASS", "PWD", "PAT", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "COOKIES", "DSN", "SECRETS", "KEYS", "TOKENS"}

// services are what an address usually has a password in it for.
var services = [...]string{"DATABASE", "DB", "PG", "POSTGRES", "POSTGRESQL", "MYSQL", "MARIADB", "MONGO", "MONGODB", "REDIS", "MSSQL", "AMQP", "RABBITMQ", "CONNECTION", "WEBHOOK"}

// secretVariable tells whether a variable's name says that its value is a secret. A limit
// of tokens, and the path of a file that holds a secret, are none.
func secretVariable(name string) bool {
	words := strings.Split(strings.ToUpper(name), "_")
	switch words[len(words)-1] {
	case "FILE", "PATH", "DIR", "LIMIT", "COUNT", "TTL", "LENGTH", "SIZE", "NAME", "TIMEOUT", "ENABLED", "DISABLED":
		return false
	}
	if slices.Contains(words, "MAX") || slices.Contains(words, "MIN") {
		return false
	}
	address := slices.ContainsFunc(words, func(w string) bool { return w == "URL" || w == "URI" || w == "STRING" })
	for _, w := range words {
		switch {
		case slices.Contains(secretAlone[:], w):
			return !address || w == "DSN"
		case slices.ContainsFunc(secretWords[:], func(end string) bool { return strings.HasSuffix(w, end) }):
			return !address // AUTH_TOKEN_URL is where tokens are fetched
		case address && slices.Contains(services[:], w):
			return true
		}
	}
	return false
}

// namedElsewhere are hosts that code names and does not connect to: of schemas, of
// documentation, and names that RFC 2606 reserves.
var namedElsewhere = [...]string{
	"json-schema.org", "www.w3.org", "schema.org", "spec.openapis.org", "schemas.openxmlformats.org", "tools.ietf.org", "datatracker.ietf.org", "www.rfc-editor.org",
	"nodejs.org", "developer.mozilla.org", "tc39.es", "stackoverflow.com", "reactjs.org", "react.dev", "fb.me", "git.io",
	"en.wikipedia.org", "modelcontextprotocol.io", "opensource.org",
}

// hostName tells whether a name, in lower case, can be a host of the Internet that a
// program connects to. Addresses and names of one word are not.
func hostName(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	if dot < 1 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	top := s[dot+1:]
	for i := range len(top) {
		if !isLetter(top[i]) {
			return false
		}
	}
	switch top {
	case "example", "test", "invalid", "localhost", "local", "internal", "js", "ts", "md", "json":
		return false
	}
	if owner := s[strings.LastIndexByte(s[:dot], '.')+1 : dot]; owner == "example" {
		return false
	}
	return len(top) > 1 && !strings.HasPrefix(s, "docs.") && !slices.Contains(namedElsewhere[:], s)
}
