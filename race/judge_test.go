package race

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJudge plants each kind of leak by hand: a judge that misses one would call any
// jail tight.
func TestJudge(t *testing.T) {
	read := Row{Name: "read_file", Tool: "read_file"}
	stat := Row{Name: "get_file_info", Tool: "get_file_info", Kind: Metadata}
	tests := []struct {
		name   string
		row    Row
		answer func(s *Stage) Answer
		plant  func(s *Stage) error
		want   Tally
	}{
		{
			name:   "an inside answer",
			row:    read,
			answer: func(*Stage) Answer { return Answer{Raw: []byte(insideText), Text: insideText} },
			want:   Tally{Calls: 1, Served: 1},
		},
		{
			name:   "the secret as text",
			row:    read,
			answer: func(s *Stage) Answer { return Answer{Raw: s.outsideText(), Text: string(s.outsideText())} },
			want:   Tally{Calls: 1, Served: 1, Leaks: 1},
		},
		{
			name: "the secret in base64",
			row:  read,
			answer: func(s *Stage) Answer {
				return Answer{Raw: []byte(base64.StdEncoding.EncodeToString(s.outsideText()))}
			},
			want: Tally{Calls: 1, Served: 1, Leaks: 1},
		},
		{
			name:   "a secret name in a listing",
			row:    read,
			answer: func(s *Stage) Answer { return Answer{Raw: []byte("[FILE] " + s.token + "-name")} },
			want:   Tally{Calls: 1, Served: 1, Leaks: 1},
		},
		{
			name:   "the secret inside an error",
			row:    read,
			answer: func(s *Stage) Answer { return Answer{Raw: s.outsideText(), Failed: true} },
			want:   Tally{Calls: 1, Leaks: 1},
		},
		{
			name:   "a refusal by the kernel",
			row:    read,
			answer: func(*Stage) Answer { return Answer{Text: "EACCES: permission denied, open", Failed: true} },
			want:   Tally{Calls: 1, Refused: 1},
		},
		{
			name:   "a refusal by the server",
			row:    read,
			answer: func(*Stage) Answer { return Answer{Text: "Access denied - outside", Failed: true} },
			want:   Tally{Calls: 1},
		},
		{
			name:   "an outside file's size",
			row:    stat,
			answer: func(*Stage) Answer { return Answer{Text: "size: 4321"} },
			want:   Tally{Calls: 1, Served: 1, Metadata: 1},
		},
		{
			name:  "a new file outside",
			row:   read,
			plant: func(s *Stage) error { return os.WriteFile(filepath.Join(s.Outside(), "new"), nil, 0o600) },
			want:  Tally{Leaks: 1},
		},
		{
			name:  "a new folder outside",
			row:   read,
			plant: func(s *Stage) error { return os.Mkdir(filepath.Join(s.Outside(), "new"), 0o700) },
			want:  Tally{Leaks: 1},
		},
		{
			name:  "a file gone from outside",
			row:   read,
			plant: func(s *Stage) error { return os.Remove(filepath.Join(s.Outside(), fileName(3))) },
			want:  Tally{Leaks: 1},
		},
		{
			name: "a file outside with other content",
			row:  read,
			plant: func(s *Stage) error {
				return os.WriteFile(filepath.Join(s.Outside(), fileName(3)), []byte(editedLine), 0o600)
			},
			want: Tally{Leaks: 1},
		},
		{
			name:  "a file outside with another mode",
			row:   read,
			plant: func(s *Stage) error { return os.Chmod(filepath.Join(s.Outside(), fileName(3)), 0o666) },
			want:  Tally{Leaks: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewStage(Exchange)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			var answers []Answer
			if tt.answer != nil {
				answers = append(answers, tt.answer(s))
			}
			if tt.plant != nil {
				if err := tt.plant(s); err != nil {
					t.Fatal(err)
				}
			}
			got, _, err := s.judge(tt.row, answers, "EACCES")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
			again, _, err := s.judge(tt.row, nil, "EACCES")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Tally{}, again); diff != "" {
				t.Errorf("tally after a reset (-want +got):\n%s", diff)
			}
		})
	}
}
