package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// runnerError refuses a command that installs or fetches what it starts. In one jail it
// would need the registry, a shell, a cache and the package manager, and the server would
// have them too.
type runnerError struct{ command, why, hint string }

func (e *runnerError) Error() string { return fmt.Sprintf("%s: %s", e.command, e.why) }

// Hint is the cure, for a person.
func (e *runnerError) Hint() string { return e.hint }

const (
	whyRunner = "is a package runner: it needs the registry, a shell and a cache, and the server would get them too"
	whyEngine = "starts the server in another process of the container engine, where this jail does not reach"
	hintNode  = `install the package once, then run its own file: stockade run -- node DIR/node_modules/PACKAGE/dist/index.js [ARG]...`
	hintUV    = `install the package once into a virtual environment, then run its own program: stockade run -- VENV/bin/PROGRAM [ARG]...`
	hintBox   = `install the server on this machine, then run its own program: stockade run -- PROGRAM [ARG]...`
)

// refuseRunner looks at the base name of the command and its first words, and at nothing
// else: what a program does once it runs is the jail's business.
func refuseRunner(argv []string) error {
	name := strings.TrimSuffix(filepath.Base(argv[0]), ".js")
	verb, object := firstWords(argv[1:])
	shown := name
	var why, hint string
	switch name {
	case "npx", "bunx", "pnpx", "npx-cli":
		why, hint = whyRunner, hintNode
	case "npm", "npm-cli":
		if verb == "exec" || verb == "x" {
			shown, why, hint = name+" "+verb, whyRunner, hintNode
		}
	case "pnpm", "yarn":
		if verb == "dlx" {
			shown, why, hint = name+" "+verb, whyRunner, hintNode
		}
	case "bun":
		if verb == "x" {
			shown, why, hint = name+" "+verb, whyRunner, hintNode
		}
	case "uvx":
		why, hint = whyRunner, hintUV
	case "uv":
		if verb == "tool" && object == "run" {
			shown, why, hint = "uv tool run", whyRunner, hintUV
		}
	case "pipx":
		if verb == "run" {
			shown, why, hint = "pipx run", whyRunner, hintUV
		}
	case "docker", "podman", "nerdctl":
		shown, why, hint = name, whyEngine, hintBox
		if verb != "" {
			shown += " " + verb
		}
	}
	if why == "" {
		return nil
	}
	return &runnerError{command: shown, why: why, hint: hint}
}

// firstWords returns the first two words that are neither flags nor the value of a flag
// that package managers take before their verb.
func firstWords(args []string) (first, second string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--prefix", a == "-C", a == "--dir", a == "--cwd", a == "--directory", a == "--project":
			i++
		case strings.HasPrefix(a, "-"):
		case first == "":
			first = a
		default:
			return first, a
		}
	}
	return first, ""
}
