package program

import (
	"cmp"
	"slices"
	"strings"
)

// tool is what a version manager's configuration says about one tool.
type tool struct {
	name     string
	versions []string
}

// isLetter says whether a rune is an ASCII letter.
func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// installed are the names in a folder of versions, highest first. A missing folder holds none.
func (s *search) installed(folder string) []string {
	var names []string
	_ = s.list(folder, func(name string, _ uint8) bool {
		names = append(names, name)
		return len(names) < 512
	})
	return sortVersions(names)
}

// matchVersion picks the version that a request means among the installed ones, highest
// first: the very name, or the highest release that the request is the beginning of
// (3.11 means 3.11.7, and never 3.110).
func matchVersion(installed []string, wanted string) (string, bool) {
	if slices.Contains(installed, wanted) {
		return wanted, true
	}
	for _, version := range installed {
		rest, ok := strings.CutPrefix(version, wanted)
		if ok && rest[0] == '.' && isRelease(version) {
			return version, true
		}
	}
	return "", false
}

// isRelease says whether a version is made of numbers and dots only.
func isRelease(version string) bool {
	for i := range len(version) {
		if !isDigit(version[i]) && version[i] != '.' {
			return false
		}
	}
	return version != ""
}

// sortVersions orders versions from high to low, number by number.
func sortVersions(versions []string) []string {
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	return versions
}

// compareVersions compares runs of digits as numbers and the rest as text.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			var left, right string
			left, a = cutDigits(a)
			right, b = cutDigits(b)
			// Without leading zeros the longer number is the larger one.
			if c := cmp.Or(cmp.Compare(len(left), len(right)), strings.Compare(left, right)); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
