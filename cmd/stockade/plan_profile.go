package main

import (
	"strings"

	"stockade/profiles"
)

// What a profile says beyond the plan: which variables are secret, and what install scripts
// may do before the server ever starts.

// secretView is one entry of environment.secrets.
type secretView struct {
	Name     string     `json:"name"`
	Optional bool       `json:"optional"`
	Passed   bool       `json:"passed"`
	Origin   originView `json:"origin"`
}

// installView is what install scripts may do.
type installView struct {
	Scripts []installEntry `json:"scripts"`
	Execute []installEntry `json:"execute"`
	Read    []installEntry `json:"read"`
}

type installEntry struct {
	What   string     `json:"what"`
	Broad  string     `json:"broad"`
	Origin originView `json:"origin"`
}

// viewSecrets lists the secrets of a profile; env is the plan's environment.
func viewSecrets(p *profiles.Profile, env []string) []secretView {
	out := []secretView{}
	passed := variableNames(env)
	for _, s := range p.Environment.Secrets {
		v := secretView{Name: s.Name, Optional: s.Optional, Origin: viewPosition(s.Position)}
		for _, name := range passed {
			v.Passed = v.Passed || name == s.Name
		}
		out = append(out, v)
	}
	return out
}

func viewInstall(p *profiles.Profile) installView {
	texts := func(list []profiles.Sourced[string]) []installEntry {
		out := []installEntry{}
		for _, s := range list {
			out = append(out, installEntry{What: s.Value, Origin: viewPosition(s.Position)})
		}
		return out
	}
	v := installView{Scripts: texts(p.Install.Scripts), Execute: texts(p.Install.Execute), Read: []installEntry{}}
	for _, e := range p.Install.Read {
		v.Read = append(v.Read, installEntry{What: e.Path, Broad: e.Reason, Origin: viewPosition(e.Position)})
	}
	return v
}

func viewPosition(p profiles.Position) originView {
	return originView{Source: p.File, Line: p.Line, Column: p.Column}
}

func environmentRows(v planView) [][]string {
	rows := [][]string{{strings.Join(v.Environment, " ")}}
	for _, s := range v.Secrets {
		state := "passed"
		switch {
		case !s.Passed:
			state = "optional, and not set"
		case s.Optional:
			state = "passed, optional"
		}
		rows = append(rows, []string{"secret", s.Name, state, place(s.Origin)})
	}
	return rows
}

func installRows(v installView) [][]string {
	var rows [][]string
	add := func(word string, list []installEntry) {
		for _, e := range list {
			why := "in the install jail alone"
			if e.Broad != "" {
				why += "; broad: " + e.Broad
			}
			rows = append(rows, []string{word, e.What, why, place(e.Origin)})
		}
	}
	add("scripts of", v.Scripts)
	add("execute", v.Execute)
	add("read", v.Read)
	return rows
}
