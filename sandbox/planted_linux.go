package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// checkPlanted refuses a grant whose path runs over a link in a folder that the jail may
// write and ends outside of it: a server could have put the link there in an earlier run,
// to choose what the next one gets.
func (o *Opened) checkPlanted(g *OpenedGrant) error {
	if g.State != Granted || g.Path == g.Target {
		return nil
	}
	links, err := linksOf(g.Path)
	if err != nil {
		return &GrantError{Grant: g.Grant, Err: fmt.Errorf("following its links: %w", err)}
	}
	for i := range o.Grants {
		w := &o.Grants[i]
		if w == g || w.State != Granted || w.Access != Write && w.Access != Scratch {
			continue
		}
		if below(g.Target, w.Target) {
			continue
		}
		for _, link := range links {
			if link != w.Path && (below(link, w.Path) || below(link, w.Target)) {
				return &GrantError{
					Grant: g.Grant,
					Err:   fmt.Errorf("it leads to %q over the link %q in a folder that the server may write, so the server may have made it", g.Target, link),
					Cure:  "name the real path, if you want it granted",
				}
			}
		}
	}
	return nil
}

// mostLinks is how many links the kernel follows in one path (MAXSYMLINKS, linux/namei.h).
const mostLinks = 40

// linksOf returns the paths of all links on the way of a path, those that links lead over
// included, in the order in which the kernel follows them.
func linksOf(path string) ([]string, error) {
	var links []string
	rest := strings.Split(strings.Trim(path, "/"), "/")
	at := "/"
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		var buf [unix.PathMax]byte
		n, err := unix.Readlink(next, buf[:])
		if err != nil {
			at = next // EINVAL: no link. What cannot be read was opened all the same.
			continue
		}
		if links = append(links, next); len(links) > mostLinks {
			return nil, unix.ELOOP
		}
		target := string(buf[:n])
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return links, nil
}
