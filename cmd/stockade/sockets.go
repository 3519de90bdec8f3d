package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"stockade/profiles"
)

// lookAtSockets finds what paths of network.unix, and of the sockets that they must not
// turn out to be, name. It follows links and connects to nothing.
func lookAtSockets(paths []string) map[string]profiles.Socket {
	out := make(map[string]profiles.Socket, len(paths))
	for _, path := range paths {
		out[path] = lookAtSocket(path)
	}
	return out
}

// lookAtSocket looks at the object that the real path names, not at the path as given: a
// link that changes in between is then no way to show one and grant another.
func lookAtSocket(path string) profiles.Socket {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return profiles.Socket{}
	}
	var st unix.Stat_t
	if unix.Lstat(real, &st) != nil {
		return profiles.Socket{}
	}
	found := profiles.Socket{State: profiles.SocketOther, Real: real, Device: st.Dev, Inode: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		found.State = profiles.SocketThere
	case unix.S_IFDIR:
		found.State = profiles.SocketFolder
	}
	return found
}
