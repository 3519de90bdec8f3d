package main

// nearest returns the word that a person most likely meant, or "" when none is close: at
// most two edits away and less than half of the word.
func nearest(word string, among []string) string {
	best, distance := "", 3
	for _, candidate := range among {
		if d := edits(word, candidate); d < distance && 2*d < max(len(word), len(candidate)) {
			best, distance = candidate, d
		}
	}
	return best
}

// edits is the number of letters to insert, delete, replace or swap with their neighbour
// to get from a to b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
