package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoffEscapes(t *testing.T) {
	tests := []struct{ name, literal, want string }{
		{"request", ".SH x", `\&.SH x`},
		{"apostrophe", "'br", `\(aqbr`},
		{"inner dots", "a.b ...", "a.b ..."},
		{"flag", "--all", `\-\-all`},
		{"escape", `a\fBb \`, `a\efBb \e`},
		{"signs that shells read", "\"~^`", `\(dq\(ti\(ha\(ga`},
		{"blanks", "  x", "  x"},
		{"not ASCII", "é…", `\[u00E9]\[u2026]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := roffLine(tt.literal); got != tt.want+"\n" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRoffParagraph(t *testing.T) {
	tests := []struct{ name, help, want string }{
		{"prose", "    See a-b,\n    x.", "See \\%a\\-b,\nx.\n"},
		{"prose that begins with a dot", "    .a b", "\\%.a b\n"},
		{"list", "    0    done,\n         or not\n    else it is", ".TP\n\\fB0\\fP\ndone,\nor not\n.TP\n\\fBelse\\fP\nit is\n"},
		{"flags", "    --a      x\n    --b A|B  y", ".TP\n\\fB\\-\\-a\\fP\nx\n.TP\n\\fB\\-\\-b\\fP \\fIA|B\\fP\ny\n"},
		{"literal after prose", "    x:\n        .a  \\\n          b", "x:\n.RS 4\n.EX\n\\&.a  \\e\n  b\n.EE\n.RE\n"},
		{"list after prose", "    x:\n        a   b c\n        dd  e", "x:\n.RS 4\n.TP\n\\fBa\\fP\nb c\n.TP\n\\fBdd\\fP\ne\n.RE\n"},
		{"a line that does not keep to the column", "    a    b\n    cccccc d", "a b\ncccccc d\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			roffParagraph(&b, strings.Split(tt.help, "\n"))
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func pagesByFile(t *testing.T) map[string]manPage {
	t.Helper()
	pages, err := manualPages()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]manPage)
	for _, p := range pages {
		if _, twice := out[p.file()]; twice {
			t.Errorf("two pages %s", p.file())
		}
		out[p.file()] = p
	}
	return out
}

// Every command has a page, and its text is the one that --help prints.
func TestManualHasEveryCommand(t *testing.T) {
	pages := pagesByFile(t)
	for _, c := range completionTable() {
		t.Run(c.path, func(t *testing.T) {
			p, ok := pages["man1/stockade-"+strings.ReplaceAll(c.path, " ", "-")+".1"]
			if !ok {
				t.Fatal("no page")
			}
			var out, errs strings.Builder
			if status := run(append(strings.Fields(c.path), "--help"), stdio{out: &out, err: &errs}); status != 0 {
				t.Fatalf("status %d: %s", status, errs.String())
			}
			text, rest, _ := strings.Cut(p.help, "\nSEE ALSO\n")
			if diff := cmp.Diff(out.String(), text); diff != "" {
				t.Errorf("the page is not the help (-help +page):\n%s", diff)
			}
			if !strings.Contains(rest, "stockade(1)") {
				t.Errorf("the page does not name the one of the program: %s", rest)
			}
			roff := roffPage(&p, "")
			for _, f := range c.flags {
				if f.name != "help" && !strings.Contains(roff, ".TP\n\\fB"+roffText("--"+f.name)+"\\fP") {
					t.Errorf("no entry for --%s", f.name)
				}
			}
		})
	}
	if len(pages) != len(completionTable())+3 {
		t.Errorf("%d pages for %d commands, the program and two formats", len(pages), len(completionTable()))
	}
}

// No word of a help text is lost or changed on the way to its page.
func TestManualKeepsEveryWord(t *testing.T) {
	for file, p := range pagesByFile(t) {
		t.Run(file, func(t *testing.T) {
			want := strings.Fields(p.help)
			name := strings.Split(p.name, "-")
			if p.section == commandSection { // the help writes the name with blanks
				want = append([]string{"NAME", p.name}, want[1+len(name):]...)
			}
			if diff := cmp.Diff(want, strings.Fields(readRoff(t, roffPage(&p, "2026-01-02")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readRoff gives the text of a page, and fails on a request that pages do not use.
func readRoff(t *testing.T, roff string) string {
	t.Helper()
	signs := strings.NewReplacer(
		`\fB`, "", `\fI`, "", `\fP`, "", `\%`, "", `\&`, "", `\-`, "-", `\e`, `\`,
		`\(aq`, "'", `\(dq`, `"`, `\(ga`, "`", `\(ha`, "^", `\(ti`, "~", `\[u2026]`, "…",
	)
	var b strings.Builder
	for line := range strings.Lines(roff) {
		request, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case request == ".SH":
			b.WriteString(signs.Replace(rest) + "\n")
		case strings.HasPrefix(line, "."):
			switch request {
			case ".TH", ".PP", ".TP", ".RS", ".RE", ".EX", ".EE", ".br":
			default:
				t.Errorf("a line is taken for a request: %s", line)
			}
		default:
			b.WriteString(signs.Replace(line))
		}
	}
	return b.String()
}

func TestSourceDate(t *testing.T) {
	for seconds, want := range map[string]string{"": "", "0": "1970-01-01", "1764633599": "2025-12-01"} {
		if got, err := sourceDate(seconds); err != nil || got != want {
			t.Errorf("sourceDate(%q) = %q, %v; want %q", seconds, got, err, want)
		}
	}
	for _, seconds := range []string{"today", "-1", "1e9", " 1", "99999999999999999999"} {
		if got, err := sourceDate(seconds); err == nil {
			t.Errorf("sourceDate(%q) = %q, want an error", seconds, got)
		}
	}
}
