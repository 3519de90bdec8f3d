package packages

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places of an install with uv in the stage's home.
const (
	uvCache = "uv"
	uvWants = "requirements.in"
)

// UvConfig is what a person's uv configuration says about the index.
type UvConfig struct {
	// File is the uv.toml that uv is given, "" for none: the person's, else the machine's.
	// uv itself would look for one in the folders above its working folder too.
	File string
	// Reach are the hosts, files and variables.
	Reach Registries
	// OwnIndex tells that the configuration names no index in place of uv's own. uv does not
	// say which that is, so such an install is left to pip, which does.
	OwnIndex bool

	netrc []netrcEntry
}

// uvKept are the UV_ variables that an install takes over, beside the credentials of named
// indexes.
var uvKept = []string{
	"UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_INDEX_STRATEGY",
	"UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_EXCLUDE_NEWER", "UV_PRERELEASE", "UV_RESOLUTION",
}

// FindUvConfig reads the configuration that uv would read for a person: uv.toml, UV_*
// variables, and the entries of ~/.netrc for the hosts of the index. machine is the root of
// /etc, "/" but in tests.
func FindUvConfig(p Person, r Request, machine string) (UvConfig, error) {
	c := UvConfig{}
	var addresses []string
	replaced := false // the default index
	own, _ := p.lookup("XDG_CONFIG_HOME")
	if own == "" {
		own = filepath.Join(p.Home, ".config")
	}
	files := []string{filepath.Join(own, "uv", "uv.toml"), filepath.Join(machine, "etc", "uv", "uv.toml")}
	if named, _ := p.lookup("UV_CONFIG_FILE"); named != "" {
		files = []string{named}
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return UvConfig{}, fmt.Errorf("reading uv's configuration: %w", err)
		}
		c.File = path
		c.Reach.Files = append(c.Reach.Files, path)
		addresses, replaced = uvAddresses(string(text))
		break
	}
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		c.Reach.addShared(name, value)
		if value == "" {
			continue
		}
		credential := strings.HasPrefix(name, "UV_INDEX_") && (strings.HasSuffix(name, "_USERNAME") || strings.HasSuffix(name, "_PASSWORD"))
		if !credential && !slices.Contains(uvKept, name) {
			continue
		}
		c.Reach.Variables = append(c.Reach.Variables, name)
		switch name {
		case "UV_DEFAULT_INDEX", "UV_INDEX_URL":
			replaced = true
			fallthrough
		case "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS":
			for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' && name == "UV_FIND_LINKS" }) {
				if label, address, named := strings.Cut(word, "="); named && !strings.ContainsAny(label, ":/") {
					word = address
				}
				addresses = append(addresses, word)
			}
		case "UV_NO_INDEX":
			replaced = replaced || value != "0" && value != "false"
		}
	}
	c.OwnIndex = !replaced
	return c, c.reach(p, r, addresses)
}

// uvElsewhere are keys of uv.toml whose addresses an install does not need.
var uvElsewhere = []string{"publish-url", "check-url", "python-install-mirror", "pypy-install-mirror", "python-downloads-json-url", "allow-insecure-host", "trusted-host", "http-proxy", "https-proxy"}

// uvAddresses returns the URLs and paths of indexes in a uv.toml, and whether one of them is
// in place of the default index. It takes every quoted address of a key that is not known to
// be for something else: one too many is a host that uv does not ask.
func uvAddresses(text string) (addresses []string, replaced bool) {
	key := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		if name, _, found := strings.Cut(line, "="); found && !strings.ContainsAny(name, `"'{`) {
			key = strings.TrimSpace(name)
		}
		if slices.Contains(uvElsewhere, key) {
			continue
		}
		compact := strings.Join(strings.Fields(line), "")
		if key == "index-url" || strings.Contains(compact, "default=true") || strings.HasPrefix(compact, "no-index=true") {
			replaced = true
		}
		for _, quote := range []string{`"`, "'"} {
			words := strings.Split(line, quote)
			for i := 1; i < len(words); i += 2 {
				if word := words[i]; strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "/") {
					addresses = append(addresses, word)
				}
			}
		}
	}
	return addresses, replaced
}

// reach works out rules, files and passwords.
func (c *UvConfig) reach(p Person, r Request, addresses []string) error {
	named, err := specRules(r)
	if err != nil {
		return err
	}
	c.Reach.Rules = named
	hosts := map[string]bool{}
	for _, address := range addresses {
		if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			c.Reach.open(strings.TrimPrefix(address, "file://"))
			continue
		}
		rule, err := hostRule(address)
		if err != nil {
			return fmt.Errorf("reading an index of uv's configuration: %w", err)
		}
		if u, err := url.Parse(address); err == nil {
			hosts[strings.ToLower(u.Hostname())] = true
		}
		through, err := PipConfig{}.through(p, address, rule)
		if err != nil {
			return err
		}
		c.Reach.Rules = append(append(c.Reach.Rules, through), furtherHosts(through)...)
	}
	c.Reach.tidy()
	c.netrc, err = netrcFor(p, hosts)
	return err
}

// Prepare writes what the steps of uv read into the stage's home: the requirements, and a
// .netrc as [PipConfig.Prepare] does.
func (c UvConfig) Prepare(r Request, s Stage) error {
	words, err := pipWords(r)
	if err != nil {
		return err
	}
	if err := writeNew(filepath.Join(s.Home, uvWants), strings.Join(words, "\n")+"\n"); err != nil {
		return fmt.Errorf("writing the requirements: %w", err)
	}
	return writeNetrc(c.netrc, r, s)
}

// UvTakes tells whether a request can be installed with uv: wheels only. What has to be
// built, and what has no hash, is left to pip.
func UvTakes(r Request) bool {
	for _, spec := range r.Specs {
		if spec.Source != Registry && (spec.Source != Archive || !strings.HasSuffix(strings.ToLower(spec.Place), ".whl")) {
			return false
		}
	}
	return len(r.Scripts) == 0
}

// UvSteps are the commands of uv that install a request into the stage's tree, as
// [PipSteps] does: venv and requirements.txt. uv is the program and python the interpreter,
// absolute; uv fetches no interpreter.
func UvSteps(r Request, s Stage, uv, python string, c UvConfig) ([]Step, error) {
	if !filepath.IsAbs(uv) || !filepath.IsAbs(python) {
		return nil, errors.New("installing with uv: uv and the interpreter are no absolute paths")
	}
	if !UvTakes(r) {
		return nil, errors.New("installing with uv: what is built is installed with pip")
	}
	if _, err := pipWords(r); err != nil {
		return nil, err
	}
	tree := filepath.Join(s.Tree, "venv")
	lock := filepath.Join(s.Tree, "requirements.txt")
	common := []string{"--cache-dir=" + filepath.Join(s.Home, uvCache), "--no-progress", "--color=never", "--no-python-downloads"}
	if c.File != "" {
		common = append(common, "--config-file="+c.File)
	} else {
		common = append(common, "--no-config")
	}
	kinds := []string{"--only-binary=:all:"}
	target := "--python=" + filepath.Join(tree, "bin", "python")
	env := []string{"NETRC=" + filepath.Join(s.Home, ".netrc"), "UV_HTTP_TIMEOUT=10", "UV_HTTP_RETRIES=1", "GIT_TERMINAL_PROMPT=0"}
	return []Step{
		{Title: "making the environment", Argv: slices.Concat([]string{uv, "venv"}, common, []string{"--offline", "--relocatable", "--python=" + python, tree}), Access: Offline},
		{Title: "resolving", Argv: slices.Concat([]string{uv, "pip", "compile"}, common, kinds, []string{
			"--generate-hashes", "--no-header", "--no-annotate", target, "--output-file=" + lock, filepath.Join(s.Home, uvWants),
		}), Env: env, Access: Online},
		{Title: "installing", Argv: slices.Concat([]string{uv, "pip", "sync"}, common, kinds, []string{"--require-hashes", "--link-mode=copy", target, lock}), Env: env, Access: Online},
		compileStep(s, python),
	}, nil
}

// UvInstalled reads what [UvSteps] made and checks it against the lock that uv wrote.
func UvInstalled(r Request, s Stage) (Installed, error) {
	text, err := readInside(s.Tree, "requirements.txt")
	if err != nil {
		return Installed{}, fmt.Errorf("reading uv's lock: %w", err)
	}
	locked, err := parseHashed(string(text))
	if err != nil {
		return Installed{}, err
	}
	return pythonInstalled(r, s, locked)
}

// parseHashed reads a requirements file with hashes. A package with several archives has the
// hash of each, in order; uv takes one of them.
func parseHashed(text string) ([]fetchedWheel, error) {
	var all []fetchedWheel
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name, version, _ := strings.Cut(words[0], "==")
		var sums []string
		for _, word := range words {
			if sum, found := strings.CutPrefix(word, "--hash="); found {
				sums = append(sums, strings.Replace(sum, ":", "=", 1))
			}
		}
		if len(sums) == 0 {
			return nil, fmt.Errorf("reading uv's lock: the index gives no hash for %q, so its content was not checked", name)
		}
		all = append(all, fetchedWheel{name: normalName(name), version: version, integrity: strings.Join(sums, " ")})
	}
	slices.SortFunc(all, func(a, b fetchedWheel) int { return strings.Compare(a.name, b.name) })
	return all, nil
}
