package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"stockade/profiles/hostconfig"
)

// planRow is one line of the table.
func planRow(s *hostServer, verb, text string) []string {
	name := s.entry.Name
	if s.entry.Project != "" {
		name += " (" + s.entry.Project + ")"
	}
	return []string{verb, escape(oneOf(s.host.title, s.host.path)), escape(name), escape(shortLine(s.entry)), escape(text)}
}

func oneOf(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// shortLine is a server's own command line, or its address, for one cell of a table.
func shortLine(s *hostconfig.Server) string {
	const most = 60
	var text string
	switch line := s.Own(); {
	case s.Kind == hostconfig.Remote:
		text = maskArguments([]string{"", s.URL})[1]
	case len(line) == 0:
		return "-"
	default:
		text = shellWords(append([]string{filepath.Base(line[0])}, maskArguments(line)[1:]...))
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-3]) + "..."
	}
	return text
}

// planText says which profile holds, and what it grants.
func (m machine) planText(c *change) string {
	s := c.server
	switch {
	case c.proposal != nil && c.proposal.kept:
		return fmt.Sprintf("your profile %s, which an earlier wrap proposed", c.proposal.file)
	case c.proposal != nil:
		return fmt.Sprintf("new profile %s: its runtime, the paths among its arguments and its variables; no network", c.proposal.file)
	case s.profile == nil:
		return "empty profile: " + m.gets(nil)
	}
	return fmt.Sprintf("%s profile %s: %s", s.place, s.profile.Name.Value, m.gets(s.profile))
}

// showPlan prints the table, unless a diff says it.
func (o *hostOptions) showPlan(rows [][]string, std stdio) error {
	if o.dryRun {
		return nil
	}
	return table(std.out, rows)
}

func writeDiffs(todo []rewrite, std stdio) error {
	for _, r := range todo {
		text, ok := hostDiff(r.file, r.after)
		if !ok {
			text = fmt.Sprintf("%s: %s; the difference is not shown: it stands beside secrets that cannot be masked\n", r.file.real, counted(len(r.changes), "server"))
		}
		var b strings.Builder
		for line := range strings.Lines(text) {
			b.WriteString(escape(strings.TrimRight(line, "\r\n")) + "\n")
		}
		if _, err := std.out.Write([]byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}
