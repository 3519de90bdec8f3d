package main

import (
	"fmt"
	"strings"

	"stockade/sandbox"
	"stockade/sandbox/program"
)

// ownCode warns of write grants that hold what the server itself is made of: its script,
// program, package, or another file that it needs to start. Such a server is jailed by
// what it was, and the next start runs what it wrote. It compares the opened objects, so
// links hide nothing. The private folders are the server's own and not counted.
func ownCode(p program.Program, opened []sandbox.OpenedGrant) []string {
	code := make([]string, 0, 8)
	if p.Entry != "" {
		code = append(code, p.Entry)
	}
	for i := range opened {
		if g := &opened[i]; g.Origin.Source == sandbox.OriginRuntime && g.State == sandbox.Granted {
			code = append(code, g.Target)
		}
	}
	var warnings []string
	for i := range opened {
		g := &opened[i]
		if g.Access != sandbox.Write || g.State != sandbox.Granted {
			continue
		}
		for _, file := range code {
			if holds(g.Target, file) {
				warnings = append(warnings, fmt.Sprintf("%s: the server may change its own program: the next start runs what it wrote (%s holds %s)", g.Origin, g.Target, file))
				break
			}
		}
	}
	return warnings
}

// holds tells whether a real path is a folder or lies below it.
func holds(folder, path string) bool {
	return folder == "/" || path == folder || strings.HasPrefix(path, folder+"/")
}
