package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stockade/profiles"
)

func TestEscape(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "/srv/data", "/srv/data"},
		{"letters", "/srv/größe/日本", "/srv/größe/日本"},
		{"line feed", "a\nstockade: error: b", `a\nstockade: error: b`},
		{"carriage return", "a\rb", `a\rb`},
		{"escape sequence", "\x1b[2J\x1b]0;x\a", `\x1b[2J\x1b]0;x\a`},
		{"delete and C1", "a\x7f\u0085b", `a\x7f\u0085b`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"direction override", "a\u202eb", `a\u202eb`},
		{"zero width", "a\u200bb", `a\u200bb`},
		{"not UTF-8", "a\xff\xc3b", `a\xff\xc3b`},
		{"no-break space", "a\u00a0b", `a\u00a0b`},
		{"backslash stays", `a\nb`, `a\nb`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := escape(tt.in); got != tt.want {
				t.Errorf("escape(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\nb\x1b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := escape(s)
		if strings.ContainsAny(got, "\n\r\x1b\x00\x7f\u0085\u2028\u202e") {
			t.Errorf("escape(%q) = %q", s, got)
		}
		if escape(got) != got {
			t.Errorf("escaping %q again changes it", got)
		}
	})
}

func TestShellWords(t *testing.T) {
	tests := []struct {
		name  string
		words []string
		want  string
	}{
		{"plain", []string{"npx", "-y", "@scope/pkg@1.2", "/srv/a b"}, `npx -y @scope/pkg@1.2 '/srv/a b'`},
		{"empty", []string{""}, `''`},
		{"single quote", []string{"it's"}, `'it'\''s'`},
		{"dollar", []string{"$HOME", "`id`"}, "'$HOME' '`id`'"},
		{"line feed and quote", []string{"a\n'b\\"}, `$'a\n\'b\\'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := shellWords(tt.words); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFail(t *testing.T) {
	many := profiles.Errors{
		{Position: profiles.Position{File: "a.yaml", Line: 1, Column: 2}, Message: "first\nline"},
		{Position: profiles.Position{File: "a.yaml", Line: 3, Column: 4}, Message: "second", Hint: "do it"},
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"usage", &usageError{problem: "no", hint: "yes"}, "stockade: error: no\nstockade: hint: yes\n"},
		{
			"problems of a profile, one with a cure", fmt.Errorf("reading: %w", many),
			"stockade: error: a.yaml:1:2: first\\nline\nstockade: error: a.yaml:3:4: second\nstockade: hint: do it\n",
		},
		{
			"each problem has its own cure",
			profiles.Errors{{Message: "a", Hint: "b"}, {Message: "c", Hint: "d"}},
			"stockade: error: a\nstockade: hint: b\nstockade: error: c\nstockade: hint: d\n",
		},
		{
			"problems without a cure",
			profiles.Errors{{Message: "a"}, {Message: "c"}},
			"stockade: error: a\nstockade: error: c\nstockade: hint: " + hintOf(errors.New("bare")) + "\n",
		},
		{"told by the child", &toldError{status: 125}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, err bytes.Buffer
			stdio{out: &out, err: &err}.fail(tt.err)
			if err.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", err.String(), tt.want)
			}
			if out.Len() != 0 {
				t.Errorf("stdout has %q", out.String())
			}
		})
	}
}

func TestEveryErrorHasAHint(t *testing.T) {
	for _, err := range []error{errors.New("bare"), fmt.Errorf("wrapped: %w", &usageError{problem: "x", hint: "cure"})} {
		if hintOf(err) == "" {
			t.Errorf("%v has no hint", err)
		}
	}
	if got := hintOf(fmt.Errorf("a: %w", &usageError{problem: "x", hint: "cure"})); got != "cure" {
		t.Errorf("got hint %q, want the innermost error's", got)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := table(&b, [][]string{{"a", "größe", "x"}, {"long", "b"}, {"", "", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "a     größe  x\nlong  b\n\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}
