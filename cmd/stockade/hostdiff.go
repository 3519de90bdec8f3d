package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"stockade/profiles/hostconfig"
)

// hostDiff is a unified diff of a host's file. The values of variables, and arguments that
// look like secrets, are masked in it; ok is false when one of them stands in the file in a
// spelling that is not found, so that no line can be shown.
func hostDiff(f *hostFile, after []byte) (text string, ok bool) {
	before, next := string(f.data), string(after)
	for _, value := range hiddenValues(f.file) {
		spellings := spellingsOf(value)
		found := false
		for _, s := range spellings {
			found = found || strings.Contains(before, s)
			before, next = strings.ReplaceAll(before, s, masked), strings.ReplaceAll(next, s, masked)
		}
		if !found {
			return "", false
		}
	}
	return udiff.Unified(f.real, f.real, before, next), true
}

// hiddenValues are what no diff may show, the longest first: one may hold another.
func hiddenValues(f *hostconfig.File) []string {
	var out []string
	for i := range f.Servers {
		s := &f.Servers[i]
		for _, v := range s.Env {
			value := v.Value.Reveal()
			// A short value of a variable whose name says nothing would mask half the file.
			if value != "" && (secretName(v.Name) || len(value) > 7) && !placeholderAlone(value) {
				out = append(out, value)
			}
		}
		line := append([]string{s.Command}, s.Args...)
		for n, shown := range maskArguments(line) {
			if shown != line[n] {
				out = append(out, line[n])
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

// spellingsOf is how a text may stand in a file: as it is, or escaped as in JSON, which TOML's
// and YAML's quoted strings share.
func spellingsOf(value string) []string {
	out := []string{value}
	if quoted, err := json.Marshal(value); err == nil {
		if s := string(quoted[1 : len(quoted)-1]); s != value {
			out = append([]string{s}, out...)
		}
	}
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) == nil {
		if s := strings.TrimSuffix(plain.String(), "\n"); len(s) > 1 && !slices.Contains(out, s[1:len(s)-1]) {
			out = append([]string{s[1 : len(s)-1]}, out...)
		}
	}
	// TOML's and YAML's single quotes double a quote, or hold none.
	if doubled := strings.ReplaceAll(value, "'", "''"); doubled != value {
		out = append(out, doubled)
	}
	return out
}
