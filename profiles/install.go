package profiles

import (
	"slices"
	"strings"

	"stockade/sandbox/egress"
)

// The install jail always has a supervisor, with no rule where a step needs no network: what
// the step started ends with it.
//
// The install jail is where a package manager puts a package into the store. It is compiled
// as any other: the profile below is what it grants. Its private home is the stage of the
// store, which is all that it writes; what it holds at the end is checked and renamed into
// the store by stockade itself, outside of the jail.

// InstallGrants is what one step of an install gets beside its own program and the stage.
type InstallGrants struct {
	// Rules are egress rules for the registries that the person's own configuration names.
	// They may lead to private addresses: company registries have them.
	Rules []string
	// Files are files of the person's configuration that hold registries and tokens, and
	// certificates. Those that are not there are left out.
	Files []string
	// Variables are variables of the host's environment, by name, that hold the same. They
	// are passed and never shown.
	Variables []string
	// Places are local folders and archives that a request installs from.
	Places []string
	// Set are variables of the step itself.
	Set []EnvSet
	// Execute are programs beside the step's own: git, or what install scripts start.
	Execute []Sourced[string]
	// Read are paths that install scripts read.
	Read []PathEntry
}

// InstallName is the name of the install jail's profile, for messages and the log.
const InstallName = "install"

// InstallPosition is where its entries stand, for messages.
var InstallPosition = Position{File: "the install jail"}

// registryFiles is why the install jail reads files with tokens.
const registryFiles = "the package manager's own configuration: its registry and the registry's credentials"

// Install makes the profile of the install jail for one step.
func Install(g InstallGrants) *Profile {
	at := InstallPosition
	p := &Profile{Version: 1, Name: Sourced[string]{Value: InstallName}, Description: "Installs a package into the store"}
	for _, to := range g.Rules {
		rule := EgressRule{To: to, Position: at}
		// An address that is written out needs no such word, and takes none.
		if parsed, err := egress.ParseRule(to); err == nil && parsed[0].Host != "" {
			rule.Addresses = Sourced[AddressesMode]{Value: AddressesAny, Position: at}
		}
		p.Network.Hosts = append(p.Network.Hosts, rule)
	}
	if len(g.Rules) > 0 {
		p.Network.HostsAt = at
	}
	for _, file := range g.Files {
		p.Filesystem.Optional = append(p.Filesystem.Optional, PathEntry{Path: literal(file), Broad: true, Reason: registryFiles, Position: at})
	}
	for _, place := range g.Places {
		p.Filesystem.Read = append(p.Filesystem.Read, PathEntry{Path: literal(place), Position: at})
	}
	p.Filesystem.Read = append(p.Filesystem.Read, g.Read...)
	p.Filesystem.Execute = slices.Clone(g.Execute)
	for _, name := range g.Variables {
		p.Environment.Pass = append(p.Environment.Pass, Sourced[string]{Value: name, Position: at})
	}
	p.Environment.Set = slices.Clone(g.Set)
	return p
}

// literal keeps a path from being read as one with variables.
func literal(path string) string { return strings.ReplaceAll(path, "$", "$$") }
