package packages

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// npmReport is what npm said about its failure.
type npmReport struct {
	code  string   // "E404"; "" when npm gave none
	lines []string // of the error, without npm's own marks, with no credential
	all   []string // every line of the output, as clean
}

// readNPMReport takes npm's words out of its output: "npm error …" since npm 10.8, "npm
// ERR! …" before.
func readNPMReport(output []byte) npmReport {
	var r npmReport
	for line := range strings.Lines(string(output)) {
		line = clean(line)
		r.all = append(r.all, line)
		rest, found := strings.CutPrefix(line, "npm error ")
		if !found {
			rest, found = strings.CutPrefix(line, "npm ERR! ")
		}
		if !found || strings.HasPrefix(rest, "Log files were not written") || strings.HasPrefix(rest, "A complete log") {
			continue
		}
		if code, ok := strings.CutPrefix(rest, "code "); ok && r.code == "" {
			r.code = code
			continue
		}
		if rest != "" {
			r.lines = append(r.lines, rest)
		}
	}
	return r
}

// after returns the text behind a mark in the first error line that has it, up to the first
// of the ends, or all of it.
func after(lines []string, mark, ends string) string {
	for _, line := range lines {
		if _, rest, found := strings.Cut(line, mark); found {
			if i := strings.IndexAny(rest, ends); i >= 0 {
				rest = rest[:i]
			}
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// NPMFailure tells in one line why a step of npm failed, and what to do. output is what the
// step wrote to both streams, status its exit status.
func NPMFailure(output []byte, status int) error {
	r := readNPMReport(output)
	for _, explain := range []func(npmReport) *InstallError{npmScript, npmRequest, npmTrust, npmHost, npmMachine} {
		if err := explain(r); err != nil {
			return err
		}
	}
	said := "it said nothing"
	plain := slices.DeleteFunc(slices.Clone(r.lines), func(line string) bool {
		word, _, _ := strings.Cut(line, " ")
		return word == "syscall" || word == "errno" || word == "path" || word == "dest" // parts of what another line says whole
	})
	if len(plain) > 0 {
		said = plain[0]
	} else if len(r.all) > 0 {
		said = r.all[len(r.all)-1]
	}
	return &InstallError{
		Problem: fmt.Sprintf("npm failed (%s): %s", cmp.Or(r.code, fmt.Sprintf("exit status %d", status)), said),
		Cure:    "the lines above are npm's own words",
	}
}

// npmRequest explains a package or version that cannot be had.
func npmRequest(r npmReport) *InstallError {
	switch r.code {
	case "E404":
		name := after(r.lines, "The requested resource '", "'")
		if name == "" {
			name = after(r.lines, "404  '", "'") // npm 9
		}
		name, _, archive := strings.Cut(name, "@http")
		if archive {
			return &InstallError{
				Problem: fmt.Sprintf("the registry lists %q and does not have its archive", name),
				Cure:    "try another version, or ask who keeps the registry",
			}
		}
		name = strings.TrimSuffix(name, "@*")
		return &InstallError{
			Problem: fmt.Sprintf("the registry has no package %q", name),
			Cure:    "check the spelling; a private package needs a token in your .npmrc, and a scope of its own registry a line @SCOPE:registry=URL",
		}
	case "ETARGET":
		wanted := strings.TrimSuffix(after(r.lines, "No matching version found for ", ""), ".")
		if wanted, date, dated := strings.Cut(wanted, " with a date before "); dated {
			return &InstallError{
				Problem: fmt.Sprintf("no version of %q is as old as your npm configuration wants (before %s)", wanted, date),
				Cure:    `change "before" or "min-release-age" in your .npmrc, or ask for an older version`,
			}
		}
		return &InstallError{
			Problem: fmt.Sprintf("no version of the package matches %q", wanted),
			Cure:    "npm view NAME versions lists those that there are",
		}
	case "ENOVERSIONS":
		return &InstallError{
			Problem: fmt.Sprintf("the package has no version to install: %s", cmp.Or(after(r.lines, "ENOVERSIONS ", ""), strings.Join(r.lines, " "))),
			Cure:    `check the spelling, and "before" and "min-release-age" in your .npmrc, which leave out what is too new`,
		}
	case "EBADENGINE":
		return &InstallError{
			Problem: fmt.Sprintf("the package needs another version of node or npm (%s)", cmp.Or(after(r.lines, "Required: ", ""), "see above")),
			Cure:    "use the node that it asks for, or take engine-strict out of your .npmrc",
		}
	case "EBADPLATFORM":
		return &InstallError{
			Problem: fmt.Sprintf("the package is not for this machine: %s", after(r.lines, "Unsupported platform for ", "")),
			Cure:    "look for a version of it for Linux and this processor",
		}
	case "ERESOLVE":
		return &InstallError{
			Problem: "the versions that the packages ask for do not go together",
			Cure:    "try another version of the package, or put legacy-peer-deps=true in your .npmrc as npm install would need it",
		}
	case "EALLOWGIT", "EALLOWREMOTE", "EALLOWFILE", "EALLOWDIRECTORY":
		return &InstallError{
			Problem: fmt.Sprintf("your npm configuration does not allow what the package comes from (%s)", r.code),
			Cure:    "npm config get allow-git, allow-remote, allow-file and allow-directory tell what it allows",
		}
	}
	return nil
}

// npmTrust explains content or a host that cannot be trusted, and missing credentials.
func npmTrust(r npmReport) *InstallError {
	switch r.code {
	case "EINTEGRITY", "EBADSIZE":
		name := after(r.all, "tarball data for ", " ")
		if at := strings.LastIndex(name, "@http"); at > 0 {
			name = name[:at]
		}
		return &InstallError{
			Problem: fmt.Sprintf("the archive of %q is not what the registry's hash says: integrity mismatch, nothing was installed", cmp.Or(name, "a package")),
			Cure:    "try again later; if it stays so, tell who keeps the registry, and install nothing from it",
		}
	case "E401", "ENEEDAUTH", "EOTP":
		return &InstallError{
			Problem: fmt.Sprintf("the registry %swants credentials, or does not take those that it got", space(hostIn(r.lines))),
			Cure:    "npm login, or a line //HOST/:_authToken=${VARIABLE} in your .npmrc; a token may have expired",
		}
	case "E403":
		return &InstallError{
			Problem: fmt.Sprintf("the registry %sdoes not let you have the package (403)", space(hostIn(r.lines))),
			Cure:    "a token with the right to read it is missing, or the registry's policy forbids it",
		}
	}
	if isCertificateCode(r.code) {
		return &InstallError{
			Problem: fmt.Sprintf("the certificate of the registry %sis not trusted (%s)", space(hostIn(r.lines)), r.code),
			Cure:    `name your company's certificate authority: "cafile" in your .npmrc, or NODE_EXTRA_CA_CERTS`,
		}
	}
	return nil
}

func isCertificateCode(code string) bool {
	return strings.Contains(code, "CERT") || strings.HasPrefix(code, "UNABLE_TO_VERIFY") || strings.HasPrefix(code, "ERR_TLS") || strings.HasPrefix(code, "ERR_SSL")
}

// unreachable are node's words for a host that cannot be reached.
var unreachable = []string{
	"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EHOSTUNREACH", "ENETUNREACH",
	"FETCH_ERROR", "ERR_SOCKET_TIMEOUT", "ECONNECTIONTIMEOUT", "EIDLETIMEOUT", "ERESPONSETIMEOUT", "ETRANSFERTIMEOUT", "ERR_INVALID_URL", "EPIPE",
}

// npmHost explains a registry or repository that does not answer.
func npmHost(r npmReport) *InstallError {
	host := hostIn(r.lines)
	switch {
	case slices.Contains(unreachable, r.code):
		return unreachableError(host, r.code)
	case len(r.code) == 4 && strings.HasPrefix(r.code, "E5"):
		return &InstallError{
			Problem: fmt.Sprintf("the registry %sis broken: it answered %s", space(host), r.code[1:]),
			Cure:    "try again later",
		}
	case r.code == "ENOGIT":
		return &InstallError{Problem: "the package comes from a repository, and git is not installed", Cure: "install git"}
	case r.code == "128" || strings.Contains(strings.Join(r.lines, "\n"), "An unknown git error occurred"):
		return &InstallError{
			Problem: fmt.Sprintf("git could not fetch the repository: %s", cmp.Or(after(r.lines, "fatal: ", ""), after(r.lines, "remote: ", ""), "see above")),
			Cure:    "check the address and the branch; private repositories and ssh are not reached during an install",
		}
	}
	return nil
}

// unreachableError is for hosts that do not answer.
func unreachableError(host, code string) *InstallError {
	return &InstallError{
		Problem: fmt.Sprintf("the registry %sdoes not answer (%s)", space(host), code),
		Cure:    "check the network and proxy; packages that are installed already start without it. An install reaches only the hosts of your configuration: a registry that keeps its archives elsewhere needs that host named",
	}
}

// npmMachine explains what this machine does not let npm do.
func npmMachine(r npmReport) *InstallError {
	return machineError(r.code)
}

// machineError explains an error of the file system.
func machineError(code string) *InstallError {
	switch code {
	case "ENOSPC", "EDQUOT":
		return &InstallError{Problem: fmt.Sprintf("the disk is full (%s)", code), Cure: "free some space; nothing half-installed is left"}
	case "EROFS":
		return &InstallError{Problem: "the store is on a file system that cannot be written (EROFS)", Cure: "set XDG_DATA_HOME to a folder on another one"}
	case "EACCES", "EPERM":
		return &InstallError{
			Problem: fmt.Sprintf("the install jail refused a file that the package manager asked for (%s)", code),
			Cure:    "the lines above name it; files outside the store are not written, and of your configuration only what names the registry is read",
		}
	}
	return nil
}

// npmScript explains an install script that failed.
func npmScript(r npmReport) *InstallError {
	if !slices.Contains(r.lines, "command failed") {
		return nil
	}
	path := filepath.ToSlash(after(r.lines, "path ", ""))
	name := path
	if i := strings.LastIndex(path, "node_modules/"); i >= 0 {
		name = path[i+len("node_modules/"):]
	}
	if strings.Contains(strings.Join(r.all, "\n"), "gyp ERR!") {
		return &InstallError{
			Problem: fmt.Sprintf("compiling %q failed (node-gyp)", name),
			Cure:    "it needs python3, make and a compiler among the profile's install.execute, and node's headers (nodedir in your .npmrc) among install.read",
		}
	}
	return &InstallError{
		Problem: fmt.Sprintf("the install script of %q failed", name),
		Cure:    "its words are above; what it may execute and read is the profile's install.execute and install.read",
	}
}

// NPMNotes returns what npm warned of when it installed: packages that ask for another node
// or npm, and may not work.
func NPMNotes(output []byte) []string {
	var notes []string
	name := ""
	for line := range strings.Lines(string(output)) {
		line = clean(line)
		if !strings.Contains(line, "EBADENGINE") {
			continue
		}
		if word := after([]string{line}, "package: '", "'"); word != "" {
			name = word
		}
		if wanted := after([]string{line}, "required: ", ""); wanted != "" && name != "" {
			notes = append(notes, fmt.Sprintf("%q asks for another node or npm: %s", name, strings.Trim(wanted, ",")))
			name = ""
		}
	}
	return notes
}
