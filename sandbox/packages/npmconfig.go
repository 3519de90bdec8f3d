package packages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Person is whose configuration a package manager reads.
type Person struct {
	Home    string   // absolute
	Environ []string // NAME=VALUE, of the host
}

// lookup returns a variable of the person's environment.
func (p Person) lookup(name string) (string, bool) {
	for _, entry := range slices.Backward(p.Environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// NPMConfig is which configuration of a person npm uses for an install. It holds no
// credential: those stay in the files and variables that it names.
//
// npm would also read the .npmrc of the folder that it works in. It works in the stage,
// which has none, so that a project cannot send a person's token to its own registry.
type NPMConfig struct {
	// User and Global are the files that npm reads, whether they exist or not. They are
	// given to npm by name, because an install's own home and --prefix would lead it to
	// others.
	User, Global string
	// Authority is the bundle of certificates that the configuration names, "" for none.
	Authority string
	// Reach are the hosts, files and variables. Its Rules are set by [NPMConfig.Listed].
	Reach Registries

	// set are the values that name hosts, as found in files and variables. npm does not
	// print one that holds a password.
	set map[string]string
	// proxies are the hosts that HTTP_PROXY and kin name.
	proxies proxies
	// buildFlags and buildEnv are what install scripts get in place of the person's files.
	buildFlags, buildEnv []string
}

// npmWanted are the keys that lead to other files or hosts, beside "@scope:registry".
var npmWanted = []string{"prefix", "globalconfig", "cafile", "registry", "proxy", "https-proxy", "noproxy", "nodedir", "python"}

// FindNPMConfig finds the configuration that npm would read for a person. node and npm are
// the real files of the two programs, absolute: the folders around them hold the global
// configuration and the one that a distribution ships.
func FindNPMConfig(p Person, node, npm string) (NPMConfig, error) {
	c := NPMConfig{set: map[string]string{}, User: filepath.Join(p.Home, ".npmrc")}
	env := npmVariables(p.Environ)
	if named := env["userconfig"]; named != "" {
		c.User = expandHome(named, p.Home)
	}
	builtin := filepath.Join(filepath.Dir(filepath.Dir(npm)), "npmrc")

	used := map[string]bool{}
	layers := []map[string]string{env}
	read := func(path string) error {
		layer, err := c.readFile(path, p, used)
		layers = append(layers, layer)
		return err
	}
	if err := read(c.User); err != nil {
		return NPMConfig{}, err
	}
	// The prefix decides where the global file lies; npm asks the variables, the user's file
	// and the distribution's for it, and then its own place.
	shipped, err := c.readFile(builtin, p, used)
	if err != nil {
		return NPMConfig{}, err
	}
	prefix := first("prefix", append(slices.Clone(layers), shipped)...)
	if prefix == "" {
		prefix = defaultPrefix(p, node)
	}
	// This one setting is taken from the file before the environment (npm 9 to 12).
	c.Global = first("globalconfig", layers[1], env)
	if c.Global == "" {
		c.Global = filepath.Join(expandHome(prefix, p.Home), "etc", "npmrc")
	}
	c.Global = expandHome(c.Global, p.Home)
	if err := read(c.Global); err != nil {
		return NPMConfig{}, err
	}
	layers = append(layers, shipped)

	for _, layer := range slices.Backward(layers) {
		maps.Copy(c.set, layer)
	}
	if file := c.set["cafile"]; file != "" && file != "null" {
		c.Authority = expandHome(file, p.Home)
		c.Reach.open(c.Authority)
	}
	c.gatherVariables(p, used)
	c.proxies = proxiesOf(p)
	c.Reach.tidy()
	return c, nil
}

// defaultPrefix is where npm takes itself to be installed.
func defaultPrefix(p Person, node string) string {
	if prefix, _ := p.lookup("PREFIX"); prefix != "" {
		return prefix
	}
	prefix := filepath.Dir(filepath.Dir(node))
	if below, _ := p.lookup("DESTDIR"); below != "" {
		return filepath.Join(below, prefix)
	}
	return prefix
}

// first returns a key's value from the first layer that has it.
func first(key string, layers ...map[string]string) string {
	for _, layer := range layers {
		if value := layer[key]; value != "" {
			return value
		}
	}
	return ""
}

// expandHome makes a path absolute that begins in the person's home, as written for npm.
func expandHome(path, home string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		return filepath.Join(home, rest)
	}
	if path == "~" {
		return home
	}
	return path
}

// npmVariables returns the wanted settings among NPM_CONFIG_* variables, in any case, by
// key. The last one wins, as in npm.
func npmVariables(environ []string) map[string]string {
	found := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		key, ok := npmKey(name)
		if ok && value != "" && (slices.Contains(npmWanted, key) || key == "userconfig" || isScopeKey(key)) {
			found[key] = value
		}
	}
	return found
}

// npmKey returns the setting that a variable is for: npm takes the name in any case, with
// underscores for dashes.
func npmKey(variable string) (string, bool) {
	const mark = "npm_config_"
	if len(variable) <= len(mark) || !strings.EqualFold(variable[:len(mark)], mark) {
		return "", false
	}
	key := variable[len(mark):]
	if strings.HasPrefix(key, "//") { // a setting of one registry is taken as it is
		return key, true
	}
	head := key[:1] // "_" begins _auth and kin
	return strings.ToLower(head + strings.ReplaceAll(key[1:], "_", "-")), true
}

func isScopeKey(key string) bool {
	return strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")
}

// readFile reads one configuration file if it exists, keeps what it names, and returns its
// wanted settings. used collects the variables that it names.
func (c *NPMConfig) readFile(path string, p Person, used map[string]bool) (map[string]string, error) {
	found := map[string]string{}
	text, err := os.ReadFile(path)
	if err != nil {
		if isAbsent(err) {
			return found, nil
		}
		return nil, fmt.Errorf("reading npm's configuration: %w", err)
	}
	c.Reach.Files = append(c.Reach.Files, path)
	for _, s := range parseNPMRC(string(text)) {
		home := false
		value := replaceVariables(s.value, func(name string) (string, bool) {
			if name == "HOME" {
				home = true
				return p.Home, true
			}
			used[name] = true
			return p.lookup(name)
		})
		if isClientFile(s.key) {
			if home {
				return nil, &InstallError{
					Problem: fmt.Sprintf("%q names a client certificate or its key by ${HOME}, which is another folder during an install", path),
					Cure:    "write the file's absolute path there",
				}
			}
			c.Reach.Files = append(c.Reach.Files, value)
		}
		if slices.Contains(npmWanted, s.key) || isScopeKey(s.key) {
			found[s.key] = value
		}
	}
	return found, nil
}

// isClientFile tells whether a key names the file of a client certificate or its key:
// "//registry.example.com/:certfile".
func isClientFile(key string) bool {
	return strings.HasPrefix(key, "//") && (strings.HasSuffix(key, ":certfile") || strings.HasSuffix(key, ":keyfile"))
}

// gatherVariables collects the variables that npm, node and git read for an install, and the
// bundles of certificates that they name. used are those that a file names.
func (c *NPMConfig) gatherVariables(p Person, used map[string]bool) {
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, ours := npmKey(name); ours || used[name] {
			c.Reach.Variables = append(c.Reach.Variables, name)
		}
		c.Reach.addShared(name, value)
	}
	// Values that find the person's home by ~ would find the install's.
	c.Reach.Variables = slices.DeleteFunc(c.Reach.Variables, func(name string) bool {
		key, _ := npmKey(name)
		return key == "userconfig" || key == "globalconfig" || key == "cafile" || key == "prefix" || key == "cache"
	})
}
