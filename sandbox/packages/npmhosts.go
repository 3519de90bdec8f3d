package packages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Listed fills in what only npm itself knows: output is what the step [NPMConfig.List]
// printed. Its rules are the default registry, the registry of each scope and the hosts that
// the request names; with a proxy, the proxy in place of those it fetches from.
func (c NPMConfig) Listed(output []byte, r Request) (NPMConfig, error) {
	start := bytes.IndexByte(output, '{')
	if start < 0 {
		return NPMConfig{}, errors.New("reading npm's configuration: npm printed none")
	}
	var printed map[string]any
	if err := json.NewDecoder(bytes.NewReader(output[start:])).Decode(&printed); err != nil {
		return NPMConfig{}, fmt.Errorf("reading npm's configuration: %w", err)
	}
	// npm prints no value that holds a password: then it is the one found in the files.
	value := func(key string) string {
		switch v := printed[key].(type) {
		case string:
			return v
		case []any:
			var words []string
			for _, word := range v {
				if s, ok := word.(string); ok {
					words = append(words, s)
				}
			}
			return strings.Join(words, ",")
		}
		if _, asked := printed[key]; asked {
			return ""
		}
		return c.set[key]
	}
	addresses, err := c.registries(printed, value)
	if err != nil {
		return NPMConfig{}, err
	}
	named, err := specRules(r)
	if err != nil {
		return NPMConfig{}, err
	}
	rules := slices.Clone(named) // a repository is fetched by git, which has its own proxies
	for _, address := range addresses {
		through, err := c.through(address, value)
		if err != nil {
			return NPMConfig{}, err
		}
		rules = append(append(rules, through), furtherHosts(through)...)
	}
	if len(named) > 0 {
		proxy, err := c.through("https://", value)
		if err != nil {
			return NPMConfig{}, err
		}
		if proxy != "" {
			rules = append(rules, proxy)
		}
	}
	c.Reach.Rules = rules
	c.Reach.tidy()
	c.buildFlags, c.buildEnv = c.build(value)
	return c, nil
}

// registries returns the URLs of all registries that the configuration names.
func (c NPMConfig) registries(printed map[string]any, value func(string) string) ([]string, error) {
	keys := []string{"registry"}
	for key := range printed {
		if isScopeKey(key) {
			keys = append(keys, key)
		}
	}
	for key := range c.set {
		if isScopeKey(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var all []string
	for _, key := range slices.Compact(keys) {
		address := value(key)
		if address == "" {
			return nil, fmt.Errorf("reading npm's configuration: it has no %q", key)
		}
		if _, err := hostRule(address); err != nil {
			return nil, fmt.Errorf("reading %q of npm's configuration: %w", key, err)
		}
		all = append(all, address)
	}
	return all, nil
}

// through returns the rule for what npm connects to in order to reach an address: the
// proxy that its configuration or the environment names, or the address's host. For the
// address "https://", without a host, it returns the proxy or "".
func (c NPMConfig) through(address string, value func(string) string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("reading npm's configuration: the URL of a registry cannot be read")
	}
	proxy := firstOf(value("https-proxy"), value("proxy"), c.proxies.https)
	if u.Scheme == "http" {
		proxy = firstOf(proxy, c.proxies.http, c.proxies.plain)
	}
	none := splitNames(value("noproxy"))
	if len(none) == 0 {
		none = c.proxies.none
	}
	if proxy == "" || u.Host != "" && direct(strings.ToLower(u.Hostname()), none) {
		if u.Host == "" {
			return "", nil
		}
		return hostRule(address)
	}
	rule, err := hostRule(proxy)
	if err != nil {
		return "", fmt.Errorf("reading the proxy of npm's configuration: %w", err)
	}
	return rule, nil
}

// firstOf returns the first word that is set. npm writes an unset one as "null" or "false".
func firstOf(words ...string) string {
	for _, word := range words {
		if word != "" && word != "null" && word != "false" {
			return word
		}
	}
	return ""
}

// build is what install scripts need of the person's files, without any credential: flags
// for npm, and variables for node-gyp, which compiles native modules.
func (c NPMConfig) build(value func(string) string) (flags, env []string) {
	if u, err := url.Parse(value("registry")); err == nil && u.Host != "" {
		u.User, u.RawQuery = nil, ""
		flags = append(flags, "--registry="+u.String())
	}
	for _, key := range []string{"nodedir", "python"} {
		if path := firstOf(value(key)); filepath.IsAbs(path) {
			env = append(env, "npm_config_"+key+"="+path)
		}
	}
	return flags, env
}
