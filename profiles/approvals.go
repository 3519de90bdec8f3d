package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// Approvals is where a person's word about the profiles of repositories is kept, in
// $XDG_STATE_HOME/stockade/approvals: one file for each, 0600, in folders 0700. No jail reaches
// it (see [Compile]: a guarded place that no reason opens).
//
// A file in allowed is named by the profile's place and content, so an edit has no approval;
// one in denied by the place alone, so an edit stays denied. Denied wins.
type Approvals struct {
	folder string
	// Foreign tells whether a real path lies in a repository of others; nil: nobody knows more
	// than the subject says.
	Foreign func(real string) bool
}

// ApprovalsBelow returns the approvals of a state folder ($XDG_STATE_HOME).
func ApprovalsBelow(state string) Approvals { return Approvals{folder: ours(state) + "/approvals"} }

// Word is what a person said about a profile of a repository.
type Word uint8

const (
	// Unasked: nothing, or nothing about this content.
	Unasked Word = iota
	// Allowed: this content may grant more than what applies without it.
	Allowed
	// Denied: the file is passed over, whatever it holds.
	Denied
)

// String returns the word that people read.
func (w Word) String() string {
	switch w {
	case Unasked:
		return "not approved"
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	}
	return "unknown"
}

// Record is one file of the approvals; its JSON form is what lies there.
type Record struct {
	Version int            `json:"version"` // 1
	File    string         `json:"file"`    // where the profile lies
	Digest  string         `json:"digest,omitempty"`
	Sources []RecordSource `json:"sources,omitempty"`
	Grants  []string       `json:"grants,omitempty"` // what the person was shown
	Time    time.Time      `json:"time"`
}

// RecordSource is one file that an approved profile was made of.
type RecordSource struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// maxRecord bounds a file of approvals, in bytes.
const maxRecord = mib

const (
	allowedFolder = "allowed"
	deniedFolder  = "denied"
)

func (a Approvals) allowedFile(s *Subject) string {
	return a.folder + "/" + allowedFolder + "/" + hexOf(s.Real+"\x00"+s.Digest())
}

func (a Approvals) deniedFile(real string) string {
	return a.folder + "/" + deniedFolder + "/" + hexOf(real)
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Of returns the person's word about a subject, and since when. An error means that the
// word cannot be told: it is then none. A denial of one of the files that it is made of is a
// denial of the whole.
func (a Approvals) Of(s *Subject) (Word, time.Time, error) {
	for i := range s.Sources {
		r, found, err := a.read(a.deniedFile(s.Sources[i].Real))
		if err != nil {
			return Unasked, time.Time{}, err
		}
		if found {
			return Denied, r.Time, nil
		}
	}
	file := a.allowedFile(s)
	r, found, err := a.read(file)
	switch {
	case err != nil || !found:
		return Unasked, time.Time{}, err
	case r.File != s.Real || r.Digest != s.Digest():
		return Unasked, time.Time{}, approvalError(file, "it is about another profile", "remove it, and allow the profile again")
	}
	if err := a.outside(s); err != nil {
		return Unasked, time.Time{}, err
	}
	return Allowed, r.Time, nil
}

// Denied tells whether the person denied the file at a real path.
func (a Approvals) Denied(real string) (bool, error) {
	_, found, err := a.read(a.deniedFile(real))
	return found, err
}

// outside refuses approvals that lie in the repository that they are about: it could have
// brought them along.
func (a Approvals) outside(s *Subject) error {
	folder := a.folder
	for at := folder; at != "/"; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			folder = real + strings.TrimPrefix(folder, at)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return approvalError(a.folder, "finding where approvals lie: "+reason(err), "")
		}
	}
	if a.Foreign != nil && a.Foreign(folder) {
		return approvalError(a.folder, "approvals do not count from inside of the folder of a repository", "set XDG_STATE_HOME to a folder of your own, or unset it")
	}
	top := s.repository()
	if folder == top || strings.HasPrefix(folder, strings.TrimSuffix(top, "/")+"/") {
		return approvalError(a.folder, fmt.Sprintf("approvals do not count from inside of the folder that they are about, %q", top), "set XDG_STATE_HOME to a folder of your own, or unset it")
	}
	return nil
}

func approvalError(file, problem, hint string) error {
	return Errors{wrong(hint, "%s", problem).at(Position{File: file})}
}

// read returns one record; false when there is none. The file has to be this user's or
// root's, and writable by nobody else.
func (a Approvals) read(file string) (Record, bool, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	fail := func(hint, problem string) (Record, bool, error) {
		return Record{}, false, approvalError(file, problem, hint)
	}
	if err != nil {
		return fail("", "opening the approval: "+reason(err))
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return fail("remove it", "opening the approval: "+reason(err))
	}
	real, err := realPath(f)
	if err != nil {
		return fail("mount /proc", "opening the approval: "+reason(err))
	}
	if bad := checkOwner(f, real); bad != nil {
		return fail(bad.hint, "opening the approval: "+bad.message)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return fail("", "reading the approval: "+reason(err))
	}
	var r Record
	if len(data) > maxRecord || json.Unmarshal(data, &r) != nil || r.Version != 1 {
		return fail("remove it, and give your word again", "the approval is not one of this version")
	}
	return r, true, nil
}

// Allow keeps the word that this content may be used. grants are the lines that the person
// was shown. A denial of its files is taken back.
func (a Approvals) Allow(s *Subject, grants []string, now time.Time) error {
	if err := a.outside(s); err != nil {
		return err
	}
	r := Record{Version: 1, File: s.Real, Digest: s.Digest(), Grants: grants, Time: now}
	for i := range s.Sources {
		r.Sources = append(r.Sources, RecordSource{s.Sources[i].Real, hex.EncodeToString(s.Sources[i].SHA256[:])})
	}
	if err := a.write(a.allowedFile(s), &r); err != nil {
		return err
	}
	for i := range s.Sources {
		if err := a.remove(a.deniedFile(s.Sources[i].Real)); err != nil {
			return err
		}
	}
	return nil
}

// Deny keeps the word that the file at a real path is not used, and forgets every approval
// of it.
func (a Approvals) Deny(real string, now time.Time) error {
	if err := a.write(a.deniedFile(real), &Record{Version: 1, File: real, Time: now}); err != nil {
		return err
	}
	allowed, err := a.records(allowedFolder)
	if err != nil {
		return err
	}
	for name, r := range allowed {
		if slices.ContainsFunc(r.Sources, func(s RecordSource) bool { return s.File == real }) {
			if err := a.remove(a.folder + "/" + allowedFolder + "/" + name); err != nil {
				return err
			}
		}
	}
	return nil
}

// records reads a folder of approvals, by their files' names. What is none is an error.
func (a Approvals) records(folder string) (map[string]Record, error) {
	entries, err := os.ReadDir(a.folder + "/" + folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, approvalError(a.folder+"/"+folder, "listing the approvals: "+reason(err), "")
	}
	out := make(map[string]Record, len(entries))
	for _, e := range entries {
		if len(e.Name()) != hex.EncodedLen(sha256.Size) {
			continue // what a write that was cut off has left
		}
		r, found, err := a.read(a.folder + "/" + folder + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		if found {
			out[e.Name()] = r
		}
	}
	return out, nil
}

func (a Approvals) write(file string, r *Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return approvalError(file, "writing the approval: "+err.Error(), "")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return approvalError(file, "writing the approval: "+reason(err), "make the folder writable, or set XDG_STATE_HOME")
	}
	// 0600 whatever the umask is: nobody else needs to know.
	if err := renameio.WriteFile(file, append(data, '\n'), 0o600, renameio.IgnoreUmask()); err != nil {
		return approvalError(file, "writing the approval: "+reason(err), "make the folder writable, or set XDG_STATE_HOME")
	}
	return nil
}

func (a Approvals) remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return approvalError(file, "taking the approval back: "+reason(err), "")
	}
	return nil
}
