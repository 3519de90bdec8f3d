package packages

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PipConfig is what a person's pip configuration says about the index, with its credentials.
// It is printed nowhere: see [PipConfig.Reach] for the rules.
type PipConfig struct {
	// Reach are the hosts, files and variables. The person's own configuration files are not
	// among the files: the install gets a copy of what is about the index.
	Reach Registries

	// OwnIndex tells that the configuration names no index, so that pip takes its own. Which
	// that is, [PipIndex] asks and [PipConfig.WithIndex] takes over.
	OwnIndex bool

	values map[string][]string // by key, of pipKept
	netrc  []netrcEntry
}

// pipKept are the settings that an install takes over; pip splits those of pipLists at
// white space. Others could put the tree elsewhere or leave half of it out.
var (
	pipKept = []string{
		"index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "client-cert", "proxy",
		"pre", "prefer-binary", "constraint", "uploaded-prior-to", "use-feature", "use-deprecated",
	}
	pipLists = []string{"extra-index-url", "find-links", "trusted-host", "constraint", "use-feature", "use-deprecated"}
	pipPaths = []string{"cert", "client-cert", "constraint", "find-links"}
)

// FindPipConfig reads the configuration that pip would read for a person: the files of the
// machine, the person's own or the one that PIP_CONFIG_FILE names, PIP_* variables, and the
// entries of ~/.netrc for the hosts of the index. machine is the root of /etc, "/" but in
// tests.
func FindPipConfig(p Person, r Request, machine string) (PipConfig, error) {
	c := PipConfig{values: map[string][]string{}}
	general, command := map[string]string{}, map[string]string{}
	for _, path := range pipFiles(p, machine) {
		text, err := os.ReadFile(path)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return PipConfig{}, fmt.Errorf("reading pip's configuration: %w", err)
		}
		for _, s := range parsePipFile(string(text)) {
			switch s.section {
			case "global":
				general[s.key] = s.value
			case "install":
				command[s.key] = s.value
			}
		}
	}
	variables := pipVariables(p.Environ)
	for _, key := range pipKept {
		for _, layer := range []map[string]string{general, command, variables} {
			if value, set := layer[key]; set && strings.TrimSpace(value) != "" {
				c.values[key] = pipValues(key, value, p.Home)
			}
		}
	}
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		c.Reach.addShared(name, value)
	}
	if err := c.reach(p, r); err != nil {
		return PipConfig{}, err
	}
	c.Reach.tidy()
	return c, nil
}

// pipFiles are the files that pip reads, in its order: a later one wins.
func pipFiles(p Person, machine string) []string {
	named, _ := p.lookup("PIP_CONFIG_FILE")
	if named == "/dev/null" {
		return nil
	}
	var files []string
	folders, _ := p.lookup("XDG_CONFIG_DIRS")
	if folders == "" {
		folders = filepath.Join(machine, "etc", "xdg")
	}
	for folder := range strings.SplitSeq(folders, ":") {
		if folder != "" {
			files = append(files, filepath.Join(folder, "pip", "pip.conf"))
		}
	}
	files = append(files, filepath.Join(machine, "etc", "pip.conf"))
	if named != "" {
		if _, err := os.Stat(named); err == nil {
			return append(files, named)
		}
	}
	own, _ := p.lookup("XDG_CONFIG_HOME")
	if own == "" {
		own = filepath.Join(p.Home, ".config")
	}
	return append(files, filepath.Join(p.Home, ".pip", "pip.conf"), filepath.Join(own, "pip", "pip.conf"))
}

// pipVariables returns the settings of PIP_* variables by key.
func pipVariables(environ []string) map[string]string {
	found := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if key, ok := strings.CutPrefix(name, "PIP_"); ok {
			found[pipKey(key)] = value
		}
	}
	return found
}

func pipKey(text string) string {
	return strings.TrimLeft(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "-"), "-")
}

// pipValues splits a list and makes paths absolute that begin in the person's home.
func pipValues(key, value, home string) []string {
	values := []string{strings.TrimSpace(value)}
	if slices.Contains(pipLists, key) {
		values = strings.Fields(value)
	}
	if slices.Contains(pipPaths, key) {
		for i, v := range values {
			values[i] = expandHome(v, home)
		}
	}
	return values
}

// pipSetting is one line of a configuration file. The value may hold a credential.
type pipSetting struct{ section, key, value string }

// parsePipFile reads the format of Python's configparser as pip uses it: sections, "key =
// value" or "key: value", lines that go on further in, comments only as whole lines.
func parsePipFile(text string) []pipSetting {
	var all []pipSetting
	section, open := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";"):
		case trimmed == "":
		case open && (line[0] == ' ' || line[0] == '\t'):
			all[len(all)-1].value += "\n" + trimmed
		case trimmed[0] == '[' && strings.Contains(trimmed, "]"):
			section, open = trimmed[1:strings.Index(trimmed, "]")], false
		default:
			i := strings.IndexAny(trimmed, "=:")
			if i < 0 {
				open = false
				continue
			}
			all = append(all, pipSetting{section: section, key: pipKey(trimmed[:i]), value: strings.TrimSpace(trimmed[i+1:])})
			open = true
		}
	}
	return all
}

// indexes are the addresses that pip asks for packages.
func (c PipConfig) indexes() []string {
	var all []string
	if !c.truth("no-index") {
		all = append(slices.Clone(c.values["index-url"]), c.values["extra-index-url"]...)
	}
	for _, place := range c.values["find-links"] {
		if strings.Contains(place, "://") && !strings.HasPrefix(place, "file:") {
			all = append(all, place)
		}
	}
	return all
}

func (c PipConfig) truth(key string) bool {
	if len(c.values[key]) == 0 {
		return false
	}
	switch strings.ToLower(c.values[key][0]) {
	case "1", "true", "yes", "on", "t", "y":
		return true
	}
	return false
}

// reach works out rules, files and passwords.
func (c *PipConfig) reach(p Person, r Request) error {
	named, err := specRules(r)
	if err != nil {
		return err
	}
	c.Reach.Rules = append(c.Reach.Rules, named...)
	c.OwnIndex = !c.truth("no-index") && len(c.values["index-url"]) == 0
	hosts := map[string]bool{}
	for _, address := range c.indexes() {
		rule, err := hostRule(address)
		if err != nil {
			return fmt.Errorf("reading an index of pip's configuration: %w", err)
		}
		if u, err := url.Parse(address); err == nil {
			hosts[strings.ToLower(u.Hostname())] = true
		}
		through, err := c.through(p, address, rule)
		if err != nil {
			return err
		}
		c.Reach.Rules = append(append(c.Reach.Rules, through), furtherHosts(through)...)
	}
	for _, place := range c.values["find-links"] {
		if local, err := url.Parse(place); err == nil && local.Scheme == "file" {
			place = local.Path
		}
		if filepath.IsAbs(place) {
			c.Reach.open(place)
		}
	}
	for _, path := range slices.Concat(c.values["cert"], c.values["constraint"]) {
		c.Reach.open(path)
	}
	for _, path := range c.values["client-cert"] { // with its private key
		if filepath.IsAbs(path) {
			c.Reach.Files = append(c.Reach.Files, path)
		}
	}
	c.netrc, err = netrcFor(p, hosts)
	return err
}

// through returns the rule for what pip connects to for an address: a proxy, or its host.
func (c PipConfig) through(p Person, address, rule string) (string, error) {
	env := proxiesOf(p)
	proxy := firstOf(append(slices.Clone(c.values["proxy"]), "")...)
	if proxy == "" {
		u, err := url.Parse(address)
		if err != nil || direct(strings.ToLower(u.Hostname()), env.none) {
			return rule, nil //nolint:nilerr // the rule of its host was read before
		}
		proxy = firstOf(map[bool]string{true: env.http, false: env.https}[u.Scheme == "http"], env.all)
	}
	if proxy == "" {
		return rule, nil
	}
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	through, err := hostRule(proxy)
	if err != nil {
		return "", fmt.Errorf("reading the proxy of pip's configuration: %w", err)
	}
	return through, nil
}

// askIndex prints pip's own index and the host that it keeps its files on.
const askIndex = `from pip._internal.models.index import PyPI
print(PyPI.simple_url)
print(PyPI.file_storage_domain)
`

// PipIndex is the step that prints the index that pip takes when nobody names one. The first
// of [PipSteps] has to be done: it makes the environment that has pip.
func PipIndex(s Stage) Step {
	return Step{
		Title: "asking pip for its index", Access: Offline,
		Argv: []string{filepath.Join(s.Home, pipTool, "bin", "python"), "-I", "-c", askIndex},
	}
}

// WithIndex adds pip's own index to the rules. output is what the step [PipIndex] printed.
func (c PipConfig) WithIndex(p Person, output []byte) (PipConfig, error) {
	lines := strings.Fields(string(output))
	if len(lines) != 2 {
		return PipConfig{}, &InstallError{
			Problem: "this pip does not tell which index it takes when none is configured",
			Cure:    "name one: pip config set global.index-url URL",
		}
	}
	rules := slices.Clone(c.Reach.Rules)
	for _, address := range []string{lines[0], "https://" + lines[1]} {
		rule, err := hostRule(address)
		if err != nil {
			return PipConfig{}, fmt.Errorf("reading pip's own index: %w", err)
		}
		through, err := c.through(p, address, rule)
		if err != nil {
			return PipConfig{}, err
		}
		rules = append(rules, through)
	}
	c.Reach.Rules = rules
	c.Reach.tidy()
	return c, nil
}
