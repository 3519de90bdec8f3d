package profiles

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

// stated is a file that the test makes up: an ordinary user owns no foreign files.
type stated struct {
	owner uint32
	mode  fs.FileMode
	group uint32
}

func (s stated) Name() string       { return "x.yaml" }
func (s stated) Size() int64        { return 0 }
func (s stated) Mode() fs.FileMode  { return s.mode }
func (s stated) ModTime() time.Time { return time.Time{} }
func (s stated) IsDir() bool        { return false }
func (s stated) Sys() any           { return &syscall.Stat_t{Uid: s.owner, Gid: s.group} }

func TestOwners(t *testing.T) {
	self := uint32(os.Geteuid()) //nolint:gosec // the kernel's ids are 32 bits wide
	for _, tt := range []struct {
		name string
		file stated
		mask fs.FileMode
		ok   bool
	}{
		{"own", stated{self, 0o644, 0}, 0o022, true},
		{"root's", stated{0, 0o644, 0}, 0o022, true},
		{"another user's", stated{self + 4711, 0o644, 0}, 0o022, false},
		{"another user's, read only", stated{self + 4711, 0o444, 0}, 0o022, false},
		{"group", stated{self, 0o664, 0}, 0o022, false},
		{"a group of one", stated{self, 0o664, self}, 0o022, self != 0 && os.Getegid() == os.Geteuid()},
		{"a group of the same number as a foreign owner", stated{0, 0o664, self + 1}, 0o022, false},
		{"others", stated{0, 0o646, 0}, 0o022, false},
		{"folder with a group", stated{self, 0o775, 0}, 0o002, true},
		{"folder of all", stated{self, 0o777, 0}, 0o002, false},
		{"sticky folder of all", stated{0, 0o777 | fs.ModeSticky, 0}, 0o002, false},
		{"another user's folder", stated{self + 4711, 0o755, 0}, 0o002, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad := checkWriters(tt.file, "/x.yaml", tt.mask, "the file")
			if (bad == nil) != tt.ok || bad != nil && (bad.message == "" || bad.hint == "") {
				t.Errorf("got %+v, want it taken: %v", bad, tt.ok)
			}
		})
	}
}
