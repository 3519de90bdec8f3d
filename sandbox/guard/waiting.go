package guard

import "time"

// waiting is a request of one side that the other has not answered yet.
type waiting struct {
	id     []byte // as it was written
	method string
	tool   string
	era    era // of the host that made it
	timer  *time.Timer
}

// era tells the revisions of the protocol apart that differ in the form of a result.
type era uint8

const (
	legacy era = iota
	modern     // 2026-07-28 or later
)

// late says what becomes of an answer that comes after its request was given up.
type late uint8

const (
	passLate late = iota // the one who asked said so itself, and knows
	dropLate             // it has an answer already
)

// inFlight are the requests of one side. Ids that were given up stay known for a while, so
// that a late answer is not taken for another one's.
type inFlight struct {
	open  map[string]*waiting
	past  map[string]late
	order []string // of past, oldest first
}

func newInFlight() inFlight {
	return inFlight{open: map[string]*waiting{}, past: map[string]late{}}
}

// known tells whether an id is in use, or could still get a late answer.
func (f *inFlight) known(key string) bool {
	_, past := f.past[key]
	return f.open[key] != nil || past
}

// take removes a request that is answered now; nil when nobody waits.
func (f *inFlight) take(key string) *waiting {
	w := f.open[key]
	if w == nil {
		return nil
	}
	delete(f.open, key)
	if w.timer != nil {
		w.timer.Stop()
	}
	return w
}

// giveUp removes a request that nobody waits for any more.
func (f *inFlight) giveUp(key string, how late) {
	if f.take(key) == nil {
		return
	}
	if len(f.order) == MaxInFlight {
		delete(f.past, f.order[0])
		f.order = append(f.order[:0], f.order[1:]...)
	}
	f.past[key] = how
	f.order = append(f.order, key)
}

// lateAnswer forgets a given up request whose answer came.
func (f *inFlight) lateAnswer(key string) (late, bool) {
	how, is := f.past[key]
	if is {
		delete(f.past, key)
		for i, k := range f.order {
			if k == key {
				f.order = append(f.order[:i], f.order[i+1:]...)
				break
			}
		}
	}
	return how, is
}
