package main

import (
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"stockade/profiles/hostconfig"
)

// hostDiff is a unified diff of a host's file. The values of variables and headers, and whatever
// else looks like a secret, are masked in it; ok is false when one of them is written in a form
// that cannot be masked, so that no line can be shown.
func hostDiff(f *hostFile, after []byte) (text string, ok bool) {
	next, err := hostconfig.Parse(f.path, after, f.file.Place)
	if err != nil {
		return "", false
	}
	by := hostconfig.Masking{Variable: masked, Text: maskText, Words: maskList}
	shown, ok := f.file.Masked(by)
	if !ok {
		return "", false
	}
	changed, ok := next.Masked(by)
	if !ok {
		return "", false
	}
	// A person may have left a token in a comment.
	return maskTokens(udiff.Unified(f.real, f.real, string(shown), string(changed))), true
}

// maskText masks a text by the key that it stands under, or by itself.
func maskText(key, text string) string {
	if text != "" && secretName(key) {
		return masked
	}
	return maskWord(text)
}

// maskList masks words that may be a command line's. Values of --env are variables too.
func maskList(words []string) []string {
	out := maskArguments(slices.Concat([]string{""}, words))[1:]
	for i, word := range words {
		if i > 0 && words[i-1] == "--env" {
			out[i] = maskAssigned(word)
		}
	}
	return out
}
