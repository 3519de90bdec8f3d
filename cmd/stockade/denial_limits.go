package main

import "time"

// What a server asks for it can ask for as often as it likes. These two bound what comes
// of it, by the times of the refusals themselves.

const (
	// tellWindow, tellLines: so many lines on standard error in so long.
	tellWindow = time.Minute
	tellLines  = 20
	// tellAgain is how long one and the same refusal is not told again.
	tellAgain = 10 * time.Second

	// writeWindow, writeLines: so many lines in the log in so long. A flood is then days
	// away from pushing out what was there before, not seconds.
	writeWindow = time.Minute
	writeLines  = 600
)

// tellLimit chooses the lines that a person gets to see.
type tellLimit struct {
	begin time.Time            // of the window
	lines int                  // told in it
	left  int                  // left out since the last count was told
	last  map[string]time.Time // when each was told; of this window and the one before
}

// admit tells whether a refusal gets its line, and how many of an earlier window did not.
func (t *tellLimit) admit(at time.Time, what string) (left int, tell bool) {
	if t.begin.IsZero() || at.Sub(t.begin) >= tellWindow || at.Before(t.begin) {
		left, t.left = t.left, 0
		t.begin, t.lines = at, 0
		for key, told := range t.last {
			if at.Sub(told) >= tellAgain {
				delete(t.last, key)
			}
		}
	}
	if told, known := t.last[what]; known && at.Sub(told) < tellAgain || t.lines >= tellLines {
		t.left++
		return left, false
	}
	if t.last == nil {
		t.last = make(map[string]time.Time)
	}
	t.last[what] = at
	t.lines++
	return left, true
}

// rest takes the count of what was left out.
func (t *tellLimit) rest() int {
	left := t.left
	t.left = 0
	return left
}

// writeLimit chooses the lines that the log gets.
type writeLimit struct {
	begin time.Time
	lines int
	left  int
	last  time.Time // of the latest that was left out
}

// admit tells whether a refusal is logged, and how many before it were not.
func (w *writeLimit) admit(at time.Time) (left int, write bool) {
	if w.begin.IsZero() || at.Sub(w.begin) >= writeWindow || at.Before(w.begin) {
		w.begin, w.lines = at, 0
	}
	if w.lines >= writeLines {
		w.left++
		w.last = at
		return 0, false
	}
	left, w.left = w.left, 0
	w.lines++
	return left, true
}

// rest takes the count of what was left out, and when the last of it was.
func (w *writeLimit) rest() (last time.Time, left int) {
	left, w.left = w.left, 0
	return w.last, left
}
