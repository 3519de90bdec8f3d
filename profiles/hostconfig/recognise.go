package hostconfig

import (
	"path"
	"strings"
)

// Folders are the places of one person on one machine that paths are relative to. An empty
// one is not known.
type Folders struct {
	Home, Config, Project string
	// Moved are the values of the environment variables in Place.Moved, by name.
	Moved map[string]string
}

// File returns the path of a place, which may end in a pattern for [path.Match], and "" when
// its folder is not known.
func (p *Place) File(in *Folders) string {
	if moved := in.Moved[p.Moved]; p.Moved != "" && moved != "" {
		return path.Join(moved, path.Base(p.Path))
	}
	base := map[Base]string{Home: in.Home, Config: in.Config, Folder: in.Project, Root: "/"}[p.Base]
	if base == "" {
		return ""
	}
	return path.Join(base, p.Path)
}

// Recognise finds the host and the place of a file by the end of its path, which is enough
// for copies in dotfiles. A person's and a project's file that are called the same have the
// same shape; the first is returned. Nothing is read.
func Recognise(file string) (Host, Place, bool) {
	var host Host
	var place Place
	best := 0
	for _, h := range Hosts {
		for _, p := range h.Files {
			if parts := endsIn(file, p.Path); parts > best {
				host, place, best = h, p, parts
			}
		}
	}
	return host, place, best > 0
}

// endsIn counts the parts that a path and a pattern share, which are all of the pattern's
// or none.
func endsIn(file, pattern string) int {
	have := strings.Split(path.Clean(file), "/")
	want := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if len(have) < len(want) {
		return 0
	}
	have = have[len(have)-len(want):]
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); !ok || err != nil {
			return 0
		}
	}
	return len(want)
}

// guesses are the shapes that a file of no known name is tried with, in order.
var guesses = [][]Shape{mcpServers, continueList, vscodeServers, zedServers, codexServers, vibeServers, gooseServers, ampServers, vscodeSetting, opencodeServers, crushServers, {{Keys: commonKeys}}}

// Guess finds a place for a file of no known name: the syntax by its ending, the shape by
// its content, a bare table of servers included. It is false when no shape finds a server.
// Scope and Path of the place mean nothing. A file that cannot be read is an [*Error].
func Guess(file string, data []byte) (Place, bool, error) {
	place := Place{Format: JSON}
	switch strings.ToLower(path.Ext(file)) {
	case ".toml":
		place.Format = TOML
	case ".yaml", ".yml":
		place.Format = YAML
	}
	for _, shapes := range guesses {
		place.Shapes = shapes
		f, err := Parse(file, data, place)
		if err != nil {
			return place, false, err
		}
		for i := range f.Servers {
			if k := f.Servers[i].Kind; k == Command || k == Remote {
				return place, true, nil
			}
		}
	}
	return place, false, nil
}
