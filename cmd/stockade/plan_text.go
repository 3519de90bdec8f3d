package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"stockade/profiles"
)

// shownCalls is how many names of an answer explain lists without --all.
const shownCalls = 8

// detail says how much explain lists.
type detail uint8

const (
	inShort detail = iota
	inFull
)

// writePlan prints a plan for a person. Sections are always in the same order; one without
// content is left out.
func writePlan(w io.Writer, v planView, d detail) error {
	p := &page{}
	head := [][]string{
		{"profile", v.Profile.Name, v.Profile.Source},
		{"program", v.Program.File, strings.TrimSpace(v.Program.Runtime + " " + v.Program.Package)},
		{"command", shellWords(v.Program.Argv)},
		{"folder", v.Dir},
	}
	if e := v.Stored; e != nil {
		head = append(head, []string{"package", e.Kind + ":" + e.Name + " " + e.Version, fmt.Sprintf("for %s %s; %s in the store, read-only", e.Runner, e.Request, counted(e.Packages, "package"))})
	}
	p.section("", head)
	p.grants(v, d)
	p.section("Network", networkRows(v.Network, v.Guard))
	p.section("Guard (MCP messages)", guardRows(v.Guard))
	p.section("System calls", callRows(v.Syscalls, d))
	p.section("Environment (names; values are never printed)", environmentRows(v))
	p.section("Install scripts", installRows(v.Install))
	p.section("Private folders", folderRows(v.Folders))
	p.section("Limits", limitRows(v.Limits))
	p.section("Layers on this kernel", layerRows(v))
	p.section("Warnings", oneEach(v.Warnings))
	p.section("Notes", oneEach(v.Notes))
	p.section("What stays open", openRows(v.Residual))
	_, err := io.WriteString(w, p.b.String())
	return err
}

// page collects sections. Every cell passes escape.
type page struct{ b strings.Builder }

func (p *page) section(title string, rows [][]string) {
	if len(rows) == 0 || len(rows) == 1 && rows[0][0] == "" {
		return
	}
	if title != "" {
		p.b.WriteString("\n" + title + "\n")
	}
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			if j == 0 && title != "" {
				cell = "  " + cell
			}
			shown[i] = append(shown[i], escape(cell))
		}
	}
	_ = table(&p.b, shown) // a strings.Builder never fails
}

func (p *page) grants(v planView, d detail) {
	var rows [][]string
	absent := 0
	for _, g := range v.Grants {
		if g.State == "skipped" && d == inShort {
			absent++
			continue
		}
		path := g.Path
		switch {
		case g.State == "skipped":
			path += " (absent)"
		case g.State == "pending":
			path += " (made at start)"
		case g.Target != g.Path && !strings.HasPrefix(g.Path, "/proc/self/"):
			path += " → " + g.Target
		}
		why := g.Why
		if g.Broad != "" {
			why += "; broad: " + g.Broad
		}
		rows = append(rows, []string{g.Access, why, place(g.Origin), path}) // what runs on comes last
	}
	if absent > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %s absent; --all lists them", counted(absent, "optional path"))})
	}
	p.section("Files and programs", rows)
}

// place is "file:line:column", or the source alone.
func place(o originView) string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func networkRows(n networkView, g *guardView) [][]string {
	egress := "no connection to anywhere, and no name lookups"
	switch n.Egress {
	case "all":
		egress = "every address, loopback and private networks included"
	case "public":
		egress = "every address but loopback, private and other special ones; every name resolves"
	case "list":
		egress = "what the rules name; no other name resolves"
	}
	rows := [][]string{{"egress", n.Egress, egress}}
	for _, r := range n.Rules {
		names := "address"
		if r.Names != "" {
			names = "names: " + r.Names
			if r.note != "" {
				names += " (" + r.note + ")"
			}
			if r.Addresses == string(profiles.AddressesAny) {
				names += ", addresses: " + r.Addresses
			}
		}
		rows = append(rows, []string{"  rule", r.To, names, place(r.Origin)})
	}
	if len(n.Listen) == 0 {
		rows = append(rows, []string{"listen", "none"})
	} else {
		ports := make([]string, len(n.Listen))
		for i, port := range n.Listen {
			ports[i] = strconv.Itoa(int(port))
		}
		rows = append(rows, []string{"listen", strings.Join(ports, " "), "TCP, on every address of this machine"})
	}
	for _, g := range n.Unix {
		why := "Unix socket"
		if g.Broad != "" {
			why += "; broad: " + g.Broad
		}
		rows = append(rows, []string{"unix", g.Path, why, place(g.Origin)})
	}
	if n.Observed {
		rows = append(rows, []string{"observed", "yes", "each file, program and socket that the kernel refuses is told; the supervisor decides nothing by it"})
	}
	switch {
	case n.Observed && !n.Supervised:
		return append(rows, []string{"supervisor", "stays", "as the server's parent, to observe"})
	case n.Supervised:
		return append(rows, []string{"supervisor", "stays", "as the server's parent: it decides on each connection, resolves names and relays"})
	}
	if g != nil {
		return append(rows, []string{"supervisor", "stays", "as the server's parent, for the guard; no call of the server's asks it"})
	}
	return append(rows, []string{"supervisor", "none", "stockade is gone when the server runs"})
}

func callRows(s syscallsView, d detail) [][]string {
	rows := [][]string{{"allowed", counted(s.Allowed, "call")}, {"others", s.Default}}
	for _, a := range s.Answers {
		names := a.Calls
		rest := ""
		if d == inShort && len(names) > shownCalls {
			rest = fmt.Sprintf(" and %d more; --all lists them", len(names)-shownCalls)
			names = names[:shownCalls]
		}
		rows = append(rows, []string{a.Answer, strings.Join(names, " ") + rest})
	}
	return rows
}

func folderRows(f foldersView) [][]string {
	var rows [][]string
	if f.Home != "" {
		rows = append(rows, []string{"home", f.Home, "kept between runs, for this profile and this installation of the server: another path is another home"})
	}
	if f.Tmp != "" {
		rows = append(rows, []string{"temporary", f.Tmp, "of one run, removed at a later start"})
	}
	return rows
}

func limitRows(l limitsView) [][]string {
	rows := [][]string{{"core dumps", "off"}}
	for _, r := range [...]struct {
		name  string
		value uint64
		size  bool
	}{{"open files", l.OpenFiles, false}, {"file size", l.FileSize, true}, {"memory", l.Memory, true}, {"processes", l.Processes, false}} {
		switch {
		case r.value == 0:
		case r.size:
			rows = append(rows, []string{r.name, bytesText(r.value)})
		default:
			rows = append(rows, []string{r.name, strconv.FormatUint(r.value, 10)})
		}
	}
	return rows
}

// bytesText writes a size in the largest unit that divides it.
func bytesText(n uint64) string {
	for _, u := range [...]struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return strconv.FormatUint(n, 10) + " bytes"
}

// openRows puts what stays open under the promise that it weakens.
func openRows(list []residualView) [][]string {
	var rows [][]string
	promise := ""
	for _, r := range list {
		if r.Promise != promise {
			promise = r.Promise
			rows = append(rows, []string{promise + ", but"})
		}
		rows = append(rows, []string{"  - " + r.Open})
	}
	return rows
}

func layerRows(v planView) [][]string {
	var rows [][]string
	for _, l := range v.Layers {
		verdict := l.Verdict
		for _, waived := range v.Waived {
			if waived == l.Layer && verdict != "present" {
				verdict += ", waived by the profile"
			}
		}
		rows = append(rows, []string{string(l.Layer), verdict, l.Detail})
	}
	return rows
}

func oneEach(lines []string) [][]string {
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, []string{l})
	}
	return rows
}
