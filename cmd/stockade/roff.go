package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The help texts and the manual pages are one text. A help text is plain: a title stands at
// the left edge, a paragraph is set in by four columns, what is set in by eight or more
// stands as it is, and a paragraph whose first line has a gap of two blanks is a list with
// its texts at one column. roffPage reads that form, and knows three titles: NAME, SYNOPSIS
// and EXAMPLES.

const (
	bodyIndent    = 4
	literalIndent = 8
)

// roffPage turns a help text into a page for man(7). The date is empty or YYYY-MM-DD.
func roffPage(p *manPage, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"%s\" \"stockade %s\"\n", roffText(strings.ToUpper(p.name)), p.section, date, roffText(version))
	title := ""
	for paragraph := range strings.SplitSeq(strings.TrimSpace(p.help), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		begun := false
		if !strings.HasPrefix(lines[0], " ") {
			title, lines, begun = lines[0], lines[1:], true
			fmt.Fprintf(&b, ".SH %s\n", roffText(title))
		}
		if len(lines) == 0 {
			continue
		}
		switch title {
		case "NAME":
			fmt.Fprintf(&b, "%s\n", roffText(p.name+" - "+p.summary))
		case "SYNOPSIS":
			roffSynopsis(&b, lines)
		case "EXAMPLES":
			roffLiteral(&b, lines, bodyIndent)
		default:
			if !begun && indentOf(lines[0]) < literalIndent {
				b.WriteString(".PP\n")
			}
			roffParagraph(&b, lines)
		}
	}
	return b.String()
}

// roffSynopsis sets each command line on its own, its words of ours in bold.
func roffSynopsis(b *strings.Builder, lines []string) {
	for i, line := range lines {
		if i > 0 {
			b.WriteString(".br\n")
		}
		words := strings.Fields(line)
		own := 0
		for own < len(words) && strings.Trim(words[own], "abcdefghijklmnopqrstuvwxyz") == "" {
			own++
		}
		fmt.Fprintf(b, "\\fB%s\\fP", roffText(strings.Join(words[:own], " ")))
		if own < len(words) {
			b.WriteString(" " + roffText(strings.Join(words[own:], " ")))
		}
		b.WriteString("\n")
	}
}

// roffParagraph sets a list, or prose with literal lines in it.
func roffParagraph(b *strings.Builder, lines []string) {
	if rows := listRows(lines); rows != nil {
		roffList(b, rows)
		return
	}
	for len(lines) > 0 {
		n := 0
		literal := indentOf(lines[0]) >= literalIndent
		for n < len(lines) && (indentOf(lines[n]) >= literalIndent) == literal {
			n++
		}
		if literal {
			b.WriteString(".RS 4\n")
			if rows := listRows(lines[:n]); rows != nil {
				roffList(b, rows)
			} else {
				roffLiteral(b, lines[:n], literalIndent)
			}
			b.WriteString(".RE\n")
		} else {
			for _, line := range lines[:n] {
				b.WriteString(roffProse(line))
			}
		}
		lines = lines[n:]
	}
}

// row is one entry of a list.
type row struct{ tag, text string }

// listRows reads a list. It returns nil when the lines are none: then some line has no gap
// before the column at which the first line's text begins.
func listRows(lines []string) []row {
	first := lines[0]
	edge := indentOf(first)
	gap := strings.Index(first[edge:], "  ")
	if gap < 0 {
		return nil
	}
	column := edge + gap + indentOf(first[edge+gap:])
	var rows []row
	for _, line := range lines {
		switch {
		case indentOf(line) >= column:
			rows[len(rows)-1].text += "\n" + line[column:]
		case indentOf(line) != edge || len(line) <= column || line[column-1] != ' ' || line[column] == ' ':
			return nil
		default:
			rows = append(rows, row{strings.TrimSpace(line[:column]), line[column:]})
		}
	}
	return rows
}

func roffList(b *strings.Builder, rows []row) {
	for _, r := range rows {
		word, value, _ := strings.Cut(r.tag, " ")
		if !strings.HasPrefix(word, "--") {
			word, value = r.tag, ""
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP", roffText(word))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fP", roffText(value))
		}
		b.WriteString("\n")
		for line := range strings.SplitSeq(r.text, "\n") {
			b.WriteString(roffProse(line))
		}
	}
}

// roffLiteral sets lines as they are, without the indentation that they all have.
func roffLiteral(b *strings.Builder, lines []string, indent int) {
	b.WriteString(".EX\n")
	for _, line := range lines {
		b.WriteString(roffLine(line[min(indent, indentOf(line)):]))
	}
	b.WriteString(".EE\n")
}

// roffProse is a line that is filled: paths, flags and keys in it are kept from being
// hyphenated. A request for the whole page would not last, since man(7) resets it.
func roffProse(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		plain := strings.TrimRight(w, ".,;:)")
		if words[i] = roffText(w); strings.ContainsAny(plain, "-_./=${}") {
			words[i] = `\%` + words[i]
		}
	}
	text := strings.Join(words, " ")
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text + "\n"
}

// roffLine is one literal line. A line that begins with a dot or an apostrophe would be a
// request; roffText leaves no apostrophe.
func roffLine(line string) string {
	text := roffText(line)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text + "\n"
}

// roffText escapes what roff reads as its own, and what it would print as a typographic
// sign: quotes, dashes, tildes and carets are to be copied into a shell.
func roffText(s string) string {
	s = roffEscapes.Replace(s)
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\[u%04X]`, r)
	}
	return b.String()
}

var roffEscapes = strings.NewReplacer(
	`\`, `\e`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`,
)

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
