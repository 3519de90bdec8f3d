package packages

import (
	"encoding/json"
	"slices"
	"strings"
)

// Key is the request as one line of text. Requests that install the same thing have one
// key: no version and the tag "latest" are the same, and so is any order of the packages
// beside the first.
func (r Request) Key() string {
	c := r
	c.Specs = slices.Clone(r.Specs)
	for i := range c.Specs {
		c.Specs[i] = c.Specs[i].canonical()
	}
	if len(c.Specs) > 1 {
		slices.SortFunc(c.Specs[1:], compareSpecs)
		c.Specs = slices.CompactFunc(c.Specs, func(a, b Spec) bool { return compareSpecs(a, b) == 0 })
	}
	c.Scripts = slices.Compact(slices.Sorted(slices.Values(r.Scripts)))
	specs := make([]string, len(c.Specs))
	for i, spec := range c.Specs {
		specs[i] = spec.String()
	}
	text := string(c.Kind) + ":" + strings.Join(specs, " + ")
	if c.Python != "" {
		text += " with python " + quoteWord(c.Python)
	}
	if len(c.Scripts) > 0 {
		names := make([]string, len(c.Scripts))
		for i, name := range c.Scripts {
			names[i] = quoteWord(name)
		}
		text += " with install scripts of " + strings.Join(names, " ")
	}
	return text
}

func (s Spec) canonical() Spec {
	if s.Version == "latest" && s.Source == Registry {
		s.Version = ""
	}
	s.Extras = slices.Compact(slices.Sorted(slices.Values(s.Extras)))
	return s
}

func compareSpecs(a, b Spec) int { return strings.Compare(a.String(), b.String()) }

// quoteWord keeps words with signs of their own apart from the text around them.
func quoteWord(word string) string {
	data, err := json.Marshal(word)
	if err != nil {
		return word // no text fails
	}
	return string(data)
}

// String writes a package as one word, or a quoted one.
func (s Spec) String() string {
	text := s.Name
	if len(s.Extras) > 0 {
		text += "[" + strings.Join(s.Extras, ",") + "]"
	}
	if s.Version != "" {
		text += "@" + s.Version
	}
	switch s.Source {
	case Registry:
	case Git:
		text += " git " + quoteWord(s.Place)
	case Archive:
		text += " archive " + quoteWord(s.Place)
	case Folder:
		text += " folder " + quoteWord(s.Place)
	}
	if s.Source == Registry && plainWord(s.Version) {
		return text
	}
	return quoteWord(text)
}

func plainWord(word string) bool {
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == '=' || c == '~' || c == '^' || c == '<' || c == '>' || c == ',' || c == '!' || c == '*' {
			continue
		}
		return false
	}
	return true
}
