package profiles

import (
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox"
)

// SocketState is what the path of a socket turned out to name, links followed.
type SocketState uint8

const (
	// SocketMissing says that nothing is there.
	SocketMissing SocketState = iota
	// SocketThere says that it is a socket file.
	SocketThere
	// SocketFolder says that it is a folder.
	SocketFolder
	// SocketOther says that it is anything else.
	SocketOther
)

// Socket is what one path of Wanted.Sockets names.
type Socket struct {
	State SocketState
	Real  string // real path; "" when nothing is there
	// Device and Inode tell the object, which hard links and bind mounts give other paths.
	Device, Inode uint64
}

// socketPaths lists the paths that have to be looked at before network.unix compiles.
func (c *compiler) socketPaths() []string {
	var out []string
	add := func(path string) {
		if path != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, e := range c.profile.Network.Unix {
		paths, bad := c.paths(e.Path)
		if bad != nil {
			continue // Compile says so
		}
		for _, p := range paths {
			add(p)
		}
	}
	for _, g := range guardedSockets(c.facts) {
		add(g.path)
	}
	for _, g := range guarded(c.facts) {
		if g.Rule != sandbox.GuardWhole {
			add(g.Path)
		}
	}
	return out
}

// sockets grants the entries of network.unix, by the real paths that were found. What lies
// at such a path when the jail is made is looked at again there.
func (c *compiler) sockets(plan *sandbox.Plan) {
	if len(c.profile.Network.Unix) == 0 {
		return
	}
	guards := guardedSockets(c.facts)
	for _, e := range c.profile.Network.Unix {
		paths, bad := c.paths(e.Path)
		if bad != nil {
			c.fail(e.Position, &problem{message: "network.unix: " + bad.message, hint: bad.hint})
			continue
		}
		for _, path := range paths {
			path = filepath.Clean(path)
			found := c.facts.Sockets[path]
			if bad := c.socketProblem(path, &found, &e, guards); bad != nil {
				c.fail(e.Position, &problem{message: "network.unix: " + bad.message, hint: bad.hint})
				continue
			}
			if found.Real != path {
				c.out.Notes = append(c.out.Notes, "network.unix: "+path+" leads to "+found.Real)
			}
			c.addSocket(plan, sandbox.UnixGrant{Path: found.Real, Broad: e.Reason, Origin: originAt(e.Position)})
		}
	}
}

func (c *compiler) addSocket(plan *sandbox.Plan, g sandbox.UnixGrant) {
	for i := range plan.Network.Unix {
		if have := &plan.Network.Unix[i]; have.Path == g.Path {
			if have.Broad == "" && g.Broad != "" {
				*have = g
			}
			return
		}
	}
	plan.Network.Unix = append(plan.Network.Unix, g)
}

// socketProblem judges one path.
func (c *compiler) socketProblem(path string, found *Socket, e *PathEntry, guards []guardedSocket) *problem {
	switch found.State {
	case SocketMissing:
		return wrong("start what makes it first, or correct the path", "%q does not exist", path)
	case SocketFolder:
		return wrong("name the socket file itself", "%q is a folder", path)
	case SocketOther:
		return wrong("name the socket file itself", "%q is no socket", path)
	case SocketThere:
	}
	for _, place := range guarded(c.facts) {
		if place.Rule == sandbox.GuardWhole || !c.inPlace(found.Real, place.Path) {
			continue
		}
		if place.Rule == sandbox.GuardAlways {
			return wrong("no profile can grant this", "%q lies among %s", path, place.Why)
		}
		if e.Reason == "" {
			return needsReason(path, "it lies in "+place.Path+" ("+place.Why+")")
		}
	}
	if e.Reason != "" {
		return nil
	}
	if why, is := temporaryGuard(found.Real); is {
		return needsReason(path, why)
	}
	for i := range guards {
		if g := &guards[i]; c.isGuarded(found, g) {
			return needsReason(path, g.why)
		}
	}
	return nil
}

func needsReason(path, why string) *problem {
	return wrong(`if the server may have that, write {path: ..., broad: true, reason: "..."} in a profile`, "%q hands out more than itself: %s", path, why)
}

// inPlace tells whether a real path lies at or below a place, by the place's name or by its
// real path.
func (c *compiler) inPlace(real, place string) bool {
	return within(real, place) || c.facts.Sockets[place].Real != "" && within(real, c.facts.Sockets[place].Real)
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// isGuarded tells whether a socket is, or lies in, what a guard means.
func (c *compiler) isGuarded(found *Socket, g *guardedSocket) bool {
	if g.base != "" {
		name, err := filepath.Match(g.base, filepath.Base(found.Real))
		return err == nil && name && (g.path == "" || c.inPlace(filepath.Dir(found.Real), g.path))
	}
	if c.inPlace(found.Real, g.path) {
		return true
	}
	guard := c.facts.Sockets[g.path]
	return guard.State == SocketThere && guard.Device == found.Device && guard.Inode == found.Inode
}
