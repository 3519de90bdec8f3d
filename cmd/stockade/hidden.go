package main

import (
	"slices"
	"strings"

	"stockade/profiles"
)

// hidden is an entry without the values of secrets.
func (l *denialLog) hidden(e denialEntry) denialEntry {
	if l.hide != nil {
		for _, text := range [...]*string{&e.Program, &e.Asked, &e.Rule, &e.Hint, &e.File, &e.Key} {
			*text = l.hide.Replace(*text)
		}
	}
	return e
}

// hider takes the values that a plan passes as secrets out of texts. One of a few letters is in
// too many other words to be told apart.
func hider(p *profiles.Profile, env []string) *strings.Replacer {
	var pairs []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if len(value) < 6 || !slices.ContainsFunc(p.Environment.Secrets, func(s profiles.Secret) bool { return s.Name == name }) {
			continue
		}
		for _, spelled := range [...]string{value, escape(value), bounded(value)} {
			pairs = append(pairs, spelled, "("+name+")")
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...)
}
