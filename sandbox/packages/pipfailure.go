package packages

import (
	"fmt"
	"strings"
)

// PipFailure tells in one line why a step of pip or uv failed, and what to do. output is
// what the step wrote to both streams, status its exit status; pip's log is in the stage.
func PipFailure(s Stage, output []byte, status int) error {
	var lines []string
	for line := range strings.Lines(string(output)) {
		lines = append(lines, strings.TrimSpace(clean(line)))
	}
	said := lines
	if log, err := readInside(s.Home, pipLog); err == nil {
		for line := range strings.Lines(string(log)) {
			if _, text, found := strings.Cut(line, " "); found { // behind the time
				lines = append(lines, strings.TrimSpace(clean(text)))
			}
		}
	}
	for _, explain := range []func([]string) *InstallError{pythonBuilding, pythonMachine, pythonTrust, pythonBuild, pythonHost, pythonRequest} {
		if err := explain(lines); err != nil {
			return err
		}
	}
	last := "it said nothing"
	for _, line := range said {
		if rest, found := strings.CutPrefix(line, "ERROR: "); found {
			last = rest
			break
		}
		if line != "" {
			last = line
		}
	}
	return &InstallError{
		Problem: fmt.Sprintf("pip failed (exit status %d): %s", status, last),
		Cure:    "the lines above are its own words",
	}
}

// holds tells whether a line has a text.
func holds(lines []string, texts ...string) bool {
	for _, line := range lines {
		for _, text := range texts {
			if strings.Contains(line, text) {
				return true
			}
		}
	}
	return false
}

// pythonBuilding explains a package that a wheel requires by its address, as source.
func pythonBuilding(lines []string) *InstallError {
	if !holds(lines, mustBuild) {
		return nil
	}
	name := ""
	for _, line := range lines {
		if rest, found := strings.CutPrefix(line, "Collecting "); found {
			name, _, _ = strings.Cut(rest, " ")
			name, _, _ = strings.Cut(name, "@")
		}
	}
	return &InstallError{
		Problem: fmt.Sprintf("%q has to be built, which runs code of the package during the install", strings.TrimSpace(name)),
		Cure:    fmt.Sprintf("use a version with wheels alone, or allow it in a profile: install: {scripts: [%s]}", strings.TrimSpace(name)),
	}
}

// pythonMachine explains what this machine lacks or does not let pip do.
func pythonMachine(lines []string) *InstallError {
	switch {
	case holds(lines, "ensurepip is not available", "No module named venv", "No module named ensurepip"):
		return &InstallError{
			Problem: "this Python cannot make environments: its venv or ensurepip module is missing",
			Cure:    "install it (Debian and Ubuntu: apt install python3-venv), or install uv",
		}
	case holds(lines, "[Errno 28]", "No space left on device", "[Errno 122]"):
		return machineError("ENOSPC")
	case holds(lines, "[Errno 30]", "Read-only file system"):
		return machineError("EROFS")
	case holds(lines, "[Errno 13]", "Permission denied (os error 13)"):
		return machineError("EACCES")
	case holds(lines, "No interpreter found for"):
		return &InstallError{
			Problem: fmt.Sprintf("uv finds no interpreter for %s", after(lines, "No interpreter found for ", "")),
			Cure:    "install that version, or name its path with --python; none is downloaded",
		}
	}
	return nil
}

// pythonTrust explains content or a host that cannot be trusted, and missing credentials.
func pythonTrust(lines []string) *InstallError {
	switch {
	case holds(lines, "DO NOT MATCH THE HASHES", "Hash mismatch for"):
		name := after(lines, "Hash mismatch for `", "`")
		for i, line := range lines {
			if strings.Contains(line, "DO NOT MATCH THE HASHES") && i+1 < len(lines) && name == "" {
				name, _, _ = strings.Cut(lines[i+1], " from ")
			}
		}
		return &InstallError{
			Problem: fmt.Sprintf("the archive of %q is not what the index's hash says: integrity mismatch, nothing was installed", name),
			Cure:    "try again later; if it stays so, tell who keeps the index, and install nothing from it",
		}
	case holds(lines, "401 Client Error", "HTTP error 401", "401 Unauthorized", "User for "):
		return &InstallError{
			Problem: fmt.Sprintf("the index %swants credentials, or does not take those that it got", space(hostOf(lines, "401"))),
			Cure:    "put them into ~/.netrc, or into the index-url of your pip.conf; packages whose install scripts run are fetched without any",
		}
	case holds(lines, "403 Client Error", "HTTP error 403", "403 Forbidden"):
		return &InstallError{
			Problem: fmt.Sprintf("the index %sdoes not let you have the package (403)", space(hostOf(lines, "403"))),
			Cure:    "the right to read it is missing, or the index's policy forbids it",
		}
	case holds(lines, "CERTIFICATE_VERIFY_FAILED", "invalid peer certificate", "SSLError"):
		return &InstallError{
			Problem: fmt.Sprintf("the certificate of the index %sis not trusted", space(hostIn(lines))),
			Cure:    `name your company's certificate authority: "cert" in your pip.conf, or SSL_CERT_FILE`,
		}
	}
	return nil
}

// hostOf returns the host in the lines with a text, or in any line.
func hostOf(lines []string, text string) string {
	for _, line := range lines {
		if strings.Contains(line, text) {
			if host := hostIn([]string{line}); host != "" {
				return host
			}
		}
	}
	return hostIn(lines)
}

// pythonBuild explains a build that failed.
func pythonBuild(lines []string) *InstallError {
	if !holds(lines, "subprocess-exited-with-error", "Failed building wheel", "Failed to build `", "Backend subprocess exited") {
		return nil
	}
	name := after(lines, "Failed building wheel for ", " ")
	if name == "" {
		for _, line := range lines {
			if rest, found := strings.CutPrefix(line, "Collecting "); found {
				name, _, _ = strings.Cut(rest, " ")
			}
		}
	}
	return &InstallError{
		Problem: fmt.Sprintf("building %q failed", name),
		Cure:    "its words are above; what a build may execute and read is the profile's install.execute and install.read",
	}
}

// pythonHost explains an index that does not answer.
func pythonHost(lines []string) *InstallError {
	for _, c := range []struct{ text, code string }{
		{"Connection refused", "ECONNREFUSED"},
		{"Name or service not known", "ENOTFOUND"},
		{"Temporary failure in name resolution", "EAI_AGAIN"},
		{"failed to lookup address", "ENOTFOUND"},
		{"Network is unreachable", "ENETUNREACH"},
		{"No route to host", "EHOSTUNREACH"},
		{"Read timed out", "ETIMEDOUT"},
		{"timed out", "ETIMEDOUT"},
		{"ProxyError", "proxy"},
		{"RemoteDisconnected", "ECONNRESET"},
		{"Connection reset by peer", "ECONNRESET"},
	} {
		if holds(lines, c.text) {
			return unreachableError(hostIn(lines), c.code)
		}
	}
	for _, line := range lines {
		for _, mark := range []string{" Server Error", "too many 50"} {
			if strings.Contains(line, mark) {
				return &InstallError{
					Problem: fmt.Sprintf("the index %sis broken: it answered with a server error", space(hostOf(lines, mark))),
					Cure:    "try again later",
				}
			}
		}
	}
	return nil
}

// pythonRequest explains a package, a version or a file for this machine that cannot be had.
func pythonRequest(lines []string) *InstallError {
	if holds(lines, "HTTP error 404 while getting") {
		return &InstallError{
			Problem: "the index lists a file and does not have it (404)",
			Cure:    "try another version, or ask who keeps the index",
		}
	}
	if holds(lines, "ERROR: ResolutionImpossible", "conflicting dependencies") {
		return &InstallError{
			Problem: "the versions that the packages ask for do not go together",
			Cure:    "try another version of the package",
		}
	}
	wanted := after(lines, "No matching distribution found for ", "(")
	if wanted == "" {
		return uvRequest(lines)
	}
	name := wanted[:len(wanted)-len(strings.TrimLeft(wanted, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"))]
	versions := after(lines, "satisfies the requirement "+wanted+" (from versions: ", ")")
	switch {
	case versions != "" && versions != "none":
		return &InstallError{
			Problem: fmt.Sprintf("no version matches %q; there are %s", wanted, shorten(versions)),
			Cure:    "ask for one of them",
		}
	case holds(lines, "Requires-Python"):
		return &InstallError{
			Problem: fmt.Sprintf("%q needs another Python (%s)", wanted, after(lines, "Requires-Python ", ";")),
			Cure:    "name a newer one with --python VERSION",
		}
	case holds(lines, "No sources permitted for "+name):
		return noWheel(wanted, "the index has its source only", name)
	case holds(lines, "none of the wheel's tags"):
		return noWheel(wanted, "its wheels are for other machines or Python versions", name)
	}
	return &InstallError{
		Problem: fmt.Sprintf("the index has no package %q", wanted),
		Cure:    "check the spelling; a private package needs its index in your pip.conf (index-url or extra-index-url)",
	}
}

func noWheel(wanted, why, name string) *InstallError {
	return &InstallError{
		Problem: fmt.Sprintf("there is no wheel of %q for this machine: %s", wanted, why),
		Cure:    fmt.Sprintf("try another version or --python; building it runs its code, which a profile allows with install: {scripts: [%s]}", name),
	}
}

// shorten keeps the newest of a long list of versions.
func shorten(versions string) string {
	all := strings.Split(versions, ", ")
	if len(all) <= 6 {
		return versions
	}
	return "… " + strings.Join(all[len(all)-6:], ", ")
}

// uvRequest explains uv's words about a resolution.
func uvRequest(lines []string) *InstallError {
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	switch {
	case strings.Contains(text, "was not found in the package registry") || strings.Contains(text, "not found in the provided package locations"):
		return &InstallError{Problem: "the index has no such package", Cure: "check the spelling; its index has to be in your uv.toml or UV_INDEX"}
	case strings.Contains(text, "has no usable wheels") || strings.Contains(text, "has no wheels with a matching") || strings.Contains(text, "uilding source distributions"):
		return &InstallError{
			Problem: "there is no wheel of a package for this machine",
			Cure:    "try another version or --python; building runs its code, which a profile allows with install.scripts",
		}
	case strings.Contains(text, "there is no version of") || strings.Contains(text, "are available") || strings.Contains(text, "No solution found"):
		return &InstallError{Problem: "no version of the package matches, or the versions that the packages ask for do not go together", Cure: "the lines above say which"}
	}
	return nil
}
