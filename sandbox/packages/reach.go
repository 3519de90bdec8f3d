package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// certificateVariables name bundles or folders of certificates, for node, git, OpenSSL and
// Python's requests.
var certificateVariables = []string{
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// proxyVariables are read in lower and upper case.
var proxyVariables = []string{"https_proxy", "http_proxy", "all_proxy", "proxy", "no_proxy"}

// addShared adds a variable that several programs read: certificates and proxies.
func (g *Registries) addShared(name, value string) {
	switch {
	case value == "":
	case slices.Contains(certificateVariables, name):
		g.Variables = append(g.Variables, name)
		g.OpenVariables = append(g.OpenVariables, name)
		for path := range strings.SplitSeq(value, ":") {
			g.open(path)
		}
	case slices.Contains(proxyVariables, strings.ToLower(name)):
		g.Variables = append(g.Variables, name)
		if !strings.Contains(value, "@") { // a password stands before an "@"
			g.OpenVariables = append(g.OpenVariables, name)
		}
	}
}

// open adds a file or folder that holds no secret.
func (g *Registries) open(path string) {
	if !filepath.IsAbs(path) {
		return
	}
	if _, err := os.Stat(path); err != nil {
		return // the program that asks for it will say so
	}
	g.Files = append(g.Files, path)
	g.OpenFiles = append(g.OpenFiles, path)
}

// tidy sorts the lists.
func (g *Registries) tidy() {
	for _, list := range []*[]string{&g.Rules, &g.Files, &g.Variables, &g.OpenFiles, &g.OpenVariables} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// isAbsent tells whether a file is not there, or lies where no folder is.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// defaultPorts are the ports of URLs that name none.
var defaultPorts = map[string]string{
	"http": "80", "https": "443", "socks": "1080", "socks4": "1080", "socks4a": "1080", "socks5": "1080", "socks5h": "1080",
}

// hostRule returns the egress rule for the host of a URL. No error holds the URL: it may
// hold a password.
func hostRule(address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" {
		return "", errors.New("the URL has no host that can be read")
	}
	port := cmp.Or(u.Port(), defaultPorts[strings.TrimPrefix(strings.ToLower(u.Scheme), "git+")])
	if port == "" {
		return "", fmt.Errorf("URLs with the scheme %q are not reached", u.Scheme)
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port), nil
}

// furtherHosts are hosts to which a well-known one sends its clients on for the content.
func furtherHosts(rule string) []string {
	if rule == "github.com:443" {
		return []string{"codeload.github.com:443", "objects.githubusercontent.com:443", "release-assets.githubusercontent.com:443"}
	}
	return nil
}

// specRules returns rules for the hosts that a request itself names: those of repositories,
// and those of archives unless a proxy fetches them.
func specRules(r Request) (rules []string, err error) {
	for _, s := range r.Specs {
		if s.Source != Git && s.Source != Archive || strings.HasPrefix(s.Place, "/") {
			continue
		}
		rule, err := hostRule(s.Place)
		if err != nil {
			return nil, fmt.Errorf("reading the address of a package: %w", err)
		}
		rules = append(append(rules, rule), furtherHosts(rule)...)
	}
	return rules, nil
}

// LocalPlaces returns the absolute paths of local folders and archives that a request
// installs from; the install reads them.
func (r Request) LocalPlaces() []string {
	var all []string
	for _, s := range r.Specs {
		if s.Source != Registry && filepath.IsAbs(s.Place) {
			all = append(all, s.Place)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// proxies are the proxies of the environment, as URLs. They may hold passwords, and leave
// this package only as rules.
type proxies struct {
	https, http, all, plain string
	none                    []string
}

// proxiesOf reads HTTPS_PROXY and kin, in either case.
func proxiesOf(p Person) proxies {
	var found proxies
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		switch strings.ToLower(name) {
		case "https_proxy":
			found.https = value
		case "http_proxy":
			found.http = value
		case "all_proxy":
			found.all = value
		case "proxy":
			found.plain = value
		case "no_proxy":
			found.none = splitNames(value)
		}
	}
	return found
}

func splitNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// direct tells whether a list of names that need no proxy holds a host: the name itself, or
// one of its parent domains.
func direct(host string, none []string) bool {
	for _, name := range none {
		name = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(name), "*"), ".")
		if name != "" && (host == name || strings.HasSuffix(host, "."+name)) {
			return true
		}
	}
	return false
}
