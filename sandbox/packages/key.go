package packages

import (
	"encoding/json"
	"slices"
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
	text := string(c.Kind) + ":" + c.Specs[0].String()
	for _, s := range c.Specs[1:] {
		text += " + " + s.String()
	}
	if c.Python != "" {
		text += " with python " + quoteWord(c.Python)
	}
	if len(c.Scripts) > 0 {
		text += " with install scripts of"
		for _, name := range c.Scripts {
			text += " " + quoteWord(name)
		}
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

func compareSpecs(a, b Spec) int {
	x, y := a.String(), b.String()
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

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
		text += "["
		for i, e := range s.Extras {
			if i > 0 {
				text += ","
			}
			text += e
		}
		text += "]"
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
