package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"stockade/profiles"
)

// readmeBlocks returns the fenced blocks of the README by their word, and its lines that
// are set in as code under "".
func readmeBlocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := make(map[string]string)
	fence, inside := "", false
	for line := range strings.Lines(string(text)) {
		if word, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			fence, inside = word, !inside
			continue
		}
		switch {
		case inside:
			blocks[fence] += line
		case strings.HasPrefix(line, "    "):
			blocks[""] += strings.TrimLeft(line, " ")
		}
	}
	return blocks
}

func TestReadmeProfileIsValid(t *testing.T) {
	text := readmeBlocks(t)["yaml"]
	if !strings.Contains(text, "version: 1") {
		t.Fatal("the README has no profile")
	}
	p, err := profiles.Parse("README.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if unbuilt := p.Unbuilt(); len(unbuilt) > 0 {
		t.Errorf("the README shows what is not built: %v", unbuilt)
	}
}

// Every command line of ours in the README names a command that there is.
func TestReadmeCommandsExist(t *testing.T) {
	var known []string
	for _, c := range completionTable() {
		known = append(known, c.path)
	}
	blocks := readmeBlocks(t)
	seen := 0
	for line := range strings.Lines(blocks[""] + blocks["console"]) {
		_, ours, ok := strings.Cut(strings.TrimPrefix(line, "$ "), "stockade ")
		before, _, _ := strings.Cut(line, "stockade ")
		if !ok || strings.ContainsAny(before, `"{/`) {
			continue // output, or a path
		}
		words := strings.Fields(ours)
		path := words[0]
		if path == "profile" {
			path += " " + words[1]
		}
		if !slices.Contains(known, path) {
			t.Errorf("no command %q: %s", path, line)
		}
		seen++
	}
	if seen < 6 {
		t.Errorf("only %d command lines were found", seen)
	}
}
