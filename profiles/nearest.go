package profiles

import "strings"

// maxWord bounds what is compared: comparing takes time by the product of two lengths.
const maxWord = 128

// nearest returns the word that a person most likely meant, or "" when none is close.
// Case and the sign between words do not count.
func nearest(word string, among []string) string {
	plain := foldWord(word)
	best, distance := "", 3
	for _, candidate := range among {
		d := edits(plain, foldWord(candidate))
		if d < distance && 2*d < max(len(word), len(candidate)) {
			best, distance = candidate, d
		}
	}
	return best
}

func foldWord(word string) string {
	if len(word) > maxWord {
		return word[:maxWord]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == '_' || r == '-':
			return -1
		}
		return r
	}, word)
}

// edits is how many letters have to be put in, left out, replaced or swapped with their
// neighbour to get from a to b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
