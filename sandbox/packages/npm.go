package packages

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Stage is the empty place that an install is made in. All paths are absolute; no two are
// below each other.
type Stage struct {
	Tree string // becomes the entry's folder; the working folder of all steps
	Home string // HOME of the steps: caches, logs; thrown away
	Temp string // TMPDIR of the steps; thrown away
}

// npmBase are the flags of every npm command. Flags beat whatever the person's files and
// variables say, so these are the settings that could make npm work elsewhere, print
// something else or wait for long. All of them are known to npm 9 to 12.
func (c NPMConfig) npmBase(s Stage) []string {
	flags := []string{
		"--userconfig=" + c.User, "--globalconfig=" + c.Global,
		"--cache=" + filepath.Join(s.Home, ".npm"), "--logs-max=0",
		"--prefix=" + s.Tree, "--global=false", "--location=project", "--workspaces=false",
		"--json=false", "--loglevel=warn", "--color=false", "--unicode=false", "--timing=false",
		"--progress=false", "--update-notifier=false", "--audit=false", "--fund=false",
	}
	if c.Authority != "" {
		flags = append(flags, "--cafile="+c.Authority)
	}
	return flags
}

// npmNetwork ends the wait for a registry that is down within seconds, where npm's own
// settings wait for over a minute. A working registry answers far sooner, or is slow in
// sending, which is no idle connection.
var npmNetwork = []string{
	"--offline=false", "--prefer-offline=false",
	"--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=1000", "--fetch-timeout=10000",
}

// npmTree are the settings that decide how a tree looks. Left as the person has them are
// choices of policy: before, min-release-age, engine-strict, legacy-peer-deps, allow-git
// and kin, tag. Where npm notes the request in package.json (save-dev and kin, which exclude
// each other also when they are false) is left too: all of those kinds are installed, and
// what a package needs for its own development never is.
var npmTree = []string{
	"--ignore-scripts", "--save", "--save-exact", "--save-bundle=false", "--install-links", "--package-lock", "--package-lock-only=false",
	"--lockfile-version=3", "--include=prod", "--include=dev", "--include=optional", "--include=peer",
	"--install-strategy=hoisted", "--bin-links", "--dry-run=false",
}

// List is the step that prints the configuration as npm sees it, for [NPMConfig.Listed].
func (c NPMConfig) List(s Stage) Step {
	argv := append([]string{"npm", "config", "list"}, c.npmBase(s)...)
	i := slices.Index(argv, "--json=false")
	argv[i] = "--json"
	return Step{Title: "reading npm's configuration", Argv: argv, Access: Offline}
}

// NPMSteps are the commands that install a request into the stage's tree: package.json,
// package-lock.json and node_modules. The stage is empty before, and no install script runs
// but those of r.Scripts, in a second step without the person's credentials.
func NPMSteps(r Request, s Stage, c NPMConfig) ([]Step, error) {
	words, err := npmWords(r)
	if err != nil {
		return nil, err
	}
	argv := slices.Concat([]string{"npm", "install"}, c.npmBase(s), npmNetwork, npmTree, []string{"--"}, words)
	steps := []Step{{
		Title: "installing", Argv: argv, Access: Online,
		Env: []string{"GIT_TERMINAL_PROMPT=0"}, // a repository that wants a password is an error, not a question
	}}
	if len(r.Scripts) == 0 {
		return steps, nil
	}
	// The person's files hold credentials, and npm must not miss them: it gets empty ones.
	bare := c
	bare.User, bare.Global = filepath.Join(s.Home, "no-npmrc"), filepath.Join(s.Home, "no-global-npmrc")
	argv = slices.Concat([]string{"npm", "rebuild"}, bare.npmBase(s), npmNetwork, c.buildFlags,
		[]string{"--ignore-scripts=false", "--bin-links", "--install-strategy=hoisted", "--script-shell=/bin/sh", "--foreground-scripts", "--"}, r.Scripts)
	return append(steps, Step{
		Title: "running install scripts", Argv: argv, Access: Scripted,
		// npm 12 runs no script that nobody allowed. Only those of the named packages are run
		// here at all; older ones take no notice of the variable.
		Env: append([]string{"NPM_CONFIG_DANGEROUSLY_ALLOW_ALL_SCRIPTS=true"}, c.buildEnv...),
	}), nil
}

// Newest is the step that prints what the registry's tag "latest" stands for.
func (c NPMConfig) Newest(name string, s Stage) Step {
	argv := slices.Concat([]string{"npm", "view"}, c.npmBase(s), npmNetwork, []string{"--", name, "dist-tags.latest"})
	return Step{Title: "asking for the newest version", Argv: argv, Access: Online}
}

// npmWords are a request's packages as npm reads them.
func npmWords(r Request) ([]string, error) {
	if r.Kind != NPM || len(r.Specs) == 0 {
		return nil, errors.New("installing with npm: the request names no npm package")
	}
	words := make([]string, 0, len(r.Specs))
	for _, spec := range r.Specs {
		word := spec.Place
		switch spec.Source {
		case Registry:
			if spec.Name == "" {
				return nil, errors.New("installing with npm: a package has no name")
			}
			words = append(words, npmWord(spec.Name, spec.Version))
			continue
		case Git, Archive:
			if !strings.HasPrefix(word, "https://") && !strings.HasPrefix(word, "git+https://") && !filepath.IsAbs(word) {
				return nil, fmt.Errorf("installing with npm: a package of %q comes neither over HTTPS nor from an absolute path", r.Specs[0].Name)
			}
		case Folder:
			if !filepath.IsAbs(word) {
				return nil, fmt.Errorf("installing with npm: the folder %q is no absolute path", word)
			}
		}
		words = append(words, npmWord(spec.Name, word))
	}
	return words, nil
}

// npmWord joins a name and what follows it, either of which may be missing.
func npmWord(name, rest string) string {
	if name == "" || rest == "" {
		return name + rest
	}
	return name + "@" + rest
}
