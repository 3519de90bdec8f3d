package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"stockade/profiles"
	"stockade/sandbox/egress"
	"stockade/sandbox/supervise"
)

// lessons collects what a server asked for and was refused. It is safe for concurrent use.
type lessons struct {
	advice advisor
	home   string

	mu     sync.Mutex
	wishes map[wish]*asking
	kept   map[string]*asking // what is not proposed, with the reason
	beyond int                // what found no room here
}

// wish is one entry of one list of a profile.
type wish struct{ key, entry string }

// asking is who asked, by which calls, and how often.
type asking struct {
	programs, calls []string
	count           int
	why             string // of what is not proposed, or beside what is
}

func newLessons(advice advisor, home string) *lessons {
	return &lessons{advice: advice, home: home, wishes: map[wish]*asking{}, kept: map[string]*asking{}}
}

// mostWishes bounds what is remembered: a server that walks over a disk asks for all of it.
const mostWishes = 1000

// refused learns from a refusal of the kernel.
func (l *lessons) refused(r supervise.Refusal) {
	e, add := l.advice.judge(r)
	if quietly(e) {
		return
	}
	if e.Kind == kindSocket && e.Key == "network.egress" {
		return // the supervisor tells where it leads
	}
	l.learn(e, add)
}

// denied learns from a refusal of the supervisor.
func (l *lessons) denied(d egress.Denial) {
	e := newEntry(d, l.advice.plan.Name)
	var add string
	e.Key, add, e.Rule = networkWish(d)
	l.learn(e, add)
}

// networkWish is what a denial could be granted by.
func networkWish(d egress.Denial) (key, add, why string) {
	kind, target, _ := strings.Cut(d.Asked, " ")
	switch {
	case d.Call == "dns" && kind == "name" && !strings.Contains(target, " "):
		return "network.egress", target + ":443", "443 is a guess: the name was refused before a port was named"
	case d.Call == "connect" || d.Call == "send" && !strings.HasSuffix(target, ":53"):
		if to, err := netip.ParseAddrPort(target); err == nil && to.Port() != 0 && (kind == "tcp" || kind == "udp") {
			return "network.egress", to.String(), ""
		}
	case d.Call == "bind" && kind == "tcp":
		if at, err := netip.ParseAddrPort(target); err == nil && at.Port() != 0 {
			return "network.listen", fmt.Sprint(at.Port()), ""
		}
	case d.Call == "unix" && kind == "unix" && filepath.IsAbs(target) && d.Hint != "":
		return "network.unix", target, ""
	}
	return "", "", d.Rule
}

func (l *lessons) learn(e denialEntry, add string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if add == "" {
		l.keep(e.Operation+" "+e.Asked, e.Rule, &asking{programs: []string{e.Program}, calls: []string{e.Call}, count: 1})
		return
	}
	w := wish{e.Key, add}
	have, known := l.wishes[w]
	if !known {
		if len(l.wishes) >= mostWishes {
			l.beyond++
			return
		}
		have = &asking{}
		if e.Kind == "" {
			have.why = e.Rule // of the guess
		}
		l.wishes[w] = have
	}
	have.join(&asking{programs: []string{e.Program}, calls: []string{e.Call}, count: 1})
}

// keep notes what is not proposed.
func (l *lessons) keep(what, why string, by *asking) {
	what = strings.TrimSpace(what)
	have, known := l.kept[what]
	if !known {
		if len(l.kept) >= mostWishes {
			l.beyond++
			return
		}
		have = &asking{why: why}
		l.kept[what] = have
	}
	have.join(by)
}

func (a *asking) join(other *asking) {
	a.programs = sortedUnion(a.programs, other.programs)
	a.calls = sortedUnion(a.calls, other.calls)
	a.count += other.count
}

func sortedUnion(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Concat(a, b), func(s string) bool { return s == "" }))))
}

// String says who asked: "node (openat, 3 times)".
func (a *asking) String() string {
	text := strings.Join(a.programs, ", ")
	if text == "" {
		text = "the server"
	}
	text += " (" + strings.Join(a.calls, ", ")
	if a.count > 1 {
		text += fmt.Sprintf(", %d times", a.count)
	}
	text += ")"
	if a.why != "" {
		text += "; " + a.why
	}
	return text
}

// siblings is how many entries of one folder become the folder.
const siblings = 3

// additions returns the smallest list that grants what was asked for: files of one folder
// become the folder when there are several and it is no place that holds more than a
// server's, and what another entry grants already is left out.
func (l *lessons) additions() []profiles.Addition {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[wish]*asking, len(l.wishes))
	for w, by := range l.wishes {
		one := *by // joined with others below
		all[w] = &one
	}
	for _, key := range []string{"filesystem.write", "filesystem.read"} {
		for folded := true; folded; {
			folded = l.fold(all, key)
		}
		l.drop(all, key)
	}
	out := make([]profiles.Addition, 0, len(all))
	for w, by := range all {
		out = append(out, profiles.Addition{Key: w.key, Entry: w.entry, Because: by.String()})
	}
	slices.SortFunc(out, func(a, b profiles.Addition) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Entry, b.Entry))
	})
	return out
}

// fold puts one folder in the place of its files, and tells whether there was one.
func (l *lessons) fold(all map[wish]*asking, key string) bool {
	groups := map[string][]string{}
	for w := range all {
		if w.key == key {
			folder := filepath.Dir(w.entry)
			groups[folder] = append(groups[folder], w.entry)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(groups)) {
		entries := groups[folder]
		if len(entries) < siblings || !l.mayFold(folder) {
			continue
		}
		joined := &asking{}
		if have, known := all[wish{key, folder}]; known {
			joined = have
		}
		for _, entry := range entries {
			joined.join(all[wish{key, entry}])
			delete(all, wish{key, entry})
		}
		all[wish{key, folder}] = joined
		return true
	}
	return false
}

// drop leaves out what lies in another entry: reading also in what may be written.
func (l *lessons) drop(all map[wish]*asking, key string) {
	for w, by := range all {
		if w.key != key {
			continue
		}
		for other, joined := range all {
			grants := other.key == key || other.key == "filesystem.write" && key == "filesystem.read"
			if grants && other != w && isBelow(w.entry, other.entry) {
				joined.join(by)
				delete(all, w)
				break
			}
		}
	}
}

// unfolded are places whose folders are never granted for some files of them.
var unfolded = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"}

// mayFold tells whether a folder as a whole may be proposed: none at the top of the machine,
// none of the system's, not the home folder or one that holds it, and no guarded place.
func (l *lessons) mayFold(folder string) bool {
	depth := strings.Count(folder, "/")
	if depth < 2 || depth < 3 && isBelow(folder, "/var") || l.home != "" && isBelow(l.home, folder) {
		return false
	}
	if slices.ContainsFunc(unfolded, func(place string) bool { return isBelow(folder, place) }) {
		return false
	}
	_, guarded := l.advice.plan.GuardedPlace(folder)
	return !guarded
}

// isBelow tells whether a clean absolute path is a folder or lies in it.
func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// withheld lists what is not proposed, one text each.
func (l *lessons) withheld() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, what := range slices.Sorted(maps.Keys(l.kept)) {
		out = append(out, what+": asked for by "+l.kept[what].String())
	}
	if l.beyond > 0 {
		out = append(out, counted(l.beyond, "further refusal")+": too many different things were asked for")
	}
	return out
}
