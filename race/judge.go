package race

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tally counts what came of a number of calls.
type Tally struct {
	Calls    int
	Leaks    int // answers that show the secret, and outside files that changed
	Metadata int // answers that show an outside file's attributes; not promised
	Served   int // answers without an error
	Refused  int // answers that carry the errno of the kernel's refusal
}

// add adds another tally.
func (t *Tally) add(o Tally) {
	t.Calls += o.Calls
	t.Leaks += o.Leaks
	t.Metadata += o.Metadata
	t.Served += o.Served
	t.Refused += o.Refused
}

// judge counts the answers of one burst and everything that changed outside. Each changed
// outside file counts once, and so does each answer: every call of a burst has an outside
// file of its own. notes describe the first leaks.
func (s *Stage) judge(row Row, answers []Answer, refusal string) (t Tally, notes []string, err error) {
	for _, a := range answers {
		t.Calls++
		if a.Failed {
			if refusal != "" && strings.Contains(a.Text, refusal) {
				t.Refused++
			}
		} else {
			t.Served++
			// read_multiple_files reports a refused file inside an answer that succeeds.
			if refusal != "" && strings.Contains(a.Text, refusal) {
				t.Refused++
			}
		}
		switch {
		case s.shows(a.Raw):
			t.Leaks++
			notes = append(notes, row.Name+": the answer shows the secret")
		case row.Kind == Metadata && !a.Failed && showsSize(a.Text):
			t.Metadata++
		}
	}
	changed, err := s.changedOutside()
	if err != nil {
		return t, notes, err
	}
	for _, what := range changed {
		t.Leaks++
		notes = append(notes, row.Name+": outside "+what)
	}
	return t, notes, nil
}

// shows says whether an answer holds the token, as it is or in base64. The token is 24
// bytes at the start of its file, so its base64 form stands alone.
func (s *Stage) shows(raw []byte) bool {
	return bytes.Contains(raw, []byte(s.token)) ||
		bytes.Contains(raw, []byte(base64.StdEncoding.EncodeToString([]byte(s.token))))
}

// showsSize says whether an answer shows an outside file's size.
func showsSize(text string) bool {
	return strings.Contains(text, fmt.Sprint(outsideSize)) || strings.Contains(text, outsideSizeText)
}

// changedOutside compares the folder outside with what it was: one entry for each file
// that is new, missing, or has another content or mode.
func (s *Stage) changedOutside() (changed []string, err error) {
	want := s.outsideFiles()
	err = filepath.WalkDir(s.Outside(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == s.Outside() {
			return err
		}
		text, known := want[d.Name()]
		delete(want, d.Name())
		if !known {
			changed = append(changed, "has a new entry")
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode() != 0o600 {
			changed = append(changed, fmt.Sprintf("file's mode became %v", info.Mode()))
			return nil
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, text) {
			changed = append(changed, "file's content changed")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking at the folder outside: %w", err)
	}
	for range want {
		changed = append(changed, "file is gone")
	}
	slices.Sort(changed)
	return changed, nil
}
