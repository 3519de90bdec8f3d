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

// checkNamed does the same for files that words of the command line name (a script, node's
// --env-file and kin) and that a runtime needs: those are granted by their real path, and
// the way there is in the words alone.
func (o *Opened) checkNamed() error {
	if len(o.Plan.Argv) < 2 {
		return nil
	}
	for i := range o.Grants {
		w := &o.Grants[i]
		if w.State != Granted || w.Access != Write {
			continue
		}
		for _, word := range o.Plan.Argv[1:] {
			_, value, _ := strings.Cut(word, "=")
			for _, name := range [...]string{word, value} {
				if err := o.checkWord(w, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (o *Opened) checkWord(w *OpenedGrant, name string) error {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return nil
	}
	if !strings.HasPrefix(name, "/") {
		name = o.Plan.Dir + "/" + name
	}
	links, _ := linksOf(name) // none for a loop: it names nothing that could be granted
	if len(links) == 0 {
		return nil
	}
	if real, err := filepath.EvalSymlinks(name); err == nil && !below(real, w.Target) {
		return o.checkReached(w, links, real)
	}
	return nil
}

// checkReached refuses what a runtime got at a real path, when a link on the way lies in
// the write grant.
func (o *Opened) checkReached(w *OpenedGrant, links []string, real string) error {
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.State != Granted || g.Origin.Source != OriginRuntime || !below(real, g.Target) {
			continue
		}
		for _, link := range links {
			if below(link, w.Target) || below(link, w.Path) {
				return &GrantError{
					Grant: g.Grant,
					Err:   fmt.Errorf("the command line leads to it over the link %q in a folder that the server may write, so the server may have made it", link),
					Cure:  "name the real path in the command line",
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
