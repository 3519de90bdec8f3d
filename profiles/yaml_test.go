package profiles

import (
	"fmt"
	"strings"
	"testing"
)

// TestSyntaxErrors has a text for each complaint of the library, with the place and the
// words that a person gets. A new version of the library that words or places one of them
// differently fails here.
func TestSyntaxErrors(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"nested in brackets", strings.Repeat("[", 40), "1:33: nested too deep"},
		{"nested by indentation", strings.Repeat("- ", 40) + "a", "1:65: nested too deep"},
		{"anchor without a name", "e: [&]\n", "1:5: " + noAnchors},
		{"alias without a name", "e: [*]\n", "1:5: " + noAliases},
		{"alias without an anchor", "e: [*é]\n", "1:5: " + noAliases},
		{"unfinished tag", "v: !<x 1\n", "1:4: " + noTags},
		{"tag with a bracket", "v: !a{b 1\n", "1:4: " + noTags},
		{"tag without a handle", "v: !x!y 1\n", "1:4: " + noTags},
		{"unknown directive", "%FOO\n---\na: 1\n", "1:1: " + noDirectives},
		{"version that is none", "%YAML x\n---\n", "1:1: " + noDirectives},
		{"handle that is none", "%TAG x\n---\n", "1:1: " + noDirectives},
		{"directive twice", "%YAML 1.1\n%YAML 1.1\n---\na: 1\n", "2:1: " + noDirectives},
		{"version of another kind", "%YAML 1.2\n---\na: 1\n", "1:1: " + noDirectives},
		{"quote to the end", "é: \"x\nb: c", "1:5: the quote is never closed"},
		{"quote to a document", "a: \"x\n---\n", "1:4: the quote is never closed"},
		{"unknown escape", "a: \"é\\q\"\n", "1:7: unknown escape"},
		{"few digits", "x: \"\\xZZ\"\n", "1:7: the escape has too few hexadecimal digits"},
		{"half a character", "x: \"\\ud800\"\n", "1:7: the escape is not a character"},
		{"second colon", "é: ü: b\n", `1:7: ":" where no key can be`},
		{"deeper key", "a: b\n c: d\n", `2:3: ":" where no key can be`},
		{"question mark", "a: ? b\n", `1:4: "?" where no key can be`},
		{"dash", "a: - b\n", "1:4: a list cannot begin here"},
		{"word without colon", "a: 1\nb\nc: 2\n", "2:1: expected a key"},
		{"shallower key", "a:\n    b: c\n  d: e\n", "3:3: expected a key"},
		{"key beside items", "a:\n  - b\n  c: d\n", "3:3: expected a list item"},
		{"list without comma", "a: [b\nc: d\n", "2:2: expected a comma or ']'"},
		{"mapping without comma", "a: {b: c\nd: e\n", "2:2: expected a comma or '}'"},
		{"open list", "a: [b\n\n", "1:4: the bracket is never closed"},
		{"open mapping", "é: {b: c\n", "1:5: the bracket is never closed"},
		{"comma alone", "a: [b, ,c]\n", "1:8: expected a value"},
		{"bracket alone", "a: ]\n", "1:4: expected a value"},
		{"percent sign", "a: %b\n", "1:4: text cannot begin with this sign"},
		{"comment in a word", "a: \"b\"#c\n", "1:7: text right before a #"},
		{"text behind a block sign", "a: |2x\n x\n", "1:6: a block sign with more than - or + behind it"},
		{"zero behind a block sign", "a: |0\n x\n", "1:5: a block sign with more than - or + behind it"},
		{"text behind the end", "[a]\nb: c\n", "2:1: text behind the profile's end"},
		{"text behind a marker", "a: 1\n... x\n", "2:1: more than one document"},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, bad := readYAML(tt.src)
			if bad == nil {
				t.Fatal("it is read")
			}
			seen[bad.message] = true
			if got := fmt.Sprintf("%d:%d: %s", bad.line, bad.column, bad.message); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	for _, c := range complaints {
		if !seen[c.message] {
			t.Errorf("no text here makes the complaint %q", c.message)
		}
	}
}

// TestHostileTextIsReadOnce: the largest file costs a moment and not a walk over the file
// for each of its nodes (that is hours, and the test ends by its own time limit), and no
// alias is followed.
func TestHostileTextIsReadOnce(t *testing.T) {
	tests := []struct{ name, src string }{
		{"one line", "a: [" + strings.Repeat("é,", maxFile/4) + "]"},
		{"many keys", strings.Repeat("a: b\n", maxFile/6)},
		{"aliases", "a: &a x\nb: [" + strings.Repeat("*a,", maxFile/4) + "]"},
		{"comments", strings.Repeat("a: b # c\n# d\n", maxFile/16)},
		{"question marks", strings.Repeat("? a\n", maxFile/5)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("p.yaml", []byte(tt.src)); err == nil {
				t.Error("it is read")
			}
		})
	}
	bomb := "version: 1\na: &a [x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c]\n", c, c, c-1, c-1, c-1)
	}
	if _, bad := readYAML(bomb); bad == nil || bad.message != noAnchors || bad.line != 2 || bad.column != 4 {
		t.Errorf("a tower of aliases: %+v", bad)
	}
}
