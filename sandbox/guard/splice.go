package guard

// edit replaces a part of a line. Edits of one line stand in order and do not overlap.
type edit struct {
	at   span
	with []byte
}

// without are the edits that take parts out of a list or an object, with the commas that go
// with them. All are its elements or members, in order; gone says which of them go.
func without(all []span, gone func(int) bool) []edit {
	var out []edit
	last := -1 // the last one that stays
	for i := 0; i < len(all); i++ {
		if !gone(i) {
			last = i
			continue
		}
		run := i
		for run+1 < len(all) && gone(run+1) {
			run++
		}
		switch {
		case last >= 0: // from behind what stays, the comma before the run with it
			out = append(out, edit{at: span{all[last].to, all[run].to}})
		case run+1 < len(all): // up to the next, the comma behind the run with it
			out = append(out, edit{at: span{all[i].from, all[run+1].from}})
		default:
			out = append(out, edit{at: span{all[i].from, all[run].to}})
		}
		i = run
	}
	return out
}

// spliced appends the line with its edits.
func spliced(out, line []byte, edits []edit) []byte {
	at := 0
	for _, e := range edits {
		out = append(out, line[at:e.at.from]...)
		out = append(out, e.with...)
		at = e.at.to
	}
	return append(out, line[at:]...)
}
